/* SPDX-License-Identifier: Apache-2.0 */
/* A feed's state as of an earlier seq, compared with the states noted at the time. */
#include "store/read/as_of.h"
#include "tests/unit/follow_rig.h"

#define SEQS 4000

/* By seq: versions seen by readers, 0: no object. */
static uint64_t seen[SEQS][FEEDS][KEYS];
static uint64_t first, last; /* the noted seqs */
static struct snapshot *snapshot;

static void note(uint64_t seq)
{
	cr_assert(seq == last + 1 && seq < SEQS);
	last = seq;
	for (unsigned f = 0; f < FEEDS; f++)
		memcpy(seen[seq][f], w.open[f] ? seen[w.begin[f] - 1][f] : w.model[f],
			sizeof(seen[seq][f]));
}

static void change(unsigned feed, unsigned key, bool there)
{
	uint64_t *model = &w.model[feed][key];

	if (!there && !*model)
		return;
	uint64_t seq = rig_append(&w.rig, w.id[feed],
		!there   ? RECORD_DELETED
		: *model ? RECORD_MODIFIED
			 : RECORD_ADDED,
		key_name(key), there ? "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}" : NULL);
	*model = there ? seq : 0;
	note(seq);
}

static void bracket(unsigned feed)
{
	bool open = w.open[feed];
	uint64_t seq = rig_append(
		&w.rig, w.id[feed], open ? RECORD_LIST_END : RECORD_LIST_BEGIN, NULL, NULL);

	if (!open)
		w.begin[feed] = seq;
	w.open[feed] = !open;
	note(seq);
}

static void settle(void)
{
	rig_take(&w.rig);
	if (snapshot)
		OK(snapshot_renew(snapshot));
	else
		OK(snapshot_open(w.store, &snapshot));
}

static void as_of_setup(void)
{
	setup();
	first = last = rig_taken(&w.rig);
	for (unsigned f = 0; f < FEEDS; f++)
		memcpy(seen[first][f], w.model[f], sizeof(seen[first][f]));
	settle();
}

static void as_of_teardown(void)
{
	snapshot_close(&snapshot);
	teardown();
}

TestSuite(as_of, .init = as_of_setup, .fini = as_of_teardown, .timeout = 120);

/* Lets AS_OF take over what another one has read record by record. */
static void take_over(unsigned feed, uint64_t seq, struct as_of *as_of)
{
	CLEANUP(as_of_free) struct as_of *other = NULL;
	int r = AGAIN;

	OK(as_of_new(w.id[feed], seq, &other));
	while (r == AGAIN)
		r = as_of_renew(other, snapshot, 1);
	OK(r);
	as_of_rest(other);
	OK(as_of_take(as_of, other));
	cr_assert_eq(as_of_seq(as_of), as_of_seq(other));
	OK(as_of_take(as_of, other)); /* does nothing */
}

/* Each other one takes over the changes. */
static struct as_of *as_of_at(unsigned feed, uint64_t seq)
{
	static unsigned calls;
	struct as_of *as_of;

	OK(as_of_new(w.id[feed], seq, &as_of));
	if (calls++ % 2)
		take_over(feed, seq, as_of);
	OK(as_of_renew(as_of, snapshot, SIZE_MAX));
	return as_of;
}

static void check_object(unsigned feed, uint64_t seq, struct bytes key,
	const struct index_entry *entry, unsigned *ret_key)
{
	struct record record;
	unsigned k = 0;

	while (k < KEYS && !bytes_equal(key, bytes_str(key_name(k))))
		k++;
	cr_assert_lt(k, KEYS);
	cr_assert_eq(entry->seq, seen[seq][feed][k], "feed %u as of %llu: '%s' at %llu, not %llu",
		feed, (unsigned long long)seq, key_name(k), (unsigned long long)entry->seq,
		(unsigned long long)seen[seq][feed][k]);
	OK(snapshot_record(snapshot, w.id[feed], key, entry, &record));
	*ret_key = k;
}

static void check_walk(unsigned feed, uint64_t seq, const char *prefix)
{
	CLEANUP(as_of_free) struct as_of *as_of = as_of_at(feed, seq);
	char previous[16] = "";
	struct index_entry entry;
	struct bytes key;
	unsigned given = 0, due = 0, k;
	int r;

	OK(as_of_walk(as_of, AS_OF_ALL, bytes_str(prefix), BYTES_NONE));
	while ((r = as_of_next(as_of, &key, &entry)) == FOUND) {
		check_object(feed, seq, key, &entry, &k);
		cr_assert_gt(strcmp(key_name(k), previous), 0, "keys ascend");
		cr_assert(bytes_starts(key, bytes_str(prefix)));
		(void)snprintf(previous, sizeof(previous), "%s", key_name(k));
		given++;
	}
	cr_assert_eq(r, END, "%d %s", r, err_text(r));
	for (k = 0; k < KEYS; k++)
		due += seen[seq][feed][k] && strncmp(key_name(k), prefix, strlen(prefix)) == 0;
	cr_assert_eq(given, due, "feed %u as of %llu: %u objects, not %u", feed,
		(unsigned long long)seq, given, due);
}

