/* SPDX-License-Identifier: Apache-2.0 */
#include "store/journal.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/err.h"
#include "common/failpoint.h"
#include "store/generation.h"
#include "tests/unit/scratch.h"

static const struct journal_options small = {.map_bytes = 64u << 20};

static struct home *open_home(void)
{
	struct home_options options = {.create = true};
	struct home *home = NULL;
	int r = home_open(scratch_path("store"), &options, &home);

	cr_assert_eq(r, 0, "%s", err_text(r));
	return home;
}

static struct journal *open_writer(struct home *home)
{
	struct journal *journal = NULL;
	char reason[256];
	int r = journal_open_write(home, &small, reason, &journal);

	cr_assert_eq(r, 0, "%s", err_text(r));
	return journal;
}

static struct feed_definition pods(void)
{
	return (struct feed_definition){.name = "pods", .group = "", .version = "v1",
		.resource = "pods", .kind = "Pod", .list_kind = "PodList", .namespace_ = "",
		.label_selector = "app=web", .field_selector = "", .drop = "metadata.managedFields",
		.namespaced = true};
}

static uint32_t add_feed(struct journal *j)
{
	struct feed_definition definition = pods();
	uint32_t feed = 0;

	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_add_feed(j, &definition, &feed), 0);
	cr_assert_eq(journal_commit(j), 0);
	return feed;
}

static uint64_t append(struct journal *j, uint32_t feed, enum record_type type, const char *key)
{
	struct record record = {.feed = feed, .type = type, .key = bytes_str(key),
		.uid = BYTES_LIT("u"), .rv = BYTES_LIT("7"), .body = BYTES_LIT("\x81\xa1x\x01")};
	uint64_t seq = 0;

	cr_assert_eq(journal_begin(j), 0);
	int r = journal_append(j, &record, &seq);
	cr_assert_eq(r, 0, "%s", err_text(r));
	return seq;
}

/* ---- one by one ------------------------------------------------------------------------------ */

Test(journal, record_reads_back_with_its_chain)
{
	struct home *home = open_home();
	struct journal *j = open_writer(home);
	uint32_t feed = add_feed(j);
	struct txn *txn = NULL;
	struct record record;
	struct head head;

	uint64_t a = append(j, feed, RECORD_ADDED, "web/a");
	uint64_t b = append(j, feed, RECORD_MODIFIED, "web/a");
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
	uint64_t c = append(j, feed, RECORD_DELETED, "web/a");
	uint64_t d = append(j, feed, RECORD_ADDED, "web/a");
	cr_assert_eq(journal_get(j, journal_txn(j), c, &record), FOUND);
	cr_assert_eq(record.prev, b);
	cr_assert_eq(journal_get(j, journal_txn(j), d, &record), FOUND);
	cr_assert_eq(record.prev, 0, "a new life has no previous version");
	journal_close(&j);
	home_close(&home);
}

Test(journal, aborted_transaction_leaves_nothing)
{
	struct home *home = open_home();
	struct journal *j = open_writer(home);
	uint32_t feed = add_feed(j);
	struct feed_checkpoint checkpoint;
	struct journal_meta meta;
	struct head head;

	uint64_t seq = append(j, feed, RECORD_ADDED, "a");
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
	cr_assert_eq(append(j, feed, RECORD_ADDED, "a"), seq);
	cr_assert_eq(journal_commit(j), 0);
	journal_close(&j);
	home_close(&home);
}

#ifdef KINF_FAILPOINTS
Test(journal, failed_commit_leaves_nothing_and_the_next_works)
{
	struct home *home = open_home();
	struct journal *j = open_writer(home);
	uint32_t feed = add_feed(j);

	cr_assert_eq(setenv("KINF_FAIL", "journal.before_commit:1:error", 1), 0);
	cr_assert_eq(failpoint_setup(), 0);
	uint64_t seq = append(j, feed, RECORD_ADDED, "a");
	cr_assert_eq(journal_commit(j), ERR_FAILPOINT);
	cr_assert_null(journal_txn(j));
	cr_assert_eq(append(j, feed, RECORD_ADDED, "a"), seq);
	cr_assert_eq(journal_commit(j), 0);
	journal_close(&j);
	home_close(&home);
}
#endif

Test(journal, too_large_input_does_not_poison)
{
	struct home *home = open_home();
	struct journal *j = open_writer(home);
	uint32_t feed = add_feed(j);
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
	journal_close(&j);
	j = open_writer(home);
	struct journal_meta meta;
	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_meta(j, journal_txn(j), &meta), 0);
	cr_assert_str_eq(meta.cluster, "c1");
	journal_close(&j);
	home_close(&home);
}

