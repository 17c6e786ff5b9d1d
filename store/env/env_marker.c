/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commit markers: a check of the meta pages. LMDB takes the state with the higher number of its two
 * meta pages and believes each byte of them: one changed byte makes the older state the newest one,
 * and it reads well. So each commit writes its number into the table of databases too, as its
 * commit marker, and a meta page must lead to a marker with its own number.
 *
 * These differences are sound:
 *
 *   - A writer was killed inside of commit T + 1, while it overwrote the meta page of T - 1 field
 *     by field. While its number is T - 1, the state T is the newest, and the other page may lead
 *     to any table. A marker of T + 1 there may also come from a damaged newest number; with the
 *     number T - 1, and unless the pin page has T + 1 published, it counts as a killed commit.
 *   - LMDB itself restores the number, and not the root, after a disk error at a meta page.
 *
 * Some compilers store the number before the root of the table. A kill between these two stores
 * counts as damage.
 *
 * The pin page may be missing (a copy), or of any age (after a power cut), but it never has a
 * commit before it was made.
 */
#include "store/env/env_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "store/env/env_page.h"

/* A meta page. */
#define META_BYTES      152u
#define META_MAP        32u  /* its size */
#define META_FREE       44u  /* flags of the list of free pages */
#define META_FREE_DEPTH 46u  /* likewise */
#define META_FREE_ROOT  80u  /* likewise */
#define META_FLAGS      92u  /* of the table of databases */
#define META_DEPTH      94u  /* likewise */
#define META_ROOT       128u /* likewise */
#define META_LAST       136u /* the last page of the state */
#define META_TXN        144u

#define ADDRESSES (UINT64_C(1) << 47) /* of a process, on the supported machines */
#define MARKER    "seal"
#define TRIES_MAX 1000 /* while a writer commits */
#define BAD_MAX   20   /* of them with damage: a writer was in the middle of a commit at first */

struct meta {
	uint64_t txn, root, marker, map_bytes, last_page;
	uint32_t page_size;
	uint16_t depth;
	bool has_marker;
	bool is_beyond; /* its table lies beyond the end of the file */
};

struct markers {
	struct meta metas[2];
	bool has_page;
	uint64_t committed; /* of the pin page */
};

int mapping_mark_commit(const struct mapping *map, MDB_txn *txn)
{
	uint8_t number[8];
	MDB_val key = {sizeof(MARKER) - 1, (void *)(uintptr_t)MARKER},
		value = {sizeof(number), number};

	le64_put(number, mdb_txn_id(txn));
	return mdb_put(txn, map->main_db, &key, &value, 0);
}

/* ---- reading ------------------------------------------------------------ */

static int markers_pread(
	const struct mapping *map, int fd, void *to, size_t size, uint64_t at, bool *ret_beyond)
{
	ssize_t n = pread(fd, to, size, (off_t)at);

	if (n < 0)
		return err_set(-errno, "reading '%s/data.mdb'", map->path);
	*ret_beyond = n < (ssize_t)size;
	return 0;
}

/* Reads both meta pages. Returns: 0; NOT_FOUND: the file is too short, as LMDB reports;
 * ERR_CORRUPT: opening it would be unsafe: LMDB divides by the size of pages, maps a state beyond
 * the map, and compares keys by the flags. */
static int markers_read_metas(const struct mapping *map, int fd, struct meta metas[2])
{
	uint8_t page[META_BYTES];
	bool is_short, is_good = true;

	for (unsigned i = 0; i < 2 && is_good; i++) {
		int r = markers_pread(
			map, fd, page, sizeof(page), i ? metas[0].page_size : 0, &is_short);
		if (r < 0 || is_short)
			return r < 0 ? r : NOT_FOUND;
		struct meta meta = {
			.txn = le64_get(page + META_TXN),
			.root = le64_get(page + META_ROOT),
			.map_bytes = le64_get(page + META_MAP),
			.last_page = le64_get(page + META_LAST),
			.page_size = le32_get(page + META_PAGE_SIZE),
			.depth = le16_get(page + META_DEPTH),
		};
		is_good = (i == 0 || meta.page_size == metas[0].page_size) &&
			  page_size_is_possible(meta.page_size) && meta.map_bytes < ADDRESSES &&
			  meta.last_page < meta.map_bytes / meta.page_size &&
			  le16_get(page + META_FREE) == MDB_INTEGERKEY &&
			  le16_get(page + META_FLAGS) == 0;
		metas[i] = meta;
	}
	return is_good ? 0
		       : err_say(ERR_CORRUPT,
				 "'%s/data.mdb' is damaged: its meta pages have sizes of pages, of "
				 "the map or of a state, or flags, that can't be",
				 map->path);
}

