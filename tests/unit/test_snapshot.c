/* SPDX-License-Identifier: Apache-2.0 */
#include "store/read/snapshot.h"

#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>

#include "common/proc.h"
#include "common/value/value.h"
#include "store/read/snapshot_internal.h"
#include "processor/pair.h"
#include "tests/unit/snapshot_rig.h"

TestSuite(snapshot, .init = set_up, .fini = tear_down);
/* The store comes later. */
TestSuite(early_snapshot, .fini = tear_down);

/* The node of an object as READER sees it, "" when it is not there. */
static const char *node_in(struct snapshot *reader, const char *key)
{
	static char text[64];
	struct record record;
	struct bytes node;
	int r = snapshot_get(reader, s.feed, bytes_str(key), &record);

	if (r == NOT_FOUND)
		return "";
	cr_assert_eq(r, FOUND, "%s", err_text(r));
	cr_assert_eq(value_find_text(record.body, "spec", "nodeName", &node), FOUND);
	(void)snprintf(text, sizeof(text), "%.*s", BYTES_ARG(node));
	return text;
}

static const char *node_of(const char *key)
{
	return node_in(snapshot, key);
}

Test(snapshot, sees_one_instant_until_it_is_renewed)
{
	uint64_t a = small_store_put(&s, "web/a", "n1", 0);

	small_store_take(&s);
	open_snapshot();
	cr_assert_eq(snapshot_taken(snapshot), a);
	cr_assert_eq(snapshot_visible(snapshot, s.feed), a);
	cr_assert_eq(snapshot_visible(snapshot, s.feed + 1), 0);
	cr_assert_str_eq(node_of("web/a"), "n1");
	uint64_t b = small_store_put(&s, "web/a", "n2", 0);
	(void)small_store_put(&s, "web/b", "n3", 5000);
	small_store_take(&s);
	cr_assert_str_eq(node_of("web/a"), "n1");
	cr_assert_str_eq(node_of("web/b"), "");
	OK(snapshot_renew(snapshot));
	cr_assert_str_eq(node_of("web/a"), "n2");
	cr_assert_str_eq(node_of("web/b"), "n3", "a body with a place");
	OK(snapshot_reset(snapshot));
	(void)small_store_delete(&s, "web/a");
	small_store_take(&s);
	OK(snapshot_renew(snapshot));
	struct record record;

	cr_assert_str_eq(node_of("web/a"), "");
	cr_assert_eq(snapshot_version(snapshot, b, &record), FOUND, "history is still there");
	cr_assert_eq(snapshot_version(snapshot, b + 100, &record), NOT_FOUND);
}

