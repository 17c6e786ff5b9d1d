/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The printer group: printer.h is the interface; printer.c finds the columns of a kind and makes
 * rows, printer_read.c reads fields for cells, words.c has templates, kinds_*.c describe the
 * built-in kinds.
 */
#include "print/table/printer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/json.h"
#include "common/value/number.h"
#include "common/value/path.h"
#include "print/table/age.h"
#include "print/table/display.h"
#include "print/table/printer_internal.h"

#define PRINTER_MAGIC 0x7072696eu

struct printer {
	uint32_t magic;
	size_t n, n_extra; /* columns; cells after them */
	struct printer_column columns[PRINTER_CELLS_MAX];
	const struct printer_cell_row *built_in; /* NULL: a custom resource, with paths */
	struct path *paths[PRINTER_CELLS_MAX];   /* NULL: its cells are empty */
	size_t numbers[PRINTER_CELLS_MAX];       /* of the paths, in FIELDS */
	struct printer_fields fields;
	const char *order;
	struct buf names; /* texts of the columns of a custom resource, each with its NUL */
	struct buf text;  /* of the cells of one row */
	struct printer_cell cells[PRINTER_CELLS_MAX];
};

/* ---- columns ------------------------------------------------------------ */

/* Columns of a custom resource without any in its definition. */
static const struct printer_cell_row printer_plain[] = {
	CELL_NAME,
	CELL("Age", "date", 0, HOW_AGE, "metadata.creationTimestamp", .none = "<unknown>"),
};

/* The API server's descriptions of columns, as tests/tables/record.py wrote them: each after a line
 * "# RESOURCE<TAB>COLUMN". Those of all kinds have no resource. */
extern const char printer_descriptions[];
__asm__(".section .rodata\n"
	".hidden printer_descriptions\n"
	".globl printer_descriptions\n"
	"printer_descriptions: .ascii \"\\n\"\n"
	".incbin \"print/table/descriptions.txt\"\n"
	".byte 0\n"
	".previous\n");

/* Returns the descriptions of RESOURCE, which follow one another. */
static struct bytes printer_describe_kind(const char *resource)
{
	char head[128];
	size_t size = (size_t)snprintf(head, sizeof(head), "\n# %s\t", resource);
	const char *begin = strstr(printer_descriptions, head), *end = begin;

	while (end && strncmp(end, head, size) == 0)
		end = strstr(end + size, "\n# ");
	return begin ? BYTES(begin, (size_t)(end - begin)) : BYTES_LIT("");
}

/* Finds COLUMN's description in those of a kind. Returns no text if there is none. */
static struct bytes printer_describe(struct bytes kind, const char *column)
{
	char head[128];
	size_t size = (size_t)snprintf(head, sizeof(head), "\t%s\n", column);
	const char *text = memmem(kind.data, kind.size, head, size);

	if (!text)
		return BYTES_LIT("");
	text += size;
	return BYTES(text, (size_t)(strstr(text, "\n# ") - text));
}

static const struct printer_kind_row *printer_find_kind(const struct printer_kind *kind)
{
	static const struct printer_kind_row *const tables[] = {printer_kinds_pods,
		printer_kinds_core, printer_kinds_work, printer_kinds_network,
		printer_kinds_storage, printer_kinds_access, printer_kinds_other};

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		for (const struct printer_kind_row *row = tables[i]; row->resource; row++)
			if (bytes_equal(kind->resource, bytes_str(row->resource)) &&
				bytes_equal(kind->group, bytes_str(row->group)))
				return row;
	return NULL;
}

/* The kinds that the API server shows with name and age alone. */
static const struct printer_kind_row printer_any = KIND_OF("", "", printer_plain);

static void printer_use(struct printer *printer, const struct printer_kind_row *row)
{
	struct bytes own = printer_describe_kind(row->resource), all = printer_describe_kind("");

	REQUIRE(row->n + row->n_extra <= PRINTER_CELLS_MAX);
	printer->built_in = row->cells;
	printer->n = row->n;
	printer->n_extra = row->n_extra;
	printer->order = row->order;
	for (size_t i = 0; i < row->n; i++) {
		struct printer_column *column = &printer->columns[i];

		*column = row->cells[i].column;
		column->description = printer_describe(own, column->name);
		if (!column->description.size)
			column->description = printer_describe(all, column->name);
	}
}

/* Keeps the text KEY of a column, or OTHER. Returns its place in names: they move while they
 * grow. */
static size_t printer_keep(
	struct printer *printer, const struct value *column, const char *key, const char *other)
{
	size_t at = printer->names.size;
	struct value value;

