/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf_list: the feeds behind a name one after the other, each either walked by name or, when a term
 * has few postings, by those, sorted by key first. Either way objects come in the order of their keys
 * and memory is bounded: a walk holds one entry, a sorted run at most SORT_MAX. A list in another
 * order (sorted.h) takes all candidates first.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "reader/sorted.h"

struct kinf_listing {
	uint32_t magic;
	struct kinf_snapshot *snapshot;
	uint64_t taken_as;           /* SNAPSHOT's when the list began */
	struct snapshot_feed *feeds; /* copies; their texts are the snapshot's */
	size_t n_feeds, feed;        /* FEED: the one being read */
	struct query query;
	struct plan plan;            /* of that feed */
	struct index_walk *walk;
	struct run run;
	struct sorted *sorted;       /* NULL: by key */
	bool filled;                 /* SORTED has its candidates */
	uint64_t left;               /* of the limit; UINT64_MAX: none */
	bool entered;                /* the plan of FEED is made */
	bool ended;
	struct buf last;             /* key of the last object given out */
	struct buf token;
	char resource_version[64];
	char words[512];
};

static struct snapshot *list_snapshot(struct kinf_listing *list)
{
	return list->snapshot->snapshot;
}

static int list_fail(struct kinf_listing *list, int code)
{
	if (code < 0)
		list->ended = true;
	return kinf_result(list->snapshot->kinf, code);
}

/* Feeds in the order of namespace + "/": their keys follow each other then. */
static int compare_feeds(const void *a, const void *b)
{
	const struct snapshot_feed *x = a, *y = b;
	char left[80], right[80];

	(void)snprintf(left, sizeof(left), "%s/", x->definition.namespace_);
	(void)snprintf(right, sizeof(right), "%s/", y->definition.namespace_);
	return strcmp(left, right);
}

static int list_take_feeds(struct kinf_listing *list, const char *name)
{
	const struct feed_set *set;
	int r = feed_set_get(list->snapshot, name, &set);

	if (r != FOUND)
		return r;
	list->feeds = calloc(set->n ? set->n : 1, sizeof(*list->feeds));
	if (!list->feeds)
		return err_set(-ENOMEM, "list of '%s'", name);
	for (size_t i = 0; i < set->n; i++) {
		const char *only = set->feeds[i].definition.namespace_;

		if (*only && list->query.namespace_ && strcmp(only, list->query.namespace_) != 0)
			continue;
		/* Without this one's objects the list would lack some and not say so. */
		if (feed_is_listing(&set->feeds[i]))
			return AGAIN;
		list->feeds[list->n_feeds++] = set->feeds[i];
	}
	qsort(list->feeds, list->n_feeds, sizeof(*list->feeds), compare_feeds);
	if (list->n_feeds == 1)
		(void)snprintf(list->resource_version, sizeof(list->resource_version), "%.*s",
			BYTES_ARG(snapshot_feed_rv(&list->feeds[0])));
	return 0;
}

/* Every feed must have every index asked for: said now, not in the middle of the results. */
static int list_plan_all(struct kinf_listing *list)
{
	for (size_t i = list->n_feeds; i-- > 0;) {
		int r = plan_make(list_snapshot(list), &list->feeds[i], &list->query, &list->plan);

		if (r != 0)
			return r;
	}
	if (list->n_feeds == 0)
		(void)snprintf(list->words, sizeof(list->words), "no feed has this namespace");
	else
		plan_describe(&list->plan, &list->query, list->words, sizeof(list->words));
	return 0;
}

int kinf_list(struct kinf_snapshot *snapshot, const struct kinf_query *query,
	struct kinf_listing **ret_list)
{
	CHECK_OBJ(snapshot, KINF_SNAPSHOT_MAGIC);
	int r = kinf_held(snapshot);

