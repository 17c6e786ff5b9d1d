/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ring/taken.h"
#include "tests/unit/rig.h"

#define PODS \
	"feeds:\n" \
	"  - resource: pods\n" \
	"    indexes:\n" \
	"      node: spec.nodeName\n" \
	"      image: spec.containers[*].image\n"

static struct rig rig;

static void setup(void)
{
	rig_open(&rig, PODS);
}

static void teardown(void)
{
	rig_close(&rig);
}

static const char *pod(const char *node, const char *app)
{
	static char text[4][256];
	static unsigned turn;
	char *at = text[turn++ % 4];

	(void)snprintf(at, sizeof(text[0]),
		"{\"metadata\":{\"labels\":{\"app\":\"%s\"}},\"spec\":{\"nodeName\":\"%s\","
		"\"containers\":[{\"image\":\"i-%s\"},{\"image\":\"side\"}]}}",
		app, node, app);
	return at;
}

/* A feed with its first list: LIST_BEGIN, the objects of PODS, LIST_END. */
static uint32_t listed_feed(const char *name)
{
	uint32_t feed = rig_add_feed(&rig, name);

	rig_append(&rig, feed, RECORD_LIST_BEGIN, NULL, NULL);
	rig_append(&rig, feed, RECORD_ADDED, "a/1", pod("n1", "x"));
	rig_append(&rig, feed, RECORD_ADDED, "b/2", pod("n2", "y"));
	rig_append(&rig, feed, RECORD_LIST_END, NULL, NULL);
	rig_commit(&rig);
	return feed;
}

TestSuite(apply, .init = setup, .fini = teardown, .timeout = 60);

Test(apply, first_list_appears_with_all_its_indexes)
{
	uint32_t feed = listed_feed("pods");

	rig_settle(&rig);
	EXPECT(rig_names(&rig, feed), "a/1@3 b/2@4");
	EXPECT(rig_under(&rig, feed, "namespace", "a"), "a/1");
	EXPECT(rig_under(&rig, feed, "label", "app=x"), "a/1");
	EXPECT(rig_under(&rig, feed, "label", "app"), "a/1 b/2");
	EXPECT(rig_under(&rig, feed, "node", "n2"), "b/2");
	EXPECT(rig_under(&rig, feed, "image", "side"), "a/1 b/2");
	cr_assert_eq(rig_feed(&rig, feed).listed, 5);
	cr_assert_eq(rig_feed(&rig, feed).objects, 2);
	cr_assert_eq(rig_taken(&rig), 5);
}

Test(apply, nothing_of_an_open_list_is_seen_while_other_feeds_go_on)
{
	uint32_t feed = listed_feed("pods"), other = listed_feed("nodes");

	rig_settle(&rig);
	char before[256];
	(void)snprintf(before, sizeof(before), "%s", rig_names(&rig, feed));
	uint64_t begin = rig_record(&rig, feed, RECORD_LIST_BEGIN, NULL, NULL);
	rig_record(&rig, feed, RECORD_MODIFIED, "a/1", pod("n9", "x"));
	rig_record(&rig, other, RECORD_ADDED, "c/3", pod("n3", "z"));
	rig_record(&rig, feed, RECORD_ADDED, "d/4", pod("n4", "z"));
	rig_settle(&rig);
	EXPECT(rig_names(&rig, feed), before);
	EXPECT(rig_under(&rig, feed, "node", "n9"), "");
	EXPECT(rig_under(&rig, other, "namespace", "c"), "c/3");
	cr_assert_eq(rig_feed(&rig, feed).list_begin, begin);

	/* Killed in the middle of the list, and the list goes on. */
	rig_restart(&rig);
	EXPECT(rig_names(&rig, feed), before);
	rig_record(&rig, feed, RECORD_DELETED, "b/2", NULL);
	uint64_t listed = rig_feed(&rig, feed).listed;
	rig_record(&rig, feed, RECORD_LIST_END, NULL, NULL);
	rig_settle(&rig);
	EXPECT(rig_under(&rig, feed, "node", "n9"), "a/1");
	EXPECT(rig_under(&rig, feed, "node", "n2"), "");
	EXPECT(rig_under(&rig, feed, "namespace", "d"), "d/4");
	cr_assert_eq(rig_feed(&rig, feed).list_begin, 0);
	cr_assert_eq(rig_feed(&rig, feed).listed, listed);
	cr_assert_eq(rig_feed(&rig, feed).objects, 2);
	EXPECT(rig_under(&rig, other, "namespace", "c"), "c/3");
}

