/* SPDX-License-Identifier: Apache-2.0 */
/* Objects too large or malformed to store are passed over, and stay known as such. */
#include "tests/unit/record_text.h"

TestSuite(record_passed, .init = set_up, .fini = tear_down);

static const char *const unreadable[] = {"{}", "{\"metadata\":{\"namespace\":\"d\"}}",
	"{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"5\"}}",
	"{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"ua\"}}",
	"{\"metadata\":{\"name\":1,\"namespace\":\"d\",\"resourceVersion\":\"50\"}}",
	"{\"kind\":\"Node\",\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"resourceVersion\":"
	"\"50\"}}",
	"{\"metadata\":{\"name\":\"a\",\"namespace\":\"d\",\"uid\":\"ua\",\"resourceVersion\":"
	"\"50\"},"
	"\"spec\":{bad}}"};

/* The names of the objects the feed lacks, each followed by ';'. */
static const char *lacks(void)
{
	buf_reset(&rig.text);
	for (size_t i = 0; i < feed->n_passed; i++)
		buf_printf(&rig.text, "%s;", feed->passed[i].name);
	return buf_cstr(&rig.text);
}

Test(record_passed, c36_c37_an_unreadable_object_is_reported_or_passed_over_and_moves_nothing)
{
	struct bytes rv;
	size_t n = sizeof(unreadable) / sizeof(unreadable[0]);

	first_list();
	uint64_t seq = last_seq();
	for (size_t i = 0; i < n; i++) {
		struct api_event e = {.type = WATCH_MODIFIED, .object = bytes_str(unreadable[i])};

		cr_assert_eq(
			record_event(feed, &e, false, &rv), RECORD_UNREADABLE, "%s", unreadable[i]);
		cr_assert_eq(record_event(feed, &e, true, &rv), RECORD_TAKEN);
		cr_assert_eq(rv.size, 0);
	}
	cr_assert_str_eq(log_after(seq), "");
	cr_assert_eq(stats_get(rig.stats, STAT_BAD_OBJECTS), 2 * n);
	check_checkpoint("10", false);
}

Test(record_passed, an_unreadable_item_keeps_the_version_that_is_known)
{
	first_list();
	uint64_t seq = last_seq();
	begin_list();
	cr_assert_eq(record_item(feed, bytes_str(unreadable[6]), false, false), RECORD_UNREADABLE);
	begin_list();
	cr_assert_eq(record_item(feed, bytes_str(unreadable[6]), false, true), RECORD_TAKEN);
	end_list("20");
	cr_assert_str_eq(log_after(seq), "LIST_BEGIN @10 DELETED? d/b@20 LIST_END @20");
	cr_assert_str_eq(lacks(), "d/a;");
}

/* The beginning of a larger text. */
static struct bytes beginning(const char *uid, const char *rv)
{
	const char *text = pod("a", uid, rv);

	return BYTES(text, (size_t)(strstr(text, "\"x\"") - text)); /* inside the metadata */
}

Test(record_passed, c67_a_too_large_version_is_passed_over_and_its_deletion_is_taken)
{
	struct bytes rv;

	first_list();
	uint64_t seq = last_seq();
	struct api_event e = {.type = WATCH_MODIFIED, .object = beginning("ua", "11"), .cut = true};
	cr_assert_eq(record_event(feed, &e, false, &rv), RECORD_TAKEN);
	cr_assert_str_eq(lacks(), "d/a;");
	cr_assert_str_eq(feed->passed[0].why, "larger than maxObjectSize");
	cr_assert_str_eq(log_after(seq), "");
	e = (struct api_event){.type = WATCH_DELETED, .object = beginning("ua", "12"), .cut = true};
	cr_assert_eq(record_event(feed, &e, false, &rv), RECORD_TAKEN);
	cr_assert_str_eq(log_after(seq), "DELETED? d/a@12");
	cr_assert_str_eq(lacks(), "");
}