	if (value_find(column, bytes_str(key), &value) == FOUND && value.type == VALUE_STRING &&
		value.text.size)
		buf_bytes_put(&printer->names, value.text);
	else
		buf_str(&printer->names, other);
	buf_byte(&printer->names, '\0');
	return at;
}

/* Reads one of additionalPrinterColumns. */
static int printer_add_custom(struct printer *printer, const struct value *column, size_t at[4])
{
	struct value priority, about = {.text = BYTES_NONE};
	size_t i = printer->n;
	size_t path = printer_keep(printer, column, "jsonPath", "");

	if (buf_error(&printer->names) < 0)
		return buf_error(&printer->names);
	int r = path_parse((const char *)printer->names.data + path, &printer->paths[i]);
	if (r == -ENOMEM)
		return r;
	if (r == 0) {
		path_use_arrays_only(printer->paths[i]);
		int added =
			path_set_add(&printer->fields.set, printer->paths[i], &printer->numbers[i]);
		if (added < 0)
			return added;
	}
	err_ignore(r, "the API server also shows empty cells");
	at[0] = printer_keep(printer, column, "name", "");
	at[1] = printer_keep(printer, column, "type", "string");
	at[2] = printer_keep(printer, column, "format", "");
	at[3] = printer->names.size;
	if (value_find(column, BYTES_LIT("description"), &about) == FOUND && about.text.size)
		buf_bytes_put(&printer->names, about.text);
	else
		buf_str(&printer->names,
			"Custom resource definition column (in JSONPath format): ");
	if (!about.text.size && value_find(column, BYTES_LIT("jsonPath"), &about) == FOUND)
		buf_bytes_put(&printer->names, about.text);
	buf_byte(&printer->names, '\0');
	if (value_find(column, BYTES_LIT("priority"), &priority) == FOUND &&
		(priority.type == VALUE_UINT || priority.type == VALUE_INT))
		printer->columns[i].priority = (int32_t)priority.u.i;
	printer->n++;
	return 0;
}

static int printer_use_custom(struct printer *printer, struct bytes columns)
{
	size_t at[PRINTER_CELLS_MAX][4];
	struct value list, column;
	struct value_iter iter;
	int r = value_read(columns, &list);

	if (r < 0)
		return r;
	printer_use(printer, &printer_any);
	if (!list.count || list.type != VALUE_ARRAY)
		return 0;
	printer->built_in = NULL;
	printer->n = 1;
	value_iter_init(&iter, &list);
	while (printer->n < PRINTER_CELLS_MAX &&
		(r = value_iter_next(&iter, NULL, &column)) == FOUND) {
		r = printer_add_custom(printer, &column, at[printer->n]);
		if (r < 0)
			return r;
	}
	if (r < 0 || buf_error(&printer->names) < 0)
		return r < 0 ? r : buf_error(&printer->names);
	for (size_t i = 1; i < printer->n; i++) {
		const char *names = (const char *)printer->names.data;
		struct printer_column *c = &printer->columns[i];

		*c = (struct printer_column){names + at[i][0], names + at[i][1], names + at[i][2],
			c->priority, bytes_str(names + at[i][3])};
	}
	return 0;
}

/* Appends the columns of a feed's definition (store/FORMAT.md) as a msgpack list. */
static void printer_put_stored(const char *lines, struct buf *out)
{
	static const char *const keys[] = {
		"name", "type", "format", "priority", "jsonPath", "description"};
	size_t list = value_open_array(out);
	uint32_t n = 0;

	for (const char *p = lines; *p; n++) {
		size_t column = value_open_map(out);

		for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
			struct bytes text = BYTES(p, strcspn(p, "\t\n"));

			value_put_string(out, bytes_str(keys[i]));
			if (i != 3 || !value_put_number(out, text))
				value_put_string(out, text);
			p += text.size;
			p += *p == '\t' || (*p == '\n' && i + 1 == ARRAY_SIZE(keys));
		}
		value_close(out, column, ARRAY_SIZE(keys));
	}
	value_close(out, list, n);
}

int printer_new(const struct printer_kind *kind, struct printer **ret_printer)
{
	CLEANUP(printer_free) struct printer *printer = calloc(1, sizeof(*printer));
	CLEANUP(buf_release) struct buf stored = BUF_INIT;
	const struct printer_kind_row *row = printer_find_kind(kind);
	struct bytes columns = kind->columns;
	int r = 0;

	if (!printer)
		return err_set(-ENOMEM, "making the columns of a table");
	printer->magic = PRINTER_MAGIC;
	if (!row && !columns.size && kind->stored && *kind->stored) {
		printer_put_stored(kind->stored, &stored);
		columns = buf_bytes(&stored);
		r = buf_error(&stored);
	}
	if (r < 0)
		return r;
	if (row || !columns.size)
		printer_use(printer, row ? row : &printer_any);
	else
		r = printer_use_custom(printer, columns);
	if (r < 0)
		return err_add(r, "columns of '%.*s'", BYTES_ARG(kind->resource));
	*ret_printer = TAKE(printer);
	return 0;
}

