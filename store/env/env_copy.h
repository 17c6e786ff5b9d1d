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

/* ---- when a copy is due --------------------------------------------------- */

/*
 * Says when the file of an environment is so much longer than what it holds that a copy should
 * take its place (journal_copy.h, index_compact()). LMDB reuses pages but gives none back: after
 * many deletions, and after a reader that was stopped with a snapshot in its hand has kept each
 * page for a while, the file stays as long as it was.
 *
 * The most that was in use within the last minute counts, so that what rises and falls with each
 * trim causes no copy. A copy begins a minute after the last one, or later if they take long:
 * they cost a twentieth of the time at most. If the file is by far too long, as when a reader
 * keeps each page of a database that changes a lot, five seconds are enough: with former.h this
 * bounds what readers can make the disk hold to the growth of about a minute. A daemon that
 * starts knows nothing of the time before, and what is in use then counts.
 */

/* Zeros are the state at the start. */
struct surplus {
	uint64_t most[2];   /* bytes in use: the most in the half minute before, and in this one */
	uint64_t turned_ns; /* when this half minute began */
	uint64_t next_ns;   /* no copy before, */
	uint64_t hasty_ns;  /* and before this one if the file is by far too long */
};

/* Returns whether a copy may begin at NOW_NS, whatever for. */
bool surplus_is_allowed(const struct surplus *surplus, uint64_t now_ns);
/* To be called every few seconds, at NOW_NS. Returns whether it is time for a copy. */
bool surplus_is_due(struct surplus *surplus, const struct env_info *info, uint64_t now_ns);
/* A copy that was begun at BEGAN_NS, for whatever reason, has ended with RESULT. */
void surplus_end(struct surplus *surplus, int result, uint64_t began_ns, uint64_t now_ns);

#endif
