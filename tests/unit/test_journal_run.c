/* SPDX-License-Identifier: Apache-2.0 */
/* An older copy that is put in the journal's place is known by the runs that it lacks. */
#include <inttypes.h>
#include <stdio.h>

#include "common/cleanup.h"
#include "store/journal/journal_copy.h"
#include "tests/unit/journal_damage.h"
#include "tests/unit/journal_rig.h"

static struct home *home;
static struct journal *j;
static uint32_t feed;

static void begin(void)
{
	home = open_home();
	j = open_writer(home);
	cr_assert_eq(journal_begin_run(j), 0);
}

static void end(void)
{
	journal_close(&j);
	home_close(&home);
}

static void setup(void)
{
	begin();
	feed = add_feed(j);
}

TestSuite(journal_run, .init = setup, .fini = end, .timeout = 120);

static uint64_t run_end(uint64_t known, uint64_t *ret_newest)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	uint64_t at;

	cr_assert_eq(txn_begin_read(journal_env(j), &txn), 0);
	cr_assert_eq(journal_run(j, txn, known, ret_newest, &at), 0);
	return at;
}

static uint64_t newest_run(void)
{
	uint64_t newest;

	(void)run_end(0, &newest);
	return newest;
}

static uint64_t add_event(void)
{
	static unsigned n;
	char key[24];

	(void)snprintf(key, sizeof(key), "web/%u", n++);
	uint64_t seq = append(j, feed, RECORD_ADDED, key);
	cr_assert_eq(journal_commit(j), 0);
	return seq;
}

Test(journal_run, an_event_is_of_the_run_before_the_next_one)
{
	uint64_t first = newest_run(), newest, last = add_event();

	cr_assert_neq(first, 0);
	cr_expect_eq(run_end(first, &newest), UINT64_MAX);
	cr_expect_eq(run_end(0, &newest), 1, "what was before the first run");
	cr_expect_eq(run_end(first + 1, &newest), 0, "no run of this journal");
	end();
	begin();
	cr_expect_eq(run_end(first, &newest), last + 1);
	cr_expect_neq(newest, first);
	cr_expect_eq(run_end(newest, &newest), UINT64_MAX);
}

Test(journal_run, runs_are_kept_by_a_compacted_journal)
{
	struct journal_copy_options options = {.to = home, .from = j, .journal = small};
	struct journal_copy *copy;
	uint64_t run = newest_run(), newest;
	int r;

	(void)add_event();
	cr_assert_eq(journal_copy_new(&options, &copy), 0);
	while ((r = journal_copy_slice(copy, 1 << 20)) == AGAIN)
		continue;
	cr_assert_eq(r, 0, "%s", err_text(r));
	cr_assert_eq(journal_copy_end(copy, j), 0);
	journal_copy_free(&copy);
	cr_expect_eq(run_end(run, &newest), UINT64_MAX);
	end();
	begin();
	cr_expect_eq(run_end(run, &newest), 3);
}

Test(journal_run, the_oldest_of_many_runs_is_forgotten)
{
	uint64_t run = newest_run(), newest;

	for (unsigned i = 1; i < 64; i++)
		cr_assert_eq(journal_begin_run(j), 0);
	cr_expect_eq(run_end(run, &newest), 2);
	cr_assert_eq(journal_begin_run(j), 0);
	cr_expect_eq(run_end(run, &newest), 0);
	cr_expect_eq(run_end(0, &newest), 0);
}

Test(journal_run, no_byte_of_a_damaged_row_is_believed)
{
	struct bytes value;
	uint64_t newest, at;

	cr_assert_eq(journal_begin_run(j), 0);
	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(txn_get(journal_txn(j), DB_META, BYTES_LIT("runs"), &value), FOUND);
	uint8_t copy[128];
	cr_assert(value.size <= sizeof(copy));
	memcpy(copy, value.data, value.size);
	size_t size = value.size;
	for (size_t i = 0; i < size; i++) {
		copy[i] ^= 1;
		cr_assert_eq(
			txn_put(journal_txn(j), DB_META, BYTES_LIT("runs"), BYTES(copy, size), 0),
			0);
		cr_assert_eq(journal_run(j, journal_txn(j), 0, &newest, &at), 0);
		cr_expect_eq(newest, 0, "byte %zu", i);
		copy[i] ^= 1;
	}
	journal_abort(j);
	cr_expect_neq(newest_run(), 0);
}

/* ---- a model ------------------------------------------------------------ */

#define COPIES 4
#define KNOWN  16
#define STEPS  250

static uint64_t chance = 1;

static unsigned dice(unsigned n)
{
	chance = chance * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(chance >> 33) % n;
}

/* A follower knows an event, by the object that the event adds, and the run in which the
 * follower read it. */
struct known {
	uint64_t run, seq;
	char key[24];
};

static void key_at(uint64_t seq, char key[24])
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct record record;

	cr_assert_eq(txn_begin_read(journal_env(j), &txn), 0);
	int r = journal_get(j, txn, seq, &record);
	(void)snprintf(key, 24, "%.*s", r == FOUND ? (int)record.key.size : 0,
		r == FOUND ? (const char *)record.key.data : "");
}

static const char *copy_path(unsigned n)
{
	char name[16];

	(void)snprintf(name, sizeof(name), "copy-%u", n);
	return scratch_path(name);
}

/* Events, restarts, copies of the stopped store, and copies that are put in its place: an event
 * that a follower still believes is the one that it knows, and without a copy in between it
 * believes each. */
Test(journal_run, no_other_event_is_believed_after_any_copies)
{
	static struct known known[KNOWN];
	bool made[COPIES] = {false};
	unsigned believed = 0, refused = 0;

	for (unsigned step = 0; step < STEPS; step++) {
		unsigned n = dice(COPIES), slot = dice(KNOWN);
		uint64_t newest;

		switch (dice(6)) {
		case 0:
			end();
			if (made[n])
				scratch_remove(copy_path(n));
			scratch_copy(scratch_path("store"), copy_path(n));
			made[n] = true;
			begin();
			break;
		case 1:
			if (!made[n])
				break;
			end();
			scratch_remove(scratch_path("store"));
			scratch_copy(copy_path(n), scratch_path("store"));
			begin();
			break;
		default:
			known[slot].seq = add_event();
			known[slot].run = newest_run();
			key_at(known[slot].seq, known[slot].key);
		}
		for (unsigned i = 0; i < KNOWN; i++) {
			char key[24];

			if (!known[i].seq)
				continue;
			bool believes = known[i].seq < run_end(known[i].run, &newest);
			key_at(known[i].seq, key);
			bool is_same = strcmp(key, known[i].key) == 0;
			cr_assert(!believes || is_same,
				"step %u: event %" PRIu64 " adds '%s', it was '%s'", step,
				known[i].seq, key, known[i].key);
			cr_assert(believes || !is_same,
				"step %u: event %" PRIu64 " is not believed", step, known[i].seq);
			believed += believes;
			refused += !believes;
		}
	}
	cr_assert(believed > STEPS && refused > STEPS, "%u, %u", believed, refused);
}
