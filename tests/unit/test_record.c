/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/json.h"
#include "tests/unit/record_text.h"

TestSuite(record, .init = set_up, .fini = tear_down);

Test(record, a_first_list_is_a_bracket_of_added_objects)
{
	first_list();
	cr_assert_str_eq(log_after(1), "LIST_BEGIN @ ADDED d/a@5 ADDED d/b@6 LIST_END @10");
	check_checkpoint("10", false);
}

Test(record, an_empty_first_list_has_a_bracket_also)
{
	begin_list();
	end_list("10");
	cr_assert_str_eq(log_after(1), "LIST_BEGIN @ LIST_END @10");
}

Test(record, the_kind_is_added_and_dropped_fields_are_not_stored)
{
	CLEANUP(buf_release) struct buf json = BUF_INIT;
	struct record record;
	CLEANUP(txn_abort) struct txn *txn = NULL;

	first_list();
	cr_assert_eq(recorder_flush(rig.record.recorder), 0);
	cr_assert_eq(txn_begin_read(journal_env(rig.record.journal), &txn), 0);
	cr_assert_eq(journal_get(rig.record.journal, txn, 3, &record), FOUND);
	cr_assert_eq(json_write(record.body, 0, &json), 0);
	cr_assert_str_eq(buf_cstr(&json),
		"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\","
		"\"namespace\":\"d\",\"uid\":\"ua\",\"resourceVersion\":\"5\"},\"spec\":{\"n\":5}"
		"}");
}

Test(record, a_relist_without_difference_only_moves_the_checkpoint)
{
	first_list();
	uint64_t seq = last_seq();
	begin_list();
	item("a", "ua", "5");
	item("b", "ub", "6");
	end_list("20");
	cr_assert_str_eq(log_after(seq), "");
	check_checkpoint("20", false);
}

Test(record, c70_a_relist_finds_another_content_of_the_known_rv)
{
	first_list();
	uint64_t seq = last_seq();
	begin_list();
	item_text("{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"ua\","
		  "\"resourceVersion\":\"5\"},"
		  "\"spec\":{\"n\":5,\"added\":\"by a default of the new schema\"}}");
	item_text("{\"spec\":{\"n\":6},\"metadata\":{\"uid\":\"ub\",\"name\":\"b\",\"namespace\":"
		  "\"d\","
		  /* another order, and an omitted field */
		  "\"resourceVersion\":\"6\",\"managedFields\":[]}}");
	end_list("20");
	cr_assert_str_eq(log_after(seq), "LIST_BEGIN @10 MODIFIED d/a@5 LIST_END @20");
	check_checkpoint("20", false);
	/* An event of a known version is a replay (C38). */
	event(WATCH_MODIFIED, pod("a", "ua", "5"));
	event(WATCH_MODIFIED, pod("a", "ua", "5"));
	cr_assert_str_eq(log_after(seq), "LIST_BEGIN @10 MODIFIED d/a@5 LIST_END @20");
	check_checkpoint("20", false);
}

Test(record, a_relist_writes_its_differences_and_deletes_what_it_lacks)
{
	first_list();
	uint64_t seq = last_seq();
	begin_list();
	item("a", "ua", "5");
	item("c", "uc", "15");
	end_list("20");
	cr_assert_str_eq(
		log_after(seq), "LIST_BEGIN @10 ADDED d/c@15 DELETED? d/b@20 LIST_END @20");
}

Test(record, an_interrupted_list_stays_open_and_goes_on_without_writing_again)
{
	begin_list();
	item("a", "ua", "5");
	cr_assert_str_eq(log_after(1), "LIST_BEGIN @ ADDED d/a@5");
	check_checkpoint("", true);
	/* A new process: only the journal knows. */
	cr_assert_eq(record_feed_reload(feed), 0);
	begin_list();
	item("a", "ua", "5");
	item("b", "ub", "6");
	end_list("10");
	cr_assert_str_eq(log_after(1), "LIST_BEGIN @ ADDED d/a@5 ADDED d/b@6 LIST_END @10");
}

Test(record, an_abandoned_relist_is_closed_and_the_checkpoint_stays)
{
	first_list();
	uint64_t seq = last_seq();
	begin_list();
	item("c", "uc", "15");
	cr_assert_eq(record_list_abandon(feed), 0);
	cr_assert_str_eq(log_after(seq), "LIST_BEGIN @10 ADDED d/c@15 LIST_END @");
	check_checkpoint("10", false);
	/* It goes on inside a new bracket, and still knows the seen objects. */
	item("a", "ua", "5");
	end_list("20");
	cr_assert_str_eq(log_after(seq), "LIST_BEGIN @10 ADDED d/c@15 LIST_END @ LIST_BEGIN "
					 "@10 DELETED? d/b@20 LIST_END @20");
}

