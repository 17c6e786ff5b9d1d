/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The growable array. An owner keeps three fields: the items, how many there are, and how many the
 * memory has room for (size_t). All zero is an empty array; free(items) ends it.
 *
 *	struct dump { uint32_t *feeds; size_t n_feeds, feeds_room; };
 *
 *	r = ARRAY_ADD(dump->feeds, dump->n_feeds, dump->feeds_room, id, "the list of feeds");
 *	if (r < 0)
 *		return r;    // "growing the list of feeds: Cannot allocate memory"
 *
 * Growing may move the items: pointers into the array end with the next call.
 *
 * An item of an array sorted by a number:
 *
 *	struct row *row = ARRAY_FIND(dump->rows, dump->n_rows, .id, id);
 */
#ifndef COMMON_ARRAY_H
#define COMMON_ARRAY_H

#include <stddef.h>
#include <string.h>

/* Makes room for MORE items of SIZE bytes after the first N. ARRAY is the address of the pointer to
 * the items. The room at least doubles when it grows. Fails only with -ENOMEM and leaves the array
 * as it was. */
int array_grow(void *array, size_t n, size_t more, size_t *room, size_t size, const char *what);

/* Makes room for MORE items; the caller fills and counts them. */
#define ARRAY_ROOM(items, n, room, more, what) \
	array_grow(&(items), (n), (more), &(room), sizeof(*(items)), (what))

/* Appends ITEM. */
#define ARRAY_ADD(items, n, room, item, what) \
	({ \
		int array_r = (n) < (room) ? 0 : ARRAY_ROOM(items, n, room, 1, what); \
		if (array_r == 0) \
			(items)[(n)++] = (item); \
		array_r; \
	})

/* Puts ITEM before item I. */
#define ARRAY_INSERT(items, n, room, i, item, what) \
	({ \
		int array_r = ARRAY_ROOM(items, n, room, 1, what); \
		if (array_r == 0) { \
			memmove((items) + (i) + 1, (items) + (i), \
				((n)++ - (i)) * sizeof(*(items))); \
			(items)[i] = (item); \
		} \
		array_r; \
	})

/* Returns the index of the first item with a MEMBER (".id", "->id") of at least KEY; N if there is
 * none. */
#define ARRAY_PLACE(items, n, member, key) \
	({ \
		size_t array_low = 0, array_high = (n); \
		while (array_low < array_high) { \
			size_t array_middle = array_low + (array_high - array_low) / 2; \
			if ((items)[array_middle] member < (key)) \
				array_low = array_middle + 1; \
			else \
				array_high = array_middle; \
		} \
		array_low; \
	})

/* Returns the first item with a MEMBER equal to KEY; NULL: there is none. */
#define ARRAY_FIND(items, n, member, key) \
	({ \
		size_t array_i = ARRAY_PLACE(items, n, member, key); \
		array_i < (n) && (items)[array_i] member == (key) ? &(items)[array_i] : NULL; \
	})

/* Compare two items for qsort(3) and bsearch(3): uint64_t, texts, struct bytes. */
int array_by_number(const void *a, const void *b);
int array_by_text(const void *a, const void *b);
int array_by_bytes(const void *a, const void *b);

#endif
