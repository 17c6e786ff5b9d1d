/* SPDX-License-Identifier: Apache-2.0 */
#include "print/fields.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/field_diff.h"
#include "common/value/json.h"
#include "print/redact.h"
#include "print/table/display.h"

#define NAMES_SHOWN 6   /* on one line */
#define VALUE_SHOWN 160 /* bytes of a value on a line */

/* The places of wanted fields in the two versions. */
struct fields_wanted {
	struct bytes *items;
	size_t n, room;
};

struct fields {
	enum fields_form form;
	bool secret;
	const struct path *under; /* NULL: all */
	struct fields_wanted wanted;
	struct buf *out;
	size_t n;
};

/* Appends a value; HIDDEN: its size only. */
static int fields_put_value(
	const struct fields *fields, const struct value *value, bool hidden, bool base64)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	char size[REDACT_TEXT_SIZE] = "<hidden>";
	struct bytes document;
	int r;

	if (hidden && value->type == VALUE_STRING)
		redact_size_text(value->text, base64, size);
	if (fields->form == FIELDS_JSON) {
		if (hidden) {
			json_write_string(bytes_str(size), fields->out);
			return buf_error(fields->out);
		}
		r = value_document(value, &document);
		return r < 0 ? r : json_write(document, 0, fields->out);
	}
	if (hidden) {
		buf_str(fields->out, size);
		return buf_error(fields->out);
	}
	r = value->type == VALUE_STRING && value->text.size == 0 ? (buf_str(&text, "\"\""), 0)
								 : display_line(value, &text);
	if (r < 0)
		return r;
	struct bytes shown = buf_bytes(&text);
	bool cut = shown.size > VALUE_SHOWN;
	if (cut) /* not within a character */
		for (shown.size = VALUE_SHOWN;
			shown.size && (((const uint8_t *)shown.data)[shown.size] & 0xc0) == 0x80;)
			shown.size--;
	buf_bytes_put(fields->out, shown);
	buf_str(fields->out, cut ? "..." : "");
	return buf_error(fields->out);
}

static int fields_want(void *arg, const struct value *value)
{
	struct fields_wanted *wanted = arg;
	struct bytes place;
	int r = value_document(value, &place);

	return r < 0 ? r
		     : ARRAY_ADD(wanted->items, wanted->n, wanted->room, place,
			       "the fields of a path");
}

static bool fields_contains(struct bytes outer, struct bytes inner)
{
	const char *from = outer.data, *at = inner.data;

	return at >= from && at + inner.size <= from + outer.size;
}

/* Returns: FOUND if VALUE is a wanted field or within one; FIELD_DIFF_INTO if it has one within;
 * NOT_FOUND, also for NULL; ERR_CORRUPT. */
static int fields_find(const struct fields *fields, const struct value *value)
{
	struct bytes place;
	int r = value ? value_document(value, &place) : NOT_FOUND;

	if (r != 0)
		return r;
	r = NOT_FOUND;
	for (size_t i = 0; i < fields->wanted.n && r != FOUND; i++)
		if (fields_contains(fields->wanted.items[i], place))
			r = FOUND;
		else if (fields_contains(place, fields->wanted.items[i]))
			r = FIELD_DIFF_INTO;
	return r;
}

