/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/terms.h"

#include <errno.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/path.h"
#include "common/value/value.h"

#define TERMS_MAGIC 0x6b747273u
#define PARTS_MAX   8

enum rule_kind { RULE_NAMESPACE, RULE_LABEL, RULE_PATHS };

struct rule {
	uint32_t definition;
	enum rule_kind kind;
	size_t n_paths;
	struct path *paths[PARTS_MAX];
};

struct terms {
	uint32_t magic;
	struct rule *rules;
	size_t n_rules;
	struct term_list found; /* of terms_has() */
	/* While a compound is evaluated: what each part found. */
	struct buf parts;
	struct part {
		size_t at, size;
	} * part;
	size_t n_part, part_room;
	size_t part_end[PARTS_MAX]; /* of path i: its values end before this one */
};

int terms_new(struct terms **ret_terms)
{
	struct terms *terms = calloc(1, sizeof(*terms));

	if (!terms)
		return err_set(-ENOMEM, "index definitions");
	terms->magic = TERMS_MAGIC;
	*ret_terms = terms;
	return 0;
}

static void rule_release(struct rule *rule)
{
	for (size_t i = 0; i < rule->n_paths; i++)
		path_free(&rule->paths[i]);
}

void terms_free(struct terms **terms)
{
	struct terms *t = *terms;

	if (!t)
		return;
	CHECK_OBJ(t, TERMS_MAGIC);
	for (size_t i = 0; i < t->n_rules; i++)
		rule_release(&t->rules[i]);
	free(t->rules);
	term_list_release(&t->found);
	buf_release(&t->parts);
	free(t->part);
	t->magic = 0;
	free(t);
	*terms = NULL;
}

void term_list_release(struct term_list *list)
{
	free(TAKE(list->terms));
	buf_release(&list->text);
	list->n = list->capacity = 0;
}

/* ---- definitions ---- */

static int parse_paths(struct rule *rule, const char *paths)
{
	for (const char *p = paths; p;) {
		const char *end = strchrnul(p, '\n');
		AUTO_FREE char *one = strndup(p, (size_t)(end - p));

		if (!one)
			return err_set(-ENOMEM, "index definition");
		if (rule->n_paths == PARTS_MAX)
			return err_say(ERR_SYNTAX, "more than %d paths", PARTS_MAX);
		int r = path_parse(one, &rule->paths[rule->n_paths]);

		if (r < 0)
			return r;
		rule->n_paths++;
		p = *end ? end + 1 : NULL;
	}
	return 0;
}

static int rule_init(struct rule *rule, const struct index_definition *definition)
{
	*rule = (struct rule){.definition = definition->id, .kind = RULE_PATHS};
	if (definition->paths[0])
		return parse_paths(rule, definition->paths);
	if (strcmp(definition->name, INDEX_NAMESPACE) == 0)
		rule->kind = RULE_NAMESPACE;
	else if (strcmp(definition->name, INDEX_LABEL) == 0)
		rule->kind = RULE_LABEL;
	else
		return err_say(ERR_SYNTAX, "no paths");
	return 0;
}

int terms_add(struct terms *terms, const struct index_definition *definition)
{
	CHECK_OBJ(terms, TERMS_MAGIC);
	struct rule *rules = reallocarray(terms->rules, terms->n_rules + 1, sizeof(*rules));

	if (!rules)
		return err_set(-ENOMEM, "index definitions");
	terms->rules = rules;
	int r = rule_init(&rules[terms->n_rules], definition);

	if (r < 0) {
		rule_release(&rules[terms->n_rules]);
		return err_add(r, "index '%s'", definition->name);
	}
	terms->n_rules++;
	return 0;
}

/* ---- the list ---- */

/* Takes what was written to list->text from AT on as a term. Values are offsets until the list is
 * complete, because the text moves while it grows. */
static int list_add(struct term_list *list, uint32_t definition, size_t at)
{
	if (list->n == list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : 32;
		struct index_term *moved = reallocarray(list->terms, capacity, sizeof(*moved));

		if (!moved)
			return err_set(-ENOMEM, "index terms");
		list->terms = moved;
		list->capacity = capacity;
	}
	list->terms[list->n++] = (struct index_term){
		.definition = definition,
		.value = BYTES(NULL, list->text.size - at),
	};
	return 0;
}

