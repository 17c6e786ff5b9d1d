/* SPDX-License-Identifier: Apache-2.0 */
/* kinf_list and its like against brute force over a small store made by the processor's modules. */
#include "reader/kinf.h"
#include "tests/unit/query_rig.h"

TestSuite(query, .init = setup, .fini = teardown, .timeout = 120);

static bool any(const struct pod *p)
{
	return p->there;
}
static bool in_c_of_web_00(const struct pod *p)
{
	return *p->namespace_ == 'c' && strncmp(p->name, "web-00", 6) == 0;
}
static bool even_app_from_2(const struct pod *p)
{
	return p->app == 2 || p->app == 4;
}
static bool phase_is_not_0(const struct pod *p)
{
	return p->phase != 0;
}
static bool on_node_1_in_phase_1(const struct pod *p)
{
	return p->node == 1 && p->phase == 1;
}
static bool odd_and_not_app_1(const struct pod *p)
{
	return p->app == 3;
}
static bool none(const struct pod *p)
{
	(void)p;
	return false;
}

static const struct kinf_term side = {"image", "side"}, on_node = {"node-phase", "n1,p1"},
			      odd = {"label", "odd"}, nowhere = {"node", "nowhere"};
/* tests/model has the other combinations, of one feed each. */
static const struct {
	struct kinf_query query;
	bool (*holds)(const struct pod *);
} rows[] = {
	{{.label_selector = "", .field_selector = "spec.nowhere="}, any},
	{{.namespace_ = "c", .prefix = "web-00"}, in_c_of_web_00},
	{{.label_selector = "app in (a2,a4),!odd"}, even_app_from_2},
	{{.field_selector = "status.phase!=p0"}, phase_is_not_0},
	{{.field_selector = "spec.nodeName=n1,status.phase=p1"}, on_node_1_in_phase_1},
	{{.terms = &on_node, .n_terms = 1}, on_node_1_in_phase_1},
	{{.terms = &side, .n_terms = 1}, any},
	{{.terms = &odd, .n_terms = 1, .label_selector = "app!=a1"}, odd_and_not_app_1},
	{{.terms = &nowhere, .n_terms = 1}, none},
	{{.field_selector = "spec.nodeName="}, none},
	{{.namespace_ = "nowhere"}, none},
};

/* ---- tests -------------------------------------------------------------- */

Test(query, objects_of_all_feeds_of_a_name_come_in_key_order)
{
	for (unsigned round = 0; round < 5 * ARRAY_SIZE(rows); round++) {
		bool (*holds)(const struct pod *) = rows[round % ARRAY_SIZE(rows)].holds;
		struct kinf_query query = rows[round % ARRAY_SIZE(rows)].query;
		struct kinf_object object;
		struct kinf_listing *list;
		char last[40] = "", key[40];
		size_t n = 0, wanted = 0;
		int r;

		query.size = sizeof(query);
		query.feed = "pods";
		OK(kinf_list(w.snapshot, &query, &list));
		memset(&query, 0x5a, sizeof(query)); /* nothing of it is used any more */
		for (; (r = kinf_list_next(list, &object)) == KINF_FOUND; n++) {
			(void)snprintf(key, sizeof(key), "%.*s", (int)object.key_size, object.key);
			cr_assert(holds(pod_of(&object)), "%s by %s", key, kinf_list_plan(list));
			cr_assert_lt(strcmp(last, key), 0, "%s after %s", key, last);
			(void)snprintf(last, sizeof(last), "%s", key);
		}
		cr_assert_eq(r, KINF_END, "%s", kinf_error(w.kinf));
		for (unsigned i = 0; i < OBJECTS; i++)
			wanted += w.pods[i].there && holds(&w.pods[i]);
		cr_assert_eq(n, wanted, "%zu of %zu by %s", n, wanted, kinf_list_plan(list));
		cr_assert_null(kinf_list_continue(list));
		kinf_list_close(&list);
		if (round % ARRAY_SIZE(rows) == 0) {
			for (unsigned i = 0; i < 10; i++)
				change_pod(&w.pods[dice(OBJECTS)]);
			take();
		}
	}
}