void printer_free(struct printer **printer)
{
	struct printer *p = TAKE(*printer);

	if (!p)
		return;
	CHECK_OBJ(p, PRINTER_MAGIC);
	p->magic = 0;
	for (size_t i = 0; i < PRINTER_CELLS_MAX; i++)
		path_free(&p->paths[i]);
	path_set_release(&p->fields.set);
	buf_release(&p->names);
	buf_release(&p->text);
	free(p);
}

const struct printer_column *printer_columns(const struct printer *printer, size_t *ret_n)
{
	CHECK_OBJ(printer, PRINTER_MAGIC);
	*ret_n = printer->n;
	return printer->columns;
}

const char *printer_order(const struct printer *printer)
{
	CHECK_OBJ(printer, PRINTER_MAGIC);
	return printer->order;
}

/* ---- cells -------------------------------------------------------------- */

static enum printer_cell_type printer_put_first(
	struct printer_row *row, const struct printer_cell_row *cell)
{
	struct value_iter iter = printer_items(row, &row->object, cell->path);
	size_t start = row->text->size, n = 0;
	struct value item;

	for (; printer_next(row, &iter, &item); n++) {
		buf_str(row->text, n && n < PRINTER_SHOWN ? "," : "");
		if (n < PRINTER_SHOWN)
			printer_put_words(row, &item, cell->other);
	}
	return printer_put_rest(row, start, n, cell->none);
}

static enum printer_cell_type printer_make(
	struct printer_row *row, const struct printer_cell_row *cell)
{
	const struct value *object = &row->object;
	struct bytes text;
	struct value value;
	uint64_t count = 0;

	switch (cell->how) {
	case HOW_TEXT:
		text = printer_text(row, object, cell->path);
		return printer_put_bytes(
			row, text.size || !cell->none ? text : bytes_str(cell->none));
	case HOW_INTEGER:
		if (cell->none && !printer_text(row, object, cell->path).size)
			return printer_put(row, cell->none);
		buf_printf(row->text, "%" PRId64, printer_integer(row, object, cell->path));
		return PRINTER_NUMBER;
	case HOW_BOOLEAN:
		if (!printer_find(row, object, cell->path, &value) || value.type != VALUE_BOOL)
			buf_str(row->text, cell->none);
		else
			buf_str(row->text, value.u.b ? "true" : "false");
		return PRINTER_BOOLEAN;
	case HOW_COUNT:
		if (printer_find(row, object, cell->path, &value))
			count = value.count;
		if (cell->other && printer_find(row, object, cell->other, &value))
			count += value.count;
		buf_printf(row->text, "%" PRIu64, count);
		return PRINTER_NUMBER;
	case HOW_AGE:
		printer_put_since(row, object, cell->path, cell->none);
		return PRINTER_STRING;
	case HOW_WORDS:
		printer_put_words(row, object, cell->path);
		return PRINTER_STRING;
	case HOW_EACH:
		if (!printer_put_each(row, object, cell->path, cell->other, ",") && cell->none)
			buf_str(row->text, cell->none);
		return PRINTER_STRING;
	case HOW_SOME:
		return printer_put_first(row, cell);
	case HOW_FUNCTION:
		break;
	}
	row->of = cell->other;
	return cell->fn(row);
}

/* Appends an integer as the API server converts the values of an integer column. */
static enum printer_cell_type printer_put_integer(
	struct printer_row *row, const struct value *value)
{
	struct number number;

	if (!value_number(value, &number))
		return PRINTER_NULL;
	if (number.form ==
		NUMBER_DOUBLE) /* the conversion of amd64: out of range it gives the smallest */
		number.u.i = number.u.d >= -0x1p63 && number.u.d < 0x1p63 ? (int64_t)number.u.d
									  : INT64_MIN;
	buf_printf(row->text, "%" PRId64, number.u.i);
	return PRINTER_NUMBER;
}

/* Appends a number as the API server sends the values of a number column: a double. */
static enum printer_cell_type printer_put_number(struct printer_row *row, const struct value *value)
{
	char scratch[VALUE_SCRATCH];
	struct number number;

	if (!value_number(value, &number))
		return PRINTER_NULL;
	double d = number.form == NUMBER_INT ? (double)number.u.i : number.u.d;

	(void)printer_put_bytes(row, BYTES(scratch, number_format_double(d, scratch)));
	return PRINTER_NUMBER;
}

