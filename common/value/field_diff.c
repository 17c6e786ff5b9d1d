/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/field_diff.h"

#include <ctype.h>
#include <string.h>

#include "common/err.h"
#include "common/hash.h"
#include "common/hashtable.h"
#include "common/proc.h"

struct field_diff {
	struct buf path;
	field_diff_fn *fn;
	void *arg;
	uint64_t seed; /* of hashes; 0: not needed yet */
};

static int field_diff_compare(
	struct field_diff *diff, const struct value *before, const struct value *after);
static int field_diff_containers(
	struct field_diff *diff, const struct value *before, const struct value *after);

static bool field_diff_is_container(const struct value *value)
{
	return value->type == VALUE_MAP || value->type == VALUE_ARRAY;
}

/* Gives the children of VALUE as removed or added ones. */
static int field_diff_into(struct field_diff *diff, const struct value *value, bool added)
{
	struct value empty = {.type = value->type};

	if (!field_diff_is_container(value))
		return 0;
	return added ? field_diff_containers(diff, &empty, value)
		     : field_diff_containers(diff, value, &empty);
}

static int field_diff_give(
	struct field_diff *diff, const struct value *before, const struct value *after)
{
	int r = buf_error(&diff->path);

	if (r == 0)
		r = diff->fn(diff->arg, buf_cstr(&diff->path), before, after);
	if (r != FIELD_DIFF_INTO)
		return r;
	r = before ? field_diff_into(diff, before, false) : 0;
	return r == 0 && after ? field_diff_into(diff, after, true) : r;
}

/* ---- paths -------------------------------------------------------------- */

static bool field_diff_is_plain(struct bytes text)
{
	const unsigned char *p = text.data;

	for (size_t i = 0; i < text.size; i++)
		if (!isalnum(p[i]) && p[i] != '_' && p[i] != '-')
			return false;
	return text.size > 0;
}

static void field_diff_put_quoted(struct buf *path, struct bytes text)
{
	buf_byte(path, '\'');
	buf_escape(path, text, "'\\");
	buf_byte(path, '\'');
}

static void field_diff_put_member(struct buf *path, struct bytes key)
{
	if (field_diff_is_plain(key)) {
		buf_str(path, path->size ? "." : "");
		buf_bytes_put(path, key);
		return;
	}
	buf_byte(path, '[');
	field_diff_put_quoted(path, key);
	buf_byte(path, ']');
}

static void field_diff_put_item(struct buf *path, const char *name, struct bytes text)
{
	if (field_diff_is_plain(text)) {
		buf_printf(path, "[%s=%.*s]", name, BYTES_ARG(text));
		return;
	}
	buf_printf(path, "[?(@.%s==", name);
	field_diff_put_quoted(path, text);
	buf_str(path, ")]");
}

/* ---- children: the members of maps and the items of lists --------------- */

/* Identifies a child: by TEXT, or by its index if that is BYTES_NONE. */
struct field_diff_key {
	struct bytes text;
	size_t place;
};

struct field_diff_child {
	uint32_t hash;
	struct field_diff_key key;
	struct value value;
};

static bool field_diff_is(const void *item, const void *key, const void *arg)
{
	const struct field_diff_child *child = item;
	const struct field_diff_key *wanted = key;

	(void)arg;
	return child->key.place == wanted->place && bytes_equal(child->key.text, wanted->text);
}

/* Returns the hash of KEY. Objects choose their keys: each comparison has its own seed. */
static uint64_t field_diff_hash(const struct field_diff *diff, const struct field_diff_key *key)
{
	return hash_bytes(key->text, diff->seed ^ key->place);
}

/* Sets *RET_KEY for ITEM at index PLACE, or with the key TEXT in a map. NAME is the member that
 * identifies items of a list; NULL: none. Returns: FOUND; NOT_FOUND if ITEM has no such text;
 * ERR_CORRUPT. */
static int field_diff_find_key(bool in_map, const char *name, size_t place, struct bytes text,
	const struct value *item, struct field_diff_key *ret_key)
{
	struct value member;

	if (in_map) {
		*ret_key = (struct field_diff_key){text, 0};
		return FOUND;
	}
	if (!name) {
		*ret_key = (struct field_diff_key){BYTES_NONE, place};
		return FOUND;
	}
	int r = value_find(item, bytes_str(name), &member);
	if (r == FOUND && member.type != VALUE_STRING)
		r = NOT_FOUND;
	if (r == FOUND)
		*ret_key = (struct field_diff_key){member.text, 0};
	return r;
}

/* Puts the children of VALUE into TABLE. Returns: FOUND; NOT_FOUND if an item of a list has no NAME
 * or a duplicate one; ERR_CORRUPT; -ENOMEM. */
