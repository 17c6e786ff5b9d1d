/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include "common/array.h"
#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"

#define YAML_MAGIC 0x59414d4cu
#define DEPTH_MAX  64
#define FILE_MAX   ((size_t)16 << 20)
#define COPIES_MAX ((size_t)64 << 20) /* of the tree */

struct yaml {
	uint32_t magic;
	bool has_root;
	struct yaml_node root;
};

/* One parse: the file's name for messages, libyaml's parser and its document. */
struct yaml_reading {
	const char *name;
	yaml_parser_t parser;
	yaml_document_t document;
	size_t copied; /* bytes: aliases are copies */
};

static int yaml_bad(const struct yaml_reading *reading, const yaml_node_t *node, const char *what)
{
	return err_say(ERR_SYNTAX, "%s:%zu: %s", reading->name, node->start_mark.line + 1, what);
}

/* Loads the next document; it has no root after the last one. */
static int yaml_next_document(struct yaml_reading *reading)
{
	yaml_parser_t *parser = &reading->parser;

	if (yaml_parser_load(parser, &reading->document))
		return 0;
	if (parser->error == YAML_MEMORY_ERROR)
		return err_set(-ENOMEM, "%s", reading->name);
	/* An error of the encoding has no mark; the parser's position is the nearest. */
	size_t line =
		parser->error == YAML_READER_ERROR ? parser->mark.line : parser->problem_mark.line;
	bool is_twice = parser->error == YAML_COMPOSER_ERROR && parser->context;
	return err_say(ERR_SYNTAX, "%s:%zu: %s", reading->name, line + 1,
		is_twice          ? "an anchor is named twice"
		: parser->problem ? parser->problem
				  : "not YAML");
}

static void yaml_node_release(struct yaml_node *node)
{
	for (size_t i = 0; i < node->count; i++) {
		yaml_node_release(&node->items[i]);
		if (node->keys)
			free(node->keys[i]);
	}
	free(node->items);
	free(node->keys);
	free(node->key_lines);
	if (node->text) /* of a kubeconfig: it may be a token or a key */
		explicit_bzero(node->text, strlen(node->text));
	free(node->text);
	*node = (struct yaml_node){0};
}

/* Copies the text of the scalar FROM; refuses a NUL. */
static int yaml_take_scalar(struct yaml_reading *reading, const yaml_node_t *from, char **ret_text)
{
	const char *value = (const char *)from->data.scalar.value;
	size_t size = from->data.scalar.length;

	if (strlen(value) != size)
		return yaml_bad(reading, from, "a NUL character in a string");
	char *text = strdup(value);
	if (!text)
		return err_set(-ENOMEM, "%s", reading->name);
	*ret_text = text;
	return 0;
}

static int yaml_read_node(
	struct yaml_reading *reading, int number, unsigned depth, struct yaml_node *node);

/* Makes room for one more item. The caller counts a complete item only: a node can be released at
 * any time. */
static int yaml_grow(const struct yaml_reading *reading, struct yaml_node *node)
{
	size_t keys_room = node->room, lines_room = node->room; /* the same as of the items */
	int r = 0;

	if (node->type == YAML_MAP)
		r = ARRAY_ROOM(node->keys, node->count, keys_room, 1, reading->name);
	if (r == 0 && node->type == YAML_MAP)
		r = ARRAY_ROOM(node->key_lines, node->count, lines_room, 1, reading->name);
	if (r == 0)
		r = ARRAY_ROOM(node->items, node->count, node->room, 1, reading->name);
	return r;
}

/* ---- nodes -------------------------------------------------------------- */

static int yaml_read_list(struct yaml_reading *reading, const yaml_node_t *from, unsigned depth,
	struct yaml_node *node)
{
	const yaml_node_item_t *item = from->data.sequence.items.start;
	int r = 0;

	for (; r == 0 && item < from->data.sequence.items.top; item++) {
		r = yaml_grow(reading, node);
		if (r < 0)
			return r;
		node->items[node->count] = (struct yaml_node){0};
		r = yaml_read_node(reading, *item, depth + 1, &node->items[node->count++]);
	}
	return r;
}

/* The members FIRST to END of a map come from its merge key; later keys replace them. */
struct yaml_merged {
	size_t first, end;
};

static size_t yaml_find_key(const struct yaml_node *map, const char *key)
{
	size_t i = 0;

	while (i < map->count && strcmp(map->keys[i], key) != 0)
		i++;
	return i;
}

