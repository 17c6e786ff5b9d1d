/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/torture/questions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/hash.h"

#define HISTORIES 3

static void answer_take(struct answer *answer, const void *data, size_t size)
{
	answer->hash = hash_bytes(BYTES(data, size), answer->hash);
}

static void answer_take_object(struct answer *answer, const struct kinf_object *object)
{
	answer_take(answer, object->key, object->key_size);
	answer_take(answer, object->uid, object->uid_size);
	answer_take(answer, object->resource_version, object->resource_version_size);
	answer_take(answer, object->body, object->body_size);
	answer->n++;
}

/* ---- lists -------------------------------------------------------------- */

#define NODE    "node", "node-1"
#define TIER    "label", "tier=back"
#define SERVER  "label", "app.kubernetes.io/component=server"
#define ACCOUNT "account", "default"

/* The term with the fewest objects is read, and the others are looked up for each of these. */
static const struct question {
	const char *name;
	struct kinf_term terms[3];
	bool in_pages, in_past;
	struct kinf_query query;
} questions[] = {
	{"two indexes", .terms = {{NODE}, {ACCOUNT}}},
	{"an index and a label", .terms = {{NODE}, {TIER}}},
	{"two labels and an index", .terms = {{TIER}, {SERVER}, {ACCOUNT}}},
	{"two labels in a namespace", .terms = {{TIER}, {SERVER}}, .query = {.namespace_ = "ns-1"}},
	{"two labels in pages", .terms = {{TIER}, {SERVER}}, .in_pages = true},
	{"two labels in the past", .terms = {{TIER}, {SERVER}}, .in_past = true},
	{"a term and a label selector", .terms = {{ACCOUNT}},
		.query = {.label_selector = "tier=back"}},
	{"a label selector", .query = {.label_selector = "app.kubernetes.io/component=server,tier "
							 "in (back, middle),!none"}},
	{"a field with an index", .query = {.field_selector = "spec.nodeName=node-2"}},
	{"a field without one", .query = {.field_selector = "status.phase=Running"}},
	{"a namespace", .query = {.namespace_ = "ns-2"}},
	{"a prefix", .query = {.prefix = "pod-1"}},
	{"a namespace and a prefix", .query = {.namespace_ = "ns-3", .prefix = "pod-"}},
	{"a namespace and an index", .terms = {{ACCOUNT}}, .query = {.namespace_ = "ns-4"}},
	{"all in pages", .in_pages = true},
	{"all in the past", .in_past = true},
	{"all by node", .query = {.sort_by = "spec.nodeName"}},
	{"by node in pages", .in_pages = true, .query = {.sort_by = "spec.nodeName"}},
	{"by account in pages", .in_pages = true, .query = {.sort_by = "spec.serviceAccountName"}},
	{"by account in the past", .in_pages = true, .in_past = true,
		.query = {.sort_by = "spec.serviceAccountName"}},
	{"by a field that is missing, in pages", .in_pages = true,
		.query = {.sort_by = "spec.none"}},
	{"two labels by node in pages", .terms = {{TIER}, {SERVER}}, .in_pages = true,
		.query = {.sort_by = "spec.nodeName"}},
};

/* Lists a page, and sets *TOKEN to the one of the next page, or NULL. */
static int ask_page(const struct asked *asked, const struct kinf_query *query,
	struct answer *answer, char **token)
{
	struct kinf_listing *list = NULL;
	struct kinf_object object;
	int r = kinf_list(asked->snapshot, query, &list);

	while (r == 0 && (r = kinf_list_next(list, &object)) == KINF_FOUND) {
		answer_take_object(answer, &object);
		r = 0;
	}
	const char *next = r == KINF_END ? kinf_list_continue(list) : NULL;
	char *copy = next ? strdup(next) : NULL;
	free(*token);
	*token = copy;
	kinf_list_close(&list);
	return r == KINF_END ? 0 : r;
}

static void ask_list(
	const struct asked *asked, const struct question *question, struct answer *answer)
{
	struct kinf_query query = question->query;
	size_t pages = 0;
	char *token = NULL;

	query.size = sizeof(query);
	query.feed = asked->feed;
	query.terms = question->terms;
	while (query.n_terms < 3 && question->terms[query.n_terms].index)
		query.n_terms++;
	if (question->in_pages)
		query.limit = asked->n_keys / 4 + 1;
	if (question->in_past)
		query.at_event = asked->event;
	do {
		answer->result = ask_page(asked, &query, answer, &token);
		query.continue_token = token;
		query.at_event = 0;
	} while (answer->result == 0 && token &&
		 ++pages <= asked->n_keys); /* else it does not get on: the answer differs */
	free(token);
}

/* ---- indexes ------------------------------------------------------------ */

static int on_value(void *arg, const char *value, size_t size, uint64_t count)
{
	struct answer *answer = arg;

	answer_take(answer, value, size);
	answer_take(answer, &count, sizeof(count));
	answer->n++;
	return 0;
}