/* Finds the marker in the table of databases, a leaf of any bytes. A table of another shape has
 * none: LMDB would read outside of the file. */
static void meta_find_marker(struct meta *meta, const uint8_t *page, size_t size)
{
	size_t end = le16_get(page + PAGE_LOWER);

	if (le64_get(page) != meta->root || page_kind(page) != PAGE_IS_LEAF || end > size ||
		end % 2)
		return;
	for (size_t at = PAGE_HEADER; at < end; at += 2) {
		const uint8_t *row = page_row(page, size, at);
		struct bytes key = row ? node_key(row) : BYTES_NONE;
		const uint8_t *value = row ? row + NODE_HEADER + key.size : page;

		/* It lies after the list of rows, and is of a kind of the table's. */
		if (!row || row < page + end || le16_get(row + NODE_FLAGS) & ~NODE_IS_DATABASE ||
			node_value_size(row) > (size_t)(page + size - value)) {
			meta->has_marker = false;
			return;
		}
		if (!bytes_equal(key, BYTES_LIT(MARKER)) || node_value_size(row) != 8)
			continue;
		meta->has_marker = true;
		meta->marker = le64_get(value);
	}
}

static int markers_read_table(const struct mapping *map, int fd, struct meta *meta)
{
	uint32_t page_size = meta->page_size;

	if (meta->depth != 1 || meta->root >= ADDRESSES / page_size)
		return 0;
	AUTO_FREE uint8_t *page = malloc(page_size);
	if (!page)
		return err_set(-ENOMEM, "opening '%s'", map->path);
	int r = markers_pread(map, fd, page, page_size, meta->root * page_size, &meta->is_beyond);
	if (r == 0 && !meta->is_beyond)
		meta_find_marker(meta, page, page_size);
	return r;
}

