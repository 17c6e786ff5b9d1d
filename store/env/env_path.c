/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches in read transactions, safe against damaged pages. LMDB believes the flags of each page:
 * with one changed byte it takes a leaf for a branch, and the sizes of the leaf's values for page
 * numbers. Its search then ends among sound rows, but in another part of the tree, in another tree
 * or in an older state's page, and says nothing. The search here knows the number of a tree's
 * levels from the table of databases. It refuses a page above the last level unless it is a branch,
 * one in the last level unless it is a leaf, and a row beyond its page.
 *
 * A changed offset of a row leads LMDB's cursors out of the file.
 */
#include "store/env/env_internal.h"

#include <limits.h>

#include "common/check.h"
#include "common/err.h"
#include "store/env/env_page.h"

/* Reads the root of database DB, unless it is known. LMDB's code. */
static int path_find_root(struct txn *txn, unsigned db)
{
	if (txn->roots_known & 1u << db)
		return 0;
	MDB_val value;
	int rc = guarded_get(txn->map, txn->mdb, txn->map->database_names[db], &value);

	if (rc == MDB_NOTFOUND ||
		(rc == 0 && value.mv_size !=
				    DATABASE_BYTES)) /* it was there when the file was opened */
		rc = MDB_CORRUPTED;
	if (rc)
		return rc;
	const uint8_t *row = value.mv_data;
	txn->roots[db] = (struct tree_root){
		.page = le64_get(row + DATABASE_ROOT), .depth = le16_get(row + DATABASE_DEPTH)};
	txn->roots_known |= 1u << db;
	return 0;
}

/* Returns page NUMBER if it is of KIND; NULL: the number or the page is damaged. */
static const uint8_t *path_page(const struct txn *txn, uint64_t number, unsigned kind)
{
	if (number >= txn->pages)
		return NULL;
	const uint8_t *page = txn->map->address + number * txn->map->page_size;
	return le64_get(page) == number && page_kind(page) == kind ? page : NULL;
}

/* Returns row I of PAGE, of SIZE bytes and more than I rows; NULL: it is not in the page. */
static const uint8_t *path_row(const uint8_t *page, size_t size, size_t i, struct bytes *ret_key)
{
	const uint8_t *row = page_row(page, size, PAGE_HEADER + 2 * i);

	if (row)
		*ret_key = node_key(row);
	return row;
}

/* Finds the last row of PAGE, with N rows, not above KEY. The first one if all are above KEY: in a
 * branch it has no key, and counts as less than all. Returns false if a row is not in the page. */
static bool path_floor(const uint8_t *page, size_t size, size_t n, struct bytes key,
	struct bytes *ret_key, uint16_t *ret_row)
{
	size_t low = 0, high = n;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (!path_row(page, size, middle, ret_key))
			return false;
		if (bytes_compare(key, *ret_key) < 0)
			high = middle;
		else
			low = middle;
	}
	*ret_row = (uint16_t)low;
	return path_row(page, size, low, ret_key);
}

/* Finds the value of ROW, with key KEY, in the leaf PAGE. LMDB's code. */
static int path_value(const struct txn *txn, const uint8_t *page, const uint8_t *row,
	struct bytes key, struct bytes *ret_value)
{
	size_t page_size = txn->map->page_size;
	uint64_t size = node_value_size(row);
	const uint8_t *value = (const uint8_t *)key.data + key.size;
	bool is_large = le16_get(row + NODE_FLAGS) & NODE_IS_LARGE;
	size_t room = page_size - (size_t)(value - page);

	if ((is_large ? sizeof(uint64_t) : size) > room)
		return MDB_CORRUPTED;
	if (is_large) {
		uint64_t number = le64_get(value);
		const uint8_t *first = path_page(txn, number, PAGE_IS_LARGE);

		if (!first ||
			(PAGE_HEADER + size + page_size - 1) / page_size > txn->pages - number)
			return MDB_CORRUPTED;
		value = first + PAGE_HEADER;
	}
	*ret_value = BYTES(value, size);
	return 0;
}

