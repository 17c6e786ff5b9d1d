/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines of feeds, the requests covered by a feed, and objects as JSON. */
#include "serve/api/api_object.h"
#include "serve/api/api_pretty.h"
#include "serve/catalog/coverage.h"
#include "serve/catalog/timeline.h"
#include "tests/unit/body.h"
#include "tests/unit/unit.h"

TestSuite(serve_feeds, .timeout = 20);

/* ---- timelines ---------------------------------------------------------- */

static struct timeline t;
static struct feed_checkpoint checkpoint;
static uint64_t seq;
static char rv_room[TIMELINE_RV_SIZE];

static void setup(void)
{
	t = (struct timeline){0};
	checkpoint = (struct feed_checkpoint){.phase = FEED_SYNCED};
	seq = 0;
}

static uint64_t add(enum record_type type, const char *rv, unsigned flags)
{
	const struct record record = {
		.seq = ++seq, .type = (uint8_t)type, .flags = (uint8_t)flags, .rv = bytes_str(rv)};

	cr_assert_eq(timeline_add(&t, &record), 0);
	return seq;
}

static void settle(const char *rv)
{
	checkpoint.rv = bytes_str(rv);
	timeline_settle(&t, &checkpoint, seq);
}

/* "position" or why there is none. */
static const char *seek(const char *rv)
{
	static char text[32];
	uint64_t position;

	switch (timeline_seek(&t, bytes_str(rv), &position, NULL)) {
	case TIMELINE_GONE:
		return "gone";
	case TIMELINE_FUTURE:
		return "future";
	case TIMELINE_INVALID:
		return "invalid";
	default:
		(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)position);
		return text;
	}
}

/* The seqs after POSITION. */
static const char *follow(uint64_t position)
{
	static char text[256];
	struct timeline_entry entry;
	int n = 0, r;

	text[0] = '\0';
	while ((r = timeline_next(&t, position, &entry)) == FOUND) {
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			entry.begin ? "[%llu-%llu]" : "%.0llu%llu ",
			(unsigned long long)entry.begin, (unsigned long long)entry.seq);
		position = entry.seq;
	}
	return r == LAPPED ? "lapped" : text;
}

static const char *rv_at(uint64_t at)
{
	timeline_rv_at(&t, timeline_settled(&t, at), rv_room);
	return rv_room;
}

/* 1 FEED_ADDED, 2 to 5 the first list at 100, 6 RV 105, 7 RV 110 */
static void first_list(void)
{
	setup();
	add(RECORD_FEED_ADDED, "", 0);
	add(RECORD_LIST_BEGIN, "", 0);
	add(RECORD_ADDED, "7", 0);
	add(RECORD_ADDED, "5", 0);
	checkpoint.first_list = add(RECORD_LIST_END, "100", 0);
	add(RECORD_ADDED, "105", 0);
	add(RECORD_MODIFIED, "110", 0);
}

Test(serve_feeds, a_watch_begins_after_its_version) /* S48 to S51 */
{
	first_list();
	settle("121");
	cr_expect_str_eq(t.newest_text, "121");
	cr_expect_str_eq(seek("100"), "5");
	cr_expect_str_eq(seek("0100"), "5");
	cr_expect_str_eq(seek("104"), "5");
	cr_expect_str_eq(seek("105"), "6");
	cr_expect_str_eq(seek("110"), "7");
	cr_expect_str_eq(seek("121"), "7");
	cr_expect_str_eq(seek("122"), "future");
	cr_expect_str_eq(seek("99"), "gone");
	cr_expect_str_eq(seek("abc"), "invalid");
	cr_expect_str_eq(seek("-1"), "invalid");
	cr_expect_str_eq(follow(5), "6 7 ");
	cr_expect_str_eq(follow(7), "");
	cr_expect_str_eq(follow(4), "lapped", "within the first list");
	timeline_oldest(&t, rv_room);
	cr_expect_str_eq(rv_room, "100");
	cr_expect_str_eq(rv_at(7), "121");
	cr_expect_str_eq(rv_at(6), "105");
	cr_expect_str_eq(rv_at(5), "100");
	timeline_release(&t);
}

Test(serve_feeds, nothing_is_visible_before_the_first_list_has_ended)
{
	setup();
	add(RECORD_LIST_BEGIN, "", 0);
	add(RECORD_ADDED, "7", 0);
	settle("");
	cr_expect_eq(t.visible, 0);
	cr_expect_not(t.listed);
	timeline_release(&t);
}

