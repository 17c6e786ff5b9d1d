/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear probing with backward shift: no tombstones, so tables that live for weeks stay as fast as new
 * ones. Key texts lie behind each other in one buffer, which is packed when half of it is dead.
 */
#include "reader/informer/handler_keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"

#define KEYS_MAGIC 0x6b68646bu
#define FIRST_SIZE 64u
#define PACK_ABOVE (64u << 10)

struct slot {
	uint64_t seq : 63;
	uint64_t seen : 1;
	uint32_t at; /* of the text, 0: free */
	uint32_t hash;
};
_Static_assert(sizeof(struct slot) == 16, "1.3 to 2.7 of them an object, and the key");

struct handler_keys {
	uint32_t magic;
	struct slot *slots;
	size_t size, n;
	struct buf text; /* u16 size, bytes; the first byte is nobody's */
	size_t dead;     /* bytes of it */
	uint64_t seed;
};

/* FNV-1a, seeded: names are made by whoever may create objects. */
static uint32_t hash_key(const struct handler_keys *keys, struct bytes key)
{
	const uint8_t *p = key.data;
	uint64_t h = keys->seed;

	for (size_t i = 0; i < key.size; i++)
		h = (h ^ p[i]) * UINT64_C(0x100000001b3);
	h ^= h >> 29;
	h *= UINT64_C(0xff51afd7ed558ccd);
	return (uint32_t)(h >> 32);
}

static struct bytes text_at(const struct buf *text, uint32_t at)
{
	uint16_t size;

	memcpy(&size, text->data + at, sizeof(size));
	return BYTES(text->data + at + sizeof(size), size);
}

static int put_text(struct buf *text, struct bytes key, uint32_t *ret_at)
{
	uint16_t size = (uint16_t)key.size;

	*ret_at = (uint32_t)text->size;
	buf_put(text, &size, sizeof(size));
	buf_bytes_put(text, key);
	return buf_error(text);
}

/* The slot of KEY, or the free one where it would be. */
static size_t find(const struct handler_keys *keys, struct bytes key, uint32_t hash)
{
	size_t mask = keys->size - 1, i = hash & mask;

	while (keys->slots[i].at && (keys->slots[i].hash != hash ||
		!bytes_equal(text_at(&keys->text, keys->slots[i].at), key)))
		i = (i + 1) & mask;
	return i;
}

static int grow(struct handler_keys *keys)
{
	size_t size = keys->size * 2;
	struct slot *slots = calloc(size, sizeof(*slots));

	if (!slots)
		return err_set(-ENOMEM, "keys of a handler");
	for (size_t k = 0; k < keys->size; k++) {
		size_t i = keys->slots[k].hash & (size - 1);

		if (!keys->slots[k].at)
			continue;
		while (slots[i].at)
			i = (i + 1) & (size - 1);
		slots[i] = keys->slots[k];
	}
	free(keys->slots);
	keys->slots = slots;
	keys->size = size;
	return 0;
}

/* Leaves the dead texts behind. Without memory they stay. */
static void pack(struct handler_keys *keys)
{
	struct buf text;

	buf_init(&text, UINT32_MAX);
	buf_byte(&text, 0);
	if (!buf_grow(&text, keys->text.size - keys->dead))
		goto out;
	buf_truncate(&text, 1);
	for (size_t i = 0; i < keys->size; i++)
		if (keys->slots[i].at)
			(void)put_text(&text, text_at(&keys->text, keys->slots[i].at),
				&keys->slots[i].at); /* there is room */
	buf_release(&keys->text);
	keys->text = text;
	keys->dead = 0;
	return;
out:
	buf_release(&text);
	err_clear();
}

