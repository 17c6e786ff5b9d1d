/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/field_diff.h"

#include <ctype.h>
#include <string.h>

#include "common/err.h"

struct field_diff {
	struct buf path;
	field_diff_fn *fn;
	void *arg;
};

static int field_diff_compare(
	struct field_diff *diff, const struct value *before, const struct value *after);

static int field_diff_give(
	struct field_diff *diff, const struct value *before, const struct value *after)
{
	int r = buf_error(&diff->path);

	return r < 0 ? r : diff->fn(diff->arg, buf_cstr(&diff->path), before, after);
}

/* ---- paths ----------------------------------------------------------------------------------- */

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
	const char *p = text.data;

	buf_byte(path, '\'');
	for (size_t i = 0; i < text.size; i++) {
		if (p[i] == '\'' || p[i] == '\\')
			buf_byte(path, '\\');
		buf_byte(path, (uint8_t)p[i]);
	}
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

/* ITEM is a member or an item of a value, OTHER what the other value has in its place, or NULL. If REVERSED, ITEM is of the
 * newer value, and is reported only if the older one lacks it. */
static int field_diff_child(
	struct field_diff *diff, const struct value *item, const struct value *other, bool reversed)
{
	if (!other)
		return field_diff_give(diff, reversed ? NULL : item, reversed ? item : NULL);
	return reversed ? 0 : field_diff_compare(diff, item, other);
}

/* ---- maps ------------------------------------------------------------------------------------ */

/* Compares the members of MAP with those of OTHER; REVERSED as in field_diff_child(). */
static int field_diff_members(struct field_diff *diff, const struct value *map,
	const struct value *other, bool reversed)
{
	size_t size = diff->path.size;
	struct value_iter pairs;
	struct value item, found;
	struct bytes key;
	int r;

	value_iter_init(&pairs, map);
	while ((r = value_iter_next(&pairs, &key, &item)) == FOUND) {
		r = value_find(other, key, &found);
		field_diff_put_member(&diff->path, key);
		if (r >= 0)
			r = field_diff_child(diff, &item, r == FOUND ? &found : NULL, reversed);
		diff->path.size = size;
		if (r != 0)
			return r;
	}
	return r == END ? 0 : r;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Finds the item of LIST whose member NAME is TEXT, or the item at PLACE if NAME is NULL. Returns
 * FOUND, NOT_FOUND or ERR_CORRUPT. */
static int field_diff_find_item(const struct value *list, const char *name, struct bytes text,
	size_t place, struct value *ret_item)
{
	struct value_iter items;
	struct value member;
	struct bytes key;
	int r;

	value_iter_init(&items, list);
	for (size_t i = 0; (r = value_iter_next(&items, &key, ret_item)) == FOUND; i++) {
		if (!name && i == place)
			return FOUND;
		r = name ? value_find(ret_item, bytes_str(name), &member) : NOT_FOUND;
		if (r < 0 || (r == FOUND && member.type == VALUE_STRING &&
				     bytes_equal(member.text, text)))
			return r;
	}
	return r == END ? NOT_FOUND : r;
}

/* Returns whether each item of LIST is a map with a string NAME that no other has: 1, 0 or
 * ERR_CORRUPT. */
static int field_diff_identified(const struct value *list, const char *name)
{
	struct value_iter items;
	struct value item, member, first;
	struct bytes key;
	size_t place = 0;
	int r;

	value_iter_init(&items, list);
	while ((r = value_iter_next(&items, &key, &item)) == FOUND) {
		r = value_find(&item, bytes_str(name), &member);
		if (r != FOUND || member.type != VALUE_STRING)
			return r < 0 ? r : 0;
		r = field_diff_find_item(list, name, member.text, 0, &first);
		if (r != FOUND || first.start != item.start)
			return r < 0 ? r : 0;
		place++;
	}
	return r == END ? place > 0 : r;
}

/* Compares the items of LIST with those of OTHER, as field_diff_members() does the members of
 * maps. */
static int field_diff_items(struct field_diff *diff, const struct value *list,
	const struct value *other, const char *name, bool reversed)
{
	size_t size = diff->path.size, place = 0;
	struct value_iter items;
	struct value item, found, member = {0};
	struct bytes key;
	int r;

	value_iter_init(&items, list);
	for (; (r = value_iter_next(&items, &key, &item)) == FOUND; place++) {
		if (name) {
			r = value_find(&item, bytes_str(name), &member);
			if (r < 0)
				return r;
			field_diff_put_item(&diff->path, name, member.text);
		} else {
			buf_printf(&diff->path, "[%zu]", place);
		}
		r = field_diff_find_item(other, name, member.text, place, &found);
		if (r >= 0)
			r = field_diff_child(diff, &item, r == FOUND ? &found : NULL, reversed);
		diff->path.size = size;
		if (r != 0)
			return r;
	}
	return r == END ? 0 : r;
}

static int field_diff_lists(
	struct field_diff *diff, const struct value *before, const struct value *after)
{
	static const char *const names[] = {"name", "type"};
	const char *name = NULL;
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(names) / sizeof(names[0]); i++) {
		name = names[i];
		r = field_diff_identified(before, name);
		if (r == 1)
			r = field_diff_identified(after, name);
	}
	if (r < 0)
		return r;
	name = r == 1 ? name : NULL;
	r = field_diff_items(diff, before, after, name, false);
	return r ? r : field_diff_items(diff, after, before, name, true);
}

/* ---- values ---------------------------------------------------------------------------------- */

static int field_diff_compare(
	struct field_diff *diff, const struct value *before, const struct value *after)
{
	struct bytes a, b;
	int r = value_document(before, &a);

	if (r == 0)
		r = value_document(after, &b);
	if (r < 0 || bytes_equal(a, b))
		return r;
	if (before->type == VALUE_MAP && after->type == VALUE_MAP) {
		r = field_diff_members(diff, before, after, false);
		return r ? r : field_diff_members(diff, after, before, true);
	}
	if (before->type == VALUE_ARRAY && after->type == VALUE_ARRAY && before->count &&
		after->count)
		return field_diff_lists(diff, before, after);
	return field_diff_give(diff, before, after);
}

int field_diff_each(struct bytes before, struct bytes after, field_diff_fn *fn, void *arg)
{
	struct field_diff diff = {.path = BUF_INIT, .fn = fn, .arg = arg};
	struct value a, b;
	int r = value_read(before, &a);

	if (r == 0)
		r = value_read(after, &b);
	if (r == 0)
		r = field_diff_compare(&diff, &a, &b);
	buf_release(&diff.path);
	return r;
}
