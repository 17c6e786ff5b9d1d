/* SPDX-License-Identifier: Apache-2.0 */
/* Followers against a model (follow_rig.h). */
#include "store/read/follow.h"

#include <signal.h>
#include <sys/time.h>

#include "tests/unit/follow_rig.h"

TestSuite(follow, .init = setup, .fini = teardown, .timeout = 120);

Test(follow, a_position_that_was_trimmed_is_lapped_and_read_anew)
{
	begin(NULL);
	drain();
	for (unsigned k = 0; k < KEYS; k++)
		put(0, k);
	rig_take(&w.rig);
	trim();
	drain();
	cr_assert_eq(w.lapses, 1, "the feed that was trimmed beyond the position, and no other");
	cr_assert_eq(w.syncs, 2);
	replica_is_model();
}

/* The second follower continues with the first one's replica. */
static void go_on_from(const uint8_t *uuid)
{
	const struct follow_position *positions;
	struct follow_position kept[FEEDS];
	uint8_t own[16];
	size_t n = follow_positions(w.follow, &positions);

	cr_assert_eq(n, FEEDS);
	memcpy(kept, positions, sizeof(kept));
	memcpy(own, follow_uuid(w.follow), sizeof(own));
	const struct follow_options options = {
		.from = kept, .n_from = n, .from_uuid = uuid ? uuid : own};
	begin(&options);
}

Test(follow, positions_of_another_journal_are_lapped)
{
	static const uint8_t other[16] = {1};

	begin(NULL);
	drain();
	go_on_from(other);
	drain();
	cr_assert_eq(w.lapses, FEEDS);
	cr_assert_eq(w.syncs, 2);
	replica_is_model();
}

Test(follow, a_position_beyond_the_log_is_lapped)
{
	struct follow_position from[FEEDS];

	for (unsigned i = 0; i < FEEDS; i++)
		from[i] = (struct follow_position){w.id[i], rig_taken(&w.rig) + 3};
	begin(&(struct follow_options){
		.from = from, .n_from = FEEDS, .from_uuid = journal_uuid(w.rig.journal)});
	drain();
	cr_assert_geq(w.lapses, 1, "numbers that are still to be given would be passed over");
	put(0, 1);
	rig_take(&w.rig);
	drain();
	cr_assert_eq(w.changes, 1);
	replica_is_model();
}

Test(follow, a_removed_feed_is_gone)
{
	begin(NULL);
	drain();
	rig_record(&w.rig, w.id[1], RECORD_FEED_REMOVED, NULL, NULL);
	rig_settle(&w.rig);
	int r = AGAIN;
	for (int i = 0; i < 100 && (r == AGAIN || r == FOUND); i++) {
		r = follow(1);
		if (r == AGAIN)
			(void)follow_wait(w.follow, 30);
	}
	cr_assert_eq(r, GONE, "%d", r);
}

/* The index is only asked for the initial state. */
Test(follow, without_a_processor_changes_and_whole_lists_go_on)
{
	begin(NULL);
	drain();
	pair_close(&w.rig.pair);
	put(0, 5);
	rig_commit(&w.rig);
	drain();
	cr_assert_eq(w.changes, 1);
	replica_is_model();
	list_begin(0);
	put(0, 7);
	delete (0, 0);
	rig_commit(&w.rig);
	drain();
	cr_assert_eq(w.changes, 1, "the list is open");
	list_end(0);
	rig_commit(&w.rig);
	drain();
	cr_assert_eq(w.changes, 3);
	replica_is_model();
	rig_settle(&w.rig);
	drain();
	cr_assert_eq(w.changes, 3, "and not again");
}

/* A late follower reads the index, then the log after it. */
Test(follow, an_initial_state_behind_the_log_is_followed_by_the_rest)
{
	pair_close(&w.rig.pair);
	put(0, 5);
	put(0, 0);
	delete (1, 2);
	rig_commit(&w.rig);
	begin(NULL);
	drain();
	cr_assert_eq(w.initials, KEYS);
	cr_assert_eq(w.syncs, 1);
	cr_assert_eq(w.changes, 3);
	replica_is_model();
}

/* A resync shows no object older than the last change given: it waits for the index. */
Test(follow, a_resync_waits_for_the_index_and_changes_do_not)
{
	begin(NULL);
	drain();
	pair_close(&w.rig.pair);
	put(0, 5);
	rig_commit(&w.rig);
	drain();
	cr_assert(follow_resync(w.follow));
	put(0, 7);
	rig_commit(&w.rig);
	for (int i = 0; i < 1000 && w.changes < 2; i++) {
		int r = follow(1);

		cr_assert(r == FOUND || r == AGAIN, "%d %s", r, err_text(r));
		cr_assert(r == FOUND || follow_awaits_index(w.follow));
		if (r == AGAIN)
			(void)follow_wait(w.follow, 30);
	}
	cr_assert_eq(w.changes, 2);
	cr_assert_leq(w.resyncs, KEYS / 2, "only the other feed's");
	rig_settle(&w.rig);
	drain();
	cr_assert_eq(w.resyncs, KEYS + 2);
	cr_assert_not(follow_awaits_index(w.follow));
	replica_is_model();
}

