/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/yaml_values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/number.h"
#include "common/value/value.h"
#include "common/value/yaml_plain.h"

#define COPIES_MAX ((size_t)16 << 20) /* of the nodes of anchors in a document */
#define AHEAD      ((size_t)64 << 10) /* libyaml reads beyond the event */
#define REDACTED   "***HIDDEN***"     /* troubleshoot's */
#define STAND_IN   "-**HIDDEN***"     /* may begin a plain word */
#define MARK       (sizeof(REDACTED) - 1)

/* An open container. */
struct yaml_level {
	size_t opened;
	uint32_t count;
	bool is_map, wants_value;
	char *anchor;
	size_t first_pair; /* of its pairs */
};

/* A pair of an open map. */
struct yaml_pair {
	size_t start, end;
	struct bytes key;
};

/* A node of an anchor, as msgpack. */
struct yaml_copy {
	char *name;
	struct buf body;
};

struct yaml_values {
	const struct yaml_values_options *options;
	yaml_parser_t parser;
	yaml_event_t event;
	struct buf document; /* members of the root but items */
	struct buf item;     /* the item of a List */
	struct buf *out;     /* one of the two */
	struct yaml_level levels[VALUE_DEPTH_MAX];
	size_t depth, base; /* open containers, also those too deep; those outside of the item */
	struct yaml_value value;
	struct err_kept why; /* of value.error */
	char kind[256], api_version[256];
	struct yaml_copy *copies;
	size_t n_copies, copies_room, copied;
	struct yaml_pair *pairs;
	size_t n_pairs, pairs_room;
	size_t since_value;      /* bytes read since the last object */
	uint8_t text[2 * AHEAD]; /* what was read; from AT to END it is not given to libyaml yet */
	size_t at, end, given;   /* GIVEN: the last line */
	bool ended, continues;   /* the input; the last line goes on */
	bool begins;             /* the last line is the mark of a document */
	size_t lines, before;    /* given; before the parser's first */
	int error;               /* of read() */
};

/* ---- input -------------------------------------------------------------- */

/*
 * Fills the room behind the bytes not given yet. Support bundles are redacted as text: a word that
 * begins with REDACTED would be an alias. It is read as STAND_IN, and put back in
 * values_put_scalar().
 */
static int values_fill(struct yaml_values *values)
{
	size_t left = values->end - values->at, n;

	memmove(values->text, values->text + values->at, left);
	int r = values->options->read(
		values->options->arg, values->text + left, sizeof(values->text) - left, &n);
	values->at = 0;
	values->end = left + (r == 0 ? n : 0);
	values->ended = r < 0 || !n;
	for (uint8_t *p = values->text;
		(p = memmem(p, (size_t)(values->text + values->end - p), REDACTED, MARK));)
		memcpy(p, STAND_IN, MARK);
	return r;
}

/* Takes the rest of a line, SIZE bytes at most; empty at the end. */
static int values_take_line(struct yaml_values *values, size_t size, struct bytes *ret_line)
{
	const uint8_t *newline;
	int r = 0;

	while (!(newline = memchr(values->text + values->at, '\n', values->end - values->at)) &&
		!values->ended && values->end - values->at < AHEAD && r == 0)
		r = values_fill(values);
	const uint8_t *text = values->text + values->at;
	size_t n = newline ? (size_t)(newline + 1 - text) : values->end - values->at;

	if (!newline && !values->ended)
		n -= MARK - 1; /* REDACTED may begin there */
	n = n < size ? n : size;
	values->begins = !values->continues && n >= 3 && memcmp(text, "---", 3) == 0 &&
			 (n == 3 || text[3] <= ' ');
	values->continues = n && text[n - 1] != '\n';
	values->lines += n && !values->continues;
	values->given = n;
	values->at += n;
	*ret_line = BYTES(text, n);
	return r;
}

/* Gives libyaml one line: it checks all that it is given before it parses any of it. */
static int values_read(void *arg, unsigned char *room, size_t size, size_t *ret_size)
{
	struct yaml_values *values = arg;
	struct bytes line;
	int r = values_take_line(values, size, &line);

	memcpy(room, line.data, line.size);
	*ret_size = line.size;
	if (r == 0 && (values->since_value += line.size) > values->options->value_max + AHEAD)
		r = err_say(ERR_TOO_LARGE, "an object is larger than %zu MiB",
			values->options->value_max >> 20);
	values->error = r;
	return r == 0;
}