void txn_begin_paths(struct txn *txn)
{
	const struct mapping *map = txn->map;
	uint64_t end =
		mapping_state_end(map); /* perhaps of a later state, with all pages of this one */

	txn->roots_known = 0;
	txn->found_db = UINT_MAX;
	memset(txn->whole, 0, sizeof(txn->whole));
	txn->pages = (end < map->map_bytes ? end : map->map_bytes) / map->page_size;
}

bool txn_leaf_is_whole(struct txn *txn, const uint8_t *leaf)
{
	const void **known = &txn->whole[(uintptr_t)leaf >> __builtin_ctzl(txn->map->page_size) &
					 (TXN_KNOWN - 1)];

	if (*known != leaf && mapping_leaf_is_whole(leaf, txn->map->page_size))
		*known = leaf;
	return *known == leaf;
}

/* ---- ways --------------------------------------------------------------- */

/* Enters page NUMBER on LEVEL of the way, 0: the root's. LMDB's code. */
static int way_enter(const struct txn *txn, struct tree_way *way, unsigned level, uint64_t number)
{
	const uint8_t *page =
		path_page(txn, number, level + 1 < way->depth ? PAGE_IS_BRANCH : PAGE_IS_LEAF);

	if (!page || le16_get(page + PAGE_LOWER) > txn->map->page_size)
		return MDB_CORRUPTED;
	way->steps[level].page = page;
	way->steps[level].n = (uint16_t)page_rows(page);
	return way->steps[level].n ? 0
				   /* only the root of an empty tree has no row, and is no page */
				   : MDB_CORRUPTED;
}

/* Goes on to the page below the row on LEVEL, of a branch. LMDB's code. */
static int way_go_down(const struct txn *txn, struct tree_way *way, unsigned level)
{
	const struct tree_step *step = &way->steps[level];
	struct bytes ignored;
	const uint8_t *row = path_row(step->page, txn->map->page_size, step->row, &ignored);

	return row ? way_enter(txn, way, level + 1, node_page(row)) : MDB_CORRUPTED;
}

/* Goes from the entered page on LEVEL to the first or LAST row below it. LMDB's code. */
static int way_finish(const struct txn *txn, struct tree_way *way, unsigned level, bool last)
{
	for (int rc = 0;; level++) {
		way->steps[level].row = last ? (uint16_t)(way->steps[level].n - 1) : 0;
		if (level + 1 == way->depth)
			return 0;
		rc = way_go_down(txn, way, level);
		if (rc)
			return rc;
	}
}

/* Goes to the row after the way's, or BACK. LMDB's code; MDB_NOTFOUND: there is none, the way is as
 * before. */
static int way_step(const struct txn *txn, struct tree_way *way, bool back)
{
	unsigned level = way->depth;

	do {
		if (level-- == 0)
			return MDB_NOTFOUND;
	} while (back ? way->steps[level].row == 0
		      : way->steps[level].row + 1 == way->steps[level].n);
	way->steps[level].row = (uint16_t)(way->steps[level].row + (back ? -1 : 1));
	if (level + 1 == way->depth)
		return 0;
	int rc = way_go_down(txn, way, level);
	return rc ? rc : way_finish(txn, way, level + 1, back);
}

/* Enters the root's page. LMDB's code; MDB_NOTFOUND: the tree is empty. */
static int way_begin(struct txn *txn, unsigned db, struct tree_way *way)
{
	int rc = path_find_root(txn, db);

	if (!rc && txn->roots[db].depth > TREE_DEPTH_MOST)
		rc = MDB_CORRUPTED;
	way->depth = rc ? 0 : txn->roots[db].depth;
	return rc ? rc : way->depth ? way_enter(txn, way, 0, txn->roots[db].page) : MDB_NOTFOUND;
}

/* Goes to the last row not above KEY in KEY's leaf, or to its first row. LMDB's code; MDB_NOTFOUND:
 * the tree is empty. */
