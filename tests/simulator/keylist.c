/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/keylist.h"

#include "tests/simulator/memory.h"

#define BLOCK_SLOTS 512

struct keylist_block {
	size_t n;
	struct entry *slots[BLOCK_SLOTS];
};

void keylist_release(struct keylist *list)
{
	for (size_t i = 0; i < list->n_blocks; i++)
		free(list->blocks[i]);
	free(list->blocks);
	*list = (struct keylist){0};
}

/* Returns the index of the last block with a first key up to KEY; 0 if there is none. */
static size_t keylist_block_of(const struct keylist *list, const char *key)
{
	size_t low = 0, high = list->n_blocks;

	while (low + 1 < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(list->blocks[middle]->slots[0]->key, key) <= 0)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Returns the first slot of BLOCK with a key from KEY on. */
static size_t keylist_slot_of(const struct keylist_block *block, const char *key)
{
	size_t low = 0, high = block->n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(block->slots[middle]->key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct keylist_place keylist_seek(const struct keylist *list, const char *key)
{
	struct keylist_place place = {0, 0};

	if (!list->n_blocks)
		return place;
	place.block = keylist_block_of(list, key);
	place.slot = keylist_slot_of(list->blocks[place.block], key);
	return place;
}

struct keylist_place keylist_nth(const struct keylist *list, size_t n)
{
	struct keylist_place place = {0, n};

	while (place.block < list->n_blocks && place.slot >= list->blocks[place.block]->n)
		place.slot -= list->blocks[place.block++]->n;
	return place;
}

struct entry *keylist_next(const struct keylist *list, struct keylist_place *place)
{
	while (place->block < list->n_blocks) {
		const struct keylist_block *block = list->blocks[place->block];

		if (place->slot < block->n)
			return block->slots[place->slot++];
		place->block++;
		place->slot = 0;
	}
	return NULL;
}

size_t keylist_left(const struct keylist *list, struct keylist_place place)
{
	size_t left = 0;

	for (size_t i = place.block; i < list->n_blocks; i++)
		left += list->blocks[i]->n;
	return left ? left - place.slot : 0;
}

struct entry *keylist_find(const struct keylist *list, const char *key)
{
	struct keylist_place place = keylist_seek(list, key);
	struct entry *entry = keylist_next(list, &place);

	return entry && strcmp(entry->key, key) == 0 ? entry : NULL;
}

static void keylist_insert_block(struct keylist *list, size_t at, struct keylist_block *block)
{
	if (list->n_blocks == list->capacity) {
		list->capacity = list->capacity ? list->capacity * 2 : 16;
		list->blocks = memory_resize(list->blocks, list->capacity * sizeof(*list->blocks));
	}
	memmove(&list->blocks[at + 1], &list->blocks[at],
		(list->n_blocks - at) * sizeof(*list->blocks));
	list->blocks[at] = block;
	list->n_blocks++;
}

/* Splits a full block in the middle or, when keys arrive in order, before its last key. */
static void keylist_split(struct keylist *list, size_t at, bool in_order)
{
	struct keylist_block *full = list->blocks[at], *right = memory_take(sizeof(*right));
	size_t keep = in_order ? BLOCK_SLOTS - 1 : BLOCK_SLOTS / 2;

	right->n = full->n - keep;
	memcpy(right->slots, &full->slots[keep], right->n * sizeof(*full->slots));
	full->n = keep;
	keylist_insert_block(list, at + 1, right);
}

void keylist_insert(struct keylist *list, struct entry *entry)
{
	if (!list->n_blocks)
		keylist_insert_block(list, 0, memory_take(sizeof(struct keylist_block)));

	struct keylist_place place = keylist_seek(list, entry->key);
	struct keylist_block *block = list->blocks[place.block];

	if (block->n == BLOCK_SLOTS) {
		keylist_split(list, place.block, place.slot == BLOCK_SLOTS);
		place = keylist_seek(list, entry->key);
		block = list->blocks[place.block];
	}
	memmove(&block->slots[place.slot + 1], &block->slots[place.slot],
		(block->n - place.slot) * sizeof(*block->slots));
	block->slots[place.slot] = entry;
	block->n++;
	list->count++;
}

void keylist_remove(struct keylist *list, const struct entry *entry)
{
	struct keylist_place place = keylist_seek(list, entry->key);
	struct keylist_block *block = list->blocks[place.block];

	REQUIRE(place.slot < block->n && block->slots[place.slot] == entry);
	block->n--;
	list->count--;
	memmove(&block->slots[place.slot], &block->slots[place.slot + 1],
		(block->n - place.slot) * sizeof(*block->slots));
	if (block->n)
		return;
	free(block);
	list->n_blocks--;
	memmove(&list->blocks[place.block], &list->blocks[place.block + 1],
		(list->n_blocks - place.block) * sizeof(*list->blocks));
}
