/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/selector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/field.h"
#include "common/value/selector_build.h"

#define SELECTOR_MAGIC 0x73656c63u

/* A requirement of a field selector also knows where to look. */
struct requirement {
	struct selector_requirement public;
	struct bytes *values; /* public.values, owned */
	struct field *field;
};

struct selector {
	uint32_t magic;
	bool is_field;
	size_t count;
	struct requirement *requirements;
	char *source;
	struct buf text;
};

/* ---- building ---- */

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

static int compare_bytes(const void *a, const void *b)
{
	return bytes_compare(*(const struct bytes *)a, *(const struct bytes *)b);
}

/* Copies the values, sorted, each once. */
static int copy_values(struct requirement *requirement)
{
	struct selector_requirement *public = &requirement->public;
	size_t n = 0;

	requirement->values = calloc(public->n_values + 1, sizeof(*requirement->values));
	if (!requirement->values)
		return err_set(-ENOMEM, "selector");
	if (public->n_values)
		memcpy(requirement->values, public->values,
			public->n_values * sizeof(struct bytes));
	qsort(requirement->values, public->n_values, sizeof(struct bytes), compare_bytes);
	for (size_t i = 0; i < public->n_values; i++) {
		if (n == 0 || !bytes_equal(requirement->values[n - 1], requirement->values[i]))
			requirement->values[n++] = requirement->values[i];
	}
	public->values = requirement->values;
	public->n_values = n;
	return 0;
}

int selector_add(struct selector *selector, struct selector_requirement public)
{
	CHECK_OBJ(selector, SELECTOR_MAGIC);
	struct requirement *grown = reallocarray(
		selector->requirements, selector->count + 1, sizeof(*selector->requirements));
	if (!grown)
		return err_set(-ENOMEM, "selector");
	selector->requirements = grown;
	struct requirement *requirement = &grown[selector->count++];
	*requirement = (struct requirement){.public = public};
	int r = copy_values(requirement);
	if (r == 0 && selector->is_field)
		r = field_parse(public.key, &requirement->field);
	if (r == 0 && selector->is_field)
		requirement->public.is_label = field_is_label(requirement->field);
	return r;
}

/* ---- canonical text ---- */

static const struct {
	const char *one; /* between key and value */
	const char *set; /* between key and a set of not exactly one value */
} spellings[SELECTOR_OP_MAX] = {
	[SELECTOR_IN] = {"=", " in "},
	[SELECTOR_NOT_IN] = {"!=", " notin "},
	[SELECTOR_GREATER] = {">", NULL},
	[SELECTOR_LESS] = {"<", NULL},
};

static void put_value(struct buf *text, struct bytes value, bool is_field)
{
	const char *p = value.data;

	for (size_t i = 0; i < value.size; i++) {
		if (is_field && strchr("\\,=", p[i]))
			buf_byte(text, '\\');
		buf_byte(text, (uint8_t)p[i]);
	}
}

static void put_requirement(
	struct selector *selector, const struct selector_requirement *requirement)
{
	struct buf *text = &selector->text;
	bool is_set = requirement->n_values != 1;

	if (requirement->op == SELECTOR_NOT_EXISTS)
		buf_byte(text, '!');
	buf_bytes_put(text, requirement->key);
	if (!spellings[requirement->op].one)
		return;
	buf_str(text, is_set ? spellings[requirement->op].set : spellings[requirement->op].one);
	buf_str(text, is_set ? "(" : "");
	for (size_t i = 0; i < requirement->n_values; i++) {
		buf_str(text, i ? "," : "");
		put_value(text, requirement->values[i], selector->is_field);
	}
	buf_str(text, is_set ? ")" : "");
}

/* By key; then by what is left, so that equal selectors have equal texts. */
static int compare_requirements(const void *a, const void *b)
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
			compare_requirements);
	for (size_t i = 0; i < selector->count; i++) {
		buf_str(&selector->text, i ? "," : "");
		put_requirement(selector, &selector->requirements[i].public);
	}
	(void)buf_cstr(&selector->text); /* allocates, so that selector_text() need not */
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

/* ---- matching ---- */

bool selector_integer(struct bytes text, int64_t *ret_integer)
{
	const char *p = text.data, *end = p + text.size;
	bool negative = text.size && *p == '-';
	int64_t integer = 0;

	if (text.size && (*p == '-' || *p == '+'))
		p++;
	if (p == end)
		return false;
	for (; p < end; p++) {
		if (*p < '0' || *p > '9' || __builtin_mul_overflow(integer, 10, &integer))
			return false;
		int digit = *p - '0';
		if (__builtin_add_overflow(integer, negative ? -digit : digit, &integer))
			return false;
	}
	*ret_integer = integer;
	return true;
}

static bool has_value(const struct selector_requirement *requirement, struct bytes text)
{
	for (size_t i = 0; i < requirement->n_values; i++) {
		if (bytes_equal(requirement->values[i], text))
			return true;
	}
	return false;
}

static bool compares(const struct selector_requirement *requirement, struct bytes text)
{
	int64_t have, wanted;

	if (!selector_integer(text, &have) || !selector_integer(requirement->values[0], &wanted))
		return false;
	return requirement->op == SELECTOR_GREATER ? have > wanted : have < wanted;
}

static int match_label(
	const struct selector_requirement *requirement, const struct value *labels_map)
{
	struct value item;
	int r = value_find(labels_map, requirement->key, &item);
	bool present = r == FOUND;

	if (r < 0)
		return r;
	switch (requirement->op) {
	case SELECTOR_IN:
		return present && has_value(requirement, item.text);
	case SELECTOR_NOT_IN:
		return !present || !has_value(requirement, item.text);
	case SELECTOR_EXISTS:
		return present;
	case SELECTOR_NOT_EXISTS:
		return !present;
	case SELECTOR_GREATER:
	case SELECTOR_LESS:
		return present && compares(requirement, item.text);
	case SELECTOR_OP_MAX:
		break;
	}
	return 0;
}

static int match_labels(const struct selector *selector, struct bytes document)
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
		r = match_label(&selector->requirements[i].public, &map);
		if (r != 1)
			return r;
	}
	return 1;
}

/* END: it is one of the values. */
static int is_wanted(void *requirement, struct bytes text)
{
	return has_value(requirement, text) ? END : 0;
}

/* A path to several values matches when one of them does. */
static int match_field(const struct requirement *requirement, struct bytes document)
{
	struct selector_requirement public = requirement->public;
	int r = field_read(requirement->field, document, is_wanted, &public);

	return r < 0 ? r : (r == END) == (public.op == SELECTOR_IN);
}

static int match_fields(const struct selector *selector, struct bytes document)
{
	for (size_t i = 0; i < selector->count; i++) {
		int r = match_field(&selector->requirements[i], document);
		if (r != 1)
			return r;
	}
	return 1;
}

int selector_match(const struct selector *selector, struct bytes document)
{
	CHECK_OBJ(selector, SELECTOR_MAGIC);
	if (!selector->count)
		return 1;
	return selector->is_field ? match_fields(selector, document)
				  : match_labels(selector, document);
}
