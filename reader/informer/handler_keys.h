/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a handler has been told, so that a lapse can be turned into differences (KINF_TRACK_KEYS): for
 * each object its key and the seq of the version given last: the key, and 16 bytes a slot of an
 * open-addressing table that is three to six eighths full.
 *
 * A replay marks all objects unseen; keys_put marks one seen; what is unseen at the end is gone.
 */
#ifndef READER_HANDLER_KEYS_H
#define READER_HANDLER_KEYS_H

#include "common/buf.h"

struct handler_keys;

int keys_new(struct handler_keys **ret_keys);
void keys_free(struct handler_keys **keys);

/* The object is at version SEQ. FOUND with the version before (0: of another journal), NOT_FOUND when
 * it is new, -ENOMEM. */
int keys_put(struct handler_keys *keys, struct bytes key, uint64_t seq, uint64_t *ret_before);
void keys_remove(struct handler_keys *keys, struct bytes key);

/* SAME_JOURNAL: seqs can still be compared. */
void keys_begin_replay(struct handler_keys *keys, bool same_journal);
/* Takes out one that no keys_put has seen since, *PLACE and those behind it only (begin with 0). FOUND
 * with its key, valid until the next call; END. */
int keys_next_unseen(struct handler_keys *keys, size_t *place, struct bytes *ret_key);

void keys_clear(struct handler_keys *keys);

#endif