	if (r < 0)
		return r;
	struct kinf_listing *list = calloc(1, sizeof(*list));
	if (!list)
		return kinf_result(snapshot->kinf, err_set(-ENOMEM, "list"));
	list->magic = KINF_LIST_MAGIC;
	list->snapshot = snapshot;
	list->taken_as = snapshot->taken_as;
	r = query_init(&list->query, query);
	list->left = list->query.limit ? list->query.limit : UINT64_MAX;
	if (r == 0)
		r = list_take_feeds(list, query->feed);
	if (r == 0)
		r = list_plan_all(list);
	if (r == 0 && list->query.sort_by)
		r = sorted_new(list_snapshot(list), list->feeds, list->n_feeds, &list->query,
			&list->sorted);
	if (r != 0)
		kinf_list_close(&list);
	else
		*ret_list = list;
	return kinf_result(snapshot->kinf, r);
}

void kinf_list_close(struct kinf_listing **list)
{
	if (!list || !*list)
		return;
	struct kinf_listing *l = TAKE(*list);

	CHECK_OBJ(l, KINF_LIST_MAGIC);
	index_walk_close(&l->walk);
	run_release(&l->run);
	sorted_free(&l->sorted);
	plan_release(&l->plan);
	query_release(&l->query);
	buf_release(&l->last);
	buf_release(&l->token);
	free(l->feeds);
	l->magic = 0;
	free(l);
}

static int list_plan(struct kinf_listing *list)
{
	/* That of the first feed was made last when the list was opened. */
	return list->feed ? plan_make(list_snapshot(list), &list->feeds[list->feed], &list->query,
				    &list->plan) :
			    0;
}

/* Opens the walk that the plan of the present feed asks for. */
static int list_open(struct kinf_listing *list)
{
	struct snapshot *snapshot = list_snapshot(list);

	list->entered = true;
	if (list->plan.empty)
		return 0;
	if (list->plan.postings)
		return run_fill(&list->run, snapshot, list->feeds[list->feed].definition.id,
			&list->plan, &list->query);
	return index_names(snapshot_index(snapshot), snapshot_index_txn(snapshot),
		list->feeds[list->feed].definition.id, list->plan.prefix,
		buf_bytes(&list->query.from), &list->walk);
}

static int list_enter(struct kinf_listing *list)
{
	int r = list_plan(list);

	return r == 0 ? list_open(list) : r;
}

static void list_leave(struct kinf_listing *list)
{
	index_walk_close(&list->walk);
	run_reset(&list->run);
	list->entered = false;
	list->feed++;
}

/* Next candidate of the present feed, in key order. FOUND, END. */
static int list_candidate(struct kinf_listing *list, struct bytes *ret_key,
	struct index_entry *ret_entry)
{
	if (list->plan.empty)
		return END;
	if (list->plan.postings)
		return run_next(&list->run, list_snapshot(list), ret_key, ret_entry);
	return index_walk_next(list->walk, ret_key, ret_entry);
}

/* Next candidate that the index has nothing against. FOUND, END. */
static int list_accepted(struct kinf_listing *list, struct bytes *ret_key,
	struct index_entry *ret_entry)
{
	int r;

	while ((r = list_candidate(list, ret_key, ret_entry)) == FOUND) {
		r = plan_accepts(&list->plan, &list->query, list_snapshot(list), *ret_key,
			ret_entry);
		if (r != NOT_FOUND)
			return r;
	}
	return r;
}

static int list_read(struct kinf_listing *list, size_t feed, struct bytes key,
	const struct index_entry *entry, struct record *ret_record)
{
	return snapshot_record(list_snapshot(list), list->feeds[feed].definition.id, key, entry,
		ret_record);
}

/* Next object that meets the whole query, over all feeds, in key order. */
static int list_step(struct kinf_listing *list, struct record *ret_record)
{
	struct index_entry entry;
	struct bytes key;

	while (list->feed < list->n_feeds) {
		int r = list->entered ? 0 : list_enter(list);

		if (r == 0)
			r = list_accepted(list, &key, &entry);
		if (r == END) {
			list_leave(list);
			continue;
		}
		if (r == FOUND)
			r = list_read(list, list->feed, key, &entry, ret_record);
		if (r == FOUND)
			r = plan_matches(&list->plan, &list->query, ret_record);
		if (r != NOT_FOUND)
			return r;
	}
	return END;
}

/* ---- in the order of a field ---- */

