/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: lines, templates, forms of fields. */
#include "print/describe/describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/timestamp.h"
#include "print/describe/describe_internal.h"
#include "print/redact.h"

#define ANNOTATION_MAX 140

/* ---- reading ------------------------------------------------------------ */

void describe_note(struct describe *d, int r)
{
	if (r < 0 && !d->error)
		d->error = r;
}

bool describe_find(struct describe *d, const char *path, struct value *ret_value)
{
	if (*path == '@') {
		*ret_value = d->here;
		return d->here.type != VALUE_NIL;
	}
	if (*path == '$')
		return d->has_second && printer_find(&d->row, &d->second, path + 1, ret_value);
	return printer_find(&d->row, &d->here, path, ret_value);
}

struct bytes describe_get(struct describe *d, const char *path)
{
	if (strcmp(path, "@key") == 0)
		return d->key;
	if (*path == '$')
		return d->has_second ? printer_text(&d->row, &d->second, path + 1) : BYTES_LIT("");
	return printer_text(&d->row, &d->here, *path == '@' ? "" : path);
}

bool describe_is_empty(struct describe *d, const char *path)
{
	struct value value;

	if (!describe_find(d, path, &value))
		return true;
	if (value.type == VALUE_MAP || value.type == VALUE_ARRAY)
		return value.count == 0;
	return value.type == VALUE_STRING && value.text.size == 0;
}

static int describe_compare_items(const void *a, const void *b)
{
	const struct describe_item *x = a, *y = b;

	return bytes_compare(x->key, y->key);
}

void describe_items_at(
	struct describe *d, const char *path, const char *order, struct describe_items *ret_items)
{
	struct describe_item item;
	struct value value;
	struct value_iter iter;
	int r;

	*ret_items = (struct describe_items){.n = 0};
	if (!describe_find(d, path, &value) ||
		(value.type != VALUE_MAP && value.type != VALUE_ARRAY))
		return;
	value_iter_init(&iter, &value);
	while ((r = value_iter_next(&iter, &item.key, &item.value)) == FOUND) {
		if (value.type == VALUE_ARRAY)
			item.key = order ? printer_text(&d->row, &item.value, order) : BYTES_NONE;
		r = ARRAY_ADD(ret_items->items, ret_items->n, ret_items->room, item,
			"the items of a list");
		if (r < 0)
			break;
	}
	describe_note(d, r);
	if (ret_items->n && (order || value.type == VALUE_MAP))
		qsort(ret_items->items, ret_items->n, sizeof(*ret_items->items),
			describe_compare_items);
}

void describe_items_release(struct describe_items *items)
{
	free(items->items);
	*items = (struct describe_items){.n = 0};
}

void describe_copy(struct describe *d, const char *path, char *text, size_t size)
{
	struct bytes found = describe_get(d, path);

	(void)snprintf(text, size, "%.*s", found.size < size ? (int)found.size : 0,
		(const char *)found.data);
}

/* ---- forms of a field --------------------------------------------------- */

void describe_indent(struct describe *d, int level)
{
	buf_blanks(d->row.text, 2 * (size_t)(d->level + level));
}

void describe_text(struct describe *d, struct bytes text)
{
	buf_put(d->row.text, text.data, text.size);
}

/* A moment as kubectl prints it: in the local time zone. */
static void describe_put_time(struct describe *d, const char *path)
{
	char text[64] = "Mon, 01 Jan 0001 00:00:00 +0000";
	struct tm parts;
	int64_t ns;

	if (timestamp_parse(describe_get(d, path), &ns)) {
		time_t seconds = (time_t)(ns / 1000000000);

		if (localtime_r(&seconds, &parts))
			(void)strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S %z", &parts);
	}
	buf_str(d->row.text, text);
}

static void describe_put_since(struct describe *d, const char *path)
{
	char age[AGE_SIZE];
	struct bytes text = describe_get(d, path);

	age_between(text, d->row.now_ns, "<unknown>", age);
	buf_str(d->row.text, text.size ? age : "<unknown>");
}

/* The texts of a list with BETWEEN between them. */
static void describe_put_list(struct describe *d, const char *path, const char *before,
	const char *between, const char *after)
{
	struct describe_items all;
	char scratch[VALUE_SCRATCH];
	struct bytes text;

	describe_items_at(d, path, NULL, &all);
	buf_str(d->row.text, before);
	for (size_t i = 0; i < all.n; i++) {
		buf_str(d->row.text, i ? between : "");
		if (value_scalar_text(&all.items[i].value, scratch, &text) == FOUND)
			describe_text(d, text);
	}
	buf_str(d->row.text, after);
	describe_items_release(&all);
}

