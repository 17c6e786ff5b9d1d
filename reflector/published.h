/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the journal holds what was published of it. It does unless an older copy was put in
 * its place, whose next events get the numbers of others then: a follower that has handled those
 * would miss them.
 */
#ifndef REFLECTOR_PUBLISHED_H
#define REFLECTOR_PUBLISHED_H

#include "store/journal/journal.h"

/* At the start of the reflector, before it writes the ring. If the ring that an earlier
 * reflector left, or the index, has events which the journal lacks, begins another journal in
 * *JOURNAL. Without a ring, as after a stop in order, makes the cursors lapse that are after the
 * journal's end, and begins a run, by which followers that live on know. */
int published_check(
	struct home *home, struct journal **journal, const struct journal_options *options);

#endif
