/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/import/bolt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/err.h"

#define HEADER 16 /* of a page: number, flags (2 bytes), rows (2), further pages (4) */
#define FLAGS  8
#define ROWS   10
#define MORE   12

#define IS_BRANCH 0x01
#define IS_LEAF   0x02

/* A meta page, after its header. */
#define META_MAGIC    UINT32_C(0xed0cdaed)
#define META_SIZE     64
#define META_VERSION  4
#define META_PAGE     8
#define META_ROOT     16
#define META_TXID     48
#define META_CHECKSUM 56

#define ROW         16 /* a branch's: offset, key size, page; a leaf's: flags, offset, two sizes */
#define IS_BUCKET   1
#define BUCKET_SIZE 16 /* its root page, a counter; root 0: its page follows */

#define PAGE_MIN  1024
#define PAGE_MAX  ((size_t)64 << 10)
#define DEPTH_MAX 32

struct bolt {
	const uint8_t *file;
	size_t size;
	size_t page_size;
	uint64_t pages;
	uint8_t *seen; /* a bit for each page */
	const char *bucket;
	bolt_row_fn *fn;
	void *arg;
};

/* A page with its further pages. */
struct bolt_run {
	const uint8_t *data;
	size_t size;
};

static int bolt_damaged(uint64_t page, const char *how)
{
	return err_say(ERR_CORRUPT, "it is a damaged bbolt file: page %" PRIu64 " %s", page, how);
}

/* ---- the newest state ---------------------------------------------------- */

static bool meta_is_good(const uint8_t *meta)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (size_t i = 0; i < META_CHECKSUM; i++)
		sum = (sum ^ meta[i]) * UINT64_C(0x100000001b3);
	size_t page = le32_get(meta + META_PAGE);
	return le32_get(meta) == META_MAGIC && le32_get(meta + META_VERSION) == 2 &&
	       page >= PAGE_MIN && page <= PAGE_MAX && !(page & (page - 1)) &&
	       sum == le64_get(meta + META_CHECKSUM);
}

bool bolt_is_known(const void *head, size_t size)
{
	return size >= HEADER + META_SIZE && le32_get((const uint8_t *)head + HEADER) == META_MAGIC;
}

/* Finds the newer one of the two meta pages, the second one after the first at any size. */
static int bolt_open(struct bolt *bolt, uint64_t *ret_root)
{
	uint64_t newest = 0;

	for (size_t at = 0; at <= PAGE_MAX; at = at ? at * 2 : PAGE_MIN) {
		const uint8_t *meta = bolt->file + at + HEADER;

		if (bolt->size < at + HEADER + META_SIZE || !meta_is_good(meta) ||
			(at && at != le32_get(meta + META_PAGE)) ||
			(bolt->page_size && le64_get(meta + META_TXID) < newest))
			continue;
		newest = le64_get(meta + META_TXID);
		bolt->page_size = le32_get(meta + META_PAGE);
		*ret_root = le64_get(meta + META_ROOT);
	}
	if (!bolt->page_size)
		return err_say(ERR_CORRUPT, "it is a bbolt file with both meta pages damaged");
	bolt->pages = bolt->size / bolt->page_size;
	bolt->seen = calloc(bolt->pages / 8 + 1, 1);
	return bolt->seen ? 0 : err_set(-ENOMEM, "reading a bbolt file");
}

/* ---- pages --------------------------------------------------------------- */

/* Returns the SIZE bytes AT of a page; no data: they are not in it. */
static struct bytes run_bytes(const struct bolt_run *run, uint64_t at, uint64_t size)
{
	return at > run->size || size > run->size - at ? BYTES_NONE
						       : BYTES(run->data + at, (size_t)size);
}

/* ---- trees --------------------------------------------------------------- */

static int bolt_tree(struct bolt *bolt, uint64_t page, unsigned depth);

static int bolt_rows(struct bolt *bolt, uint64_t page, const struct bolt_run *run, unsigned depth);

