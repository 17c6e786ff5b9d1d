/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf_list: walks the feeds of a name one after the other, and each feed's candidates in key
 * order. Memory is bounded: a walk over names holds one entry, sorted postings at most SORT_MAX. A
 * list in another order (sorted.h) reads all candidates first.
 *
 * All pages show the state as of the first one. If a feed has changed since, its state is read
 * through an as_of (store/read/as_of.h), otherwise from the index.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "reader/plan.h"
#include "reader/candidates.h"
#include "reader/past.h"
#include "reader/sorted.h"

struct kinf_listing {
	uint32_t magic;
	struct kinf_snapshot *snapshot;
	uint64_t taken_as;           /* SNAPSHOT's when the list began */
	struct snapshot_feed *feeds; /* copies; their texts are the snapshot's */
	struct as_of **as_of; /* of each feed; NULL: its newest state is the one of the list */
	size_t n_feeds, feed; /* FEED: the one being read */
	struct query query;
	struct plan plan; /* of that feed */
	struct candidates candidates;
	bool entered;          /* PLAN and CANDIDATES are FEED's */
	struct sorted *sorted; /* NULL: by key */
	bool filled;           /* SORTED has its candidates */
	uint64_t left;         /* of the limit; UINT64_MAX: none */
	bool ended;
	bool passed;             /* the last error is of one object: the list goes on after it */
	struct err_kept damaged; /* the first unsortable object; code 0: none */
	struct query_place last; /* of the object given last, and the list's state */
	struct buf token;
	uint64_t read, given; /* objects */
	char resource_version[64];
	char words[512];
	char plan_text[640]; /* words, and figures of the reads */
	char advice[ADVICE_SIZE];
};

static int list_fail(struct kinf_listing *list, int code)
{
	if ((code < 0 && !list->passed) || code == GONE)
		list->ended = true;
	return kinf_result_of(list->snapshot, code);
}

/* Returns the name for continue tokens, independent of the caller's spelling. */
static const char *list_feed_name(const struct kinf_listing *list)
{
	return list->n_feeds ? list->feeds[0].definition.name : "";
}

/* The set has its feeds in the order of their keys. Returns: 0; AGAIN: no feed with such objects
 * has been listed, or the first list of one is under way. */
static int list_find_feeds(struct kinf_listing *list, const char *name)
{
	const struct feed_set *set;
	size_t listed = 0;
	int r = feed_set_get(list->snapshot, name, &set);

	if (r != FOUND)
		return r;
	list->feeds = calloc(set->n + 1, sizeof(*list->feeds));
	list->as_of = calloc(set->n + 1, sizeof(struct as_of *));
	if (!list->feeds || !list->as_of)
		return err_set(-ENOMEM, "list of '%s'", name);
	for (size_t i = 0; i < set->n; i++) {
		const char *only = set->feeds[i].definition.namespace_;

		if (*only && list->query.namespace_ && strcmp(only, list->query.namespace_) != 0)
			continue;
		/* The first list of this feed is under way, or has not come into the index yet:
		 * a result without its objects would not be complete. */
		const struct feed_checkpoint *checkpoint = &set->feeds[i].checkpoint;
		if (!set->feeds[i].visible &&
			(checkpoint->phase == FEED_LISTING || checkpoint->first_list)) {
			feed_explain_unlisted(list->snapshot, &set->feeds[i]);
			return AGAIN;
		}
		listed += set->feeds[i].visible > 0;
		list->feeds[list->n_feeds++] = set->feeds[i];
	}
	if (list->n_feeds && !listed) {
		feed_explain_unlisted(list->snapshot, &list->feeds[0]);
		return AGAIN;
	}
	return 0;
}

/* Reads the states of all feeds as of the event of list->last. Returns: 0; GONE, AGAIN: there is
 * no such state. */
static int list_find_past(struct kinf_listing *list)
{
	struct snapshot *snapshot = list->snapshot->snapshot;
	uint64_t seq = list->last.seq;

	for (size_t i = 0; i < list->n_feeds; i++) {
		struct as_of **as_of = &list->as_of[i];

		if (!list->feeds[i].visible)
			continue; /* it has had no objects so far */
		int r = past_open(
			snapshot, &list->feeds[i], seq, as_of, list->words, sizeof(list->words));
		if (r > 0 && list->query.continues) {
			*list->words = '\0'; /* kinf_result() knows a token's sentence */
			return GONE;
		}
		if (r != 0)
			return r;
		if (as_of_seq(*as_of) == list->feeds[i].visible)
			as_of_free(as_of);
	}
	return 0;
}

