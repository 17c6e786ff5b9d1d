/* SPDX-License-Identifier: Apache-2.0 */
/* The time of a batch's commit, and the followers its publication wakes. */
#include "reflector/record/recorder.h"

#include "common/proc.h"
#include "tests/unit/record_rig.h"

static struct {
	struct record_rig record;
	struct ring *ring;
	struct ring_reader *follower, *processor;
	unsigned items;
} rig;

static void set_up(void)
{
	record_rig_open(&rig.record);
	int runtime = home_runtime_fd(rig.record.home);
	cr_assert_eq(ring_create(runtime, DELTA_RING, 1u << 20, journal_uuid(rig.record.journal),
			     0600, &rig.ring),
		0);
	record_rig_add_feed(&rig.record, "", rig.ring, NULL);
	cr_assert_eq(ring_attach(runtime, DELTA_RING, &rig.follower), 0);
	cr_assert_eq(ring_attach(runtime, DELTA_RING, &rig.processor), 0);
	ring_wake_last(rig.processor);
}

static void tear_down(void)
{
	record_rig_close(&rig.record);
	ring_detach(&rig.follower);
	ring_detach(&rig.processor);
	ring_close(&rig.ring);
}

static const char *pod(void)
{
	static char text[200];

	rig.items++;
	(void)snprintf(text, sizeof(text),
		"{\"metadata\":{\"name\":\"p%u\",\"namespace\":\"d\",\"uid\":\"u%u\","
		"\"resourceVersion\":\"%u\"}}",
		rig.items, rig.items, rig.items);
	return text;
}

static void list_items(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(record_item(&rig.record.feed, bytes_str(pod()), false, false),
			RECORD_TAKEN);
}

static void end_list(void)
{
	cr_assert_eq(record_list_end(&rig.record.feed, BYTES_LIT("9000")), 0);
}

static void event(void)
{
	struct api_event event = {.type = WATCH_ADDED, .object = bytes_str(pod())};
	struct bytes rv;

	cr_assert_eq(record_event(&rig.record.feed, &event, false, &rv), RECORD_TAKEN);
}

/* Returns how many entries READER has got. */
static size_t drain(struct ring_reader *reader)
{
	struct ring_entry entry;
	size_t n = 0;

	while (ring_next(reader, &entry) == FOUND)
		n++;
	return n;
}

/* Returns how many of the two readers the flush has woken: they have read all there was, and
 * sleep. */
static int woken_by_flush(void)
{
	(void)drain(rig.follower);
	(void)drain(rig.processor);
	cr_assert_eq(recorder_flush(rig.record.recorder), 0);
	return (ring_wait(rig.follower, 1) == 0) + (ring_wait(rig.processor, 1) == 0);
}

TestSuite(recorder, .init = set_up, .fini = tear_down);

Test(recorder, a_list_wakes_its_readers_at_the_end)
{
	cr_assert_eq(record_list_begin(&rig.record.feed), 0);
	list_items(3);
	cr_assert_eq(woken_by_flush(), 0);
	cr_assert_eq(drain(rig.follower), 4, "who looks finds LIST_BEGIN and the objects");
	list_items(2);
	cr_assert_eq(woken_by_flush(), 0);
	end_list();
	cr_assert_eq(woken_by_flush(), 2);
	event();
	cr_assert_eq(woken_by_flush(), 2);
}

Test(recorder, a_change_in_a_batch_with_a_list_wakes_the_readers)
{
	struct record change = {.type = RECORD_ADDED,
		.key = BYTES_LIT("d/x"),
		.uid = BYTES_LIT("u"),
		.rv = BYTES_LIT("1"),
		.body = BYTES_LIT("\x80")};
	struct feed_definition other = {.name = "other",
		.version = "v1",
		.resource = "pods",
		.kind = "Pod",
		.list_kind = "PodList"};
	uint64_t seq;

	cr_assert_eq(recorder_begin(rig.record.recorder), 0);
	OK(recorder_changed(
		rig.record.recorder, journal_add_feed(rig.record.journal, &other, &change.feed)));
	cr_assert_eq(recorder_flush(rig.record.recorder), 0);
	cr_assert_eq(record_list_begin(&rig.record.feed), 0);
	list_items(2);
	cr_assert_eq(recorder_append(rig.record.recorder, &change, &seq), 0);
	list_items(2);
	cr_assert_eq(recorder_gathers_until(rig.record.recorder), 0);
	cr_assert_eq(woken_by_flush(), 2);
}

/* Else they would be lapped, and the index would have all to do at the end. */
Test(recorder, a_long_list_wakes_its_readers_now_and_then)
{
	int woken = 0;

	cr_assert_eq(record_list_begin(&rig.record.feed), 0);
	for (int i = 0; i < 30; i++) {
		list_items(300);
		woken += woken_by_flush();
	}
	cr_assert_eq(woken, 2 * 2);
}

Test(recorder, only_a_part_of_a_list_waits_for_more)
{
	cr_assert_eq(recorder_gathers_until(rig.record.recorder), 0, "it is empty");
	cr_assert_eq(record_list_begin(&rig.record.feed), 0);
	list_items(1);
	uint64_t until = recorder_gathers_until(rig.record.recorder);
	cr_assert_gt(until, 0);
	cr_assert_lt(until, proc_monotonic_ns() + UINT64_C(1000000000));
	list_items(300);
	cr_assert_eq(recorder_gathers_until(rig.record.recorder), until);
	list_items(300);
	cr_assert_eq(recorder_gathers_until(rig.record.recorder), 0, "it is large");
	cr_assert_eq(recorder_flush(rig.record.recorder), 0);
	list_items(1);
	cr_assert_gt(recorder_gathers_until(rig.record.recorder), 0);
	record_phase(&rig.record.feed, FEED_LISTING);
	cr_assert_eq(
		recorder_gathers_until(rig.record.recorder), 0, "a checkpoint is to be stored");
	cr_assert_eq(recorder_flush(rig.record.recorder), 0);
	end_list();
	cr_assert_eq(recorder_gathers_until(rig.record.recorder), 0, "the list is whole");
	cr_assert_eq(recorder_flush(rig.record.recorder), 0);
	event();
	cr_assert_eq(recorder_gathers_until(rig.record.recorder), 0, "a change");
	cr_assert_eq(recorder_flush(rig.record.recorder), 0);
}
