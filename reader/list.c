/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf_list: the feeds behind a name one after the other, each either walked by name or, when a term
 * has few postings, by those, sorted by key first. Either way objects come in the order of their keys
 * and memory is bounded: a walk holds one entry, a sorted run at most SORT_MAX.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "reader/plan.h"

struct kinf_list {
	uint32_t magic;
	struct kinf_snapshot *snapshot;
	uint64_t taken_as;           /* SNAPSHOT's when the list began */
	struct snapshot_feed *feeds; /* copies; their texts are the snapshot's */
	size_t n_feeds, feed;        /* FEED: the one being read */
	struct query query;
	struct plan plan;            /* of that feed */
	struct index_walk *walk;
	struct run run;
	uint64_t left;               /* of the limit; UINT64_MAX: none */
	bool entered;                /* the plan of FEED is made */
	bool ended;
	struct buf last;             /* key of the last object given out */
	struct buf token;
	char resource_version[64];
	char words[512];
};

static struct snapshot *list_snapshot(struct kinf_list *list)
{
	return list->snapshot->snapshot;
}

static int list_fail(struct kinf_list *list, int code)
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

static int list_take_feeds(struct kinf_list *list, const char *name)
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
			BYTES_ARG(list->feeds[0].checkpoint.rv));
	return 0;
}

/* Every feed must have every index asked for: said now, not in the middle of the results. */
static int list_plan_all(struct kinf_list *list)
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
	struct kinf_list **ret_list)
{
	CHECK_OBJ(snapshot, KINF_SNAPSHOT_MAGIC);
	int r = kinf_held(snapshot);

	if (r < 0)
		return r;
	struct kinf_list *list = calloc(1, sizeof(*list));
	if (!list)
		return kinf_result(snapshot->kinf, err_set(-ENOMEM, "list"));
	list->magic = KINF_LIST_MAGIC;
	list->snapshot = snapshot;
	list->taken_as = snapshot->taken_as;
	list->left = query->limit ? query->limit : UINT64_MAX;
	r = query_init(&list->query, query);
	if (r == 0)
		r = list_take_feeds(list, query->feed);
	if (r == 0)
		r = list_plan_all(list);
	if (r != 0)
		kinf_list_close(&list);
	else
		*ret_list = list;
	return kinf_result(snapshot->kinf, r);
}

void kinf_list_close(struct kinf_list **list)
{
	if (!list || !*list)
		return;
	struct kinf_list *l = TAKE(*list);

	CHECK_OBJ(l, KINF_LIST_MAGIC);
	index_walk_close(&l->walk);
	run_release(&l->run);
	plan_release(&l->plan);
	query_release(&l->query);
	buf_release(&l->last);
	buf_release(&l->token);
	free(l->feeds);
	l->magic = 0;
	free(l);
}

/* Opens the walk that the plan of the present feed asks for. */
static int list_enter(struct kinf_list *list)
{
	struct snapshot *snapshot = list_snapshot(list);
	const struct snapshot_feed *feed = &list->feeds[list->feed];
	/* That of the first feed was made last when the list was opened. */
	int r = list->feed ? plan_make(snapshot, feed, &list->query, &list->plan) : 0;

	if (r != 0)
		return r;
	list->entered = true;
	if (list->plan.empty)
		return 0;
	if (list->plan.postings)
		return run_fill(&list->run, snapshot, feed->definition.id, &list->plan, &list->query);
	return index_names(snapshot_index(snapshot), snapshot_index_txn(snapshot),
		feed->definition.id, list->plan.prefix, buf_bytes(&list->query.from), &list->walk);
}

static void list_leave(struct kinf_list *list)
{
	index_walk_close(&list->walk);
	run_reset(&list->run);
	list->entered = false;
	list->feed++;
}

/* Next candidate of the present feed, in key order. FOUND, END. */
static int list_candidate(struct kinf_list *list, struct bytes *ret_key,
	struct index_entry *ret_entry)
{
	if (list->plan.empty)
		return END;
	if (list->plan.postings)
		return run_next(&list->run, list_snapshot(list), ret_key, ret_entry);
	return index_walk_next(list->walk, ret_key, ret_entry);
}

/* Next object that meets the whole query, over all feeds. */
static int list_step(struct kinf_list *list, struct record *ret_record)
{
	struct index_entry entry;
	struct bytes key;

	while (list->feed < list->n_feeds) {
		int r = list->entered ? 0 : list_enter(list);

		if (r == 0)
			r = list_candidate(list, &key, &entry);
		if (r == END) {
			list_leave(list);
			continue;
		}
		if (r == FOUND)
			r = plan_accepts(&list->plan, &list->query, list_snapshot(list), key,
				&entry);
		if (r == NOT_FOUND)
			continue;
		if (r == FOUND)
			r = snapshot_record(list_snapshot(list),
				list->feeds[list->feed].definition.id, key, &entry, ret_record);
		if (r == FOUND)
			r = plan_matches(&list->plan, &list->query, ret_record);
		if (r != NOT_FOUND)
			return r;
	}
	return END;
}

int kinf_list_next(struct kinf_list *list, struct kinf_object *ret_object)
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
	r = list_step(list, &record);
	if (r == END)
		list->ended = true;
	if (r != FOUND)
		return list_fail(list, r);
	if (list->left == 0) { /* one more would match: the page ends with a token */
		list->ended = true;
		r = query_token(buf_bytes(&list->last), &list->token);
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

const char *kinf_list_continue(struct kinf_list *list)
{
	CHECK_OBJ(list, KINF_LIST_MAGIC);
	return list->token.size ? buf_cstr(&list->token) : NULL;
}

const char *kinf_list_plan(struct kinf_list *list)
{
	CHECK_OBJ(list, KINF_LIST_MAGIC);
	return list->words;
}

const char *kinf_list_resource_version(struct kinf_list *list)
{
	CHECK_OBJ(list, KINF_LIST_MAGIC);
	return list->resource_version;
}

int kinf_by_index(struct kinf_snapshot *snapshot, const char *feed, const char *index,
	const char *value, struct kinf_list **ret_list)
{
	struct kinf_term term = {index, value};
	struct kinf_query query = {
		.size = sizeof(query), .feed = feed, .terms = &term, .n_terms = 1};

	return kinf_list(snapshot, &query, ret_list);
}