Test(snapshot, process_that_has_become_another_user_learns_whose_the_store_is)
{
	if (geteuid() != 0) {
		cr_assert_neq(access("/", W_OK), 0, "another uid takes root");
		return;
	}
	(void)small_store_put(&s, "web/a", "n1", 0);
	small_store_take(&s);
	open_snapshot();
	cr_assert_eq(chmod(scratch(), 0755), 0);
	cr_assert_eq(seteuid(65534), 0);
	int r = 0;
	for (int i = 0; r == 0 && i < 1000; i++) { /* open files are read for a moment yet */
		(void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		r = snapshot_renew(snapshot);
	}
	cr_assert_eq(seteuid(0), 0);
	cr_assert_eq(prctl(PR_SET_DUMPABLE, 1), 0); /* for the leak check */
	cr_assert_eq(r, -EACCES, "%d", r);
	cr_assert(strstr(err_text(r), "user 65534 may not read the store"), "%s", err_text(r));
}

Test(snapshot, shows_a_list_whole_or_not_at_all)
{
	(void)small_store_put(&s, "web/a", "n1", 0);
	uint64_t begin = small_store_list_begin(&s);

	(void)small_store_put(&s, "web/a", "n2", 0);
	small_store_take(&s);
	open_snapshot();
	cr_assert_eq(snapshot_visible(snapshot, s.feed), begin - 1);
	cr_assert_eq(snapshot_taken(snapshot), begin + 1);
	cr_assert_str_eq(node_of("web/a"), "n1");
	uint64_t end = small_store_list_end(&s);

	small_store_take(&s);
	OK(snapshot_renew(snapshot));
	cr_assert_eq(snapshot_visible(snapshot, s.feed), end);
	cr_assert_str_eq(node_of("web/a"), "n2");
}

/* A second index generation, made from the log and published beside the first. */
static void build_again(void)
{
	static const struct index_options options = {.map_bytes = 64u << 20};
	CLEANUP(journal_close) struct journal *journal = NULL;
	CLEANUP(index_close) struct index *old = s.index;

	OK(journal_open_read(s.home, journal_uuid(s.journal), &journal));
	OK(rebuild(&s.p, journal, &options, &s.index));
	OK(index_publish(s.index, s.home));
}

static void assert_found_when_there(const char *missing)
{
	struct home_options how = {.create = true, .runtime_dir = scratch()};
	struct home *home;

	OK(home_open(scratch_path("store"), &how, &home));
	home_close(&home);
	if (missing)
		cr_assert_eq(rmdir(scratch_path(missing)), 0);
	OK(store_open(scratch_path("store"), NULL, &store));
	cr_assert_eq(snapshot_open(store, &snapshot), AGAIN);
	small_store_open(&s);
	(void)small_store_put(&s, "web/a", "n1", 0);
	small_store_take(&s);
	int r = AGAIN;

	/* CURRENT is looked at once a millisecond. */
	for (uint64_t until = proc_monotonic_ns() + 5000000000u;
		r == AGAIN && proc_monotonic_ns() < until;)
		r = snapshot_open(store, &snapshot);
	cr_assert_eq(r, 0);
	cr_assert_str_eq(node_of("web/a"), "n1");
	store_close(&store);
	cr_assert_str_eq(node_of("web/a"), "n1", "it keeps the store");
}

Test(early_snapshot, waits_for_an_index_and_then_finds_it)
{
	cr_assert_eq(store_open(scratch_path("none"), NULL, &store), ERR_NO_STORE);
	assert_found_when_there(NULL);
}

Test(early_snapshot, opened_without_an_index_folder_finds_it_later)
{
	assert_found_when_there("store/index");
}

Test(early_snapshot, opened_without_a_journal_folder_finds_it_later)
{
	assert_found_when_there("store/journal");
}

/* A user moves the index directory aside to examine it later. The index in it is still whole. */
Test(snapshot, an_index_folder_that_was_moved_aside_is_left_for_the_new_one)
{
	const char *node = "n1";

	(void)small_store_put(&s, "web/a", "n1", 0);
	small_store_take(&s);
	open_snapshot();
	char index[512];
	(void)snprintf(index, sizeof(index), "%s/index", s.path);
	cr_assert_eq(rename(index, scratch_path("away")), 0);
	OK(snapshot_renew(snapshot));
	cr_assert_str_eq(node_of("web/a"), "n1", "there is no other");
	cr_assert_eq(mkdir(index, 0700), 0);
	OK(home_reopen(s.home));
	(void)small_store_put(&s, "web/a", "n2", 0);
	build_again();
	for (uint64_t until = proc_monotonic_ns() + 5000000000u;
		strcmp(node, "n2") != 0 && proc_monotonic_ns() < until;) {
		OK(snapshot_renew(snapshot));
		node = node_of("web/a");
	}
	cr_assert_str_eq(node, "n2");
}

/* Writes the format of the index into its STATE. Returns the one before. */
static char write_format(char format)
{
	char path[512], text[1024];

	(void)snprintf(path, sizeof(path), "%s/index/gen-2/STATE", s.path);
	FILE *f = fopen(path, "r+e");
	cr_assert_not_null(f);
	size_t n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	char *at = strstr(text, "\nformat ");
	cr_assert_not_null(at);
	at += strlen("\nformat ");
	cr_assert_eq(at[1], '\n');
	char before = *at;
	*at = format;
	rewind(f);
	cr_assert_eq(fwrite(text, 1, n, f), n);
	(void)fclose(f);
	return before;
}

/* By a newer version of the daemons, say: the open index gets older and older. */
Test(snapshot, an_index_that_cannot_be_opened_is_told_after_a_moment)
{
	int r = 0;

	(void)small_store_put(&s, "web/a", "n1", 0);
	small_store_take(&s);
	open_snapshot();
	build_again();
	char format = write_format('9');
	OK(snapshot_renew(snapshot));
	cr_assert_str_eq(node_of("web/a"), "n1", "at first it is read on");
	for (uint64_t until = proc_monotonic_ns() + 20000000000u;
		r == 0 && proc_monotonic_ns() < until;) {
		r = snapshot_renew(snapshot);
		(void)poll(NULL, 0, 20);
	}
	cr_assert_eq(r, ERR_FORMAT, "%d", r);
	cr_assert_eq(snapshot_renew(snapshot), ERR_FORMAT, "each time");
	(void)write_format(format);
	OK(snapshot_renew(snapshot));
}

Test(snapshot, moves_to_the_index_that_current_names_and_keeps_the_old_one_till_then)
{
	CLEANUP(snapshot_close) struct snapshot *held = NULL;
	bool moved = false;

	(void)small_store_put(&s, "web/a", "n1", 0);
	small_store_take(&s);
	open_snapshot();
	OK(snapshot_open(store, &held));
	uint32_t before = index_generation(snapshot_index(snapshot));

	(void)small_store_put(&s, "web/a", "n2", 0);
	build_again();
	cr_assert_str_eq(node_in(held, "web/a"), "n1");
	for (uint64_t until = proc_monotonic_ns() + 5000000000u;
		!moved && proc_monotonic_ns() < until;) {
		OK(snapshot_renew(snapshot));
		moved = index_generation(snapshot_index(snapshot)) != before;
	}
	cr_assert(moved);
	cr_assert_str_eq(node_of("web/a"), "n2");
	cr_assert_str_eq(node_in(held, "web/a"), "n1");
}

Test(snapshot, an_index_behind_the_horizon_is_not_used)
{
	uint64_t trimmed;

	(void)small_store_put(&s, "web/a", "n1", 0);
	small_store_take(&s);
	(void)small_store_put(&s, "web/a", "n2", 0);
	uint64_t last = small_store_put(&s, "web/b", "n2", 0);

	/* Against the rule: trimming waits for the index. */
	OK(journal_trim(s.journal, last, 1000, &trimmed));
	OK(store_open(s.path, &checking, &store));
	cr_assert_eq(snapshot_open(store, &snapshot), AGAIN);
	build_again();
	OK(snapshot_open(store, &snapshot));
	cr_assert_eq(snapshot_horizon(snapshot), last);
	cr_assert_str_eq(node_of("web/a"), "n2");
}

Test(snapshot, a_wrong_pointer_is_an_error_and_never_another_object)
{
	struct record record;

	uint64_t a = small_store_put(&s, "web/a", "n1", 5000);
	uint64_t b = small_store_put(&s, "web/b", "n2", 5000);
	struct index_change change = {.feed = s.feed, .key = BYTES_LIT("web/a"), .to = {.seq = b}};

	OK(index_begin(s.index));
	OK(index_put(s.index, &change));
	change.key = BYTES_LIT("web/c");
	change.to.seq = b + 1000;
	OK(index_put(s.index, &change));
	/* A place with another record is not trusted either: the seq leads. */
	change.key = BYTES_LIT("web/b");
	change.to = (struct index_entry){.seq = b,
		.place = 4096 * 3 + 16,
		.place_size = 100,
		.generation = journal_generation(s.journal)};
	OK(index_put(s.index, &change));
	OK(index_set_taken(s.index, b));
	OK(index_commit(s.index));
	open_snapshot();
	cr_assert_eq(snapshot_get(snapshot, s.feed, BYTES_LIT("web/a"), &record), ERR_CORRUPT);
	cr_assert_eq(snapshot_get(snapshot, s.feed, BYTES_LIT("web/c"), &record), ERR_CORRUPT);
	cr_assert_str_eq(node_of("web/b"), "n2");
	cr_assert_eq(snapshot_version(snapshot, a, &record), FOUND);
}

struct reading {
	struct store *store;
	bool stop;
	uint64_t reads;
	const char *wrong;
};

/* web/a and web/b always change in one transaction of the index: both have one node. Returns NULL,
 * or the fault. */
static const char *read_pair(struct snapshot *reader)
{
	struct record x, y;
	struct bytes a, b;

	if (snapshot_get(reader, s.feed, BYTES_LIT("web/a"), &x) != FOUND ||
		snapshot_get(reader, s.feed, BYTES_LIT("web/b"), &y) != FOUND)
		return "an object is missing";
	if (value_find_text(x.body, "spec", "nodeName", &a) != FOUND ||
		value_find_text(y.body, "spec", "nodeName", &b) != FOUND)
		return "no node";
	return bytes_equal(a, b) ? NULL : "two instants in one snapshot";
}

static void *read_pairs(void *arg)
{
	struct reading *reading = arg;
	CLEANUP(snapshot_close) struct snapshot *reader = NULL;

	if (snapshot_open(reading->store, &reader) != 0)
		reading->wrong = "no snapshot";
	while (!reading->wrong && !__atomic_load_n(&reading->stop, __ATOMIC_ACQUIRE)) {
		if (snapshot_renew(reader) != 0)
			reading->wrong = "no renewal";
		else
			reading->wrong = read_pair(reader);
		reading->reads++;
	}
	return NULL;
}

Test(snapshot, threads_read_whole_states_while_it_changes)
{
	struct reading readings[2] = {0};

	pthread_t threads[2];

	(void)small_store_put(&s, "web/a", "n", 3000);
	(void)small_store_put(&s, "web/b", "n", 0);
	small_store_take(&s);
	for (int i = 0; i < 2; i++) {
		OK(store_open(s.path, &checking, &readings[i].store));
		cr_assert_eq(pthread_create(&threads[i], NULL, read_pairs, &readings[i]), 0);
	}
	for (int i = 0; i < 300; i++) {
		char node[16];
		uint64_t trimmed;

		(void)snprintf(node, sizeof(node), "n%d", i);
		(void)small_store_put(&s, "web/a", node, 3000);
		uint64_t last = small_store_put(&s, "web/b", node, 0);

		small_store_take(&s);
		OK(journal_trim(s.journal, last, 1000, &trimmed));
	}
	for (int i = 0; i < 2; i++) {
		__atomic_store_n(&readings[i].stop, true, __ATOMIC_RELEASE);
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
		cr_assert_null(readings[i].wrong, "%s", readings[i].wrong);
		cr_assert_gt(readings[i].reads, 0);
		store_close(&readings[i].store);
	}
}

Test(snapshot, a_feed_removed_from_the_journal_is_no_damage)
{
	struct record record = {.type = RECORD_FEED_REMOVED};
	uint64_t seq, trimmed;

	(void)small_store_put(&s, "web/a", "n1", 0);
	(void)small_store_put(&s, "web/b", "n1", 0);
	small_store_take(&s);
	record.feed = s.feed;
	OK(journal_begin(s.journal));
	OK(journal_append(s.journal, &record, &seq));
	OK(journal_commit(s.journal));
	/* Against the rule (trimming waits for the index), and only as far as the first head. */
	for (int i = 0; i < 6; i++)
		cr_assert_eq(journal_trim(s.journal, seq, 1, &trimmed), AGAIN);
	open_snapshot();
	cr_assert_eq(snapshot_get(snapshot, s.feed, BYTES_LIT("web/a"), &record), ERR_NO_FEED);
}

/* A thread of the parent held the store's lock at the fork: closing the store in the child
 * waited for it for ever. */
Test(snapshot, a_forked_child_closes_a_store_whose_lock_another_thread_held, .timeout = 60)
{
	int status;

	cr_assert_eq(store_open(s.path, &checking, &store), 0);
	for (int held = 0; held < 2; held++) {
		if (held)
			cr_assert_eq(pthread_mutex_lock(&store->lock), 0);
		pid_t child = fork();
		if (child == 0) {
			(void)alarm(20);
			store_close(&store);
			_exit(0);
		}
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert_eq(status, 0);
	}
	cr_assert_eq(pthread_mutex_unlock(&store->lock), 0);
}
