/* SPDX-License-Identifier: Apache-2.0 */
#include "print/fields.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/value/field_diff.h"
#include "common/value/json.h"
#include "print/redact.h"
#include "print/table/display.h"

#define NAMES_SHOWN 6   /* on one line */
#define VALUE_SHOWN 160 /* bytes of a value on a line */

struct fields {
	enum fields_form form;
	bool secret;
	const char *under; /* NULL: all */
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

/* Returns true if PATH is UNDER or below it; [*] in UNDER stands for any item. */
static bool fields_is_under(const char *path, const char *under)
{
	if (!under || !*under)
		return true;
	for (; *under; path++, under++) {
		const char *item = *path == '[' ? strchr(path, ']') : NULL;

		if (item && strncmp(under, "[*]", 3) == 0) {
			path = item;
			under += 2;
		} else if (*path != *under) {
			return false;
		}
	}
	return strchr(".[", *path) != NULL; /* strchr() finds the NUL also */
}

static int fields_add(
	void *arg, const char *path, const struct value *before, const struct value *after)
{
	struct fields *fields = arg;
	struct buf *out = fields->out;
	bool hidden = fields->secret && redact_hides(path);
	bool base64 = hidden && strncmp(path, "data", 4) == 0;
	int r = 0;

	if (strcmp(path, "metadata.resourceVersion") == 0 ||
		strncmp(path, "metadata.managedFields", 22) == 0 ||
		!fields_is_under(path, fields->under))
		return 0;
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

int fields_put(enum fields_form form, const char *resource, const struct kinf_object *before,
	const struct kinf_object *after, struct buf *out, size_t *ret_n)
{
	return fields_put_under(form, resource, NULL, before, after, out, ret_n);
}

int fields_put_under(enum fields_form form, const char *resource, const char *under,
	const struct kinf_object *before, const struct kinf_object *after, struct buf *out,
	size_t *ret_n)
{
	struct fields fields = {.form = form,
		.secret = strcmp(resource, "secrets") == 0,
		.under = under,
		.out = out};
	int r = 0;

	buf_str(out, form == FIELDS_JSON ? "[" : "");
	if (before->body_size && after->body_size)
		r = field_diff_each(BYTES(before->body, before->body_size),
			BYTES(after->body, after->body_size), fields_add, &fields);
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