Test(query, get_finds_what_is_there_and_nothing_else)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		struct kinf_object object;
		int r = kinf_get(w.snapshot, "pods", w.pods[i].namespace_, w.pods[i].name, &object);

		cr_assert_eq(r, w.pods[i].there ? KINF_FOUND : KINF_NOT_FOUND);
		if (r == KINF_FOUND)
			cr_assert_eq(pod_of(&object), &w.pods[i]);
	}
	struct kinf_object object;
	cr_assert_eq(kinf_get(w.snapshot, "pods", "a", "nobody", &object), KINF_NOT_FOUND);
	cr_assert_eq(kinf_get(w.snapshot, "secrets", "a", "x", &object), KINF_NO_FEED);
	cr_assert_str_eq(kinf_error(w.kinf), NO_FEED("secrets"));
}

static int give_no_change(void *arg, const struct kinf_change *change)
{
	(void)arg;
	(void)change;
	cr_assert_fail("nothing is retained");
	return 0;
}

Test(query, no_object_has_a_key_that_is_too_long)
{
	static char longer[2 * 1024];
	struct kinf_object object;

	memset(longer, 'a', sizeof(longer) - 1);
	cr_assert_eq(kinf_get(w.snapshot, "pods", "a", longer, &object), KINF_NOT_FOUND);
	cr_assert_eq(kinf_get(w.snapshot, "pods", longer, "a", &object), KINF_NOT_FOUND);
	cr_assert_eq(kinf_history(w.snapshot, "pods", "a", longer, give_no_change, NULL),
		KINF_NOT_FOUND);
}

/* An empty name does not mean all feeds; only kinf_feed_status() takes NULL for them. */
Test(query, a_feed_without_name_is_refused_also_after_all_feeds_were_asked_for)
{
	struct kinf_query query = {.size = sizeof(query), .feed = ""};
	struct kinf_listing *list = NULL;
	struct kinf_object object;
	unsigned feeds = 0;

	while (!w.pods[feeds].there)
		feeds++;
	const struct pod *pod = &w.pods[feeds];
	feeds = 0;
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(kinf_list(w.snapshot, &query, &list), KINF_NO_FEED);
		cr_assert_str_eq(
			kinf_error(w.kinf), "no feed has an empty name; there are: 'pods'");
		cr_assert_eq(kinf_get(w.snapshot, "", pod->namespace_, pod->name, &object),
			KINF_NO_FEED);
		OK(kinf_feed_status(w.snapshot, NULL, count_feed, &feeds));
		cr_assert_eq(feeds, 3u * ((unsigned)i + 1));
		cr_assert_eq(kinf_feed_status(w.snapshot, "", count_feed, &feeds), KINF_NO_FEED);
	}
	cr_assert_eq(kinf_get(w.snapshot, NULL, pod->namespace_, pod->name, &object), -EINVAL);
	cr_assert_eq(kinf_get_many(w.snapshot, NULL, NULL, 0, NULL, NULL), -EINVAL);
	cr_assert_eq(
		kinf_history(w.snapshot, NULL, pod->namespace_, pod->name, NULL, NULL), -EINVAL);
	cr_assert_eq(kinf_index_list(w.snapshot, NULL, NULL, NULL), -EINVAL);
	cr_assert_eq(kinf_index_values(w.snapshot, NULL, "node", "", NULL, NULL), -EINVAL);
	cr_assert_eq(kinf_wait_synced(w.kinf, &(const char *){NULL}, 1, 0), -EINVAL);
	cr_assert_eq(kinf_wait_rv(w.kinf, NULL, "1", 0), -EINVAL);
	cr_assert_str_eq(kinf_error(w.kinf), "the name of the feed is NULL");
}