Test(apply, object_that_comes_and_goes_inside_one_list_leaves_nothing)
{
	uint32_t feed = listed_feed("pods");

	rig_append(&rig, feed, RECORD_LIST_BEGIN, NULL, NULL);
	rig_append(&rig, feed, RECORD_ADDED, "c/3", pod("n3", "z"));
	rig_append(&rig, feed, RECORD_MODIFIED, "c/3", pod("n4", "z"));
	rig_append(&rig, feed, RECORD_DELETED, "c/3", NULL);
	rig_append(&rig, feed, RECORD_ADDED, "e/5", pod("n5", "z"));
	rig_append(&rig, feed, RECORD_MODIFIED, "e/5", pod("n6", "z"));
	rig_append(&rig, feed, RECORD_LIST_END, NULL, NULL);
	rig_take(&rig);
	EXPECT(rig_under(&rig, feed, "node", "n3"), "");
	EXPECT(rig_under(&rig, feed, "node", "n4"), "");
	EXPECT(rig_under(&rig, feed, "node", "n5"), "");
	EXPECT(rig_under(&rig, feed, "node", "n6"), "e/5");
	cr_assert_eq(rig_feed(&rig, feed).objects, 3);
}

Test(apply, each_commit_moves_the_word_that_readers_wait_on)
{
	CLEANUP(taken_detach) struct taken_reader *word = NULL;
	uint32_t feed = listed_feed("pods");

	rig_settle(&rig);
	cr_assert_eq(taken_attach(home_runtime_fd(rig.p.home), &word), 0);
	cr_assert_eq(taken_seq(word), rig_taken(&rig));
	uint64_t live = rig_record(&rig, feed, RECORD_MODIFIED, "a/1", pod("n9", "x"));
	cr_assert_eq(taken_wait(word, 1), AGAIN, "it is only in the journal");
	rig_settle(&rig);
	cr_assert_eq(taken_wait(word, 60000), 0);
	cr_assert_eq(taken_seq(word), live);
	taken_look(word);
	rig_restart(&rig); /* the index has the changes a killed processor did not publish */
	cr_assert_eq(taken_wait(word, 60000), 0);
	cr_assert_eq(taken_seq(word), live);
}

Test(apply, object_without_values_is_counted_and_found_by_name)
{
	uint32_t feed = listed_feed("pods");

	rig_record(&rig, feed, RECORD_ADDED, "z/9", "{\"spec\":{\"nodeName\":{\"a\":1}}}");
	rig_settle(&rig);
	EXPECT(rig_under(&rig, feed, "namespace", "z"), "z/9");
	cr_assert_eq(stats_get(rig.p.stats, STAT_UNINDEXABLE), 1);
}

Test(apply, removed_feed_is_taken_out_and_the_others_stay)
{
	uint32_t feed = listed_feed("pods"), other = listed_feed("nodes");

	rig_settle(&rig);
	rig_record(&rig, feed, RECORD_FEED_REMOVED, NULL, NULL);
	rig_settle(&rig);
	EXPECT(rig_names(&rig, feed), "");
	cr_assert_eq(rig_feed(&rig, feed).feed, 0);
	EXPECT(rig_under(&rig, other, "namespace", "a"), "a/1");
	rig_restart(&rig);
	cr_assert_eq(rig_generation(&rig), 1, "no rebuild was needed");
}

Test(apply, restart_takes_nothing_twice)
{
	uint32_t feed = listed_feed("pods");

	rig_settle(&rig);
	char before[256];
	(void)snprintf(before, sizeof(before), "%s", rig_names(&rig, feed));
	rig_restart(&rig);
	EXPECT(rig_names(&rig, feed), before);
	cr_assert_eq(stats_get(rig.p.stats, STAT_APPLIED), 0, "it came from the rebuild");
	rig_record(&rig, feed, RECORD_ADDED, "c/3", pod("n3", "z"));
	rig_settle(&rig);
	cr_assert_eq(stats_get(rig.p.stats, STAT_APPLIED), 1);
}
