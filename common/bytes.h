/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A borrowed run of bytes, and the integers of stored layouts. A function returning `struct bytes`
 * documents their lifetime. Stored integers are little-endian; integers in keys are big-endian and
 * sort as bytes (store/FORMAT.md). Loads and stores work at any alignment.
 */
#ifndef COMMON_BYTES_H
#define COMMON_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Returns the number of items of an array. */
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

struct bytes {
	const void *data;
	size_t size;
};

#define BYTES(pointer, length) ((struct bytes){(pointer), (length)})
#define BYTES_NONE             ((struct bytes){NULL, 0})
#define BYTES_LIT(literal)     ((struct bytes){(literal), sizeof(literal) - 1})
/* For printf("%.*s") of printable text, without quotes. */
#define BYTES_ARG(b) (int)(b).size, (const char *)((b).data ? (b).data : "")

static inline struct bytes bytes_str(const char *s)
{
	return BYTES(s, s ? strlen(s) : 0);
}

static inline bool bytes_equal(struct bytes a, struct bytes b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static inline bool bytes_starts(struct bytes b, struct bytes prefix)
{
	return b.size >= prefix.size && (!prefix.size || !memcmp(b.data, prefix.data, prefix.size));
}

static inline uint16_t le16_get(const void *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint32_t le32_get(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline uint64_t le64_get(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline void le16_put(void *p, uint16_t v)
{
	memcpy(p, &v, sizeof(v));
}

static inline void le32_put(void *p, uint32_t v)
{
	memcpy(p, &v, sizeof(v));
}

static inline void le64_put(void *p, uint64_t v)
{
	memcpy(p, &v, sizeof(v));
}

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "stored integers are little-endian"
#endif

static inline uint32_t be32_get(const void *p)
{
	return __builtin_bswap32(le32_get(p));
}

static inline uint64_t be64_get(const void *p)
{
	return __builtin_bswap64(le64_get(p));
}

static inline void be32_put(void *p, uint32_t v)
{
	le32_put(p, __builtin_bswap32(v));
}

static inline void be64_put(void *p, uint64_t v)
{
	le64_put(p, __builtin_bswap64(v));
}

/* Compares bytewise as LMDB and etcd do: a prefix comes first. The first 8 bytes decide for most
 * keys. */
static inline int bytes_compare(struct bytes a, struct bytes b)
{
	if (a.size >= 8 && b.size >= 8) {
		uint64_t x = be64_get(a.data), y = be64_get(b.data);

		if (x != y)
			return x < y ? -1 : 1;
	}
	size_t n = a.size < b.size ? a.size : b.size;
	int r = n ? memcmp(a.data, b.data, n) : 0;

	return r ? r : (a.size > b.size) - (a.size < b.size);
}

#endif