/* Moves the members of FROM to NODE unless an earlier merged map had them. */
static int yaml_merge_map(struct yaml_reading *reading, const yaml_node_t *key,
	struct yaml_node *from, struct yaml_node *node, struct yaml_merged *merged)
{
	if (from->type != YAML_MAP)
		return yaml_bad(reading, key, "<<: must be an alias of a map, or a list of them");
	for (size_t i = 0; i < from->count; i++) {
		size_t at = yaml_find_key(node, from->keys[i]);
		if (at < merged->first) /* readers of YAML disagree on duplicates */
			return err_say(ERR_SYNTAX,
				"%s:%zu: <<: '%s' is set before it; write '<<' first",
				reading->name, key->start_mark.line + 1, from->keys[i]);
		if (at < node->count)
			continue;
		int r = yaml_grow(reading, node);
		if (r < 0)
			return r;
		node->key_lines[at] = from->key_lines[i];
		node->keys[at] = TAKE(from->keys[i]);
		node->items[at] = from->items[i];
		from->items[i] = (struct yaml_node){0};
		merged->end = ++node->count;
	}
	return 0;
}

/* Reads node VALUE of the merge key KEY. */
static int yaml_read_merge(struct yaml_reading *reading, const yaml_node_t *key, int value,
	unsigned depth, struct yaml_node *node, struct yaml_merged *merged)
{
	CLEANUP(yaml_node_release) struct yaml_node from = {0};

	if (merged->end)
		return yaml_bad(reading, key, "<<: twice");
	merged->first = merged->end = node->count;
	int r = yaml_read_node(reading, value, depth + 1, &from);
	if (r == 0 && from.type != YAML_LIST)
		return yaml_merge_map(reading, key, &from, node, merged);
	for (size_t i = 0; r == 0 && i < from.count; i++)
		r = yaml_merge_map(reading, key, &from.items[i], node, merged);
	return r;
}

/* Adds the member of KEY, and sets *RET_AT to its number. */
static int yaml_add_key(struct yaml_reading *reading, const yaml_node_t *key,
	struct yaml_node *node, const struct yaml_merged *merged, size_t *ret_at)
{
	AUTO_FREE char *text = NULL;
	int r = yaml_take_scalar(reading, key, &text);

	if (r < 0)
		return r;
	size_t at = yaml_find_key(node, text), line = key->start_mark.line + 1;
	if (at < node->count && (at < merged->first || at >= merged->end))
		return err_say(ERR_SYNTAX, "%s:%zu: %s: twice, first in line %zu", reading->name,
			line, text, node->key_lines[at]);
	r = at == node->count ? yaml_grow(reading, node) : 0;
	if (r < 0)
		return r;
	if (at == node->count)
		node->keys[node->count++] = TAKE(text);
	else
		yaml_node_release(&node->items[at]);
	node->items[at] = (struct yaml_node){0};
	node->key_lines[at] = line;
	*ret_at = at;
	return 0;
}

static int yaml_read_map(struct yaml_reading *reading, const yaml_node_t *from, unsigned depth,
	struct yaml_node *node)
{
	const yaml_node_pair_t *pair = from->data.mapping.pairs.start;
	struct yaml_merged merged = {0, 0};
	int r = 0;

	for (; r == 0 && pair < from->data.mapping.pairs.top; pair++) {
		const yaml_node_t *key = yaml_document_get_node(&reading->document, pair->key);
		size_t at;

		if (key->type != YAML_SCALAR_NODE)
			return yaml_bad(reading, key, "a key must be a plain word or a string");
		if (strcmp((const char *)key->data.scalar.value, "<<") == 0 &&
			key->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
			r = yaml_read_merge(reading, key, pair->value, depth, node, &merged);
			continue;
		}
		r = yaml_add_key(reading, key, node, &merged, &at);
		if (r == 0)
			r = yaml_read_node(reading, pair->value, depth + 1, &node->items[at]);
	}
	return r;
}

/* Copies node NUMBER of the document. A few lines of aliases could stand for gigabytes, or for
 * themselves: size and depth are limited. */
static int yaml_read_node(
	struct yaml_reading *reading, int number, unsigned depth, struct yaml_node *node)
{
	static const char *const tags[] = {[YAML_SCALAR_NODE] = YAML_STR_TAG,
		[YAML_SEQUENCE_NODE] = YAML_SEQ_TAG,
		[YAML_MAPPING_NODE] = YAML_MAP_TAG};
	const yaml_node_t *from = yaml_document_get_node(&reading->document, number);

