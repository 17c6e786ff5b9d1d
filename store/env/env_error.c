/* SPDX-License-Identifier: Apache-2.0 */
/* LMDB's codes, and its assertions while it reads. */
#include "store/env/env_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <string.h>
#include <sys/resource.h>

#include "common/err.h"

/* ---- codes -------------------------------------------------------------- */

int mapping_failed(const struct mapping *map, int rc, const char *what)
{
	struct rlimit addresses;

	/* LMDB reports a short write as EIO. */
	if ((rc == EIO || rc == ENOSPC) && datafile_disk_is_full(map->path))
		return datafile_disk_full(map->path);
	if (rc == MDB_MAP_FULL)
		return err_say(ERR_MAP_FULL,
			"%s '%s': the database map (%" PRIu64
			" bytes) is full: raise mapSize in kinf.yaml",
			what, map->path, map->map_bytes);
	if (rc == MAPPING_REPLACED)
		return err_say(ERR_SNAPSHOT_EXPIRED,
			"%s '%s': a copy has taken its place, and the old file is not kept any "
			"more, or its daemons made its map larger or its pin page again: take "
			"another snapshot",
			what, map->path);
	if (rc == MDB_PANIC) /* the disk refused a meta page: LMDB has put the old one back */
		return err_say(ERR_MOVED,
			"%s '%s': the disk was full or failing at the end of a commit, so the file "
			"must be opened again: the daemon does it when it is started again",
			what, map->path);
	if (rc == MDB_READERS_FULL) /* LMDB's table, with the writer's own transactions only */
		return err_say(ERR_READERS_FULL, "%s '%s': this process holds too many snapshots",
			what, map->path);
	if (rc == ENOMEM && getrlimit(RLIMIT_AS, &addresses) == 0 &&
		addresses.rlim_cur != RLIM_INFINITY)
		return err_say(-ENOMEM,
			"%s '%s': its map takes as many addresses as mapSize in kinf.yaml, and "
			"this process may have only %llu MiB (ulimit -v, RLIMIT_AS): raise that "
			"limit, or lower mapSize and restart 'kinf run'",
			what, map->path, (unsigned long long)addresses.rlim_cur >> 20);
	int code = -rc; /* an errno; LMDB's own codes are negative */
	if (rc < 0)
		code = ERR_CORRUPT;
	if (rc == MDB_VERSION_MISMATCH)
		code = ERR_FORMAT;
	if (rc == MDB_BAD_VALSIZE || rc == MDB_TXN_FULL || rc == MDB_DBS_FULL)
		code = ERR_TOO_LARGE;
	return err_say(code, "%s '%s': %s (%s)", what, map->path, err_name(code), mdb_strerror(rc));
}

int mapping_forked(const struct mapping *map)
{
	return err_set(ERR_FORKED, "'%s'", map->path);
}

/* ---- assertions --------------------------------------------------------- */

/*
 * Survives LMDB's assertions while it reads the table of databases. For some damage, such as a page
 * of zeros after a crash, LMDB reports no error but aborts the process by a failed assertion. A
 * read holds no lock of LMDB, so it can be left there.
 */

static __thread jmp_buf *guard;

void guard_leave(void)
{
	jmp_buf *place = guard;

	guard = NULL;
	if (place)
		longjmp(*place, 1);
}

/* Returns the result of CALL from the function, or MDB_CORRUPTED if an assertion fails in it. */
#define GUARDED(call) \
	do { \
		jmp_buf place; \
		if (_setjmp(place)) \
			return MDB_CORRUPTED; \
		guard = &place; \
		int rc = call; \
		guard = NULL; \
		return rc; \
	} while (0)

__attribute__((noinline)) int guarded_get(
	const struct mapping *map, MDB_txn *txn, const char *name, MDB_val *ret_value)
{
	MDB_val key = {strlen(name), (void *)(uintptr_t)name};

	GUARDED(mdb_get(txn, map->main_db, &key, ret_value));
}

__attribute__((noinline)) int guarded_open(MDB_txn *txn, const char *name, MDB_dbi *ret_db)
{
	GUARDED(mdb_dbi_open(txn, name, 0, ret_db));
}
