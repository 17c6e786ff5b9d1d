/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/record/object.h"

#include "common/err.h"
#include "reflector/feed/scan.h"

/* Names, uids and RVs never need escapes; one that has some is nothing we know. */
static int object_take_text(const char *what, struct bytes value, struct bytes *ret_text)
{
	if (scan_plain_string(value, ret_text) == FOUND)
		return 0;
	return err_say(ERR_PROTOCOL, "the object's %s is no plain text", what);
}

/* Stops when all four are there: managedFields, the larger half of many objects, usually come
 * last. */
static int object_read_metadata(
	struct bytes metadata, bool cut, struct object_identity *identity)
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
			r = object_take_text(fields[i].key, value, fields[i].text);
			if (r < 0)
				return r;
			found++;
		}
	}
	return 0;
}

int object_identity(struct bytes object, bool cut, struct object_identity *ret_identity)
{
	struct object_identity identity = {0};
	struct bytes key, value;
	size_t at = 0;
	int r;

	/* CRD lists have kind before metadata, typed objects too: what follows metadata is not
	 * read. */
	while ((r = scan_member(object, cut, &at, &key, &value)) == FOUND) {
		if (bytes_equal(key, BYTES_LIT("kind"))) {
			r = object_take_text("kind", value, &identity.kind);
			if (r < 0)
				return r;
		} else if (bytes_equal(key, BYTES_LIT("metadata"))) {
			r = object_read_metadata(value, cut, &identity);
			break;
		}
	}
	if (r < 0)
		return r;
	*ret_identity = identity;
	return 0;
}

bool object_ends_initial(struct bytes bookmark)
{
	struct bytes metadata, annotations, value, text;

	return scan_find(bookmark, "metadata", &metadata) == FOUND &&
		scan_find(metadata, "annotations", &annotations) == FOUND &&
		scan_find(annotations, "k8s.io/initial-events-end", &value) == FOUND &&
		scan_plain_string(value, &text) == FOUND && bytes_equal(text, BYTES_LIT("true"));
}
