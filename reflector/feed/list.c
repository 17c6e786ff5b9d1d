/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/list.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/decimal.h"
#include "reflector/net/scan.h"
#include "reflector/net/status.h"

#define LIST_MAGIC 0x4c495354u
#define REST_MAX   (1u << 20) /* of everything but items */

/* The place in the body. */
enum list_place {
	BEFORE,     /* the '{' is next */
	REST,       /* in everything but items */
	VALUE,      /* in an object or array of it */
	FIRST_ITEM, /* '{' or ']' */
	ITEM,       /* '{' */
	IN_ITEM,
	AFTER_ITEM, /* ',' or ']' */
	AFTER,      /* only blanks */
};

struct list {
	uint32_t magic;
	enum list_place place;
	struct list_options options;
	struct cutter cutter;
	struct scan value;
	size_t depth; /* at the end of `rest` */
	bool in_string, escaped;
	bool has_items;
	bool is_array;   /* the list has nothing but items */
	size_t refused;  /* offset in the last piece */
	uint64_t offset; /* bytes of the body taken before this piece */
	uint64_t items;
	struct buf rest; /* the body without its items, and without most blanks */
};

int list_new(const struct list_options *options, struct list **ret_list)
{
	struct list *list = calloc(1, sizeof(*list));

	if (!list)
		return err_set(-ENOMEM, "a list");
	list->magic = LIST_MAGIC;
	list->options = *options;
	if (!list->options.item_max)
		list->options.item_max = LIST_ITEM_MAX;
	buf_init(&list->rest, options->is_file ? list->options.item_max : REST_MAX);
	list->cutter.max = list->options.item_max;
	*ret_list = list;
	return 0;
}

void list_free(struct list **list)
{
	if (!*list)
		return;
	CHECK_OBJ(*list, LIST_MAGIC);
	buf_release(&(*list)->rest);
	buf_release(&(*list)->cutter.partial);
	(*list)->magic = 0;
	free(TAKE(*list));
}

void list_set_max(struct list *list, size_t item_max)
{
	CHECK_OBJ(list, LIST_MAGIC);
	list->cutter.max = item_max;
}

void list_reset(struct list *list)
{
	CHECK_OBJ(list, LIST_MAGIC);
	list->place = BEFORE;
	list->depth = 0;
	list->in_string = list->escaped = list->has_items = list->is_array = false;
	list->offset = list->items = 0;
	buf_reset(&list->rest);
	cutter_reset(&list->cutter);
}

/* Takes a byte of the rest. list_end() reads it: here only its end and the items are found. */
static int list_take_rest(struct list *list, uint8_t c)
{
	if (list->in_string) {
		list->in_string = list->escaped || c != '"';
		list->escaped = !list->escaped && c == '\\';
	} else if (c == '"') {
		list->in_string = true;
	} else if (c == '[' && list->depth == 1 &&
		   scan_ends_with(buf_bytes(&list->rest), "\"items\":")) {
		if (list->has_items)
			return err_say(ERR_PROTOCOL, "'items' twice");
		list->has_items = true;
		list->place = FIRST_ITEM;
	} else if (list->depth && (c == '{' || c == '[')) {
		list->place = VALUE;
		list->value = SCAN_INIT;
		return AGAIN;
	} else if (c == '{') {
		list->depth++;
	} else if ((c == '}' || c == ']') && !--list->depth) {
		list->place = AFTER;
	}
	buf_byte(&list->rest, c);
	return 0;
}

/* Begins the next document of a file. */
static int list_begin(struct list *list, uint8_t c)
{
	list->depth = 0;
	list->has_items = false;
	buf_reset(&list->rest);
	list->is_array = c == '[' && list->options.is_file;
	list->place = list->is_array ? FIRST_ITEM : REST;
	if (c == '{' || list->is_array)
		return list->is_array ? 0 : list_take_rest(list, c);
	return err_say(ERR_PROTOCOL, c == '<' ? STATUS_WEB_PAGE : "no JSON object");
}

/* Takes a byte outside of items; *RET_USED is 0 if it is to be taken again. */
static int list_take_byte(struct list *list, uint8_t c, size_t *ret_used)
{
	int r;

	*ret_used = 1;
	if (!list->in_string && scan_is_space(c)) {
		/* "nu ll" must not become null, and the list an empty one. */
		if (list->place == REST && isalnum(list->rest.data[list->rest.size - 1]))
			buf_byte(&list->rest, ' ');
		return 0;
	}
	switch (list->place) {
	case BEFORE:
		return list_begin(list, c);
	case REST:
		r = list_take_rest(list, c);
		*ret_used = r != AGAIN;
		if (r != 0 || list->place != AFTER || !list->options.is_file)
			return r;
		/* A file's object without items is an item; a list comes after its items. */
		r = buf_error(&list->rest);
		return r < 0 ? r
			     : list->options.item_fn(
				       list->options.arg, buf_bytes(&list->rest), false);
	case AFTER_ITEM:
		if (c != ',' && c != ']')
			return err_say(ERR_PROTOCOL, "no comma between items");
		list->place = c == ',' ? ITEM : list->is_array ? AFTER : REST;
		break;
	case FIRST_ITEM:
	case ITEM:
		if (c == ']' && list->place == FIRST_ITEM) {
			list->place = list->is_array ? AFTER : REST;
			break;
		}
		if (c != '{')
			return err_say(ERR_PROTOCOL, "an item that is no object");
		cutter_reset(&list->cutter);
		list->place = IN_ITEM;
		*ret_used = 0;
		return 0;
	default:
		return list->options.is_file ? list_begin(list, c)
					     : err_say(ERR_PROTOCOL, "bytes after the list");
	}
	if (c == ']')
		buf_byte(&list->rest, c);
	return 0;
}