static int list_offer_all(struct kinf_listing *list)
{
	struct index_entry entry;
	struct bytes key;
	int r = list_open(list);

	while (r == 0 && (r = list_accepted(list, &key, &entry)) == FOUND)
		r = sorted_offer(list->sorted, &list->plan, list->feed, key, &entry);
	return r == END ? 0 : r;
}

/* WALKED: feeds that were read by an index. */
static void list_describe_order(struct kinf_listing *list, size_t walked)
{
	char *words = list->words;
	size_t size = sizeof(list->words);
	int n;

	if (walked && walked == list->n_feeds) {
		n = snprintf(words, size, "index of '%s' in its order", list->query.sort_by);
		if (n >= 0 && (size_t)n < size)
			plan_describe_checks(&list->query, false, words + n, size - (size_t)n);
		return;
	}
	size_t used = strlen(words);
	(void)snprintf(words + used, size - used, "; all sorted by '%s'", list->query.sort_by);
}

/* Offers every feed's candidates; where an index has that order, those that the page can need. */
static int list_fill(struct kinf_listing *list)
{
	size_t walked = 0;

	for (; list->feed < list->n_feeds; list_leave(list)) {
		int r = list_plan(list);

		if (r == 0)
			r = sorted_walk(list->sorted, &list->plan, list->feed);
		walked += r == 0;
		if (r == NOT_FOUND)
			r = list_offer_all(list);
		if (r != 0)
			return r;
	}
	sorted_end(list->sorted);
	list->filled = true;
	list_describe_order(list, walked);
	return 0;
}

static int list_step_sorted(struct kinf_listing *list, struct record *ret_record)
{
	const struct sorted_item *item;
	int r = list->filled ? 0 : list_fill(list);

	if (r == 0)
		r = sorted_next(list->sorted, &item);
	return r == FOUND ? list_read(list, item->feed, item->key, &item->entry, ret_record) : r;
}

/* The token for what follows the last object of this page. */
static int list_token(struct kinf_listing *list)
{
	return list->sorted ? sorted_token(list->sorted, &list->token) :
			      query_token(buf_bytes(&list->last), &list->token);
}

int kinf_list_next(struct kinf_listing *list, struct kinf_object *ret_object)
{
	CHECK_OBJ(list, KINF_LIST_MAGIC);
	struct record record;
	int r = kinf_held(list->snapshot);

	if (r < 0)
		return r;
	if (list->taken_as != list->snapshot->taken_as)
		return list_fail(list, err_say(-EINVAL,
			"the snapshot was renewed since this list began: list again"));
	if (list->ended)
		return END;
	r = list->sorted ? list_step_sorted(list, &record) : list_step(list, &record);
	if (r == END)
		list->ended = true;
	if (r != FOUND)
		return list_fail(list, r);
	if (list->left == 0) { /* one more would match: the page ends with a token */
		list->ended = true;
		r = list_token(list);
		return r < 0 ? list_fail(list, r) : END;
	}
	if (list->left != UINT64_MAX) {
		list->left--;
		buf_reset(&list->last);
		buf_bytes_put(&list->last, record.key);
	}
	object_from_record(&record, ret_object);
	return FOUND;
}

const char *kinf_list_continue(struct kinf_listing *list)
{
	CHECK_OBJ(list, KINF_LIST_MAGIC);
	return list->token.size ? buf_cstr(&list->token) : NULL;
}

const char *kinf_list_plan(struct kinf_listing *list)
{
	CHECK_OBJ(list, KINF_LIST_MAGIC);
	return list->words;
}

const char *kinf_list_resource_version(struct kinf_listing *list)
{
	CHECK_OBJ(list, KINF_LIST_MAGIC);
	return list->resource_version;
}

int kinf_by_index(struct kinf_snapshot *snapshot, const char *feed, const char *index,
	const char *value, struct kinf_listing **ret_list)
{
	struct kinf_term term = {index, value};
	struct kinf_query query = {
		.size = sizeof(query), .feed = feed, .terms = &term, .n_terms = 1};

	return kinf_list(snapshot, &query, ret_list);
}
