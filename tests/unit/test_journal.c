/* SPDX-License-Identifier: Apache-2.0 */
#include "store/journal/journal.h"

#include <signal.h>

#include "common/failpoint.h"
#include "tests/unit/journal_rig.h"

TestSuite(journal, .init = set_up, .fini = tear_down);
/* Their journals have other sizes. */
TestSuite(full_journal, .fini = tear_down);

Test(journal, record_reads_back_with_its_chain)
{
	struct txn *txn = NULL;
	struct record record;
	struct head head;

	uint64_t a = append(feed, RECORD_ADDED, "web/a");
	uint64_t b = append(feed, RECORD_MODIFIED, "web/a");
	cr_assert_eq(journal_head(j, journal_txn(j), feed, BYTES_LIT("web/a"), &head), FOUND);
	cr_assert_eq(head.seq, b);
	cr_assert_eq(journal_commit(j), 0);
	cr_assert_eq(txn_begin_read(journal_env(j), &txn), 0);
	cr_assert_eq(journal_get(j, txn, b, &record), FOUND);
	cr_assert_eq(record.prev, a);
	cr_assert_eq(record.feed, feed);
	cr_assert_eq(record.type, RECORD_MODIFIED);
	cr_assert(bytes_equal(record.key, BYTES_LIT("web/a")));
	cr_assert(bytes_equal(record.uid, BYTES_LIT("u")));
	cr_assert(bytes_equal(record.rv, BYTES_LIT("7")));
	cr_assert(bytes_equal(record.body, BYTES_LIT("\x81\xa1x\x01")));
	cr_assert_gt(record.time_ns, 0);
	cr_assert_eq(record_check(&record), 0);
	cr_assert_eq(journal_get(j, txn, b + 1, &record), NOT_FOUND);
	cr_assert_eq(journal_head(j, txn, feed, BYTES_LIT("web/a"), &head), FOUND);
	cr_assert_eq(head.seq, b);
	cr_assert(bytes_equal(head.uid, BYTES_LIT("u")) && bytes_equal(head.rv, BYTES_LIT("7")));
	cr_assert_eq(journal_head(j, txn, feed, BYTES_LIT("web/b"), &head), NOT_FOUND);
	txn_abort(&txn);
	uint64_t c = append(feed, RECORD_DELETED, "web/a");
	uint64_t d = append(feed, RECORD_ADDED, "web/a");
	cr_assert_eq(journal_get(j, journal_txn(j), c, &record), FOUND);
	cr_assert_eq(record.prev, b);
	cr_assert_eq(journal_get(j, journal_txn(j), d, &record), FOUND);
	cr_assert_eq(record.prev, 0, "a new life has no previous version");
}

Test(journal, aborted_transaction_leaves_nothing)
{
	struct feed_checkpoint checkpoint;
	struct journal_meta meta;
	struct head head;

	uint64_t seq = append(feed, RECORD_ADDED, "a");
	cr_assert_eq(journal_checkpoint(j, feed, FEED_SYNCED, BYTES_LIT("9")), 0);
	journal_abort(j);
	cr_assert_null(journal_txn(j));
	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_meta(j, journal_txn(j), &meta), 0);
	cr_assert_eq(meta.next_seq, seq);
	cr_assert_eq(journal_head(j, journal_txn(j), feed, BYTES_LIT("a"), &head), NOT_FOUND);
	cr_assert_eq(journal_feed_checkpoint(j, journal_txn(j), feed, &checkpoint), FOUND);
	cr_assert_eq(checkpoint.phase, FEED_LISTING);
	cr_assert_eq(checkpoint.rv.size, 0);
	cr_assert_eq(append(feed, RECORD_ADDED, "a"), seq);
	cr_assert_eq(journal_commit(j), 0);
}

#ifdef KINF_FAILPOINTS
Test(journal, failed_commit_leaves_nothing_and_the_next_works)
{
	cr_assert_eq(setenv("KINF_FAIL", "journal.before_commit:1:error", 1), 0);
	cr_assert_eq(failpoint_setup(), 0);
	uint64_t seq = append(feed, RECORD_ADDED, "a");
	cr_assert_eq(journal_commit(j), ERR_FAILPOINT);
	cr_assert_null(journal_txn(j));
	cr_assert_eq(append(feed, RECORD_ADDED, "a"), seq);
	cr_assert_eq(journal_commit(j), 0);
}
#endif