/* As getenv() gives it, for instance. */
Test(query, text_that_is_missing_is_an_error)
{
	struct kinf_query query = {.size = sizeof(query), .feed = "pods", .n_terms = 1};
	struct kinf_listing *list = NULL;
	struct kinf_object object;
	const char *text;
	size_t size;

	cr_assert_eq(kinf_get(w.snapshot, "pods", "ns-0", NULL, &object), -EINVAL);
	cr_assert_str_eq(kinf_error(w.kinf), "the name of the object is NULL");
	cr_assert_eq(kinf_history(w.snapshot, "pods", NULL, NULL, NULL, NULL), -EINVAL);
	cr_assert_eq(kinf_index_values(w.snapshot, "pods", NULL, NULL, NULL, NULL), -EINVAL);
	cr_assert_str_eq(kinf_error(w.kinf), "the name of the index is NULL");
	cr_assert_eq(kinf_list(w.snapshot, &query, &list), -EINVAL);
	cr_assert(strstr(kinf_error(w.kinf), "terms"), "%s", kinf_error(w.kinf));
	cr_assert_eq(kinf_list(w.snapshot, NULL, &list), -EINVAL);
	cr_assert_eq(kinf_get(w.snapshot, "pods", w.pods[0].namespace_, w.pods[0].name, &object),
		KINF_FOUND);
	cr_assert_eq(kinf_object_path(&object, NULL, &text, &size), -EINVAL);
	cr_assert_eq(kinf_object_part(&object, NULL, &object), -EINVAL);
	cr_assert_eq(kinf_object_each(&object, NULL, NULL, NULL), -EINVAL);
	cr_assert_str_eq(kinf_error(NULL), "the field path is NULL");
}

struct many {
	size_t next, ends_at;
	bool renews;
};

static int got_one(void *arg, size_t i, int result, const struct kinf_object *object)
{
	struct many *many = arg;

	cr_assert_eq(i, many->next++, "each key once, in order");
	if (i < OBJECTS) {
		cr_assert_eq(result, w.pods[i].there ? KINF_FOUND : KINF_NOT_FOUND, "%zu", i);
		if (result == KINF_FOUND)
			cr_assert_eq(pod_of(object), &w.pods[i]);
	} else {
		cr_assert_eq(result, KINF_NOT_FOUND, "%zu", i);
	}
	if (result != KINF_FOUND)
		cr_assert_null(object);
	if (many->renews)
		OK(kinf_snapshot_renew(w.snapshot));
	return i + 1 == many->ends_at ? 42 : 0;
}

Test(query, get_many_gives_each_key_once_what_get_gives)
{
	static char keys[OBJECTS][300], longer[2 * 1024];
	const char *all[OBJECTS + 4];
	struct many many = {0};

	for (unsigned i = 0; i < OBJECTS; i++) {
		(void)snprintf(
			keys[i], sizeof(keys[i]), "%s/%s", w.pods[i].namespace_, w.pods[i].name);
		all[i] = keys[i];
	}
	memset(longer, 'a', sizeof(longer) - 1);
	all[OBJECTS] = "a/nobody";
	all[OBJECTS + 1] = "";
	all[OBJECTS + 2] = "/";
	all[OBJECTS + 3] = longer;
	cr_assert_eq(kinf_get_many(w.snapshot, "pods", all, OBJECTS + 4, got_one, &many), 0);
	cr_assert_eq(many.next, OBJECTS + 4);
	many = (struct many){0};
	cr_assert_eq(kinf_get_many(w.snapshot, "pods", NULL, 0, got_one, &many), 0);
	cr_assert_eq(many.next, 0);
	many = (struct many){.ends_at = 3};
	cr_assert_eq(kinf_get_many(w.snapshot, "pods", all, OBJECTS, got_one, &many), 42);
	cr_assert_eq(many.next, 3, "the function's result ends the call");
	many = (struct many){.renews = true};
	cr_assert_eq(kinf_get_many(w.snapshot, "pods", all, OBJECTS, got_one, &many), -EINVAL);
	cr_assert_eq(many.next, 1, "nothing is read from a snapshot that was renewed");
	cr_assert_eq(kinf_get_many(w.snapshot, "secrets", all, 1, got_one, &many), KINF_NO_FEED);
	cr_assert_str_eq(kinf_error(w.kinf), NO_FEED("secrets"));
}

struct sum {
	uint64_t n2, total;
	char last[64];
};

static int add_value(void *arg, const char *value, size_t size, uint64_t count)
{
	struct sum *sum = arg;
	char text[64];

	(void)snprintf(text, sizeof(text), "%.*s", (int)size, value);
	cr_assert_lt(strcmp(sum->last, text), 0, "in order, each once");
	(void)snprintf(sum->last, sizeof(sum->last), "%s", text);
	sum->total += count;
	if (strcmp(text, "n2") == 0)
		sum->n2 = count;
	return 0;
}

