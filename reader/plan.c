/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/err.h"
#include "common/value/path.h"

/* ---- the plan's terms --------------------------------------------------- */

void plan_release(struct plan *plan)
{
	free(plan->terms);
	buf_release(&plan->text);
	terms_free(&plan->on_body);
	*plan = (struct plan){0};
}

/* Terms point into one text buffer, and it may move while it grows: until all are there, data holds
 * an offset into it. */
static int plan_add(struct plan *plan, uint32_t definition, size_t offset, bool asked)
{
	const struct plan_term term = {
		.definition = definition,
		.value = BYTES((const void *)(uintptr_t)offset, plan->text.size - offset),
		.asked = asked,
	};
	int r = buf_error(&plan->text);

	return r < 0 ? r
		     : ARRAY_ADD(plan->terms, plan->n_terms, plan->room, term, "a query's plan");
}

/* Refuses the index NAME, which FEED lacks. */
static int plan_refuse_index(
	struct snapshot *snapshot, const struct snapshot_feed *feed, const char *name)
{
	const struct index_definition *all;
	char names[256] = "";
	size_t n;
	int r = snapshot_definitions(snapshot, feed->definition.id, &all, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		size_t used = strlen(names);

		if (!all[i].dropping)
			(void)snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "",
				all[i].name);
	}
	return err_say(ERR_NO_INDEX, "feed '%s' has no index '%s'; it has: %s",
		feed->definition.name, name, names);
}

static int plan_asked(struct snapshot *snapshot, const struct snapshot_feed *feed,
	const struct query *query, struct plan *plan)
{
	for (size_t i = 0; i < query->n_terms; i++) {
		const struct kinf_term *term = &query->terms[i];
		size_t offset = plan->text.size;
		struct index_definition definition;
		int r = snapshot_definition(
			snapshot, feed->definition.id, term->index, &definition);

		if (r == NOT_FOUND)
			return plan_refuse_index(snapshot, feed, term->index);
		if (r == FOUND)
			r = query_check_term(term, &definition);
		if (r != 0)
			return r;
		buf_str(&plan->text, term->value);
		r = plan_add(plan, definition.id, offset, true);
		if (r < 0)
			return r;
	}
	return 0;
}

/* `key` or `key=value`, necessary conditions of the requirement; of several values one is met. */
static int plan_labels(struct snapshot *snapshot, const struct snapshot_feed *feed,
	const struct query *query, struct plan *plan)
{
	struct index_definition definition;

	if (!query->labels || snapshot_definition(snapshot, feed->definition.id, INDEX_LABEL,
				      &definition) != FOUND)
		return 0;
	for (size_t i = 0; i < selector_count(query->labels); i++) {
		const struct selector_requirement *need = selector_at(query->labels, i);
		size_t offset;

		if (need->op == SELECTOR_NOT_IN || need->op == SELECTOR_NOT_EXISTS)
			continue;
		bool has_values = need->op == SELECTOR_IN && need->n_values <= ALTERNATIVES_MAX;
		size_t first = plan->n_terms, n = has_values ? need->n_values : 1;
		int r = 0;
		for (size_t k = 0; k < n && r == 0; k++) {
			offset = plan->text.size;
			buf_bytes_put(&plan->text, need->key);
			if (has_values) {
				buf_byte(&plan->text, '=');
				buf_bytes_put(&plan->text, need->values[k]);
			}
			r = plan_add(plan, definition.id, offset, false);
		}
		if (r < 0)
			return r;
		plan->terms[first].n_more = n - 1;
	}
	return 0;
}