static int field_diff_read(const struct field_diff *diff, const struct value *value,
	const char *name, struct hashtable *table)
{
	struct value_iter items;
	struct value item;
	struct field_diff_key key;
	struct field_diff_child *child;
	struct bytes text;
	int r;

	hashtable_clear(table);
	value_iter_init(&items, value);
	for (size_t place = 0; (r = value_iter_next(&items, &text, &item)) == FOUND; place++) {
		r = field_diff_find_key(items.is_map, name, place, text, &item, &key);
		if (r != FOUND)
			return r;
		uint64_t hash = field_diff_hash(diff, &key);
		if (hashtable_find(table, hash, &key)) {
			if (items.is_map)
				/* the first of duplicate keys counts: value_find() */
				continue;
			return NOT_FOUND;
		}
		r = hashtable_add(table, hash, "the children of a value", &child);
		if (r < 0)
			return r;
		child->key = key;
		child->value = item;
	}
	return r == END ? FOUND : r;
}

/* Compares the children of VALUE with OTHERS. REVERSED: they are the newer ones, and only those
 * missing in OTHERS are reported. */
static int field_diff_children(struct field_diff *diff, const struct value *value, const char *name,
	const struct hashtable *others, bool reversed)
{
	size_t path_size = diff->path.size;
	struct value_iter items;
	struct value item;
	struct field_diff_key key;
	struct bytes text;
	int r;

	value_iter_init(&items, value);
	for (size_t place = 0; (r = value_iter_next(&items, &text, &item)) == FOUND; place++) {
		r = field_diff_find_key(items.is_map, name, place, text, &item, &key);
		if (r != FOUND)
			return r;
		const struct field_diff_child *other =
			hashtable_find(others, field_diff_hash(diff, &key), &key);
		if (other && reversed)
			continue;
		if (items.is_map)
			field_diff_put_member(&diff->path, key.text);
		else if (name)
			field_diff_put_item(&diff->path, name, key.text);
		else
			buf_printf(&diff->path, "[%zu]", key.place);
		r = other ? field_diff_compare(diff, &item, &other->value)
			  : field_diff_give(diff, reversed ? NULL : &item, reversed ? &item : NULL);
		diff->path.size = path_size;
		if (r != 0)
			return r;
	}
	return r == END ? 0 : r;
}

/* Compares two maps or two lists. Items are identified by the first name common to all,
 * else by index. */
static int field_diff_containers(
	struct field_diff *diff, const struct value *before, const struct value *after)
{
	static const char *const names[] = {"name", "type", NULL};
	struct hashtable older = HASHTABLE_INIT(struct field_diff_child, field_diff_is, NULL),
			 newer = older;
	const char *name = NULL;
	int r = diff->seed ? 0 : proc_random(&diff->seed, sizeof(diff->seed));

	if (r < 0)
		return r;
	r = NOT_FOUND;
	for (size_t i = before->type == VALUE_MAP ? 2 : 0; r == NOT_FOUND; i++) {
		name = names[i];
		r = field_diff_read(diff, before, name, &older);
		if (r == FOUND)
			r = field_diff_read(diff, after, name, &newer);
	}
	if (r == FOUND)
		r = field_diff_children(diff, before, name, &newer, false);
	if (r == 0)
		r = field_diff_children(diff, after, name, &older, true);
	hashtable_release(&newer);
	hashtable_release(&older);
	return r;
}

/* ---- values ------------------------------------------------------------- */

/* Compares two values of different bytes. */
static int field_diff_unequal(
	struct field_diff *diff, const struct value *before, const struct value *after)
{
	bool is_map = before->type == VALUE_MAP;

	return field_diff_is_container(before) && after->type == before->type &&
			       (is_map || (before->count && after->count))
		       ? field_diff_containers(diff, before, after)
		       : field_diff_give(diff, before, after);
}

static int field_diff_compare(
	struct field_diff *diff, const struct value *before, const struct value *after)
{
	struct bytes a;
	int r = value_document(before, &a);

	if (r < 0)
		return r;
	/* A value beginning with all bytes of another one is that value. */
	return a.size <= after->size + after->inner.size &&
			       memcmp(a.data, after->start, a.size) == 0
		       ? 0
		       : field_diff_unequal(diff, before, after);
}

int field_diff_each(struct bytes before, struct bytes after, field_diff_fn *fn, void *arg)
{
	struct field_diff diff = {.path = BUF_INIT, .fn = fn, .arg = arg};
	struct value a, b;
	int r = value_read(before, &a);

	if (r == 0)
		r = value_read(after, &b);
	if (r == 0 && !bytes_equal(before, after))
		r = field_diff_unequal(&diff, &a, &b);
	buf_release(&diff.path);
	return r;
}