static void ask_values(const struct asked *asked, struct answer *answer)
{
	answer->result =
		kinf_index_values(asked->snapshot, asked->feed, "label", "app", on_value, answer);
}

static int on_index(void *arg, const char *name, const char *paths, uint64_t values,
	uint64_t entries, int ready)
{
	uint64_t numbers[] = {values, entries, (uint64_t)ready};
	struct answer *answer = arg;

	answer_take(answer, name, strlen(name));
	answer_take(answer, paths, strlen(paths));
	answer_take(answer, numbers, sizeof(numbers));
	answer->n++;
	return 0;
}

static void ask_indexes(const struct asked *asked, struct answer *answer)
{
	answer->result = kinf_index_list(asked->snapshot, asked->feed, on_index, answer);
}

/* ---- single objects ----------------------------------------------------- */

static int on_got(void *arg, size_t i, int result, const struct kinf_object *object)
{
	struct answer *answer = arg;

	answer_take(answer, &i, sizeof(i));
	if (result == KINF_FOUND)
		answer_take_object(answer, object);
	return 0;
}

static void ask_many(const struct asked *asked, struct answer *answer)
{
	answer->result = kinf_get_many(
		asked->snapshot, asked->feed, asked->keys, asked->n_keys, on_got, answer);
}

static int on_change(void *arg, const struct kinf_change *change)
{
	struct answer *answer = arg;

	answer_take(answer, change->type, strlen(change->type));
	answer_take(answer, &change->event, sizeof(change->event));
	answer_take_object(answer, &change->object);
	return 0;
}

static void ask_history(const struct asked *asked, struct answer *answer)
{
	char namespace[256];

	for (size_t i = 0; i < HISTORIES && !answer->result; i++) {
		const char *key = asked->keys[i * asked->n_keys / HISTORIES],
			   *slash = strchr(key, '/');

		(void)snprintf(namespace, sizeof(namespace), "%.*s", (int)(slash - key), key);
		answer->result = kinf_history(
			asked->snapshot, asked->feed, namespace, slash + 1, on_change, answer);
	}
}

/* ---- changes ------------------------------------------------------------ */

static void on_add(void *arg, const struct kinf_object *object, int initial)
{
	(void)initial;
	answer_take_object(arg, object);
}

static void on_update(void *arg, const struct kinf_object *old, const struct kinf_object *object)
{
	answer_take_object(arg, old);
	answer_take_object(arg, object);
}

static void on_delete(void *arg, const struct kinf_object *object, int final_state_unknown)
{
	(void)final_state_unknown;
	answer_take_object(arg, object);
}

static void on_sync(void *arg)
{
	(void)arg;
}

static void on_lapped(void *arg)
{
	struct answer *answer = arg;

	answer->result = KINF_GONE; /* changes are missing */
}

/* Follows all changes after an event. */
static void ask_changes(const struct asked *asked, struct answer *answer)
{
	struct kinf_informer_options options = {.size = sizeof(options), .from = asked->event};
	struct kinf_handler_options how = {.size = sizeof(how),
		.arg = answer,
		.on_add = on_add,
		.on_update = on_update,
		.on_delete = on_delete,
		.on_sync = on_sync,
		.on_lapped = on_lapped};
	struct kinf_informer *informer = NULL;
	struct kinf_handler *handler;
	int r = kinf_informer_new(asked->kinf, asked->feed, &options, &informer);

	if (r >= 0)
		r = kinf_informer_add_handler(informer, &how, &handler);
	for (int turn = 0; r >= 0 && !answer->result && turn < 10000; turn++) {
		r = kinf_informer_dispatch(informer, 64);
		if (r == 0 && kinf_handler_event(handler) >= kinf_snapshot_event(asked->snapshot))
			break;
	}
	if (r < 0)
		answer->result = r;
	kinf_informer_free(&informer);
}

static const struct {
	const char *name;
	void (*ask)(const struct asked *asked, struct answer *answer);
} others[] = {
	{"values of an index", ask_values},
	{"indexes", ask_indexes},
	{"many objects", ask_many},
	{"history", ask_history},
	{"changes", ask_changes},
};

_Static_assert(ARRAY_SIZE(questions) + ARRAY_SIZE(others) <= ANSWERS_MAX, "room for the answers");

size_t questions_ask(const struct asked *asked, struct answer ret_answers[ANSWERS_MAX])
{
	size_t n = ARRAY_SIZE(questions) + ARRAY_SIZE(others);

	for (size_t i = 0; i < n; i++) {
		struct answer *answer = &ret_answers[i];
		size_t other = i - ARRAY_SIZE(questions);

		*answer =
			(struct answer){.question = i < ARRAY_SIZE(questions) ? questions[i].name
									      : others[other].name};
		if (i < ARRAY_SIZE(questions))
			ask_list(asked, &questions[i], answer);
		else
			others[other].ask(asked, answer);
		answer->is_mute = answer->result < 0 && !*kinf_error(asked->kinf);
	}
	return n;
}
