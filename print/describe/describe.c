/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: lines of templates, other objects. */
#include "print/describe/describe.h"

#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "print/describe/describe_internal.h"

/* ---- reading ------------------------------------------------------------ */

void describe_indent(struct describe *d, int level)
{
	buf_blanks(d->row.text, 2 * (size_t)(d->level + level));
}

void describe_text_lines(struct describe *d, struct bytes text)
{
	char blanks[64];

	(void)snprintf(blanks, sizeof(blanks), "%*s", 2 * d->level, "");
	printer_put_lines(&d->row, text, blanks, "\n", SIZE_MAX);
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
	struct printer_list all;

	if (line->list) {
		describe_indent(d, 0);
		describe_words(d, line->line);
		describe_items_at(d, line->list, line->order, &all);
		for (size_t i = 0; i < all.n; i++) {
			buf_str(d->row.text, i ? line->between : "");
			printer_put_words(&d->row, &all.items[i].value, line->item);
		}
		buf_str(d->row.text, all.n ? "" : line->none);
		buf_byte(d->row.text, '\n');
		printer_list_release(&all);
	} else if (line->line) {
		describe_template(d, line->line);
	}
	if (line->some) {
		size_t before = d->row.text->size;

		describe_indent(d, 0);
		if (printer_put_some(&d->row, &d->here, line->some))
			buf_byte(d->row.text, '\n');
		else
			buf_truncate(d->row.text, before);
	}
	if (line->in) {
		if (!describe_find(d, line->in, &part))
			return;
		d->here = part;
	}
	if (line->lines)
		describe_lines(d, line->lines);
	d->row.of = line->of;
	if (line->fn)
		line->fn(d);
	d->here = here;
}

void describe_lines(struct describe *d, const struct describe_line *lines)
{
	for (; lines->level >= 0; lines++) {
		struct value here = d->here;
		struct bytes key = d->row.key;
		struct printer_list all;

		if (d->row.error < 0)
			return;
		if ((lines->when && describe_is_empty(d, lines->when)) ||
			(lines->unless && !describe_is_empty(d, lines->unless)))
			continue;
		d->level += lines->level;
		if (lines->each) {
			describe_items_at(d, lines->each, lines->order, &all);
			for (size_t i = 0; i < all.n; i++) {
				d->here = all.items[i].value;
				d->row.key = all.items[i].key;
				describe_one(d, lines);
			}
			printer_list_release(&all);
			d->here = here;
			d->row.key = key;
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
	struct describe d = {.object = object, .row = {.text = &text, .now_ns = object->now_ns}};
	const struct describe_line *lines = describe_kind_lines(object->resource);
	int r = value_read(object->body, &d.row.object);

	if (r < 0)
		return r;
	d.here = d.row.object;
	if (lines && !describe_is_metadata(&d.row.object))
		describe_lines(&d, lines);
	else
		describe_any(&d);
	r = d.row.error < 0 ? d.row.error : buf_error(&text);
	return r < 0 ? r : tabstops_put(buf_bytes(&text), out);
}

/* ---- other objects ------------------------------------------------------ */

/* Appends TEMPLATE for the whole object, and a NUL. Returns where it begins. */
static size_t describe_expand(struct describe *d, const char *template, struct buf *out)
{
	struct buf *text = d->row.text;
	size_t start = out->size;

	d->row.text = out;
	printer_put_words(&d->row, &d->row.object, template);
	d->row.text = text;
	buf_byte(out, '\0');
	return start;
}

bool describe_each_object(struct describe *d, const char *resource, const char *in,
	const char *labels, const char *fields, void (*fn)(struct describe *d, void *arg),
	void *arg)
{
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	CLEANUP(buf_release) struct buf texts = BUF_INIT;
	size_t namespace_ = describe_expand(d, in, &texts);
	size_t by_labels = describe_expand(d, labels, &texts);
	size_t by_fields = describe_expand(d, fields, &texts);
	const char *text = (const char *)texts.data;
	struct kinf_object found;
	struct value here = d->here;

	printer_note(&d->row, buf_error(&texts));
	if (!d->object->snapshot || d->row.error < 0 || strcmp(text + by_labels, "<none>") == 0)
		return false;
	const struct kinf_query query = {.size = sizeof(query),
		.feed = resource,
		.namespace_ = text[namespace_] ? text + namespace_ : NULL,
		.label_selector = text + by_labels,
		.field_selector = text + by_fields};
	int r = kinf_list(d->object->snapshot, &query, &list);
	while (r == KINF_FOUND && (r = kinf_list_next(list, &found)) == KINF_FOUND) {
		r = value_read(BYTES(found.body, found.body_size), &d->here);
		if (r == 0)
			fn(d, arg);
	}
	d->here = here;
	if (r == KINF_END)
		return true;
	if (r != KINF_NO_FEED)
		printer_note(&d->row, r);
	return false;
}
