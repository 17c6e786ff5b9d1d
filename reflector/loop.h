/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reflector's one loop. In a turn, answers of the API server come in and go into the journal's
 * open transaction; then comes the work without network; then the batch is committed and published,
 * with one wake; then a slice of old history is trimmed, if there is time.
 *
 * A failed batch (no disk space, no memory) begins a hold: nothing is read from the API server
 * until the journal can be written again.
 */
#ifndef REFLECTOR_LOOP_H
#define REFLECTOR_LOOP_H

#include "common/daemon/daemon.h"

struct loop;

/* Opens the network, the store and the status page. Borrows DAEMON. */
int loop_new(struct daemon *daemon, struct loop **ret_loop);
/* Removes the runtime directory, if no other daemon uses it. */
void loop_remove_runtime(struct loop *loop);
void loop_free(struct loop **loop);

/* Runs until the daemon is to stop. Returns: 0, an error. */
int loop_run(struct loop *loop);

#endif