Test(journal, too_large_input_does_not_poison)
{
	char key[JOURNAL_KEY_MAX + 1];
	struct record record = {.feed = feed, .type = RECORD_ADDED, .key = BYTES(key, sizeof(key))};
	struct head head;
	uint64_t seq;

	memset(key, 'k', sizeof(key));
	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_append(j, &record, &seq), ERR_TOO_LARGE);
	cr_assert_eq(journal_head(j, journal_txn(j), feed, record.key, &head), NOT_FOUND);
	record.key.size--;
	record.body = BYTES(key, ((size_t)1 << 30) + 1); /* never looked at */
	cr_assert_eq(journal_append(j, &record, &seq), ERR_TOO_LARGE);
	record.body = BYTES_NONE;
	cr_assert_eq(journal_append(j, &record, &seq), 0, "the longest key");
	cr_assert_eq(journal_head(j, journal_txn(j), feed, record.key, &head), FOUND);
	key[sizeof(key) - 1] = '\0';
	cr_assert_eq(journal_set_cluster(j, key), ERR_TOO_LARGE);
	cr_assert_eq(journal_set_cluster(j, "c1"), 0);
	cr_assert_eq(journal_commit(j), 0);
	open_again();
	struct journal_meta meta;
	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_meta(j, journal_txn(j), &meta), 0);
	cr_assert_str_eq(meta.cluster, "c1");
}

Test(full_journal, full_map_aborts_and_goes_on_after_a_trim)
{
	/* LMDB's pages have up to 32 KiB. */
	struct journal_options tiny = {
		.map_bytes = sysconf(_SC_PAGESIZE) > 16384 ? 3u << 20 : 1u << 20};
	static uint8_t body[200000];
	char reason[256];

	open_home();
	cr_assert_eq(journal_open_write(home, &tiny, reason, &j), 0);
	feed = add_feed();
	append(feed, RECORD_ADDED, "a");
	cr_assert_eq(journal_commit(j), 0);
	struct record record = {.feed = feed,
		.type = RECORD_MODIFIED,
		.key = BYTES_LIT("a"),
		.body = BYTES(body, sizeof(body))};
	uint64_t seq = 0, last = 0, trimmed;
	int r;
	for (int i = 0; i < 100; i++) {
		cr_assert_eq(journal_begin(j), 0);
		r = journal_append(j, &record, &seq);
		if (r == 0)
			r = journal_commit(j);
		if (r < 0)
			break;
		last = seq;
	}
	cr_assert_eq(r, ERR_MAP_FULL);
	cr_assert_gt(last, 4);
	uint64_t again;
	cr_assert_eq(journal_append(j, &record, &again), ERR_MAP_FULL, "it sticks");
	cr_assert_eq(journal_commit(j), ERR_MAP_FULL);
	cr_assert_eq(journal_trim(j, last, 1000, &trimmed), 0);
	for (int i = 0; i < 3; i++) { /* freed pages come back two commits later */
		cr_assert_eq(journal_begin(j), 0);
		cr_assert_eq(
			journal_checkpoint(j, feed, FEED_SYNCED, BYTES("123", (size_t)i + 1)), 0);
		cr_assert_eq(journal_commit(j), 0);
	}
	cr_assert_eq(journal_begin(j), 0);
	r = journal_append(j, &record, &seq);
	cr_assert_eq(r, 0, "%s", err_text(r));
	cr_assert_eq(seq, last + 1);
	cr_assert_eq(journal_commit(j), 0);
}