/* The first list of a feed ends in the log before the index has it. */
Test(follow, a_first_list_is_given_when_the_index_has_it)
{
	uint32_t ids[1] = {rig_add_feed(&w.rig, "secrets")};

	rig_settle(&w.rig);
	OK(follow_new(w.store, ids, 1, NULL, &w.follow));
	(void)rig_append(&w.rig, ids[0], RECORD_LIST_BEGIN, NULL, NULL);
	(void)rig_append(&w.rig, ids[0], RECORD_LIST_END, NULL, NULL);
	rig_commit(&w.rig);
	drain();
	cr_assert_eq(w.syncs, 0);
	cr_assert(follow_awaits_index(w.follow));
	rig_settle(&w.rig);
	drain();
	cr_assert_eq(w.syncs, 1);
}

/* Returns the number of rings this process reads (not writes) by no name any more. */
static unsigned lost_rings(void)
{
	char line[512];
	unsigned n = 0;
	FILE *maps = fopen("/proc/self/maps", "re");

	cr_assert_not_null(maps);
	while (fgets(line, sizeof(line), maps))
		n += strstr(line, "r--s") && strstr(line, "delta.ring (deleted)");
	(void)fclose(maps);
	return n;
}

/* The reflector was killed, so its ring has no end mark, and the runtime directory was cleaned up
 * before the next reflector started. */
Test(follow, a_ring_that_lost_its_name_is_left_for_the_one_that_has_it)
{
	int runtime = home_runtime_fd(w.rig.p.home);
	CLEANUP(ring_close) struct ring *next = NULL;

	begin(NULL);
	drain();
	pair_close(&w.rig.pair); /* the pair also reads the ring */
	cr_assert_eq(unlinkat(runtime, "delta.ring", 0), 0);
	cr_assert_eq(lost_rings(), 1);
	cr_assert(follow_resync(w.follow)); /* a pass, now and not in a second */
	drain();
	cr_assert_eq(lost_rings(), 1, "until there is another, what there is may still be written");
	put(0, 5);
	rig_take(&w.rig);
	OK(ring_create(runtime, "delta.ring", 1u << 16, journal_uuid(w.rig.journal), 0600, &next));
	cr_assert(follow_resync(w.follow));
	drain();
	cr_assert_eq(lost_rings(), 0);
	cr_assert_eq(w.changes, 1, "and nothing is lost on the way");
	replica_is_model();
}

/* The reflector may not read one of the feeds of a name, or its first list takes long. */
Test(follow, waiting_for_a_first_list_sleeps_and_holds_nothing_back)
{
	uint32_t ids[FEEDS + 1] = {rig_add_feed(&w.rig, "secrets"), w.id[0], w.id[1]};
	unsigned slept = 0;

	rig_settle(&w.rig);
	OK(follow_new(w.store, ids, FEEDS + 1, NULL, &w.follow));
	drain();
	put(0, 5);
	rig_take(&w.rig);
	drain();
	for (unsigned i = 0; i < 20; i++) {
		cr_assert_eq(follow(1), AGAIN);
		slept += follow_wait(w.follow, 5) == AGAIN;
	}
	cr_assert_geq(slept, 10, "it was awake %u of 20 times, and nothing came", 20 - slept);
	cr_assert_eq(w.syncs, 0);
	cr_assert_eq(w.changes, 1, "of those that are listed");
	replica_is_model();
	(void)rig_append(&w.rig, ids[0], RECORD_LIST_BEGIN, NULL, NULL);
	(void)rig_append(&w.rig, ids[0], RECORD_LIST_END, NULL, NULL);
	rig_take(&w.rig);
	drain();
	cr_assert_eq(w.syncs, 1);
	replica_is_model();
}

Test(follow, a_pass_that_rests_does_not_begin_from_the_start_again)
{
	const struct follow_position *positions;

	begin(NULL);
	drain();
	for (unsigned k = 0; k < 10; k++)
		put(0, k);
	rig_take(&w.rig);
	go_on_from(NULL); /* with a pass, not from the ring */
	cr_assert_eq(follow(4), FOUND);
	OK(follow_rest(w.follow));
	cr_assert_eq(follow_positions(w.follow, &positions), FEEDS);
	cr_assert_eq(positions[1].seq, positions[0].seq);
	drain();
	cr_assert_eq(w.changes, 10);
	replica_is_model();
}

static void on_alarm(int signal)
{
	(void)signal;
}

/* With a ring and without one: never an error, and not the whole time. */
Test(follow, a_signal_ends_a_wait)
{
	const struct itimerval soon = {.it_value = {.tv_usec = 100000}};
	struct sigaction action = {.sa_handler = on_alarm};

	begin(NULL);
	drain();
	cr_assert_eq(sigaction(SIGALRM, &action, NULL), 0);
	cr_assert_eq(setitimer(ITIMER_REAL, &soon, NULL), 0);
	cr_assert_eq(follow_wait(w.follow, 20000), 0);
}