/* Makes the cell of a custom resource from the first value at its path, VALUE. */
static enum printer_cell_type printer_make_custom(
	struct printer_row *row, const struct printer_column *column, const struct value *value)
{
	const char *type = column->type;
	int r;

	if (strcmp(type, "string") == 0) {
		if (value->type == VALUE_NIL)
			return printer_put(row, "<no value>");
		r = display_sorted(value, row->text);
		printer_note(row, r);
		return PRINTER_STRING;
	}
	if (strcmp(type, "integer") == 0)
		return printer_put_integer(row, value);
	if (strcmp(type, "boolean") == 0) {
		if (value->type != VALUE_BOOL)
			return PRINTER_NULL;
		(void)printer_put(row, value->u.b ? "true" : "false");
		return PRINTER_BOOLEAN;
	}
	if (strcmp(type, "number") == 0)
		return printer_put_number(row, value);
	if (strcmp(type, "date") == 0 && value->type == VALUE_STRING) {
		char age[AGE_SIZE];

		age_between(value->text, row->now_ns, "<invalid>", age);
		return printer_put(row, value->text.size ? age : "<unknown>");
	}
	return PRINTER_NULL;
}

int printer_row(struct printer *printer, struct bytes body, const struct printer_cell **ret_cells,
	size_t *ret_n)
{
	size_t ends[PRINTER_CELLS_MAX];
	struct value value;

	CHECK_OBJ(printer, PRINTER_MAGIC);
	struct printer_row row = {
		.text = &printer->text, .fields = &printer->fields, .now_ns = age_now_ns()};
	size_t n = printer->n + printer->n_extra;
	int r = value_read(body, &row.object);

	buf_reset(&printer->text);
	printer->fields.n_walked = printer->fields.set.n_members;
	if (r == 0)
		r = path_set_find(&printer->fields.set, body);
	for (size_t i = 0; r == 0 && i < n; i++) {
		enum printer_cell_type type = PRINTER_NULL;

		if (printer->built_in)
			type = printer_make(&row, &printer->built_in[i]);
		else if (i == 0)
			type = printer_make(&row, &printer_plain[0]);
		else if (printer->paths[i])
			r = path_set_first(&printer->fields.set, printer->numbers[i], &value);
		if (r == FOUND && !printer->built_in && i > 0 && printer->paths[i])
			type = printer_make_custom(&row, &printer->columns[i], &value);
		r = r == NOT_FOUND ? 0 : r;
		printer->cells[i].type = type;
		ends[i] = printer->text.size;
	}
	if (r == 0 && row.error < 0)
		r = row.error;
	if (r == 0)
		r = buf_error(&printer->text);
	if (r < 0)
		return r;
	for (size_t i = 0, start = 0; i < n; start = ends[i++])
		printer->cells[i].text = BYTES(printer->text.data + start, ends[i] - start);
	*ret_cells = printer->cells;
	*ret_n = n;
	return 0;
}

/* kubectl reads a number of a Table as an int64 or a double, and prints it with %v. */
struct bytes printer_cell_text(const struct printer_cell *cell, char *scratch)
{
	struct number number;
	double d;

	if (cell->type != PRINTER_NUMBER || !number_parse(cell->text, &number) ||
		number.form == NUMBER_INT ||
		(number.form == NUMBER_UINT && number.u.u <= INT64_MAX) ||
		!number_value(cell->text, &d))
		return cell->text;
	return BYTES(scratch, number_format_go(d, scratch));
}

/* ---- as JSON ------------------------------------------------------------ */

void printer_put_columns(const struct printer *printer, struct buf *out)
{
	CHECK_OBJ(printer, PRINTER_MAGIC);
	for (size_t i = 0; i < printer->n; i++) {
		const struct printer_column *c = &printer->columns[i];
		const struct {
			const char *key;
			struct bytes text;
		} texts[] = {{"{\"name\":", bytes_str(c->name)}, {",\"type\":", bytes_str(c->type)},
			{",\"format\":", bytes_str(c->format)},
			{",\"description\":", c->description}};

		buf_str(out, i ? "," : "[");
		for (size_t k = 0; k < ARRAY_SIZE(texts); k++) {
			buf_str(out, texts[k].key);
			json_write_string(texts[k].text, out);
		}
		buf_printf(out, ",\"priority\":%" PRId32 "}", c->priority);
	}
	buf_byte(out, ']');
}

void printer_put_cells(const struct printer_cell *cells, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n; i++) {
		buf_str(out, i ? "," : "[");
		if (cells[i].type == PRINTER_NULL)
			buf_str(out, "null");
		else if (cells[i].type == PRINTER_STRING)
			json_write_string(cells[i].text, out);
		else
			buf_bytes_put(out, cells[i].text);
	}
	buf_str(out, n ? "]" : "[]");
}
