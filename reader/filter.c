/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/err.h"

int filter_init(struct filter *filter, const struct kinf_query *query)
{
	*filter = (struct filter){.n = 0};
	int r = query_init(&filter->query, query);
	if (r == 0 && selector_is_relative(filter->query.fields))
		return err_say(ERR_SYNTAX,
			"field selector '%s': objects leave an age without any event, so changes "
			"can't be followed by it; compare with a time, or list again",
			query->field_selector);
	return r;
}

static void filter_forget_terms(struct filter *filter)
{
	terms_free(&filter->terms);
	free(filter->wanted);
	filter->wanted = NULL;
	filter->n = 0;
}

void filter_release(struct filter *filter)
{
	filter_forget_terms(filter);
	query_release(&filter->query);
}

int filter_find_indexes(struct filter *filter, struct snapshot *snapshot,
	const struct snapshot_feed *feeds, size_t n_feeds)
{
	const struct query *query = &filter->query;

	filter_forget_terms(filter);
	for (size_t i = 0; i < n_feeds; i++) {
		int lacks = query_check_feed(query, &feeds[i].definition);
		if (lacks < 0)
			return lacks;
	}
	if (!query->n_terms || !n_feeds)
		return 0;
	filter->wanted = calloc(query->n_terms * n_feeds, sizeof(*filter->wanted));
	if (!filter->wanted)
		return err_set(-ENOMEM, "filter");
	int r = terms_new(&filter->terms);
	for (size_t n = 0; r == 0 && n < n_feeds * query->n_terms; n++) {
		const struct snapshot_feed *feed = &feeds[n / query->n_terms];
		const struct kinf_term *term = &query->terms[n % query->n_terms];
		struct index_definition definition;

		if (!feed->index.feed)
			return AGAIN;
		r = snapshot_definition(snapshot, feed->definition.id, term->index, &definition);
		if (r == NOT_FOUND)
			return err_say(ERR_NO_INDEX,
				"feed '%s' has no index '%s'; 'kinf index %s' lists those there "
				"are",
				feed->definition.name, term->index, feed->definition.name);
		/* AGAIN: the terms are computed from the version itself. */
		if (r >= 0)
			r = query_check_term(term, &definition);
		if (r < 0)
			return r;
		filter->wanted[filter->n++] =
			(struct filter_term){definition.feed, definition.id, term->value};
		r = terms_add(filter->terms, &definition);
	}
	return r;
}

int filter_accepts(struct filter *filter, const struct record *record)
{
	if (!query_accepts_key(&filter->query, record->key))
		return NOT_FOUND;
	int r = filter->n ? terms_evaluate(filter->terms, record) : 0;
	if (r < 0)
		return r;
	for (size_t i = 0; i < filter->n; i++) {
		const struct filter_term *wanted = &filter->wanted[i];

		if (wanted->feed == record->feed &&
			!terms_has(filter->terms, wanted->definition, bytes_str(wanted->value)))
			return NOT_FOUND;
	}
	return query_accepts_body(&filter->query, record->body);
}
