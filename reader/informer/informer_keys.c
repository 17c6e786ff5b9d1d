/* SPDX-License-Identifier: Apache-2.0 */
/* The keys lie one after the other in one buffer, packed when more than half of it is dead. */
#include "reader/informer/informer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"
#include "common/hashtable.h"
#include "common/proc.h"

#define KEYS_MAGIC 0x6b68646bu
#define PACK_ABOVE (64u << 10) /* dead bytes */

struct handler_key {
	uint32_t hash; /* the table's */
	uint32_t at;   /* offset of the key in the text */
	uint64_t seq : 63;
	uint64_t seen : 1;
};
_Static_assert(sizeof(struct handler_key) == 16, "the header tells what an object costs");

struct handler_keys {
	uint32_t magic;
	struct hashtable table;
	struct buf text; /* of each key: size u16, bytes */
	size_t dead;     /* bytes of removed keys */
	uint64_t seed;   /* users of the cluster choose the keys */
};

static struct bytes key_at(const struct buf *text, uint32_t at)
{
	uint16_t size;

	memcpy(&size, text->data + at, sizeof(size));
	return BYTES(text->data + at + sizeof(size), size);
}

static bool key_is(const void *item, const void *key, const void *arg)
{
	const struct handler_key *k = item;
	const struct handler_keys *keys = arg;

	return bytes_equal(key_at(&keys->text, k->at), *(const struct bytes *)key);
}

static int key_append(struct buf *text, struct bytes key, uint32_t *ret_at)
{
	uint16_t size = (uint16_t)key.size;

	*ret_at = (uint32_t)text->size;
	buf_put(text, &size, sizeof(size));
	buf_bytes_put(text, key);
	return buf_error(text);
}

int handler_keys_new(struct handler_keys **ret_keys)
{
	CLEANUP(handler_keys_free) struct handler_keys *keys = calloc(1, sizeof(*keys));

	if (!keys)
		return err_set(-ENOMEM, "keys of a handler");
	keys->magic = KEYS_MAGIC;
	keys->table = HASHTABLE_INIT(struct handler_key, key_is, keys);
	buf_init(&keys->text, UINT32_MAX);
	int r = proc_random(&keys->seed, sizeof(keys->seed));
	if (r == 0)
		*ret_keys = TAKE(keys);
	return r;
}

void handler_keys_free(struct handler_keys **keys)
{
	if (!keys || !*keys)
		return;
	struct handler_keys *k = TAKE(*keys);

	CHECK_OBJ(k, KEYS_MAGIC);
	hashtable_release(&k->table);
	buf_release(&k->text);
	k->magic = 0;
	free(k);
}

int handler_keys_put(
	struct handler_keys *keys, struct bytes key, uint64_t seq, uint64_t *ret_before)
{
	CHECK_OBJ(keys, KEYS_MAGIC);
	uint64_t hash = hash_bytes(key, keys->seed);
	struct handler_key *found = hashtable_find(&keys->table, hash, &key);
	uint32_t at;

	if (found) {
		*ret_before = found->seq;
		found->seq = seq;
		found->seen = 1;
		return FOUND;
	}
	int r = key_append(&keys->text, key, &at);
	if (r == 0)
		r = hashtable_add(&keys->table, hash, "the keys of a handler", &found);
	if (r < 0)
		return r;
	found->seq = seq;
	found->seen = 1;
	found->at = at;
	return NOT_FOUND;
}

static void handler_keys_drop(struct handler_keys *keys, struct handler_key *key)
{
	keys->dead += sizeof(uint16_t) + key_at(&keys->text, key->at).size;
	hashtable_remove(&keys->table, key);
}

void handler_keys_remove(struct handler_keys *keys, struct bytes key)
{
	CHECK_OBJ(keys, KEYS_MAGIC);
	struct handler_key *found = hashtable_find(&keys->table, hash_bytes(key, keys->seed), &key);
	struct buf text;

	if (!found)
		return;
	handler_keys_drop(keys, found);
	if (keys->dead <= PACK_ABOVE || keys->dead * 2 <= keys->text.size)
		return;
	/* A new text leaves the dead keys out. Without memory for it the old one stays. */
	buf_init(&text, UINT32_MAX);
	if (!buf_grow(&text, keys->text.size - keys->dead)) {
		err_ignore(buf_error(&text), "the dead keys stay until there is memory");
		buf_release(&text);
		return;
	}
	buf_truncate(&text, 0);
	for (size_t place = 0; (found = hashtable_next(&keys->table, &place));)
		(void)key_append(
			&text, key_at(&keys->text, found->at), &found->at); /* there is room */
	buf_release(&keys->text);
	keys->text = text;
	keys->dead = 0;
}

void handler_keys_begin_replay(struct handler_keys *keys, bool same_journal)
{
	CHECK_OBJ(keys, KEYS_MAGIC);
	struct handler_key *key;

	for (size_t place = 0; (key = hashtable_next(&keys->table, &place));) {
		key->seen = 0;
		if (!same_journal)
			key->seq = 0;
	}
}

int handler_keys_next_unseen(struct handler_keys *keys, size_t *place, struct bytes *ret_key)
{
	CHECK_OBJ(keys, KEYS_MAGIC);
	struct handler_key *key;

	while ((key = hashtable_next(&keys->table, place))) {
		if (key->seen)
			continue;
		*ret_key = key_at(&keys->text, key->at);
		handler_keys_drop(keys, key);
		--*place;
		return FOUND;
	}
	return END;
}

void handler_keys_clear(struct handler_keys *keys)
{
	CHECK_OBJ(keys, KEYS_MAGIC);
	hashtable_clear(&keys->table);
	buf_reset(&keys->text); /* also of the possible cause */
	keys->dead = 0;
}
