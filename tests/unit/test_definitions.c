/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/rig.h"

static struct rig rig;
static uint32_t feed;

/* 3000 objects: several slices. */
static void setup(void)
{
	rig_open(&rig, "feeds: [{resource: pods}]\n");
	feed = rig_add_feed(&rig, "pods");
	rig_append(&rig, feed, RECORD_LIST_BEGIN, NULL, NULL);
	for (int i = 0; i < 3000; i++) {
		char key[16], body[64];
		(void)snprintf(key, sizeof(key), "ns/%04d", i);
		(void)snprintf(body, sizeof(body),
			"{\"spec\":{\"nodeName\":\"n%d\",\"zone\":\"z\"}}", i % 1000);
		rig_append(&rig, feed, RECORD_ADDED, key, body);
	}
	rig_append(&rig, feed, RECORD_LIST_END, NULL, NULL);
	rig_take(&rig);
}

static void teardown(void)
{
	rig_close(&rig);
}

TestSuite(definitions, .init = setup, .fini = teardown, .timeout = 120);

Test(definitions, feed_that_will_take_over_a_name_has_its_indexes_with_its_first_list)
{
	rig_configure(&rig, "feeds: [{resource: pods, indexes: {node: spec.nodeName}}]\n");
	uint32_t next = rig_add_feed(&rig, "pods" FEED_NEXT);
	rig_append(&rig, next, RECORD_LIST_BEGIN, NULL, NULL);
	rig_append(&rig, next, RECORD_ADDED, "ns/a", "{\"spec\":{\"nodeName\":\"n7\"}}");
	rig_append(&rig, next, RECORD_LIST_END, NULL, NULL);
	rig_take(&rig);
	EXPECT(rig_under(&rig, next, "node", "n7"), "ns/a");
}

Test(definitions, changes_while_an_index_is_filled_are_in_it)
{
	rig_configure(&rig, "feeds: [{resource: pods, indexes: {node: spec.nodeName}}]\n");
	cr_assert_eq(pair_check(rig.pair), 0);
	cr_assert_eq(pair_step(rig.pair), FOUND, "a first slice, not all");
	EXPECT(rig_under(&rig, feed, "node", "n7"), "no such index");
	/* Changes before and after the filled range, a new object, and a deleted one. */
	rig_record(&rig, feed, RECORD_MODIFIED, "ns/0007", "{\"spec\":{\"nodeName\":\"moved\"}}");
	rig_record(&rig, feed, RECORD_MODIFIED, "ns/2007", "{\"spec\":{\"nodeName\":\"moved\"}}");
	rig_record(&rig, feed, RECORD_ADDED, "ns/new", "{\"spec\":{\"nodeName\":\"n7\"}}");
	rig_record(&rig, feed, RECORD_DELETED, "ns/0008", NULL);
	rig_settle(&rig);
	EXPECT(rig_under(&rig, feed, "node", "n7"), "ns/1007 ns/new");
	EXPECT(rig_under(&rig, feed, "node", "moved"), "ns/0007 ns/2007");
	EXPECT(rig_under(&rig, feed, "node", "n8"), "ns/1008 ns/2008");
}

Test(definitions, filling_goes_on_after_a_restart)
{
	rig_configure(&rig, "feeds: [{resource: pods, indexes: {node: spec.nodeName}}]\n");
	cr_assert_eq(pair_check(rig.pair), 0);
	cr_assert_eq(pair_step(rig.pair), FOUND);
	rig_restart(&rig);
	EXPECT(rig_under(&rig, feed, "node", "n7"), "ns/0007 ns/1007 ns/2007");
	cr_assert_eq(stats_get(rig.p.stats, STAT_BACKFILLED), 3000, "nothing was filled twice");
}

Test(definitions, name_with_another_path_is_filled_anew)
{
	rig_configure(&rig, "feeds: [{resource: pods, indexes: {node: spec.nodeName}}]\n");
	rig_settle(&rig);
	rig_configure(
		&rig, "feeds: [{resource: pods, indexes: {node: [spec.nodeName, spec.zone]}}]\n");
	rig_settle(&rig);
	EXPECT(rig_under(&rig, feed, "node", "n7"), "");
	EXPECT(rig_under(&rig, feed, "node", "n7,z"), "ns/0007 ns/1007 ns/2007");
}

Test(definitions, feed_that_left_the_configuration_keeps_its_indexes_until_it_is_removed)
{
	rig_configure(&rig, "feeds: [{resource: pods, indexes: {node: spec.nodeName}}]\n");
	rig_settle(&rig);
	rig_configure(&rig, "feeds: [{resource: nodes}]\n");
	rig_settle(&rig);
	EXPECT(rig_under(&rig, feed, "node", "n7"), "ns/0007 ns/1007 ns/2007");
}

Test(definitions, feed_that_is_renamed_gets_the_indexes_of_its_new_name)
{
	rig_configure(
		&rig, "feeds: [{resource: pods, name: web, indexes: {node: spec.nodeName}}]\n");
	rig_settle(&rig);
	EXPECT(rig_under(&rig, feed, "node", "n7"), "no such index");
	cr_assert_eq(journal_begin(rig.journal), 0);
	cr_assert_eq(
		journal_change_feed(rig.journal, feed, &(struct feed_change){.name = "web"}), 0);
	rig_take(&rig);
	EXPECT(rig_under(&rig, feed, "node", "n7"), "ns/0007 ns/1007 ns/2007");
}

/* The comparison is skipped while nothing changes: it reads every feed and every definition. */
Test(definitions, feeds_in_one_batch_are_all_compared_and_removed_ones_are_taken_out)
{
	char config[8192] = "feeds: [{resource: pods}";
	uint32_t feeds[100];

	for (int i = 0; i < 100; i++) {
		size_t n = strlen(config);
		char name[16];
		(void)snprintf(name, sizeof(name), "f%d", i);
		feeds[i] = rig_add_feed(&rig, name);
		(void)snprintf(
			config + n, sizeof(config) - n, ", {resource: f%d, indexes: {a: b}}", i);
	}
	rig_settle(&rig);
	EXPECT(rig_under(&rig, feeds[99], "a", "x"), "no such index");
	(void)snprintf(config + strlen(config), sizeof(config) - strlen(config), "]\n");
	rig_configure(&rig, config);
	rig_settle(&rig);
	for (int i = 0; i < 100; i++)
		EXPECT(rig_under(&rig, feeds[i], "a", "x"), "");
	for (int i = 0; i < 50; i++)
		rig_append(&rig, feeds[i], RECORD_FEED_REMOVED, NULL, NULL);
	rig_take(&rig);
	EXPECT(rig_under(&rig, feeds[49], "a", "x"), "no such index");
	EXPECT(rig_under(&rig, feeds[50], "a", "x"), "");
}
