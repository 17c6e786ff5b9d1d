/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/record/object.h"

#include <stdio.h>
#include <string.h>

#include "common/err.h"
#include "common/text/decimal.h"
#include "reflector/net/scan.h"

#define OBJECT_AGE_MAX_S UINT64_C(1000000000) /* some 30 years */

static int object_take_text(struct object_identity *identity, const char *what, struct bytes value,
	struct bytes *ret_text)
{
	char *room = identity->room + identity->used;

	if (scan_string(value, room, sizeof(identity->room) - identity->used, ret_text) != FOUND)
		return err_say(ERR_PROTOCOL, "the object's %s is no text, or too long", what);
	if (ret_text->data == room)
		identity->used += ret_text->size;
	return 0;
}

/* Stops when all four are there: managedFields, the larger half of many objects, usually come
 * last. */
static int object_read_metadata(struct bytes metadata, bool cut, struct object_identity *identity)
{
	struct {
		const char *key;
		struct bytes *text;
	} fields[] = {{"name", &identity->name}, {"namespace", &identity->name_space},
		{"uid", &identity->uid}, {"resourceVersion", &identity->rv}};
	struct bytes key, value;
	size_t at = 0, found = 0;
	int r;

	while (found < 4 && (r = scan_member(metadata, cut, &at, &key, &value)) != END) {
		if (r < 0)
			return err_add(r, "metadata");
		for (size_t i = 0; i < 4; i++) {
			if (!bytes_equal(key, bytes_str(fields[i].key)))
				continue;
			r = object_take_text(identity, fields[i].key, value, fields[i].text);
			if (r < 0)
				return r;
			found++;
		}
	}
	return 0;
}

int object_identity(struct bytes object, bool cut, struct object_identity *identity)
{
	struct bytes key, value;
	size_t at = 0;
	int r;

	identity->kind = identity->name_space = identity->name = identity->uid = identity->rv =
		BYTES_NONE;
	identity->used = 0;
	/* CRD lists have kind before metadata, typed objects too: nothing after metadata is read.
	 * Nor is its end searched, after the managedFields. */
	while ((r = scan_key(object, cut, &at, &key)) == FOUND) {
		if (bytes_equal(key, BYTES_LIT("metadata"))) {
			r = object_read_metadata(
				BYTES((const char *)object.data + at, object.size - at), cut,
				identity);
			break;
		}
		r = scan_value(object, cut, &at, &value);
		if (r == FOUND && bytes_equal(key, BYTES_LIT("kind")))
			r = object_take_text(identity, "kind", value, &identity->kind);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

static bool object_annotation(
	struct bytes object, const char *key, char room[OBJECT_STALE_MAX], struct bytes *ret_text)
{
	struct bytes metadata, annotations, value;

	return scan_find(object, "metadata", &metadata) == FOUND &&
	       scan_find(metadata, "annotations", &annotations) == FOUND &&
	       scan_find(annotations, key, &value) == FOUND &&
	       scan_string(value, room, OBJECT_STALE_MAX, ret_text) == FOUND;
}

bool object_is_stale(struct bytes bookmark, uint64_t *ret_age_s, char ret_why[OBJECT_STALE_MAX])
{
	char room[OBJECT_STALE_MAX];
	struct bytes text;

	*ret_age_s = 0;
	if (!object_annotation(bookmark, "kinformer/stale", room, &text))
		return false;
	const char *p = text.data, *blank = memchr(p, ' ', text.size);
	struct bytes digits = BYTES(p, blank ? (size_t)(blank - p) : text.size);
	int r = decimal_parse(digits, OBJECT_AGE_MAX_S, ret_age_s);
	err_ignore(r, "the relay does not know how old it is");
	(void)snprintf(ret_why, OBJECT_STALE_MAX, "%.*s",
		blank ? (int)(text.size - digits.size - 1) : 0, blank ? blank + 1 : "");
	return true;
}

bool object_ends_initial(struct bytes bookmark)
{
	char room[OBJECT_STALE_MAX];
	struct bytes text;

	return object_annotation(bookmark, "k8s.io/initial-events-end", room, &text) &&
	       bytes_equal(text, BYTES_LIT("true"));
}
