/* SPDX-License-Identifier: Apache-2.0 */
#include "print/sheet.h"

#include <ctype.h>
#include <stdio.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/text.h"
#include "common/text/utf8.h"
#include "common/value/custom.h"
#include "common/value/value.h"
#include "reader/handle.h"

#define DEFINITIONS "customresourcedefinitions.apiextensions.k8s.io"

#define AT(field) offsetof(struct sheet_args, field)

static const struct option_spec sheet_specs[] = {
	{0, "show-labels", OPTION_FLAG, AT(show_labels), NULL, "tables: the labels as last column"},
	{'L', "label-columns", OPTION_TEXTS, AT(labels), "KEY,...",
		"tables: a column with the value of each of these labels; may be repeated"},
	{0, "no-headers", OPTION_FLAG, AT(no_heads), NULL, "tables: no line of headings"},
	{0, "show-kind", OPTION_FLAG, AT(show_kind), NULL,
		"tables: names with their kind, as -o name prints them"},
};

struct options_group sheet_options(struct sheet_args *args)
{
	return (struct options_group){"Tables", sheet_specs, ARRAY_SIZE(sheet_specs), args};
}

void sheet_singular(const struct kinf_feed_info *info, char *ret_singular, size_t size)
{
	const char *dot = strchr(info->resource, '.');

	(void)snprintf(ret_singular, size, "%s%s", info->kind, dot ? dot : "");
	for (char *c = ret_singular; *c; c++)
		*c = (char)tolower((unsigned char)*c);
}

void sheet_release(struct sheet *sheet)
{
	printer_free(&sheet->printer);
	table_release(&sheet->table);
	buf_release(&sheet->heads);
	buf_release(&sheet->cells);
	sheet->n = 0;
	sheet->table = (struct table){.heads = NULL};
}

/* ---- cells -------------------------------------------------------------- */

/* Appends TEXT as one cell: to the end of its first line, controls made visible. */
static void sheet_put(struct buf *out, struct bytes text)
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
static int sheet_put_labels(struct sheet *sheet, struct bytes body)
{
	const struct sheet_args *args = sheet->args;
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
			sheet_put(&sheet->cells, r == FOUND ? value.text : BYTES_NONE);
			key += one.size + (key[one.size] == ',');
		}
	if (r < 0 || !args->show_labels)
		return r < 0 ? r : 0;
	r = printer_put_labels_of(body, &text);
	sheet_put(&sheet->cells, buf_bytes(&text));
	return r;
}

/* ---- columns ------------------------------------------------------------ */

/* Makes the printer of a feed's objects. The columns of a custom resource are those of its
 * CustomResourceDefinition, if a feed holds it, else the reflector's copy in the feed. */
static int sheet_make_printer(struct kinf_snapshot *snapshot, const struct kinf_feed_info *info,
	struct printer **ret_printer)
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
			.version = bytes_str(feed->version),
			.resource = bytes_str(feed->resource),
			.stored = feed->columns};
	if (kind.group.size &&
		kinf_get(snapshot, DEFINITIONS, NULL, info->resource, &object) == KINF_FOUND)
		err_ignore(custom_columns(BYTES(object.body, object.body_size), kind.version,
				   &kind.columns),
			"NAME and AGE are shown");
	err_forget(); /* no feed holds definitions */
	return printer_new(&kind, ret_printer);
}

static bool sheet_shows(const struct sheet *sheet, const struct printer_column *column)
{
	return sheet->wide || column->priority == 0;
}

static void sheet_put_head(struct sheet *sheet, const char *name, size_t size)
{
	for (size_t i = 0; i < size; i++)
		buf_byte(&sheet->heads, (uint8_t)toupper((unsigned char)name[i]));
	buf_byte(&sheet->heads, '\0');
	sheet->n++;
}

/* Points SHOWN at the texts in TEXT. */
static void sheet_point(struct sheet *sheet, const struct buf *text, const char **shown)
{
	const char *next = (const char *)text->data;

	for (size_t i = 0; i < sheet->n; i++) {
		shown[i] = next;
		next += strlen(next) + 1;
	}
}

