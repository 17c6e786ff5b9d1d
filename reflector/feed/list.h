/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts the body of a LIST into its items while it comes in. A server may ignore `limit`
 * (docs/protocol.md 4.3), so a body may hold the whole cluster. Only an incomplete item and the
 * members beside the items (kind, apiVersion, metadata) are kept in memory.
 *
 *	list_new(options, &list);
 *	list_feed(list, bytes) for each piece; items come out through the callback
 *	list_end(list, &page) when the body ended well: the list's own metadata
 *	list_reset(list) for the next page
 *
 * `items` may stand anywhere among the keys, be null, absent or empty. The cutter does not parse:
 * items are given as they came, to be parsed one by one.
 */
#ifndef REFLECTOR_FEED_LIST_H
#define REFLECTOR_FEED_LIST_H

#include <stdbool.h>

#include "common/bytes.h"

#define LIST_ITEM_MAX (64u << 20)

/* ITEM is one object's text, borrowed until the callback returns; CUT: it is larger than item_max,
 * and this is its beginning. A negative result ends the feeding and is returned by it. */
typedef int list_item_fn(void *arg, struct bytes item, bool cut);

struct list_options {
	size_t item_max; /* 0: LIST_ITEM_MAX */
	list_item_fn *item_fn;
	void *arg;
	/* The text is a file: documents one after another. A list needs no resourceVersion, an
	 * array is a list, and each other object is an item of its own. A list without its items
	 * follows them. */
	bool is_file;
};

struct list;

int list_new(const struct list_options *options, struct list **ret_list);
void list_free(struct list **list);
void list_reset(struct list *list);
/* Another item_max, from the next body on. */
void list_set_max(struct list *list, size_t item_max);

/* Takes the next bytes of the body. Returns: 0; ERR_PROTOCOL or ERR_TOO_LARGE with the byte
 * offset in the sentence; a negative result of the callback; -ENOMEM. After an error only
 * list_reset() and list_free() may be called. */
int list_feed(struct list *list, const void *data, size_t size);

/* Finds kind and apiVersion of the list of the last item, if they came before the items; else they
 * are empty. Borrowed until the next call. */
void list_find_kind(struct list *list, struct bytes *ret_kind, struct bytes *ret_version);
/* Returns the offset of the byte that list_feed() refused in its last piece. */
size_t list_offset(const struct list *list);

/* Texts borrowed until the next call; "" where the list says nothing. */
struct list_page {
	struct bytes kind;
	struct bytes rv;
	struct bytes continue_;
	int64_t remaining; /* remainingItemCount; -1: the server did not send it */
	uint64_t items;    /* of this body */
};

/* Ends the body. Returns: 0; ERR_PROTOCOL when it is not whole, is no list (but a Status or a
 * Table, for instance), or has no resourceVersion. */
int list_end(struct list *list, struct list_page *ret_page);

#endif
