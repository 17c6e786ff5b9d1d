/* SPDX-License-Identifier: Apache-2.0 */
/* A feed's state as of an earlier seq. tests/model reads random states, with walks over several
 * snapshots. */
#include "store/read/as_of.h"
#include "tests/unit/follow_rig.h"

static uint64_t first, last; /* seqs of the state after setup, and of the newest record */
static struct snapshot *snapshot;

static void settle(void)
{
	rig_take(&w.rig);
	last = rig_taken(&w.rig);
	if (snapshot)
		OK(snapshot_renew(snapshot));
	else
		OK(snapshot_open(w.store, &snapshot));
}

static void as_of_setup(void)
{
	setup();
	settle();
	first = last;
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

/* Walks and checks that it gives the keys WANTED, each in its version of MODEL. Changed ones have
 * no id. */
static void check_walk(struct as_of *as_of, enum as_of_objects which, const char *prefix,
	struct bytes from, const uint64_t model[KEYS], const char *wanted)
{
	CLEANUP(buf_release) struct buf keys = BUF_INIT;
	struct index_entry entry;
	struct record record;
	struct bytes key;
	int r;

	OK(as_of_walk(as_of, which, bytes_str(prefix), from));
	while ((r = as_of_next(as_of, &key, &entry)) == FOUND) {
		uint64_t k = strtoul((const char *)key.data + key.size - 2, NULL, 10);

		cr_assert_eq(entry.seq, model[k], "%.*s", BYTES_ARG(key));
		OK(snapshot_record(snapshot, w.id[0], key, &entry, &record));
		cr_assert(which == AS_OF_ALL || !entry.object);
		buf_printf(&keys, "%s%.*s", keys.size ? " " : "", BYTES_ARG(key));
	}
	cr_assert_eq(r, END, "%d %s", r, err_text(r));
	cr_assert_str_eq(buf_cstr(&keys), wanted);
}

Test(as_of, changed_deleted_and_later_objects_are_as_they_were)
{
	uint64_t before[KEYS];
	struct record record;

	memcpy(before, w.model[0], sizeof(before));
	put(0, 0);     /* changed */
	delete (0, 2); /* deleted */
	delete (0, 4); /* deleted and there again */
	put(0, 4);
	put(0, 1); /* later */
	put(0, 3); /* later, and no more */
	delete (0, 3);
	settle();
	for (int i = 0; i < 2; i++) { /* the second one takes over the changes */
		CLEANUP(as_of_free) struct as_of *as_of = as_of_at(0, first);

		check_walk(as_of, AS_OF_ALL, "ns-1/", BYTES_NONE, before,
			"ns-1/k-04 ns-1/k-10 ns-1/k-16 ns-1/k-22 ns-1/k-28 ns-1/k-34");
		check_walk(as_of, AS_OF_ALL, "ns-2/", BYTES_LIT("ns-2/k-21"), before,
			"ns-2/k-26 ns-2/k-32 ns-2/k-38");
		check_walk(as_of, AS_OF_CHANGED, "", BYTES_NONE, before,
			"ns-0/k-00 ns-1/k-04 ns-2/k-02");
		check_walk(
			as_of, AS_OF_CHANGED, "", BYTES_LIT("ns-1/k-04\0x"), before, "ns-2/k-02");
		for (unsigned k = 0; k < KEYS; k++) {
			int r = as_of_get(as_of, bytes_str(key_name(k)), &record);

			cr_assert_eq(r, before[k] ? FOUND : NOT_FOUND, "%d %s", r, err_text(r));
			cr_assert(!before[k] || record.seq == before[k]);
		}
	}
}

Test(as_of, a_seq_within_a_list_is_the_state_before_it)
{
	CLEANUP(as_of_free) struct as_of *as_of = NULL;

	list_begin(0);
	put(0, 0);
	settle();
	OK(as_of_new(w.id[0], last, &as_of));
	OK(as_of_renew(as_of, snapshot, SIZE_MAX));
	cr_assert_eq(as_of_seq(as_of), w.begin[0] - 1, "the list is open");
	as_of_rest(as_of);
	list_end(0);
	settle();
	OK(as_of_renew(as_of, snapshot, SIZE_MAX));
	cr_assert_eq(as_of_seq(as_of), w.begin[0] - 1);
	as_of_free(&as_of);
	as_of = as_of_at(0, last - 1);
	cr_assert_eq(as_of_seq(as_of), w.begin[0] - 1, "the list is applied");
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
	put(0, 0);
	put(0, 2);
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
