/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/selector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/decimal.h"
#include "common/value/field.h"
#include "common/value/selector_internal.h"

#define SELECTOR_MAGIC 0x73656c63u

struct requirement {
	struct selector_requirement public;
	struct bytes *values;        /* public.values, owned */
	struct field *field;         /* of a field selector */
	struct selector_limit limit; /* of a comparison of fields */
};

struct selector {
	uint32_t magic;
	bool is_field;
	size_t count, room;
	struct requirement *requirements;
	char *source;
	struct buf text;
};

/* ---- building ----------------------------------------------------------- */

int selector_new(const char *text, bool is_field, struct selector **ret_selector)
{
	CLEANUP(selector_free) struct selector *selector = calloc(1, sizeof(*selector));

	if (!selector)
		return err_set(-ENOMEM, "selector '%s'", text);
	selector->magic = SELECTOR_MAGIC;
	selector->is_field = is_field;
	selector->source = strdup(text);
	if (!selector->source)
		return err_set(-ENOMEM, "selector '%s'", text);
	*ret_selector = TAKE(selector);
	return 0;
}

void selector_free(struct selector **selector)
{
	if (!*selector)
		return;
	CHECK_OBJ(*selector, SELECTOR_MAGIC);
	for (size_t i = 0; i < (*selector)->count; i++) {
		free((*selector)->requirements[i].values);
		field_free(&(*selector)->requirements[i].field);
	}
	free((*selector)->requirements);
	free((*selector)->source);
	buf_release(&(*selector)->text);
	(*selector)->magic = 0;
	free(*selector);
	*selector = NULL;
}

char *selector_source(struct selector *selector)
{
	CHECK_OBJ(selector, SELECTOR_MAGIC);
	return selector->source;
}

int selector_add(struct selector *selector, struct selector_requirement public)
{
	CHECK_OBJ(selector, SELECTOR_MAGIC);
	int r = ARRAY_ADD(selector->requirements, selector->count, selector->room,
		((struct requirement){.public = public}), "a selector");
	if (r < 0)
		return r;

	/* Replaces the borrowed values by a sorted copy, each once. */
	struct requirement *requirement = &selector->requirements[selector->count - 1];
	struct bytes *values = calloc(public.n_values + 1, sizeof(*values));
	size_t n = 0;

	if (!values)
		return err_set(-ENOMEM, "selector");
	if (public.n_values)
		memcpy(values, public.values, public.n_values * sizeof(*values));
	qsort(values, public.n_values, sizeof(*values), array_by_bytes);
	for (size_t i = 0; i < public.n_values; i++)
		if (n == 0 || !bytes_equal(values[n - 1], values[i]))
			values[n++] = values[i];
	requirement->public.values = requirement->values = values;
	requirement->public.n_values = n;
	if (!selector->is_field)
		return 0;
	bool compares = selector_op_compares(public.op);
	if (compares)
		r = selector_limit_read(public.key, public.values[0], &requirement->limit);
	if (r < 0)
		return r;
	r = field_parse(compares && requirement->limit.type == LIMIT_AGE
				? BYTES_LIT("metadata.creationTimestamp")
				: public.key,
		&requirement->field);
	if (r == 0) {
		requirement->public.is_label = field_is_label(requirement->field);
		requirement->public.path = field_path(requirement->field);
	}
	return r;
}

/* ---- canonical text ----------------------------------------------------- */

static const struct {
	const char *one; /* between key and value */
	const char *set; /* between key and a set, unless of one value */
} selector_spellings[SELECTOR_OP_MAX] = {
	[SELECTOR_IN] = {"=", " in "},
	[SELECTOR_NOT_IN] = {"!=", " notin "},
	[SELECTOR_GREATER] = {">", NULL},
	[SELECTOR_LESS] = {"<", NULL},
	[SELECTOR_GREATER_EQUAL] = {">=", NULL},
	[SELECTOR_LESS_EQUAL] = {"<=", NULL},
};

void selector_put_field_value(struct bytes value, struct buf *text)
{
	buf_escape(text, value, "\\,=");
}

static void selector_put_requirement(
	struct selector *selector, const struct selector_requirement *requirement)
{
	struct buf *text = &selector->text;
	bool is_set = requirement->n_values != 1;

	if (requirement->op == SELECTOR_NOT_EXISTS)
		buf_byte(text, '!');
	buf_bytes_put(text, requirement->key);
	if (!selector_spellings[requirement->op].one)
		return;
	buf_str(text, is_set ? selector_spellings[requirement->op].set
			     : selector_spellings[requirement->op].one);
	buf_str(text, is_set ? "(" : "");
	for (size_t i = 0; i < requirement->n_values; i++) {
		buf_str(text, i ? "," : "");
		if (selector->is_field)
			selector_put_field_value(requirement->values[i], text);
		else
			buf_bytes_put(text, requirement->values[i]);
	}
	buf_str(text, is_set ? ")" : "");
}

/* Compares by key, operator and values: equal selectors have equal texts. */
static int selector_requirement_compare(const void *a, const void *b)
{
	const struct selector_requirement *x = &((const struct requirement *)a)->public;
	const struct selector_requirement *y = &((const struct requirement *)b)->public;
	int r = bytes_compare(x->key, y->key);

	if (r == 0)
		r = (x->op > y->op) - (x->op < y->op);
	for (size_t i = 0; r == 0 && i < x->n_values && i < y->n_values; i++)
		r = bytes_compare(x->values[i], y->values[i]);
	return r ? r : (x->n_values > y->n_values) - (x->n_values < y->n_values);
}