Test(serve_feeds, a_log_that_is_damaged_breaks_watches_and_new_ones_go_on)
{
	first_list();
	settle("121");
	timeline_break(&t);
	uint64_t last = add(RECORD_MODIFIED, "130", 0);
	settle("130");
	cr_expect_str_eq(seek("110"), "gone");
	cr_expect_str_eq(seek("129"), "gone");
	cr_expect_str_eq(seek("130"), "8");
	cr_expect_str_eq(seek("131"), "future");
	cr_expect_str_eq(follow(last - 1), "lapped");
	add(RECORD_MODIFIED, "140", 0);
	settle("140");
	cr_expect_str_eq(follow(last), "9 ");
	cr_expect_str_eq(seek("130"), "8");

	/* Damage in a list: it ends, and watches begin after it. */
	checkpoint.list_begin = add(RECORD_LIST_BEGIN, "140", 0);
	timeline_break(&t);
	settle("140");
	cr_expect_eq(t.visible, checkpoint.list_begin - 1);
	cr_expect_str_eq(seek("140"), "9");
	add(RECORD_MODIFIED, "145", 0);
	uint64_t end = add(RECORD_LIST_END, "150", 0);
	checkpoint.list_begin = 0;
	settle("150");
	cr_expect_eq(t.visible, end);
	cr_expect_str_eq(follow(9), "lapped");
	cr_expect_str_eq(seek("150"), "12");
	timeline_release(&t);
}

Test(serve_feeds, a_relist_is_one_entry) /* RV rule 2 */
{
	first_list();
	uint64_t begin = add(RECORD_LIST_BEGIN, "121", 0);
	settle("121");
	cr_expect_eq(t.visible, begin - 1, "an open list");
	cr_expect_str_eq(seek("121"), "7");
	add(RECORD_DELETED, "140", 0);
	add(RECORD_ADDED, "130", 0);
	settle("121");
	cr_expect_str_eq(follow(5), "6 7 ");
	add(RECORD_LIST_END, "140", 0);
	add(RECORD_ADDED, "150", 0);
	settle("151");
	cr_expect_str_eq(follow(5), "6 7 [8-11]12 ");
	cr_expect_str_eq(follow(7), "[8-11]12 ", "a watch that waits gets it");
	cr_expect_str_eq(seek("110"), "7");
	cr_expect_str_eq(seek("121"), "7", "at C");
	cr_expect_str_eq(seek("122"), "gone", "in the gap");
	cr_expect_str_eq(seek("139"), "gone");
	cr_expect_str_eq(seek("140"), "11", "at L");
	cr_expect_str_eq(seek("149"), "11");
	cr_expect_eq(timeline_settled(&t, 9), 7, "not within the list");
	cr_expect_str_eq(rv_at(9), "121");
	cr_expect_str_eq(rv_at(11), "140");
	timeline_release(&t);
}

Test(serve_feeds, an_abandoned_list_waits_for_the_next)
{
	first_list();
	add(RECORD_LIST_BEGIN, "121", 0);
	add(RECORD_ADDED, "130", 0);
	add(RECORD_LIST_END, "", RECORD_ABANDONED);
	settle("121");
	cr_expect_eq(t.visible, 7);
	cr_expect_str_eq(t.newest_text, "121");
	add(RECORD_LIST_BEGIN, "121", 0);
	add(RECORD_DELETED, "160", 0);
	settle("121");
	cr_expect_eq(t.visible, 7);
	add(RECORD_LIST_END, "160", 0);
	settle("160");
	cr_expect_str_eq(follow(7), "[8-13]");
	cr_expect_eq(timeline_settled(&t, 10), 7);
	cr_expect_str_eq(seek("121"), "7");
	cr_expect_str_eq(seek("130"), "gone");
	timeline_release(&t);
}

Test(serve_feeds, history_ends_where_it_was_trimmed)
{
	first_list();
	settle("121");
	checkpoint.trimmed = 6;
	checkpoint.trimmed_rv = BYTES_LIT("105");
	settle("121");
	cr_expect_str_eq(seek("104"), "gone");
	cr_expect_str_eq(seek("105"), "6");
	cr_expect_str_eq(follow(5), "lapped");
	cr_expect_str_eq(follow(6), "7 ");
	timeline_release(&t);
	/* The same after a restart: the log begins after it. */
	t = (struct timeline){0};
	timeline_begin(&t, &checkpoint);
	seq = 6;
	add(RECORD_MODIFIED, "110", 0);
	settle("121");
	cr_expect_str_eq(seek("104"), "gone");
	cr_expect_str_eq(seek("105"), "6");
	cr_expect_str_eq(seek("120"), "7");
	cr_expect_str_eq(follow(6), "7 ");
	timeline_release(&t);
}

