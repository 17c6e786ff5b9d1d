/* SPDX-License-Identifier: Apache-2.0 */
#include "print/object_table.h"

#include <ctype.h>
#include <stdio.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/text.h"
#include "common/value/custom.h"
#include "common/value/value.h"
#include "reader/handle.h"

#define DEFINITIONS "customresourcedefinitions.apiextensions.k8s.io"

#define AT(field) offsetof(struct object_table_args, field)

static const struct option_spec object_table_specs[] = {
	{0, "show-labels", OPTION_FLAG, AT(show_labels), NULL, "tables: the labels as last column"},
	{'L', "label-columns", OPTION_TEXTS, AT(labels), "KEY,...",
		"tables: a column with the value of each of these labels; may be repeated"},
	{0, "no-headers", OPTION_FLAG, AT(no_heads), NULL, "tables: no line of headings"},
	{0, "show-kind", OPTION_FLAG, AT(show_kind), NULL,
		"tables: names with their kind, as -o name prints them"},
};

struct options_group object_table_options(struct object_table_args *args)
{
	return (struct options_group){
		"Tables", object_table_specs, ARRAY_SIZE(object_table_specs), args};
}

void object_table_singular(const struct kinf_feed_info *info, char *ret_singular, size_t size)
{
	const char *dot = strchr(info->resource, '.');

	(void)snprintf(ret_singular, size, "%s%s", info->kind, dot ? dot : "");
	for (char *c = ret_singular; *c; c++)
		*c = (char)tolower((unsigned char)*c);
}

void object_table_release(struct object_table *table)
{
	printer_free(&table->printer);
	table_release(&table->table);
	buf_release(&table->heads);
	buf_release(&table->cells);
	table->n = 0;
	table->table = (struct table){.heads = NULL};
}

/* ---- cells -------------------------------------------------------------- */

/* Appends TEXT as one cell: to the end of its first line, controls made visible. */
static void object_table_put(struct buf *out, struct bytes text)
{
	const char *p = text.data;

	for (size_t n, at = 0; at < text.size; at += n) {
		n = 1;
		if (p[at] == '\n' || p[at] == '\r' || p[at] == '\f') {
			buf_str(out, "...");
			break;
		}
		if (p[at] == '\t')
			buf_byte(out, '\t');
		else
			n = text_put_visible(BYTES(p + at, text.size - at), out);
	}
	buf_byte(out, '\0');
}

/* Appends the cells of -L and --show-labels. */
static int object_table_put_labels(struct object_table *table, struct bytes body)
{
	const struct object_table_args *args = table->args;
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	struct value object, metadata, map, value;
	int r = 0;

	if (args->labels.n) {
		r = value_read(body, &object);
		if (r == 0)
			r = value_find(&object, BYTES_LIT("metadata"), &metadata);
		if (r == FOUND)
			r = value_find(&metadata, BYTES_LIT("labels"), &map);
		if (r < 0)
			return r;
		if (r != FOUND)
			map = (struct value){.type = VALUE_NIL};
	}
	for (size_t i = 0; i < args->labels.n; i++)
		for (const char *key = args->labels.items[i]; *key;) {
			struct bytes one = BYTES(key, strcspn(key, ","));

			r = value_find(&map, one, &value);
			object_table_put(&table->cells, r == FOUND ? value.text : BYTES_NONE);
			key += one.size + (key[one.size] == ',');
		}
	if (r < 0 || !args->show_labels)
		return r < 0 ? r : 0;
	r = printer_put_labels_of(body, &text);
	object_table_put(&table->cells, buf_bytes(&text));
	return r;
}

/* ---- columns ------------------------------------------------------------ */

/* Makes the printer of a feed's objects. The columns of a custom resource are those of its
 * CustomResourceDefinition, if a feed holds it, else the reflector's copy in the feed. */
static int object_table_make_printer(struct kinf_snapshot *snapshot,
	const struct kinf_feed_info *info, struct printer **ret_printer)
{
	const struct feed_set *set;
	struct kinf_object object;
	int r = feed_set_get(snapshot, info->full_name, &set);

	if (r < 0)
		return r;
	const struct feed_definition *feed = set->n ? &set->feeds[0].definition : NULL;
	struct printer_kind kind = {.resource = BYTES_LIT("")};
	if (feed && !feed->metadata_only)
		kind = (struct printer_kind){.group = bytes_str(feed->group),
			.resource = bytes_str(feed->resource),
			.stored = feed->columns};
	if (kind.group.size &&
		kinf_get(snapshot, DEFINITIONS, NULL, info->resource, &object) == KINF_FOUND)
		err_ignore(custom_columns(BYTES(object.body, object.body_size),
				   bytes_str(feed->version), &kind.columns),
			"NAME and AGE are shown");
	err_forget(); /* no feed holds definitions */
	return printer_new(&kind, ret_printer);
}

