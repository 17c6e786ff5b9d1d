/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context of all modules, made by main.c. In the order of the data flow:
 *
 *	intake          reads the journal's records in order
 *	apply           turns records into changes of the index, a batch in one transaction
 *	publish         stores the applied seq in the progress word
 *	config_indexes  which indexes a feed should have
 *	definitions     defines, fills and drops indexes, in slices between batches
 *	rebuild         builds a whole index from the journal
 *	pair            a journal and its index: which index to use, when readers move to it
 *	readers         warns of snapshots that are held for too long
 *	main            opens the store, and the pair again after an error
 *
 * No module repairs an error where it arises: main closes the pair and opens it again, as a
 * restarted process does. So there is one way to recover, and each start uses it.
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
	struct control_call *call; /* waiting for the index; NULL: none */
	bool once;                 /* nobody waits for a readable journal */
	/* the reflector may be about to replace an unreadable journal */
	bool patient;
	bool retrying; /* after a logged error: attempts are not logged again */
	/* Does the urgent work: heartbeat, watchdog, signals. Long work calls it every few
	 * milliseconds. Returns: 0; -EINTR: stop, nothing is lost. */
	int (*tick)(void *arg);
	void *tick_arg;
};

static inline int processor_tick(const struct processor *p)
{
	return p->tick ? p->tick(p->tick_arg) : 0;
}

#endif
