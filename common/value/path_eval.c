/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "common/array.h"
#include "common/err.h"
#include "common/value/number.h"
#include "common/value/path_internal.h"

/* A walk along the steps up to TO, for FOUND_FN. */
struct path_walk {
	const struct path *path;
	size_t to;
	path_found_fn *found_fn;
	void *arg;
};

static int path_follow(const struct path_walk *walk, size_t i, const struct value *value);

/* ---- comparisons -------------------------------------------------------- */

/* Reads a number; a text may be one beside a number. */
static bool path_to_number(const struct value *value, struct number *ret_number)
{
	if (value->type != VALUE_STRING)
		return value_number(value, ret_number);
	ret_number->form = NUMBER_DOUBLE;
	return number_value(value->text, &ret_number->u.d);
}

static double path_to_double(const struct number *number)
{
	return number->form == NUMBER_INT ? (double)number->u.i : number->u.d;
}

/* Returns 1 or 0 for true and false, also as texts; else -1. */
static int path_to_bool(const struct value *value)
{
	if (value->type == VALUE_BOOL)
		return value->u.b;
	if (value->type != VALUE_STRING)
		return -1;
	return bytes_equal(value->text, BYTES_LIT("true"))    ? 1
	       : bytes_equal(value->text, BYTES_LIT("false")) ? 0
							      : -1;
}

/* Compares two values of one type; a text may stand for a number or a boolean. Returns false if it
 * can't; sets *RET_ORDER. */
static bool path_compare(const struct value *a, const struct value *b, int *ret_order)
{
	struct number x, y;

	if (a->type == VALUE_STRING && b->type == VALUE_STRING) {
		*ret_order = bytes_compare(a->text, b->text);
		return true;
	}
	if (path_to_number(a, &x) && path_to_number(b, &y)) {
		double v = path_to_double(&x), w = path_to_double(&y);

		*ret_order = (v > w) - (v < w);
		if (x.form == NUMBER_INT && y.form == NUMBER_INT) /* exact beyond 2^53 */
			*ret_order = (x.u.i > y.u.i) - (x.u.i < y.u.i);
		return true;
	}
	int is_a = path_to_bool(a), is_b = path_to_bool(b);
	if (is_a >= 0 && is_b >= 0)
		*ret_order = is_a - is_b;
	else if (a->type == VALUE_NIL && b->type == VALUE_NIL)
		*ret_order = 0;
	else
		return false;
	return true;
}

static bool path_relation_holds(
	enum path_operator operator, const struct value * left, const struct value *right)
{
	int order;

	if (!path_compare(left, right, &order))
		return operator== PATH_NOT_EQUAL;
	switch (operator) {
	case PATH_EQUAL:
		return order == 0;
	case PATH_NOT_EQUAL:
		return order != 0;
	case PATH_LESS:
		return order < 0;
	case PATH_LESS_EQUAL:
		return order <= 0;
	case PATH_GREATER:
		return order > 0;
	default:
		return order >= 0;
	}
}

/* The comparison of a filter for one item. */
struct path_comparison {
	const struct path_filter *filter;
	const struct value *item;
	const struct value *left;
	bool holds;
};

static int path_find_any(void *arg, const struct value *value)
{
	(void)value;
	*(bool *)arg = true;
	return END;
}

/* Calls FN for each value of OPERAND in ITEM. Returns: 0, END, errors. */
static int path_each_operand(
	const struct path_operand *operand, const struct value *item, path_found_fn *fn, void *arg)
{
	struct value constant;

	if (operand->path)
		return path_eval_from(operand->path, 0, item, fn, arg);
	int r = value_read(BYTES(operand->constant.data, operand->constant.size), &constant);
	return r < 0 ? r : fn(arg, &constant);
}

static int path_compare_pair(void *arg, const struct value *right)
{
	struct path_comparison *c = arg;

	c->holds = path_relation_holds(c->filter->operator, c->left, right);
	return c->holds ? END : 0;
}

static int path_compare_left(void *arg, const struct value *left)
{
	struct path_comparison *c = arg;

	c->left = left;
	return path_each_operand(&c->filter->right, c->item, path_compare_pair, c);
}

/* One matching value is enough, as in a field selector. Returns: FOUND if the filter holds for
 * ITEM, NOT_FOUND, errors. */
