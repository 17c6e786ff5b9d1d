/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/command/print.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "common/err.h"
#include "common/value/json.h"
#include "common/value/yaml.h"

#define JSON_INDENT 4

static const char *const format_names[PRINT_FORMAT_MAX] = {
	"table", "wide", "json", "yaml", "name", "count", "custom-columns", "jsonpath"};

/* The format that the SIZE bytes at TEXT name; PRINT_FORMAT_MAX: none. */
static enum print_format find_format(const char *text, size_t size)
{
	int i = 0;

	while (i < PRINT_FORMAT_MAX &&
		!bytes_equal(bytes_str(format_names[i]), BYTES(text, size)))
		i++;
	return (enum print_format)i;
}

static bool takes_argument(enum print_format format)
{
	return format == PRINT_CUSTOM_COLUMNS || format == PRINT_JSONPATH;
}

int print_choose(struct print *print, const char *text)
{
	size_t size = text ? strcspn(text, "=") : 0;

	*print = (struct print){0};
	if (!text)
		return 0;
	print->format = find_format(text, size);
	if (print->format == PRINT_FORMAT_MAX || takes_argument(print->format) != !!text[size])
		return err_say(ERR_SYNTAX,
			"output '%s': allowed are table, wide, json, yaml, name, count, "
			"custom-columns=HEAD:PATH,... and jsonpath=TEMPLATE", text);
	if (print->format == PRINT_CUSTOM_COLUMNS)
		return columns_parse(text + size + 1, &print->columns);
	if (print->format == PRINT_JSONPATH)
		return template_parse(text + size + 1, &print->template);
	return 0;
}

int print_flush(void)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	return err_set(errno ? -errno : -EIO, "writing the output");
}

static int write_out(struct buf *out)
{
	int r = buf_error(out);

	if (r == 0 && out->size && fwrite(out->data, 1, out->size, stdout) != out->size)
		r = err_set(errno ? -errno : -EIO, "writing the output");
	buf_reset(out);
	return r;
}

int print_text(struct buf *out)
{
	int r = write_out(out);

	return r < 0 ? r : print_flush();
}

static int put(struct print *print)
{
	return write_out(&print->text);
}

int print_begin(struct print *print, bool single, const struct kinf_feed_info *status)
{
	static const char *const heads[PRINT_COLUMNS] = {"NAMESPACE", "NAME", "AGE"};
	bool namespaced = status->namespaced;

	print->single = single;
	print->namespaced = namespaced;
	print_singular(status, print->singular, sizeof(print->singular));
	if (print->columns)
		table_init(&print->table, columns_heads(print->columns),
			columns_count(print->columns));
	else
		table_init(&print->table, heads + !namespaced, PRINT_COLUMNS - !namespaced);
	if (print->template)
		return template_begin(print->template, !single);
	if (print->format == PRINT_JSON && !single)
		buf_str(&print->text, "{\n    \"apiVersion\": \"v1\",\n    \"items\": [");
	else if (print->format == PRINT_YAML && !single)
		buf_str(&print->text, "apiVersion: v1\nitems:");
	return 0;
}

void print_release(struct print *print)
{
	buf_release(&print->text);
	table_release(&print->table);
	columns_free(&print->columns);
	template_free(&print->template);
}

/* ---- names and ages ---- */

static void split_key(const struct kinf_object *object, struct bytes *ret_namespace,
	struct bytes *ret_name)
{
	const char *slash = memchr(object->key, '/', object->key_size);
	size_t n = slash ? (size_t)(slash - object->key) : 0;

	*ret_namespace = BYTES(object->key, n);
	*ret_name = slash ? BYTES(slash + 1, object->key_size - n - 1)
			  : BYTES(object->key, object->key_size);
}

void print_singular(const struct kinf_feed_info *status, char *ret_singular, size_t size)
{
	const char *dot = strchr(status->resource, '.');

	(void)snprintf(ret_singular, size, "%s%s", status->kind, dot ? dot : "");
	for (char *c = ret_singular; *c; c++)
		*c = (char)tolower((unsigned char)*c);
}

struct bytes print_name(const struct kinf_object *object)
{
	struct bytes in, is;

	split_key(object, &in, &is);
	return is;
}

/* ---- table ---- */

void print_cells(const struct kinf_object *object, struct print_cells *ret_cells)
{
	struct bytes in, is;
	const char *text = "";
	size_t size = 0;

	split_key(object, &in, &is);
	(void)snprintf(ret_cells->namespace_, sizeof(ret_cells->namespace_), "%.*s", BYTES_ARG(in));
	(void)snprintf(ret_cells->name, sizeof(ret_cells->name), "%.*s", BYTES_ARG(is));
	if (kinf_object_path(object, "metadata.creationTimestamp", &text, &size) != KINF_FOUND)
		size = 0;
	age_from_time(text, size, ret_cells->age);
}