/* Chooses the list's state: the newest one, the one of an event, or the one of the walk's first
 * page. Returns: 0; GONE: it is no longer kept; AGAIN: the event is not there yet. */
static int list_find_state(struct kinf_listing *list)
{
	struct snapshot *snapshot = list->snapshot->snapshot;
	const struct query *query = &list->query;
	struct query_place *last = &list->last;
	bool newest = !query->continues && !query->at_event;

	if (query->continues) {
		*last = query->after;
	} else {
		memcpy(last->journal, snapshot_uuid(snapshot), sizeof(last->journal));
		last->seq = newest ? snapshot_taken(snapshot) : query->at_event;
	}
	if (newest && list->n_feeds == 1)
		last->rv = snapshot_feed_rv(&list->feeds[0]);
	(void)snprintf(list->resource_version, sizeof(list->resource_version), "%.*s",
		BYTES_ARG(last->rv));
	if (memcmp(last->journal, snapshot_uuid(snapshot), sizeof(last->journal)) != 0)
		return GONE;
	return newest ? 0 : list_find_past(list);
}

static int list_plan(struct kinf_listing *list, size_t feed)
{
	list->candidates.snapshot = list->snapshot->snapshot;
	list->candidates.feed = list->feeds[feed].definition.id;
	list->candidates.query = &list->query;
	list->candidates.plan = &list->plan;
	list->candidates.as_of = list->as_of[feed];
	return plan_make(list->snapshot->snapshot, &list->feeds[feed], &list->query,
		list->as_of[feed] != NULL, &list->plan);
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
	if (!list->query.at_event)
		list->query.at_event = snapshot->at_event;
	if (r == 0)
		r = list_find_feeds(list, query->feed);
	if (r == 0 && list->query.continues)
		r = query_continue(&list->query, list_feed_name(list));
	for (size_t i = 0; r == 0 && i < list->n_feeds; i++)
		r = query_check_feed(&list->query, &list->feeds[i].definition);
	if (r == 0)
		r = list_find_state(list);
	/* Every feed must have every index asked for: an error comes now, not in the middle of
	 * the results. The plan of the first feed stays; the first one to read something is
	 * described. */
	for (size_t i = list->n_feeds; r == 0 && i-- > 0;) {
		r = list_plan(list, i);
		if (r == 0 && (!list->plan.empty || !*list->words))
			plan_describe(&list->plan, &list->query, list->words, sizeof(list->words));
	}
	if (r == 0 && list->n_feeds == 0)
		(void)snprintf(list->words, sizeof(list->words), "no feed has this namespace");
	if (r == 0 && list->query.sort_path)
		r = sorted_new(snapshot->snapshot, list->feeds, &list->query, &list->sorted);
	r = kinf_result_of(snapshot, r);
	if (r > 0 && *list->words)
		(void)kinf_outcome(snapshot->kinf, r, list->words);
	if (r != 0)
		kinf_list_close(&list);
	else
		*ret_list = list;
	return r;
}

void kinf_list_close(struct kinf_listing **list)
{
	if (!list || !*list)
		return;
	struct kinf_listing *l = TAKE(*list);

	CHECK_OBJ(l, KINF_LIST_MAGIC);
	candidates_release(&l->candidates);
	for (size_t i = 0; i < l->n_feeds; i++)
		as_of_free(&l->as_of[i]);
	free(l->as_of);
	free(l->feeds);
	sorted_free(&l->sorted);
	plan_release(&l->plan);
	query_release(&l->query);
	buf_release(&l->token);
	l->magic = 0;
	free(l);
}

static void list_leave(struct kinf_listing *list)
{
	candidates_close(&list->candidates);
	list->entered = false;
	list->feed++;
}

/* Reads the next matching object, over all feeds, in key order. */
static int list_next_by_key(struct kinf_listing *list, struct record *ret_record)
{
	struct index_entry entry;
	struct bytes key;

	while (list->feed < list->n_feeds) {
		int r = 0;

		if (!list->entered) {
			if (list->feed > 0) /* kinf_list() has left the first one's plan */
				r = list_plan(list, list->feed);
			if (r == 0)
				r = candidates_open(&list->candidates);
			list->entered = true;
		}
		if (r == 0)
			r = candidates_next(&list->candidates, &key, &entry);
		if (r == END) {
			list_leave(list);
			continue;
		}
		if (r != FOUND)
			return r;
		list->read++;
		r = snapshot_record(list->snapshot->snapshot, list->feeds[list->feed].definition.id,
			key, &entry, ret_record);
		if (r == FOUND)
			r = plan_matches(&list->plan, &list->query, ret_record, !entry.object);
		list->passed = r == ERR_CORRUPT;
		if (r != NOT_FOUND)
			return r;
	}
	return END;
}