static void initial(enum watch_type type, const char *object)
{
	cr_assert_eq(record_initial(feed,
			     &(struct api_event){.type = type, .object = bytes_str(object)}, false),
		RECORD_TAKEN, "%s", err_text(-1));
}

Test(record, c49_a_stream_is_a_bracket_and_its_changes_are_inside)
{
	begin_list();
	initial(WATCH_ADDED, pod("a", "ua", "9"));
	initial(WATCH_ADDED, pod("b", "ub", "3"));
	initial(WATCH_MODIFIED, pod("b", "ub", "11"));
	initial(WATCH_DELETED, pod("a", "ua", "12"));
	initial(WATCH_ADDED, pod("b", "ub", "3")); /* shown again: older than before */
	initial(WATCH_DELETED, pod("x", "ux", "12"));
	check_checkpoint("", true);
	end_list("12");
	cr_assert_str_eq(log_after(1), "LIST_BEGIN @ ADDED d/a@9 ADDED d/b@3 MODIFIED d/b@11 "
				       "DELETED d/a@12 LIST_END @12");
	check_checkpoint("12", false);
}

Test(record, c52_an_empty_stream_deletes_all_objects)
{
	first_list();
	uint64_t before = last_seq();
	begin_list();
	end_list("20");
	cr_assert_str_eq(
		log_after(before), "LIST_BEGIN @10 DELETED? d/a@20 DELETED? d/b@20 LIST_END @20");
}

Test(record, asking_for_stored_objects_writes_nothing)
{
	first_list();
	uint64_t before = last_seq();
	cr_assert_eq(record_has_objects(feed), 1);
	cr_assert_eq(last_seq(), before);
	begin_list();
	cr_assert_eq(record_has_objects(feed), 1, "they are there until the list has ended");
	end_list("20");
	cr_assert_eq(record_has_objects(feed), 0, "what the open batch deleted is gone");
	cr_assert_eq(recorder_flush(rig.record.recorder), 0);
	cr_assert_eq(record_has_objects(feed), 0);
	check_checkpoint("20", false);
}

Test(record, c50_a_lost_stream_is_taken_up_inside_its_bracket)
{
	first_list();
	uint64_t before = last_seq();
	begin_list();
	initial(WATCH_ADDED, pod("a", "ua", "5"));
	initial(WATCH_ADDED, pod("c", "uc", "12"));
	check_checkpoint("10", true);
	begin_list();
	initial(WATCH_ADDED, pod("b", "ub", "6"));
	initial(WATCH_ADDED, pod("c", "uc", "12"));
	initial(WATCH_ADDED, pod("c", "uc", "12"));
	initial(WATCH_DELETED, pod("b", "ub", "14"));
	end_list("14");
	/* Object a, only in the first attempt, is deleted. */
	cr_assert_str_eq(log_after(before),
		"LIST_BEGIN @10 ADDED d/c@12 DELETED d/b@14 DELETED? d/a@14 LIST_END @14");
}

Test(record, an_object_listed_again_and_again_costs_no_memory)
{
	first_list();
	begin_list();
	for (int i = 0; i < 100000; i++)
		initial(WATCH_ADDED, i % 2 ? pod("a", "ua", "5") : pod("b", "ub", "6"));
	cr_assert_leq(feed->seen_room, 1024);
	uint64_t before = last_seq();
	end_list("20");
	cr_assert_str_eq(log_after(before), "");
}

Test(record, many_deletions_come_in_slices)
{
	char name[32];
	int slices = 1;

	begin_list();
	for (int i = 0; i < 6000; i++) {
		snprintf(name, sizeof(name), "pod-%d", i);
		item(name, "u", "5");
	}
	end_list("10");
	begin_list();
	item("pod-77", "u", "5");
	while (record_list_end(feed, BYTES_LIT("20")) == AGAIN)
		slices++;
	cr_assert_gt(slices, 10);
	cr_assert_eq(last_seq(), 1 + 6002 + 6001);
}