/* Goes into the bucket of a root's row. An inline one has its page in VALUE. */
static int bolt_enter(struct bolt *bolt, uint64_t page, struct bytes value)
{
	if (value.size < BUCKET_SIZE)
		return bolt_damaged(page, "has a bucket that can't be");
	uint64_t root = le64_get(value.data);
	const struct bolt_run run = {
		(const uint8_t *)value.data + BUCKET_SIZE, value.size - BUCKET_SIZE};
	bolt->bucket = NULL; /* it is found */
	if (root)
		return bolt_tree(bolt, root, 1);
	return run.size < HEADER ? bolt_damaged(page, "has a bucket that can't be")
				 : bolt_rows(bolt, page, &run, 1);
}

static int bolt_leaf_row(struct bolt *bolt, uint64_t page, const struct bolt_run *run, size_t at)
{
	const uint8_t *row = run->data + at;
	uint64_t offset = at + (uint64_t)le32_get(row + 4), size = le32_get(row + 8);
	struct bytes key = run_bytes(run, offset, size);
	struct bytes value = run_bytes(run, offset + size, le32_get(row + 12));
	bool is_bucket = le32_get(row) & IS_BUCKET;

	if (!key.data || !value.data)
		return bolt_damaged(page, "has a row outside of it");
	if (!bolt->bucket)
		return is_bucket ? bolt_damaged(page, "has a bucket where rows are to be")
				 : bolt->fn(bolt->arg, key, value);
	return is_bucket && bytes_equal(key, bytes_str(bolt->bucket))
		       ? bolt_enter(bolt, page, value)
		       : 0;
}

static int bolt_rows(struct bolt *bolt, uint64_t page, const struct bolt_run *run, unsigned depth)
{
	unsigned flags = le16_get(run->data + FLAGS), n = le16_get(run->data + ROWS);
	bool of_root = bolt->bucket;
	int r = 0;

	if (flags != IS_BRANCH && flags != IS_LEAF)
		return bolt_damaged(page, "is neither a branch nor a leaf");
	if (n > (run->size - HEADER) / ROW)
		return bolt_damaged(page, "has more rows than can be");
	for (size_t at = HEADER; n-- > 0 && r == 0; at += ROW) {
		if (of_root && !bolt->bucket)
			break; /* the bucket is over */
		r = flags == IS_LEAF ? bolt_leaf_row(bolt, page, run, at)
				     : bolt_tree(bolt, le64_get(run->data + at + 8), depth + 1);
	}
	return r;
}

static int bolt_tree(struct bolt *bolt, uint64_t page, unsigned depth)
{
	if (depth > DEPTH_MAX)
		return bolt_damaged(page, "is deeper than can be");
	if (page < 2 || page >= bolt->pages)
		return bolt_damaged(page, "is not in the file, which may be cut");
	if (bolt->seen[page / 8] & 1u << page % 8)
		return bolt_damaged(page, "is in it twice");
	bolt->seen[page / 8] |= (uint8_t)(1u << page % 8);
	const uint8_t *data = bolt->file + page * bolt->page_size;
	uint64_t more = le32_get(data + MORE);
	if (le64_get(data) != page)
		return bolt_damaged(page, "has another number");
	if (more >= bolt->pages - page)
		return bolt_damaged(page, "is larger than can be");
	const struct bolt_run run = {data, (size_t)(more + 1) * bolt->page_size};
	return bolt_rows(bolt, page, &run, depth);
}

int bolt_walk(int fd, const char *bucket, bolt_row_fn *fn, void *arg)
{
	struct bolt bolt = {.bucket = bucket, .fn = fn, .arg = arg};
	struct stat st;
	uint64_t root = 0;

	if (fstat(fd, &st) < 0)
		return err_set(-errno, "looking at it");
	void *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (file == MAP_FAILED)
		return err_set(-errno, "reading a bbolt file");
	bolt.file = file;
	bolt.size = (size_t)st.st_size;
	int r = bolt_open(&bolt, &root);
	if (r == 0)
		r = bolt_tree(&bolt, root, 1);
	free(bolt.seen);
	(void)munmap(file, bolt.size);
	return r == 0 && bolt.bucket
		       ? err_say(ERR_PROTOCOL, "it is a bbolt file without the bucket '%s'", bucket)
		       : r;
}