static int fields_add(
	void *arg, const char *path, const struct value *before, const struct value *after)
{
	struct fields *fields = arg;
	struct buf *out = fields->out;
	bool hidden = fields->secret && redact_hides(path);
	bool base64 = hidden && strncmp(path, "data", 4) == 0;

	if (strcmp(path, "metadata.resourceVersion") == 0 ||
		strncmp(path, "metadata.managedFields", 22) == 0)
		return 0;
	int r = fields->under ? fields_find(fields, before) : FOUND;
	if (r == NOT_FOUND || r == FIELD_DIFF_INTO) {
		int newer = fields_find(fields, after);
		r = newer == NOT_FOUND ? r : newer;
	}
	if (r != FOUND)
		return r == NOT_FOUND ? 0 : r;
	size_t n = fields->n++;
	switch (fields->form) {
	case FIELDS_NAMES:
		if (n < NAMES_SHOWN) {
			buf_str(out, n ? ", " : "");
			display_bytes(bytes_str(path), out);
		}
		break;
	case FIELDS_JSON:
		buf_str(out, n ? ",{\"path\":" : "{\"path\":");
		json_write_string(bytes_str(path), out);
		if (before) {
			buf_str(out, ",\"old\":");
			r = fields_put_value(fields, before, hidden, base64);
		}
		if (after && r == 0) {
			buf_str(out, ",\"new\":");
			r = fields_put_value(fields, after, hidden, base64);
		}
		buf_byte(out, '}');
		break;
	default:
		buf_str(out, !before ? "  + " : !after ? "  - " : "    ");
		display_bytes(bytes_str(path), out);
		buf_str(out, ": ");
		if (before)
			r = fields_put_value(fields, before, hidden, base64);
		buf_str(out, before && after ? " -> " : "");
		if (after && r == 0)
			r = fields_put_value(fields, after, hidden, base64);
		buf_byte(out, '\n');
		break;
	}
	return r < 0 ? r : buf_error(out);
}

int fields_put(enum fields_form form, const char *resource, const struct path *under,
	const struct kinf_object *before, const struct kinf_object *after, struct buf *out,
	size_t *ret_n)
{
	struct fields fields = {.form = form,
		.secret = strcmp(resource, "secrets") == 0,
		.under = under,
		.out = out};
	int r = 0;

	buf_str(out, form == FIELDS_JSON ? "[" : "");
	if (before->body_size && after->body_size) {
		struct bytes older = BYTES(before->body, before->body_size);
		struct bytes newer = BYTES(after->body, after->body_size);

		if (under)
			r = path_eval(under, older, fields_want, &fields.wanted);
		if (under && r == 0)
			r = path_eval(under, newer, fields_want, &fields.wanted);
		/* without a wanted field in either, no difference is one of them */
		if (r == 0 && (!under || fields.wanted.n))
			r = field_diff_each(older, newer, fields_add, &fields);
		free(fields.wanted.items);
	}
	if (form == FIELDS_NAMES && fields.n > NAMES_SHOWN)
		buf_printf(out, " and %zu more", fields.n - NAMES_SHOWN);
	buf_str(out, form == FIELDS_JSON ? "]" : "");
	*ret_n = fields.n;
	return r < 0 ? r : buf_error(out);
}

/* ---- managers ----------------------------------------------------------- */

struct managers {
	struct bytes newest; /* RFC 3339 in UTC: the order of bytes is the order of time */
	struct buf *out;     /* NULL: finds the newest time */
	size_t n;
};

static int fields_manager(void *arg, const struct kinf_object *entry)
{
	struct managers *managers = arg;
	const char *time = "", *name = "";
	size_t time_size = 0, name_size = 0;
	int r = kinf_object_path(entry, "time", &time, &time_size);

	if (r >= 0)
		r = kinf_object_path(entry, "manager", &name, &name_size);
	if (r < 0)
		return r;
	if (!managers->out) {
		if (bytes_compare(BYTES(time, time_size), managers->newest) > 0)
			managers->newest = BYTES(time, time_size);
	} else if (bytes_equal(BYTES(time, time_size), managers->newest)) {
		buf_str(managers->out, managers->n++ ? ", " : "");
		display_bytes(BYTES(name, name_size), managers->out);
	}
	return 0;
}

int fields_put_managers(const struct kinf_object *object, struct buf *out)
{
	static const char path[] = "metadata.managedFields[*]";
	struct managers managers = {.newest = BYTES_NONE};

	if (!object->body_size)
		return 0;
	int r = kinf_object_each(object, path, fields_manager, &managers);
	managers.out = out;
	if (r >= 0 && managers.newest.size)
		r = kinf_object_each(object, path, fields_manager, &managers);
	return r < 0 ? r : buf_error(out);
}