Test(serve_feeds, a_relist_that_was_trimmed_in_part_is_gone)
{
	first_list();
	checkpoint.trimmed = 9;
	checkpoint.trimmed_rv = BYTES_LIT("140");
	timeline_release(&t);
	t = (struct timeline){0};
	timeline_begin(&t, &checkpoint);
	seq = 9; /* 8 was its LIST_BEGIN */
	add(RECORD_ADDED, "130", 0);
	add(RECORD_LIST_END, "145", 0);
	add(RECORD_ADDED, "150", 0);
	settle("150");
	cr_expect_str_eq(seek("144"), "gone");
	cr_expect_str_eq(seek("145"), "11");
	cr_expect_str_eq(follow(9), "lapped");
	cr_expect_str_eq(follow(11), "12 ");
	timeline_release(&t);
}

Test(serve_feeds, versions_of_an_earlier_journal_are_gone) /* RV rule 4 */
{
	first_list();
	t.earlier = 500;
	settle("121");
	cr_expect_str_eq(seek("122"), "gone");
	cr_expect_str_eq(seek("500"), "gone");
	cr_expect_str_eq(seek("501"), "future");
	timeline_release(&t);
}

Test(serve_feeds, versions_that_are_no_numbers_are_equal_or_gone) /* RV rule 5 */
{
	setup();
	add(RECORD_LIST_BEGIN, "", 0);
	add(RECORD_LIST_END, "x-1", 0);
	add(RECORD_ADDED, "x-2", 0);
	add(RECORD_ADDED, "x-3", 0);
	settle("x-4");
	cr_expect_str_eq(seek("x-1"), "2");
	cr_expect_str_eq(seek("x-2"), "3");
	cr_expect_str_eq(seek("x-4"), "4");
	cr_expect_str_eq(seek("x-5"), "gone");
	cr_expect_str_eq(rv_at(4), "x-4");
	timeline_release(&t);
}

Test(serve_feeds, versions_may_be_large)
{
	timeline_rv rv;

	cr_assert(timeline_rv_parse(BYTES_LIT("340282366920938463463374607431768211455"), &rv));
	timeline_rv_format(rv, rv_room);
	cr_expect_str_eq(rv_room, "340282366920938463463374607431768211455");
	cr_expect_not(timeline_rv_parse(BYTES_LIT("340282366920938463463374607431768211456"), &rv));
	cr_expect_not(timeline_rv_parse(BYTES_LIT(""), &rv));
	cr_expect_not(timeline_rv_parse(BYTES_LIT("1 "), &rv));
	timeline_rv_format(0, rv_room);
	cr_expect_str_eq(rv_room, "0");
}

/* ---- coverage ----------------------------------------------------------- */

static enum coverage_answer covers(const struct feed_definition *definition, const char *namespace_,
	const char *name, const char *labels, const char *fields, bool metadata)
{
	struct coverage_request request = {.group = "",
		.version = "v1",
		.resource = "pods",
		.namespace_ = namespace_,
		.name = name,
		.metadata_only = metadata};
	struct selector *l = NULL, *f = NULL;
	struct coverage coverage;

	cr_assert_eq(coverage_init(&coverage, definition), 0);
	cr_assert_eq(selector_parse_labels(labels, &l), 0);
	cr_assert_eq(selector_parse_fields(fields, &f), 0);
	request.labels = l;
	request.fields = f;
	enum coverage_answer answer = coverage_check(&coverage, &request);
	selector_free(&l);
	selector_free(&f);
	coverage_release(&coverage);
	return answer;
}

