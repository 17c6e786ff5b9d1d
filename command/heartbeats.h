/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds daemons that hang: each writes a heartbeat into its status page once a second, also
 * while it waits for a lock, a disk or the API server. `kinf run` kills one that was silent for
 * `hangLimit`, and starts it again. A long transaction is no hang: a daemon that uses the
 * processor or waits for a disk has ten times as long.
 */
#ifndef COMMAND_HEARTBEATS_H
#define COMMAND_HEARTBEATS_H

#include "command/children.h"
#include "common/config/config.h"

struct heartbeats;

/* Borrows CONFIG. -ENOMEM. */
int heartbeats_new(const struct config *config, struct heartbeats **ret_heartbeats);
void heartbeats_free(struct heartbeats **heartbeats);

/* Checks each child that runs, once a second at most. Kills those that hang; children_reap()
 * then plans their restart. */
void heartbeats_check(struct heartbeats *heartbeats, struct children *children);

#endif