static int markers_read_page(const struct mapping *map, int fd, struct markers *markers)
{
	AUTO_FD int directory = open(map->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct pin_page page;
	struct stat st;

	if (directory < 0 || fstat(fd, &st) < 0)
		return err_set(-errno, "opening '%s'", map->path);
	int r = pin_page_probe(directory, st.st_ino, &page);
	markers->has_page = r == FOUND;
	markers->committed = r == FOUND ? page.committed : 0;
	return r < 0 ? r : 0;
}

static bool markers_are_same(const struct markers *a, const struct markers *b)
{
	bool same = a->has_page == b->has_page && a->committed == b->committed;

	for (int i = 0; i < 2; i++)
		same &= a->metas[i].txn == b->metas[i].txn && a->metas[i].root == b->metas[i].root;
	return same;
}

/* Reads both meta pages with their markers, and the pin page, as they are at one instant. Returns:
 * 0; AGAIN: a writer commits meanwhile; NOT_FOUND: the file is too short. */
static int markers_read(const struct mapping *map, int fd, struct markers *markers)
{
	struct markers after = {.has_page = false};
	int r = markers_read_page(map, fd, markers);

	if (r == 0)
		r = markers_read_metas(map, fd, markers->metas);
	for (int one = 0; one < 2 && r == 0; one++)
		r = markers_read_table(map, fd, &markers->metas[one]);
	if (r == 0)
		r = markers_read_metas(map, fd, after.metas);
	if (r == 0)
		r = markers_read_page(map, fd, &after);
	return r != 0 ? r : markers_are_same(markers, &after) ? 0 : AGAIN;
}

bool mapping_free_list(const struct mapping *map, uint64_t txn, struct free_list *ret_list)
{
	const uint8_t *metas[] = {map->address, map->address + map->page_size};
	const uint8_t *own = metas[le64_get(metas[1] + META_TXN) == txn],
		      *other = metas[own == metas[0]];

	*ret_list = (struct free_list){
		.root = le64_get(own + META_FREE_ROOT), .depth = le16_get(own + META_FREE_DEPTH)};
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	/* A writer writes over the page only after the other one has got a higher number. */
	return le64_get(own + META_TXN) == txn && le64_get(other + META_TXN) < txn;
}

/* ---- judging ------------------------------------------------------------ */

static const struct meta *markers_newest(const struct markers *markers)
{
	return &markers->metas[markers->metas[1].txn > markers->metas[0].txn]; /* as LMDB chooses */
}

/* Returns whether each meta page is of the state that it leads to. */
static bool markers_are_sound(const struct markers *markers)
{
	const struct meta *newest = markers_newest(markers),
			  *other = &markers->metas[newest == markers->metas];
	uint64_t txn = newest->txn;

	if (txn == 0 || newest->is_beyond) /* nothing was written; a cut file is reported as one */
		return true;
	if (!newest->has_marker || newest->marker != txn)
		return false;
	bool was_newest = other->has_marker && other->marker == txn + 1;
	bool is_killed = other->txn == txn - 1 && !(markers->has_page && markers->committed > txn);
	return !was_newest || is_killed;
}

static int markers_say_damage(const struct mapping *map, const struct markers *markers)
{
	const struct meta *newest = markers_newest(markers),
			  *other = &markers->metas[newest == markers->metas];
	const struct meta *bad =
		newest->has_marker && newest->marker == newest->txn ? other : newest;

	if (!bad->has_marker)
		return err_say(ERR_CORRUPT,
			"'%s/data.mdb' is damaged: its newest state has the number %" PRIu64
			" and, unlike the one before, no commit marker",
			map->path, bad->txn);
	return err_say(ERR_CORRUPT,
		"'%s/data.mdb' is damaged: the state that was written as number %" PRIu64
		" has the number %" PRIu64,
		map->path, bad->marker, bad->txn);
}

/* ---- before LMDB opens the file ----------------------------------------- */

/* Opens data.mdb; -1: errno. */
static int markers_open(const struct mapping *map, int flags)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/data.mdb", map->path);
	return open(path, flags | O_CLOEXEC);
}

int mapping_check_metas(const struct mapping *map, bool with_markers)
{
	struct markers markers;
	bool is_sound = true;
	AUTO_FD int fd = markers_open(map, O_RDONLY);

	if (fd < 0)
		return errno == ENOENT ? 0 : err_set(-errno, "opening '%s/data.mdb'", map->path);
	int r = markers_read_metas(map, fd, markers.metas);
	if (r || !with_markers)
		return r < 0 ? r : 0;
	for (int i = 0, bad = 0; i < TRIES_MAX; i++) {
		markers = (struct markers){.has_page = false};
		r = markers_read(map, fd, &markers);
		is_sound = r != 0 || markers_are_sound(&markers);
		if (r != AGAIN && (is_sound || map->mode == ENV_WRITE || ++bad == BAD_MAX))
			break;
		(void)sched_yield(); /* has no error */
	}
	return r < 0 ? r : is_sound ? 0 : markers_say_damage(map, &markers);
}

int mapping_lower_size(const struct mapping *map, uint64_t bytes)
{
	AUTO_FD int fd = markers_open(map, O_RDWR);
	struct meta metas[2];
	uint8_t word[8];

	if (fd < 0)
		return errno == ENOENT ? 0 : err_set(-errno, "opening '%s/data.mdb'", map->path);
	int r = markers_read_metas(map, fd, metas);
	for (unsigned i = 0; i < 2 && r == 0; i++) {
		uint64_t page_size = metas[i].page_size,
			 least = (metas[i].last_page + 1) * page_size,
			 size = bytes > least ? bytes : least;
		le64_put(word, size);
		errno = EIO; /* of a short write */
		if (metas[i].map_bytes > size &&
			pwrite(fd, word, 8, (off_t)(i * page_size + META_MAP)) != 8)
			r = err_set(-errno, "lowering the map of '%s/data.mdb'", map->path);
	}
	return r < 0 ? r : 0;
}
