/* SPDX-License-Identifier: Apache-2.0 */
#include "print/table/template.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/json.h"
#include "common/value/path.h"
#include "print/table/display.h"

#define TEMPLATE_MAGIC 0x746d706cu
#define NODES_MAX      256
#define RANGES_MAX     8 /* within each other */

enum node_type { NODE_TEXT, NODE_PATH, NODE_RANGE };

struct template_node {
	enum node_type type;
	size_t end;           /* range: the index after its last node */
	char *text;           /* NODE_TEXT; NUL-terminated */
	bool is_constant;     /* NODE_TEXT: a number, true or false */
	struct path *path;    /* NULL: the whole value */
	bool of_items;        /* the path begins with .items[*] */
	struct path *in_item; /* the rest of it; NULL: the whole item */
	struct buf out;       /* outermost nodes: the output so far */
	bool given;           /* there is output, perhaps an empty text */
};

struct template
{
	uint32_t magic;
	size_t n;
	struct template_node nodes[NODES_MAX];
	bool is_list, is_whole; /* whole: LIST is filled first */
	bool as_json;
	uint64_t seen;            /* objects */
	struct buf list;          /* a List in msgpack */
	size_t list_at, items_at; /* value_open_*() */
};

/* ---- parsing ------------------------------------------------------------ */

struct template_parser {
	const char *text, *p;
	struct template *template;
	size_t open[RANGES_MAX]; /* the nodes of open ranges */
	size_t n_open;
};

static __attribute__((cold)) int template_syntax(
	const struct template_parser *parser, const char *what)
{
	return err_say(ERR_SYNTAX, "jsonpath '%s', character %zu: %s", parser->text,
		(size_t)(parser->p - parser->text) + 1, what);
}

/* Adds a node with a copy of TEXT, only for NODE_TEXT. */
static int template_add_node(struct template_parser *parser, enum node_type type, struct bytes text,
	struct template_node **ret_node)
{
	struct template *template = parser->template;

	if (template->n == NODES_MAX)
		return template_syntax(parser, "too many parts");
	struct template_node *node = &template->nodes[template->n++];
	*node = (struct template_node){.type = type, .out = BUF_INIT};
	if (type == NODE_TEXT)
		node->text = strndup(text.data, text.size);
	if (type == NODE_TEXT && !node->text)
		return err_set(-ENOMEM, "growing a jsonpath template");
	*ret_node = node;
	return 0;
}

/* Reads "text" between quotes, from the first quote to after the brace at END. */
static int template_parse_literal(struct template_parser *parser, const char *end)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	struct template_node *node;

	if (!path_unquote(&parser->p, end, &text))
		return template_syntax(parser, "the quote does not end");
	parser->p += strspn(parser->p, " \t");
	int r = buf_error(&text);
	if (r == 0)
		r = template_add_node(parser, NODE_TEXT, BYTES(buf_cstr(&text), text.size), &node);
	if (r == 0 && parser->p != end)
		return template_syntax(parser, "expected '}' after the quote");
	parser->p = end + 1;
	return r;
}

/* Parses a path; nothing, `.`, `$` and `@` mean the whole value. */
static int template_parse_path(const char *text, struct path **ret_path)
{
	AUTO_FREE char *braced = NULL;

	*ret_path = NULL;
	text += strspn(text, " \t");
	size_t size = strlen(text);
	while (size && (text[size - 1] == ' ' || text[size - 1] == '\t') &&
		!(size > 1 && text[size - 2] == '\\'))
		size--;
	if (size == 0 || (size == 1 && strchr(".$@", *text)))
		return 0;
	if (asprintf(&braced, "{%.*s}", (int)size, text) < 0)
		return err_set(-ENOMEM, "growing a jsonpath template");
	return path_parse(braced, ret_path);
}

static int template_add_path(struct template_parser *parser, enum node_type type, const char *text)
{
	static const char all[] = "items[*]";
	struct template_node *node;
	int r = template_add_node(parser, type, BYTES_NONE, &node);

	if (r == 0)
		r = template_parse_path(text, &node->path);
	if (r < 0 || !node->path)
		return r;
	text = path_text(node->path);
	if (strncmp(text, all, sizeof(all) - 1) != 0 || path_has_union(node->path))
		return 0;
	node->of_items = true; /* one pass over the items of a List is enough */
	text += sizeof(all) - 1;
	return *text ? path_parse(text, &node->in_item) : 0;
}