/* A map as KEY=VALUE, one a line: the following ones begin with a tab. */
static void describe_put_labels(struct describe *d, const char *path)
{
	struct describe_items all;

	describe_items_at(d, path, NULL, &all);
	for (size_t i = 0; i < all.n; i++) {
		buf_str(d->row.text, i ? "\n\t" : "");
		describe_text(d, all.items[i].key);
		buf_byte(d->row.text, '=');
		describe_text(d, all.items[i].value.text);
	}
	buf_str(d->row.text, all.n ? "" : "<none>");
	describe_items_release(&all);
}

/* Appends each line of TEXT between BEFORE and AFTER, cut after MAX bytes. */
static void describe_put_lines(
	struct describe *d, struct bytes text, const char *before, const char *after, size_t max)
{
	const char *next = text.data, *end = next + text.size;

	do {
		const char *stop = next < end ? memchr(next, '\n', (size_t)(end - next)) : NULL;
		size_t size = (size_t)((stop ? stop : end) - next);

		buf_str(d->row.text, before);
		describe_text(d, BYTES(next, size > max ? max : size));
		buf_str(d->row.text, size > max ? "..." : "");
		buf_str(d->row.text, after);
		next += size + 1;
	} while (next <= end);
}

void describe_text_lines(struct describe *d, struct bytes text)
{
	char blanks[64];

	(void)snprintf(blanks, sizeof(blanks), "%*s", 2 * d->level, "");
	describe_put_lines(d, text, blanks, "\n", SIZE_MAX);
}

/* As labels; a long value, or one of several lines, stands below its key. Without what kubectl
 * apply keeps. */
static void describe_put_annotations(struct describe *d, const char *path)
{
	struct describe_items all;
	size_t n = 0;

	describe_items_at(d, path, NULL, &all);
	for (size_t i = 0; i < all.n; i++) {
		struct bytes key = all.items[i].key, value = all.items[i].value.text;

		if (bytes_equal(key, BYTES_LIT(REDACT_LAST_APPLIED)))
			continue;
		if (value.size && ((const char *)value.data)[value.size - 1] == '\n')
			value.size--;
		buf_str(d->row.text, n++ ? "\n\t" : "");
		describe_text(d, key);
		buf_byte(d->row.text, ':');
		if (value.size + key.size + 2 > ANNOTATION_MAX ||
			(value.size && memchr(value.data, '\n', value.size)))
			describe_put_lines(d, value, "\n\t  ", "", ANNOTATION_MAX - 2);
		else
			describe_put_lines(d, value, " ", "", ANNOTATION_MAX);
	}
	buf_str(d->row.text, n ? "" : "<none>");
	describe_items_release(&all);
}

static void describe_put_selector(struct describe *d, const char *path)
{
	struct value value;

	printer_put_selector(&d->row, describe_find(d, path, &value) ? &value : NULL);
}

static void describe_put_map(struct describe *d, const char *path)
{
	struct value value;

	if (describe_find(d, path, &value))
		printer_put_labels(&d->row, &value, "");
	else
		buf_str(d->row.text, "<none>");
}

static void describe_put_boolean(struct describe *d, const char *path)
{
	buf_str(d->row.text,
		bytes_equal(describe_get(d, path), BYTES_LIT("true")) ? "True" : "False");
}

static void describe_put_comma(struct describe *d, const char *path)
{
	describe_put_list(d, path, "", ",", "");
}

static void describe_put_commas(struct describe *d, const char *path)
{
	describe_put_list(d, path, "", ", ", "");
}

static void describe_put_go(struct describe *d, const char *path)
{
	describe_put_list(d, path, "[", " ", "]");
}

static const struct describe_form {
	const char *name;
	void (*put)(struct describe *d, const char *path);
	bool always; /* it has a text for an absent field */
} describe_forms[] = {
	{"time", describe_put_time, false},
	{"since", describe_put_since, false},
	{"labels", describe_put_labels, true},
	{"annotations", describe_put_annotations, true},
	{"selector", describe_put_selector, true},
	{"map", describe_put_map, true},
	{"bool", describe_put_boolean, true},
	{"comma", describe_put_comma, false},
	{"commas", describe_put_commas, false},
	{"go", describe_put_go, true},
};

/* ---- templates ---------------------------------------------------------- */

/* Appends the field that FIELD, the text between braces, names. It is copied: fields are few and
 * short. */
static void describe_field(struct describe *d, struct bytes field)
{
	char text[128], *form, *none;

	(void)snprintf(text, sizeof(text), "%.*s", BYTES_ARG(field));
	none = strchr(text, '|');
	if (none)
		*none++ = '\0';
	form = strchr(text, ':');
	if (form)
		*form++ = '\0';
	bool empty = strcmp(text, "@key") != 0 && describe_is_empty(d, text);
	for (size_t i = 0; form && i < ARRAY_SIZE(describe_forms); i++) {
		if (strcmp(form, describe_forms[i].name) != 0)
			continue;
		if (empty && none)
			buf_str(d->row.text, none);
		else if (!empty || describe_forms[i].always || strcmp(form, "time") == 0)
			describe_forms[i].put(d, text);
		return;
	}
	struct bytes found = describe_get(d, text);
	if (found.size)
		describe_text(d, found);
	else
		buf_str(d->row.text, none ? none : "");
}