Test(record, c66_the_head_decides_which_record_an_event_becomes)
{
	first_list();
	uint64_t seq = last_seq();
	event(WATCH_MODIFIED, pod("a", "ua", "11"));
	event(WATCH_ADDED, pod("b", "ub", "12"));
	event(WATCH_MODIFIED, pod("c", "uc", "13"));
	event(WATCH_DELETED, pod("c", "uc", "14"));
	cr_assert_str_eq(
		log_after(seq), "MODIFIED d/a@11 MODIFIED d/b@12 ADDED d/c@13 DELETED d/c@14");
	check_checkpoint("14", false);
}

Test(record, c38_replays_and_strangers_are_dropped_and_counted)
{
	first_list();
	uint64_t seq = last_seq();
	event(WATCH_MODIFIED, pod("a", "ua", "5"));   /* the same */
	event(WATCH_MODIFIED, pod("a", "ua", "4"));   /* older */
	event(WATCH_ADDED, pod("a", "older", "3"));   /* an older one of the same name */
	event(WATCH_DELETED, pod("a", "ua", "4"));    /* before the stored version */
	event(WATCH_DELETED, pod("a", "older", "4")); /* the deletion of this older one */
	event(WATCH_DELETED, pod("z", "uz", "11"));   /* never seen */
	cr_assert_str_eq(log_after(seq), "");
	cr_assert_eq(stats_get(rig.stats, STAT_DROPPED_EVENTS), 6);
}

Test(record, c42_another_uid_is_a_deletion_and_a_new_object)
{
	first_list();
	uint64_t seq = last_seq();
	event(WATCH_MODIFIED, pod("a", "new", "11"));
	cr_assert_str_eq(log_after(seq), "DELETED? d/a@11 ADDED d/a@11");
}

Test(record, c71_a_deletion_of_another_uid_or_of_none_deletes_what_has_the_name)
{
	first_list();
	uint64_t seq = last_seq();
	event(WATCH_DELETED, pod("a", "other", "11"));
	event(WATCH_DELETED, pod("b", "", "12"));
	event(WATCH_DELETED, pod("b", "ub", "13"));
	cr_assert_str_eq(log_after(seq), "DELETED? d/a@11 DELETED? d/b@12");
	check_checkpoint("13", false);
	event(WATCH_ADDED, pod("b", "", "14"));
	event(WATCH_DELETED, pod("b", "ub", "15"));
	cr_assert_str_eq(
		log_after(seq), "DELETED? d/a@11 DELETED? d/b@12 ADDED d/b@14 DELETED? d/b@15");
}

Test(record, c71_so_does_one_of_a_stream_that_is_a_list)
{
	struct api_event gone = {
		.type = WATCH_DELETED, .object = bytes_str(pod("a", "other", "11"))};

	first_list();
	uint64_t seq = last_seq();
	begin_list();
	cr_assert_eq(record_initial(feed, &gone, false), RECORD_TAKEN);
	item("b", "ub", "6");
	end_list("20");
	cr_assert_str_eq(log_after(seq), "LIST_BEGIN @10 DELETED? d/a@11 LIST_END @20");
}

Test(record, c40_opaque_rvs_are_taken_in_the_order_they_come)
{
	first_list();
	uint64_t seq = last_seq();
	event(WATCH_MODIFIED, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"ua\","
			      "\"resourceVersion\":\"x-9\"}}");
	event(WATCH_MODIFIED, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"ua\","
			      "\"resourceVersion\":\"x-1\"}}");
	cr_assert_str_eq(log_after(seq), "MODIFIED d/a@x-9 MODIFIED d/a@x-1");
}

Test(record, names_that_json_escapes_are_stored_as_they_are)
{
	static const struct {
		const char *json, *name;
	} names[] = {{"R\\u0026D", "R&D"}, {"say \\\"hi\\\"", "say \"hi\""},
		{"back\\\\slash", "back\\slash"}, {"a\\u003cb\\u003e", "a<b>"},
		{"\\u00fcn\xc3\xaf", "\u00fcn\u00ef"}, {"\\ud83d\\uDE80", "\U0001f680"},
		{"line\\nfeed\\t\\u001b", "line\nfeed\t\x1b"}};

	first_list();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char wanted[200];
		uint64_t seq = last_seq();

		event(WATCH_ADDED, pod(names[i].json, "u\\u0026", "11"));
		event(WATCH_DELETED, pod(names[i].json, "u&", "12"));
		(void)snprintf(wanted, sizeof(wanted), "ADDED d/%s@11 DELETED d/%s@12",
			names[i].name, names[i].name);
		cr_assert_str_eq(log_after(seq), wanted);
	}
	event(WATCH_ADDED,
		"{\"metadata\":{\"name\":\"x\",\"namespace\":\"\\u0064\",\"resourceVersion\":"
		"\"1\\u0033\"}}");
	check_checkpoint("13", false);
}

