/* SPDX-License-Identifier: Apache-2.0 */
/* The number of rows of a database, by a walk. */
#ifndef UNIT_ROWS_H
#define UNIT_ROWS_H

#include "common/cleanup.h"
#include "common/err.h"
#include "store/env/env.h"

/* Returns 0, or the error that ended the walk. */
static inline int count_rows(struct txn *txn, unsigned db, uint64_t *ret_rows)
{
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	struct bytes key, value;
	int r = cursor_open(txn, db, &cursor);

	*ret_rows = 0;
	while (r >= 0 && (r = cursor_next(cursor, &key, &value)) == FOUND)
		++*ret_rows;
	return r == END ? 0 : r;
}

#endif
