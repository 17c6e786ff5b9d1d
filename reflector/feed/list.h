/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts the body of a LIST into its items while it comes in. Servers ignore `limit` where they
 * please (docs/protocol.md 4.3), so a body may hold the whole cluster: nothing of it is kept but
 * the item that is not whole yet and the little that is not items (kind, apiVersion, metadata).
 *
 *	list_new(options, &list);
 *	list_feed(list, bytes) for each piece; items come out through the callback
 *	list_end(list, &page) when the body ended well: what the list said about itself
 *	list_reset(list) for the next page
 *
 * `items` may stand anywhere among the keys, be null, absent or empty. The cutter does not parse:
 * items are given as they came, to be parsed one by one.
 */
#ifndef REFLECTOR_FEED_LIST_H
#define REFLECTOR_FEED_LIST_H

#include "common/bytes.h"

#define LIST_ITEM_MAX (64u << 20)

/* ITEM is one object's text, borrowed until the callback returns; CUT: it is larger than item_max,
 * and this is its beginning. A negative result ends the feeding and is returned by it. */
typedef int list_item_fn(void *arg, struct bytes item, bool cut);

struct list_options {
	size_t item_max; /* 0: LIST_ITEM_MAX */
	list_item_fn *item_fn;
	void *arg;
};

struct list;

int list_new(const struct list_options *options, struct list **ret_list);
void list_free(struct list **list);
void list_reset(struct list *list);
/* Another item_max, from the next body on. */
void list_set_max(struct list *list, size_t item_max);

/* 0; ERR_PROTOCOL or ERR_TOO_LARGE with the body's byte offset in the sentence; what the callback
 * returned; -ENOMEM. After an error only reset and free are of use. */
int list_feed(struct list *list, const void *data, size_t size);

/* Texts borrowed until the next call; "" where the list says nothing. */
struct list_page {
	struct bytes kind;
	struct bytes rv;
	struct bytes continue_;
	int64_t remaining; /* remainingItemCount, -1: not told */
	uint64_t items;    /* of this body */
};

/* The body ended. ERR_PROTOCOL when it was not whole, when it is no list (a Status or a Table,
 * say), or names no resourceVersion. */
int list_end(struct list *list, struct list_page *ret_page);

#endif
