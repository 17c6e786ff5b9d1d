/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of pages in LMDB's format 1, with words of 8 bytes, as used by the env group. */
#ifndef STORE_ENV_ENV_PAGE_H
#define STORE_ENV_ENV_PAGE_H

#include "common/bytes.h"

/* A page begins with its number (u64). The offsets of its rows follow the header. */
#define PAGE_HEADER    16u
#define PAGE_FLAGS     10u
#define PAGE_LOWER     12u /* the end of the offsets */
#define PAGE_UPPER     14u /* where the rows begin */
#define PAGE_IS_BRANCH 0x01u
#define PAGE_IS_LEAF   0x02u
#define PAGE_IS_LARGE  0x04u /* the first page of a large value */
#define PAGE_KINDS     0x6fu /* of the flags: a leaf, a branch, ... */

/* A row: its header, the key, in a leaf the value. */
#define NODE_HEADER      8u
#define NODE_FLAGS       4u
#define NODE_IS_LARGE    0x01u
#define NODE_IS_DATABASE 0x02u
#define NODE_KEY_SIZE    6u

/* The value of a row of the table of databases. */
#define DATABASE_BYTES    48u
#define DATABASE_FLAGS    4u
#define DATABASE_DEPTH    6u
#define DATABASE_BRANCHES 8u /* how many pages */
#define DATABASE_LEAVES   16u
#define DATABASE_ROOT     40u

/* A meta page, and its possible values. */
#define META_PAGE_SIZE 40u /* where it has the size of the pages */
#define PAGE_LEAST     512u
#define PAGE_MOST      32768u

static inline bool page_size_is_possible(uint32_t size)
{
	return size >= PAGE_LEAST && size <= PAGE_MOST && (size & (size - 1)) == 0;
}

static inline unsigned page_kind(const uint8_t *page)
{
	return le16_get(page + PAGE_FLAGS) & PAGE_KINDS;
}

/* Returns PAGE's own number of rows, or 0. */
static inline size_t page_rows(const uint8_t *page)
{
	size_t end = le16_get(page + PAGE_LOWER);

	return end < PAGE_HEADER ? 0 : (end - PAGE_HEADER) / 2;
}

static inline struct bytes node_key(const uint8_t *node)
{
	return BYTES(node + NODE_HEADER, le16_get(node + NODE_KEY_SIZE));
}

/* Returns the row with its offset AT bytes into PAGE, of SIZE bytes; NULL: the offset, the row's
 * header or its key is not in the page. */
static inline const uint8_t *page_row(const uint8_t *page, size_t size, size_t at)
{
	size_t node = at + 2 <= size ? le16_get(page + at) : size;

	return node + NODE_HEADER <= size && node + NODE_HEADER + node_key(page + node).size <= size
		       ? page + node
		       : NULL;
}

/* Returns the size of the value of NODE, a row of a leaf; also of a large one, stored elsewhere. */
static inline size_t node_value_size(const uint8_t *node)
{
	return le32_get(node);
}

/* Returns the page number in NODE, a row of a branch. */
static inline uint64_t node_page(const uint8_t *node)
{
	return le32_get(node) | (uint64_t)le16_get(node + 4) << 32;
}

#endif