void describe_words(struct describe *d, const char *template)
{
	while (*template) {
		size_t size = strcspn(template, "{");

		buf_bytes_put(d->row.text, BYTES(template, size));
		template += size;
		if (!*template)
			break;
		size = strcspn(template, "}");
		describe_field(d, BYTES(template + 1, size - 1));
		template += size + 1;
	}
}

void describe_template(struct describe *d, const char *template)
{
	if (*template)
		describe_indent(d, 0);
	describe_words(d, template);
	buf_byte(d->row.text, '\n');
}

/* ---- lines -------------------------------------------------------------- */

/* Appends what LINE says for d->here. */
static void describe_one(struct describe *d, const struct describe_line *line)
{
	struct value here = d->here, part;

	if (line->line)
		describe_template(d, line->line);
	if (line->in) {
		if (!describe_find(d, line->in, &part))
			return;
		d->here = part;
	}
	if (line->lines)
		describe_lines(d, line->lines);
	if (line->fn)
		line->fn(d);
	d->here = here;
}

void describe_lines(struct describe *d, const struct describe_line *lines)
{
	for (; lines->level >= 0; lines++) {
		struct value here = d->here;
		struct bytes key = d->key;
		struct describe_items all;

		if (d->error < 0 || d->row.error < 0)
			return;
		if ((lines->when && describe_is_empty(d, lines->when)) ||
			(lines->unless && !describe_is_empty(d, lines->unless)))
			continue;
		d->level += lines->level;
		if (lines->each) {
			describe_items_at(d, lines->each, NULL, &all);
			for (size_t i = 0; i < all.n; i++) {
				d->here = all.items[i].value;
				d->key = all.items[i].key;
				describe_one(d, lines);
			}
			describe_items_release(&all);
			d->here = here;
			d->key = key;
		} else {
			describe_one(d, lines);
		}
		d->level -= lines->level;
	}
}

/* ---- an object ---------------------------------------------------------- */

static const struct describe_line *describe_kind_lines(const char *resource)
{
	static const struct describe_kind *const tables[] = {describe_kinds_pods,
		describe_kinds_work, describe_kinds_core, describe_kinds_storage,
		describe_kinds_network, describe_kinds_nodes};

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		for (const struct describe_kind *kind = tables[i]; kind->resource; kind++)
			if (strcmp(kind->resource, resource) == 0)
				return kind->lines;
	return NULL;
}

/* A feed of metadata keeps nothing else: a kind's own layout would call what is not known empty. */
static bool describe_is_metadata(const struct value *object)
{
	struct value kind;

	return value_find(object, BYTES_LIT("kind"), &kind) == FOUND && kind.type == VALUE_STRING &&
	       bytes_equal(kind.text, BYTES_LIT("PartialObjectMetadata"));
}

int describe_put(const struct describe_object *object, struct buf *out)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	struct describe d = {
		.object = object, .margin = "", .row = {.text = &text, .now_ns = object->now_ns}};
	const struct describe_line *lines = describe_kind_lines(object->resource);
	int r = value_read(object->body, &d.row.object);

	if (r < 0)
		return r;
	d.here = d.row.object;
	if (lines && !describe_is_metadata(&d.row.object))
		describe_lines(&d, lines);
	else
		describe_any(&d);
	r = d.row.error < 0 ? d.row.error : d.error < 0 ? d.error : buf_error(&text);
	return r < 0 ? r : tabstops_put(buf_bytes(&text), out);
}

/* ---- other objects ------------------------------------------------------ */

bool describe_each_object(struct describe *d, const char *resource, const char *namespace_,
	const char *labels, const char *fields, void (*fn)(struct describe *d, void *arg),
	void *arg)
{
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	const struct kinf_query query = {.size = sizeof(query),
		.feed = resource,
		.namespace_ = *namespace_ ? namespace_ : NULL,
		.label_selector = labels,
		.field_selector = fields};
	struct kinf_object found;
	struct value here = d->here;

	if (!d->object->snapshot || d->error < 0)
		return false;
	int r = kinf_list(d->object->snapshot, &query, &list);
	while (r == KINF_FOUND && (r = kinf_list_next(list, &found)) == KINF_FOUND) {
		r = value_read(BYTES(found.body, found.body_size), &d->here);
		if (r == 0)
			fn(d, arg);
	}
	d->here = here;
	if (r == KINF_END)
		return true;
	if (r < 0 && r != KINF_NO_FEED)
		d->error = r;
	return false;
}