int sheet_begin(
	struct sheet *sheet, struct kinf_snapshot *snapshot, const struct kinf_feed_info *info)
{
	size_t n;
	int r = sheet_make_printer(snapshot, info, &sheet->printer);

	if (r < 0)
		return r;
	sheet->namespaces &= info->namespaced || sheet->after_namespaces;
	sheet->kinds |= sheet->args->show_kind;
	sheet_singular(info, sheet->singular, sizeof(sheet->singular));
	sheet->n = 0;
	buf_reset(&sheet->heads);
	if (sheet->events)
		sheet_put_head(sheet, "EVENT   ", 8); /* as wide as MODIFIED, which may come late */
	if (sheet->namespaces)
		sheet_put_head(sheet, "NAMESPACE", 9);
	const struct printer_column *columns = printer_columns(sheet->printer, &n);
	for (size_t i = 0; i < n; i++)
		if (sheet_shows(sheet, &columns[i]))
			sheet_put_head(sheet, columns[i].name, strlen(columns[i].name));
	for (size_t i = 0; i < sheet->args->labels.n; i++)
		for (const char *key = sheet->args->labels.items[i];
			*key && sheet->n < TABLE_COLUMNS;) {
			size_t size = strcspn(key, ",");
			const char *slash = size ? memrchr(key, '/', size) : NULL;
			const char *head = slash ? slash + 1 : key;

			sheet_put_head(sheet, head, (size_t)(key + size - head));
			key += size + (key[size] == ',');
		}
	if (sheet->args->show_labels)
		sheet_put_head(sheet, "LABELS", 6);
	if (sheet->n > TABLE_COLUMNS)
		return err_say(ERR_TOO_LARGE, "a table of %zu columns: at most %d are possible",
			sheet->n, TABLE_COLUMNS);
	r = buf_error(&sheet->heads);
	if (r < 0)
		return r;
	sheet_point(sheet, &sheet->heads, sheet->shown);
	table_init(&sheet->table, sheet->shown, sheet->n);
	sheet->table.no_heads = sheet->args->no_heads;
	return 0;
}

/* ---- rows --------------------------------------------------------------- */

static int sheet_put_object(struct sheet *sheet, const struct kinf_object *object)
{
	struct bytes body = BYTES(object->body, object->body_size);
	const struct printer_cell *cells;
	char scratch[NUMBER_TEXT_MAX];
	size_t n_cells, n;
	int r = printer_row(sheet->printer, body, &cells, &n_cells);

	if (r < 0)
		return err_add(r, "%s '%.*s'", sheet->singular, (int)object->key_size, object->key);
	if (sheet->namespaces) {
		const char *slash = memchr(object->key, '/', object->key_size);

		sheet_put(&sheet->cells,
			BYTES(object->key, slash ? (size_t)(slash - object->key) : 0));
	}
	const struct printer_column *columns = printer_columns(sheet->printer, &n);
	bool named = false;
	for (size_t i = 0; i < n; i++) {
		bool is_name = !named && strcmp(columns[i].format, "name") == 0;

		named |= is_name;
		if (!sheet_shows(sheet, &columns[i]))
			continue;
		if (is_name && sheet->kinds)
			buf_printf(&sheet->cells, "%s/", sheet->singular);
		sheet_put(&sheet->cells, printer_cell_text(&cells[i], scratch));
	}
	return sheet_put_labels(sheet, body);
}

int sheet_row(
	struct sheet *sheet, const char *event, const struct kinf_object *object, struct buf *out)
{
	const char *cells[TABLE_COLUMNS];
	int r = 0;

	buf_reset(&sheet->cells);
	if (sheet->events)
		sheet_put(&sheet->cells, bytes_str(event));
	if (object)
		r = sheet_put_object(sheet, object);
	for (size_t i = sheet->events; !object && i < sheet->n; i++)
		buf_byte(&sheet->cells, '\0');
	if (r == 0)
		r = buf_error(&sheet->cells);
	if (r < 0)
		return r;
	sheet_point(sheet, &sheet->cells, cells);
	return table_row(&sheet->table, cells, out);
}

int sheet_settle(struct sheet *sheet, struct buf *out)
{
	return sheet->printer ? table_settle(&sheet->table, out) : 0;
}
