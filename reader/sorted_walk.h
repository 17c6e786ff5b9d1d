/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills a sorted page with the help of an index of the sort field: sorts the index's values and
 * offers their objects, from the page's beginning on, until no later value can belong on the page.
 * Objects missing from the index are offered as well: those without a value and, on a page of an
 * earlier state, those changed since.
 */
#ifndef READER_SORTED_WALK_H
#define READER_SORTED_WALK_H

#include "reader/candidates.h"
#include "reader/sorted.h"

/* Offers the objects of CANDIDATES' feed, number FEED of the list, possible on the page; CANDIDATES
 * is not open. Returns: 0; NOT_FOUND: no index has this order, or the plan's own candidates cost
 * less. */
int sorted_walk(struct sorted *sorted, const struct candidates *candidates, size_t feed);

#endif
