/* SPDX-License-Identifier: Apache-2.0 */
#include "print/print.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/output.h"
#include "common/value/json.h"
#include "common/value/omit.h"
#include "common/value/sort.h"
#include "common/value/yaml.h"
#include "reader/handle.h"
#include "store/read/snapshot.h"

#define JSON_INDENT 4

#define FILE_MAX ((size_t)1 << 20)

static const struct print_row {
	const char *name;
	enum print_format format;
	enum { ARGUMENT_NONE, ARGUMENT_TEXT, ARGUMENT_FILE } argument;
	bool as_json;
} print_rows[] = {
	{"table", PRINT_TABLE, ARGUMENT_NONE, false},
	{"wide", PRINT_WIDE, ARGUMENT_NONE, false},
	{"json", PRINT_JSON, ARGUMENT_NONE, false},
	{"yaml", PRINT_YAML, ARGUMENT_NONE, false},
	{"name", PRINT_NAME, ARGUMENT_NONE, false},
	{"count", PRINT_COUNT, ARGUMENT_NONE, false},
	{"custom-columns", PRINT_CUSTOM_COLUMNS, ARGUMENT_TEXT, false},
	{"custom-columns-file", PRINT_CUSTOM_COLUMNS, ARGUMENT_FILE, false},
	{"jsonpath", PRINT_JSONPATH, ARGUMENT_TEXT, false},
	{"jsonpath-as-json", PRINT_JSONPATH, ARGUMENT_TEXT, true},
	{"jsonpath-file", PRINT_JSONPATH, ARGUMENT_FILE, false},
};

static const struct print_row *print_find(const char *text)
{
	size_t size = strcspn(text, "=");

	for (size_t i = 0; i < ARRAY_SIZE(print_rows); i++)
		if (bytes_equal(bytes_str(print_rows[i].name), BYTES(text, size)) &&
			(print_rows[i].argument == ARGUMENT_NONE) == !text[size])
			return &print_rows[i];
	return NULL;
}

static int print_read_file(const char *file, struct buf *text)
{
	AUTO_FD int fd = open(file, O_RDONLY | O_CLOEXEC);

	buf_init(text, FILE_MAX);
	return fd < 0 ? err_set(-errno, "opening '%s'", file) : buf_read_file(text, fd, file);
}

int print_choose(struct print *print, const char *text)
{
	static const char go[] = "go-template";
	CLEANUP(buf_release) struct buf content = BUF_INIT;

	if (!text)
		return 0;
	if (strncmp(text, go, sizeof(go) - 1) == 0 || strncmp(text, "template", 8) == 0)
		return err_say(ERR_SYNTAX,
			"output '%s': Go templates are not supported; write the template as -o "
			"jsonpath='{range .items[*]}{.metadata.name}{\"\\n\"}{end}', or choose "
			"columns with -o custom-columns=NAME:.metadata.name",
			text);
	const struct print_row *row = print_find(text);
	if (!row)
		return err_say(ERR_SYNTAX, "output '%s': allowed are " PRINT_FORMATS_TEXT, text);
	print->format = row->format;
	if (row->argument == ARGUMENT_NONE)
		return 0;
	const char *argument = strchr(text, '=') + 1;
	if (!*argument)
		return err_say(ERR_SYNTAX, "output '%s': what comes after '=' is missing", text);
	bool is_file = row->argument == ARGUMENT_FILE;
	int r = is_file ? print_read_file(argument, &content) : 0;
	if (r == 0 && row->format == PRINT_CUSTOM_COLUMNS)
		r = is_file ? columns_parse_file(buf_cstr(&content), &print->columns)
			    : columns_parse(argument, &print->columns);
	else if (r == 0)
		r = template_parse(is_file ? buf_cstr(&content) : argument, &print->template);
	if (r == 0 && row->as_json)
		template_use_json(print->template);
	return r == ERR_SYNTAX && is_file ? err_add(r, "'%s'", argument) : r;
}

int print_begin(struct print *print, bool single)
{
	print->single = single;
	if (print->columns) {
		columns_table(print->columns, &print->table);
		print->table.no_heads = print->object_table_args.no_heads;
	}
	if (print->template)
		return template_begin(print->template, !single);
	if (print->format == PRINT_JSON && !single)
		buf_str(&print->text, "{\n    \"apiVersion\": \"v1\",\n    \"items\": [");
	else if (print->format == PRINT_YAML && !single)
		buf_str(&print->text, "apiVersion: v1\nitems:");
	return 0;
}

int print_feed(
	struct print *print, struct kinf_snapshot *snapshot, const struct kinf_feed_info *info)
{
	int r = 0;

	print->snapshot = snapshot;
	object_table_singular(info, print->singular, sizeof(print->singular));
	if (print->format != PRINT_TABLE && print->format != PRINT_WIDE)
		return 0;
	if (print->object_table.args)
		r = object_table_settle(&print->object_table, &print->text);
	object_table_release(&print->object_table);
	print->object_table = (struct object_table){.args = &print->object_table_args,
		.wide = print->format == PRINT_WIDE,
		.namespaces = print->namespaces,
		.after_namespaces = print->after_namespaces,
		.kinds = print->several};
	print->gap = print->count && !print->object_table_args.no_heads;
	if (r == 0)
		r = object_table_begin(&print->object_table, snapshot, info);
	print->after_namespaces |= r == 0 && print->object_table.namespaces;
	return r;
}

void print_release(struct print *print)
{
	buf_release(&print->text);
	buf_release(&print->less);
	buf_release(&print->sorted);
	option_texts_release(&print->object_table_args.labels);
	object_table_release(&print->object_table);
	table_release(&print->table);
	columns_free(&print->columns);
	template_free(&print->template);
}