/* ---- in the order of a field -------------------------------------------- */

/* Offers every feed's candidates; with an index of this order, only the page's possible ones. */
static int list_fill(struct kinf_listing *list)
{
	const char *path = path_text(list->query.sort_path);
	char *words = list->words;
	size_t walked = 0; /* feeds read by an index */
	size_t used, size = sizeof(list->words);

	for (; list->feed < list->n_feeds; list_leave(list)) {
		struct candidates *candidates = &list->candidates;
		struct index_entry entry;
		struct bytes key;
		int r = list_plan(list, list->feed);

		if (r == 0)
			r = sorted_walk(list->sorted, candidates, list->feed);
		walked += r == 0;
		if (r == NOT_FOUND) {
			r = candidates_open(candidates);
			while (r == 0 && (r = candidates_next(candidates, &key, &entry)) == FOUND) {
				r = sorted_offer(
					list->sorted, &list->plan, list->feed, key, &entry);
				if (r != ERR_CORRUPT)
					continue;
				if (!list->damaged.code)
					err_keep(&list->damaged);
				err_ignore(r, "the list ends with this error");
				r = 0;
			}
			r = r == END ? 0 : r;
		}
		if (r != 0)
			return r;
	}
	sorted_end(list->sorted);
	list->read = list->sorted->read;
	list->filled = true;
	if (walked && walked == list->n_feeds) {
		(void)snprintf(words, size, "index of '%s' in its order", path);
		used = strlen(words);
		plan_describe_checks(&list->plan, &list->query, false, words + used, size - used);
	} else {
		used = strlen(words);
		(void)snprintf(words + used, size - used, "; all sorted by '%s'", path);
	}
	return 0;
}

int kinf_list_next(struct kinf_listing *list, struct kinf_object *ret_object)
{
	CHECK_OBJ(list, KINF_LIST_MAGIC);
	struct sort_value value = {.kind = SORT_MISSING};
	const struct sorted_item *item;
	struct record record;
	int r = kinf_held(list->snapshot);

	if (r < 0)
		return r;
	if (list->taken_as != list->snapshot->taken_as)
		return list_fail(list,
			err_say(-EINVAL,
				"the snapshot was renewed since this list began: list again"));
	list->passed = false;
	if (list->ended)
		return END;
	if (!list->sorted) {
		r = list_next_by_key(list, &record);
	} else {
		r = list->filled ? 0 : list_fill(list);
		if (r == 0)
			r = sorted_next(list->sorted, &item);
		if (r == FOUND) {
			value = item->value;
			r = snapshot_record(list->snapshot->snapshot,
				list->feeds[item->feed].definition.id, item->key, &item->entry,
				&record);
			list->passed = r == ERR_CORRUPT;
		}
	}
	if (r == END && list->damaged.code) { /* said once */
		err_restore(&list->damaged);
		r = list->damaged.code;
	}
	r = snapshot_result(list->snapshot->snapshot, r);
	if (r == END)
		list->ended = true;
	if (r != FOUND)
		return list_fail(list, r);
	if (list->left == 0) { /* one more would match: the page ends with a token */
		list->ended = true;
		r = query_token(&list->query, list_feed_name(list), &list->last, &list->token);
		return r < 0 ? list_fail(list, r) : END;
	}
	if (list->left != UINT64_MAX) {
		list->left--;
		list->last.value = value;
		list->last.key = record.key;
	}
	list->given++;
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
	size_t size = sizeof(list->plan_text);

	if (list->read)
		(void)snprintf(list->plan_text, size, "%s; %llu objects read for %llu", list->words,
			(unsigned long long)list->read, (unsigned long long)list->given);
	else
		(void)snprintf(list->plan_text, size, "%s", list->words);
	return list->plan_text;
}

const char *list_advice(struct kinf_listing *list)
{
	CHECK_OBJ(list, KINF_LIST_MAGIC);
	if (!list->n_feeds || kinf_held(list->snapshot) < 0)
		return "";
	int r = advice_write(list->snapshot->snapshot, &list->feeds[0], &list->query, list->read,
		list->given, list->advice);
	err_ignore(r, "an advice that can't be given is not missed");
	return list->advice;
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