static int values_next(struct yaml_values *values)
{
	yaml_parser_t *parser = &values->parser;

	yaml_event_delete(&values->event);
	if (yaml_parser_parse(parser, &values->event))
		return 0;
	if (values->error < 0)
		return values->error;
	if (parser->error == YAML_MEMORY_ERROR)
		return err_set(-ENOMEM, "reading YAML");
	return err_say(ERR_SYNTAX, "%s", parser->problem ? parser->problem : "not YAML");
}

static void values_bad(struct yaml_values *values, int r)
{
	if (values->value.error == 0)
		err_keep(&values->why);
	if (values->value.error == 0)
		values->value.error = r;
}

/* ---- scalars ------------------------------------------------------------ */

/* Puts a plain key as kubectl reads it: the text of its value, "true" for yes, "8" for 010. */
static void values_put_key(struct buf *out, struct bytes text)
{
	size_t start = out->size;
	char room[NUMBER_TEXT_MAX];
	struct number number;
	struct value value;

	yaml_put_plain(out, text);
	if (out->error || value_read(BYTES(out->data + start, out->size - start), &value) < 0 ||
		value.type == VALUE_STRING)
		return;
	if (value.type == VALUE_BOOL)
		text = value.u.b ? BYTES_LIT("true") : BYTES_LIT("false");
	else if (value_number(&value, &number))
		text = BYTES(room, number.form == NUMBER_INT ? number_format_int(number.u.i, room)
							     : number_format_go(number.u.d, room));
	out->size = start;
	value_put_string(out, text);
}

/* Refuses the tags that are no plain type. */
static void values_check_tag(struct yaml_values *values, const yaml_char_t *tag)
{
	const char *t = (const char *)tag;

	if (t && strcmp(t, "!") != 0 && strcmp(t, YAML_STR_TAG) != 0)
		values_bad(values, err_say(ERR_SYNTAX, "the tag '%.100s' is not allowed", t));
}

static void values_put_scalar(struct yaml_values *values, bool is_key)
{
	const yaml_event_t *event = &values->event;
	struct bytes text = BYTES(event->data.scalar.value, event->data.scalar.length);
	char *end = (char *)event->data.scalar.value + text.size;
	bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

	for (char *p = (char *)event->data.scalar.value;
		(p = memmem(p, (size_t)(end - p), STAND_IN, MARK));)
		memcpy(p, REDACTED, MARK);
	values_check_tag(values, event->data.scalar.tag);
	if (is_key && plain && bytes_equal(text, BYTES_LIT("<<")))
		values_bad(values, err_say(ERR_SYNTAX, "the merge key '<<' is not supported"));
	if (!plain || event->data.scalar.tag)
		value_put_string(values->out, text);
	else if (is_key)
		values_put_key(values->out, text);
	else
		yaml_put_plain(values->out, text);
}

/* ---- anchors ------------------------------------------------------------ */

static void values_copies_clear(struct yaml_values *values)
{
	for (size_t i = 0; i < values->n_copies; i++) {
		free(values->copies[i].name);
		buf_release(&values->copies[i].body);
	}
	values->n_copies = values->copied = 0;
}

static int values_count_copy(struct yaml_values *values, size_t size)
{
	values->copied += size;
	return values->copied > COPIES_MAX
		       ? err_say(ERR_TOO_LARGE, "its aliases stand for too much")
		       : 0;
}

/* Keeps the node from START on for aliases of NAME, which is taken. */
static void values_keep(struct yaml_values *values, char *name, size_t start)
{
	struct yaml_copy copy = {.name = name, .body = BUF_INIT};
	size_t size = values->out->size - start;
	int r = values->out->error ? buf_error(values->out) : values_count_copy(values, size);

	if (r == 0) {
		buf_put(&copy.body, values->out->data + start, size);
		r = buf_error(&copy.body);
	}
	if (r == 0)
		r = ARRAY_ADD(
			values->copies, values->n_copies, values->copies_room, copy, "the anchors");
	if (r < 0) {
		values_bad(values, r);
		free(name);
		buf_release(&copy.body);
	}
}

static void values_put_alias(struct yaml_values *values)
{
	const char *name = (const char *)values->event.data.alias.anchor;

	for (size_t i = values->n_copies; i-- > 0;) {
		struct bytes body = buf_bytes(&values->copies[i].body);

		if (strcmp(values->copies[i].name, name) != 0)
			continue;
		int r = values_count_copy(values, body.size);
		if (r < 0)
			values_bad(values, r);
		else
			buf_bytes_put(values->out, body);
		return;
	}
	values_bad(values, err_say(ERR_SYNTAX, "no anchor &%.100s is before its alias", name));
}

