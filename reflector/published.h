/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that the journal holds all published events. It does not if an older copy was put in its
 * place. That copy's next events would get the numbers of others: a follower after those would miss
 * them.
 */
#ifndef REFLECTOR_PUBLISHED_H
#define REFLECTOR_PUBLISHED_H

#include "store/journal/journal.h"

/* At the start of the reflector, before it writes the ring. If the ring that an earlier
 * reflector left, or the index, has events which the journal lacks, begins another journal in
 * *JOURNAL. Else makes the cursors lapse that are after the journal's end. A stop in order leaves
 * the ring while readers live on. */
int published_check(
	struct home *home, struct journal **journal, const struct journal_options *options);

#endif