	if (depth > DEPTH_MAX)
		return yaml_bad(reading, from, "nested too deeply");
	if (strcmp((const char *)from->tag, tags[from->type]) != 0)
		return yaml_bad(reading, from, "tags are not allowed");
	reading->copied += sizeof(*node);
	if (from->type == YAML_SCALAR_NODE)
		reading->copied += from->data.scalar.length;
	if (reading->copied > COPIES_MAX)
		return yaml_bad(
			reading, from, "it is too large, or its aliases stand for too much");
	node->line = from->start_mark.line + 1;
	if (from->type == YAML_SEQUENCE_NODE) {
		node->type = YAML_LIST;
		return yaml_read_list(reading, from, depth, node);
	}
	if (from->type == YAML_MAPPING_NODE) {
		node->type = YAML_MAP;
		return yaml_read_map(reading, from, depth, node);
	}
	node->type = YAML_SCALAR;
	node->quoted = from->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	return yaml_take_scalar(reading, from, &node->text);
}

static int yaml_read_document(struct yaml_reading *reading, bool first_only, struct yaml *yaml)
{
	int r = yaml_next_document(reading);

	if (r < 0)
		return r;
	yaml->has_root = yaml_document_get_root_node(&reading->document) != NULL;
	if (yaml->has_root)
		r = yaml_read_node(reading, 1, 0, &yaml->root);
	yaml_document_delete(&reading->document);
	if (r < 0 || !yaml->has_root || first_only)
		return r;
	r = yaml_next_document(reading);
	if (r < 0)
		return r;
	const yaml_node_t *second = yaml_document_get_root_node(&reading->document);
	if (second)
		r = err_say(ERR_SYNTAX, "%s:%zu: only one document is allowed", reading->name,
			reading->document.start_mark.line + 1);
	yaml_document_delete(&reading->document);
	return r;
}

static int yaml_parse_some(
	const char *text, size_t size, const char *name, bool first_only, struct yaml **ret_yaml)
{
	CLEANUP(yaml_free) struct yaml *yaml = calloc(1, sizeof(*yaml));
	struct yaml_reading reading = {.name = name};

	if (!yaml || !yaml_parser_initialize(&reading.parser))
		return err_set(-ENOMEM, "%s", name);
	yaml->magic = YAML_MAGIC;
	yaml_parser_set_input_string(
		&reading.parser, (const unsigned char *)(text ? text : ""), size);
	int r = yaml_read_document(&reading, first_only, yaml);
	yaml_parser_delete(&reading.parser);
	if (r < 0)
		return r;
	/* An empty document is one empty scalar. */
	if (yaml->has_root && yaml_is_null(&yaml->root))
		yaml->has_root = false;
	*ret_yaml = TAKE(yaml);
	return 0;
}

int yaml_parse(const char *text, size_t size, const char *name, struct yaml **ret_yaml)
{
	return yaml_parse_some(text, size, name, false, ret_yaml);
}

static int yaml_load_some(int fd, const char *file, bool first_only, struct yaml **ret_yaml)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(-errno, "reading '%s'", file);
	if (S_ISDIR(st.st_mode))
		return err_set(-EISDIR, "reading '%s'", file);
	buf_init(&text, FILE_MAX);
	int r = buf_read_file(&text, fd, file);
	if (r < 0)
		return r;
	return yaml_parse_some(buf_cstr(&text), text.size, file, first_only, ret_yaml);
}

int yaml_load(const char *file, struct yaml **ret_yaml)
{
	AUTO_FD int fd = open(file, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? err_set(-errno, "opening '%s'", file)
		      : yaml_load_some(fd, file, false, ret_yaml);
}

int yaml_load_first(const char *file, struct yaml **ret_yaml)
{
	AUTO_FD int fd = open(file, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? err_set(-errno, "opening '%s'", file)
		      : yaml_load_some(fd, file, true, ret_yaml);
}

int yaml_load_fd(int fd, const char *file, struct yaml **ret_yaml)
{
	return yaml_load_some(fd, file, false, ret_yaml);
}

void yaml_free(struct yaml **yaml)
{
	struct yaml *y = *yaml;

	if (!y)
		return;
	yaml_node_release(&y->root);
	y->magic = 0;
	free(y);
	*yaml = NULL;
}

struct yaml_node *yaml_root(struct yaml *yaml)
{
	CHECK_OBJ(yaml, YAML_MAGIC);
	return yaml->has_root ? &yaml->root : NULL;
}

const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key)
{
	if (!map || map->type != YAML_MAP)
		return NULL;
	for (size_t i = 0; i < map->count; i++) {
		if (strcmp(map->keys[i], key) == 0)
			return yaml_is_null(&map->items[i]) ? NULL : &map->items[i];
	}
	return NULL;
}

const char *yaml_text(const struct yaml_node *map, const char *key)
{
	const struct yaml_node *node = yaml_get(map, key);

	return node && node->type == YAML_SCALAR ? node->text : NULL;
}

bool yaml_is_null(const struct yaml_node *node)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};

	if (node->type != YAML_SCALAR || node->quoted)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(nulls); i++) {
		if (strcmp(node->text, nulls[i]) == 0)
			return true;
	}
	return false;
}
