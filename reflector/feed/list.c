/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "reflector/net/scan.h"
#include "reflector/net/status.h"

#define LIST_MAGIC 0x4c495354u
#define REST_MAX   (1u << 20) /* of everything but items */

/* The cutter's place in the list's own object. */
enum list_place {
	BEFORE,    /* the '{' is next */
	FIRST_KEY, /* a key or '}' */
	KEY,       /* a key */
	IN_KEY,
	COLON,
	VALUE,
	IN_STRING,
	IN_LITERAL,
	IN_CONTAINER, /* any value but `items`: kept with the rest */
	AFTER_VALUE,  /* ',' or '}' */
	FIRST_ITEM,   /* '{' or ']' */
	ITEM,         /* '{' */
	IN_ITEM,
	AFTER_ITEM, /* ',' or ']' */
	AFTER,      /* only blanks */
};

struct list {
	uint32_t magic;
	enum list_place place;
	struct list_options options;
	struct cutter cutter;
	struct scan scan; /* of a container in the rest */
	bool escaped;     /* in a key or string */
	bool has_items;
	size_t key_begin; /* of the key in `rest` */
	uint64_t offset;  /* bytes of the body taken before this piece */
	uint64_t items;
	struct buf rest; /* the body without its items */
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
	buf_init(&list->rest, REST_MAX);
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
	list->scan = SCAN_INIT;
	list->escaped = list->has_items = false;
	list->offset = list->items = 0;
	buf_reset(&list->rest);
	cutter_reset(&list->cutter);
}

static int list_begin_value(struct list *list, uint8_t c, size_t *ret_used)
{
	struct bytes key =
		BYTES(list->rest.data + list->key_begin, list->rest.size - list->key_begin);
	/* `rest` ends with the value's key and the colon. */
	bool is_items = bytes_starts(key, BYTES_LIT("\"items\""));

	if (is_items && c == '[') {
		if (list->has_items)
			return err_say(ERR_PROTOCOL, "'items' twice");
		list->has_items = true;
		buf_byte(&list->rest, c);
		list->place = FIRST_ITEM;
		return 0;
	}
	if (is_items && c != 'n')
		return err_say(ERR_PROTOCOL, "'items' is no array");
	if (c == '}' || c == ']' || c == ',' || c == ':')
		return err_say(ERR_PROTOCOL, "no value");
	if (c == '{' || c == '[') {
		list->scan = SCAN_INIT;
		list->place = IN_CONTAINER;
		*ret_used = 0; /* its first bracket is taken with it */
		return 0;
	}
	list->escaped = false;
	list->place = c == '"' ? IN_STRING : IN_LITERAL;
	buf_byte(&list->rest, c);
	return 0;
}

/* Takes a byte outside of items and containers; *RET_USED is 0 if it is to be taken again. */
static int list_take_byte(struct list *list, uint8_t c, size_t *ret_used)
{
	bool in_text =
		list->place == IN_KEY || list->place == IN_STRING || list->place == IN_LITERAL;

	*ret_used = 1;
	if (!in_text && scan_is_space(c))
		return 0;
	switch (list->place) {
	case BEFORE:
		if (c != '{')
			return err_say(ERR_PROTOCOL, c == '<' ? STATUS_WEB_PAGE : "no JSON object");
		list->place = FIRST_KEY;
		break;
	case FIRST_KEY:
	case KEY:
		if (c == '}' && list->place == FIRST_KEY) {
			list->place = AFTER;
			break;
		}
		if (c != '"')
			return err_say(ERR_PROTOCOL, "no key");
		list->key_begin = list->rest.size;
		list->escaped = false;
		list->place = IN_KEY;
		break;
	case IN_KEY:
	case IN_STRING:
		if (list->escaped)
			list->escaped = false;
		else if (c == '\\')
			list->escaped = true;
		else if (c == '"')
			list->place = list->place == IN_KEY ? COLON : AFTER_VALUE;
		break;
	case COLON:
		if (c != ':')
			return err_say(ERR_PROTOCOL, "no colon");
		list->place = VALUE;
		break;
	case VALUE:
		return list_begin_value(list, c, ret_used);
	case IN_LITERAL:
		if (!scan_is_space(c) && c != ',' && c != '}')
			break;
		list->place = AFTER_VALUE;
		*ret_used = 0;
		return 0;
	case AFTER_VALUE:
		if (c != ',' && c != '}')
			return err_say(ERR_PROTOCOL, "no comma between keys");
		list->place = c == ',' ? KEY : AFTER;
		break;
	case FIRST_ITEM:
	case ITEM:
		if (c == ']' && list->place == FIRST_ITEM) {
			list->place = AFTER_VALUE;
			break;
		}
		if (c != '{')
			return err_say(ERR_PROTOCOL, "an item that is no object");
		cutter_reset(&list->cutter);
		list->place = IN_ITEM;
		*ret_used = 0;
		return 0;
	case AFTER_ITEM:
		if (c != ',' && c != ']')
			return err_say(ERR_PROTOCOL, "no comma between items");
		list->place = c == ',' ? ITEM : AFTER_VALUE;
		if (c == ',')
			return 0; /* `rest` has none of these commas */
		break;
	default:
		return err_say(ERR_PROTOCOL, "bytes after the list");
	}
	buf_byte(&list->rest, c);
	return 0;
}

