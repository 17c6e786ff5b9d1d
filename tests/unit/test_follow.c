/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Followers against a model: a journal written by hand, taken by the processor's own modules, and a
 * replica made of nothing but what the follower gives. Each change has to fit the replica (its old
 * state is exactly what the replica holds), so nothing can be missed, doubled or out of order.
 */
#include "store/follow.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "tests/unit/rig.h"
#include "tests/unit/scratch.h"

#define FEEDS 2
#define KEYS  40

struct world {
	struct rig rig;
	struct store *store;
	uint32_t id[FEEDS];
	bool open[FEEDS];             /* a list is */
	uint64_t begin[FEEDS];
	uint64_t model[FEEDS][KEYS];  /* seq of the newest version, 0: none */
	struct follow *follow;
	uint64_t replica[FEEDS][KEYS];
	uint64_t last[FEEDS];         /* seq of the last change given */
	unsigned syncs, lapses, initials, changes, resyncs;
};

static struct world w;
static unsigned random_state;

static unsigned dice(unsigned sides)
{
	random_state = random_state * 1103515245u + 12345u;
	return (random_state >> 8) % sides;
}

#define OK(call) \
	do { \
		int ok_ = (call); \
		cr_assert_eq(ok_, 0, "%s: %d %s", #call, ok_, err_text(ok_)); \
	} while (0)

static const char *key_name(unsigned key)
{
	static char text[16];

	(void)snprintf(text, sizeof(text), "ns-%u/k-%02u", key % 3, key);
	return text;
}

/* ---- the store ---- */

static void put(unsigned feed, unsigned key)
{
	uint64_t *model = &w.model[feed][key];

	*model = rig_append(&w.rig, w.id[feed], *model ? RECORD_MODIFIED : RECORD_ADDED,
		key_name(key), "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
}

static void delete(unsigned feed, unsigned key)
{
	if (!w.model[feed][key])
		return;
	(void)rig_append(&w.rig, w.id[feed], RECORD_DELETED, key_name(key), NULL);
	w.model[feed][key] = 0;
}

static void list_begin(unsigned feed)
{
	w.begin[feed] = rig_append(&w.rig, w.id[feed], RECORD_LIST_BEGIN, NULL, NULL);
	w.open[feed] = true;
}

static void list_end(unsigned feed)
{
	(void)rig_append(&w.rig, w.id[feed], RECORD_LIST_END, NULL, NULL);
	w.open[feed] = false;
}

/* As far as the reflector may: not beyond what the index has, nor into an open list. */
static void trim(void)
{
	uint64_t target = rig_taken(&w.rig), trimmed;
	int r;

	for (unsigned f = 0; f < FEEDS; f++)
		if (w.open[f] && w.begin[f] - 1 < target)
			target = w.begin[f] - 1;
	do {
		r = journal_trim(w.rig.journal, target, 1 + dice(50), &trimmed);
	} while (r == AGAIN);
	OK(r);
}

/* Two feeds, each listed with some objects, and a reader's handle. */
static void setup(void)
{
	static const char *const names[FEEDS] = {"pods", "nodes"};
	struct store_options options = {.check = true};

	w = (struct world){.follow = NULL};
	rig_open(&w.rig, "feeds:\n  - resource: pods\n");
	for (unsigned f = 0; f < FEEDS; f++) {
		w.id[f] = rig_add_feed(&w.rig, names[f]);
		list_begin(f);
		for (unsigned k = 0; k < KEYS; k += 2)
			put(f, k);
		list_end(f);
	}
	rig_commit(&w.rig);
	rig_settle(&w.rig);
	OK(store_open(scratch_path("store"), &options, &w.store));
}

static void teardown(void)
{
	follow_free(&w.follow);
	store_close(&w.store);
	rig_close(&w.rig);
}

/* ---- the follower ---- */

static void begin(const struct follow_options *options)
{
	follow_free(&w.follow);
	OK(follow_new(w.store, w.id, FEEDS, options, &w.follow));
}

static uint64_t *replica_at(uint32_t id, struct bytes key, unsigned *ret_feed)
{
	unsigned feed = id == w.id[0] ? 0 : 1;

	cr_assert_eq(id, w.id[feed]);
	for (unsigned k = 0; k < KEYS; k++)
		if (bytes_equal(key, bytes_str(key_name(k)))) {
			*ret_feed = feed;
			return &w.replica[feed][k];
		}
	cr_assert_fail("no key '%.*s' was written", BYTES_ARG(key));
	return NULL;
}

static void take_change(const struct follow_item *item)
{
	unsigned feed;
	uint64_t *replica = replica_at(item->feed, item->record.key, &feed);

	cr_assert_eq(item->seq, item->record.seq);
	cr_assert_gt(item->seq, w.last[feed], "seqs ascend");
	cr_assert_eq(item->old.seq, *replica, "the old state is the replica's: %llu, %llu",
		(unsigned long long)item->old.seq, (unsigned long long)*replica);
	cr_assert_eq(item->record.type == RECORD_ADDED, *replica == 0);
	w.last[feed] = item->seq;
	*replica = item->record.type == RECORD_DELETED ? 0 : item->seq;
	w.changes++;
}

static void take(const struct follow_item *item)
{
	unsigned feed;

	switch (item->kind) {
	case FOLLOW_INITIAL: {
		uint64_t *replica = replica_at(item->feed, item->record.key, &feed);

		cr_assert_eq(*replica, 0, "an initial object comes once");
		cr_assert_leq(item->record.seq, item->seq);
		*replica = item->record.seq;
		w.initials++;
		break;
	}
	case FOLLOW_CHANGE:
		take_change(item);
		break;
	case FOLLOW_SYNC:
		w.syncs++;
		cr_assert(follow_synced(w.follow));
		break;
	case FOLLOW_RESYNC:
		cr_assert_eq(item->record.seq, *replica_at(item->feed, item->record.key, &feed),
			"what was given last");
		cr_assert_eq(item->old.seq, item->record.seq);
		w.resyncs++;
		break;
	default:
		feed = item->feed == w.id[0] ? 0 : 1;
		memset(w.replica[feed], 0, sizeof(w.replica[feed]));
		w.lapses++;
	}
}

/* At most N items; what follow_next said last. */
static int follow(unsigned n)
{
	struct follow_item item;
	int r = FOUND;

	while (n-- && (r = follow_next(w.follow, &item)) == FOUND)
		take(&item);
	return r;
}

/* Until nothing more comes, with time for a pass where no ring tells. */
static void drain(void)
{
	for (int quiet = 0; quiet < 3;) {
		int r = follow(1);

		cr_assert(r == FOUND || r == AGAIN, "%d %s", r, err_text(r));
		quiet = r == FOUND ? 0 : quiet + 1;
		if (r == AGAIN)
			(void)follow_wait(w.follow, 30);
	}
}

static void replica_is_model(void)
{
	for (unsigned f = 0; f < FEEDS; f++)
		for (unsigned k = 0; k < KEYS; k++)
			cr_assert_eq(w.replica[f][k], w.model[f][k], "feed %u, %s: %llu, not %llu", f,
				key_name(k), (unsigned long long)w.replica[f][k],
				(unsigned long long)w.model[f][k]);
}

static void change_something(void)
{
	unsigned feed = dice(FEEDS), key = dice(KEYS);

	if (dice(30) == 0) {
		if (w.open[feed])
			list_end(feed);
		else
			list_begin(feed);
	}
	if (dice(4) == 0)
		delete(feed, key);
	else
		put(feed, key);
	if (dice(3) == 0)
		rig_commit(&w.rig);
}

static void close_lists(void)
{
	for (unsigned f = 0; f < FEEDS; f++)
		if (w.open[f])
			list_end(f);
	rig_commit(&w.rig);
	rig_settle(&w.rig);
}

TestSuite(follow, .init = setup, .fini = teardown, .timeout = 120);

Test(follow, initial_state_then_sync_then_changes)
{
	begin(NULL);
	drain();
	cr_assert_eq(w.syncs, 1);
	cr_assert_eq(w.initials, KEYS);
	replica_is_model();
	put(0, 1);
	put(0, 0);
	delete(1, 2);
	rig_commit(&w.rig);
	rig_settle(&w.rig);
	drain();
	cr_assert_eq(w.changes, 3);
	cr_assert_eq(w.syncs, 1);
	replica_is_model();
}

/* Each call takes a new snapshot, so each range meets what happened since the one before. */
Test(follow, ranges_and_the_changes_between_them_fit)
{
	const struct follow_options options = {.max_hold_ns = 1};

	random_state = 1;
	for (unsigned round = 1; round <= 20; round++) {
		memset(w.replica, 0, sizeof(w.replica));
		begin(&options);
		while (w.syncs < round) {
			for (unsigned n = dice(4); n--;)
				change_something();
			rig_commit(&w.rig);
			rig_settle(&w.rig);
			int r = follow(1 + dice(5));
			cr_assert(r == FOUND || r == AGAIN, "%d %s", r, err_text(r));
		}
		close_lists();
		drain();
		replica_is_model();
	}
	cr_assert_eq(w.lapses, 0);
}

Test(follow, an_open_list_is_not_seen_and_an_applied_one_is_seen_whole)
{
	begin(NULL);
	drain();
	list_begin(0);
	put(0, 1);
	put(1, 1);
	rig_commit(&w.rig);
	rig_settle(&w.rig);
	drain();
	cr_assert_eq(w.changes, 1, "only the other feed's");
	delete(0, 0);
	list_end(0);
	rig_commit(&w.rig);
	rig_settle(&w.rig);
	drain();
	cr_assert_eq(w.changes, 3);
	replica_is_model();
}

Test(follow, a_position_that_was_trimmed_is_lapped_and_read_anew)
{
	begin(NULL);
	drain();
	for (unsigned k = 0; k < KEYS; k++)
		put(0, k);
	rig_commit(&w.rig);
	rig_settle(&w.rig);
	trim();
	drain();
	cr_assert_eq(w.lapses, 1, "the feed that was trimmed beyond the position, and no other");
	cr_assert_eq(w.syncs, 2);
	replica_is_model();
}

Test(follow, no_initial_begins_with_sync_and_gives_changes_only)
{
	const struct follow_options options = {.no_initial = true};

	begin(&options);
	drain();
	cr_assert_eq(w.syncs, 1);
	cr_assert_eq(w.initials, 0);
	memcpy(w.replica, w.model, sizeof(w.model));
	put(0, 3);
	rig_commit(&w.rig);
	rig_settle(&w.rig);
	drain();
	cr_assert_eq(w.changes, 1);
	replica_is_model();
}

/* The replica of the first follower is what the second goes on with. */
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

Test(follow, positions_of_another_follower_go_on_where_it_was)
{
	begin(NULL);
	drain();
	for (unsigned k = 0; k < 10; k++)
		put(0, k);
	rig_commit(&w.rig);
	rig_settle(&w.rig);
	cr_assert_eq(follow(4), FOUND);
	go_on_from(NULL);
	cr_assert(follow_synced(w.follow));
	drain();
	cr_assert_eq(w.changes, 10);
	cr_assert_eq(w.syncs, 1);
	cr_assert_eq(w.lapses, 0);
	replica_is_model();
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
	begin(&(struct follow_options){.from = from, .n_from = FEEDS, .from_uuid = journal_uuid(w.rig.journal)});
	drain();
	cr_assert_geq(w.lapses, 1, "numbers that are still to be given would be passed over");
	put(0, 1);
	rig_commit(&w.rig);
	rig_settle(&w.rig);
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

Test(follow, without_a_processor_it_waits_and_goes_on_with_the_next_one)
{
	begin(NULL);
	drain();
	pair_close(&w.rig.pair);
	put(0, 5);
	rig_commit(&w.rig);
	drain();
	cr_assert_eq(w.changes, 0, "not in the index yet");
	rig_settle(&w.rig);
	drain();
	cr_assert_eq(w.changes, 1);
	replica_is_model();
}

/* Rings that this process reads (not writes) and that have no name any more. */
static unsigned lost_rings(void)
{
	char line[512];
	unsigned n = 0;
	FILE *maps = fopen("/proc/self/maps", "re");

	cr_assert_not_null(maps);
	while (fgets(line, sizeof(line), maps))
		n += strstr(line, "r--s") && strstr(line, "event.ring (deleted)");
	(void)fclose(maps);
	return n;
}

/* The processor was killed, so that nothing in its ring says that it ended, and the runtime folder
 * cleaned up before the next one came. */
Test(follow, a_ring_that_lost_its_name_is_left_for_the_one_that_has_it)
{
	int runtime = home_runtime_fd(w.rig.p.home);
	struct ring *next = NULL;

	begin(NULL);
	drain();
	cr_assert_eq(unlinkat(runtime, "event.ring", 0), 0);
	cr_assert_eq(lost_rings(), 1);
	cr_assert(follow_resync(w.follow)); /* a pass, now and not in a second */
	drain();
	cr_assert_eq(lost_rings(), 1, "until there is another, what there is may still be written");
	put(0, 5);
	rig_commit(&w.rig);
	rig_settle(&w.rig);
	OK(ring_create(runtime, "event.ring", 1u << 16, journal_uuid(w.rig.journal), 0600, &next));
	cr_assert(follow_resync(w.follow));
	drain();
	cr_assert_eq(lost_rings(), 0);
	cr_assert_eq(w.changes, 1, "and nothing is lost on the way");
	replica_is_model();
	ring_close(&next);
}

Test(follow, a_resync_gives_each_object_once_more)
{
	begin(NULL);
	cr_assert_not(follow_resync(w.follow), "nothing was given yet");
	drain();
	cr_assert(follow_resync(w.follow));
	cr_assert_not(follow_resync(w.follow), "one is under way");
	drain();
	cr_assert_eq(w.resyncs, KEYS);
	cr_assert_eq(w.syncs, 1, "it has no end of its own");
	put(0, 0);
	rig_commit(&w.rig);
	rig_settle(&w.rig);
	drain();
	cr_assert_eq(w.changes, 1);
	cr_assert(follow_resync(w.follow));
	drain();
	cr_assert_eq(w.resyncs, 2 * KEYS);
	replica_is_model();
}

/* take() holds every item against the replica. */
Test(follow, changes_come_between_the_ranges_of_a_resync)
{
	const struct follow_options options = {.max_hold_ns = 1};

	random_state = 5;
	begin(&options);
	drain();
	for (unsigned round = 0; round < 10; round++) {
		cr_assert(follow_resync(w.follow));
		for (unsigned step = 0; step < 20; step++) {
			for (unsigned n = dice(4); n--;)
				change_something();
			rig_commit(&w.rig);
			rig_settle(&w.rig);
			int r = follow(1 + dice(5));
			cr_assert(r == FOUND || r == AGAIN, "%d %s", r, err_text(r));
		}
		close_lists();
		drain();
		replica_is_model();
	}
	cr_assert_gt(w.resyncs, 100);
	cr_assert_gt(w.changes, 100);
	cr_assert_eq(w.lapses, 0);
}

/* One feed stands still while the other one changes. */
Test(follow, a_pass_that_rests_does_not_begin_from_the_start_again)
{
	const struct follow_position *positions;

	begin(NULL);
	drain();
	for (unsigned k = 0; k < 10; k++)
		put(0, k);
	rig_commit(&w.rig);
	rig_settle(&w.rig);
	go_on_from(NULL); /* with a pass, not from the ring */
	cr_assert_eq(follow(4), FOUND);
	OK(follow_rest(w.follow));
	cr_assert_eq(follow_positions(w.follow, &positions), FEEDS);
	cr_assert_eq(positions[1].seq, positions[0].seq);
	drain();
	cr_assert_eq(w.changes, 10);
	replica_is_model();
}

/* Everything at once: lists, trims, restarts of the processor and of the follower. */
static void live_through(unsigned seed)
{
	const struct follow_options options = {.max_hold_ns = dice(2) ? 1 : 0};

	random_state = seed * 2654435761u + 1;
	memset(w.replica, 0, sizeof(w.replica));
	begin(&options);
	for (unsigned step = 0; step < 300; step++) {
		change_something();
		if (dice(4) == 0) {
			rig_commit(&w.rig);
			rig_settle(&w.rig);
		}
		if (dice(40) == 0) {
			rig_commit(&w.rig);
			rig_restart(&w.rig);
		}
		if (dice(60) == 0) {
			rig_commit(&w.rig);
			rig_settle(&w.rig);
			trim();
		}
		if (dice(3) == 0) {
			int r = follow(dice(20));

			cr_assert(r == FOUND || r == AGAIN, "%d %s", r, err_text(r));
		}
		if (dice(50) == 0 && follow_synced(w.follow))
			go_on_from(NULL);
		if (dice(20) == 0)
			(void)follow_resync(w.follow); /* not before SYNC */
		if (dice(8) == 0)
			OK(follow_rest(w.follow));
	}
	close_lists();
	drain();
	cr_assert(follow_synced(w.follow));
	replica_is_model();
}

Test(follow, random_lives_end_with_the_model)
{
	for (unsigned seed = 1; seed <= 12; seed++)
		live_through(seed);
	cr_assert_gt(w.lapses, 0);
	cr_assert_gt(w.changes, 500);
	cr_assert_gt(w.resyncs, 500);
}