static void check_each(unsigned feed, uint64_t seq)
{
	CLEANUP(as_of_free) struct as_of *as_of = as_of_at(feed, seq);
	struct index_entry entry;
	struct record record;
	struct bytes key;
	unsigned changed = 0, due = 0, k;

	for (k = 0; k < KEYS; k++) {
		uint64_t want = seen[seq][feed][k];
		int r = as_of_get(as_of, bytes_str(key_name(k)), &record);

		cr_assert_eq(r, want ? FOUND : NOT_FOUND, "%d %s", r, err_text(r));
		cr_assert(!want || record.seq == want);
		due += want && want != seen[snapshot_visible(snapshot, w.id[feed])][feed][k];
	}
	OK(as_of_walk(as_of, AS_OF_CHANGED, BYTES_NONE, BYTES_NONE));
	for (; as_of_next(as_of, &key, &entry) == FOUND; changed++) {
		check_object(feed, seq, key, &entry, &k);
		cr_assert_eq(entry.object, 0);
	}
	cr_assert_eq(changed, due);
}

Test(as_of, changed_deleted_and_later_objects_are_as_they_were)
{
	struct index_entry entry;
	struct bytes key;

	change(0, 0, true);  /* changed */
	change(0, 2, false); /* deleted */
	change(0, 4, false); /* deleted and there again */
	change(0, 4, true);
	change(0, 1, true); /* later */
	change(0, 3, true); /* later, and no more */
	change(0, 3, false);
	settle();
	check_walk(0, first, "");
	check_walk(0, first, "ns-1/");
	check_each(0, first);

	CLEANUP(as_of_free) struct as_of *as_of = as_of_at(0, first);
	OK(as_of_walk(as_of, AS_OF_ALL, BYTES_LIT("ns-2/"), BYTES_LIT("ns-2/k-03")));
	OK(as_of_next(as_of, &key, &entry));
	cr_assert(bytes_equal(key, BYTES_LIT("ns-2/k-08")));
	OK(as_of_walk(as_of, AS_OF_CHANGED, BYTES_NONE, BYTES_LIT("ns-1/k-04\0x")));
	OK(as_of_next(as_of, &key, &entry));
	cr_assert(bytes_equal(key, BYTES_LIT("ns-2/k-02")));
	cr_assert_eq(as_of_next(as_of, &key, &entry), END);
}

Test(as_of, a_seq_within_a_list_is_the_state_before_it)
{
	CLEANUP(as_of_free) struct as_of *as_of = NULL;
	uint64_t begin = last + 1;

	bracket(0);
	change(0, 0, true);
	settle();
	OK(as_of_new(w.id[0], last, &as_of));
	OK(as_of_renew(as_of, snapshot, SIZE_MAX));
	cr_assert_eq(as_of_seq(as_of), begin - 1, "the list is open");
	as_of_rest(as_of);
	bracket(0);
	settle();
	OK(as_of_renew(as_of, snapshot, SIZE_MAX));
	cr_assert_eq(as_of_seq(as_of), begin - 1);
	as_of_free(&as_of);
	as_of = as_of_at(0, last - 1);
	cr_assert_eq(as_of_seq(as_of), begin - 1, "the list is applied");
	as_of_free(&as_of);
	as_of = as_of_at(1, last - 1);
	cr_assert_eq(as_of_seq(as_of), last - 1, "it is not of this feed");
}

static uint64_t oldest_at(uint32_t feed)
{
	CLEANUP(as_of_free) struct as_of *as_of = NULL;

	OK(as_of_new(feed, 1, &as_of));
	cr_assert_eq(as_of_renew(as_of, snapshot, SIZE_MAX), LAPPED);
	return as_of_oldest(as_of);
}

static int renew_at(uint32_t feed, uint64_t seq)
{
	CLEANUP(as_of_free) struct as_of *as_of = NULL;

	OK(as_of_new(feed, seq, &as_of));
	return as_of_renew(as_of, snapshot, SIZE_MAX);
}

Test(as_of, a_state_that_is_not_kept_is_lapsed)
{
	change(0, 0, true);
	change(0, 2, true);
	settle();
	cr_assert_eq(renew_at(w.id[0], last), 0);
	cr_assert_eq(renew_at(w.id[0], last + 1), LAPPED, "it is not taken yet");
	CLEANUP(as_of_free) struct as_of *as_of = as_of_at(0, first);
	as_of_rest(as_of);
	trim();
	settle();
	cr_assert_eq(snapshot_horizon(snapshot), last);
	cr_assert_eq(as_of_renew(as_of, snapshot, SIZE_MAX), LAPPED, "trimmed during the walk");
	cr_assert_eq(renew_at(w.id[0], last - 1), LAPPED);
	cr_assert_eq(renew_at(w.id[0], last), 0);
	cr_assert_eq(oldest_at(w.id[0]), last);
	cr_assert_eq(renew_at(w.id[1], first), 0, "nothing of this feed was trimmed");
	check_walk(1, first, "");
}

Test(as_of, a_feed_that_came_later_is_lapsed_and_a_removed_one_gone)
{
	uint32_t feed = rig_add_feed(&w.rig, "services");

	(void)rig_append(&w.rig, feed, RECORD_LIST_BEGIN, NULL, NULL);
	settle();
	cr_assert_eq(renew_at(feed, snapshot_taken(snapshot)), LAPPED, "it is not listed yet");
	uint64_t listed = rig_append(&w.rig, feed, RECORD_LIST_END, NULL, NULL);
	settle();
	cr_assert_eq(renew_at(feed, listed - 1), LAPPED);
	cr_assert_eq(renew_at(feed, listed), 0);
	cr_assert_eq(oldest_at(feed), listed);
	(void)rig_append(&w.rig, feed, RECORD_FEED_REMOVED, NULL, NULL);
	settle();
	cr_assert_eq(renew_at(feed, listed), GONE);
	cr_assert_eq(renew_at(12345, listed), GONE);
}
