/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/path_set.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/check.h"
#include "common/err.h"
#include "common/value/path_internal.h"

#define PATH_SIZE_BIT(size) (UINT64_C(1) << ((size) % 64))

struct path_set_key {
	struct bytes key;
	bool is_items;      /* [*]: all of the map or array above, beside no other key */
	bool is_last;       /* of a path: its values are kept */
	size_t first, next; /* the first key below it, the next one beside it; 0: none */
	uint64_t sizes;     /* bit size % 64 for each key below: rules out most members of a map */
	uint32_t n_below;
	uint64_t map;             /* number of the map in which it was found last */
	size_t found, last_found; /* its values, counted from 1; 0: none */
};

struct path_set_found {
	struct value value;
	size_t next; /* of the same key */
};

void path_set_release(struct path_set *set)
{
	free(set->keys);
	free(set->members);
	free(set->found);
	*set = (struct path_set){0};
}

/* Finds or adds KEY below *NUMBER, moves *NUMBER to it. Returns: 0; NOT_FOUND if [*] is there and
 * KEY is none, or the reverse; -ENOMEM. */
static int path_set_add_key(struct path_set *set, struct bytes key, bool is_items, size_t *number)
{
	struct path_set_key added = {.key = key, .is_items = is_items};
	size_t above = *number;

	added.next = set->n_keys ? set->keys[above].first : 0;
	for (size_t i = added.next; i; i = set->keys[i].next) {
		if (set->keys[i].is_items != is_items)
			return NOT_FOUND;
		if (bytes_equal(set->keys[i].key, key)) {
			*number = i;
			return 0;
		}
	}
	int r = ARRAY_ADD(set->keys, set->n_keys, set->keys_room, added, "the keys of paths");
	if (r < 0)
		return r;
	*number = set->n_keys - 1;
	if (*number > 0) {
		set->keys[above].first = *number;
		set->keys[above].sizes |= is_items ? UINT64_MAX : PATH_SIZE_BIT(key.size);
		set->keys[above].n_below++;
	}
	return 0;
}

static int path_set_add_member(
	struct path_set *set, struct path_set_member member, size_t *ret_number)
{
	int r = ARRAY_ADD(
		set->members, set->n_members, set->members_room, member, "the set of paths");

	if (r < 0)
		return r;
	set->keys[member.key].is_last = true;
	*ret_number = set->n_members - 1;
	return 0;
}

int path_set_add(struct path_set *set, const struct path *path, size_t *ret_number)
{
	struct path_set_member member = {.path = path};
	bool takes_items = !path->arrays_only && !path_has_union(path);
	int r = set->n_keys ? 0 : path_set_add_key(set, BYTES_NONE, false, &member.key);

	for (; r == 0 && member.steps < path->count; member.steps++) {
		const struct path_step *step = &path->steps[member.steps];

		if (step->type == STEP_KEY)
			r = path_set_add_key(set, path_step_key(path, step), false, &member.key);
		else if (step->type == STEP_ALL && takes_items)
			r = path_set_add_key(set, BYTES_NONE, true, &member.key);
		else
			break;
		if (r == NOT_FOUND)
			break;
	}
	return r < 0 ? r : path_set_add_member(set, member, ret_number);
}

int path_set_add_keys(struct path_set *set, const char *keys, size_t *ret_number)
{
	struct path_set_member member = {.path = NULL};
	int r = set->n_keys ? 0 : path_set_add_key(set, BYTES_NONE, false, &member.key);

	while (r == 0 && *keys && !strchr("[:|}", *keys)) {
		size_t size = strcspn(keys, ".[:|}");

		r = path_set_add_key(set, BYTES(keys, size), false, &member.key);
		REQUIRE(r != NOT_FOUND);
		keys += size + (keys[size] == '.');
	}
	return r < 0 ? r : path_set_add_member(set, member, ret_number);
}

