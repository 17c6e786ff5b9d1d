/* SPDX-License-Identifier: Apache-2.0 */
/* The winning resync period. When it is due: test_resync.c; its events: test_informer_fifo.c. */
#include "reader/informer/informer.h"

#include <poll.h>

#include "tests/unit/informer_rig.h"

#define S UINT64_C(1000000000)

TestSuite(informer_resync, .init = cache_open, .fini = informer_close, .timeout = 60);

/* As the reflector does it: a transaction without a record. */
static void say(uint64_t resync_ns)
{
	cr_assert_eq(journal_begin(cache.rig.journal), 0);
	cr_assert_eq(journal_change_feed(cache.rig.journal, cache.feed,
			     &(struct feed_change){.resync_ns = &resync_ns}),
		0);
	cr_assert_eq(journal_commit(cache.rig.journal), 0);
}

/* As if a second had passed: feeds are looked at. */
static void look(void)
{
	informer->checked_ns = 0;
	tape_drain(informer);
}

static void open_informer(uint64_t resync_ms, uint32_t flags)
{
	const struct kinf_informer_options options = {
		.size = sizeof(options), .flags = flags, .resync_ms = resync_ms};

	cache_put("a/x", NULL);
	cache_take();
	informer = tape_informer(&options);
	tape_add(informer, &a, NULL);
}

Test(informer_resync, the_feed_says_the_default)
{
	say(5 * S);
	open_informer(0, 0);
	cr_assert_eq(a.handler->resync.period_ns, 5 * S, "known before the first dispatch");
	then_gets(&a, "add! a/x=1 sync");
	a.handler->resync.next_ns = informer->resync.next_ns = 1;
	struct pollfd fd = {.fd = kinf_informer_fd(informer), .events = POLLIN};
	cr_assert_eq(poll(&fd, 1, 5000), 1);
	then_gets(&a, "upd a/x=1>1");
}

Test(informer_resync, a_running_informer_takes_a_change_over)
{
	open_informer(0, 0);
	tape_drain(informer);
	cr_assert_eq(resync_next(&informer->resync), UINT64_MAX);
	say(3 * S);
	look();
	cr_assert_eq(a.handler->resync.period_ns, 3 * S);
	cr_assert_neq(resync_next(&informer->resync), UINT64_MAX);
	tape_add(informer, &b, NULL);
	cr_assert_eq(b.handler->resync.period_ns, 3 * S, "who comes later too");
	uint64_t due = a.handler->resync.next_ns;
	look();
	cr_assert_eq(a.handler->resync.next_ns, due, "looking changes nothing");
	say(0);
	look();
	cr_assert_eq(a.handler->resync.period_ns, 0);
	tape_is(&a, "add! a/x=1 sync");
}

/* All programs of the machine are told it in the same second. */
Test(informer_resync, the_feeds_period_has_jitter)
{
	struct kinf_informer_options options = {
		.size = sizeof(options), .resync_jitter_percent = 30};

	open_informer(0, 0);
	cr_assert_eq(informer->resync.jitter_percent, 0, "there is no period");
	say(3 * S);
	look();
	cr_assert_eq(informer->resync.jitter_percent, 10);
	say(0);
	look();
	cr_assert_eq(informer->resync.jitter_percent, 0);
	kinf_informer_free(&informer);
	say(3 * S);
	informer = tape_informer(&options);
	cr_assert_eq(informer->resync.jitter_percent, 30, "the caller's counts");
	kinf_informer_free(&informer);
	options = (struct kinf_informer_options){.size = sizeof(options), .resync_ms = 5000};
	informer = tape_informer(&options);
	cr_assert_eq(informer->resync.jitter_percent, 0);
}

Test(informer_resync, a_handler_keeps_its_own_also_when_it_is_none)
{
	struct kinf_handler_options none = tape_options(&b);

	none.flags = KINF_OWN_RESYNC;
	say(5 * S);
	open_informer(0, 0);
	KINF_OK(kinf_informer_add_handler(informer, &none, &b.handler));
	tape_drain(informer);
	say(7 * S);
	look();
	cr_assert_eq(a.handler->resync.period_ns, 7 * S);
	cr_assert_eq(b.handler->resync.period_ns, 0);
}

Test(informer_resync, an_informer_keeps_its_own)
{
	say(5 * S);
	open_informer(60000, 0);
	tape_drain(informer);
	look();
	cr_assert_eq(a.handler->resync.period_ns, 60 * S);
}

Test(informer_resync, an_informer_keeps_its_own_also_when_it_is_none)
{
	say(5 * S);
	open_informer(0, KINF_OWN_DEFAULT_RESYNC);
	tape_drain(informer);
	look();
	cr_assert_eq(a.handler->resync.period_ns, 0);
	cr_assert_eq(resync_next(&informer->resync), UINT64_MAX);
}

/* An overflow would make it a period of its own, of some milliseconds. */
Test(informer_resync, more_milliseconds_than_there_can_be_are_very_long)
{
	open_informer(UINT64_MAX / 1000000 + 2, 0);
	tape_drain(informer);
	cr_assert_eq(a.handler->resync.period_ns, RESYNC_MAX_NS);
}

/* The new feed is of the same entry; its own period counts. */
Test(informer_resync, another_feed_of_the_name_says_its_own)
{
	say(5 * S);
	open_informer(0, 0);
	tape_drain(informer);
	cache_replace_feed();
	say(9 * S);
	look();
	look();
	cr_assert_eq(a.handler->resync.period_ns, 9 * S);
}

static int take_resync(void *arg, const struct kinf_feed_info *status)
{
	*(uint64_t *)arg = status->resync_ms;
	return 0;
}

Test(informer_resync, a_feeds_status_has_it)
{
	CLEANUP(kinf_snapshot_close) struct kinf_snapshot *snapshot = NULL;
	uint64_t ms = 0;

	say(5 * S + S / 2);
	KINF_OK(kinf_snapshot_open(cache.kinf, &snapshot));
	KINF_OK(kinf_feed_status(snapshot, "pods", take_resync, &ms));
	cr_assert_eq(ms, 5500);
}