/* Terms were written one behind the other: their sizes give their places. */
static int list_finish(struct term_list *list)
{
	int r = buf_error(&list->text);
	const uint8_t *p = list->text.data;

	if (r < 0)
		return r;
	for (size_t i = 0; i < list->n; i++) {
		list->terms[i].value.data = p;
		p += list->terms[i].value.size;
	}
	return 0;
}

static void list_truncate(struct term_list *list, size_t n, size_t text_size)
{
	list->n = n;
	buf_truncate(&list->text, text_size);
}

static int add_text(struct term_list *list, uint32_t definition, struct bytes value)
{
	size_t at = list->text.size;

	buf_bytes_put(&list->text, value);
	return list_add(list, definition, at);
}

/* ---- namespace and labels ---- */

static int collect_namespace(
	const struct rule *rule, const struct record *record, struct term_list *list)
{
	const char *slash =
		record->key.size ? memchr(record->key.data, '/', record->key.size) : NULL;

	if (!slash)
		return 0;
	return add_text(list, rule->definition,
		BYTES(record->key.data, (size_t)(slash - (const char *)record->key.data)));
}

static int add_label(const struct rule *rule, struct bytes key, const struct value *label,
	struct term_list *list)
{
	char scratch[VALUE_SCRATCH];
	struct bytes text;
	int r = value_scalar_text(label, scratch, &text);

	if (r == NOT_FOUND) {
		list->unindexable++;
		return 0;
	}
	if (r < 0)
		return r;
	r = add_text(list, rule->definition, key);
	if (r < 0)
		return r;
	size_t at = list->text.size;

	buf_bytes_put(&list->text, key);
	buf_byte(&list->text, '=');
	buf_bytes_put(&list->text, text);
	return list_add(list, rule->definition, at);
}

