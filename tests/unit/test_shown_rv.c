/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resourceVersion shown by a list and a feed's status is never newer than the snapshot's
 * objects: a client watching from it would miss the events in between.
 */
#include "common/buf.h"
#include "common/value/value.h"
#include "store/env/generation.h"
#include "tests/unit/query_rig.h"

TestSuite(shown_rv, .init = setup, .fini = teardown, .timeout = 120);

static bool there;

/* Appends a record of namespace a's feed, as the reflector does: the checkpoint moves with it. */
static void append(uint8_t type, const char *rv)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	struct record record = {.feed = w.feed[0], .type = type, .rv = bytes_str(rv)};
	uint64_t seq;

	OK(journal_begin(w.rig.journal));
	if (type == RECORD_MODIFIED) {
		value_close(&text, value_open_map(&text), 0);
		record.type = there ? RECORD_MODIFIED : RECORD_ADDED;
		record.key = bytes_str("a/web-200");
		record.uid = bytes_str("u1");
		record.body = buf_bytes(&text);
		there = true;
	}
	OK(journal_append(w.rig.journal, &record, &seq));
	ring_put(w.rig.delta,
		&(struct ring_entry){
			.seq = seq, .feed = record.feed, .type = record.type, .key = record.key});
}

static void checkpoint(const char *rv)
{
	OK(journal_begin(w.rig.journal));
	OK(journal_checkpoint(w.rig.journal, w.feed[0], FEED_SYNCED, bytes_str(rv)));
}

static void event(const char *rv)
{
	append(RECORD_MODIFIED, rv);
	checkpoint(rv);
	rig_commit(&w.rig);
}

static int copy_rv(void *arg, const struct kinf_feed_info *info)
{
	if (info->feed == w.feed[0])
		(void)snprintf(arg, 64, "%s", info->resource_version);
	return 0;
}

/* The resourceVersion of a list of namespace a; the status must have the same. */
static const char *shown(void)
{
	static char rv[64];
	const struct kinf_query query = {.size = sizeof(query), .feed = "pods", .namespace_ = "a"};
	struct kinf_listing *list;
	char status[64] = "none";

	OK(kinf_snapshot_renew(w.snapshot));
	OK(kinf_list(w.snapshot, &query, &list));
	(void)snprintf(rv, sizeof(rv), "%s", kinf_list_resource_version(list));
	kinf_list_close(&list);
	OK(kinf_feed_status(w.snapshot, "pods", copy_rv, status));
	cr_assert_str_eq(status, rv);
	return rv;
}

Test(shown_rv, waits_for_the_processor)
{
	event("1001");
	rig_settle(&w.rig);
	cr_assert_str_eq(shown(), "1001");
	event("1002");
	cr_assert_str_eq(shown(), "1001", "the processor has not taken 1002");
	rig_settle(&w.rig);
	cr_assert_str_eq(shown(), "1002");
}

Test(shown_rv, follows_a_bookmark_when_no_record_is_pending)
{
	event("1001");
	rig_settle(&w.rig);
	checkpoint("1500");
	rig_commit(&w.rig);
	cr_assert_str_eq(shown(), "1500");
	event("1501");
	cr_assert_str_eq(shown(), "1001", "of the last record that was taken");
	rig_settle(&w.rig);
	cr_assert_str_eq(shown(), "1501");
}

Test(shown_rv, pending_records_of_other_feeds_do_not_hold_it_back)
{
	event("1001");
	rig_settle(&w.rig);
	checkpoint("1500");
	rig_commit(&w.rig);
	change_pod(&w.pods[1]); /* of namespace b */
	rig_commit(&w.rig);
	cr_assert_str_eq(shown(), "1500");
}

Test(shown_rv, stays_while_a_list_is_open)
{
	event("1001");
	checkpoint("1100");
	rig_take(&w.rig);
	append(RECORD_LIST_BEGIN, NULL);
	append(RECORD_MODIFIED, "1200");
	rig_commit(&w.rig);
	cr_assert_str_eq(shown(), "1100", "before LIST_BEGIN was taken");
	rig_settle(&w.rig);
	cr_assert_str_eq(shown(), "1100", "after LIST_BEGIN was taken");
	append(RECORD_LIST_END, "1300");
	rig_commit(&w.rig);
	cr_assert_str_eq(shown(), "1001", "the list has ended in the journal, not in the index");
	rig_settle(&w.rig);
	cr_assert_str_eq(shown(), "1300");
}

Test(shown_rv, survives_a_new_index)
{
	event("1001");
	rig_settle(&w.rig);
	checkpoint("1100");
	rig_commit(&w.rig);
	pair_close(&w.rig.pair);
	cr_assert_geq(generation_remove_except(home_index_fd(w.rig.p.home), NULL, 0, NULL), 1);
	cr_assert_eq(unlinkat(home_index_fd(w.rig.p.home), "CURRENT", 0), 0);
	rig_settle(&w.rig);
	event("1101");
	cr_assert_str_eq(shown(), "1100", "of the state that the new index began with");
	rig_settle(&w.rig);
	cr_assert_str_eq(shown(), "1101");
}

Test(shown_rv, is_the_first_page_s_on_all_pages)
{
	struct kinf_query query = {
		.size = sizeof(query), .feed = "pods", .namespace_ = "a", .limit = 1};
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	struct kinf_object object;

	event("1001");
	rig_settle(&w.rig);
	OK(kinf_snapshot_renew(w.snapshot));
	OK(kinf_list(w.snapshot, &query, &list));
	OK(kinf_list_next(list, &object));
	cr_assert_eq(kinf_list_next(list, &object), KINF_END);
	AUTO_FREE char *token = strdup(kinf_list_continue(list));
	kinf_list_close(&list);
	event("1002");
	rig_settle(&w.rig);
	OK(kinf_snapshot_renew(w.snapshot));
	query.continue_token = token;
	OK(kinf_list(w.snapshot, &query, &list));
	cr_assert_str_eq(kinf_list_resource_version(list), "1001");
}