int selector_finish(struct selector *selector)
{
	CHECK_OBJ(selector, SELECTOR_MAGIC);
	if (selector->count)
		qsort(selector->requirements, selector->count, sizeof(*selector->requirements),
			selector_requirement_compare);
	for (size_t i = 0; i < selector->count; i++) {
		buf_str(&selector->text, i ? "," : "");
		selector_put_requirement(selector, &selector->requirements[i].public);
	}
	(void)buf_cstr(&selector->text); /* allocates: selector_text() can't fail */
	return buf_error(&selector->text);
}

const char *selector_text(const struct selector *selector)
{
	CHECK_OBJ(selector, SELECTOR_MAGIC);
	return (const char *)selector->text.data;
}

size_t selector_count(const struct selector *selector)
{
	CHECK_OBJ(selector, SELECTOR_MAGIC);
	return selector->count;
}

const struct selector_requirement *selector_at(const struct selector *selector, size_t i)
{
	CHECK_OBJ(selector, SELECTOR_MAGIC);
	REQUIRE(i < selector->count);
	return &selector->requirements[i].public;
}

struct bytes selector_value(const struct selector *selector, const char *key)
{
	for (size_t i = 0; selector && i < selector_count(selector); i++) {
		const struct selector_requirement *r = selector_at(selector, i);

		if (r->op == SELECTOR_IN && r->n_values == 1 && bytes_equal(r->key, bytes_str(key)))
			return r->values[0];
	}
	return BYTES_NONE;
}

bool selector_op_compares(enum selector_op op)
{
	return op >= SELECTOR_GREATER && op < SELECTOR_OP_MAX;
}

bool selector_compares(const struct selector *selector)
{
	for (size_t i = 0; selector && i < selector_count(selector); i++)
		if (selector_op_compares(selector_at(selector, i)->op))
			return true;
	return false;
}

bool selector_is_relative(const struct selector *selector)
{
	for (size_t i = 0; selector && i < selector_count(selector); i++)
		if (selector->requirements[i].limit.is_relative)
			return true;
	return false;
}

/* ---- matching ----------------------------------------------------------- */

bool selector_integer(struct bytes text, int64_t *ret_integer)
{
	const char *p = text.data;
	bool negative = text.size && *p == '-', is_signed = negative || (text.size && *p == '+');
	struct bytes digits = BYTES(p + is_signed, text.size - is_signed);
	uint64_t number;

	if (decimal_parse(digits, (uint64_t)INT64_MAX + negative, &number) < 0) {
		err_forget();
		return false;
	}
	*ret_integer = (int64_t)(negative ? 0 - number : number);
	return true;
}

static bool selector_requirement_has_value(
	const struct selector_requirement *requirement, struct bytes text)
{
	for (size_t i = 0; i < requirement->n_values; i++) {
		if (bytes_equal(requirement->values[i], text))
			return true;
	}
	return false;
}

static int selector_requirement_match_label(
	const struct selector_requirement *requirement, const struct value *labels_map)
{
	int64_t have, limit;
	struct value item;
	int r = value_find(labels_map, requirement->key, &item);
	bool present = r == FOUND;

	if (r < 0)
		return r;
	switch (requirement->op) {
	case SELECTOR_IN:
		return present && selector_requirement_has_value(requirement, item.text);
	case SELECTOR_NOT_IN:
		return !present || !selector_requirement_has_value(requirement, item.text);
	case SELECTOR_EXISTS:
		return present;
	case SELECTOR_NOT_EXISTS:
		return !present;
	case SELECTOR_GREATER:
	case SELECTOR_LESS:
		if (!present || !selector_integer(item.text, &have) ||
			!selector_integer(requirement->values[0], &limit))
			return 0;
		return requirement->op == SELECTOR_GREATER ? have > limit : have < limit;
	case SELECTOR_GREATER_EQUAL:
	case SELECTOR_LESS_EQUAL:
	case SELECTOR_OP_MAX:
		break;
	}
	return 0;
}

static int selector_match_labels(const struct selector *selector, struct bytes document)
{
	struct value root, metadata, map = {.type = VALUE_NIL}; /* no map: no labels */

	int r = value_read(document, &root);
	if (r == 0)
		r = value_find(&root, BYTES_LIT("metadata"), &metadata);
	if (r == FOUND)
		r = value_find(&metadata, BYTES_LIT("labels"), &map);
	if (r < 0)
		return r;
	for (size_t i = 0; i < selector->count; i++) {
		r = selector_requirement_match_label(&selector->requirements[i].public, &map);
		if (r != 1)
			return r;
	}
	return 1;
}

/* A field_text_fn that ends at the first value meeting the requirement. */
static int selector_requirement_check_text(void *arg, struct bytes text)
{
	const struct requirement *requirement = arg;
	enum selector_op op = requirement->public.op;
	bool meets = selector_op_compares(op) ? selector_limit_allows(&requirement->limit, op, text)
					      : selector_requirement_has_value(&requirement->public,
							text) == (op == SELECTOR_IN);

	return meets ? END : 0;
}

int selector_match(const struct selector *selector, struct bytes document)
{
	CHECK_OBJ(selector, SELECTOR_MAGIC);
	if (selector->count && !selector->is_field)
		return selector_match_labels(selector, document);
	for (size_t i = 0; i < selector->count; i++) {
		struct requirement *requirement = &selector->requirements[i];
		/* One matching value of several is enough, also for '!='. */
		int r = field_read(
			requirement->field, document, selector_requirement_check_text, requirement);
		if (r != END)
			return r < 0 ? r : 0;
	}
	return 1;
}