static int collect_labels(
	const struct rule *rule, const struct record *record, struct term_list *list)
{
	struct value document, metadata, labels, label;
	struct value_iter iter;
	struct bytes key;
	int r = value_read(record->body, &document);

	if (r == 0)
		r = value_find(&document, BYTES_LIT("metadata"), &metadata);
	if (r == FOUND)
		r = value_find(&metadata, BYTES_LIT("labels"), &labels);
	if (r != FOUND)
		return r < 0 ? r : 0;
	if (labels.type != VALUE_MAP)
		return 0;
	value_iter_init(&iter, &labels);
	while ((r = value_iter_next(&iter, &key, &label)) == FOUND) {
		r = add_label(rule, key, &label, list);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

/* ---- paths ---- */

struct path_search {
	struct terms *terms;
	const struct rule *rule;
	struct term_list *list;
	size_t found;
	int (*take)(struct path_search *search, struct bytes text);
};

static int take_term(struct path_search *search, struct bytes text)
{
	return add_text(search->list, search->rule->definition, text);
}

static int take_part(struct path_search *search, struct bytes text)
{
	struct terms *terms = search->terms;

	if (terms->n_part == terms->part_room) {
		size_t room = terms->part_room ? terms->part_room * 2 : 16;
		struct part *moved = reallocarray(terms->part, room, sizeof(*moved));

		if (!moved)
			return err_set(-ENOMEM, "index terms");
		terms->part = moved;
		terms->part_room = room;
	}
	terms->part[terms->n_part++] = (struct part){terms->parts.size, text.size};
	buf_bytes_put(&terms->parts, text);
	return 0;
}

/* What is no value is passed over, null in silence. */
static int take_value(void *arg, const struct value *value)
{
	struct path_search *search = arg;
	char scratch[VALUE_SCRATCH];
	struct bytes text;

	if (value->type == VALUE_NIL)
		return 0;
	int r = value_scalar_text(value, scratch, &text);
	if (r == NOT_FOUND)
		search->list->unindexable++;
	if (r != FOUND)
		return r < 0 ? r : 0;
	if (++search->found > TERMS_MAX)
		return 0; /* too many, whatever comes: the caller looks */
	return search->take(search, text);
}

/* What path I has found: how many parts, from which on. */
static size_t parts_of(const struct terms *terms, size_t i, size_t *ret_begin)
{
	*ret_begin = i ? terms->part_end[i - 1] : 0;
	return terms->part_end[i] - *ret_begin;
}

/* The number of combinations of what N paths found; more than TERMS_MAX: TERMS_MAX + 1. */
static size_t combinations(const struct terms *terms, size_t n)
{
	size_t product = 1, begin;

	for (size_t i = 0; i < n; i++) {
		size_t found = parts_of(terms, i, &begin);

		if (found == 0)
			return 0;
		product = product > TERMS_MAX / found ? TERMS_MAX + 1 : product * found;
	}
	return product;
}

/* Combination number NUMBER: the last path's values turn fastest. */
static int add_combination(const struct path_search *search, size_t number)
{
	const struct terms *terms = search->terms;
	size_t choice[PARTS_MAX];
	size_t at = search->list->text.size;

	for (size_t i = search->rule->n_paths; i-- > 0;) {
		size_t begin, found = parts_of(terms, i, &begin);

		choice[i] = begin + number % found;
		number /= found;
	}
	for (size_t i = 0; i < search->rule->n_paths; i++) {
		const struct part *p = &terms->part[choice[i]];

		index_compound_add(
			&search->list->text, BYTES(terms->parts.data + p->at, p->size), i == 0);
	}
	return list_add(search->list, search->rule->definition, at);
}

static int combine(struct path_search *search)
{
	size_t n = combinations(search->terms, search->rule->n_paths);
	int r = buf_error(&search->terms->parts);

	if (n > TERMS_MAX)
		search->found = n;
	for (size_t i = 0; i < n && n <= TERMS_MAX && r == 0; i++)
		r = add_combination(search, i);
	return r;
}

static int collect_paths(
	struct terms *terms, const struct rule *rule, struct bytes body, struct term_list *list)
{
	bool compound = rule->n_paths > 1;
	struct path_search search = {terms, rule, list, .take = compound ? take_part : take_term};
	size_t n = list->n, text_size = list->text.size;
	int r = 0;

	terms->n_part = 0;
	buf_reset(&terms->parts);
	for (size_t i = 0; i < rule->n_paths && r == 0; i++) {
		r = path_eval(rule->paths[i], body, take_value, &search);
		terms->part_end[i] = terms->n_part;
	}
	if (r == 0 && compound && search.found <= TERMS_MAX)
		r = combine(&search);
	if (r == 0 && search.found > TERMS_MAX) {
		list_truncate(list, n, text_size);
		list->unindexable++;
	}
	return r;
}

static int collect_rule(struct terms *terms, const struct rule *rule, const struct record *record,
	struct term_list *list)
{
	switch (rule->kind) {
	case RULE_NAMESPACE:
		return collect_namespace(rule, record, list);
	case RULE_LABEL:
		return collect_labels(rule, record, list);
	case RULE_PATHS:
		return collect_paths(terms, rule, record->body, list);
	}
	return 0;
}

int terms_collect(struct terms *terms, const struct record *record, struct term_list *list)
{
	int r = 0;

	CHECK_OBJ(terms, TERMS_MAGIC);
	list->n = list->unindexable = 0;
	buf_reset(&list->text);
	if (record->body.size == 0)
		return 0;
	for (size_t i = 0; i < terms->n_rules && r == 0; i++)
		r = collect_rule(terms, &terms->rules[i], record, list);
	return r < 0 ? r : list_finish(list);
}

int terms_has(
	struct terms *terms, const struct record *record, uint32_t definition, struct bytes value)
{
	struct term_list *found = &terms->found;
	int r = terms_collect(terms, record, found);

	if (r < 0)
		return r;
	for (size_t i = 0; i < found->n; i++)
		if (found->terms[i].definition == definition &&
			bytes_equal(found->terms[i].value, value))
			return FOUND;
	return NOT_FOUND;
}
