/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reserves blocks (fallocate) for pages before they are written, so that a full disk is -ENOSPC
 * before a step instead of a failed transaction. The file keeps its length: env_fault.c makes it
 * longer as far as it is written.
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

/* Returns the most that a commit writes. LMDB's list of free pages has 8 bytes for a page, twice
 * at most: for those that were freed and those that are left. */
static uint64_t mapping_commit_bytes(const struct mapping *map)
{
	return map->open_bytes + map->blocks.length / (map->page_size / 16);
}

/* A transaction with a room of its own (txn_allocate()) has counted the commit in. */
int mapping_allocate_commit(struct mapping *map, const struct txn *txn)
{
	uint64_t end = map->blocks.length, bytes = mapping_commit_bytes(map);

	if (!map->writemap || txn->room)
		return 0;
	end = bytes < map->map_bytes - end ? end + bytes : map->map_bytes;
	return datafile_keep(&map->blocks, mapping_fd(map), end, end, map->path);
}

int mapping_count_pages(
	const struct mapping *map, MDB_txn *txn, bool with_overflow, uint64_t *ret_pages)
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
	if (map->writemap) {
		txn->kept = bytes;
		return txn_allocate(txn, bytes);
	}
	/* Keeps blocks beyond the last page, unless free pages before it are enough. */
	if (mapping_end_with(map, 0) > used + 2 * bytes)
		return 0;
	return datafile_keep(&map->blocks, mapping_fd(map), mapping_end_with(map, bytes),
		mapping_end_with(map, 2 * bytes), map->path); /* twice: not each time */
}

/* All that LMDB has written so far lies before the end of the file, which grows where it writes.
 * So blocks after that end for this step, for what is kept free and for the commit are enough,
 * however much all steps together could take. */
int txn_allocate(struct txn *txn, uint64_t bytes)
{
	struct mapping *map = txn->map;

	txn_require_write(txn);
	if (!map->writemap)
		return 0;
	uint64_t written = map->blocks.length + bytes + txn->kept + mapping_commit_bytes(map);
	uint64_t end = mapping_end_with(map, txn->room + bytes);
	if (written < end)
		end = written;
	uint64_t better = end + datafile_ahead(end);
	int r = datafile_keep(&map->blocks, mapping_fd(map), end,
		better < map->map_bytes ? better : map->map_bytes, map->path);
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
	uint64_t most = pages * map->page_size + map->open_bytes;
	return txn_allocate(txn, bytes < most ? bytes : most);
}
