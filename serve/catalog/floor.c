/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/catalog/floor.h"

#include <stdlib.h>
#include <string.h>

void floor_init(struct floor *floor)
{
	(void)pthread_mutex_init(&floor->lock, NULL);
}

void floor_release(struct floor *floor)
{
	for (size_t i = 0; i < floor->n_keys; i++)
		free(floor->keys[i].key);
	(void)pthread_mutex_destroy(&floor->lock);
}

void floor_unlock(struct floor *floor)
{
	__atomic_store_n(&floor->any,
		floor->written || floor->read || floor->n_keys || floor->all_ns ||
			floor->refused_ns,
		__ATOMIC_RELEASE);
	(void)pthread_mutex_unlock(&floor->lock);
}

bool floor_is_clear(const struct floor *floor)
{
	return !__atomic_load_n(&floor->any, __ATOMIC_ACQUIRE);
}

void floor_raise(struct floor *floor, const char *rv, bool written, uint64_t now_ns)
{
	timeline_rv *place = written ? &floor->written : &floor->read, number;
	uint64_t *until_ns = written ? &floor->written_until_ns : &floor->read_until_ns;

	if (!timeline_rv_parse(bytes_str(rv), &number))
		return;
	(void)pthread_mutex_lock(&floor->lock);
	if (*place < number) {
		*place = number;
		*until_ns = now_ns + FLOOR_RV_NS;
	}
	floor_unlock(floor);
}

void floor_drop_key(struct floor *floor, size_t i)
{
	free(floor->keys[i].key);
	floor->keys[i] = floor->keys[--floor->n_keys];
}

void floor_touch(
	struct floor *floor, const char *key, const struct floor_change *change, uint64_t now_ns)
{
	uint64_t until = now_ns + FLOOR_KEY_NS;
	char *copy = *key ? strdup(key) : NULL;

	(void)pthread_mutex_lock(&floor->lock);
	for (size_t i = 0; copy && i < floor->n_keys; i++)
		if (strcmp(floor->keys[i].key, copy) == 0)
			floor_drop_key(floor, i--);
	if (copy && floor->n_keys < FLOOR_KEYS_MAX) {
		floor->keys[floor->n_keys++] = (struct floor_key){copy, *change, until};
	} else {
		floor->all_ns = until;
		free(copy);
	}
	floor_unlock(floor);
}

void floor_refuse(struct floor *floor, uint64_t now_ns)
{
	(void)pthread_mutex_lock(&floor->lock);
	floor->refused_ns = now_ns + FLOOR_KEY_NS;
	floor_unlock(floor);
}

void floor_lock(struct floor *floor, uint64_t now, bool live)
{
	(void)pthread_mutex_lock(&floor->lock);
	if (live && now >= floor->written_until_ns)
		floor->written = 0;
	if (live && now >= floor->read_until_ns)
		floor->read = 0;
	for (size_t i = 0; i < floor->n_keys; i++)
		if (now >= floor->keys[i].until_ns)
			floor_drop_key(floor, i--);
	if (now >= floor->all_ns)
		floor->all_ns = 0;
	if (now >= floor->refused_ns)
		floor->refused_ns = 0;
}