/* One record a transaction until there is no room; the last seq. */
static uint64_t fill(size_t size, unsigned *n)
{
	AUTO_FREE char *body = calloc(1, size);
	struct record record = {.feed = feed,
		.uid = BYTES_LIT("u"),
		.rv = BYTES_LIT("7"),
		.body = BYTES(body, size)};
	uint64_t last = 0;
	int r;

	cr_assert_not_null(body);
	for (;; (*n)++) {
		char key[16];
		uint64_t seq;

		(void)snprintf(key, sizeof(key), "ns/%u", *n % 10);
		record.key = bytes_str(key);
		record.type = *n < 10 ? RECORD_ADDED : RECORD_MODIFIED;
		r = journal_begin(j);
		if (r == 0)
			r = journal_append(j, &record, &seq);
		if (r == 0)
			r = journal_commit(j);
		if (r < 0)
			break;
		last = seq;
	}
	cr_assert_eq(r, ERR_MAP_FULL);
	journal_abort(j);
	return last;
}

Test(full_journal, full_one_can_be_trimmed_and_goes_on)
{
	const struct journal_options full = {
		.map_bytes = sysconf(_SC_PAGESIZE) > 16384 ? 4u << 20 : 2u << 20};
	static const size_t sizes[] = {100, 500, 3000};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct home_options options = {.create = true};
		char reason[256], store[16];
		uint64_t trimmed;
		unsigned n = 0;
		int r;

		(void)snprintf(store, sizeof(store), "full-%zu", i);
		cr_assert_eq(home_open(scratch_path(store), &options, &home), 0);
		cr_assert_eq(journal_open_write(home, &full, reason, &j), 0);
		feed = add_feed();
		/* The second time the pages are in no order any more. */
		for (int round = 0; round < 2; round++) {
			unsigned before = n;
			uint64_t last = fill(sizes[i], &n);

			cr_assert_gt(n - before, 100);
			while ((r = journal_trim(j, last, 2000, &trimmed)) == AGAIN)
				;
			cr_assert_eq(r, 0, "%zu bytes: %s", sizes[i], err_text(r));
		}
		tear_down();
	}
}

Test(journal, list_brackets_move_the_checkpoint)
{
	struct feed_checkpoint checkpoint;
	struct record record;

	uint64_t begin = append(feed, RECORD_LIST_BEGIN, "");
	cr_assert_eq(journal_feed_checkpoint(j, journal_txn(j), feed, &checkpoint), FOUND);
	cr_assert_eq(checkpoint.list_begin, begin);
	cr_assert_gt(checkpoint.list_ns, 0);
	cr_assert_eq(journal_commit(j), 0);
	open_again();
	append(feed, RECORD_ADDED, "a");
	uint64_t end = append(feed, RECORD_LIST_END, "");
	cr_assert_eq(journal_get(j, journal_txn(j), end, &record), FOUND);
	cr_assert_eq(record.prev, begin);
	cr_assert_eq(journal_feed_checkpoint(j, journal_txn(j), feed, &checkpoint), FOUND);
	cr_assert_eq(checkpoint.list_begin, 0);
	cr_assert_eq(checkpoint.first_list, end);
	cr_assert_eq(checkpoint.phase, FEED_SYNCED);
	cr_assert(bytes_equal(checkpoint.rv, BYTES_LIT("7")));
	cr_assert_eq(journal_checkpoint(j, feed, FEED_SYNCED, BYTES_LIT("12")), 0);
	append(feed, RECORD_LIST_BEGIN, "");
	struct record abandoned = {
		.feed = feed, .type = RECORD_LIST_END, .flags = RECORD_ABANDONED};
	uint64_t seq;
	cr_assert_eq(journal_append(j, &abandoned, &seq), 0);
	cr_assert_eq(journal_feed_checkpoint(j, journal_txn(j), feed, &checkpoint), FOUND);
	cr_assert_eq(checkpoint.list_begin, 0);
	cr_assert_gt(checkpoint.list_ns, 0, "a list is still owed");
	cr_assert_eq(journal_commit(j), 0);
	CLEANUP(txn_abort) struct txn *txn = NULL;
	cr_assert_eq(txn_begin_read(journal_env(j), &txn), 0);
	cr_assert_eq(journal_feed_checkpoint(j, txn, feed, &checkpoint), FOUND);
	cr_assert_eq(checkpoint.list_begin, 0);
	cr_assert_eq(checkpoint.first_list, end);
	cr_assert(bytes_equal(checkpoint.rv, BYTES_LIT("12")), "an abandoned list moves nothing");
	cr_assert_eq(journal_feed_checkpoint(j, txn, 99, &checkpoint), NOT_FOUND);
}

