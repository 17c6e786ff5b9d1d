/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reserves blocks for pages before they are touched. With WRITEMAP a page without a block on a full disk is a SIGBUS, so the
 * writer reserves (fallocate) the most that its next step can take, and gets -ENOSPC instead.
 */
#include "store/env/env_internal.h"

#include "common/check.h"
#include "common/err.h"

/* Returns where BYTES beyond the last page end. */
static uint64_t mapping_end_with(const struct mapping *map, uint64_t bytes)
{
	uint64_t end = mapping_state_end(map) + bytes;

	return end < map->map_bytes ? end : map->map_bytes;
}

int mapping_allocate(struct mapping *map, uint64_t bytes)
{
	return datafile_extend(&map->blocks, mapping_fd(map), mapping_end_with(map, bytes), map->map_bytes, map->path);
}

int mapping_count_pages(struct mapping *map, MDB_txn *txn, bool with_overflow, uint64_t *ret_pages)
{
	uint64_t pages = 2; /* meta pages */
	MDB_stat stat;

	/* 0 is LMDB's list of free pages, 1 its table of databases. */
	for (MDB_dbi i = 0; i < map->n_databases + 2; i++) {
		int rc = mdb_stat(txn, i < 2 ? i : map->databases[i - 2], &stat);
		if (rc)
			return mapping_failed(map, rc, "reading");
		pages += stat.ms_branch_pages + stat.ms_leaf_pages;
		pages += with_overflow ? stat.ms_overflow_pages : 0;
	}
	*ret_pages = pages;
	return 0;
}

int txn_keep_free(struct txn *txn, uint64_t bytes)
{
	struct mapping *map = txn->map;
	uint64_t pages;

	txn_require_write(txn);
	if (bytes > map->map_bytes / 8)
		bytes = map->map_bytes / 8;
	int r = mapping_count_pages(map, txn->mdb, true, &pages);
	if (r < 0)
		return r;
	uint64_t used = pages * map->page_size;
	if (used + bytes > map->map_bytes)
		return mapping_failed(map, MDB_MAP_FULL, "writing");
	if (map->writemap)
		return txn_allocate(txn, bytes);
	/* Keeps blocks beyond the last page, unless free pages before it are enough. */
	if (mapping_end_with(map, 0) > used + 2 * bytes)
		return 0;
	return datafile_keep(&map->blocks, mapping_fd(map), mapping_end_with(map, bytes), mapping_end_with(map, 2 * bytes),
		map->path); /* twice: not each time */
}

int txn_allocate(struct txn *txn, uint64_t bytes)
{
	txn_require_write(txn);
	if (!txn->map->writemap)
		return 0;
	int r = mapping_allocate(txn->map, txn->room + bytes);
	if (r == 0)
		txn->room += bytes;
	return r;
}

int txn_allocate_copies(struct txn *txn, uint64_t bytes)
{
	struct mapping *map = txn->map;
	uint64_t pages;

	txn_require_write(txn);
	int r = mapping_count_pages(map, txn->mdb, false, &pages);
	if (r < 0)
		return r;
	uint64_t most = pages * map->page_size + ENV_OPEN_BYTES;
	return txn_allocate(txn, bytes < most ? bytes : most);
}

int env_allocate(struct env *env, uint64_t copied, uint64_t added)
{
	struct env_info info;

	CHECK_OBJ(env, ENV_MAGIC);
	REQUIRE(env->mode == ENV_WRITE);
	if (mapping_end_with(env->map, copied + added) <= env->map->blocks.end)
		return 0;
	int r = env_info(env, &info);
	if (r < 0)
		return r;
	/* Each page once, and LMDB's list of those that this frees. */
	uint64_t most = info.used_bytes + info.used_bytes / 256 + ENV_OPEN_BYTES;
	return mapping_allocate(env->map, (copied < most ? copied : most) + added);
}