Test(record_passed, c67_a_too_large_item_of_the_known_version_is_no_news)
{
	first_list();
	event(WATCH_MODIFIED, pod("a", "ua", "11"));
	uint64_t seq = last_seq();
	begin_list();
	cr_assert_eq(record_item(feed, beginning("ua", "11"), true, false), RECORD_TAKEN);
	cr_assert_str_eq(lacks(), "");
	cr_assert_eq(record_item(feed, beginning("ua", "12"), true, false), RECORD_TAKEN);
	cr_assert_str_eq(lacks(), "d/a;");
	end_list("20");
	cr_assert_str_eq(log_after(seq), "LIST_BEGIN @11 DELETED? d/b@20 LIST_END @20");
}

/* Makes the feed as the next reflector does, from the journal alone. */
static void begin_again(void)
{
	struct feed_definition pods = {.id = feed->id,
		.version = "v1",
		.kind = "Pod",
		.group = "",
		.drop = "",
		.namespaced = true};
	struct feed_checkpoint checkpoint = {
		.phase = FEED_SYNCED, .first_list = 1, .rv = BYTES_LIT("30")};

	cr_assert_eq(recorder_flush(rig.record.recorder), 0);
	record_feed_release(feed);
	cr_assert_eq(record_feed_init(feed, rig.record.recorder, &pods, &checkpoint), 0);
}

Test(record_passed, c67_another_run_knows_what_was_passed_over)
{
	struct bytes rv;
	struct api_event e = {.type = WATCH_MODIFIED, .object = beginning("ua", "11"), .cut = true};

	first_list();
	feed->item_max = 100;
	cr_assert_eq(record_event(feed, &e, true, &rv), RECORD_TAKEN);
	event(WATCH_ADDED, pod("c", "uc", "12"));
	begin_again();
	cr_assert_str_eq(lacks(), "d/a;");
	cr_assert_str_eq(feed->passed[0].why, "larger than maxObjectSize");
	cr_assert(record_would_fit(feed, 101) && !record_would_fit(feed, 100));

	/* A failed batch has changed nothing. */
	e = (struct api_event){.type = WATCH_MODIFIED, .object = bytes_str(unreadable[6])};
	cr_assert_eq(record_event(feed, &e, true, &rv), RECORD_TAKEN);
	cr_assert(strstr(feed->passed[0].why, "JSON"), "%s", feed->passed[0].why);
	cr_assert_eq(recorder_fail(rig.record.recorder, err_set(-ENOSPC, "journal")), -ENOSPC);
	recorder_recover(rig.record.recorder);
	cr_assert_eq(record_feed_reload(feed), 0);
	cr_assert_str_eq(lacks(), "d/a;");
	cr_assert_str_eq(feed->passed[0].why, "larger than maxObjectSize");

	/* An aborted list has not brought it either. */
	begin_list();
	item("a", "ua", "13");
	begin_again();
	cr_assert_str_eq(lacks(), "d/a;");

	event(WATCH_MODIFIED, pod("a", "ua", "14"));
	cr_assert_str_eq(lacks(), "", "it is readable now");
	begin_again();
	cr_assert_str_eq(lacks(), "");
}

Test(record_passed, c67_a_complete_list_says_what_another_run_knows)
{
	first_list();
	feed->item_max = 100;
	begin_list();
	cr_assert_eq(record_item(feed, beginning("ua", "12"), true, true), RECORD_TAKEN);
	cr_assert_eq(record_item(feed, bytes_str(unreadable[0]), false, true), RECORD_TAKEN);
	end_list("20");
	begin_again();
	cr_assert_str_eq(lacks(), "d/a;;");
	cr_assert(record_would_fit(feed, 101) && !record_would_fit(feed, 100));

	begin_list();
	item("a", "ua", "12");
	end_list("21");
	begin_again();
	cr_assert_str_eq(lacks(), "");
}

