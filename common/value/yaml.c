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
#define COPIES_MAX FILE_MAX /* most bytes added by anchors and aliases */

struct yaml {
	uint32_t magic;
	bool has_root;
	struct yaml_node root;
};

/* A copy of an anchor's node. */
struct yaml_anchor {
	char *name;
	struct yaml_node node;
};

/* One parse: the file's name for messages, libyaml's parser and its current event. */
struct yaml_reading {
	const char *name;
	bool first_only; /* ignores all documents but the first */
	yaml_parser_t parser;
	yaml_event_t event;
	struct yaml_anchor *anchors; /* of one name the last counts */
	size_t n_anchors, anchors_room;
	size_t copied; /* bytes */
};

static size_t yaml_line(const struct yaml_reading *reading)
{
	return reading->event.start_mark.line + 1;
}

static int yaml_bad(const struct yaml_reading *reading, const char *what)
{
	return err_say(ERR_SYNTAX, "%s:%zu: %s", reading->name, yaml_line(reading), what);
}

static int yaml_next_event(struct yaml_reading *reading)
{
	yaml_parser_t *parser = &reading->parser;

	yaml_event_delete(&reading->event);
	if (yaml_parser_parse(parser, &reading->event))
		return 0;
	if (parser->error == YAML_MEMORY_ERROR)
		return err_set(-ENOMEM, "%s", reading->name);
	/* An error of the encoding has no mark; the parser's position is the nearest. */
	size_t line =
		parser->error == YAML_READER_ERROR ? parser->mark.line : parser->problem_mark.line;
	return err_say(ERR_SYNTAX, "%s:%zu: %s", reading->name, line + 1,
		parser->problem ? parser->problem : "not YAML");
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

/* Copies the text of the current scalar event; refuses a NUL. */
static int yaml_take_scalar(struct yaml_reading *reading, char **ret_text)
{
	const char *value = (const char *)reading->event.data.scalar.value;
	size_t size = reading->event.data.scalar.length;

	if (strlen(value) != size)
		return yaml_bad(reading, "a NUL character in a string");
	char *text = strdup(value);
	if (!text)
		return err_set(-ENOMEM, "%s", reading->name);
	*ret_text = text;
	return 0;
}

static int yaml_check_tag(const struct yaml_reading *reading, const yaml_char_t *tag)
{
	const char *t = (const char *)tag;

	return t && strcmp(t, "!") != 0 && strcmp(t, YAML_STR_TAG) != 0
		       ? yaml_bad(reading, "tags are not allowed")
		       : 0;
}

static int yaml_read_node(struct yaml_reading *reading, unsigned depth, struct yaml_node *node);

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

/* ---- anchors ------------------------------------------------------------ */

/* Copies FROM; an incomplete copy can be released. A few lines of aliases could expand to
 * gigabytes: their size is limited. */
static int yaml_copy(
	struct yaml_reading *reading, const struct yaml_node *from, struct yaml_node *to)
{
	*to = (struct yaml_node){.type = from->type, .line = from->line, .quoted = from->quoted};
	reading->copied += sizeof(*from) + (from->text ? strlen(from->text) : 0);
	if (reading->copied > COPIES_MAX)
		return yaml_bad(reading, "its aliases stand for too much");
	if (from->text && !(to->text = strdup(from->text)))
		return err_set(-ENOMEM, "%s", reading->name);
	for (size_t i = 0; i < from->count; i++) {
		int r = yaml_grow(reading, to);
		if (r < 0)
			return r;
		if (from->type == YAML_MAP) {
			to->keys[i] = strdup(from->keys[i]);
			if (!to->keys[i])
				return err_set(-ENOMEM, "%s", reading->name);
			to->key_lines[i] = from->key_lines[i];
			reading->copied += strlen(from->keys[i]);
		}
		to->items[to->count++] = (struct yaml_node){0};
		r = yaml_copy(reading, &from->items[i], &to->items[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Keeps the complete NODE for aliases of NAME. NAME is taken. */
static int yaml_add_anchor(struct yaml_reading *reading, char *name, const struct yaml_node *node)
{
	struct yaml_anchor anchor = {.name = name};
	int r = yaml_copy(reading, node, &anchor.node);

	if (r == 0)
		r = ARRAY_ADD(reading->anchors, reading->n_anchors, reading->anchors_room, anchor,
			reading->name);
	if (r < 0) {
		yaml_node_release(&anchor.node);
		free(name);
	}
	return r;
}

static int yaml_read_alias(struct yaml_reading *reading, struct yaml_node *node)
{
	const char *name = (const char *)reading->event.data.alias.anchor;

	for (size_t i = reading->n_anchors; i-- > 0;)
		if (strcmp(reading->anchors[i].name, name) == 0)
			return yaml_copy(reading, &reading->anchors[i].node, node);
	return err_say(ERR_SYNTAX, "%s:%zu: *%s: no complete node before it has the anchor &%s",
		reading->name, yaml_line(reading), name, name);
}

/* ---- nodes -------------------------------------------------------------- */

static int yaml_read_list(struct yaml_reading *reading, unsigned depth, struct yaml_node *node)
{
	int r = yaml_check_tag(reading, reading->event.data.sequence_start.tag);

	node->type = YAML_LIST;
	while (r == 0 && (r = yaml_next_event(reading)) == 0) {
		if (reading->event.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		r = yaml_grow(reading, node);
		if (r < 0)
			return r;
		node->items[node->count] = (struct yaml_node){0};
		r = yaml_read_node(reading, depth + 1, &node->items[node->count++]);
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
static int yaml_merge_map(struct yaml_reading *reading, struct yaml_node *from,
	struct yaml_node *node, struct yaml_merged *merged)
{
	if (from->type != YAML_MAP)
		return yaml_bad(reading, "<<: must be an alias of a map, or a list of them");
	for (size_t i = 0; i < from->count; i++) {
		size_t at = yaml_find_key(node, from->keys[i]);
		if (at < merged->first) /* readers of YAML disagree on duplicates */
			return err_say(ERR_SYNTAX,
				"%s:%zu: <<: '%s' is set before it; write '<<' first",
				reading->name, yaml_line(reading), from->keys[i]);
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

/* Reads the value of the merge key '<<'. */
static int yaml_read_merge(struct yaml_reading *reading, unsigned depth, struct yaml_node *node,
	struct yaml_merged *merged)
{
	CLEANUP(yaml_node_release) struct yaml_node value = {0};

	if (merged->end)
		return yaml_bad(reading, "<<: twice");
	merged->first = merged->end = node->count;
	int r = yaml_next_event(reading);
	if (r == 0)
		r = yaml_read_node(reading, depth + 1, &value);
	if (r == 0 && value.type != YAML_LIST)
		return yaml_merge_map(reading, &value, node, merged);
	for (size_t i = 0; r == 0 && i < value.count; i++)
		r = yaml_merge_map(reading, &value.items[i], node, merged);
	return r;
}

/* Adds the member KEY, which is taken, and sets *RET_AT to its number. */
static int yaml_add_key(struct yaml_reading *reading, char **key, struct yaml_node *node,
	const struct yaml_merged *merged, size_t *ret_at)
{
	size_t at = yaml_find_key(node, *key);

	if (at < node->count && (at < merged->first || at >= merged->end))
		return err_say(ERR_SYNTAX, "%s:%zu: %s: twice, first in line %zu", reading->name,
			yaml_line(reading), *key, node->key_lines[at]);
	int r = at == node->count ? yaml_grow(reading, node) : 0;
	if (r < 0)
		return r;
	if (at == node->count)
		node->keys[node->count++] = TAKE(*key);
	else
		yaml_node_release(&node->items[at]);
	node->items[at] = (struct yaml_node){0};
	node->key_lines[at] = yaml_line(reading);
	*ret_at = at;
	return 0;
}

static int yaml_read_map(struct yaml_reading *reading, unsigned depth, struct yaml_node *node)
{
	const yaml_event_t *event = &reading->event;
	struct yaml_merged merged = {0, 0};
	int r = yaml_check_tag(reading, event->data.mapping_start.tag);

	node->type = YAML_MAP;
	while (r == 0 && (r = yaml_next_event(reading)) == 0) {
		AUTO_FREE char *key = NULL;
		size_t at;

		if (event->type == YAML_MAPPING_END_EVENT)
			return 0;
		if (event->type != YAML_SCALAR_EVENT)
			return yaml_bad(reading, "a key must be a plain word or a string");
		r = event->data.scalar.anchor ? yaml_bad(reading, "a key may have no anchor")
					      : yaml_check_tag(reading, event->data.scalar.tag);
		if (r == 0)
			r = yaml_take_scalar(reading, &key);
		if (r < 0)
			return r;
		if (strcmp(key, "<<") == 0 && event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
			r = yaml_read_merge(reading, depth, node, &merged);
			continue;
		}
		r = yaml_add_key(reading, &key, node, &merged, &at);
		if (r == 0)
			r = yaml_next_event(reading);
		if (r == 0)
			r = yaml_read_node(reading, depth + 1, &node->items[at]);
	}
	return r;
}

/* Copies the anchor of the current event's node; NULL: none. */
static int yaml_take_anchor(const struct yaml_reading *reading, char **ret_anchor)
{
	const yaml_event_t *event = &reading->event;
	const yaml_char_t *anchor =
		event->type == YAML_SCALAR_EVENT           ? event->data.scalar.anchor
		: event->type == YAML_SEQUENCE_START_EVENT ? event->data.sequence_start.anchor
		: event->type == YAML_MAPPING_START_EVENT  ? event->data.mapping_start.anchor
							   : NULL;

	*ret_anchor = anchor ? strdup((const char *)anchor) : NULL;
	return anchor && !*ret_anchor ? err_set(-ENOMEM, "%s", reading->name) : 0;
}

/* Reads the node of the current event, up to the node's last event. */
static int yaml_read_node(struct yaml_reading *reading, unsigned depth, struct yaml_node *node)
{
	const yaml_event_t *event = &reading->event;
	AUTO_FREE char *anchor = NULL;

	if (depth > DEPTH_MAX)
		return yaml_bad(reading, "nested too deeply");
	int r = yaml_take_anchor(reading, &anchor);
	if (r < 0)
		return r;
	node->line = yaml_line(reading);
	switch (event->type) {
	case YAML_SCALAR_EVENT:
		r = yaml_check_tag(reading, event->data.scalar.tag);
		node->type = YAML_SCALAR;
		node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE ||
			       event->data.scalar.tag;
		if (r == 0)
			r = yaml_take_scalar(reading, &node->text);
		break;
	case YAML_SEQUENCE_START_EVENT:
		r = yaml_read_list(reading, depth, node);
		break;
	case YAML_MAPPING_START_EVENT:
		r = yaml_read_map(reading, depth, node);
		break;
	case YAML_ALIAS_EVENT:
		return yaml_read_alias(reading, node);
	default:
		return yaml_bad(reading, "a value is missing");
	}
	return r == 0 && anchor ? yaml_add_anchor(reading, TAKE(anchor), node) : r;
}

static int yaml_read_stream(struct yaml_reading *reading, struct yaml *yaml)
{
	int r = yaml_next_event(reading); /* the stream's start */

	if (r == 0)
		r = yaml_next_event(reading);
	if (r < 0 || reading->event.type == YAML_STREAM_END_EVENT)
		return r;
	r = yaml_next_event(reading); /* after the start of the document */
	if (r < 0)
		return r;
	yaml->has_root = true;
	r = yaml_read_node(reading, 0, &yaml->root);
	if (r == 0)
		r = yaml_next_event(reading); /* the document's end */
	if (r < 0 || reading->first_only)
		return r;
	r = yaml_next_event(reading);
	if (r < 0)
		return r;
	if (reading->event.type != YAML_STREAM_END_EVENT)
		return yaml_bad(reading, "only one document is allowed");
	return 0;
}

static int yaml_parse_some(
	const char *text, size_t size, const char *name, bool first_only, struct yaml **ret_yaml)
{
	CLEANUP(yaml_free) struct yaml *yaml = calloc(1, sizeof(*yaml));
	struct yaml_reading reading = {.name = name, .first_only = first_only};

	if (!yaml || !yaml_parser_initialize(&reading.parser))
		return err_set(-ENOMEM, "%s", name);
	yaml->magic = YAML_MAGIC;
	yaml_parser_set_input_string(
		&reading.parser, (const unsigned char *)(text ? text : ""), size);
	int r = yaml_read_stream(&reading, yaml);
	yaml_event_delete(&reading.event);
	yaml_parser_delete(&reading.parser);
	for (size_t i = 0; i < reading.n_anchors; i++) {
		yaml_node_release(&reading.anchors[i].node);
		free(reading.anchors[i].name);
	}
	free(reading.anchors);
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

const struct yaml_node *yaml_root(const struct yaml *yaml)
{
	CHECK_OBJ(yaml, YAML_MAGIC);
	return yaml->has_root ? &yaml->root : NULL;
}

struct yaml_node *yaml_edit(struct yaml *yaml)
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
	for (size_t i = 0; i < sizeof(nulls) / sizeof(*nulls); i++) {
		if (strcmp(node->text, nulls[i]) == 0)
			return true;
	}
	return false;
}