Test(record, a_deletion_with_the_rv_of_the_last_state_is_recorded)
{
	first_list();
	uint64_t seq = last_seq();
	event(WATCH_DELETED, pod("a", "ua", "5"));
	cr_assert_str_eq(log_after(seq), "DELETED d/a@5");
}

Test(record, a_bookmark_moves_the_checkpoint_and_writes_no_record)
{
	struct bytes rv;

	first_list();
	uint64_t seq = last_seq();
	cr_assert_eq(record_bookmark(feed,
			     BYTES_LIT("{\"kind\":\"Pod\",\"metadata\":{"
				       "\"resourceVersion\":\"99\",\"creationTimestamp\":null}}"),
			     &rv),
		RECORD_TAKEN);
	cr_assert(bytes_equal(rv, BYTES_LIT("99")));
	cr_assert_str_eq(log_after(seq), "");
	check_checkpoint("99", false);
	cr_assert_eq(record_bookmark(feed, BYTES_LIT("{\"metadata\":{}}"), &rv), RECORD_UNREADABLE);

	char text[RV_MAX + 64];
	int n = snprintf(
		text, sizeof(text), "{\"metadata\":{\"resourceVersion\":\"%0*d\"}}", RV_MAX + 1, 1);
	cr_assert_eq(record_bookmark(feed, BYTES(text, (size_t)n), &rv), RECORD_UNREADABLE);
	check_checkpoint("99", false);
}

Test(record, after_a_failed_batch_nothing_of_it_is_there)
{
	const char *text;
	struct bytes rv;

	first_list();
	uint64_t seq = last_seq();
	event(WATCH_MODIFIED, pod("a", "ua", "11"));
	cr_assert_eq(recorder_fail(rig.record.recorder, err_set(-ENOSPC, "journal")), -ENOSPC);
	struct api_event e = {.type = WATCH_MODIFIED, .object = bytes_str(pod("a", "ua", "12"))};
	cr_assert_eq(record_event(feed, &e, false, &rv), -ENOSPC);
	cr_assert_eq(recorder_flush(rig.record.recorder), -ENOSPC);
	cr_assert_eq(recorder_error(rig.record.recorder, &text), -ENOSPC);
	cr_assert(strstr(text, "journal"));
	recorder_recover(rig.record.recorder);
	cr_assert_eq(record_feed_reload(feed), 0);
	cr_assert(bytes_equal(buf_bytes(&feed->rv), BYTES_LIT("10")));
	cr_assert_str_eq(log_after(seq), "");
}

Test(record, a_feed_that_is_removed_in_the_batch_of_its_last_event_has_no_checkpoint_to_write)
{
	struct record removed = {.type = RECORD_FEED_REMOVED};
	uint64_t seq;

	begin_list();
	end_list("1");
	cr_assert_eq(recorder_flush(rig.record.recorder), 0);
	event(WATCH_ADDED, pod("a", "u1", "5"));
	removed.feed = feed->id;
	cr_assert_eq(recorder_append(rig.record.recorder, &removed, &seq), 0);
	cr_assert_str_eq(log_after(3), "ADDED d/a@5 FEED_REMOVED @");
}

Test(record, single_change_is_committed_at_once_and_a_batch_is_not)
{
	uint64_t before = committed();

	event(WATCH_ADDED, pod("a", "u1", "5"));
	cr_assert_eq(committed(), before);
	cr_assert_eq(recorder_flush_first(rig.record.recorder), 0);
	cr_assert_eq(committed(), before + 1);
	event(WATCH_ADDED, pod("b", "u2", "6"));
	event(WATCH_ADDED, pod("c", "u3", "7"));
	cr_assert_eq(recorder_flush_first(rig.record.recorder), 0);
	cr_assert_eq(committed(), before + 1, "two records are a batch");
	cr_assert_eq(recorder_flush(rig.record.recorder), 0);
	cr_assert_eq(committed(), before + 3);
	cr_assert_eq(recorder_flush_first(rig.record.recorder), 0, "there is nothing to commit");
}