int list_feed(struct list *list, const void *data, size_t size)
{
	const uint8_t *p = data;

	CHECK_OBJ(list, LIST_MAGIC);
	for (size_t done = 0, used = 0; done < size; done += used) {
		bool in_item = list->place == IN_ITEM;
		struct bytes item;
		int r;

		if (list->place == VALUE) {
			r = scan_container(&list->value, p + done, size - done, &used);
			buf_put(&list->rest, p + done, used);
			list->place = r == FOUND ? REST : VALUE;
		} else if (in_item) {
			r = cutter_take(&list->cutter, p + done, size - done, &used, &item);
			if (r == FOUND) {
				list->items++;
				list->place = AFTER_ITEM;
				r = list->options.item_fn(
					list->options.arg, item, list->cutter.cut);
				cutter_reset(&list->cutter);
			}
		} else {
			r = list_take_byte(list, p[done], &used);
		}
		if (r >= 0)
			r = buf_error(&list->rest);
		list->refused = done + (in_item ? used : 0);
		if (r < 0)
			return err_add(r, "list, byte %" PRIu64, list->offset + list->refused);
	}
	list->offset += size;
	return 0;
}

size_t list_offset(const struct list *list)
{
	return list->refused;
}

void list_find_kind(struct list *list, struct bytes *ret_kind, struct bytes *ret_version)
{
	struct bytes rest = buf_bytes(&list->rest), key, value;
	size_t at = 0;

	*ret_kind = *ret_version = BYTES_NONE;
	while (!list->is_array && scan_member(rest, true, &at, &key, &value) == FOUND) {
		struct bytes text = BYTES_NONE;
		uint8_t *room = list->rest.data + ((const uint8_t *)value.data - list->rest.data);

		if (value.size < 2 || *room != '"')
			continue;
		text = BYTES(room + 1, value.size - 2);
		if (bytes_equal(key, BYTES_LIT("kind")))
			*ret_kind = text;
		else if (bytes_equal(key, BYTES_LIT("apiVersion")))
			*ret_version = text;
	}
}

/* ---- the end ------------------------------------------------------------ */

/* Finds the string KEY; empty: there is none, or null. */
static int list_find_text(struct bytes object, const char *key, struct bytes *ret_value)
{
	struct bytes value;
	int r = scan_find(object, key, &value);
	bool absent = r != FOUND || bytes_equal(value, BYTES_LIT("null"));

	*ret_value = absent ? BYTES_NONE : value;
	return r < 0 ? r : 0;
}

/* Takes the escapes out of VALUE, in its place in the list's rest, not read afterwards. */
static int list_take_text(
	struct list *list, struct bytes value, const char *key, struct bytes *ret_text)
{
	uint8_t *room = value.size
				? list->rest.data + ((const uint8_t *)value.data - list->rest.data)
				: NULL;

	*ret_text = BYTES_LIT("");
	if (value.size && scan_string(value, room, value.size, ret_text) != FOUND)
		return err_say(ERR_PROTOCOL, "list: '%s' is no text", key);
	return 0;
}

int list_end(struct list *list, struct list_page *ret_page)
{
	struct bytes rest = buf_bytes(&list->rest), metadata = BYTES_LIT("{}");
	struct bytes kind = BYTES_NONE, rv = BYTES_NONE, continue_ = BYTES_NONE, key, value;
	struct list_page page = {.remaining = -1, .items = list->items};
	uint64_t count;

	CHECK_OBJ(list, LIST_MAGIC);
	bool ended = list->place == AFTER || (list->options.is_file && list->place == BEFORE);
	if (!ended)
		return err_say(ERR_PROTOCOL,
			"list: the body ends at byte %" PRIu64 ", inside the list", list->offset);
	size_t at = 0;
	int r = END;
	while (!list->is_array && list->place == AFTER &&
		(r = scan_member(rest, false, &at, &key, &value)) == FOUND) {
		if (bytes_equal(key, BYTES_LIT("kind")) && !bytes_equal(value, BYTES_LIT("null")))
			kind = value;
		else if (bytes_equal(key, BYTES_LIT("metadata")))
			metadata = value;
		else if (bytes_equal(key, BYTES_LIT("items")) &&
			 !bytes_equal(value, bytes_str(list->has_items ? "[]" : "null")))
			return err_say(ERR_PROTOCOL, "list: 'items' is no array");
	}
	if (r == END)
		r = list_find_text(metadata, "resourceVersion", &rv);
	if (r >= 0 && rv.size)
		r = list_find_text(metadata, "continue", &continue_);
	if (r < 0)
		return err_add(r, "list");
	if (scan_find(metadata, "remainingItemCount", &value) == FOUND) {
		r = decimal_parse(value, INT64_MAX, &count);
		if (r == 0)
			page.remaining = (int64_t)count;
		err_ignore(r, "it is for the progress on a terminal");
	}
	r = list_take_text(list, kind, "kind", &page.kind);
	if (r == 0)
		r = list_take_text(list, rv, "metadata.resourceVersion", &page.rv);
	if (r == 0)
		r = list_take_text(list, continue_, "metadata.continue", &page.continue_);
	if (r < 0)
		return r;
	/* A definition may name its lists as it likes. */
	if (page.kind.size && !list->options.is_file && !list->has_items &&
		(page.kind.size < 4 ||
			memcmp((const char *)page.kind.data + page.kind.size - 4, "List", 4) != 0))
		return err_say(
			ERR_PROTOCOL, "list: it is a '%.*s' and no List", BYTES_ARG(page.kind));
	if (!page.rv.size && !list->options.is_file)
		return err_say(ERR_PROTOCOL, "list: no metadata.resourceVersion");
	*ret_page = page;
	return 0;
}