Test(journal, full_map_aborts_and_goes_on_after_a_trim)
{
	struct journal_options tiny = {.map_bytes = 1u << 20};
	struct home *home = open_home();
	struct journal *j = NULL;
	char reason[256];
	static uint8_t body[200000];

	cr_assert_eq(journal_open_write(home, &tiny, reason, &j), 0);
	uint32_t feed = add_feed(j);
	append(j, feed, RECORD_ADDED, "a");
	cr_assert_eq(journal_commit(j), 0);
	struct record record = {.feed = feed, .type = RECORD_MODIFIED, .key = BYTES_LIT("a"),
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
		cr_assert_eq(journal_checkpoint(j, feed, FEED_SYNCED, BYTES("123", (size_t)i + 1)), 0);
		cr_assert_eq(journal_commit(j), 0);
	}
	cr_assert_eq(journal_begin(j), 0);
	r = journal_append(j, &record, &seq);
	cr_assert_eq(r, 0, "%s", err_text(r));
	cr_assert_eq(seq, last + 1);
	cr_assert_eq(journal_commit(j), 0);
	journal_close(&j);
	home_close(&home);
}

/* One record a transaction until there is no room; the last seq. */
static uint64_t fill(struct journal *j, uint32_t feed, size_t size, unsigned *n)
{
	char *body = calloc(1, size);
	struct record record = {.feed = feed, .uid = BYTES_LIT("u"), .rv = BYTES_LIT("7"),
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
	free(body);
	return last;
}

Test(journal, full_one_can_be_trimmed_and_goes_on)
{
	static const struct journal_options full = {.map_bytes = 4u << 20};
	static const size_t sizes[] = {100, 500, 3000};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		struct home_options options = {.create = true};
		struct home *home = NULL;
		struct journal *j = NULL;
		char reason[256], store[16];
		uint64_t trimmed;
		unsigned n = 0;
		int r;

		(void)snprintf(store, sizeof(store), "full-%zu", i);
		cr_assert_eq(home_open(scratch_path(store), &options, &home), 0);
		cr_assert_eq(journal_open_write(home, &full, reason, &j), 0);
		uint32_t feed = add_feed(j);
		/* The second time the pages are in no order any more. */
		for (int round = 0; round < 2; round++) {
			unsigned before = n;
			uint64_t last = fill(j, feed, sizes[i], &n);

			cr_assert_gt(n - before, 100);
			while ((r = journal_trim(j, last, 2000, &trimmed)) == AGAIN)
				;
			cr_assert_eq(r, 0, "%zu bytes: %s", sizes[i], err_text(r));
		}
		journal_close(&j);
		home_close(&home);
	}
}

Test(journal, list_brackets_move_the_checkpoint)
{
	struct home *home = open_home();
	struct journal *j = open_writer(home);
	uint32_t feed = add_feed(j);
	struct feed_checkpoint checkpoint;
	struct record record;

	uint64_t begin = append(j, feed, RECORD_LIST_BEGIN, "");
	cr_assert_eq(journal_feed_checkpoint(j, journal_txn(j), feed, &checkpoint), FOUND);
	cr_assert_eq(checkpoint.list_begin, begin);
	cr_assert_gt(checkpoint.list_ns, 0);
	cr_assert_eq(journal_commit(j), 0);
	journal_close(&j);
	j = open_writer(home);
	append(j, feed, RECORD_ADDED, "a");
	uint64_t end = append(j, feed, RECORD_LIST_END, "");
	cr_assert_eq(journal_get(j, journal_txn(j), end, &record), FOUND);
	cr_assert_eq(record.prev, begin);
	cr_assert_eq(journal_feed_checkpoint(j, journal_txn(j), feed, &checkpoint), FOUND);
	cr_assert_eq(checkpoint.list_begin, 0);
	cr_assert_eq(checkpoint.first_list, end);
	cr_assert_eq(checkpoint.phase, FEED_SYNCED);
	cr_assert(bytes_equal(checkpoint.rv, BYTES_LIT("7")));
	cr_assert_eq(journal_checkpoint(j, feed, FEED_SYNCED, BYTES_LIT("12")), 0);
	append(j, feed, RECORD_LIST_BEGIN, "");
	struct record abandoned = {.feed = feed, .type = RECORD_LIST_END, .flags = RECORD_ABANDONED};
	uint64_t seq;
	cr_assert_eq(journal_append(j, &abandoned, &seq), 0);
	cr_assert_eq(journal_feed_checkpoint(j, journal_txn(j), feed, &checkpoint), FOUND);
	cr_assert_eq(checkpoint.list_begin, 0);
	cr_assert_gt(checkpoint.list_ns, 0, "a list is still owed");
	cr_assert_eq(journal_commit(j), 0);
	struct txn *txn = NULL;
	cr_assert_eq(txn_begin_read(journal_env(j), &txn), 0);
	cr_assert_eq(journal_feed_checkpoint(j, txn, feed, &checkpoint), FOUND);
	cr_assert_eq(checkpoint.list_begin, 0);
	cr_assert_eq(checkpoint.first_list, end);
	cr_assert(bytes_equal(checkpoint.rv, BYTES_LIT("12")), "an abandoned list moves nothing");
	cr_assert_eq(journal_feed_checkpoint(j, txn, 99, &checkpoint), NOT_FOUND);
	txn_abort(&txn);
	journal_close(&j);
	home_close(&home);
}

