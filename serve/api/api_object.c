/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api/api_object.h"

#include "common/err.h"
#include "common/value/json.h"
#include "common/value/value.h"

static void object_put_key(struct bytes key, bool *is_first, struct buf *out)
{
	if (!*is_first)
		buf_byte(out, ',');
	*is_first = false;
	json_write_string(key, out);
	buf_byte(out, ':');
}

/* Writes metadata with RV, if it is not empty, in place of its resourceVersion. */
static int object_put_stamped(const struct value *metadata, struct bytes rv, struct buf *out)
{
	struct value_iter iter;
	struct value item;
	struct bytes key, document;
	bool is_first = true;
	int r;

	buf_byte(out, '{');
	value_iter_init(&iter, metadata);
	while ((r = value_iter_next(&iter, &key, &item)) == FOUND) {
		object_put_key(key, &is_first, out);
		if (rv.size && bytes_equal(key, BYTES_LIT("resourceVersion")))
			json_write_string(rv, out);
		else if ((r = value_document(&item, &document)) < 0 ||
			 (r = json_write(document, 0, out)) < 0)
			return r;
	}
	buf_byte(out, '}');
	return r < 0 ? r : 0;
}

static int object_write(struct bytes body, bool omit_type, struct bytes rv, struct buf *out)
{
	struct value root, item;
	struct bytes key;
	bool is_first = true;
	int r = value_read(body, &root);

	if (r < 0)
		return r;
	const uint8_t *p = root.inner.data, *end = p + root.inner.size;

	buf_byte(out, '{');
	for (uint32_t left = root.type == VALUE_MAP ? root.count : 0; r == 0 && left; left--) {
		r = value_read_key(&p, end, &key);
		if (r < 0)
			return r;
		bool omit = omit_type && (bytes_equal(key, BYTES_LIT("kind")) ||
						 bytes_equal(key, BYTES_LIT("apiVersion")));
		bool stamp = rv.size && bytes_equal(key, BYTES_LIT("metadata"));

		if (stamp) {
			r = value_read(BYTES(p, (size_t)(end - p)), &item);
			stamp = r == 0 && item.type == VALUE_MAP;
		}
		if (!omit)
			object_put_key(key, &is_first, out);
		if (stamp)
			r = object_put_stamped(&item, rv, out);
		if (r == 0)
			r = omit || stamp ? value_pass(&p, end, 1)
					  : json_write_item(&p, end, 0, 0, out);
	}
	buf_byte(out, '}');
	return r < 0 ? r : buf_error(out);
}

int api_object_write(struct bytes body, bool omit_type, struct bytes rv, struct buf *out)
{
	size_t before = out->size;

	if (!omit_type && !rv.size)
		return json_write(body, 0, out);
	int r = object_write(body, omit_type, rv, out);
	if (r < 0 && out->size > before)
		buf_truncate(out, before);
	return r;
}

int api_object_write_metadata(
	struct bytes body, const char *version, struct bytes rv, struct buf *out)
{
	size_t before = out->size;
	struct value root, metadata;
	int r = value_read(body, &root);

	if (r == 0)
		r = value_find(&root, BYTES_LIT("metadata"), &metadata);
	if (r < 0)
		return r;
	buf_printf(out,
		"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/%s\","
		"\"metadata\":",
		version);
	if (r != FOUND)
		metadata = (struct value){.type = VALUE_NIL};
	r = object_put_stamped(&metadata, rv, out);
	buf_byte(out, '}');
	r = r < 0 ? r : buf_error(out);
	if (r < 0 && out->size > before)
		buf_truncate(out, before);
	return r < 0 ? r : 0;
}
