/* SPDX-License-Identifier: Apache-2.0 */
/* How much history the journal says it has, and trimming by it. */
#include "store/journal/journal.h"

#include "tests/unit/rig.h"

#define CONFIG "feeds: [{resource: pods}, {resource: nodes}]\n"

static struct journal_meta meta_of(struct journal *journal)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct journal_meta meta;

	cr_assert_eq(txn_begin_read(journal_env(journal), &txn), 0);
	cr_assert_eq(journal_meta(journal, txn, &meta), 0);
	return meta;
}

/* Bytes of the records above the horizon, one by one. */
static uint64_t counted(struct journal *journal)
{
	CLEANUP(journal_walk_close) struct journal_walk *walk = NULL;
	CLEANUP(txn_abort) struct txn *txn = NULL;
	uint64_t horizon = meta_of(journal).horizon, bytes = 0;
	struct record record;

	cr_assert_eq(txn_begin_read(journal_env(journal), &txn), 0);
	cr_assert_eq(journal_walk_open(txn, horizon + 1, &walk), 0);
	while (journal_walk_next(walk, &record) == FOUND)
		bytes += record.stored.size;
	return bytes;
}

static void expect_counted(struct journal *journal)
{
	uint64_t bytes = counted(journal);

	cr_assert_eq(journal_history(journal), bytes);
	cr_assert_eq(meta_of(journal).history, bytes);
}

static void fill(struct rig *rig, uint32_t feed, unsigned n)
{
	char key[16], json[512];

	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(key, sizeof(key), "ns/%u", i);
		(void)snprintf(json, sizeof(json), "{\"x\":\"%0*d\"}", 100 + (int)(i % 7) * 40, 1);
		rig_append(rig, feed, RECORD_ADDED, key, json);
	}
	rig_commit(rig);
}

static void trim(struct journal *journal, const struct trim_goal *goal, size_t limit)
{
	uint64_t trimmed;
	int r;

	while ((r = journal_trim_towards(journal, goal, limit, &trimmed)) == AGAIN)
		expect_counted(journal);
	cr_assert_eq(r, 0, "%s", err_text(r));
	expect_counted(journal);
}

Test(history, is_what_lies_above_the_horizon)
{
	struct rig rig;

	rig_open(&rig, CONFIG);
	uint32_t pods = rig_add_feed(&rig, "pods"), nodes = rig_add_feed(&rig, "nodes");
	fill(&rig, pods, 50);
	fill(&rig, nodes, 20);
	expect_counted(rig.journal);
	rig_record(&rig, pods, RECORD_DELETED, "ns/3", NULL);
	rig_record(&rig, nodes, RECORD_FEED_REMOVED, "", NULL);
	expect_counted(rig.journal);
	uint64_t last = meta_of(rig.journal).next_seq - 1;
	trim(rig.journal, &(struct trim_goal){.target = 30, .most = UINT64_MAX}, 7);
	cr_assert_eq(meta_of(rig.journal).horizon, 30);
	trim(rig.journal, &(struct trim_goal){.target = last, .most = UINT64_MAX}, 7);
	cr_assert_eq(journal_history(rig.journal), 0);
	rig_close(&rig);
}

Test(history, is_what_it_was_after_an_abort)
{
	struct rig rig;

	rig_open(&rig, CONFIG);
	uint32_t pods = rig_add_feed(&rig, "pods");
	fill(&rig, pods, 10);
	uint64_t before = journal_history(rig.journal);
	rig_append(&rig, pods, RECORD_ADDED, "ns/new", "{\"x\":1}");
	cr_assert_gt(journal_history(rig.journal), before);
	journal_abort(rig.journal);
	cr_assert_eq(journal_begin(rig.journal), 0);
	cr_assert_eq(journal_history(rig.journal), before);
	journal_abort(rig.journal);
	rig_close(&rig);
}

Test(history, is_trimmed_to_a_size_and_no_further)
{
	struct rig rig;

	rig_open(&rig, CONFIG);
	uint32_t pods = rig_add_feed(&rig, "pods");
	fill(&rig, pods, 100);
	uint64_t last = meta_of(rig.journal).next_seq - 1, most = counted(rig.journal) / 3;

	trim(rig.journal, &(struct trim_goal){.target = 2, .bound = 10, .most = most}, 7);
	cr_assert_eq(meta_of(rig.journal).horizon, 10, "the bound counts more");
	trim(rig.journal, &(struct trim_goal){.target = 2, .bound = last, .most = most}, 7);
	cr_assert_leq(counted(rig.journal), most);
	cr_assert_gt(counted(rig.journal) + 500, most, "as much as may be is kept");
	uint64_t horizon = meta_of(rig.journal).horizon;
	trim(rig.journal, &(struct trim_goal){.target = horizon - 1, .bound = last, .most = most},
		7);
	cr_assert_eq(meta_of(rig.journal).horizon, horizon, "it never goes back");
	trim(rig.journal, &(struct trim_goal){.target = last, .bound = last, .most = most}, 7);
	cr_assert_eq(counted(rig.journal), 0, "the target counts however little there is");
	rig_close(&rig);
}