/* The child's end when it appends KEY as TYPE, twice. */
static int end_of_child(enum record_type type, const char *key)
{
	struct home *home = open_home();
	struct journal *j = open_writer(home);
	uint32_t feed = add_feed(j);
	int status;

	journal_close(&j);
	pid_t child = fork();
	if (child == 0) {
		cr_assert_not_null(freopen("/dev/null", "w", stderr));
		j = open_writer(home);
		append(j, feed, type, key);
		append(j, feed, type, key);
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

static int keep_definition(void *arg, const struct feed_definition *d, const struct feed_checkpoint *c)
{
	char *text = arg;

	(void)snprintf(text + strlen(text), 256, "%u %s %s %s %s %s %s %s %d %d %s;", d->id, d->name,
		d->version, d->resource, d->kind, d->list_kind, d->label_selector, d->drop,
		d->namespaced, d->metadata_only, feed_phase_name(c->phase));
	return 0;
}

Test(journal, feeds_are_listed_and_renamed)
{
	struct home *home = open_home();
	struct journal *j = open_writer(home);
	char text[1024] = "";

	uint32_t a = add_feed(j), b = add_feed(j);
	cr_assert_eq(b, a + 1);
	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_rename_feed(j, b, "other"), 0);
	cr_assert_eq(journal_checkpoint(j, b, FEED_FORBIDDEN, BYTES_NONE), 0);
	cr_assert_eq(journal_each_feed(j, journal_txn(j), keep_definition, text), 0);
	cr_assert_str_eq(text,
		"1 pods v1 pods Pod PodList app=web metadata.managedFields 1 0 listing;"
		"2 other v1 pods Pod PodList app=web metadata.managedFields 1 0 forbidden;");
	cr_assert_eq(journal_commit(j), 0);
	journal_close(&j);
	j = open_writer(home);
	struct txn *txn = NULL;
	char again[1024] = "";
	cr_assert_eq(txn_begin_read(journal_env(j), &txn), 0);
	cr_assert_eq(journal_each_feed(j, txn, keep_definition, again), 0);
	cr_assert_str_eq(again, text);
	txn_abort(&txn);
	journal_close(&j);
	home_close(&home);
}

Test(journal, heads_are_walked_in_key_order_within_the_feed)
{
	struct home *home = open_home();
	struct journal *j = open_writer(home);
	uint32_t a = add_feed(j), b = add_feed(j);
	struct head_walk *walk = NULL;
	struct bytes key;
	struct head head;
	char seen[64] = "";

	append(j, a, RECORD_ADDED, "y");
	append(j, b, RECORD_ADDED, "m");
	append(j, a, RECORD_ADDED, "c/x");
	append(j, a, RECORD_ADDED, "c");
	cr_assert_eq(head_walk_open(j, journal_txn(j), a, BYTES_NONE, &walk), 0);
	while (head_walk_next(walk, &key, &head) == FOUND)
		(void)snprintf(seen + strlen(seen), 16, "%.*s ", BYTES_ARG(key));
	head_walk_close(&walk);
	cr_assert_str_eq(seen, "c c/x y ");
	cr_assert_eq(head_walk_open(j, journal_txn(j), a, BYTES_LIT("c/"), &walk), 0);
	cr_assert_eq(head_walk_next(walk, &key, &head), FOUND);
	cr_assert(bytes_equal(key, BYTES_LIT("c/x")));
	head_walk_close(&walk);
	journal_close(&j);
	home_close(&home);
}

Test(journal, place_leads_to_the_record_and_a_wrong_one_does_not_mislead)
{
	struct home *home = open_home();
	struct journal *j = open_writer(home);
	uint32_t feed = add_feed(j);
	static uint8_t body[5000];
	struct record record = {.feed = feed, .type = RECORD_ADDED, .key = BYTES_LIT("large"),
		.body = BYTES(body, sizeof(body))};
	struct txn *txn = NULL;
	uint64_t large, place, none;
	uint32_t size;

	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_append(j, &record, &large), 0);
	uint64_t tiny = append(j, feed, RECORD_ADDED, "small");
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
	txn_abort(&txn);
	journal_close(&j);
	home_close(&home);
}