/* ---- names -------------------------------------------------------------- */

struct bytes print_name(const struct kinf_object *object)
{
	/* A key is "namespace/name", or "name" for cluster-scoped kinds. */
	const char *slash = memchr(object->key, '/', object->key_size);
	size_t skip = slash ? (size_t)(slash + 1 - object->key) : 0;

	return BYTES(object->key + skip, object->key_size - skip);
}

/* ---- formats ------------------------------------------------------------ */

void print_indented(struct buf *out, struct bytes text)
{
	const char *p = text.data, *end = p + text.size;

	while (p < end) {
		const char *line = memchr(p, '\n', (size_t)(end - p));
		const char *stop = line ? line + 1 : end;

		buf_put(out, p, (size_t)(stop - p));
		if (line && stop < end)
			buf_blanks(out, 2);
		p = stop;
	}
}

/* Appends an object as JSON or YAML, as an item of the List unless it is the only one. */
static int print_document(struct print *print, const struct kinf_object *object)
{
	struct bytes body = BYTES(object->body, object->body_size);
	bool json = print->format == PRINT_JSON;
	int r = NOT_FOUND;

	buf_reset(&print->less);
	buf_reset(&print->sorted);
	if (!print->managed_fields)
		r = omit_member(body, "metadata", "managedFields", &print->less);
	if (r == FOUND)
		body = buf_bytes(&print->less);
	if (r >= 0 && !print->server_order) {
		r = value_sort(body, json ? VALUE_ORDER_JSON : VALUE_ORDER_YAML, &print->sorted);
		body = buf_bytes(&print->sorted);
	}
	if (r < 0)
		return r;
	size_t before = print->text.size;
	if (!print->single && (json || !print->count))
		buf_str(&print->text, print->count ? ",\n" : "\n");
	if (json) {
		buf_blanks(&print->text, print->single ? 0 : 2 * JSON_INDENT);
		r = json_write_nested(body, JSON_INDENT, print->single ? 0 : 2, &print->text);
		buf_str(&print->text, print->single ? "\n" : "");
	} else {
		r = yaml_write(body, !print->single, &print->text);
	}
	if (r < 0 && print->text.size > before)
		buf_truncate(&print->text, before);
	return r;
}

/* Returns R, or ERR_SNAPSHOT_EXPIRED: the data may be wrong, and is not printed. */
static int print_check(struct print *print, int r)
{
	int checked = print->snapshot ? snapshot_made(print->snapshot->snapshot, r) : r;

	if (checked == ERR_SNAPSHOT_EXPIRED)
		buf_reset(&print->text);
	return checked;
}

/* ---- objects ------------------------------------------------------------ */

int print_object(struct print *print, const struct kinf_object *object)
{
	struct bytes body = BYTES(object->body, object->body_size);
	int r = 0;

	switch (print->format) {
	case PRINT_TABLE:
	case PRINT_WIDE:
		buf_str(&print->text, print->gap ? "\n" : "");
		print->gap = false;
		r = object_table_row(&print->object_table, NULL, object, &print->text);
		break;
	case PRINT_JSON:
	case PRINT_YAML:
		r = print_document(print, object);
		break;
	case PRINT_NAME:
		buf_printf(
			&print->text, "%s/%.*s\n", print->singular, BYTES_ARG(print_name(object)));
		break;
	case PRINT_CUSTOM_COLUMNS:
		r = columns_row(print->columns, body, &print->table, &print->text);
		break;
	case PRINT_JSONPATH:
		r = template_object(print->template, body);
		break;
	default:
		break;
	}
	print->count++;
	/* Text made before the check is right. */
	r = print_check(print, r);
	return r < 0 ? r : output_write(&print->text);
}

int print_end(struct print *print, const char *rv, const char *token)
{
	bool yaml = print->format == PRINT_YAML;
	struct buf *out = &print->text;
	int r = 0;

	switch (print->format) {
	case PRINT_JSON:
	case PRINT_YAML:
		if (print->single)
			break;
		/* As kubectl: keys in order, metadata last. A JSON string is valid YAML also. */
		if (yaml)
			buf_printf(out, "%skind: List\nmetadata:\n", print->count ? "" : " []\n");
		else
			buf_printf(out, "%s],\n    \"kind\": \"List\",\n    \"metadata\": {\n",
				print->count ? "\n    " : "");
		if (token)
			buf_printf(out,
				yaml ? "  continue: %s\n" : "        \"continue\": \"%s\",\n",
				token);
		buf_str(out, yaml ? "  resourceVersion: " : "        \"resourceVersion\": ");
		json_write_string(bytes_str(print->server_order ? rv : ""),
			out); /* kubectl leaves it empty */
		buf_str(out, yaml ? "\n" : "\n    }\n}\n");
		break;
	case PRINT_COUNT:
		buf_printf(out, "%llu\n", (unsigned long long)print->count);
		break;
	case PRINT_TABLE:
	case PRINT_WIDE:
		r = print->object_table.args ? object_table_settle(&print->object_table, out) : 0;
		break;
	case PRINT_CUSTOM_COLUMNS:
		/* As kubectl: a list, perhaps empty, unlike its tables. */
		r = print->count ? table_settle(&print->table, out)
				 : table_put_heads(&print->table, out);
		break;
	case PRINT_JSONPATH:
		r = template_end(print->template, print->server_order ? rv : "", out);
		break;
	default:
		break;
	}
	r = print_check(print, r);
	if (r == 0)
		r = output_text(out);
	if (r == 0 && token && print->format != PRINT_JSON && print->format != PRINT_YAML)
		(void)fprintf(stderr, "more objects: --continue %s\n", token);
	return r;
}
