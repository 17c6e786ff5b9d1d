/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal written by hand, applied by the processor's modules, and a replica filled only by the
 * follower. Each change must fit the replica: its old state equals the replica's. So nothing is
 * missed, doubled or out of order.
 */
#ifndef UNIT_FOLLOW_RIG_H
#define UNIT_FOLLOW_RIG_H

#include "store/read/follow.h"
#include "tests/unit/rig.h"

#define FEEDS 2
#define KEYS  40

struct world {
	struct rig rig;
	struct store *store;
	uint32_t id[FEEDS];
	bool open[FEEDS]; /* a list is */
	uint64_t begin[FEEDS];
	uint64_t model[FEEDS][KEYS]; /* seq of the newest version, 0: none */
	struct follow *follow;
	uint64_t replica[FEEDS][KEYS];
	uint64_t last[FEEDS]; /* seq of the last change given */
	unsigned syncs, lapses, initials, changes, resyncs;
};

static struct world w;
static unsigned random_state;

static inline unsigned dice(unsigned sides)
{
	random_state = random_state * 1103515245u + 12345u;
	return (random_state >> 8) % sides;
}

static inline const char *key_name(unsigned key)
{
	static char text[16];

	(void)snprintf(text, sizeof(text), "ns-%u/k-%02u", key % 3, key);
	return text;
}

/* ---- the store ---------------------------------------------------------- */

static inline void put(unsigned feed, unsigned key)
{
	uint64_t *model = &w.model[feed][key];

	*model = rig_append(&w.rig, w.id[feed], *model ? RECORD_MODIFIED : RECORD_ADDED,
		key_name(key), "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}");
}

static inline void delete (unsigned feed, unsigned key)
{
	if (!w.model[feed][key])
		return;
	(void)rig_append(&w.rig, w.id[feed], RECORD_DELETED, key_name(key), NULL);
	w.model[feed][key] = 0;
}

static inline void list_begin(unsigned feed)
{
	w.begin[feed] = rig_append(&w.rig, w.id[feed], RECORD_LIST_BEGIN, NULL, NULL);
	w.open[feed] = true;
}

static inline void list_end(unsigned feed)
{
	(void)rig_append(&w.rig, w.id[feed], RECORD_LIST_END, NULL, NULL);
	w.open[feed] = false;
}

/* Trims up to the index, but never into an open list, as the reflector does. */
static inline void trim(void)
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
static inline void setup(void)
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
	rig_take(&w.rig);
	OK(store_open(scratch_path("store"), &options, &w.store));
}

static inline void teardown(void)
{
	follow_free(&w.follow);
	store_close(&w.store);
	rig_close(&w.rig);
}

/* ---- the follower ------------------------------------------------------- */

static inline void begin(const struct follow_options *options)
{
	follow_free(&w.follow);
	OK(follow_new(w.store, w.id, FEEDS, options, &w.follow));
}

static inline uint64_t *replica_at(uint32_t id, struct bytes key, unsigned *ret_feed)
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

static inline void take_change(const struct follow_item *item)
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

static inline void take(const struct follow_item *item)
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

/* At most N items; returns the last result of follow_next. */
static inline int follow(unsigned n)
{
	struct follow_item item;
	int r = FOUND;

	while (n-- && (r = follow_next(w.follow, &item)) == FOUND)
		take(&item);
	return r;
}

/* Until nothing more comes, with time for a pass where no ring tells. */
static inline void drain(void)
{
	for (int quiet = 0; quiet < 3;) {
		int r = follow(1);

		cr_assert(r == FOUND || r == AGAIN, "%d %s", r, err_text(r));
		quiet = r == FOUND ? 0 : quiet + 1;
		if (r == AGAIN)
			(void)follow_wait(w.follow, 30);
	}
}

static inline void replica_is_model(void)
{
	for (unsigned f = 0; f < FEEDS; f++)
		for (unsigned k = 0; k < KEYS; k++)
			cr_assert_eq(w.replica[f][k], w.model[f][k], "feed %u, %s: %llu, not %llu",
				f, key_name(k), (unsigned long long)w.replica[f][k],
				(unsigned long long)w.model[f][k]);
}

static inline void change_something(void)
{
	unsigned feed = dice(FEEDS), key = dice(KEYS);

	if (dice(30) == 0) {
		if (w.open[feed])
			list_end(feed);
		else
			list_begin(feed);
	}
	if (dice(4) == 0)
		delete (feed, key);
	else
		put(feed, key);
	if (dice(3) == 0)
		rig_commit(&w.rig);
}

static inline void close_lists(void)
{
	for (unsigned f = 0; f < FEEDS; f++)
		if (w.open[f])
			list_end(f);
	rig_take(&w.rig);
}

#endif