Test(journal, garbled_record_fails_its_check)
{
	struct home *home = open_home();
	struct journal *j = open_writer(home);
	uint32_t feed = add_feed(j);
	struct record record;

	uint64_t seq = append(j, feed, RECORD_ADDED, "web/a");
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
	journal_close(&j);
	home_close(&home);
}

Test(journal, kill_after_commit_loses_nothing_and_before_it_everything)
{
	struct home *home = open_home();
	struct journal *j = open_writer(home);
	uint32_t feed = add_feed(j);

	journal_close(&j);
	pid_t child = fork();
	if (child == 0) {
		j = open_writer(home);
		append(j, feed, RECORD_ADDED, "kept");
		if (journal_commit(j) == 0)
			append(j, feed, RECORD_ADDED, "lost");
		(void)kill(getpid(), SIGKILL);
	}
	int status;
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSIGNALED(status));
	char reason[256];
	cr_assert_eq(journal_open_write(home, &small, reason, &j), 0);
	cr_assert_str_eq(reason, "");
	struct head head;
	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_head(j, journal_txn(j), feed, BYTES_LIT("kept"), &head), FOUND);
	cr_assert_eq(journal_head(j, journal_txn(j), feed, BYTES_LIT("lost"), &head), NOT_FOUND);
	journal_close(&j);
	home_close(&home);
}

Test(journal, lost_one_is_begun_anew_and_says_why)
{
	struct home *home = open_home();
	struct journal *j = open_writer(home);
	uint8_t uuid[16];
	char reason[256];

	memcpy(uuid, journal_uuid(j), sizeof(uuid));
	add_feed(j);
	journal_close(&j);
	FILE *file = fopen(scratch_path("store/journal/gen-1/data.mdb"), "r+");
	for (int i = 0; i < 8192; i++)
		(void)fputc('x', file);
	(void)fclose(file);
	cr_assert_eq(journal_open_read(home, NULL, &j), ERR_CORRUPT);
	cr_assert_eq(journal_open_write(home, &small, reason, &j), 0);
	cr_assert(strstr(reason, "generation 1"), "%s", reason);
	cr_assert_neq(memcmp(uuid, journal_uuid(j), sizeof(uuid)), 0);
	cr_assert_eq(journal_generation(j), 2);
	cr_assert_neq(access(scratch_path("store/journal/gen-1"), F_OK), 0, "the old one is gone");
	journal_close(&j);
	home_close(&home);
}

Test(journal, old_one_stays_while_the_index_needs_it)
{
	static const char *const databases[] = {"name"};
	static const struct generation_kind kind = {
		.what = "index", .format = 1, .databases = databases, .n_databases = 1};
	struct generation_options options = {.map_bytes = 1u << 20, .file_mode = 0600};
	struct home *home = open_home();
	struct journal *j = open_writer(home), *reader = NULL;
	struct generation *index = NULL;
	uint8_t uuid[16];

	memcpy(uuid, journal_uuid(j), sizeof(uuid));
	cr_assert_eq(generation_create(home_index_fd(home), &kind, &options, uuid, &index), 0);
	cr_assert_eq(generation_publish(home_index_fd(home), 1), 0);
	generation_close(&index);
	cr_assert_eq(journal_begin_anew(&j, home, &small), 0);
	cr_assert_neq(memcmp(uuid, journal_uuid(j), sizeof(uuid)), 0);
	cr_assert_eq(journal_remove_old(home), 0);
	cr_assert_eq(journal_open_read(home, uuid, &reader), 0);
	cr_assert_arr_eq(journal_uuid(reader), uuid, sizeof(uuid));
	journal_close(&reader);
	cr_assert_eq(journal_open_read(home, NULL, &reader), 0);
	cr_assert_arr_eq(journal_uuid(reader), journal_uuid(j), sizeof(uuid));
	journal_close(&reader);
	memcpy(uuid, journal_uuid(j), sizeof(uuid));
	cr_assert_eq(generation_create(home_index_fd(home), &kind, &options, uuid, &index), 0);
	cr_assert_eq(generation_publish(home_index_fd(home), 2), 0);
	generation_close(&index);
	cr_assert_eq(journal_remove_old(home), 1);
	memset(uuid, 1, sizeof(uuid));
	cr_assert_eq(journal_open_read(home, uuid, &reader), NOT_FOUND);
	journal_close(&j);
	home_close(&home);
}