int plan_find_index(struct snapshot *snapshot, const struct snapshot_feed *feed, const char *path,
	struct index_definition *ret_definition)
{
	const struct index_definition *all;
	size_t n;
	int r = snapshot_definitions(snapshot, feed->definition.id, &all, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (!all[i].dropping && all[i].filled == INDEX_READY &&
			strcmp(all[i].paths, path) == 0) {
			*ret_definition = all[i];
			return FOUND;
		}
	return NOT_FOUND;
}

bool plan_may_use_index(const struct selector_requirement *need)
{
	return need->op == SELECTOR_IN && need->n_values == 1 && need->values[0].size &&
	       !need->is_label && path_is_narrow(need->path);
}

/* A field with one wanted value, when it has an index. */
static int plan_fields(struct snapshot *snapshot, const struct snapshot_feed *feed,
	const struct query *query, struct plan *plan)
{
	for (size_t i = 0; query->fields && i < selector_count(query->fields); i++) {
		const struct selector_requirement *need = selector_at(query->fields, i);
		size_t offset = plan->text.size;
		struct index_definition definition;

		if (!plan_may_use_index(need))
			continue;
		int r = plan_find_index(snapshot, feed, path_text(need->path), &definition);
		if (r < 0)
			return r;
		if (r == NOT_FOUND)
			continue;
		buf_bytes_put(&plan->text, need->values[0]);
		r = plan_add(plan, definition.id, offset, false);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- the driver, and the body's part --------------------------------------- */

static struct bytes plan_namespace(const struct query *query)
{
	return query->namespace_ ? bytes_str(query->namespace_)
				 : selector_value(query->fields, "metadata.namespace");
}

/* Returns in RET_MAX the most postings that are no dearer than the names to be walked. A name costs
 * half of a posting, whose key is somewhere else. */
static int plan_most_postings(struct snapshot *snapshot, const struct snapshot_feed *feed,
	const struct query *query, uint64_t *ret_max)
{
	const struct bytes name_space = plan_namespace(query);
	struct index_definition definition;
	uint64_t names = 0;

	*ret_max = SORT_MAX;
	if (!feed->definition.namespaced || !name_space.size ||
		snapshot_definition(snapshot, feed->definition.id, INDEX_NAMESPACE, &definition) !=
			FOUND)
		return 0;
	int r = index_postings(snapshot_index(snapshot), snapshot_index_txn(snapshot),
		definition.id, name_space, &names, NULL);
	if (r >= 0 && names / 2 < SORT_MAX)
		*ret_max = names / 2;
	return r < 0 ? r : 0;
}

static int plan_count(struct snapshot *snapshot, const struct snapshot_feed *feed,
	const struct query *query, struct plan *plan)
{
	uint64_t max;
	int r = plan_most_postings(snapshot, feed, query, &max);

	for (size_t i = 0; r >= 0 && i < plan->n_terms; i += 1 + plan->terms[i].n_more) {
		struct plan_term *term = &plan->terms[i];

		for (size_t k = 0; r >= 0 && k <= term->n_more; k++) {
			uint64_t count = 0;

			r = index_postings(snapshot_index(snapshot), snapshot_index_txn(snapshot),
				term[k].definition, term[k].value, &count, NULL);
			term->count += count;
		}
		plan->empty |= !term->count;
		term->checked = term->asked || term->count < feed->index.objects / 4;
		if (r < 0 || term->count > max ||
			(plan->postings && term->count >= plan->terms[plan->driver].count))
			continue;
		plan->driver = i;
		plan->postings = true;
	}
	return r < 0 ? r : 0;
}

/* A hashed value is compared with the body; the index's own are only the newest versions'. */
static bool term_is_on_body(const struct plan_term *term, bool past)
{
	return term->asked && (past || term->value.size > INDEX_VALUE_MAX);
}

static int plan_find_on_body(
	struct snapshot *snapshot, const struct snapshot_feed *feed, bool past, struct plan *plan)
{
	const struct index_definition *all;
	size_t n;
	int r = 0;

	for (size_t i = 0; r == 0 && i < plan->n_terms; i++) {
		const struct plan_term *term = &plan->terms[i];

		if (!term_is_on_body(term, past))
			continue;
		r = snapshot_definitions(snapshot, feed->definition.id, &all, &n);
		if (r == 0 && !plan->on_body)
			r = terms_new(&plan->on_body);
		for (size_t k = 0; r == 0 && k < n; k++)
			if (all[k].id == term->definition)
				r = terms_add(plan->on_body, &all[k]);
	}
	return r;
}

int plan_make(struct snapshot *snapshot, const struct snapshot_feed *feed,
	const struct query *query, bool past, struct plan *plan)
{
	plan->n_terms = 0;
	plan->postings = plan->empty = false;
	plan->prefix = BYTES_NONE;
	plan->name = selector_value(query->fields, "metadata.name");
	buf_reset(&plan->text);
	terms_free(&plan->on_body);
	int r = plan_asked(snapshot, feed, query, plan);
	if (r == 0)
		r = plan_labels(snapshot, feed, query, plan);
	if (r == 0)
		r = plan_fields(snapshot, feed, query, plan);
	if (r != 0)
		return r;
	size_t prefix = plan->text.size;
	const struct bytes name_space = plan_namespace(query);
	if (feed->definition.namespaced && name_space.size) {
		buf_bytes_put(&plan->text, name_space);
		buf_byte(&plan->text, '/');
	}
	if (!feed->definition.namespaced || name_space.size)
		buf_bytes_put(&plan->text, query->prefix ? bytes_str(query->prefix) : plan->name);
	r = buf_error(&plan->text);
	if (r < 0)
		return r;
	for (size_t i = 0; i < plan->n_terms; i++)
		plan->terms[i].value.data = plan->text.data + (uintptr_t)plan->terms[i].value.data;
	plan->prefix = BYTES(plan->text.data + prefix, plan->text.size - prefix);
	r = plan_count(snapshot, feed, query, plan);
	return r < 0 ? r : plan_find_on_body(snapshot, feed, past, plan);
}

void plan_describe_checks(
	const struct plan *plan, const struct query *query, bool driven, char *text, size_t size)
{
	bool checked = false;

	for (size_t i = 0; i < plan->n_terms; i++)
		checked |= plan->terms[i].checked && !(driven && i == plan->driver);
	(void)snprintf(text, size, "%s%s%s%s",
		query->labels || query->fields ? "; filter on the body:" : "",
		query->labels ? " label selector" : "", query->fields ? " field selector" : "",
		checked ? "; terms checked in the index" : "");
}

void plan_describe(const struct plan *plan, const struct query *query, char *text, size_t size)
{
	int n;

	if (plan->empty)
		n = snprintf(text, size, "a term occurs nowhere: nothing to read");
	else if (plan->postings)
		n = snprintf(text, size, "term '%.*s'%s, %llu postings sorted by key",
			BYTES_ARG(plan->terms[plan->driver].value),
			plan->terms[plan->driver].n_more ? " and other values" : "",
			(unsigned long long)plan->terms[plan->driver].count);
	else if (plan->prefix.size)
		n = snprintf(text, size, "names beginning with '%.*s'", BYTES_ARG(plan->prefix));
	else
		n = snprintf(text, size, "all names");
	if (n >= 0 && (size_t)n < size)
		plan_describe_checks(plan, query, plan->postings, text + n, size - (size_t)n);
}

/* ---- checking one object ------------------------------------------------ */

static bool plan_has_name(const struct plan *plan, struct bytes key)
{
	const char *text = key.data;
	size_t begin = key.size - plan->name.size;

	return plan->name.size <= key.size &&
	       bytes_equal(BYTES(text + begin, plan->name.size), plan->name) &&
	       (!begin || text[begin - 1] == '/');
}

int plan_accepts(const struct plan *plan, const struct query *query, struct snapshot *snapshot,
	struct bytes key, const struct index_entry *entry)
{
	if (!query_accepts_key(query, key) || (plan->name.size && !plan_has_name(plan, key)))
		return NOT_FOUND;
	for (size_t i = 0; entry->object && i < plan->n_terms; i += 1 + plan->terms[i].n_more) {
		const struct plan_term *term = &plan->terms[i];
		int r = NOT_FOUND;

		if (!term->checked || (plan->postings && i == plan->driver))
			continue;
		for (size_t k = 0; r == NOT_FOUND && k <= term->n_more; k++)
			r = index_has(snapshot_index(snapshot), snapshot_index_txn(snapshot),
				term[k].definition, term[k].value, entry->object);
		if (r != FOUND)
			return r;
	}
	return FOUND;
}

int plan_matches(
	const struct plan *plan, const struct query *query, const struct record *record, bool past)
{
	int r = plan->on_body ? terms_evaluate(plan->on_body, record) : 0;
	if (r < 0)
		return r;
	for (size_t i = 0; plan->on_body && i < plan->n_terms; i++) {
		const struct plan_term *term = &plan->terms[i];

		if (term_is_on_body(term, past) &&
			!terms_has(plan->on_body, term->definition, term->value))
			return NOT_FOUND;
	}
	return query_accepts_body(query, record->body);
}
