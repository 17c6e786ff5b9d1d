/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/shelf.h"

#include "tests/simulator/memory.h"

#define BLOCK_SLOTS 512

struct shelf_block {
	size_t n;
	struct entry *slots[BLOCK_SLOTS];
};

void shelf_release(struct shelf *shelf)
{
	for (size_t i = 0; i < shelf->n_blocks; i++)
		free(shelf->blocks[i]);
	free(shelf->blocks);
	*shelf = (struct shelf){0};
}

/* Index of the last block whose first key is not above KEY; 0 when there is none. */
static size_t block_of(const struct shelf *shelf, const char *key)
{
	size_t low = 0, high = shelf->n_blocks;

	while (low + 1 < high) {
		size_t middle = (low + high) / 2;

		if (strcmp(shelf->blocks[middle]->slots[0]->key, key) <= 0)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* First slot of BLOCK whose key is not below KEY. */
static size_t slot_of(const struct shelf_block *block, const char *key)
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

struct shelf_place shelf_seek(const struct shelf *shelf, const char *key)
{
	struct shelf_place place = {0, 0};

	if (!shelf->n_blocks)
		return place;
	place.block = block_of(shelf, key);
	place.slot = slot_of(shelf->blocks[place.block], key);
	return place;
}

struct shelf_place shelf_nth(const struct shelf *shelf, size_t n)
{
	struct shelf_place place = {0, n};

	while (place.block < shelf->n_blocks && place.slot >= shelf->blocks[place.block]->n)
		place.slot -= shelf->blocks[place.block++]->n;
	return place;
}

struct entry *shelf_next(const struct shelf *shelf, struct shelf_place *place)
{
	while (place->block < shelf->n_blocks) {
		const struct shelf_block *block = shelf->blocks[place->block];

		if (place->slot < block->n)
			return block->slots[place->slot++];
		place->block++;
		place->slot = 0;
	}
	return NULL;
}

size_t shelf_left(const struct shelf *shelf, struct shelf_place place)
{
	size_t left = 0;

	for (size_t i = place.block; i < shelf->n_blocks; i++)
		left += shelf->blocks[i]->n;
	return left ? left - place.slot : 0;
}

struct entry *shelf_find(const struct shelf *shelf, const char *key)
{
	struct shelf_place place = shelf_seek(shelf, key);
	struct entry *entry = shelf_next(shelf, &place);

	return entry && strcmp(entry->key, key) == 0 ? entry : NULL;
}

static void insert_block(struct shelf *shelf, size_t at, struct shelf_block *block)
{
	if (shelf->n_blocks == shelf->capacity) {
		shelf->capacity = shelf->capacity ? shelf->capacity * 2 : 16;
		shelf->blocks =
			memory_resize(shelf->blocks, shelf->capacity * sizeof(*shelf->blocks));
	}
	memmove(&shelf->blocks[at + 1], &shelf->blocks[at],
		(shelf->n_blocks - at) * sizeof(*shelf->blocks));
	shelf->blocks[at] = block;
	shelf->n_blocks++;
}

/* Splits a full block: in the middle, or, when keys arrive in order, behind its end. */
static void split(struct shelf *shelf, size_t at, bool in_order)
{
	struct shelf_block *full = shelf->blocks[at], *right = memory_take(sizeof(*right));
	size_t keep = in_order ? BLOCK_SLOTS - 1 : BLOCK_SLOTS / 2;

	right->n = full->n - keep;
	memcpy(right->slots, &full->slots[keep], right->n * sizeof(*full->slots));
	full->n = keep;
	insert_block(shelf, at + 1, right);
}

void shelf_insert(struct shelf *shelf, struct entry *entry)
{
	if (!shelf->n_blocks)
		insert_block(shelf, 0, memory_take(sizeof(struct shelf_block)));

	struct shelf_place place = shelf_seek(shelf, entry->key);
	struct shelf_block *block = shelf->blocks[place.block];

	if (block->n == BLOCK_SLOTS) {
		split(shelf, place.block, place.slot == BLOCK_SLOTS);
		place = shelf_seek(shelf, entry->key);
		block = shelf->blocks[place.block];
	}
	memmove(&block->slots[place.slot + 1], &block->slots[place.slot],
		(block->n - place.slot) * sizeof(*block->slots));
	block->slots[place.slot] = entry;
	block->n++;
	shelf->count++;
}

void shelf_remove(struct shelf *shelf, const struct entry *entry)
{
	struct shelf_place place = shelf_seek(shelf, entry->key);
	struct shelf_block *block = shelf->blocks[place.block];

	REQUIRE(place.slot < block->n && block->slots[place.slot] == entry);
	block->n--;
	shelf->count--;
	memmove(&block->slots[place.slot], &block->slots[place.slot + 1],
		(block->n - place.slot) * sizeof(*block->slots));
	if (block->n)
		return;
	free(block);
	shelf->n_blocks--;
	memmove(&shelf->blocks[place.block], &shelf->blocks[place.block + 1],
		(shelf->n_blocks - place.block) * sizeof(*shelf->blocks));
}