static int print_row(struct print *print, const struct kinf_object *object)
{
	struct print_cells cells;
	const char *const all[PRINT_COLUMNS] = {cells.namespace_, cells.name, cells.age};

	print_cells(object, &cells);
	int r = table_row(&print->table, all + !print->namespaced, &print->text);
	return r < 0 ? r : put(print);
}

/* ---- JSON and YAML ---- */

/* TEXT with every line after the first moved right; newlines stand only between lines. */
static void put_indented(struct buf *out, struct bytes text, unsigned by)
{
	const char *p = text.data, *end = p + text.size;

	while (p < end) {
		const char *line = memchr(p, '\n', (size_t)(end - p));
		const char *stop = line ? line + 1 : end;

		buf_put(out, p, (size_t)(stop - p));
		if (line && stop < end)
			buf_printf(out, "%*s", (int)by, "");
		p = stop;
	}
}

static int print_json(struct print *print, const struct kinf_object *object)
{
	struct buf json = BUF_INIT;
	int r = json_write(BYTES(object->body, object->body_size), JSON_INDENT, &json);

	if (r == 0 && !print->single) {
		buf_str(&print->text, print->count ? ",\n        " : "\n        ");
		put_indented(&print->text, buf_bytes(&json), 2 * JSON_INDENT);
	} else if (r == 0) {
		buf_bytes_put(&print->text, buf_bytes(&json));
		buf_byte(&print->text, '\n');
	}
	buf_release(&json);
	return r < 0 ? r : put(print);
}

static int print_yaml(struct print *print, const struct kinf_object *object)
{
	struct buf yaml = BUF_INIT;
	int r = yaml_write(BYTES(object->body, object->body_size), &yaml);

	if (r == 0 && !print->single) {
		buf_str(&print->text, print->count ? "- " : "\n- ");
		put_indented(&print->text, buf_bytes(&yaml), 2);
	} else if (r == 0) {
		buf_bytes_put(&print->text, buf_bytes(&yaml));
	}
	buf_release(&yaml);
	return r < 0 ? r : put(print);
}

/* kubectl's List: sorted keys, metadata last. A JSON string is a YAML one too. */
static void end_list(struct print *print, const char *rv, const char *token)
{
	bool yaml = print->format == PRINT_YAML;
	struct buf *out = &print->text;

	if (yaml)
		buf_printf(out, "%skind: List\nmetadata:\n", print->count ? "" : " []\n");
	else
		buf_printf(out, "%s],\n    \"kind\": \"List\",\n    \"metadata\": {\n",
			print->count ? "\n    " : "");
	if (token)
		buf_printf(
			out, yaml ? "  continue: %s\n" : "        \"continue\": \"%s\",\n", token);
	buf_str(out, yaml ? "  resourceVersion: " : "        \"resourceVersion\": ");
	json_write_string(bytes_str(rv), out);
	buf_str(out, yaml ? "\n" : "\n    }\n}\n");
}

/* ---- all of them ---- */

int print_object(struct print *print, const struct kinf_object *object)
{
	struct bytes body = BYTES(object->body, object->body_size);
	int r = 0;

	switch (print->format) {
	case PRINT_TABLE:
	case PRINT_WIDE:
		r = print_row(print, object);
		break;
	case PRINT_JSON:
		r = print_json(print, object);
		break;
	case PRINT_YAML:
		r = print_yaml(print, object);
		break;
	case PRINT_NAME:
		buf_printf(&print->text, "%s/%.*s\n", print->singular,
			BYTES_ARG(print_name(object)));
		r = put(print);
		break;
	case PRINT_CUSTOM_COLUMNS:
		r = columns_row(print->columns, body, &print->table, &print->text);
		r = r < 0 ? r : put(print);
		break;
	case PRINT_JSONPATH:
		r = template_object(print->template, body);
		break;
	default:
		break;
	}
	print->count++;
	return r;
}

int print_end(struct print *print, const char *rv, const char *token)
{
	int r = 0;

	switch (print->format) {
	case PRINT_JSON:
	case PRINT_YAML:
		if (!print->single)
			end_list(print, rv, token);
		break;
	case PRINT_COUNT:
		buf_printf(&print->text, "%llu\n", (unsigned long long)print->count);
		break;
	case PRINT_TABLE:
	case PRINT_WIDE:
	case PRINT_CUSTOM_COLUMNS:
		r = table_settle(&print->table, &print->text);
		break;
	case PRINT_JSONPATH:
		r = template_end(print->template, &print->text);
		break;
	default:
		break;
	}
	if (r == 0)
		r = put(print);
	if (r == 0)
		r = print_flush();
	if (r == 0 && token && print->format != PRINT_JSON && print->format != PRINT_YAML)
		(void)fprintf(stderr, "more objects: --continue %s\n", token);
	return r;
}