static int way_search(
	struct txn *txn, unsigned db, struct tree_way *way, struct bytes key, struct bytes *ret_key)
{
	int rc = way_begin(txn, db, way);

	for (unsigned level = 0; !rc; level++) {
		struct tree_step *step = &way->steps[level];

		if (!path_floor(step->page, txn->map->page_size, step->n, key, ret_key, &step->row))
			return MDB_CORRUPTED;
		if (level + 1 == way->depth)
			break;
		rc = way_go_down(txn, way, level);
	}
	return rc;
}

static const struct tree_step *way_leaf(const struct tree_way *way)
{
	return &way->steps[way->depth - 1];
}

/* Gives the way's row, if RC is 0. */
static int way_give(struct txn *txn, struct tree_way *way, int rc, struct bytes *ret_key,
	struct bytes *ret_value)
{
	const struct tree_step *leaf = rc ? NULL : way_leaf(way);
	const uint8_t *row =
		rc ? NULL : path_row(leaf->page, txn->map->page_size, leaf->row, ret_key);

	if (!rc)
		rc = row ? path_value(txn, leaf->page, row, *ret_key, ret_value) : MDB_CORRUPTED;
	if (rc == MDB_NOTFOUND && !mapping_is_given_up(txn->map))
		return END;
	way->is_lost = rc != 0;
	return rc ? txn_failed(txn, rc, "reading") : FOUND;
}

int txn_way_seek(struct txn *txn, unsigned db, struct tree_way *way, const struct bytes *key,
	struct bytes *ret_key, struct bytes *ret_value)
{
	struct bytes found;
	int rc = key ? way_search(txn, db, way, *key, &found) : way_begin(txn, db, way);

	way->is_lost = false;
	if (!rc && !key)
		rc = way_finish(txn, way, 0, true);
	else if (!rc && bytes_compare(found, *key) < 0)
		rc = way_step(txn, way, false);
	return way_give(txn, way, rc, ret_key, ret_value);
}

int txn_way_step(struct txn *txn, struct tree_way *way, bool back, struct bytes *ret_key,
	struct bytes *ret_value)
{
	return way_give(txn, way, way->is_lost ? MDB_CORRUPTED : way_step(txn, way, back), ret_key,
		ret_value);
}

/* ---- lookups ------------------------------------------------------------ */

int txn_find(struct txn *txn, unsigned db, struct bytes key, bool exact, struct bytes *ret_key,
	struct bytes *ret_value)
{
	struct tree_way *way = &txn->found;
	int rc = way_search(txn, db, way, key, ret_key);
	int order = rc ? 0 : bytes_compare(*ret_key, key);

	if (order > 0 && !txn_leaf_is_whole(txn, way_leaf(way)->page))
		rc = MDB_CORRUPTED;
	else if (exact && order)
		rc = MDB_NOTFOUND;
	else if (order > 0)
		rc = way_step(txn, way, true);
	txn->found_db = rc ? UINT_MAX : db;
	int r = way_give(txn, way, rc, ret_key, ret_value);
	if (r == FOUND && order > 0 && bytes_compare(*ret_key, key) > 0) /* a branch leads astray */
		r = txn_failed(txn, MDB_CORRUPTED, "reading");
	return r;
}

int txn_after(struct txn *txn, unsigned db, struct bytes *ret_key, struct bytes *ret_value)
{
	struct tree_way *way = &txn->found;

	CHECK_OBJ(txn, TXN_MAGIC);
	if (txn->is_write || txn->found_db != db)
		return NOT_FOUND;
	if (!txn_leaf_is_whole(txn, way_leaf(way)->page))
		return txn_failed(txn, MDB_CORRUPTED, "reading");
	if (way_step(txn, way, false) || !txn_leaf_is_whole(txn, way_leaf(way)->page))
		return NOT_FOUND;
	return way_give(txn, way, 0, ret_key, ret_value);
}