static int path_passes(const struct path_filter *filter, const struct value *item)
{
	struct path_comparison c = {.filter = filter, .item = item, .holds = !filter->left.path};
	int r = 0;

	if (filter->operator!= PATH_EXISTS) {
		c.holds = false;
		r = path_each_operand(&filter->left, item, path_compare_left, &c);
	} else if (filter->left.path) {
		r = path_eval_from(filter->left.path, 0, item, path_find_any, &c.holds);
	}
	return r < 0 ? r : c.holds ? FOUND : NOT_FOUND;
}

/* ---- steps -------------------------------------------------------------- */

/* Follows the rest of the path from each item that passes the step. */
static int path_follow_items(const struct path_walk *walk, size_t i, const struct value *here)
{
	const struct path_step *step = &walk->path->steps[i];
	int64_t from = step->from, to = step->to, n = here->count;
	struct value_iter iter;
	struct value item;
	int r;

	if (here->type != VALUE_ARRAY &&
		(here->type != VALUE_MAP || step->type != STEP_ALL || walk->path->arrays_only))
		return 0;
	if (step->type == STEP_SLICE) {
		from = from < 0 ? from + n : from;
		to = to < 0 ? to + n : to;
		from = from < 0 ? 0 : from;
	}
	value_iter_init(&iter, here);
	for (int64_t k = 0; (r = value_iter_next(&iter, NULL, &item)) == FOUND; k++) {
		if (step->type == STEP_SLICE && (k < from || k >= to || (k - from) % step->by))
			continue;
		if (step->type == STEP_FILTER) {
			r = path_passes(step->more.filter, &item);
			if (r < 0)
				return r;
			if (r != FOUND)
				continue;
		}
		r = path_follow(walk, i + 1, &item);
		if (r != 0)
			return r;
	}
	return r < 0 ? r : 0;
}

/* Values found by one part of a path. */
struct path_values {
	struct value *items;
	size_t n, room;
};

static int path_keep(void *arg, const struct value *value)
{
	struct path_values *values = arg;

	return ARRAY_ADD(values->items, values->n, values->room, *value, "the values of a path");
}

/* Keeps VALUE before number I of VALUES. */
static int path_keep_before(struct path_values *values, size_t i, const struct value *value)
{
	int r = path_keep(values, value);

	for (size_t k = values->n; r == 0 && --k > i;)
		values->items[k] = values->items[k - 1];
	if (r == 0)
		values->items[i] = *value;
	return r;
}

/* Returns true if VALUE has items: a walk over it then passes all its bytes. */
static bool path_has_items(const struct value *value)
{
	return (value->type == VALUE_MAP || value->type == VALUE_ARRAY) && value->count;
}

/* Collects the members KEY of VALUE, which has items, and of all maps within it in one pass: outer
 * maps first. Sets *RET_SIZE to the bytes of VALUE. */
static int path_collect(
	struct bytes key, const struct value *value, struct path_values *found, size_t *ret_size)
{
	size_t own = found->n, size;
	bool is_found = value->type != VALUE_MAP;
	struct value_iter iter;
	struct value item;
	struct bytes name;
	int r;

	value_iter_init(&iter, value);
	while ((r = value_iter_next(&iter, &name, &item)) == FOUND) {
		if (!is_found && bytes_equal(name, key)) {
			is_found = true;
			r = path_keep_before(found, own, &item);
			if (r < 0)
				return r;
		}
		if (!path_has_items(&item))
			continue;
		r = path_collect(key, &item, found, &size);
		if (r < 0)
			return r;
		value_iter_pass(&iter, size);
	}
	*ret_size = (size_t)(iter.next - value->start);
	return r == END ? 0 : r;
}

/* Follows the rest of the path from VALUE and from each map, list and text within it. */
static int path_descend(
	const struct path_walk *walk, size_t i, const struct value *value, size_t *ret_size)
{
	bool nested = value->type == VALUE_MAP || value->type == VALUE_ARRAY;
	struct value_iter iter;
	struct value item;
	size_t size;
	int r;

	*ret_size = 0;
	if (nested ? !value->count : value->type != VALUE_STRING || !value->text.size)
		return 0;
	r = path_follow(walk, i + 1, value);
	if (r != 0 || !nested)
		return r;
	value_iter_init(&iter, value);
	while ((r = value_iter_next(&iter, NULL, &item)) == FOUND) {
		r = path_descend(walk, i, &item, &size);
		if (r != 0)
			return r;
		if (path_has_items(&item))
			value_iter_pass(&iter, size);
	}
	*ret_size = (size_t)(iter.next - value->start);
	return r == END ? 0 : r;
}