/* The child's end when it appends KEY as TYPE, twice. */
static int end_of_child(enum record_type type, const char *key)
{
	int status;

	journal_close(&j);
	pid_t child = fork();
	if (child == 0) {
		cr_assert_not_null(freopen("/dev/null", "w", stderr));
		open_writer();
		append(feed, type, key);
		append(feed, type, key);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	home_close(&home);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

Test(journal, nonsense_of_our_own_stops_the_process)
{
	cr_assert_eq(end_of_child(RECORD_LIST_END, ""), SIGABRT);
	cr_assert_eq(end_of_child(RECORD_LIST_BEGIN, ""), SIGABRT);
	cr_assert_eq(end_of_child(RECORD_ADDED, "a"), SIGABRT);
	cr_assert_eq(end_of_child(RECORD_DELETED, "b"), SIGABRT);
}

static void put_feeds(struct txn *txn, char *text)
{
	CLEANUP(feed_walk_release) struct feed_walk walk = {j, txn};
	const struct feed_definition *d = &walk.definition;
	int r;

	while ((r = feed_walk_next(&walk)) == FOUND)
		(void)snprintf(text + strlen(text), 256, "%u %s %s %s %s %s %s %s %d %d %s;", d->id,
			d->name, d->version, d->resource, d->kind, d->list_kind, d->label_selector,
			d->drop, d->namespaced, d->metadata_only,
			feed_phase_name(walk.checkpoint.phase));
	cr_assert_eq(r, END);
}

Test(journal, feeds_are_listed_and_renamed)
{
	char text[1024] = "";

	uint32_t a = feed, b = add_feed();
	cr_assert_eq(b, a + 1);
	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_change_feed(j, b, &(struct feed_change){.name = "other"}), 0);
	cr_assert_eq(journal_checkpoint(j, b, FEED_FORBIDDEN, BYTES_NONE), 0);
	put_feeds(journal_txn(j), text);
	cr_assert_str_eq(text,
		"1 pods v1 pods Pod PodList app=web metadata.managedFields 1 0 listing;"
		"2 other v1 pods Pod PodList app=web metadata.managedFields 1 0 forbidden;");
	cr_assert_eq(journal_commit(j), 0);
	open_again();
	CLEANUP(txn_abort) struct txn *txn = NULL;
	char again[1024] = "";
	cr_assert_eq(txn_begin_read(journal_env(j), &txn), 0);
	put_feeds(txn, again);
	cr_assert_str_eq(again, text);
}

Test(journal, heads_are_walked_in_key_order_within_the_feed)
{
	uint32_t a = feed, b = add_feed();
	CLEANUP(head_walk_close) struct head_walk *walk = NULL;
	struct bytes key;
	struct head head;
	char seen[64] = "";

	append(a, RECORD_ADDED, "y");
	append(b, RECORD_ADDED, "m");
	append(a, RECORD_ADDED, "c/x");
	append(a, RECORD_ADDED, "c");
	cr_assert_eq(head_walk_open(journal_txn(j), a, BYTES_NONE, &walk), 0);
	while (head_walk_next(walk, &key, &head) == FOUND)
		(void)snprintf(seen + strlen(seen), 16, "%.*s ", BYTES_ARG(key));
	head_walk_close(&walk);
	cr_assert_str_eq(seen, "c c/x y ");
	cr_assert_eq(head_walk_open(journal_txn(j), a, BYTES_LIT("c/"), &walk), 0);
	cr_assert_eq(head_walk_next(walk, &key, &head), FOUND);
	cr_assert(bytes_equal(key, BYTES_LIT("c/x")));
}

Test(journal, place_leads_to_the_record_and_a_wrong_one_does_not_mislead)
{
	static uint8_t body[40000];
	struct record record = {.feed = feed,
		.type = RECORD_ADDED,
		.key = BYTES_LIT("large"),
		.body = BYTES(body, sizeof(body))};
	CLEANUP(txn_abort) struct txn *txn = NULL;
	uint64_t large, place, none;
	uint32_t size;

	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_append(j, &record, &large), 0);
	uint64_t tiny = append(feed, RECORD_ADDED, "small");
	cr_assert_eq(journal_commit(j), 0);
	cr_assert_eq(txn_begin_read(journal_env(j), &txn), 0);
	cr_assert_eq(journal_place(j, txn, tiny, &none, &size), FOUND);
	cr_assert_eq(none, 0);
	cr_assert_eq(journal_place(j, txn, large, &place, &size), FOUND);
	cr_assert_neq(place, 0);
	cr_assert_eq(journal_get_at(j, txn, large, place, size, &record), FOUND);
	cr_assert_eq(record.body.size, sizeof(body));
	cr_assert_eq(journal_get_at(j, txn, tiny, place, size, &record), FOUND);
	cr_assert_eq(record.seq, tiny);
	cr_assert_eq(journal_get_at(j, txn, large, place, size - 1, &record), FOUND);
	cr_assert_eq(record.body.size, sizeof(body));
	cr_assert_eq(journal_get_at(j, txn, large, UINT64_MAX - 4095 + 16, size, &record), FOUND);
	cr_assert_eq(journal_get_at(j, txn, 99, place, size, &record), NOT_FOUND);
	cr_assert_eq(journal_place(j, txn, 99, &place, &size), NOT_FOUND);
}

