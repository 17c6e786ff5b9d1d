/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Audit events of level RequestResponse: the object of each successful write becomes a version,
 * with the time of the write and its user in the annotation kinformer/audit-user.
 */
#include "reflector/import/import_internal.h"

#include <stdio.h>
#include <string.h>

#include "common/err.h"
#include "common/text/timestamp.h"

#define AUDIT_USER "kinformer/audit-user"

struct audit_event {
	struct value response;
	struct bytes verb, user, group, resource, name_space, name;
};

static void audit_text(const struct value *map, const char *key, struct bytes *ret_text)
{
	struct value item;

	*ret_text = BYTES_NONE;
	if (value_find(map, bytes_str(key), &item) == FOUND && item.type == VALUE_STRING)
		*ret_text = item.text;
}

/* Reads a successful write. Returns false for all other events. */
static bool audit_read(struct import *import, struct bytes body, struct audit_event *event)
{
	struct value root, item, code;
	struct bytes stage, time, part = BYTES_NONE;
	int64_t ns;

	*event = (struct audit_event){.verb = BYTES_NONE};
	if (value_read(body, &root) < 0 ||
		value_find(&root, BYTES_LIT("responseObject"), &event->response) != FOUND ||
		event->response.type != VALUE_MAP ||
		value_find(&root, BYTES_LIT("responseStatus"), &item) != FOUND ||
		value_find(&item, BYTES_LIT("code"), &code) != FOUND || code.type != VALUE_UINT ||
		code.u.u < 200 || code.u.u > 299)
		return false;
	audit_text(&root, "stage", &stage);
	audit_text(&root, "verb", &event->verb);
	audit_text(&root, "stageTimestamp", &time);
	if (value_find(&root, BYTES_LIT("user"), &item) == FOUND)
		audit_text(&item, "username", &event->user);
	if (value_find(&root, BYTES_LIT("objectRef"), &item) == FOUND) {
		audit_text(&item, "apiGroup", &event->group);
		audit_text(&item, "resource", &event->resource);
		audit_text(&item, "namespace", &event->name_space);
		audit_text(&item, "name", &event->name);
		audit_text(&item, "subresource", &part);
	}
	if (timestamp_parse(time, &ns) && ns > 0 && (uint64_t)ns > import->audit_ns)
		import->audit_ns = (uint64_t)ns;
	/* A Scale has the name and version of its object, but not the object. */
	return bytes_equal(stage, BYTES_LIT("ResponseComplete")) &&
	       !bytes_equal(part, BYTES_LIT("scale")) &&
	       !bytes_equal(event->verb, BYTES_LIT("get")) &&
	       !bytes_equal(event->verb, BYTES_LIT("list")) &&
	       !bytes_equal(event->verb, BYTES_LIT("watch"));
}

/* ---- the annotation ----------------------------------------------------- */

int import_copy_map(const struct value *map, const char *key, struct buf *out, size_t *ret_opened,
	uint32_t *ret_count, struct value *ret_member)
{
	struct value_iter iter;
	struct bytes name, item_body;
	struct value item;
	int r;

	*ret_member = (struct value){.type = VALUE_NIL};
	*ret_opened = value_open_map(out);
	*ret_count = 0;
	value_iter_init(&iter, map);
	while ((r = value_iter_next(&iter, &name, &item)) == FOUND) {
		if (bytes_equal(name, bytes_str(key))) {
			*ret_member = item;
			continue;
		}
		r = value_document(&item, &item_body);
		if (r < 0)
			return r;
		value_put_string(out, name);
		buf_bytes_put(out, item_body);
		(*ret_count)++;
	}
	return r < 0 ? r : 0;
}

/* Writes OBJECT with the user's name to import->annotated. */
static int audit_annotate(struct import *import, const struct value *object, struct bytes user)
{
	struct buf *out = &import->annotated;
	struct value metadata, annotations, old;
	size_t root, middle, inner;
	uint32_t n_root, n_middle, n_inner;

	buf_reset(out);
	int r = import_copy_map(object, "metadata", out, &root, &n_root, &metadata);
	value_put_string(out, BYTES_LIT("metadata"));
	if (r == 0)
		r = import_copy_map(
			&metadata, "annotations", out, &middle, &n_middle, &annotations);
	value_put_string(out, BYTES_LIT("annotations"));
	if (r == 0)
		r = import_copy_map(&annotations, AUDIT_USER, out, &inner, &n_inner, &old);
	if (r < 0)
		return r;
	value_put_string(out, BYTES_LIT(AUDIT_USER));
	value_put_string(out, user);
	value_close(out, inner, n_inner + 1);
	value_close(out, middle, n_middle + 1);
	value_close(out, root, n_root + 1);
	return buf_error(out);
}

/* ---- events ------------------------------------------------------------- */

/* Returns true if OBJECT, the answer to a deletion, lives on: gracefully or with finalizers. */
static bool audit_lives(const struct value *object)
{
	struct value metadata, item;

	if (value_find(object, BYTES_LIT("metadata"), &metadata) != FOUND)
		return false;
	if (value_find(&metadata, BYTES_LIT("finalizers"), &item) == FOUND &&
		item.type == VALUE_ARRAY && item.count)
		return true;
	return value_find(&metadata, BYTES_LIT("deletionGracePeriodSeconds"), &item) == FOUND &&
	       item.type == VALUE_UINT && item.u.u;
}

static int audit_take(
	struct import *import, const struct audit_event *event, const struct value *object)
{
	struct value metadata, rv;

	if (value_find(object, BYTES_LIT("metadata"), &metadata) != FOUND ||
		value_find(&metadata, BYTES_LIT("resourceVersion"), &rv) != FOUND)
		return 0; /* a Binding, an Eviction, a review */
	bool deletes = bytes_starts(event->verb, BYTES_LIT("delete")) && !audit_lives(object);
	int r = audit_annotate(import, object, event->user);
	import->change = deletes ? IMPORT_DELETION : IMPORT_WRITE;
	if (r == 0)
		r = import_object(import, buf_bytes(&import->annotated), BYTES_NONE, BYTES_NONE);
	import->change = IMPORT_LISTED;
	return r;
}

int import_audit(struct import *import, struct bytes body)
{
	struct audit_event event;
	struct value items, item, kind;
	struct value_iter iter;
	int r = 0;

	if (!audit_read(import, body, &event))
		return 0;
	bool deletes = bytes_equal(event.verb, BYTES_LIT("delete"));
	if (deletes && value_find(&event.response, BYTES_LIT("kind"), &kind) == FOUND &&
		bytes_equal(kind.text, BYTES_LIT("Status")))
		return import_delete(
			import, event.group, event.resource, event.name_space, event.name);
	if (value_find(&event.response, BYTES_LIT("items"), &items) != FOUND)
		return audit_take(import, &event, &event.response);
	value_iter_init(&iter, &items);
	while (r == 0 && (r = value_iter_next(&iter, NULL, &item)) == FOUND)
		r = audit_take(import, &event, &item);
	return r < 0 ? r : 0;
}
