/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names the index for a list that read far more objects than it gave. An index helps a field
 * selector that asks for one value (plan_may_use_index()), and a page in the order of a field.
 */
#ifndef READER_ADVICE_H
#define READER_ADVICE_H

#include "reader/query.h"
#include "store/read/snapshot.h"

#define ADVICE_SIZE 1024

/* A list of FEED has read READ objects and given GIVEN. Writes one sentence with the line that
 * is to be added to kinf.yaml, or "" if the list was cheap or no index would help. Returns: 0 or
 * an error. */
int advice_write(struct snapshot *snapshot, const struct snapshot_feed *feed,
	const struct query *query, uint64_t read, uint64_t given, char text[ADVICE_SIZE]);

#endif
