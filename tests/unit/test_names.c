/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over names some objects ahead of their caller, and their announcements to the kernel. */
#include "store/read/names.h"

#include "store/env/env.h"
#include "tests/unit/rig.h"

#define OBJECTS 300

static struct rig rig;
static struct store *store;
static struct snapshot *snapshot;
static uint32_t feed;

static void names_setup(void)
{
	char key[32];

	rig_open(&rig, "feeds:\n  - resource: pods\n");
	feed = rig_add_feed(&rig, "pods");
	rig_append(&rig, feed, RECORD_LIST_BEGIN, NULL, NULL);
	for (unsigned i = 0; i < OBJECTS; i++) {
		(void)snprintf(key, sizeof(key), "%s/%03u", i < OBJECTS / 2 ? "a" : "b", i);
		rig_append(&rig, feed, RECORD_ADDED, key, "{\"spec\":{}}");
	}
	rig_append(&rig, feed, RECORD_LIST_END, NULL, NULL);
	rig_take(&rig);
	OK(store_open(scratch_path("store"), NULL, &store));
	OK(snapshot_open(store, &snapshot));
}

static void names_teardown(void)
{
	snapshot_close(&snapshot);
	store_close(&store);
	rig_close(&rig);
}

TestSuite(names, .init = names_setup, .fini = names_teardown, .timeout = 60);

/* Accepts each *ARG'th object, and fails at the object 200 if *ARG is 0. */
static int accept(void *arg, struct bytes key, const struct index_entry *entry)
{
	unsigned each = *(const unsigned *)arg, number = 0;

	for (size_t i = 2; i < key.size; i++)
		number = number * 10 + (unsigned)(((const char *)key.data)[i] - '0');
	cr_expect(entry->seq);
	if (!each)
		return number == 200 ? err_say(ERR_CORRUPT, "object 200") : FOUND;
	return number % each == 0 ? FOUND : NOT_FOUND;
}

/* Walks and checks that the objects are those from NUMBER on, each EACH'th. Returns the walk's
 * result. */
static int walk(const char *prefix, const char *from, names_accept_fn *fn, unsigned each,
	unsigned number, unsigned *ret_n)
{
	CLEANUP(names_close) struct names *names = NULL;
	struct index_entry entry;
	struct record record;
	struct bytes key;
	char expected[32];
	int r;

	*ret_n = 0;
	OK(names_open(snapshot, feed, bytes_str(prefix), bytes_str(from), fn, &each, &names));
	while ((r = names_next(names, &key, &entry)) == FOUND) {
		(void)snprintf(expected, sizeof(expected), "%s/%03u",
			number < OBJECTS / 2 ? "a" : "b", number);
		cr_assert(bytes_equal(key, bytes_str(expected)), "%.*s is not %s", BYTES_ARG(key),
			expected);
		cr_assert_eq(snapshot_record(snapshot, feed, key, &entry, &record), FOUND);
		number += each ? each : 1;
		++*ret_n;
	}
	cr_assert_eq(r == END ? names_next(names, &key, &entry) : END, END, "it stays at its end");
	return r;
}

Test(names, each_object_is_given_once_and_in_order)
{
	unsigned n;

	cr_assert_eq(walk("", "", NULL, 1, 0, &n), END);
	cr_assert_eq(n, OBJECTS);
	cr_assert_eq(walk("", "a/033", NULL, 1, 33, &n), END);
	cr_assert_eq(n, OBJECTS - 33);
	cr_assert_eq(walk("a/", "", NULL, 1, 0, &n), END);
	cr_assert_eq(n, OBJECTS / 2);
	cr_assert_eq(walk("c/", "", NULL, 1, 0, &n), END);
	cr_assert_eq(n, 0);
}

Test(names, only_accepted_objects_are_given)
{
	static const unsigned each[] = {2, 7, 100, 299};
	unsigned n;

	for (size_t i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
		cr_assert_eq(walk("", "", accept, each[i], 0, &n), END);
		cr_assert_eq(n, (OBJECTS - 1) / each[i] + 1);
	}
}

Test(names, an_error_comes_after_the_objects_before_it)
{
	unsigned n;

	cr_assert_eq(walk("", "", accept, 0, 0, &n), ERR_CORRUPT);
	cr_assert_eq(n, 200);
	cr_assert_not_null(
		strstr(err_text(ERR_CORRUPT), "object 200"), "%s", err_text(ERR_CORRUPT));
}

Test(names, values_that_lie_close_are_announced_as_one_piece)
{
	struct txn *txn = snapshot_journal_txn(snapshot);
	struct ahead ahead = {0};

	cr_assert(txn_reads_by_page(txn), "names.h has to read ahead, because the kernel does not");
	ahead_add(&ahead, txn, 4096, 5000);
	ahead_add(&ahead, txn, 12288, 4000);
	cr_assert(ahead.begin == 4096 && ahead.end == 16288);
	ahead_add(&ahead, txn, 8192, 100);
	cr_assert(ahead.begin == 4096 && ahead.end == 16288, "a part of it");
	ahead_add(&ahead, txn, 1u << 20, 100);
	cr_assert(ahead.begin == 1u << 20 && ahead.end == (1u << 20) + 100);
	ahead_add(&ahead, txn, 4096, 100);
	cr_assert(ahead.begin == 4096 && ahead.end == 4196, "before it");
	ahead_send(&ahead, txn);
	cr_assert_eq(ahead.end, 0);
}