/* Reads the text between braces, from after the first to after the other. */
static int template_parse_action(struct template_parser *parser)
{
	static const char range[] = "range";
	struct template *template = parser->template;
	char quote = '\0';
	const char *end = parser->p;
	struct template_node *node;

	for (; *end && (quote || *end != '}'); end++) { /* the unquoted brace */
		if (*end == '\\' && end[1])
			end++;
		else if (quote)
			quote = *end == quote ? '\0' : quote;
		else if (*end == '\'' || *end == '"')
			quote = *end;
	}
	if (!*end)
		return template_syntax(parser, "'}' is missing");
	parser->p += strspn(parser->p, " \t");
	if (*parser->p == '"' || *parser->p == '\'')
		return template_parse_literal(parser, end);
	size_t size = (size_t)(end - parser->p);
	while (size && parser->p[size - 1] == ' ')
		size--;
	AUTO_FREE char *text = strndup(parser->p, size);
	if (!text)
		return err_set(-ENOMEM, "growing a jsonpath template");
	const char *after = text + sizeof(range) - 1;
	int r = 0;
	if (strcmp(text, "end") == 0) {
		if (parser->n_open == 0)
			return template_syntax(parser, "'end' without a range");
		template->nodes[parser->open[--parser->n_open]].end = template->n;
	} else if (strncmp(text, range, sizeof(range) - 1) == 0 && strchr(" \t.[", *after) &&
		   *after) {
		if (parser->n_open == RANGES_MAX)
			return template_syntax(parser, "too many ranges within each other");
		parser->open[parser->n_open++] = template->n;
		r = template_add_path(parser, NODE_RANGE, after);
	} else if (number_is_valid(bytes_str(text)) || strcmp(text, "true") == 0 ||
		   strcmp(text, "false") == 0) {
		r = template_add_node(parser, NODE_TEXT, bytes_str(text), &node);
		if (r == 0)
			node->is_constant = true;
	} else {
		r = template_add_path(parser, NODE_PATH, text);
	}
	parser->p = end + 1;
	return r;
}

int template_parse(const char *text, struct template **ret_template)
{
	CLEANUP(template_free) struct template *template = calloc(1, sizeof(*template));
	struct template_node *node;
	int r = 0;

	if (!template)
		return err_set(-ENOMEM, "growing a jsonpath template");
	template->magic = TEMPLATE_MAGIC;
	struct template_parser parser = {.text = text, .p = text, .template = template};
	while (r == 0 && *parser.p) {
		size_t size = strcspn(parser.p, "{");

		if (size)
			r = template_add_node(&parser, NODE_TEXT, BYTES(parser.p, size), &node);
		parser.p += size;
		if (r == 0 && *parser.p == '{') {
			parser.p++;
			r = template_parse_action(&parser);
		}
	}
	if (r == 0 && parser.n_open)
		r = template_syntax(&parser, "a range has no {end}");
	if (r == 0)
		*ret_template = TAKE(template);
	return r;
}

void template_free(struct template **template)
{
	struct template *t = TAKE(*template);

	if (!t)
		return;
	CHECK_OBJ(t, TEMPLATE_MAGIC);
	t->magic = 0;
	for (size_t i = 0; i < t->n; i++) {
		free(t->nodes[i].text);
		path_free(&t->nodes[i].path);
		path_free(&t->nodes[i].in_item);
		buf_release(&t->nodes[i].out);
	}
	buf_release(&t->list);
	free(t);
}

void template_use_json(struct template *template)
{
	CHECK_OBJ(template, TEMPLATE_MAGIC);
	template->as_json = true;
}

/* ---- values ------------------------------------------------------------- */

#define JSON_INDENT 4
#define JSON_BEGIN  "[\n    "
#define JSON_END    "\n]\n"

static void template_put_text(
	const struct template *template, const struct template_node *node, struct buf *out)
{
	buf_str(out, template->as_json ? JSON_BEGIN : "");
	if (template->as_json && !node->is_constant)
		json_write_string(bytes_str(node->text), out);
	else
		buf_str(out, node->text);
	buf_str(out, template->as_json ? JSON_END : "");
}

/* Ends the values of a path. */
static void template_put_end(const struct template *template, const struct template_node *node,
	bool given, struct buf *out)
{
	if (template->as_json && node->type == NODE_PATH)
		buf_str(out, given ? JSON_END : "[]\n");
}

/* The values of one path, with blanks between them, also across objects. */
struct template_values {
	struct template *template;
	size_t node;
	struct buf *out;
	bool more;
};

static int template_run_nodes(
	struct template *template, size_t from, size_t to, struct bytes document, struct buf *out);

static size_t template_next(const struct template *template, size_t node)
{
	const struct template_node *n = &template->nodes[node];

	return n->type == NODE_RANGE ? n->end : node + 1;
}

