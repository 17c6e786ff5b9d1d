/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context of all modules, made by main.c. In the order of the data flow:
 *
 *	intake          reads the journal's records in order
 *	apply           turns records into changes of the index, a batch in one transaction
 *	config_indexes the wanted indexes of a feed
 *	definitions     defines, fills and drops indexes, in slices between batches
 *	rebuild         builds a whole index from the journal
 *	pair            a journal and its index: which index to use, when readers move to it; tells
 *			readers of commits through the progress word
 *	readers         warns of snapshots held for too long
 *	main            opens the store, and the pair again after an error
 *
 * No module repairs an error: main reopens the pair, as a restarted process does. There is one way
 * to recover, and each start uses it.
 */
#ifndef PROCESSOR_PROCESSOR_H
#define PROCESSOR_PROCESSOR_H

#include "common/config/config.h"
#include "common/daemon/control.h"
#include "common/stats.h"
#include "store/env/home.h"

struct processor {
	struct home *home;
	const struct config *config; /* replaced by SIGHUP, between two steps */
	uint32_t config_version;     /* counts its replacements */
	struct stats *stats;
	struct control_call *call; /* waits for the index; NULL: none */
	bool once;                 /* exit instead of waiting for a readable journal */
	/* wait: the reflector may be replacing an unreadable journal */
	bool patient;
	bool retrying; /* after a logged error: attempts are not logged again */
	/* Does the urgent: heartbeat, watchdog, signals. Long work calls it every few milliseconds.
	 * Returns: 0; -EINTR: stop, nothing is lost. */
	int (*tick)(void *arg);
	void *tick_arg;
};

static inline int processor_tick(const struct processor *p)
{
	return p->tick ? p->tick(p->tick_arg) : 0;
}

#endif
