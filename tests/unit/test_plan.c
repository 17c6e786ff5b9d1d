/* SPDX-License-Identifier: Apache-2.0 */
/* Terms with more postings than are sorted. */
#include "tests/unit/query_rig.h"

TestSuite(query, .init = setup, .fini = teardown, .timeout = 120);

#define SORT_MAX 8192 /* reader/plan.h */

/* Objects of a feed of their own: `big` on all, `even` on every second, `fifth` on every fifth,
 * `few` on every thousandth. */
static void add_many(uint32_t feed, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		char key[40], json[200];

		(void)snprintf(key, sizeof(key), "m/o-%05u", i * 7919u % 100003u);
		(void)snprintf(json, sizeof(json),
			"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"m\",\"labels\":{\"big\":"
			"\"1\"%s%s%s}}}",
			key + 2, i % 2 ? "" : ",\"even\":\"1\"", i % 5 ? "" : ",\"fifth\":\"1\"",
			i % 1000 ? "" : ",\"few\":\"1\"");
		(void)rig_append(&w.rig, feed, RECORD_ADDED, key, json);
	}
}

static size_t count_in_order(
	const char *selector, const struct kinf_term *asked, uint64_t n_asked, const char *plan)
{
	struct kinf_query query = {.size = sizeof(query),
		.feed = "many",
		.label_selector = selector,
		.terms = asked,
		.n_terms = n_asked};
	struct kinf_object object;
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	char last[40] = "";
	size_t n = 0;
	int r;

	OK(kinf_list(w.snapshot, &query, &list));
	cr_assert_not_null(strstr(kinf_list_plan(list), plan), "%s", kinf_list_plan(list));
	while ((r = kinf_list_next(list, &object)) == KINF_FOUND) {
		char key[40];

		(void)snprintf(key, sizeof(key), "%.*s", (int)object.key_size, object.key);
		cr_assert_lt(strcmp(last, key), 0, "%s after %s", key, last);
		(void)snprintf(last, sizeof(last), "%s", key);
		n++;
	}
	cr_assert_eq(r, KINF_END);
	return n;
}

Test(query, terms_with_more_postings_than_are_sorted_are_checked_on_a_walk_over_names)
{
	static const struct kinf_term big[] = {{"label", "big=1"}, {"label", "even=1"}};
	uint32_t feed = rig_add_feed(&w.rig, "many");

	(void)rig_append(&w.rig, feed, RECORD_LIST_BEGIN, NULL, NULL);
	add_many(feed, 0, SORT_MAX);
	(void)rig_append(&w.rig, feed, RECORD_LIST_END, NULL, NULL);
	take();
	cr_assert_eq(count_in_order("big=1", NULL, 0, "8192 postings sorted"), SORT_MAX);
	cr_assert_eq(count_in_order(NULL, big, 1, "8192 postings sorted"), SORT_MAX);

	add_many(feed, SORT_MAX, 2 * SORT_MAX + 2);
	take();
	cr_assert_eq(count_in_order("big=1", NULL, 0, "all names"), 2 * SORT_MAX + 2);
	cr_assert_eq(count_in_order("even=1", NULL, 0, "all names"), SORT_MAX + 1);
	cr_assert_eq(count_in_order(NULL, big, 2, "all names"), SORT_MAX + 1);
	cr_assert_eq(count_in_order("few=1", big, 2, "17 postings sorted"), 17);
	cr_assert_eq(count_in_order("!few", big, 2, "all names"), SORT_MAX + 1 - 17);
}

/* Checks the plan of a list of SELECTOR and FIELDS in NAME_SPACE, and the bodies that it read;
 * NULL: none. */
static void expect_read(const char *selector, const char *fields, const char *name_space,
	const char *plan, const char *read)
{
	struct kinf_query query = {.size = sizeof(query),
		.feed = "many",
		.label_selector = selector,
		.field_selector = fields,
		.namespace_ = name_space};
	struct kinf_object object;
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;

	OK(kinf_list(w.snapshot, &query, &list));
	while (kinf_list_next(list, &object) == KINF_FOUND)
		;
	const char *found = kinf_list_plan(list);
	cr_assert_not_null(strstr(found, plan), "%s", found);
	cr_assert_not_null(strstr(found, read ? read : "checked in the index"), "%s", found);
	cr_assert(read || !strstr(found, "read for"), "%s", found);
}

Test(query, few_postings_beat_names_and_few_names_beat_postings)
{
	uint32_t feed = rig_add_feed(&w.rig, "many");

	(void)rig_append(&w.rig, feed, RECORD_LIST_BEGIN, NULL, NULL);
	add_many(feed, 0, 4000);
	for (int i = 0; i < 100; i++) {
		char key[40], json[200];

		(void)snprintf(key, sizeof(key), "s/o-%05d", i);
		(void)snprintf(json, sizeof(json),
			"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"s\",\"labels\":{\"even\":"
			"\"1\"%s}}}",
			key + 2, i % 10 ? "" : ",\"few\":\"1\"");
		(void)rig_append(&w.rig, feed, RECORD_ADDED, key, json);
	}
	(void)rig_append(&w.rig, feed, RECORD_LIST_END, NULL, NULL);
	take();
	expect_read("even=1", NULL, "s", "names beginning with 's/'", "100 objects read for 100");
	expect_read("even=1", NULL, "m", "names beginning with 'm/'", "4000 objects read for 2000");
	expect_read("few=1", NULL, "m", "term 'few=1', 14 postings", "4 objects read for 4");
	expect_read("few=1", NULL, "s", "term 'few=1', 14 postings", "10 objects read for 10");
	expect_read(
		"even=1", NULL, NULL, "term 'even=1', 2100 postings", "2100 objects read for 2100");
	expect_read("fifth=1", NULL, "s", "names beginning with 's/'", NULL);
	expect_read(NULL, "metadata.name=o-00077,metadata.namespace=s", NULL,
		"names beginning with 's/o-00077'", "1 objects read for 1");
	expect_read("few in (0,1,2)", NULL, NULL, "term 'few=0' and other values, 14 postings",
		"14 objects read for 14");
	expect_read("fifth in (0,1)", NULL, "s", "names beginning with 's/'", NULL);
	expect_read(NULL, "metadata.name=o-00077", NULL, "all names", "1 objects read for 1");
	expect_read(NULL, "metadata.namespace=s", NULL, "names beginning with 's/'",
		"100 objects read for 100");
	expect_read("even=1", "metadata.namespace=s", NULL, "names beginning with 's/'",
		"100 objects read for 100");
}
