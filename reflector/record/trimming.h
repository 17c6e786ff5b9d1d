/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trims the journal's log: every two seconds as far as retention allows, in slices between the
 * turns of the loop; more often and in larger slices while history exceeds retention.size: a burst
 * has to be trimmed faster than it comes. Each time it also removes the pin files of killed
 * readers, logs unknown pins, and removes the previous journal once no index needs it.
 */
#ifndef REFLECTOR_RECORD_TRIMMING_H
#define REFLECTOR_RECORD_TRIMMING_H

#include "common/stats.h"
#include "reflector/record/retention.h"

struct trimming {
	struct home *home;
	struct stats *stats;
	struct journal *journal;
	struct retention *retention;
	uint64_t most_bytes;  /* of history; 0: any */
	bool running;         /* slices are left to do */
	bool old_left;        /* a replaced journal, perhaps in use */
	bool readers_unknown; /* some reader keeps all pages, and the log has it */
	uint64_t due_ns,
		soon_ns; /* monotonic: next trimming at all, and if there is too much history */
	struct trim_goal goal;
};

/* Begins with JOURNAL and its retention; both are borrowed. */
void trimming_begin(
	struct trimming *trimming, struct journal *journal, struct retention *retention);

bool trimming_has_too_much(const struct trimming *trimming);
bool trimming_is_due(const struct trimming *trimming);
/* Returns whether there is nothing to trim now. */
bool trimming_is_idle(const struct trimming *trimming);
/* Asks retention_goal(), with LIST_BEGIN and PRESSED, how far. */
void trimming_plan(struct trimming *trimming, uint64_t list_begin, bool pressed);
/* Trims one slice, if there is one. A failure only delays, and is logged unless QUIET. */
void trimming_slice(struct trimming *trimming, bool quiet);

#endif
