/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the trees of the newest state are made of its own pages. A page that was replaced stays in the file, as it was,
 * until it is used again. With one changed byte in a page's number, LMDB goes down to such a page, and reads rows of an older
 * state that look right. But then the page is in the list of free pages, or two trees have it. So the numbers of all pages
 * but those of large values are compared with that list and with each other. Only pages that hold numbers of pages are read: some
 * hundred for 100,000 objects.
 *
 * A writer checks its file when it opens it, and then holds a lock on a byte of the pin page, so that the readers beside it
 * need not. A process that may only read the page can't take that lock.
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

/* LMDB's format 1, with words of 8 bytes. */
#define FREE_DB          0 /* LMDB's number of the list of free pages */
#define META_PAGES       2
#define PAGE_HEADER      16u
#define PAGE_FLAGS       10u
#define PAGE_LOWER       12u
#define PAGE_IS_BRANCH   0x01u
#define NODE_HEADER      8u
#define DATABASE_BYTES   48u
#define DATABASE_DEPTH   6u
#define DATABASE_ROOT    40u
#define DEPTH_MOST       32

struct tree {
	const struct mapping *map;
	uint64_t pages;   /* of the state */
	uint64_t in_file; /* of them */
	uint8_t *seen;    /* a bit for each: free, or in use */
};

static int tree_damaged(const struct tree *tree, uint64_t page, const char *how)
{
	return err_say(ERR_CORRUPT, "'%s/data.mdb' is damaged: page %" PRIu64 " %s", tree->map->path, page, how);
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

static int tree_mark_free(struct tree *tree, MDB_txn *txn)
{
	MDB_cursor *cursor;
	MDB_val key, value;
	int r = 0, rc = guarded_cursor_open(txn, FREE_DB, &cursor);

	if (rc)
		return mapping_failed(tree->map, rc, "reading");
	while (r == 0 && !(rc = guarded_cursor_get(cursor, &key, &value, MDB_NEXT))) {
		const uint8_t *pages = value.mv_data;
		uint64_t n = value.mv_size >= 8 ? le64_get(pages) : UINT64_MAX;

		if (n > value.mv_size / 8 - 1)
			r = tree_damaged(tree, 0, "is not known: the list of free pages can't be read");
		for (uint64_t i = 1; i <= n && r == 0; i++)
			r = tree_mark(tree, le64_get(pages + 8 * i), "is free twice");
	}
	mdb_cursor_close(cursor);
	return r < 0 || rc == MDB_NOTFOUND ? r : mapping_failed(tree->map, rc, "reading");
}

/* Marks the pages of the tree below PAGE, which has DEPTH levels. */
static int tree_walk(struct tree *tree, uint64_t page, unsigned depth)
{
	size_t size = tree->map->page_size;
	int r = tree_mark(tree, page, "is in use, and also free or in use elsewhere");

	if (r == 0 && page >= tree->in_file)
		r = tree_damaged(tree, page, "is not in the file");
	if (r < 0 || depth == 1)
		return r;
	const uint8_t *branch = tree->map->address + page * size;
	size_t end = le16_get(branch + PAGE_LOWER);
	if (le64_get(branch) != page || !(le16_get(branch + PAGE_FLAGS) & PAGE_IS_BRANCH) || end > size)
		return tree_damaged(tree, page, "is not of the kind that was expected there");
	for (size_t at = PAGE_HEADER; at + 2 <= end && r == 0; at += 2) {
		size_t node = le16_get(branch + at);

		r = node < end || node + NODE_HEADER > size
			? tree_damaged(tree, page, "has a row outside of it")
			: tree_walk(tree, le32_get(branch + node) | (uint64_t)le16_get(branch + node + 4) << 32, depth - 1);
	}
	return r;
}

static int tree_check_database(struct tree *tree, MDB_txn *txn, const char *name)
{
	MDB_val key = {strlen(name), (void *)(uintptr_t)name}, value;
	int rc = guarded_get(txn, tree->map->main_db, &key, &value);

	if (rc)
		return mapping_failed(tree->map, rc, "reading");
	if (value.mv_size != DATABASE_BYTES)
		return tree_damaged(tree, 0, "is not known: a row of the table of databases is too short");
	const uint8_t *database = value.mv_data;
	unsigned depth = le16_get(database + DATABASE_DEPTH);
	uint64_t root = le64_get(database + DATABASE_ROOT);
	if (!depth && root == UINT64_MAX)
		return 0; /* it is empty */
	if (!depth || depth > DEPTH_MOST)
		return tree_damaged(tree, root, "can't have as many pages above it");
	return tree_walk(tree, root, depth);
}

/* Returns whether a writer that has checked the file has it open. */
static bool tree_is_checked(const struct mapping *map)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t)PIN_MARK_CHECKED, .l_len = 1};
	char path[4096];

	if (map->mode != ENV_READ)
		return false;
	(void)snprintf(path, sizeof(path), "%s/" PIN_PAGE_FILE, map->path);
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_WRLCK;
}

static int tree_say_checked(const struct mapping *map)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)PIN_MARK_CHECKED, .l_len = 1};

	if (map->mode != ENV_WRITE)
		return 0;
	if (fcntl(map->page_file.fd, F_OFD_SETLK, &lock) < 0 && errno != EAGAIN && errno != EACCES)
		return err_set(-errno, "locking '%s/" PIN_PAGE_FILE "'", map->path);
	return 0; /* another program has the lock: readers check for themselves */
}

int mapping_check_trees(struct mapping *map, MDB_txn *txn, bool must)
{
	MDB_envinfo info;
	uint64_t bytes;

	if (!map->address || (!must && tree_is_checked(map))) /* no address: nothing is stored yet */
		return 0;
	int r = mapping_file_size(map, &bytes);
	if (r < 0)
		return r;
	(void)mdb_env_info(map->mdb, &info); /* perhaps of a later state, which has all pages of this one */
	struct tree tree = {.map = map, .pages = info.me_last_pgno + 1, .in_file = bytes / map->page_size};
	AUTO_FREE uint8_t *seen = tree.seen = calloc(1, tree.pages / 8 + 1);
	if (!seen)
		return err_set(-ENOMEM, "checking '%s'", map->path);
	r = tree_mark_free(&tree, txn);
	for (size_t i = 0; i < map->n_databases && r == 0; i++)
		r = tree_check_database(&tree, txn, map->database_names[i]);
	return r < 0 ? r : tree_say_checked(map);
}