/* ---- keys that are there twice ------------------------------------------- */

static int values_compare_pairs(const void *a, const void *b)
{
	const struct yaml_pair *x = a, *y = b;
	int r = bytes_compare(x->key, y->key);

	return r ? r : (x->start > y->start) - (x->start < y->start);
}

/* Keeps the last pair of each key in the map that ends, of several pairs, as kubectl does. */
static void values_keep_last(struct yaml_values *values, struct yaml_level *level)
{
	CLEANUP(buf_release) struct buf kept = BUF_INIT;
	struct yaml_pair *pairs = values->pairs + level->first_pair;
	size_t n = values->n_pairs - level->first_pair, left = 0;
	struct buf *out = values->out;
	size_t start = pairs->start;
	struct value key;

	for (size_t i = 0; i < n; i++) {
		pairs[i].end = i + 1 < n ? pairs[i + 1].start : out->size;
		(void)value_read(BYTES(out->data + pairs[i].start, pairs[i].end - pairs[i].start),
			&key); /* written before */
		pairs[i].key = key.text;
	}
	qsort(pairs, n, sizeof(*pairs), values_compare_pairs);
	for (size_t i = 0; i < n; i++)
		if (i + 1 == n || !bytes_equal(pairs[i].key, pairs[i + 1].key))
			pairs[left++] = pairs[i];
	if (left == n)
		return;
	for (size_t i = 0; i < left; i++)
		buf_put(&kept, out->data + pairs[i].start, pairs[i].end - pairs[i].start);
	buf_truncate(out, start);
	buf_bytes_put(out, buf_bytes(&kept));
	level->count = (uint32_t)left;
	if (kept.error)
		values_bad(values, buf_error(&kept));
}

/* ---- nodes -------------------------------------------------------------- */

static struct yaml_level *values_level(struct yaml_values *values)
{
	return values->depth > values->base && values->depth <= VALUE_DEPTH_MAX
		       ? &values->levels[values->depth - 1]
		       : NULL;
}

/* Counts the node that begins. Returns true if it is the key of a map. */
static bool values_begin(struct yaml_values *values)
{
	struct yaml_level *level = values_level(values);

	if (!level)
		return false;
	bool is_key = level->is_map && !level->wants_value;
	level->wants_value = is_key;
	level->count += !level->is_map || is_key;
	if (is_key) {
		struct yaml_pair pair = {.start = values->out->size};
		int r = ARRAY_ADD(
			values->pairs, values->n_pairs, values->pairs_room, pair, "the keys");
		if (r < 0)
			values_bad(values, r);
	}
	return is_key;
}

static void values_open(
	struct yaml_values *values, bool is_map, const yaml_char_t *anchor, const yaml_char_t *tag)
{
	const char *own = is_map ? YAML_MAP_TAG : YAML_SEQ_TAG;

	if (values_begin(values))
		values_bad(values, err_say(ERR_SYNTAX, "a key must be a word or a string"));
	if (tag && strcmp((const char *)tag, own) != 0)
		values_check_tag(values, tag);
	if (values->depth++ - values->base >= VALUE_DEPTH_MAX || values->depth > VALUE_DEPTH_MAX) {
		values_bad(values,
			err_say(ERR_TOO_LARGE, "nested deeper than %d levels", VALUE_DEPTH_MAX));
		return;
	}
	struct yaml_level *level = &values->levels[values->depth - 1];
	*level = (struct yaml_level){.is_map = is_map, .first_pair = values->n_pairs};
	if (anchor && !(level->anchor = strdup((const char *)anchor)))
		values_bad(values, err_set(-ENOMEM, "reading YAML"));
	level->opened = is_map ? value_open_map(values->out) : value_open_array(values->out);
}

static void values_end(struct yaml_values *values)
{
	struct yaml_level *level = values_level(values);

	values->depth--;
	if (!level)
		return;
	if (level->count > 1 && level->is_map && values->value.error == 0 && !values->out->error)
		values_keep_last(values, level);
	values->n_pairs = level->first_pair;
	if (values->value.error == 0)
		value_close(values->out, level->opened, level->count);
	if (level->anchor && values->value.error == 0)
		values_keep(values, TAKE(level->anchor), level->opened);
	cleanup_free(&level->anchor);
}