Test(serve_feeds, a_feed_answers_what_it_provably_holds)
{
	struct feed_definition d = {.name = "pods",
		.group = "",
		.version = "v1",
		.resource = "pods",
		.namespace_ = "",
		.label_selector = "",
		.field_selector = "",
		.drop = "metadata.managedFields"};

	cr_expect_eq(covers(&d, "", "", "", "", false), COVERAGE_WHOLE);
	cr_expect_eq(covers(&d, "web", "a", "x", "", false), COVERAGE_WHOLE);
	d.namespace_ = "web";
	cr_expect_eq(covers(&d, "", "", "", "", false), COVERAGE_NONE);
	cr_expect_eq(covers(&d, "web", "", "", "", false), COVERAGE_WHOLE);
	cr_expect_eq(covers(&d, "shop", "", "", "", false), COVERAGE_NONE);
	cr_expect_eq(covers(&d, "", "", "", "metadata.namespace=web", false), COVERAGE_WHOLE);
	cr_expect_eq(covers(&d, "", "", "", "metadata.namespace!=web", false), COVERAGE_NONE);
	d.namespace_ = "";
	d.label_selector = "tier in (back,front)";
	cr_expect_eq(covers(&d, "", "", "", "", false), COVERAGE_NONE);
	cr_expect_eq(covers(&d, "", "", "tier in (front,back),app=x", "", false), COVERAGE_WHOLE);
	cr_expect_eq(covers(&d, "", "", "tier=front", "", false), COVERAGE_NONE, "not proved");
	cr_expect_eq(covers(&d, "web", "a", "", "", false), COVERAGE_FOUND);
	d.label_selector = "";
	d.field_selector = "metadata.name=a";
	cr_expect_eq(covers(&d, "web", "a", "", "", false), COVERAGE_WHOLE);
	cr_expect_eq(covers(&d, "web", "b", "", "", false), COVERAGE_FOUND);
	cr_expect_eq(covers(&d, "", "", "", "metadata.name=a", false), COVERAGE_WHOLE);
	d.field_selector = "";
	d.drop = "metadata.managedFields\nspec.containers";
	cr_expect_eq(covers(&d, "", "", "", "", false), COVERAGE_NONE);
	cr_expect_eq(covers(&d, "", "", "", "", true), COVERAGE_WHOLE);
	d.drop = "metadata.annotations";
	cr_expect_eq(covers(&d, "", "", "", "", true), COVERAGE_NONE);
	d.drop = "";
	d.metadata_only = true;
	cr_expect_eq(covers(&d, "", "", "", "", false), COVERAGE_NONE);
	cr_expect_eq(covers(&d, "", "", "", "", true), COVERAGE_WHOLE);
	cr_expect_eq(covers(&d, "", "", "", "metadata.name=a", true), COVERAGE_WHOLE);
	cr_expect_eq(covers(&d, "", "", "", "status.phase=Running", true), COVERAGE_NONE,
		"its metadata says nothing of that");
	d.version = "v2";
	cr_expect_eq(covers(&d, "", "", "", "", true), COVERAGE_NONE);
}

/* ---- objects ------------------------------------------------------------ */

static const char pod[] = "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"labels\":{\"z\":"
			  "\"1\",\"a\":\"\\u003c\"},"
			  "\"name\":\"p\",\"ownerReferences\":[{\"uid\":\"u\",\"kind\":\"K\","
			  "\"apiVersion\":\"x/v1\"}],"
			  "\"resourceVersion\":\"5\"},\"spec\":{\"n\":1.0,\"e\":[],\"o\":{}}}";

Test(serve_feeds, objects_keep_their_keys_and_numbers)
{
#define LABELS_TO_OWNER \
	"\"metadata\":{\"labels\":{\"z\":\"1\",\"a\":\"\\u003c\"},\"name\":\"p\"," \
	"\"ownerReferences\":[{\"uid\":\"u\",\"kind\":\"K\",\"apiVersion\":\"x/v1\"}],"
	static const struct {
		bool metadata, omit_type;
		const char *rv, *wanted;
	} cases[] = {{false, false, "", pod},
		{false, true, "",
			"{" LABELS_TO_OWNER
			"\"resourceVersion\":\"5\"},\"spec\":{\"n\":1.0,\"e\":[],\"o\":{}}}"},
		{false, false, "77",
			"{\"kind\":\"Pod\",\"apiVersion\":\"v1\"," LABELS_TO_OWNER
			"\"resourceVersion\":\"77\"},\"spec\":{\"n\":1.0,\"e\":[],\"o\":{}}}"},
		{true, false, "",
			"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/"
			"v1\"," LABELS_TO_OWNER "\"resourceVersion\":\"5\"}}"}};
	CLEANUP(buf_release) struct buf body = body_of(pod), out = BUF_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct bytes rv = bytes_str(cases[i].rv);

		buf_reset(&out);
		OK(cases[i].metadata
				? api_object_write_metadata(buf_bytes(&body), "v1", rv, &out)
				: api_object_write(buf_bytes(&body), cases[i].omit_type, rv, &out));
		cr_expect_str_eq(buf_cstr(&out), cases[i].wanted);
	}
}

Test(serve_feeds, indented_json_in_pieces) /* S83 */
{
	static const char compact[] =
		"{\"a\":[1,2,{\"b\\\"{\\\\\":\"x,:\\\\\"}],\"e\":{},\"f\":[]}\n";
	static const char wanted[] = "{\n  \"a\": [\n    1,\n    2,\n    {\n      \"b\\\"{\\\\\": "
				     "\"x,:\\\\\"\n    }\n  ],\n  \"e\": {},\n  \"f\": []\n}";

	for (size_t piece = 1; piece < sizeof(compact); piece++) {
		struct api_pretty pretty = {0};
		struct buf out = BUF_INIT;

		for (size_t i = 0; i < sizeof(compact) - 1; i += piece) {
			size_t left = sizeof(compact) - 1 - i;
			api_pretty_put(
				&pretty, BYTES(compact + i, left < piece ? left : piece), &out);
		}
		cr_expect_str_eq(buf_cstr(&out), wanted, "%zu: %s", piece, buf_cstr(&out));
		buf_release(&out);
	}
}