Test(query, index_values_are_summed_over_the_feeds)
{
	struct sum sum = {0};
	uint64_t n2 = 0, total = 0;

	for (unsigned i = 0; i < OBJECTS; i++) {
		total += w.pods[i].there;
		n2 += w.pods[i].there && w.pods[i].node == 2;
	}
	OK(kinf_index_values(w.snapshot, "pods", "node", NULL, add_value, &sum));
	cr_assert_eq(sum.total, total);
	cr_assert_eq(sum.n2, n2);
	cr_assert_eq(kinf_index_values(w.snapshot, "pods", "nope", NULL, add_value, &sum),
		KINF_NO_INDEX);
}

/* Its arguments are the caller's stack: nothing of them may be used after the call. */
static struct kinf_listing *by_node(const char *node)
{
	struct kinf_listing *list;
	char copy[16];

	(void)snprintf(copy, sizeof(copy), "%s", node);
	OK(kinf_by_index(w.snapshot, "pods", "node", copy, &list));
	memset(copy, 'x', sizeof(copy));
	return list;
}

Test(query, by_index_gives_the_objects_of_one_term)
{
	struct kinf_listing *list = by_node("n1");
	struct kinf_object object;
	size_t n = 0, want = 0;

	for (unsigned i = 0; i < OBJECTS; i++)
		want += w.pods[i].there && w.pods[i].node == 1;
	while (kinf_list_next(list, &object) == KINF_FOUND)
		n++;
	kinf_list_close(&list);
	cr_assert_eq(n, want);
}

Test(query, bad_queries_say_what_is_wrong)
{
	struct kinf_listing *list = NULL;
	struct kinf_query query = {.size = sizeof(query), .feed = "pods", .continue_token = "AAAA"};

	cr_assert_eq(kinf_list(w.snapshot, &query, &list), KINF_SYNTAX);
	cr_assert_str_eq(
		kinf_error(w.kinf), "continue token 'AAAA' is none of ours; list again without it");
	query.continue_token = NULL;
	query.label_selector = "a in (";
	cr_assert_eq(kinf_list(w.snapshot, &query, &list), KINF_SYNTAX);
	query.label_selector = NULL;
	query.terms = &(struct kinf_term){"nope", "x"};
	query.n_terms = 1;
	cr_assert_eq(kinf_list(w.snapshot, &query, &list), KINF_NO_INDEX);
	cr_assert_str_eq(kinf_error(w.kinf), "feed 'pods' has no index 'nope'; it has: namespace, "
					     "label, node, image, node-phase");
	query.size = 8;
	cr_assert_eq(kinf_list(w.snapshot, &query, &list), KINF_UNSUPPORTED);
	cr_assert_null(list);
}

Test(query, a_token_goes_on_with_its_own_query_alone)
{
	struct kinf_term node = {"node", "n1"}, image = {"image", "n1"};
	struct kinf_query query = {.size = sizeof(query), .feed = "pods", .limit = 1};
	struct kinf_listing *list = NULL;
	struct kinf_object object;

	OK(kinf_list(w.snapshot, &query, &list));
	OK(kinf_list_next(list, &object));
	cr_assert_eq(kinf_list_next(list, &object), KINF_END);
	AUTO_FREE char *token = strdup(kinf_list_continue(list));
	kinf_list_close(&list);

	const struct kinf_query others[] = {
		{.label_selector = "app=a"},
		{.field_selector = "spec.nodeName=n1"},
		{.namespace_ = "b"},
		{.prefix = "p"},
		{.sort_by = "metadata.name"},
		{.terms = &node, .n_terms = 1},
		{.terms = &image, .n_terms = 1},
	};
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		struct kinf_query other = others[i];

		other.size = sizeof(other);
		other.feed = "pods";
		other.continue_token = token;
		cr_assert_eq(kinf_list(w.snapshot, &other, &list), KINF_SYNTAX, "%zu", i);
		cr_assert(strstr(kinf_error(w.kinf),
				  "the continue token is of another list: repeat "),
			"%s", kinf_error(w.kinf));
	}

	/* However long the next page is. */
	query.continue_token = token;
	query.limit = 0;
	query.label_selector = "";
	OK(kinf_list(w.snapshot, &query, &list));
	kinf_list_close(&list);
	token[strlen(token) / 2] ^= 1;
	cr_assert_eq(kinf_list(w.snapshot, &query, &list), KINF_SYNTAX);
	cr_assert(strstr(kinf_error(w.kinf), "is none of ours"), "%s", kinf_error(w.kinf));
}
