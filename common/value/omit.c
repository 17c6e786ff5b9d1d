/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/omit.h"

#include "common/err.h"

/* Appends MAP without the members KEYS[0], or with KEYS[1] without the members KEYS[1] of its maps
 * KEYS[0]. */
static int omit_from_map(
	const struct value *map, const struct bytes *keys, size_t n, struct buf *out)
{
	size_t opened = value_open_map(out);
	struct value_iter iter;
	struct bytes key, document;
	struct value item;
	uint32_t count = 0;
	int r;

	value_iter_init(&iter, map);
	while ((r = value_iter_next(&iter, &key, &item)) == FOUND) {
		bool is_meant = bytes_equal(key, keys[0]);

		if (is_meant && n == 1)
			continue;
		value_put_string(out, key);
		count++;
		if (is_meant && item.type == VALUE_MAP) {
			r = omit_from_map(&item, keys + 1, n - 1, out);
		} else {
			r = value_document(&item, &document);
			if (r == 0)
				buf_bytes_put(out, document);
		}
		if (r < 0)
			return r;
	}
	value_close(out, opened, count);
	return r < 0 ? r : buf_error(out);
}

int omit_member(struct bytes document, const char *outer, const char *key, struct buf *out)
{
	const struct bytes keys[] = {bytes_str(outer), bytes_str(key)};
	struct value root, map, item;
	int r = value_read(document, &root);

	if (r == 0)
		r = value_find(&root, keys[0], &map);
	if (r == FOUND)
		r = value_find(&map, keys[1], &item);
	return r == FOUND ? omit_from_map(&root, keys, 2, out) : r;
}