/* Prints a value of a path, or runs the range over it. */
static int template_put_value(void *arg, const struct value *value)
{
	struct template_values *values = arg;
	const struct template_node *node = &values->template->nodes[values->node];
	struct bytes document;
	bool is_json = values->template->as_json, is_first = !values->more;

	values->more = true;
	if (node->type == NODE_PATH && is_json) {
		buf_str(values->out, is_first ? JSON_BEGIN : ",\n    ");
		return display_json(value, JSON_INDENT, 1, values->out);
	}
	if (node->type == NODE_PATH) {
		buf_str(values->out, is_first ? "" : " ");
		return display_sorted(value, values->out);
	}
	int r = value_document(value, &document);
	return r < 0 ? r
		     : template_run_nodes(values->template, values->node + 1, node->end, document,
			       values->out);
}

static int template_run_path(
	const struct path *path, struct bytes document, struct template_values *values)
{
	struct value value;

	if (path)
		return path_eval(path, document, template_put_value, values);
	int r = value_read(document, &value);
	return r < 0 ? r : template_put_value(values, &value);
}

static int template_run_nodes(
	struct template *template, size_t from, size_t to, struct bytes document, struct buf *out)
{
	for (size_t i = from; i < to; i = template_next(template, i)) {
		const struct template_node *node = &template->nodes[i];
		struct template_values values = {template, i, out, false};
		int r = 0;

		if (node->type == NODE_TEXT)
			template_put_text(template, node, out);
		else
			r = template_run_path(node->path, document, &values);
		if (r < 0)
			return r;
		template_put_end(template, node, values.more, out);
	}
	return buf_error(out);
}

/* ---- objects ------------------------------------------------------------ */

int template_begin(struct template *template, bool is_list)
{
	CHECK_OBJ(template, TEMPLATE_MAGIC);
	template->is_list = is_list;
	template->is_whole = false;
	template->seen = 0;
	buf_reset(&template->list);
	for (size_t i = 0; i < template->n; i++) {
		buf_reset(&template->nodes[i].out);
		template->nodes[i].given = false;
	}
	for (size_t i = 0; is_list && i < template->n; i = template_next(template, i))
		template->is_whole |=
			template->nodes[i].type != NODE_TEXT && !template->nodes[i].of_items;
	if (!template->is_whole)
		return 0;
	template->list_at = value_open_map(&template->list);
	value_put_string(&template->list, BYTES_LIT("apiVersion"));
	value_put_string(&template->list, BYTES_LIT("v1"));
	value_put_string(&template->list, BYTES_LIT("items"));
	template->items_at = value_open_array(&template->list);
	return buf_error(&template->list);
}

int template_object(struct template *template, struct bytes body)
{
	CHECK_OBJ(template, TEMPLATE_MAGIC);

	template->seen++;
	if (template->is_whole) {
		buf_bytes_put(&template->list, body);
		return buf_error(&template->list);
	}
	if (!template->is_list)
		return template->n ? template_run_nodes(template, 0, template->n, body,
					     &template->nodes[0].out)
				   : 0;
	for (size_t i = 0; i < template->n; i = template_next(template, i)) {
		struct template_node *node = &template->nodes[i];
		struct template_values values = {template, i, &node->out, node->given};

		if (!node->of_items)
			continue;
		int r = template_run_path(node->in_item, body, &values);
		if (r < 0)
			return r;
		node->given = values.more;
	}
	return 0;
}

static int template_end_list(struct template *template, const char *rv, struct buf *out)
{
	struct buf *list = &template->list;

	value_close(list, template->items_at, (uint32_t) template->seen);
	value_put_string(list, BYTES_LIT("kind"));
	value_put_string(list, BYTES_LIT("List"));
	value_put_string(list, BYTES_LIT("metadata"));
	size_t metadata = value_open_map(list);
	value_put_string(list, BYTES_LIT("resourceVersion"));
	value_put_string(list, bytes_str(rv));
	value_close(list, metadata, 1);
	value_close(list, template->list_at, 4);
	int r = buf_error(list);
	return r < 0 ? r : template_run_nodes(template, 0, template->n, buf_bytes(list), out);
}

int template_end(struct template *template, const char *rv, struct buf *out)
{
	CHECK_OBJ(template, TEMPLATE_MAGIC);
	if (template->is_whole)
		return template_end_list(template, rv, out);
	for (size_t i = 0; i < template->n; i = template_next(template, i)) {
		struct template_node *node = &template->nodes[i];

		if (template->is_list && node->type == NODE_TEXT)
			template_put_text(template, node, out);
		buf_bytes_put(out, buf_bytes(&node->out));
		if (template->is_list)
			template_put_end(template, node, node->given, out);
	}
	return buf_error(out);
}
