/* SPDX-License-Identifier: Apache-2.0 */
/* Events of an object, and objects without a layout of their own: all their fields. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/text/timestamp.h"
#include "print/describe/describe_internal.h"
#include "print/table/display.h"

/* ---- events ------------------------------------------------------------- */

struct event_row {
	int64_t last_ns; /* its lastTimestamp, kubectl's order; 0: it has none */
	struct value event;
};

struct event_rows {
	struct event_row *items;
	size_t n, room;
};

/* Events are kept as values in the mapped store until the snapshot ends. */
static void event_add(struct describe *d, void *arg)
{
	struct event_rows *rows = arg;
	struct event_row row = {.event = d->here};

	(void)timestamp_parse(describe_get(d, "lastTimestamp"), &row.last_ns); /* else it is 0 */
	int r = ARRAY_ADD(rows->items, rows->n, rows->room, row, "the events of an object");
	printer_note(&d->row, r);
}

static int event_compare(const void *a, const void *b)
{
	const struct event_row *x = a, *y = b;

	return (x->last_ns > y->last_ns) - (x->last_ns < y->last_ns);
}

#define EVENT_FIRST "{eventTime:since}|{firstTimestamp:since}|<unknown>]"

/* With an age such as "5m (x3 over 10m)". */
static const char event_line[] =
	"  {type}\t{reason}\t"
	"[{series:if}{series.lastObservedTime:since|<unknown>} (x{series.count} over [" EVENT_FIRST
	")|{[count=0]:if}[" EVENT_FIRST "|{[count=1]:if}[" EVENT_FIRST
	"|{count:if}{lastTimestamp:since|<unknown>} (x{count} over [" EVENT_FIRST ")|" EVENT_FIRST
	"\t[{source.component}|{reportingComponent}]\t"
	"[{involvedObject.fieldPath}: ]{message:trim}";

void describe_events(struct describe *d)
{
	/* Found by the object's uid; those about a node have its name there also. */
	static const char *const fields[] = {
		"involvedObject.name={metadata.name:value},involvedObject.uid="
		"[{metadata.annotations[kubernetes.io/config.mirror]}|{metadata.uid}]",
		"involvedObject.name={metadata.name:value},involvedObject.uid={metadata.name}"};
	bool is_node = strcmp(d->object->resource, "nodes") == 0, known = true;
	struct event_rows rows = {.n = 0};
	struct value here = d->here;

	for (int i = 0; known && i <= is_node; i++)
		known = describe_each_object(
			d, "events", "{metadata.namespace}", "", fields[i], event_add, &rows);
	if (known) {
		if (rows.n)
			qsort(rows.items, rows.n, sizeof(*rows.items), event_compare);
		describe_template(d, rows.n ? "Events:\n  Type\tReason\tAge\tFrom\tMessage\n"
					      "  ----\t------\t----\t----\t-------"
					    : "Events:\t<none>");
	}
	for (size_t i = 0; i < rows.n; i++) {
		d->here = rows.items[i].event;
		describe_template(d, event_line);
	}
	free(rows.items);
	d->here = here;
}

/* ---- any object --------------------------------------------------------- */

/* Returns the end of the word of NAME at I: capitals, or one letter of any case and small ones. */
static size_t any_word_end(struct bytes name, size_t i)
{
	const unsigned char *p = name.data;

	for (i++; i < name.size; i++)
		if (p[i - 1] == '-' || p[i] == '-' || (isupper(p[i]) && !isupper(p[i - 1])) ||
			(isupper(p[i]) && i + 1 < name.size && islower(p[i + 1])))
			break;
	return i;
}

/* Appends the name of a field as a title: "lastTransitionTime" as "Last Transition Time",
 * "podCIDR" as "Pod CIDR". A name with other characters than letters stays as it is. */
static void any_put_title(struct describe *d, struct bytes name)
{
	static const char *const acronyms[] = {"api", "url", "uid", "guid"};
	const unsigned char *p = name.data;
	bool plain = name.size > 0;

	for (size_t i = 0; i < name.size; i++)
		plain &= isalpha(p[i]) || p[i] == '-';
	if (!plain) {
		buf_bytes_put(d->row.text, name);
		return;
	}
	for (size_t i = 0, end; i < name.size; i = end) {
		end = any_word_end(name, i);
		if (end - i >= 2 && isupper(p[i + 1]) && end < name.size && isupper(p[end]))
			end = any_word_end(name, end); /* CIDRs, HTTPCode */
		bool acronym = false;
		for (size_t a = 0; a < ARRAY_SIZE(acronyms); a++)
			acronym |= end - i == strlen(acronyms[a]) &&
				   strncasecmp((const char *)p + i, acronyms[a], end - i) == 0;
		buf_str(d->row.text, i ? " " : "");
		for (size_t c = i; c < end; c++)
			buf_byte(d->row.text, (uint8_t)(acronym || c == i ? toupper(p[c]) : p[c]));
	}
}

static void any_put_map(struct describe *d, int level, const struct value *map, bool is_metadata);

static void any_put_scalar(struct describe *d, const struct value *value)
{
	char scratch[VALUE_SCRATCH];
	struct bytes text;

	if (value->type == VALUE_NIL)
		buf_str(d->row.text, "<nil>");
	else if (display_scalar(value, scratch, &text) == FOUND)
		buf_bytes_put(d->row.text, text);
	else
		printer_note(&d->row, display_go(value, d->row.text)); /* a list within a list */
	buf_byte(d->row.text, '\n');
}

static void any_put_list(struct describe *d, int level, const struct value *list)
{
	struct value_iter iter;
	struct value item;

	value_iter_init(&iter, list);
	while (printer_next(&d->row, &iter, &item)) {
		if (item.type == VALUE_MAP) {
			any_put_map(d, level, &item, false);
		} else {
			describe_indent(d, level);
			any_put_scalar(d, &item);
		}
	}
}

/* Members of metadata shown elsewhere, or never. */
static bool any_hides(struct bytes key)
{
	static const char *const keys[] = {
		"managedFields", "name", "namespace", "labels", "annotations"};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (bytes_equal(key, bytes_str(keys[i])))
			return true;
	return false;
}

/* Appends the members of MAP in the order of their names. */
static void any_put_map(struct describe *d, int level, const struct value *map, bool is_metadata)
{
	struct value here = d->here;
	struct printer_list all;

	d->here = *map;
	describe_items_at(d, "@", NULL, &all);
	d->here = here;
	for (size_t i = 0; i < all.n && level < VALUE_DEPTH_MAX; i++) {
		const struct printer_item *item = &all.items[i];
		bool is_root = level == 0 && map->start == d->row.object.start;

		if (is_metadata && any_hides(item->key))
			continue;
		describe_indent(d, level);
		any_put_title(d, item->key);
		if (item->value.type == VALUE_MAP || item->value.type == VALUE_ARRAY) {
			buf_str(d->row.text, ":\n");
			if (item->value.type == VALUE_ARRAY)
				any_put_list(d, level + 1, &item->value);
			else
				any_put_map(d, level + 1, &item->value,
					is_root && bytes_equal(item->key, BYTES_LIT("metadata")));
		} else {
			buf_str(d->row.text, ":\t");
			any_put_scalar(d, &item->value);
		}
	}
	printer_list_release(&all);
}

void describe_fields(struct describe *d)
{
	struct value map = d->here;

	any_put_map(d, 0, &map, false);
}

void describe_any(struct describe *d)
{
	static const struct describe_line names[] = {
		LINES_NAME,
		LINES_LABELS,
		END_OF_LINES,
	};

	describe_lines(d, names);
	describe_fields(d);
	describe_events(d);
}
