/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the newest state's trees for foreign pages. A replaced page stays in the file, as it was,
 * until it is used again. One changed byte in a page's number leads LMDB down to such a page, with
 * rows of an older state that look right. But then the page is in the list of free pages, or two
 * trees have it. So the numbers of all pages, but those of large values, are compared with the list
 * and with each other, and counted. A reader reads the branches for it, and the first leaf below
 * each: about a hundredth of a tree in all.
 *
 * A writer reads all leaves when it opens its file, and finds keys out of order, or out of their
 * branches' bounds: it would miss their rows, and no error of a single row makes it build another
 * file. It then locks a byte of the pin page, so the readers beside it need not check anything. A
 * process with read access only can't take this lock; if its read lock keeps the writer out, the
 * readers check for themselves.
 */
#include "store/env/env_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "store/env/env_page.h"

#define META_PAGES 2

struct tree {
	const struct mapping *map;
	uint64_t pages;            /* of the state */
	uint64_t in_file;          /* of them */
	uint8_t *seen;             /* a bit for each: free, or in use */
	bool is_whole;             /* all leaves are read */
	bool is_list;              /* the list of free pages is walked: its keys are numbers */
	uint64_t branches, leaves; /* of the present database */
};

static int tree_damaged(const struct tree *tree, uint64_t page, const char *how)
{
	return err_say(ERR_CORRUPT, "'%s/data.mdb' is damaged: page %" PRIu64 " %s",
		tree->map->path, page, how);
}

static int tree_mark(struct tree *tree, uint64_t page, const char *how)
{
	if (page < META_PAGES || page >= tree->pages)
		return tree_damaged(tree, page, "does not belong to the newest state");
	if (tree->seen[page / 8] & 1u << page % 8)
		return tree_damaged(tree, page, how);
	tree->seen[page / 8] |= (uint8_t)(1u << page % 8);
	return 0;
}

static uint64_t tree_page_of(const struct tree *tree, const void *bytes)
{
	return (uint64_t)((uintptr_t)bytes - (uintptr_t)tree->map->address) / tree->map->page_size;
}

/* Reads the beginning of PAGE into BYTES: an untouched page in the map costs five times as much. */
static int tree_read(
	const struct tree *tree, uint64_t page, unsigned kind, uint8_t *bytes, size_t size)
{
	ssize_t n = pread(mapping_fd(tree->map), bytes, size, (off_t)(page * tree->map->page_size));

	if (n < 0)
		return err_set(-errno, "reading '%s/data.mdb'", tree->map->path);
	if (n < (ssize_t)size)
		return tree_damaged(tree, page, "is not in the file");
	return le64_get(bytes) == page && page_kind(bytes) == kind
		       ? 0
		       : tree_damaged(tree, page, "is not of the kind that was expected there");
}

/* Returns the row at AT of the offsets of PAGE, already read; END: of its offsets. NULL: the row is
 * not after them in the page. */
static const uint8_t *tree_row(const struct tree *tree, const uint8_t *page, size_t at, size_t end)
{
	const uint8_t *row = page_row(page, tree->map->page_size, at);

	return row && row >= page + end ? row : NULL;
}

/* ---- the databases ------------------------------------------------------ */

/* A part of a tree: its keys are not below LOW and, unless HIGH is empty, below HIGH. */
struct part {
	uint64_t page;
	unsigned depth; /* in levels */
	bool is_first;  /* below its branch */
	struct bytes low, high;
	uint8_t *room; /* for a page for each level */
};

