/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes many entries into an environment without readers, in transactions of bounded size. A copy
 * made entry by entry holds no deleted bytes, not even in unused parts of pages.
 *
 *	struct env_copy copy = {.to = env};
 *	r = env_copy_put(&copy, db, key, value, TXN_APPEND);	... many times
 *	r = env_copy_commit(&copy);
 *	(after errors: txn_abort(&copy.txn))
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

/* Begins a transaction with room for SIZE bytes, unless one is open, for writes on copy->txn. */
int env_copy_begin(struct env_copy *copy, uint64_t size);
int env_copy_put(
	struct env_copy *copy, unsigned db, struct bytes key, struct bytes value, unsigned flags);
/* Appends SIZE bytes; the caller writes the value there before the next call on COPY. */
int env_copy_reserve(
	struct env_copy *copy, unsigned db, struct bytes key, size_t size, void **ret_place);
/* Removes KEY. Returns: FOUND, NOT_FOUND. */
int env_copy_del(struct env_copy *copy, unsigned db, struct bytes key);
int env_copy_commit(struct env_copy *copy);

/* Copies database DB as of FROM. Reports the bytes of COPY to PROGRESS; its negative result ends
 * it. */
typedef int env_copy_fn(void *arg, uint64_t bytes);
int env_copy_database(
	struct env_copy *copy, unsigned db, struct txn *from, env_copy_fn *progress, void *arg);

/* ---- when a copy is due --------------------------------------------------- */

/*
 * LMDB reuses pages but never shortens the file. It stays too long after many deletions, and after
 * a frozen reader has pinned each page for a while. Then a copy takes its place (journal_copy.h,
 * index_compact()).
 *
 * The maximum in use within the last minute counts, so trims cause no copy. Copies begin a minute
 * apart, or later if they take long: at most a twentieth of the time. Five seconds are enough if
 * the file is by far too long: with replaced.h this bounds the space held by readers to the growth
 * of about a minute. A daemon counts the bytes in use at its start.
 */

/* Zeros are the state at the start. */
struct bloat {
	uint64_t most[2];   /* maximum of bytes in use: in the previous half minute, in this one */
	uint64_t turned_ns; /* start of this half minute */
	uint64_t next_ns;   /* no copy before */
	uint64_t hasty_ns;  /* the same for a file by far too long */
};

/* Returns true if a copy may begin at NOW_NS, for any reason. */
bool bloat_is_allowed(const struct bloat *bloat, uint64_t now_ns);
/* Returns true if a copy is due; called every few seconds. */
bool bloat_is_due(struct bloat *bloat, const struct env_info *info, uint64_t now_ns);
/* Enters the RESULT of a copy begun at BEGAN_NS, for any reason. */
void bloat_end(struct bloat *bloat, int result, uint64_t began_ns, uint64_t now_ns);

#endif