int list_feed(struct list *list, const void *data, size_t size)
{
	const uint8_t *p = data;

	CHECK_OBJ(list, LIST_MAGIC);
	for (size_t done = 0, used = 0; done < size; done += used) {
		bool scanning = list->place == IN_ITEM || list->place == IN_CONTAINER;
		struct bytes item;
		int r;

		if (list->place == IN_ITEM) {
			r = cutter_take(&list->cutter, p + done, size - done, &used, &item);
			if (r == FOUND) {
				list->items++;
				list->place = AFTER_ITEM;
				r = list->options.item_fn(
					list->options.arg, item, list->cutter.cut);
				cutter_reset(&list->cutter);
			}
		} else if (list->place == IN_CONTAINER) {
			r = scan_container(&list->scan, p + done, size - done, &used);
			if (r >= 0)
				buf_put(&list->rest, p + done, used);
			if (r == FOUND)
				list->place = AFTER_VALUE;
		} else {
			r = list_take_byte(list, p[done], &used);
		}
		if (r >= 0)
			r = buf_error(&list->rest);
		if (r < 0)
			return err_add(r, "list, byte %" PRIu64,
				list->offset + done + (scanning ? used : 0));
	}
	list->offset += size;
	return 0;
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

static int64_t list_read_count(struct bytes metadata)
{
	struct bytes value;
	int64_t count = 0;

	if (scan_find(metadata, "remainingItemCount", &value) != FOUND || value.size > 15)
		return -1;
	for (size_t i = 0; i < value.size; i++) {
		uint8_t c = ((const uint8_t *)value.data)[i];

		if (c < '0' || c > '9')
			return -1;
		count = count * 10 + (c - '0');
	}
	return count;
}

int list_end(struct list *list, struct list_page *ret_page)
{
	struct bytes rest = buf_bytes(&list->rest), metadata = BYTES_LIT("{}");
	struct bytes kind, rv = BYTES_NONE, continue_ = BYTES_NONE;
	struct list_page page = {.remaining = -1, .items = list->items};

	CHECK_OBJ(list, LIST_MAGIC);
	if (list->place != AFTER)
		return err_say(ERR_PROTOCOL,
			"list: the body ends at byte %" PRIu64 ", inside the list", list->offset);
	int r = list_find_text(rest, "kind", &kind);
	if (r >= 0)
		r = scan_find(rest, "metadata", &metadata);
	if (r == FOUND)
		r = list_find_text(metadata, "resourceVersion", &rv);
	if (r >= 0 && rv.size)
		r = list_find_text(metadata, "continue", &continue_);
	if (r < 0)
		return err_add(r, "list");
	page.remaining = list_read_count(metadata);
	r = list_take_text(list, kind, "kind", &page.kind);
	if (r == 0)
		r = list_take_text(list, rv, "metadata.resourceVersion", &page.rv);
	if (r == 0)
		r = list_take_text(list, continue_, "metadata.continue", &page.continue_);
	if (r < 0)
		return r;
	if (page.kind.size &&
		(page.kind.size < 4 ||
			memcmp((const char *)page.kind.data + page.kind.size - 4, "List", 4) != 0))
		return err_say(
			ERR_PROTOCOL, "list: it is a '%.*s' and no List", BYTES_ARG(page.kind));
	if (!page.rv.size && !list->options.any_rv)
		return err_say(ERR_PROTOCOL, "list: no metadata.resourceVersion");
	*ret_page = page;
	return 0;
}