/* Returns the number of KEY below ABOVE, not yet found in MAP, or 0. */
static size_t path_set_key_below(
	const struct path_set *set, size_t above, struct bytes key, uint64_t map)
{
	const struct path_set_key *keys = set->keys;

	if (!(keys[above].sizes & PATH_SIZE_BIT(key.size)))
		return 0;
	for (size_t i = keys[above].first; i; i = keys[i].next)
		if (keys[i].is_items || (keys[i].key.size == key.size && keys[i].map != map &&
						bytes_equal(keys[i].key, key)))
			return i;
	return 0;
}

static int path_set_keep(struct path_set *set, struct path_set_key *key, const struct value *value)
{
	const struct path_set_found found = {.value = *value};
	int r = ARRAY_ADD(set->found, set->n_found, set->found_room, found, "the values of paths");

	if (r < 0)
		return r;
	*(key->found ? &set->found[key->last_found - 1].next : &key->found) = set->n_found;
	key->last_found = set->n_found;
	return 0;
}

static int path_set_visit(
	struct path_set *set, size_t number, bool whole, const uint8_t **at, const uint8_t *end);

/* Visits the keys below ABOVE in MAP. WHOLE: moves *AT to the end of the map; otherwise ends with
 * the last key. */
static int path_set_visit_map(struct path_set *set, size_t above, const struct value *map,
	bool whole, const uint8_t **at, const uint8_t *end)
{
	uint32_t missing = set->keys[above].n_below;
	uint64_t map_number = ++set->maps;
	const uint8_t *p = map->inner.data;
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
		size_t number = r == 0 ? path_set_key_below(set, above, key, map_number) : 0;
		if (number) {
			missing -= !set->keys[number].is_items;
			set->keys[number].map = map_number;
			r = path_set_visit(set, number, missing || whole, &p, end);
		} else if (r == 0) {
			r = value_pass(&p, end, 1);
		}
	}
	*at = p;
	return r;
}

/* Keeps the value at *AT if it is one of key NUMBER's, and visits the keys below. WHOLE: moves *AT
 * to its end. The recursion is as deep as the longest path. */
static int path_set_visit(
	struct path_set *set, size_t number, bool whole, const uint8_t **at, const uint8_t *end)
{
	struct path_set_key *key = &set->keys[number];
	struct value value;
	int r = value_read(BYTES(*at, (size_t)(end - *at)), &value);

	if (r == 0 && key->is_last)
		r = path_set_keep(set, key, &value);
	if (r < 0)
		return r;
	if (value.type == VALUE_MAP && key->first)
		return path_set_visit_map(set, number, &value, whole, at, end);
	if (value.type != VALUE_ARRAY || !key->first || !set->keys[key->first].is_items)
		return value_pass(at, end, whole);
	*at = value.inner.data;
	for (uint32_t left = value.count; r == 0 && left; left--)
		r = path_set_visit(set, key->first, whole || left > 1, at, end);
	return r;
}

int path_set_find(struct path_set *set, struct bytes document)
{
	const uint8_t *at = document.data;

	set->n_found = 0;
	for (size_t i = 0; i < set->n_keys; i++)
		set->keys[i].found = 0;
	return set->n_keys ? path_set_visit(set, 0, false, &at, at + document.size) : 0;
}

const struct value *path_set_value(const struct path_set *set, size_t number)
{
	const struct path_set_key *key = &set->keys[set->members[number].key];

	return key->found ? &set->found[key->found - 1].value : NULL;
}

int path_set_eval(const struct path_set *set, size_t number, path_found_fn *found_fn, void *arg)
{
	const struct path_set_member *member = &set->members[number];
	int r = 0;

	for (size_t i = set->keys[member->key].found; r == 0 && i; i = set->found[i - 1].next)
		r = path_eval_from(
			member->path, member->steps, &set->found[i - 1].value, found_fn, arg);
	return r;
}

int path_set_first(const struct path_set *set, size_t number, struct value *ret_value)
{
	int r = path_set_eval(set, number, path_keep_first, ret_value);

	return r == END ? FOUND : r == 0 ? NOT_FOUND : r;
}
