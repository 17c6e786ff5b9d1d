/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes many entries into an environment that nobody reads yet, in transactions of bounded
 * size. A copy of a database that is made entry by entry has nothing that was deleted from it,
 * also not in the unused bytes of pages.
 *
 *	struct env_copy copy = {.to = env};
 *	r = env_copy_put(&copy, db, key, value, TXN_APPEND);	... many times
 *	r = env_copy_commit(&copy);
 *	(after errors: env_copy_abort(&copy))
 */
#ifndef STORE_ENV_ENV_COPY_H
#define STORE_ENV_ENV_COPY_H

#include "store/env/env.h"

struct env_copy {
	struct env *to;
	struct txn *txn;     /* the open transaction; NULL: none */
	uint64_t open_bytes; /* written in it */
	uint64_t bytes;      /* written in all */
};

/* Begins a transaction if none is open, with room for SIZE bytes, for writes on copy->txn. */
int env_copy_begin(struct env_copy *copy, uint64_t size);
int env_copy_put(
	struct env_copy *copy, unsigned db, struct bytes key, struct bytes value, unsigned flags);
/* Gives SIZE bytes for the caller to write the value into, before the next call on COPY. */
int env_copy_reserve(struct env_copy *copy, unsigned db, struct bytes key, size_t size,
	unsigned flags, void **ret_place);
/* Removes KEY. Returns: FOUND, NOT_FOUND. */
int env_copy_del(struct env_copy *copy, unsigned db, struct bytes key);
int env_copy_commit(struct env_copy *copy);
void env_copy_abort(struct env_copy *copy);

/* Copies database DB as FROM sees it, and reports to PROGRESS how many bytes COPY has written; a
 * negative result of that ends it. */
typedef int env_copy_fn(void *arg, uint64_t bytes);
int env_copy_database(
	struct env_copy *copy, unsigned db, struct txn *from, env_copy_fn *progress, void *arg);

#endif