/* Follows the path from its step "..", number I. One pass finds a key after it, the usual case. */
static int path_follow_descent(const struct path_walk *walk, size_t i, const struct value *value)
{
	const struct path_step *next = &walk->path->steps[i + 1];
	struct path_values found = {0};
	size_t size;
	int r;

	if (i + 1 == walk->to || next->type != STEP_KEY)
		return path_descend(walk, i, value, &size);
	r = path_has_items(value)
		    ? path_collect(path_step_key(walk->path, next), value, &found, &size)
		    : 0;
	for (size_t k = 0; r == 0 && k < found.n; k++)
		r = path_follow(walk, i + 2, &found.items[k]);
	free(found.items);
	return r;
}

static int path_find_item(const struct value *here, int64_t number, struct value *ret_item)
{
	struct value_iter iter;
	int r = FOUND;

	if (number < 0)
		number += here->count;
	if (here->type != VALUE_ARRAY || number < 0 || number >= here->count)
		return NOT_FOUND;
	value_iter_init(&iter, here);
	for (int64_t k = 0; r == FOUND && k <= number; k++)
		r = value_iter_next(&iter, NULL, ret_item);
	return r;
}

/* Follows the path from step I, from VALUE. */
static int path_follow(const struct path_walk *walk, size_t i, const struct value *value)
{
	const struct path *path = walk->path;
	struct value here = *value, next;

	for (; i < walk->to; i++) {
		const struct path_step *step = &path->steps[i];
		int r;

		if (step->type == STEP_RECURSIVE)
			return path_follow_descent(walk, i, &here);
		if (step->type == STEP_KEY)
			r = value_find(&here, path_step_key(path, step), &next);
		else if (step->type == STEP_INDEX)
			r = path_find_item(&here, step->from, &next);
		else
			return path_follow_items(walk, i, &here);
		if (r != FOUND)
			return r < 0 ? r : 0;
		here = next;
	}
	return walk->found_fn(walk->arg, &here);
}

/* ---- unions ------------------------------------------------------------- */

static int path_follow_member(
	const struct path_member *member, const struct value *value, struct path_values *found)
{
	size_t before = found->n;
	int r = path_eval_from(member->path, 0, value, path_keep, found);

	if (r == 0 && found->n == before && member->otherwise)
		r = path_eval_from(member->otherwise, 0, value, path_keep, found);
	return r;
}

/* Follows the path from step I from each of N values. A union gives the values of its first member,
 * then of its second: its input is collected before. */
static int path_follow_all(const struct path *path, size_t i, const struct value *values, size_t n,
	path_found_fn *found_fn, void *arg)
{
	struct path_values before = {0}, found = {0};
	struct path_walk walk = {path, i, found_fn, arg};
	int r = 0;

	while (walk.to < path->count && path->steps[walk.to].type != STEP_UNION)
		walk.to++;
	bool is_last = walk.to == path->count;
	if (!is_last) {
		walk.found_fn = path_keep;
		walk.arg = &before;
	}
	for (size_t k = 0; r == 0 && k < n; k++)
		r = path_follow(&walk, i, &values[k]);
	if (!is_last) {
		const struct path_union *union_ = path->steps[walk.to].more.union_;

		for (size_t m = 0; r == 0 && m < union_->n; m++)
			for (size_t k = 0; r == 0 && k < before.n; k++)
				r = path_follow_member(
					&union_->members[m], &before.items[k], &found);
		if (r == 0)
			r = path_follow_all(path, walk.to + 1, found.items, found.n, found_fn, arg);
	}
	free(before.items);
	free(found.items);
	return r;
}

/* ---- public ------------------------------------------------------------- */

int path_eval_from(const struct path *path, size_t step, const struct value *value,
	path_found_fn *found_fn, void *arg)
{
	CHECK_OBJ(path, PATH_MAGIC);
	return path_follow_all(path, step, value, 1, found_fn, arg);
}

int path_eval(const struct path *path, struct bytes document, path_found_fn *found_fn, void *arg)
{
	struct value root;
	int r = value_read(document, &root);

	return r < 0 ? r : path_eval_from(path, 0, &root, found_fn, arg);
}

int path_keep_first(void *arg, const struct value *value)
{
	*(struct value *)arg = *value;
	return END;
}

int path_first(const struct path *path, struct bytes document, struct value *ret_value)
{
	int r = path_eval(path, document, path_keep_first, ret_value);

	return r == END ? FOUND : r == 0 ? NOT_FOUND : r;
}
