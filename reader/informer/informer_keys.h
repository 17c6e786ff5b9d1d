/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers the objects given to a handler (KINF_TRACK_KEYS). After a lapse it gets the
 * differences: for each object its key and the seq of the version given last. An object costs its
 * key and 23 to 45 bytes: 2 for the key's size, and 21 to 43 of the hash table.
 *
 * A replay marks all objects unseen, handler_keys_put() marks one seen, and the unseen ones at its
 * end no longer exist.
 */
#ifndef READER_INFORMER_INFORMER_KEYS_H
#define READER_INFORMER_INFORMER_KEYS_H

#include "common/buf.h"

struct handler_keys;

int handler_keys_new(struct handler_keys **ret_keys);
void handler_keys_free(struct handler_keys **keys);

/* Notes the object's version SEQ. Returns: FOUND with the version before (0: of another journal),
 * NOT_FOUND when it is new, -ENOMEM. */
int handler_keys_put(
	struct handler_keys *keys, struct bytes key, uint64_t seq, uint64_t *ret_before);
void handler_keys_remove(struct handler_keys *keys, struct bytes key);

/* Marks all objects unseen. SAME_JOURNAL false: their seqs can't be compared any more. */
void handler_keys_begin_replay(struct handler_keys *keys, bool same_journal);
/* Removes an unseen object. *PLACE begins with 0 and advances. Returns: FOUND with its key,
 * valid until the next call; END. */
int handler_keys_next_unseen(struct handler_keys *keys, size_t *place, struct bytes *ret_key);

void handler_keys_clear(struct handler_keys *keys);

#endif
