/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names the index for an expensive list: one with far more objects read than given. An index helps
 * a field selector for one value (plan_may_use_index()), and a page in the order of a field.
 */
#ifndef READER_ADVICE_H
#define READER_ADVICE_H

#include "reader/query.h"
#include "store/read/snapshot.h"

#define ADVICE_SIZE 1024

/* A list of FEED has read READ objects and given GIVEN. Writes one sentence with the line to add to
 * kinf.yaml, or "" if the list was cheap or no index would help. Returns: 0 or an error. */
int advice_write(struct snapshot *snapshot, const struct snapshot_feed *feed,
	const struct query *query, uint64_t read, uint64_t given, char text[ADVICE_SIZE]);

#endif
