/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every module of the process needs and none of them owns. The modules, by the way of
 * the data:
 *
 *	intake       the journal's records in order: as far as the delta ring says, else all of the log
 *	apply        records to changes of the index, one transaction per batch
 *	publish      what was committed, to the event ring
 *	doorbell     for followers that poll: a byte when something was published
 *	definitions  which indexes there should be; filling new ones, dropping old ones, in slices
 *	rebuild      a whole index from heads and log
 *	pair         a journal and its index: which to use, when to switch, one step of work
 *	readers      snapshots that are held for too long
 *	main         options, signals, heartbeat, back-off
 *
 * Errors are not mended where they arise: the pair is closed and opened again, which is what a
 * restarted process does too. So there is one recovery path, and it is used every day.
 */
#ifndef PROCESSOR_PROCESSOR_H
#define PROCESSOR_PROCESSOR_H

#include "common/config/config.h"
#include "common/stats.h"
#include "store/env/home.h"

struct doorbell;

struct processor {
	struct home *home;
	const struct config *config; /* replaced by SIGHUP, between two steps */
	uint32_t config_version;     /* counts its replacements */
	struct stats *stats;
	struct doorbell *doorbell; /* NULL: none could be made; followers use short timers */
	bool retrying; /* after an error that was said: what is tried again is not news */
	/* To be called at least every few milliseconds of work: heartbeat, watchdog, signals. -EINTR:
	 * stop, nothing is lost. */
	int (*tick)(void *arg);
	void *tick_arg;
};

static inline int processor_tick(const struct processor *p)
{
	return p->tick ? p->tick(p->tick_arg) : 0;
}

#endif