Test(journal, garbled_record_fails_its_check)
{
	struct record record;

	uint64_t seq = append(feed, RECORD_ADDED, "web/a");
	cr_assert_eq(journal_get(j, journal_txn(j), seq, &record), FOUND);
	uint8_t copy[256];
	memcpy(copy, record.stored.data, record.stored.size);
	record.stored.data = copy;
	cr_assert_eq(record_check(&record), 0);
	for (size_t bit = 0; bit < 8 * record.stored.size; bit++) {
		copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
		cr_assert_eq(record_check(&record), ERR_CORRUPT, "bit %zu", bit);
		copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

static uint64_t append_rv(enum record_type type, const char *key, const char *rv)
{
	struct record record = {.feed = feed,
		.type = type,
		.key = bytes_str(key),
		.uid = BYTES_LIT("u"),
		.rv = bytes_str(rv)};
	uint64_t seq = 0;

	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_append(j, &record, &seq), 0);
	cr_assert_eq(journal_commit(j), 0);
	return seq;
}

static void trimmed_is(uint64_t seq, const char *rv)
{
	struct feed_checkpoint c;

	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_feed_checkpoint(j, journal_txn(j), feed, &c), FOUND);
	cr_expect_eq(c.trimmed, seq);
	cr_expect(bytes_equal(c.trimmed_rv, bytes_str(rv)), "%.*s instead of %s",
		BYTES_ARG(c.trimmed_rv), rv);
	journal_abort(j);
}

Test(journal, the_newest_trimmed_rv_is_kept)
{
	uint64_t trimmed;

	(void)append_rv(RECORD_LIST_BEGIN, "", "");
	uint64_t a = append_rv(RECORD_ADDED, "a", "5");
	uint64_t end = append_rv(RECORD_LIST_END, "", "9");
	uint64_t b = append_rv(RECORD_ADDED, "b", "10");
	uint64_t begin = append_rv(RECORD_LIST_BEGIN, "", "40");
	(void)append_rv(RECORD_DELETED, "b", "50");
	uint64_t c = append_rv(RECORD_ADDED, "c", "45");
	trimmed_is(0, "");
	cr_assert_eq(journal_trim(j, a, 1000, &trimmed), 0);
	trimmed_is(a, "5");
	cr_assert_eq(journal_trim(j, end, 1000, &trimmed), 0);
	trimmed_is(end, "9");
	cr_assert_eq(journal_trim(j, b, 1000, &trimmed), 0);
	open_again();
	trimmed_is(b, "10");
	cr_assert_eq(journal_trim(j, begin, 1000, &trimmed), 0);
	trimmed_is(begin, "40");
	cr_assert_eq(journal_trim(j, c, 1000, &trimmed), 0);
	trimmed_is(c, "50");
}