bool mapping_leaf_is_whole(const uint8_t *page, size_t size)
{
	size_t lower = le16_get(page + PAGE_LOWER), upper = le16_get(page + PAGE_UPPER), filled = 0;
	uint64_t squares =
		0; /* an offset leading to another row of the same size changes this sum */

	if (page_kind(page) != PAGE_IS_LEAF || lower < PAGE_HEADER || lower > upper ||
		upper > size || lower % 2)
		return false;
	for (size_t at = PAGE_HEADER; at < lower; at += 2) {
		size_t node = le16_get(page + at);

		if (node < upper || node + NODE_HEADER > size)
			return false;
		uint64_t header = le64_get(
			page + node); /* the size of the value, flags, the size of the key */
		uint64_t value = header >> 8 * NODE_FLAGS & NODE_IS_LARGE
					 ? 8
					 : (uint32_t)header; /* 8: the number of its first page */
		uint64_t bytes = NODE_HEADER + (header >> 8 * NODE_KEY_SIZE) + value;
		if (bytes > size - node)
			return false;
		bytes = (bytes + 1) & ~(uint64_t)1;
		filled += bytes;
		squares += bytes * (2 * node + bytes); /* (node + bytes)^2 - node^2 */
	}
	return filled == size - upper && squares == (uint64_t)size * size - (uint64_t)upper * upper;
}

/* Marks the pages of the large value of the row at NODE of a whole leaf, if it has one. */
static int tree_mark_large(struct tree *tree, const uint8_t *node)
{
	uint64_t size = node_value_size(node);
	size_t key = node_key(node).size;
	int r = 0;

	if (!(le16_get(node + NODE_FLAGS) & NODE_IS_LARGE))
		return 0;
	uint64_t first = le64_get(node + NODE_HEADER + key);
	for (uint64_t i = 0; i <= (PAGE_HEADER + size - 1) / tree->map->page_size && r == 0; i++)
		r = tree_mark(
			tree, first + i, "is of a large value, and also free or in use elsewhere");
	return r;
}

/* Marks the pages named by a row of the list of free pages, in LEAF. */
static int tree_mark_listed(struct tree *tree, uint64_t leaf, const uint8_t *node)
{
	uint64_t size = node_value_size(node), page_size = tree->map->page_size;
	const uint8_t *value = node + NODE_HEADER + node_key(node).size;

	if (le16_get(node + NODE_FLAGS) & NODE_IS_LARGE) {
		uint64_t first = le64_get(value);
		if (first + (PAGE_HEADER + size - 1) / page_size >= tree->in_file)
			return tree_damaged(tree, first, "is not in the file");
		value = tree->map->address + first * page_size + PAGE_HEADER;
	}
	uint64_t n = size >= 8 ? le64_get(value) : UINT64_MAX;
	int r = n > size / 8 - 1 ? tree_damaged(tree, leaf,
					   "has a row of the list of free pages that can't be")
				 : 0;
	for (uint64_t i = 1; i <= n && r == 0; i++)
		r = tree_mark(tree, le64_get(value + 8 * i),
			"is free, and also free or in use elsewhere");
	return r;
}

/* Checks the keys of a leaf: in order and within its bounds. Marks the pages of its rows. */
static int tree_read_leaf(struct tree *tree, const struct part *leaf)
{
	size_t size = tree->map->page_size;
	struct bytes before = BYTES_NONE;
	int r = tree_read(tree, leaf->page, PAGE_IS_LEAF, leaf->room, size);

	if (r == 0 && !mapping_leaf_is_whole(leaf->room, size))
		r = tree_damaged(tree, leaf->page, "is not filled by its rows");
	size_t end = le16_get(leaf->room + PAGE_LOWER);
	for (size_t at = PAGE_HEADER; at < end && r == 0; at += 2) {
		const uint8_t *node = leaf->room + le16_get(leaf->room + at);
		struct bytes key = node_key(node);
		if (!tree->is_list &&
			((at == PAGE_HEADER ? bytes_compare(leaf->low, key) > 0
					    : bytes_compare(before, key) >= 0) ||
				(leaf->high.size && bytes_compare(key, leaf->high) >= 0)))
			return tree_damaged(
				tree, leaf->page, "has a key that does not belong there");
		before = key;
		r = tree_mark_large(tree, node);
		if (r == 0 && tree->is_list)
			r = tree_mark_listed(tree, leaf->page, node);
	}
	return r;
}

static int tree_walk(struct tree *tree, const struct part *part);

/* Lets the kernel begin to read all leaves below a branch: one after the other they take a disk
 * several times as long. */
