/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the journal's log is trimmed, and by how much at a time: now and then as far as retention allows,
 * in slices between the turns of the loop; sooner, and in larger ones, while there is more history than
 * its size allows. With it goes what else holds space: slots of readers that were killed, and a journal
 * that nobody reads any more.
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
	uint64_t most_bytes;      /* of history; 0: any */
	bool running;             /* slices are left to do */
	bool old_left;            /* a journal that readers may still be on */
	uint64_t due_ns, soon_ns; /* monotonic: the next look, also without and only with too much history */
	struct trim_goal goal;
};

/* Another journal, and the retention that goes with it; both are borrowed. */
void trimming_begin(struct trimming *trimming, struct journal *journal, struct retention *retention);

bool trimming_has_too_much(const struct trimming *trimming);
bool trimming_is_due(const struct trimming *trimming);
/* Finds out how far. LIST_BEGIN, PRESSED: as for retention_goal. 0 or an error of the journal. */
int trimming_aim(struct trimming *trimming, uint64_t list_begin, bool pressed);
/* One slice, if there is one to do. What can't be trimmed now is trimmed later: a failure only delays, and
 * is logged unless QUIET. */
void trimming_slice(struct trimming *trimming, bool quiet);

#endif
