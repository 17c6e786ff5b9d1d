/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/path_set.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/err.h"
#include "common/value/path_internal.h"

#define PATH_SIZE_BIT(size) (UINT64_C(1) << ((size) % 64))

struct path_set_key {
	struct bytes key;
	size_t first, next; /* the first key below it, the next one beside it; 0: none */
	uint64_t sizes;     /* bit size % 64 for each key below: rules out most members of a map */
	uint32_t n_below;
	bool found; /* in the document */
	struct value value;
};

void path_set_release(struct path_set *set)
{
	free(set->keys);
	free(set->members);
	*set = (struct path_set){0};
}

static int path_set_add_key(
	struct path_set *set, size_t above, struct bytes key, size_t *ret_number)
{
	struct path_set_key added = {.key = key};

	if (above < set->n_keys) {
		for (size_t i = set->keys[above].first; i; i = set->keys[i].next) {
			if (bytes_equal(set->keys[i].key, key)) {
				*ret_number = i;
				return 0;
			}
		}
		added.next = set->keys[above].first;
	}
	int r = ARRAY_ADD(set->keys, set->n_keys, set->keys_room, added, "the keys of paths");
	if (r < 0)
		return r;
	*ret_number = set->n_keys - 1;
	if (*ret_number > 0) {
		set->keys[above].first = *ret_number;
		set->keys[above].sizes |= PATH_SIZE_BIT(key.size);
		set->keys[above].n_below++;
	}
	return 0;
}

int path_set_add(struct path_set *set, const struct path *path, size_t *ret_number)
{
	struct path_set_member member = {.path = path};
	struct bytes key;
	int r = set->n_keys ? 0 : path_set_add_key(set, 0, BYTES_NONE, &member.key);

	for (size_t i = 0; r == 0 && i < path_keys(path, i, &key); i++)
		r = path_set_add_key(set, member.key, key, &member.key);
	if (r == 0)
		r = ARRAY_ADD(set->members, set->n_members, set->members_room, member,
			"the set of paths");
	if (r == 0)
		*ret_number = set->n_members - 1;
	return r;
}

int path_set_add_keys(struct path_set *set, const char *keys, size_t *ret_number)
{
	struct path_set_member member = {.path = NULL};
	int r = set->n_keys ? 0 : path_set_add_key(set, 0, BYTES_NONE, &member.key);

	while (r == 0 && *keys) {
		size_t size = strcspn(keys, ".");

		r = path_set_add_key(set, member.key, BYTES(keys, size), &member.key);
		keys += size + (keys[size] == '.');
	}
	if (r == 0)
		r = ARRAY_ADD(set->members, set->n_members, set->members_room, member,
			"the set of paths");
	if (r == 0)
		*ret_number = set->n_members - 1;
	return r;
}

/* Returns the number of the unfound key KEY below ABOVE, or 0. */
static size_t path_set_key_below(const struct path_set *set, size_t above, struct bytes key)
{
	const struct path_set_key *keys = set->keys;

	if (!(keys[above].sizes & PATH_SIZE_BIT(key.size)))
		return 0;
	for (size_t i = keys[above].first; i; i = keys[i].next)
		if (keys[i].key.size == key.size && !keys[i].found && bytes_equal(keys[i].key, key))
			return i;
	return 0;
}

/* Finds the keys below ABOVE, a map. WHOLE: moves *RET_END to the end of the map; otherwise ends
 * with the last key. The recursion is as deep as the longest path. */
static int path_set_find_below(
	struct path_set *set, size_t above, bool whole, const uint8_t **ret_end)
{
	const struct value *map = &set->keys[above].value;
	const uint8_t *p = map->inner.data, *end = p + map->inner.size;
	uint32_t missing = set->keys[above].n_below;
	int r = 0;

	for (uint32_t left = map->count; r == 0 && left && (missing || whole); left--) {
		struct bytes key;

		if (!missing) {
			r = value_pass(&p, end, 2 * (uint64_t)left);
			break;
		}
		if (value_read_short_text(BYTES(p, (size_t)(end - p)), &key))
			p = (const uint8_t *)key.data + key.size;
		else
			r = value_read_key(&p, end, &key);
		size_t number = r == 0 ? path_set_key_below(set, above, key) : 0;
		struct path_set_key *found = &set->keys[number];
		if (r == 0 && number) {
			missing--;
			found->found = true;
			r = value_read(BYTES(p, (size_t)(end - p)), &found->value);
		}
		if (r == 0 && number && found->first && found->value.type == VALUE_MAP)
			r = path_set_find_below(set, number, missing || whole, &p);
		else if (r == 0 && (missing || whole))
			r = value_pass(&p, end, 1);
	}
	*ret_end = p;
	return r;
}

int path_set_find(struct path_set *set, struct bytes document)
{
	const uint8_t *end;

	if (!set->n_keys)
		return 0;
	for (size_t i = 0; i < set->n_keys; i++)
		set->keys[i].found = false;
	int r = value_read(document, &set->keys[0].value);
	if (r < 0)
		return r;
	set->keys[0].found = true;
	return set->keys[0].value.type == VALUE_MAP ? path_set_find_below(set, 0, false, &end) : 0;
}

const struct value *path_set_value(const struct path_set *set, size_t number)
{
	const struct path_set_key *key = &set->keys[set->members[number].key];

	return key->found ? &key->value : NULL;
}

int path_set_eval(const struct path_set *set, size_t number, path_found_fn *found_fn, void *arg)
{
	const struct path_set_member *member = &set->members[number];
	const struct path_set_key *from = &set->keys[member->key];

	return from->found ? path_eval_from(member->path, member->path->n_keys, &from->value,
				     found_fn, arg)
			   : 0;
}

int path_set_first(const struct path_set *set, size_t number, struct value *ret_value)
{
	int r = path_set_eval(set, number, path_keep_first, ret_value);

	return r == END ? FOUND : r == 0 ? NOT_FOUND : r;
}
