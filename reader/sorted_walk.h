/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page in the order of an index: the index's values are sorted and visited from the page's beginning
 * on, each with its objects, until the page can't be improved. Objects that the index can't tell of are
 * offered as well: those without a value and, when the state is an earlier one, those changed since.
 */
#ifndef READER_SORTED_WALK_H
#define READER_SORTED_WALK_H

#include "reader/candidates.h"
#include "reader/sorted.h"

/* Offers those objects of CANDIDATES' feed, number FEED of the list, that the page can need; CANDIDATES
 * is not open. Returns: 0; NOT_FOUND: no index has that order, or the plan's own candidates cost less. */
int sorted_walk(struct sorted *sorted, const struct candidates *candidates, size_t feed);

#endif