static bool object_table_shows(
	const struct object_table *table, const struct printer_column *column)
{
	return table->wide || column->priority == 0;
}

static void object_table_put_head(struct object_table *table, const char *name, size_t size)
{
	for (size_t i = 0; i < size; i++)
		buf_byte(&table->heads, (uint8_t)toupper((unsigned char)name[i]));
	buf_byte(&table->heads, '\0');
	table->n++;
}

/* Points SHOWN at the texts in TEXT. */
static void object_table_point(
	struct object_table *table, const struct buf *text, const char **shown)
{
	const char *next = (const char *)text->data;

	for (size_t i = 0; i < table->n; i++) {
		shown[i] = next;
		next += strlen(next) + 1;
	}
}

int object_table_begin(struct object_table *table, struct kinf_snapshot *snapshot,
	const struct kinf_feed_info *info)
{
	size_t n;
	int r = object_table_make_printer(snapshot, info, &table->printer);

	if (r < 0)
		return r;
	table->namespaces &= info->namespaced || table->after_namespaces;
	table->kinds |= table->args->show_kind;
	object_table_singular(info, table->singular, sizeof(table->singular));
	table->n = 0;
	buf_reset(&table->heads);
	if (table->events)
		object_table_put_head(
			table, "EVENT   ", 8); /* as wide as MODIFIED, which may come late */
	if (table->namespaces)
		object_table_put_head(table, "NAMESPACE", 9);
	const struct printer_column *columns = printer_columns(table->printer, &n);
	for (size_t i = 0; i < n; i++)
		if (object_table_shows(table, &columns[i]))
			object_table_put_head(table, columns[i].name, strlen(columns[i].name));
	for (size_t i = 0; i < table->args->labels.n; i++)
		for (const char *key = table->args->labels.items[i];
			*key && table->n < TABLE_COLUMNS;) {
			size_t size = strcspn(key, ",");
			const char *slash = size ? memrchr(key, '/', size) : NULL;
			const char *head = slash ? slash + 1 : key;

			object_table_put_head(table, head, (size_t)(key + size - head));
			key += size + (key[size] == ',');
		}
	if (table->args->show_labels)
		object_table_put_head(table, "LABELS", 6);
	if (table->n > TABLE_COLUMNS)
		return err_say(ERR_TOO_LARGE, "a table of %zu columns: at most %d are possible",
			table->n, TABLE_COLUMNS);
	r = buf_error(&table->heads);
	if (r < 0)
		return r;
	object_table_point(table, &table->heads, table->shown);
	table_init(&table->table, table->shown, table->n);
	table->table.no_heads = table->args->no_heads;
	return 0;
}

/* ---- rows --------------------------------------------------------------- */

static int object_table_put_object(struct object_table *table, const struct kinf_object *object)
{
	struct bytes body = BYTES(object->body, object->body_size);
	const struct printer_cell *cells;
	char scratch[NUMBER_TEXT_MAX];
	size_t n_cells, n;
	int r = printer_row(table->printer, body, &cells, &n_cells);

	if (r < 0)
		return err_add(r, "%s '%.*s'", table->singular, (int)object->key_size, object->key);
	if (table->namespaces) {
		const char *slash = memchr(object->key, '/', object->key_size);

		object_table_put(&table->cells,
			BYTES(object->key, slash ? (size_t)(slash - object->key) : 0));
	}
	const struct printer_column *columns = printer_columns(table->printer, &n);
	bool named = false;
	for (size_t i = 0; i < n; i++) {
		bool is_name = !named && strcmp(columns[i].format, "name") == 0;

		named |= is_name;
		if (!object_table_shows(table, &columns[i]))
			continue;
		if (is_name && table->kinds)
			buf_printf(&table->cells, "%s/", table->singular);
		object_table_put(&table->cells, printer_cell_text(&cells[i], scratch));
	}
	return object_table_put_labels(table, body);
}

int object_table_row(struct object_table *table, const char *event,
	const struct kinf_object *object, struct buf *out)
{
	const char *cells[TABLE_COLUMNS];
	int r = 0;

	buf_reset(&table->cells);
	if (table->events)
		object_table_put(&table->cells, bytes_str(event));
	if (object)
		r = object_table_put_object(table, object);
	for (size_t i = table->events; !object && i < table->n; i++)
		buf_byte(&table->cells, '\0');
	if (r == 0)
		r = buf_error(&table->cells);
	if (r < 0)
		return r;
	object_table_point(table, &table->cells, cells);
	return table_row(&table->table, cells, out);
}

int object_table_settle(struct object_table *table, struct buf *out)
{
	return table->printer ? table_settle(&table->table, out) : 0;
}