int keys_new(struct handler_keys **ret_keys)
{
	CLEANUP(keys_free) struct handler_keys *keys = calloc(1, sizeof(*keys));

	if (!keys)
		return err_set(-ENOMEM, "keys of a handler");
	keys->magic = KEYS_MAGIC;
	int r = proc_random(&keys->seed, sizeof(keys->seed));
	if (r < 0)
		return r;
	keys->slots = calloc(FIRST_SIZE, sizeof(*keys->slots));
	if (!keys->slots)
		return err_set(-ENOMEM, "keys of a handler");
	keys->size = FIRST_SIZE;
	buf_init(&keys->text, UINT32_MAX);
	buf_byte(&keys->text, 0);
	r = buf_error(&keys->text);
	if (r == 0)
		*ret_keys = TAKE(keys);
	return r;
}

void keys_free(struct handler_keys **keys)
{
	if (!keys || !*keys)
		return;
	struct handler_keys *k = TAKE(*keys);

	CHECK_OBJ(k, KEYS_MAGIC);
	free(k->slots);
	buf_release(&k->text);
	k->magic = 0;
	free(k);
}

int keys_put(struct handler_keys *keys, struct bytes key, uint64_t seq, uint64_t *ret_before)
{
	CHECK_OBJ(keys, KEYS_MAGIC);
	uint32_t hash = hash_key(keys, key), at;
	size_t i = find(keys, key, hash);

	if (keys->slots[i].at) {
		*ret_before = keys->slots[i].seq;
		keys->slots[i].seq = seq;
		keys->slots[i].seen = 1;
		return FOUND;
	}
	if ((keys->n + 1) * 4 > keys->size * 3) {
		int r = grow(keys);

		if (r < 0)
			return r;
		i = find(keys, key, hash);
	}
	int r = put_text(&keys->text, key, &at);
	if (r < 0)
		return r;
	keys->slots[i] = (struct slot){.seq = seq, .seen = 1, .at = at, .hash = hash};
	keys->n++;
	return NOT_FOUND;
}

/* Is slot K, which stands at or behind free slot I, better off there? */
static bool may_move(const struct handler_keys *keys, size_t k, size_t i)
{
	size_t mask = keys->size - 1, home = keys->slots[k].hash & mask;

	return ((k - home) & mask) >= ((k - i) & mask);
}

static void remove_slot(struct handler_keys *keys, size_t i)
{
	size_t mask = keys->size - 1;

	keys->dead += sizeof(uint16_t) + text_at(&keys->text, keys->slots[i].at).size;
	keys->n--;
	for (size_t k = (i + 1) & mask; keys->slots[k].at; k = (k + 1) & mask)
		if (may_move(keys, k, i)) {
			keys->slots[i] = keys->slots[k];
			i = k;
		}
	keys->slots[i].at = 0;
}

void keys_remove(struct handler_keys *keys, struct bytes key)
{
	CHECK_OBJ(keys, KEYS_MAGIC);
	size_t i = find(keys, key, hash_key(keys, key));

	if (!keys->slots[i].at)
		return;
	remove_slot(keys, i);
	if (keys->dead > PACK_ABOVE && keys->dead * 2 > keys->text.size)
		pack(keys);
}

void keys_begin_replay(struct handler_keys *keys, bool same_journal)
{
	CHECK_OBJ(keys, KEYS_MAGIC);
	for (size_t i = 0; i < keys->size; i++) {
		keys->slots[i].seen = 0;
		if (!same_journal)
			keys->slots[i].seq = 0;
	}
}

int keys_next_unseen(struct handler_keys *keys, size_t *place, struct bytes *ret_key)
{
	CHECK_OBJ(keys, KEYS_MAGIC);
	/* What removing moves comes to this place, or from the table's start to its end, where it was
	 * looked at already. */
	for (; *place < keys->size; ++*place) {
		struct slot *slot = &keys->slots[*place];

		if (!slot->at || slot->seen)
			continue;
		*ret_key = text_at(&keys->text, slot->at);
		remove_slot(keys, *place);
		return FOUND;
	}
	return END;
}

void keys_clear(struct handler_keys *keys)
{
	CHECK_OBJ(keys, KEYS_MAGIC);
	memset(keys->slots, 0, keys->size * sizeof(*keys->slots));
	buf_reset(&keys->text); /* also of the error that may be why */
	buf_byte(&keys->text, 0);
	keys->n = keys->dead = 0;
}