Test(journal, reading_before_there_is_one_says_what_to_do)
{
	struct home *home = open_home();
	struct journal *j = NULL;

	cr_assert_eq(journal_open_read(home, NULL, &j), ERR_NO_STORE);
	cr_assert(strstr(err_text(ERR_NO_STORE), "kinf run"));
	home_close(&home);
}

Test(journal, copy_is_read_where_nothing_can_be_written)
{
	struct home *home = open_home();
	struct journal *j = open_writer(home);
	uint32_t feed = add_feed(j);

	append(j, feed, RECORD_ADDED, "a");
	cr_assert_eq(journal_commit(j), 0);
	journal_close(&j);
	home_close(&home);
	/* Root may write everywhere, so the readers become somebody else. */
	cr_assert_eq(chmod(scratch(), 0755), 0);
	scratch_chmod("a+rX,a-w", scratch_path("store"));
	pid_t child = fork();
	if (child == 0) {
		struct home_options options = {0};
		struct head head;
		struct txn *txn = NULL;
		if (geteuid() == 0 && setuid(65534) < 0)
			_exit(2);
		if (home_open(scratch_path("store"), &options, &home) < 0 || home_is_writable(home))
			_exit(3);
		if (journal_open_read(home, NULL, &j) < 0 ||
			txn_begin_read(journal_env(j), &txn) < 0 ||
			journal_head(j, txn, feed, BYTES_LIT("a"), &head) != FOUND)
			_exit(4);
		_exit(0);
	}
	int status;
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(WEXITSTATUS(status), 0, "child: %d", WEXITSTATUS(status));
	/* The same while a reflector runs: pages would be recycled under the reader. */
	scratch_chmod("u+w", scratch_path("store"));
	home = open_home();
	cr_assert_eq(home_take_role(home, HOME_REFLECTOR), 0);
	cr_assert_eq(chmod(scratch_path("store"), 0755), 0);
	cr_assert_eq(chmod(scratch_path("store/journal"), 0755), 0);
	cr_assert_eq(chmod(scratch_path("store/index"), 0755), 0);
	cr_assert_eq(chmod(scratch_path("store/cursors"), 0755), 0);
	cr_assert_eq(chmod(scratch_path("store/reflector.lock"), 0644), 0);
	child = fork();
	if (child == 0) {
		struct home_options options = {0};
		struct home *mine = NULL;
		if (geteuid() != 0)
			_exit(0); /* the owner can write */
		if (setuid(65534) < 0 || home_open(scratch_path("store"), &options, &mine) < 0)
			_exit(2);
		_exit(journal_open_read(mine, NULL, &j) == ERR_LOCKED ? 0 : 3);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(WEXITSTATUS(status), 0, "child: %d", WEXITSTATUS(status));
	home_close(&home);
}

Test(rv, c39_c41_compared_as_numbers_or_not_at_all)
{
	static const struct {
		const char *a, *b;
		int result;
	} cases[] = {
		{"1", "2", -1}, {"10", "9", 1}, {"9", "10", -1}, {"7", "7", 0}, {"", "", 0}, {"x", "x", 0},
		{"", "1", RV_NOT_COMPARABLE}, {"01", "1", RV_NOT_COMPARABLE},
		{"01", "01", 0}, {"1234567890123456789012345", "999999999999999999999999", 1},
		{"1234567890123456789012345", "1234567890123456789012346", -1},
		{"0", "1", RV_NOT_COMPARABLE}, {"1a", "2", RV_NOT_COMPARABLE},
		{"340282366920938463463374607431768211455", "18446744073709551616", 1},
		{"340282366920938463463374607431768211456", "1", RV_NOT_COMPARABLE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_assert_eq(rv_compare(bytes_str(cases[i].a), bytes_str(cases[i].b)), cases[i].result,
			"'%s' '%s'", cases[i].a, cases[i].b);
}

/* ---- against a model ------------------------------------------------------------------------- */

#define KEYS    10
#define FEEDS   24
#define RECORDS 1400

/* The whole of it in plain arrays; a transaction's abort is a copy back. */
struct model {
	struct model_record {
		uint32_t feed;
		uint8_t type, flags;
		int key; /* -1: none */
		uint64_t prev;
		uint32_t seed; /* of its body */
	} records[RECORDS]; /* by seq; 0 is not used */
	uint64_t next_seq, horizon;
	struct model_feed {
		bool removed, gone;
		uint64_t list_begin, first_list, trimmed;
		uint32_t rv;
		uint64_t heads[KEYS];
	} feeds[FEEDS]; /* by id; 0 is not used */
	uint32_t n_feeds;
};

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static struct bytes make_body(uint32_t seed)
{
	static uint8_t body[9000];
	size_t size = seed % 5 == 0 ? 2000 + seed % 7000 : seed % 300;

	for (size_t i = 0; i < size; i++)
		body[i] = (uint8_t)(seed + i * 31);
	return BYTES(body, size);
}

static struct bytes make_key(int key, char text[16])
{
	(void)snprintf(text, 16, "ns/%02d", key);
	return bytes_str(text);
}

static struct bytes make_rv(uint32_t rv, char text[16])
{
	(void)snprintf(text, 16, "%u", rv);
	return bytes_str(text);
}

static struct model model, committed;
static uint32_t chance;

static void model_append(struct journal *j, uint32_t feed, uint8_t type, uint8_t flags, int key)
{
	struct model_feed *f = &model.feeds[feed];
	struct model_record *m = &model.records[model.next_seq];
	char key_text[16] = "", rv_text[16];
	uint64_t seq;

	*m = (struct model_record){.feed = feed, .type = type, .flags = flags, .key = key};
	if (key >= 0) {
		m->prev = f->heads[key];
		m->seed = next_random(&chance);
		f->heads[key] = type == RECORD_DELETED ? 0 : model.next_seq;
	}
	f->rv += type == RECORD_LIST_END && !flags;
	if (type == RECORD_LIST_BEGIN)
		f->list_begin = model.next_seq;
	if (type == RECORD_LIST_END) {
		m->prev = f->list_begin;
		f->list_begin = 0;
		if (!f->first_list)
			f->first_list = model.next_seq;
	}
	if (type == RECORD_FEED_REMOVED) {
		f->removed = true;
		f->list_begin = 0;
	}
	struct record record = {.feed = feed, .type = type, .flags = flags,
		.key = key >= 0 ? make_key(key, key_text) : BYTES_NONE,
		.uid = BYTES_LIT("uid"), .rv = make_rv(f->rv, rv_text),
		.body = key >= 0 ? make_body(m->seed) : BYTES_NONE};
	int r = journal_append(j, &record, &seq);
	cr_assert_eq(r, 0, "%s", err_text(r));
	cr_assert_eq(seq, model.next_seq);
	model.next_seq++;
}

static void model_add_feed(struct journal *j)
{
	struct feed_definition definition = pods();
	uint32_t feed;

	if (model.n_feeds + 1 >= FEEDS)
		return;
	cr_assert_eq(journal_add_feed(j, &definition, &feed), 0);
	cr_assert_eq(feed, ++model.n_feeds);
	model.feeds[feed] = (struct model_feed){0};
	model.records[model.next_seq++] =
		(struct model_record){.feed = feed, .type = RECORD_FEED_ADDED, .key = -1};
}

static void model_step(struct journal *j)
{
	uint32_t feed = 1 + next_random(&chance) % (model.n_feeds ? model.n_feeds : 1);
	struct model_feed *f = &model.feeds[feed];
	uint32_t dice = next_random(&chance) % 100;
	int key = (int)(next_random(&chance) % KEYS);

	if (model.n_feeds == 0 || dice < 2) {
		model_add_feed(j);
		return;
	}
	if (f->removed)
		return;
	if (dice < 4 && model.n_feeds > 2 && model.n_feeds + 3 < FEEDS) /* some always live */
		model_append(j, feed, RECORD_FEED_REMOVED, 0, -1);
	else if (dice < 12 && !f->list_begin)
		model_append(j, feed, RECORD_LIST_BEGIN, 0, -1);
	else if (dice < 20 && f->list_begin)
		model_append(j, feed, RECORD_LIST_END,
			f->first_list && dice < 13 ? RECORD_ABANDONED : 0, -1);
	else if (dice < 25) {
		char rv[16];
		uint32_t phase = f->first_list ? FEED_SYNCED : FEED_LISTING;
		cr_assert_eq(journal_checkpoint(j, feed, phase, make_rv(++f->rv, rv)), 0);
	} else if (!f->heads[key])
		model_append(j, feed, RECORD_ADDED, 0, key);
	else
		model_append(j, feed, dice < 45 ? RECORD_DELETED : RECORD_MODIFIED, 0, key);
}

/* The feed whose FEED_REMOVED is the next to be trimmed: its versions may be gone in part. */
static uint32_t being_removed(void)
{
	struct model_record *next = &model.records[model.horizon + 1];

	return model.horizon + 1 < model.next_seq && next->type == RECORD_FEED_REMOVED ? next->feed : 0;
}

/* Is it part of the state as of the horizon? Said without the way that trimming takes. */
static bool is_state(uint64_t seq)
{
	struct model_record *m = &model.records[seq];

	if (m->type != RECORD_ADDED && m->type != RECORD_MODIFIED)
		return false;
	for (uint64_t later = seq + 1; later <= model.horizon; later++) {
		struct model_record *l = &model.records[later];
		if (l->feed == m->feed && (l->key == m->key || l->type == RECORD_FEED_REMOVED))
			return false;
	}
	return true;
}

static void check_record(const struct record *record)
{
	struct model_record *m = &model.records[record->seq];
	char text[16];

	cr_assert_eq(record_check(record), 0);
	cr_assert_eq(record->type, m->type);
	cr_assert_eq(record->flags, m->flags);
	cr_assert_eq(record->feed, m->feed);
	cr_assert_eq(record->prev, m->prev);
	if (m->key < 0)
		return;
	cr_assert(bytes_equal(record->key, make_key(m->key, text)));
	cr_assert(bytes_equal(record->body, make_body(m->seed)), "record %" PRIu64, record->seq);
}

static void check_log(struct journal *j, struct txn *txn)
{
	uint32_t leaving = being_removed();
	struct journal_walk *walk = NULL;
	struct record record = {0};

	cr_assert_eq(journal_walk_open(j, txn, 0, &walk), 0);
	int r = journal_walk_next(walk, &record);
	for (uint64_t seq = 1; seq < model.next_seq; seq++) {
		bool there = r == FOUND && record.seq == seq;
		bool wanted = seq > model.horizon || is_state(seq);
		if (there != wanted && !(wanted && model.records[seq].feed == leaving))
			cr_assert_fail("record %" PRIu64 " (%s of feed %u), horizon %" PRIu64 ": %s", seq,
				record_type_name(model.records[seq].type), model.records[seq].feed,
				model.horizon, wanted ? "missing" : "still there");
		if (there) {
			check_record(&record);
			r = journal_walk_next(walk, &record);
		}
	}
	cr_assert_eq(r, END);
	journal_walk_close(&walk);
}

static void check_heads(struct journal *j, struct txn *txn, uint32_t feed)
{
	struct model_feed *f = &model.feeds[feed];
	char text[16];
	struct head head;

	for (int key = 0; key < KEYS; key++) {
		uint64_t wanted = f->gone ? 0 : f->heads[key];
		int r = journal_head(j, txn, feed, make_key(key, text), &head);
		if (r == NOT_FOUND && feed == being_removed())
			continue;
		cr_assert_eq(r, wanted ? FOUND : NOT_FOUND, "feed %u key %d", feed, key);
		if (r == FOUND)
			cr_assert_eq(head.seq, wanted);
	}
}

static void check_feed(struct journal *j, struct txn *txn, uint32_t feed)
{
	struct model_feed *f = &model.feeds[feed];
	struct feed_checkpoint c;
	uint64_t trimmed = 0;
	char text[16];

	for (uint64_t seq = 1; seq <= model.horizon; seq++) {
		if (model.records[seq].feed == feed)
			trimmed = seq;
		f->gone |= model.records[seq].feed == feed &&
			model.records[seq].type == RECORD_FEED_REMOVED;
	}
	check_heads(j, txn, feed);
	int r = journal_feed_checkpoint(j, txn, feed, &c);
	cr_assert_eq(r, f->gone ? NOT_FOUND : FOUND);
	if (f->gone)
		return;
	cr_assert_eq(c.list_begin, f->list_begin);
	cr_assert_eq(c.first_list, f->first_list);
	cr_assert_eq(c.phase == FEED_REMOVED, f->removed);
	cr_assert(c.trimmed == trimmed || (feed == being_removed() && c.trimmed == model.horizon + 1));
	cr_assert(bytes_equal(c.rv, f->rv ? make_rv(f->rv, text) : BYTES_NONE));
}

static void check_all(struct journal *j)
{
	struct journal_meta meta;
	struct txn *txn = NULL;

	cr_assert_eq(txn_begin_read(journal_env(j), &txn), 0);
	cr_assert_eq(journal_meta(j, txn, &meta), 0);
	cr_assert_eq(meta.next_seq, model.next_seq);
	model.horizon = meta.horizon;
	check_log(j, txn);
	for (uint32_t feed = 1; feed <= model.n_feeds; feed++)
		check_feed(j, txn, feed);
	txn_abort(&txn);
}

static void model_trim(struct journal *j)
{
	uint64_t span = model.next_seq - 1 - model.horizon, trimmed;

	if (!span)
		return;
	uint64_t target = model.horizon + 1 + next_random(&chance) % span;
	size_t limit = 1 + next_random(&chance) % 6;
	int r;
	do {
		uint64_t before = model.horizon;
		uint32_t leaving = being_removed();
		r = journal_trim(j, target, limit, &trimmed);
		cr_assert(r == 0 || r == AGAIN, "%s", err_text(r));
		check_all(j);
		cr_assert_geq(model.horizon, before);
		cr_assert_leq(model.horizon, target);
		cr_assert(model.horizon > before || trimmed > 0 || leaving || being_removed());
		cr_assert_eq(r == AGAIN, model.horizon < target);
	} while (r == AGAIN && next_random(&chance) % 8);
}

static void run_model(uint32_t seed)
{
	struct home *home = open_home();
	struct journal *j = NULL;

	memset(&model, 0, sizeof(model));
	model.next_seq = 1;
	chance = seed;
	j = open_writer(home);
	cr_assert_eq(journal_begin_anew(&j, home, &small), 0);
	while (model.next_seq < RECORDS - 40) {
		committed = model;
		cr_assert_eq(journal_begin(j), 0);
		for (uint32_t n = next_random(&chance) % 30; n > 0; n--)
			model_step(j);
		uint32_t dice = next_random(&chance) % 20;
		if (dice < 2) {
			journal_abort(j);
			model = committed;
		} else
			cr_assert_eq(journal_commit(j), 0);
		if (dice == 3) {
			journal_close(&j);
			j = open_writer(home);
		}
		if (dice > 14)
			model_trim(j);
	}
	check_all(j);
	journal_close(&j);
	home_close(&home);
}

Test(journal, equals_the_model_whatever_happens)
{
	for (uint32_t seed = 1; seed <= 12; seed++)
		run_model(seed);
}

/* Killed inside and between trim slices: the next run goes on where the last commit was. */
#ifdef KINF_FAILPOINTS
Test(journal, trimming_goes_on_after_a_kill)
{
	static const char *const points[] = {"journal.trim:2:kill", "journal.trimmed:2:kill"};
	struct home *home = open_home();

	memset(&model, 0, sizeof(model));
	model.next_seq = 1;
	chance = 99;
	struct journal *j = open_writer(home);
	cr_assert_eq(journal_begin(j), 0);
	while (model.next_seq < 300)
		model_step(j);
	cr_assert_eq(journal_commit(j), 0);
	journal_close(&j);
	int kills = 0;
	for (int i = 0; i < 400; i++) {
		pid_t child = fork();
		if (child == 0) {
			uint64_t trimmed;
			if (setenv("KINF_FAIL", points[i % 2], 1) < 0 || failpoint_setup() < 0)
				_exit(2);
			j = open_writer(home);
			while (journal_trim(j, model.next_seq - 1, 3, &trimmed) == AGAIN)
				;
			_exit(0);
		}
		int status;
		cr_assert_eq(waitpid(child, &status, 0), child);
		j = open_writer(home);
		check_all(j);
		journal_close(&j);
		if (WIFEXITED(status)) {
			cr_assert_eq(WEXITSTATUS(status), 0, "child: %d", WEXITSTATUS(status));
			break;
		}
		kills++;
	}
	cr_assert_geq(kills, 20);
	cr_assert_eq(model.horizon, model.next_seq - 1);
	home_close(&home);
}
#endif