/* A pod with a name too long to store. */
static const char *long_pod(char last, const char *rv)
{
	static char text[4][1000];
	static unsigned next;
	char *to = text[next++ % 4], name[600];

	memset(name, 'n', sizeof(name) - 1);
	name[598] = last;
	name[599] = '\0';
	(void)snprintf(to, sizeof(text[0]),
		"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"d\",\"uid\":\"u\","
		"\"resourceVersion\":\"%s\"}}",
		name, rv);
	return to;
}

Test(record_passed, each_object_is_known_until_it_goes_or_can_be_stored)
{
	char deep[1000] = "{\"metadata\":{\"name\":\"deep\",\"namespace\":\"d\","
			  "\"resourceVersion\":\"14\"},\"x\":";

	first_list();
	uint64_t seq = last_seq();
	event(WATCH_ADDED, long_pod('1', "11"));
	cr_assert_str_eq(
		feed->passed[0].why, "its name has 601 bytes, with its namespace 507 are the most");
	event(WATCH_ADDED, long_pod('2', "12"));
	event(WATCH_ADDED, pod("nul\\u0000", "un", "13"));
	memset(deep + strlen(deep), '[', 300);
	memset(deep + strlen(deep), ']', 300);
	deep[strlen(deep)] = '}';
	event(WATCH_ADDED, deep);
	cr_assert_eq(feed->n_passed, 4);
	cr_assert(strstr(feed->passed[3].why, "nested deeper than"), "%s", feed->passed[3].why);
	begin_again();
	cr_assert_eq(feed->n_passed, 4);

	event(WATCH_DELETED, long_pod('1', "15"));
	event(WATCH_DELETED, pod("nul\\u0000", "un", "16"));
	cr_assert_eq(feed->n_passed, 2);
	event(WATCH_MODIFIED, pod("deep", "ud", "17"));
	cr_assert_eq(feed->n_passed, 1);
	event(WATCH_DELETED, long_pod('3', "18"));
	cr_assert(record_lacks(feed), "it was another one");
	event(WATCH_DELETED, long_pod('2', "19"));
	cr_assert(!record_lacks(feed));
	begin_again();
	cr_assert(!record_lacks(feed));
	cr_assert_str_eq(log_after(seq), "ADDED d/deep@17");
}

Test(record_passed, of_many_objects_some_are_known_and_a_list_tells_about_the_others)
{
	struct api_event e = {.type = WATCH_ADDED, .cut = true};
	struct bytes rv;
	char name[32];

	first_list();
	for (int i = 0; i < FEED_PASSED_MAX + 2; i++) {
		(void)snprintf(name, sizeof(name), "many-%d", i);
		e.object = bytes_str(pod(name, "u", "11"));
		cr_assert_eq(record_event(feed, &e, false, &rv), RECORD_TAKEN);
	}
	begin_again();
	cr_assert_eq(feed->n_passed, FEED_PASSED_MAX);
	cr_assert(feed->passed_more);
	for (int i = 0; i < FEED_PASSED_MAX; i++) {
		cr_assert(!feed->passed_unsure);
		(void)snprintf(name, sizeof(name), "many-%d", i);
		event(WATCH_MODIFIED, pod(name, "u", "12"));
	}
	cr_assert(feed->passed_unsure && record_lacks(feed));
	begin_list();
	item("a", "ua", "12");
	end_list("21");
	cr_assert(!feed->passed_unsure && !record_lacks(feed));
}

Test(record_passed, a_row_of_an_older_reflector_has_no_names_and_asks_for_a_list)
{
	const struct feed_passed unnamed = {.more = true};

	first_list();
	cr_assert_eq(recorder_begin(rig.record.recorder), 0);
	OK(recorder_changed(rig.record.recorder,
		journal_set_passed(recorder_journal(rig.record.recorder), feed->id, &unnamed)));
	begin_again();
	cr_assert(feed->passed_unsure && record_lacks(feed));
	begin_list();
	item("a", "ua", "12");
	end_list("21");
	begin_again();
	cr_assert(!feed->passed_unsure && !record_lacks(feed));
}
