/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/terms.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/path_set.h"
#include "common/value/value.h"

#define TERMS_MAGIC 0x6b747273u
#define PARTS_MAX   8

enum terms_kind { RULE_NAMESPACE, RULE_LABEL, RULE_PATHS };

struct terms_rule {
	uint32_t definition;
	enum terms_kind kind;
	size_t n_paths; /* of a label: one, to all labels */
	struct path *paths[PARTS_MAX];
	size_t numbers[PARTS_MAX]; /* of the paths, in the set */
};

struct terms {
	uint32_t magic;
	bool incomplete; /* memory has run out when a rule was added */
	struct terms_rule *rules;
	size_t n_rules, rules_room;
	struct path_set paths;  /* of all rules, for one walk over a body */
	struct term_list found; /* by terms_evaluate() */
	/* While a compound is evaluated: the values of each path, those of path i before
	 * part_end[i]. */
	struct buf text;
	struct terms_part {
		size_t at, size;
	} * parts;
	size_t n_parts, parts_room;
	size_t part_end[PARTS_MAX];
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

static void terms_release_rule(struct terms_rule *rule)
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
		terms_release_rule(&t->rules[i]);
	path_set_release(&t->paths);
	free(t->rules);
	term_list_release(&t->found);
	buf_release(&t->text);
	free(t->parts);
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

/* ---- definitions -------------------------------------------------------- */

static int terms_parse(struct terms_rule *rule, const struct index_definition *definition)
{
	*rule = (struct terms_rule){.definition = definition->id, .kind = RULE_PATHS};
	if (!definition->paths[0]) {
		bool is_label = strcmp(definition->name, INDEX_LABEL) == 0;

		if (!is_label && strcmp(definition->name, INDEX_NAMESPACE) != 0)
			return err_say(ERR_SYNTAX, "no paths");
		rule->kind = is_label ? RULE_LABEL : RULE_NAMESPACE;
		rule->n_paths = is_label;
		return is_label ? path_parse("metadata.labels", &rule->paths[0]) : 0;
	}
	for (const char *p = definition->paths; p;) {
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

int terms_add(struct terms *terms, const struct index_definition *definition)
{
	CHECK_OBJ(terms, TERMS_MAGIC);
	for (size_t i = 0; i < terms->n_rules; i++)
		if (terms->rules[i].definition == definition->id)
			return 0;
	int r = ARRAY_ROOM(terms->rules, terms->n_rules, terms->rules_room, 1, "index definitions");

	if (r < 0)
		return r;
	struct terms_rule *rule = &terms->rules[terms->n_rules];

	r = terms_parse(rule, definition);
	if (r < 0) {
		terms_release_rule(rule);
		return err_add(r, "index '%s'", definition->name);
	}
	terms->n_rules++;
	for (size_t i = 0; r == 0 && i < rule->n_paths; i++)
		r = path_set_add(&terms->paths, rule->paths[i], &rule->numbers[i]);
	terms->incomplete |= r < 0;
	return r;
}

/* Adds the end of list->text, from AT on, as a term. The text moves while it grows, so values have
 * only their sizes until the list is complete. */
static int terms_list_add(struct term_list *list, uint32_t definition, size_t at)
{
	const struct index_term term = {definition, BYTES(NULL, list->text.size - at)};

	return ARRAY_ADD(list->terms, list->n, list->capacity, term, "a list of index terms");
}

static int terms_list_add_text(struct term_list *list, uint32_t definition, struct bytes value)
{
	size_t at = list->text.size;

	buf_bytes_put(&list->text, value);
	return terms_list_add(list, definition, at);
}

/* ---- labels ------------------------------------------------------------- */

struct terms_search {
	struct terms *terms;
	const struct terms_rule *rule;
	struct term_list *list;
	size_t found;
};

static int terms_take_labels(void *arg, const struct value *labels)
{
	const struct terms_search *search = arg;
	const struct terms_rule *rule = search->rule;
	struct term_list *list = search->list;
	char scratch[VALUE_SCRATCH];
	struct value_iter iter;
	struct bytes key, text;
	struct value label;
	int r;

	if (labels->type != VALUE_MAP)
		return 0;
	value_iter_init(&iter, labels);
	while ((r = value_iter_next(&iter, &key, &label)) == FOUND) {
		r = value_scalar_text(&label, scratch, &text);
		if (r == NOT_FOUND) {
			list->unindexable++;
			continue;
		}
		if (r == FOUND)
			r = terms_list_add_text(list, rule->definition, key);
		if (r < 0)
			return r;
		size_t at = list->text.size;

		buf_bytes_put(&list->text, key);
		buf_byte(&list->text, '=');
		buf_bytes_put(&list->text, text);
		r = terms_list_add(list, rule->definition, at);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

/* ---- paths -------------------------------------------------------------- */

/* Takes a value as a term, or as a part of a compound. Skips maps, arrays and null. */
static int terms_take_value(void *arg, const struct value *value)
{
	struct terms_search *search = arg;
	struct terms *terms = search->terms;
	char scratch[VALUE_SCRATCH];
	struct bytes text;

	if (value->type == VALUE_NIL)
		return 0;
	if (value_scalar_text(value, scratch, &text) == NOT_FOUND) {
		search->list->unindexable++;
		return 0;
	}
	if (++search->found > TERMS_MAX)
		return 0; /* too many: the caller drops them all */
	if (search->rule->n_paths == 1)
		return terms_list_add_text(search->list, search->rule->definition, text);
	const struct terms_part part = {terms->text.size, text.size};

	buf_bytes_put(&terms->text, text);
	return ARRAY_ADD(terms->parts, terms->n_parts, terms->parts_room, part, "index values");
}

/* Returns how many values path I has found; the first one's number in *RET_BEGIN. */
static size_t terms_parts_of(const struct terms *terms, size_t i, size_t *ret_begin)
{
	*ret_begin = i ? terms->part_end[i - 1] : 0;
	return terms->part_end[i] - *ret_begin;
}

/* Adds combination NUMBER; the last path's values change fastest. */
static int terms_add_combination(const struct terms_search *search, size_t number)
{
	const struct terms *terms = search->terms;
	size_t choice[PARTS_MAX];
	size_t at = search->list->text.size;

	for (size_t i = search->rule->n_paths; i-- > 0;) {
		size_t begin, found = terms_parts_of(terms, i, &begin);

		choice[i] = begin + number % found;
		number /= found;
	}
	for (size_t i = 0; i < search->rule->n_paths; i++) {
		const struct terms_part *p = &terms->parts[choice[i]];

		index_compound_add(
			&search->list->text, BYTES(terms->text.data + p->at, p->size), i == 0);
	}
	return terms_list_add(search->list, search->rule->definition, at);
}

static int terms_of_paths(
	struct terms *terms, const struct terms_rule *rule, struct term_list *list)
{
	struct terms_search search = {terms, rule, list, 0};
	size_t n = list->n, text_size = list->text.size;
	int r = 0;

	terms->n_parts = 0;
	buf_reset(&terms->text);
	for (size_t i = 0; i < rule->n_paths && r == 0; i++) {
		r = path_set_eval(&terms->paths, rule->numbers[i], terms_take_value, &search);
		terms->part_end[i] = terms->n_parts;
	}
	if (r == 0 && rule->n_paths > 1 && search.found <= TERMS_MAX) {
		search.found = 1;
		for (size_t i = 0, begin; i < rule->n_paths && search.found; i++) {
			size_t n_values = terms_parts_of(terms, i, &begin);

			/* Zero if a path found nothing, at most TERMS_MAX + 1. */
			search.found = n_values && search.found > TERMS_MAX / n_values
					       ? TERMS_MAX + 1
					       : search.found * n_values;
		}
		r = buf_error(&terms->text);
		for (size_t i = 0; i < search.found && search.found <= TERMS_MAX && r == 0; i++)
			r = terms_add_combination(&search, i);
	}
	if (r == 0 && search.found > TERMS_MAX) {
		list->n = n;
		buf_truncate(&list->text, text_size);
		list->unindexable++;
	}
	return r;
}

int terms_collect(struct terms *terms, const struct record *record, struct term_list *list)
{
	int r = 0;

	CHECK_OBJ(terms, TERMS_MAGIC);
	list->n = list->unindexable = 0;
	buf_reset(&list->text);
	if (record->body.size == 0)
		return 0;
	if (terms->incomplete)
		return err_set(-ENOMEM, "index definitions");
	r = path_set_find(&terms->paths, record->body);
	const char *key = record->key.data;
	const char *slash = record->key.size ? memchr(key, '/', record->key.size) : NULL;

	for (size_t i = 0; i < terms->n_rules && r == 0; i++) {
		const struct terms_rule *rule = &terms->rules[i];

		if (rule->kind == RULE_PATHS)
			r = terms_of_paths(terms, rule, list);
		else if (rule->kind == RULE_LABEL)
			r = path_set_eval(&terms->paths, rule->numbers[0], terms_take_labels,
				&(struct terms_search){terms, rule, list, 0});
		else if (slash)
			r = terms_list_add_text(
				list, rule->definition, BYTES(key, (size_t)(slash - key)));
	}
	if (r == 0)
		r = buf_error(&list->text);
	/* The values follow each other in the text. */
	const uint8_t *p = list->text.data;
	for (size_t i = 0; i < list->n && r == 0; i++) {
		list->terms[i].value.data = p;
		p += list->terms[i].value.size;
	}
	return r;
}

int terms_evaluate(struct terms *terms, const struct record *record)
{
	return terms_collect(terms, record, &terms->found);
}

bool terms_has(const struct terms *terms, uint32_t definition, struct bytes value)
{
	const struct term_list *found = &terms->found;

	for (size_t i = 0; i < found->n; i++)
		if (found->terms[i].definition == definition &&
			bytes_equal(found->terms[i].value, value))
			return true;
	return false;
}
