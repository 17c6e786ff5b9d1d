/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reflector's one loop. A turn: answers come in and go into the open journal transaction; what
 * needs no network is done; commit; publish; one wake; then a slice of trimming, if there is time.
 */
#ifndef REFLECTOR_LOOP_H
#define REFLECTOR_LOOP_H

#include "common/daemon/daemon.h"

struct loop;

/* Opens the network, the store and the status page. Borrows DAEMON. */
int loop_new(struct daemon *daemon, struct loop **ret_loop);
void loop_free(struct loop **loop);

/* Runs until SIGTERM, SIGINT or the supervisor's end: 0, or the error that ends the process. */
int loop_run(struct loop *loop);

#endif