static void tree_read_ahead(const struct tree *tree, const uint8_t *branch, size_t end)
{
	size_t size = tree->map->page_size;

	for (size_t at = PAGE_HEADER; at + 2 <= end && at + 2 <= size; at += 2) {
		size_t node = le16_get(branch + at);

		if (node + NODE_HEADER <= size) /* only saves time, whatever it returns */
			(void)posix_fadvise(mapping_fd(tree->map),
				(off_t)(node_page(branch + node) * size), (off_t)size,
				POSIX_FADV_WILLNEED);
	}
}

/* Walks the tree below a branch, already read. */
static int tree_walk_branch(struct tree *tree, const struct part *part)
{
	size_t size = tree->map->page_size, end = le16_get(part->room + PAGE_LOWER);
	struct part below = {.depth = part->depth - 1, .low = part->low, .room = part->room + size};
	int r = 0;

	if (tree->is_whole && below.depth == 1)
		tree_read_ahead(tree, part->room, end);
	for (size_t at = PAGE_HEADER; at + 2 <= end && r == 0; at += 2) {
		bool is_last = at + 4 > end;
		const uint8_t *row = tree_row(tree, part->room, at, end),
			      *next = is_last ? row : tree_row(tree, part->room, at + 2, end);

		if (!row || !next)
			return tree_damaged(tree, part->page, "has a row outside of it");
		below.page = node_page(row);
		below.is_first = at == PAGE_HEADER;
		below.high = is_last ? part->high : node_key(next);
		if (!tree->is_list && below.high.size && bytes_compare(below.low, below.high) >= 0)
			return tree_damaged(tree, part->page, "has keys that are not in order");
		r = tree_walk(tree, &below);
		below.low = below.high;
	}
	return r;
}

/* Marks the pages of a part. */
static int tree_walk(struct tree *tree, const struct part *part)
{
	bool is_leaf = part->depth == 1;
	int r = tree_mark(tree, part->page, "is in use, and also free or in use elsewhere");

	if (r == 0 && part->page >= tree->in_file)
		r = tree_damaged(tree, part->page, "is not in the file");
	if (r < 0)
		return r;
	*(is_leaf ? &tree->leaves : &tree->branches) += 1;
	if (is_leaf && (tree->is_whole || tree->is_list))
		return tree_read_leaf(tree, part);
	if (is_leaf)
		return part->is_first
			       ? tree_read(tree, part->page, PAGE_IS_LEAF, part->room, PAGE_HEADER)
			       : 0;
	r = tree_read(tree, part->page, PAGE_IS_BRANCH, part->room, tree->map->page_size);
	return r < 0 ? r : tree_walk_branch(tree, part);
}

/* Marks the pages of the tree with this root, of any depth but 0. */
static int tree_walk_all(struct tree *tree, uint64_t root, unsigned depth)
{
	AUTO_FREE uint8_t *room = calloc(depth, tree->map->page_size);

	return room ? tree_walk(tree,
			      &(struct part){
				      .page = root, .depth = depth, .is_first = true, .room = room})
		    : err_set(-ENOMEM, "checking '%s'", tree->map->path);
}

/* Marks the list of free pages, and the pages in it. If TXN's state is no longer the newest one, a
 * writer runs, and checked the file at its opening. */
static int tree_mark_free(struct tree *tree, MDB_txn *txn)
{
	struct free_list list;

	if (!mapping_free_list(tree->map, mdb_txn_id(txn), &list) || !list.depth)
		return 0;
	if (list.depth > TREE_DEPTH_MOST)
		return tree_damaged(
			tree, mdb_txn_id(txn) & 1, "has a list of free pages that can't be");
	tree->is_list = true;
	int r = tree_walk_all(tree, list.root, list.depth);
	tree->is_list = false;
	return r;
}