static void values_scalar(struct yaml_values *values)
{
	const yaml_char_t *anchor = values->event.data.scalar.anchor;
	bool is_key = values_begin(values);
	size_t start = values->out->size;

	values_put_scalar(values, is_key);
	char *name = anchor ? strdup((const char *)anchor) : NULL;
	if (name)
		values_keep(values, name, start);
}

/* Takes the current event into the node. */
static void values_take(struct yaml_values *values)
{
	const yaml_event_t *event = &values->event;

	switch (event->type) {
	case YAML_SCALAR_EVENT:
		values_scalar(values);
		break;
	case YAML_ALIAS_EVENT:
		if (values_begin(values))
			values_bad(values, err_say(ERR_SYNTAX, "a key must be a word"));
		values_put_alias(values);
		break;
	case YAML_SEQUENCE_START_EVENT:
		values_open(values, false, event->data.sequence_start.anchor,
			event->data.sequence_start.tag);
		break;
	case YAML_MAPPING_START_EVENT:
		values_open(values, true, event->data.mapping_start.anchor,
			event->data.mapping_start.tag);
		break;
	default:
		values_end(values);
		break;
	}
}

/* Reads the node of the current event to its end. */
static int values_node(struct yaml_values *values)
{
	size_t depth = values->depth;

	for (;;) {
		values_take(values);
		if (values->depth == depth)
			return 0;
		int r = values_next(values);
		if (r < 0)
			return r;
	}
}

/* ---- objects ------------------------------------------------------------ */

static int values_give(struct yaml_values *values, struct buf *body)
{
	struct yaml_value *value = &values->value;

	if (value->error < 0)
		err_restore(&values->why);
	else
		value->error = buf_error(body);
	value->body = buf_bytes(body);
	int r = values->options->value(values->options->arg, value);
	values->since_value = 0;
	value->error = 0;
	buf_reset(body);
	return r;
}

/* Reads the items of a List, each an object. */
static int values_items(struct yaml_values *values)
{
	int r = values_next(values);

	values->out = &values->item;
	for (; r == 0 && values->event.type != YAML_SEQUENCE_END_EVENT; r = values_next(values)) {
		values->value.line = values->before + values->event.start_mark.line + 1;
		values->base = values->depth;
		buf_reset(&values->item);
		bool map = values->event.type == YAML_MAPPING_START_EVENT;
		r = values_node(values);
		if (r == 0 && !map)
			values_bad(values, err_say(ERR_SYNTAX, "it is no object"));
		if (r == 0)
			r = values_give(values, &values->item);
		if (r < 0)
			break;
	}
	values->base = 0;
	values->out = &values->document;
	return r;
}

/* Notes the kind and the version of a document for the items after them. */
static void values_note(struct yaml_values *values, const char *key)
{
	const yaml_event_t *event = &values->event;
	bool is_kind = strcmp(key, "kind") == 0;
	size_t size = event->data.scalar.length;
	char *room = is_kind ? values->kind : values->api_version;

	if (event->type != YAML_SCALAR_EVENT || size >= sizeof(values->kind) ||
		(!is_kind && strcmp(key, "apiVersion") != 0))
		return;
	memcpy(room, event->data.scalar.value, size);
	*(is_kind ? &values->value.kind : &values->value.api_version) = BYTES(room, size);
}

/* Reads the map of a document, from after its start to its end. */
static int values_members(struct yaml_values *values)
{
	int r = values_next(values);

	for (; r == 0 && values->event.type != YAML_MAPPING_END_EVENT; r = values_next(values)) {
		char key[16] = "";

		if (values->event.type == YAML_SCALAR_EVENT &&
			values->event.data.scalar.length < sizeof(key))
			memcpy(key, values->event.data.scalar.value,
				values->event.data.scalar.length);
		r = values_node(values);
		if (r == 0)
			r = values_next(values);
		if (r < 0)
			return r;
		if (strcmp(key, "items") == 0 && values->event.type == YAML_SEQUENCE_START_EVENT) {
			values->levels[0].wants_value = false;
			value_put_nil(&values->document);
			r = values_items(values);
		} else {
			values_note(values, key);
			r = values_node(values);
		}
		if (r < 0)
			return r;
	}
	return r;
}

