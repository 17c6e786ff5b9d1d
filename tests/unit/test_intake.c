/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/intake.h"

#include "tests/unit/rig.h"

static struct rig rig;
static struct intake *intake;
static uint32_t feed;
static uint64_t taken;

static void setup(void)
{
	rig_open(&rig, "feeds: []\n");
	feed = rig_add_feed(&rig, "pods");
	rig_record(&rig, feed, RECORD_LIST_BEGIN, NULL, NULL);
	rig_record(&rig, feed, RECORD_LIST_END, NULL, NULL);
	taken = 3;
	cr_assert_eq(intake_new(&rig.p, rig.journal, taken, &intake), 0);
}

static void teardown(void)
{
	intake_free(&intake);
	rig_close(&rig);
}

static void add(unsigned n)
{
	static unsigned next;
	char key[32];

	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(key, sizeof(key), "ns/%u", next++);
		rig_append(&rig, feed, RECORD_ADDED, key, "{}");
	}
	rig_commit(&rig);
}

/* Takes the available seqs: each seq once, in order. */
static void take(unsigned n)
{
	struct record record;

	if (n == 0) {
		cr_assert_eq(intake_begin(intake), AGAIN);
		return;
	}
	cr_assert_eq(intake_begin(intake), FOUND);
	for (unsigned i = 0; i < n; i++) {
		cr_assert_eq(intake_next(intake, &record), FOUND);
		cr_assert_eq(record.seq, ++taken);
	}
	cr_assert_eq(intake_next(intake, &record), END);
	intake_end(intake, taken);
}

TestSuite(intake, .init = setup, .fini = teardown, .timeout = 60);

Test(intake, reads_the_log_first_and_then_follows_the_ring)
{
	add(3);
	take(3);
	cr_assert(intake_is_live(intake));
	take(0);
	add(2);
	take(2);
	cr_assert(intake_is_live(intake));
	cr_assert_eq(stats_get(rig.p.stats, STAT_RING_LAPPED), 0);
}

Test(intake, records_published_while_the_log_was_read_are_not_taken_twice)
{
	struct record record;

	add(1);
	cr_assert_eq(intake_begin(intake), FOUND); /* notes the tail, takes a snapshot */
	add(2);
	cr_assert_eq(intake_next(intake, &record), FOUND);
	cr_assert_eq(intake_next(intake, &record), END);
	intake_end(intake, ++taken);
	take(2);
	take(0);
}

Test(intake, lapped_ring_sends_it_to_the_log)
{
	take(0);
	cr_assert(intake_is_live(intake));
	for (int i = 0; i < 40; i++)
		add(100); /* the rig's ring holds about 1000 */
	take(4000);
	cr_assert_eq(stats_get(rig.p.stats, STAT_RING_LAPPED), 1);
	add(1);
	take(1);
	cr_assert(intake_is_live(intake));
}

Test(intake, restarted_reflector_sends_it_to_the_log)
{
	take(0);
	/* Committed and killed before it published. */
	CLEANUP(ring_close) struct ring *killed = TAKE(rig.delta);
	add(2);
	cr_assert_eq(ring_create(home_runtime_fd(rig.p.home), DELTA_RING, 1u << 16,
			     journal_uuid(rig.journal), 0600, &rig.delta),
		0);
	take(2);
	add(1);
	take(1);
}

Test(intake, records_without_an_entry_are_taken_too)
{
	take(0);
	cr_assert(intake_is_live(intake));
	struct ring *ring = TAKE(rig.delta);
	add(3);
	rig.delta = ring;
	ring_publish(ring, taken + 3);
	take(3);
	cr_assert(intake_is_live(intake));
	take(0);
}

Test(intake, without_a_ring_the_log_is_enough)
{
	ring_close(&rig.delta);
	cr_assert_eq(unlinkat(home_runtime_fd(rig.p.home), DELTA_RING, 0), 0);
	add(2);
	take(2);
	cr_assert_not(intake_is_live(intake));
	take(0);
	add(1);
	take(1);
}

Test(intake, ring_of_another_journal_is_not_followed)
{
	static const uint8_t other[16] = "another";

	ring_close(&rig.delta);
	cr_assert_eq(ring_create(home_runtime_fd(rig.p.home), DELTA_RING, 1u << 16, other, 0600,
			     &rig.delta),
		0);
	add(2);
	take(2);
	cr_assert_not(intake_is_live(intake));
}

Test(intake, ring_that_tells_of_more_than_the_journal_has_does_not_spin)
{
	take(0);
	ring_put(rig.delta, &(struct ring_entry){.seq = 1000, .feed = feed, .type = 1});
	ring_publish(rig.delta, 1000);
	take(0);
	take(0);
	cr_assert_eq(intake_wait(intake, 1), AGAIN, "it sleeps");
	add(1);
	take(1);
}

Test(intake, a_batch_may_end_anywhere)
{
	struct record record;

	add(5);
	cr_assert_eq(intake_begin(intake), FOUND);
	cr_assert_eq(intake_next(intake, &record), FOUND);
	cr_assert_eq(intake_next(intake, &record), FOUND);
	taken += 2;
	intake_end(intake, taken);
	add(1);
	take(4);
}

Test(intake, failed_batch_is_read_again)
{
	struct record record;

	add(2);
	cr_assert_eq(intake_begin(intake), FOUND);
	cr_assert_eq(intake_next(intake, &record), FOUND);
	cr_assert_eq(intake_next(intake, &record), FOUND);
	intake_rest(intake);
	take(2);
}

Test(intake, log_trimmed_beyond_us_is_told)
{
	uint64_t trimmed;

	add(3);
	while (journal_trim(rig.journal, taken + 2, 100, &trimmed) == AGAIN)
		;
	cr_assert_eq(intake_begin(intake), LAPPED);
}
