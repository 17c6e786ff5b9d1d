/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LMDB's assertions while it reads. A page that is damaged in certain ways (one of zeros, for
 * instance, as a machine that crashed leaves it) is no error to LMDB, but a failed assertion,
 * after which it aborts the process. A read holds no lock of LMDB and changes nothing but its
 * cursor, so it can be left at that point.
 *
 * The compiler's own setjmp is used because it saves three words only: it is part of every read.
 */
#include "store/env/env_internal.h"

#include <setjmp.h>

#if defined(__x86_64__) || !defined(__clang__)
typedef void *guard_place[5];
#define GUARD_HERE(place)  __builtin_setjmp(place)
#define GUARD_LEAVE(place) __builtin_longjmp(place, 1)
#else /* clang has it on few machines */
typedef jmp_buf guard_place;
#define GUARD_HERE(place)  _setjmp(place)
#define GUARD_LEAVE(place) longjmp(place, 1)
#endif

static __thread guard_place *guard;

__attribute__((noinline)) void guard_leave(void)
{
	guard_place *place = guard;

	guard = NULL;
	if (place)
		GUARD_LEAVE(*place);
}

/* Returns the result of CALL from the function, or MDB_CORRUPTED if an assertion fails in it. */
#define GUARDED(call) \
	do { \
		guard_place place; \
		if (GUARD_HERE(place)) \
			return MDB_CORRUPTED; \
		guard = &place; \
		int rc = call; \
		guard = NULL; \
		return rc; \
	} while (0)

__attribute__((noinline)) int guarded_get(
	MDB_txn *txn, MDB_dbi db, MDB_val *key, MDB_val *ret_value)
{
	GUARDED(mdb_get(txn, db, key, ret_value));
}

__attribute__((noinline)) int guarded_cursor_get(
	MDB_cursor *cursor, MDB_val *key, MDB_val *ret_value, MDB_cursor_op op)
{
	GUARDED(mdb_cursor_get(cursor, key, ret_value, op));
}

__attribute__((noinline)) int guarded_open(MDB_txn *txn, const char *name, MDB_dbi *ret_db)
{
	GUARDED(mdb_dbi_open(txn, name, 0, ret_db));
}

__attribute__((noinline)) int guarded_cursor_open(MDB_txn *txn, MDB_dbi db, MDB_cursor **ret_cursor)
{
	GUARDED(mdb_cursor_open(txn, db, ret_cursor));
}

__attribute__((noinline)) int guarded_stat(MDB_txn *txn, MDB_dbi db, MDB_stat *ret_stat)
{
	GUARDED(mdb_stat(txn, db, ret_stat));
}