/* Reads the root of a document. */
static int values_document(struct yaml_values *values)
{
	const yaml_event_t *event = &values->event;
	size_t line = values->before + event->start_mark.line + 1;
	struct value value;
	int r;

	values->value = (struct yaml_value){.line = line};
	values_copies_clear(values);
	buf_reset(&values->document);
	if (event->type == YAML_SEQUENCE_START_EVENT)
		return values_items(values);
	bool is_map = event->type == YAML_MAPPING_START_EVENT;
	if (is_map) {
		values_take(values);
		r = values_members(values);
		if (r < 0)
			return r;
	}
	values_take(values); /* the end of the map, or a word */
	if (!is_map && value_read(buf_bytes(&values->document), &value) == 0 &&
		value.type == VALUE_NIL)
		return 0; /* an empty document */
	if (!is_map)
		values_bad(values, err_say(ERR_SYNTAX, "it is no object"));
	values->value.line = line;
	return values_give(values, &values->document);
}

/* Reads the documents up to the end, or to bad syntax. */
static int values_documents(struct yaml_values *values)
{
	int r = values_next(values);

	while (r == 0 && values->event.type != YAML_STREAM_END_EVENT) {
		bool begins = values->event.type == YAML_DOCUMENT_START_EVENT;

		r = values_next(values);
		if (r == 0 && begins)
			r = values_document(values);
		if (r == 0 && begins)
			r = values_next(values); /* the document's end */
	}
	return r;
}

/* Returns the line of bad syntax, or of the last event. */
static size_t values_line(const struct yaml_values *values)
{
	const yaml_parser_t *parser = &values->parser;

	if (parser->error == YAML_READER_ERROR) /* without a mark: it is in the last line */
		return values->lines + values->continues;
	return values->before + 1 +
	       (parser->problem ? parser->problem_mark.line : values->event.start_mark.line);
}

static void values_close_parser(struct yaml_values *values)
{
	for (size_t i = 0; i < values->depth && i < VALUE_DEPTH_MAX; i++)
		free(values->levels[i].anchor);
	values->depth = 0;
	yaml_event_delete(&values->event);
	yaml_parser_delete(&values->parser);
}

static int values_open_parser(struct yaml_values *values)
{
	if (!yaml_parser_initialize(&values->parser))
		return err_set(-ENOMEM, "reading YAML");
	yaml_parser_set_input(&values->parser, values_read, values);
	values->before = values->lines;
	return 0;
}

/* Goes to the next mark of a document after bad syntax. Returns: FOUND; NOT_FOUND; errors. */
static int values_find_mark(struct yaml_values *values)
{
	const yaml_parser_t *parser = &values->parser;
	/* The mark may be the bad syntax: it ends an open bracket. */
	bool is_met = values->begins && !values->continues && !parser->problem_mark.column &&
		      parser->error != YAML_READER_ERROR && values->lines > values->before + 1;
	struct bytes line;
	int r = 0;

	while (r == 0 && !is_met) {
		r = values_take_line(values, sizeof(values->text), &line);
		if (r == 0 && !line.size)
			return NOT_FOUND;
		is_met = r == 0 && values->begins && !values->continues;
	}
	if (r < 0)
		return r;
	values->at -= values->given; /* libyaml takes it again */
	values->lines--;
	return FOUND;
}

/* Names the document with bad syntax, the error R, if another one follows. Returns: 0; R. */
static int values_go_on(struct yaml_values *values, int r)
{
	struct err_kept why;
	size_t line = values_line(values);

	err_keep(&why);
	int found = values_find_mark(values);
	if (found < 0)
		return found;
	err_restore(&why);
	if (found == NOT_FOUND)
		return r;
	values->value = (struct yaml_value){.line = line, .error = r};
	err_keep(&values->why);
	values->out = &values->document;
	values->base = values->n_pairs = 0;
	buf_reset(&values->item);
	r = values_give(values, &values->document);
	values_close_parser(values);
	return r < 0 ? r : values_open_parser(values);
}

int yaml_values(const struct yaml_values_options *options, size_t *ret_line)
{
	AUTO_FREE struct yaml_values *values = calloc(1, sizeof(*values));

	*ret_line = 0;
	if (!values)
		return err_set(-ENOMEM, "reading YAML");
	values->options = options;
	buf_init(&values->document, options->value_max);
	buf_init(&values->item, options->value_max);
	values->out = &values->document;
	int r = values_open_parser(values);
	bool bad = true;
	while (r == 0 && bad) {
		r = values_documents(values);
		*ret_line = values_line(values);
		bad = r == ERR_SYNTAX && values->parser.error != YAML_NO_ERROR;
		if (bad)
			r = values_go_on(values, r);
	}
	values_close_parser(values);
	values_copies_clear(values);
	free(values->copies);
	free(values->pairs);
	buf_release(&values->document);
	buf_release(&values->item);
	return r;
}