/* Marks the pages of the database with the row VALUE in the table of databases. */
static int tree_check_database(struct tree *tree, const MDB_val *value)
{
	const uint8_t *row = value->mv_data;
	uint64_t table = tree_page_of(tree, row);

	if (value->mv_size != DATABASE_BYTES)
		return tree_damaged(tree, table, "has a row of a database that is too short");
	unsigned depth = le16_get(row + DATABASE_DEPTH);
	uint64_t root = le64_get(row + DATABASE_ROOT);
	if (le16_get(row + DATABASE_FLAGS) != 0 || depth > TREE_DEPTH_MOST ||
		!depth != (root == UINT64_MAX))
		return tree_damaged(tree, table, "has a row of a database that can't be");
	tree->branches = tree->leaves = 0;
	int r = depth ? tree_walk_all(tree, root, depth) : 0; /* 0: it is empty */
	if (r == 0 && (tree->branches != le64_get(row + DATABASE_BRANCHES) ||
			      tree->leaves != le64_get(row + DATABASE_LEAVES)))
		r = tree_damaged(tree, table, "counts other pages of a database than there are");
	return r;
}

static int tree_check_databases(struct tree *tree, MDB_txn *txn)
{
	bool has_table = false;
	int r = 0;

	for (size_t i = 0; i < tree->map->n_databases && r == 0; i++) {
		MDB_val value;
		int rc = guarded_get(tree->map, txn, tree->map->database_names[i], &value);

		if (rc)
			return mapping_failed(tree->map, rc, "reading");
		if (!has_table) /* all of it is one page, as the markers require */
			r = tree_mark(tree, tree_page_of(tree, value.mv_data),
				"is the table of databases, and also free");
		has_table = true;
		if (r == 0)
			r = tree_check_database(tree, &value);
	}
	return r;
}

/* ---- whether to --------------------------------------------------------- */

/* Returns whether a writer with a checked file has it open. */
static bool tree_is_checked(const struct mapping *map)
{
	struct flock lock = {.l_type = F_RDLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)PIN_MARK_CHECKED,
		.l_len = 1};
	char path[4096];

	if (map->mode != ENV_READ)
		return false;
	(void)snprintf(path, sizeof(path), "%s/" PIN_PAGE_FILE, map->path);
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_WRLCK;
}

static int tree_say_checked(const struct mapping *map)
{
	struct flock lock = {.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)PIN_MARK_CHECKED,
		.l_len = 1};

	if (map->mode != ENV_WRITE)
		return 0;
	if (fcntl(map->own_page_fd, F_OFD_SETLK, &lock) < 0 && errno != EAGAIN && errno != EACCES)
		return err_set(-errno, "locking '%s/" PIN_PAGE_FILE "'", map->path);
	return 0; /* another program has the lock: readers check for themselves */
}

int mapping_check_trees(struct mapping *map, MDB_txn *txn, bool must)
{
	MDB_envinfo info;
	uint64_t bytes, counted;

	if (!must && tree_is_checked(map))
		return 0;
	int r = mapping_file_size(map, &bytes);
	if (r < 0)
		return r;
	(void)mdb_env_info(
		map->mdb, &info); /* perhaps of a later state, with all pages of this one */
	uint64_t pages = info.me_last_pgno + 1, mapped = map->map_bytes / map->page_size;
	struct tree tree = {
		.map = map,
		.pages = pages < mapped ? pages : mapped,
		.in_file = bytes / map->page_size,
		.is_whole = must || map->mode == ENV_WRITE,
	};
	AUTO_FREE uint8_t *seen = tree.seen = calloc(1, tree.pages / 8 + 1);
	if (!seen)
		return err_set(-ENOMEM, "checking '%s'", map->path);
	r = tree_mark_free(&tree, txn);
	if (r == 0)
		r = tree_check_databases(&tree, txn);
	if (r == 0 && tree.is_whole)
		r = mapping_count_pages(map, txn, true, &counted);
	/* The writer would take the map for full, for ever. */
	if (r == 0 && tree.is_whole && counted > tree.pages)
		r = tree_damaged(&tree, mdb_txn_id(txn) & 1,
			"or the table of databases counts more pages than there are");
	return r < 0 ? r : tree_say_checked(map);
}
