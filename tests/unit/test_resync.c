/* SPDX-License-Identifier: Apache-2.0 */
/* When resyncs are due, on a clock of its own; what a resync is: test_informer.c, test_follow.c. */
#include "reader/informer/resync.h"

#include <criterion/criterion.h>

#define S UINT64_C(1000000000)

TestSuite(resync, .timeout = 30);

/* The periods' begin; never 0, the value of "not started". */
static const uint64_t begin = 1000 * S;

/* How often each of N handlers was due up to UNTIL, looking every tenth of a second. */
static void count(struct resync *resync, struct resync_handler *handlers, unsigned n,
	uint64_t until, unsigned *due)
{
	for (uint64_t now = begin; now <= begin + until; now += S / 10) {
		if (!resync_is_time(resync, now))
			continue;
		for (unsigned i = 0; i < n; i++)
			due[i] += resync_due(&handlers[i], now);
	}
}

Test(resync, TestListenerResyncPeriods)
{
	struct resync resync = {.default_ns = S, .check_ns = S};
	struct resync_handler handlers[3];
	unsigned due[3] = {0};

	cr_assert_not(resync_add(&resync, &handlers[0], 0, begin));
	cr_assert_not(resync_add(&resync, &handlers[1], 2 * S, begin));
	cr_assert_not(resync_add(&resync, &handlers[2], 3 * S, begin));
	resync_start(&resync, begin);
	count(&resync, handlers, 3, 2 * S - S / 10, due);
	cr_assert_eq(due[0] + due[1] + due[2], 0);
	due[1] = 0;
	resync_start(&resync, begin);
	count(&resync, handlers, 3, 6 * S, due);
	cr_assert_eq(due[0], 0, "asked for none");
	cr_assert_eq(due[1], 3);
	cr_assert_eq(due[2], 2);
}

/* The start comes later than the handlers. */
Test(resync, TestListenerResyncPeriodsDelayed)
{
	struct resync resync = {.default_ns = S, .check_ns = S};
	struct resync_handler handlers[2];
	unsigned due[2] = {0};

	resync_add(&resync, &handlers[0], 2 * S, begin - S);
	resync_add(&resync, &handlers[1], 3 * S, begin - S);
	cr_assert_not(resync_is_time(&resync, begin + 100 * S), "not started");
	resync_start(&resync, begin);
	count(&resync, handlers, 2, 5 * S, due);
	cr_assert_eq(due[0], 3);
	cr_assert_eq(due[1], 2);
}

Test(resync, TestResyncCheckPeriod)
{
	struct resync resync = {.default_ns = 12 * 3600 * S, .check_ns = 12 * 3600 * S};
	struct resync_handler none, minute, ten;

	cr_assert_not(resync_add(&resync, &none, 0, begin));
	cr_assert_eq(none.period_ns, 0);
	cr_assert(resync_add(&resync, &minute, 60 * S, begin));
	resync_adjust(&resync, &none, begin);
	cr_assert_eq(resync.check_ns, 60 * S);
	cr_assert_eq(none.period_ns, 0, "0 stays 0");
	cr_assert_eq(minute.period_ns, 60 * S);
	cr_assert(resync_add(&resync, &ten, 10 * S, begin));
	resync_adjust(&resync, &minute, begin);
	cr_assert_eq(resync.check_ns, 10 * S);
	cr_assert_eq(minute.period_ns, 60 * S, "each keeps its own");
	cr_assert_eq(ten.period_ns, 10 * S);
}

Test(resync, a_period_below_a_second_is_one)
{
	struct resync resync = {.default_ns = S / 1000, .check_ns = S / 1000};
	struct resync_handler handler;

	resync_add(&resync, &handler, UINT64_MAX, begin);
	cr_assert_eq(handler.period_ns, S);
}

Test(resync, a_late_handler_takes_the_check_as_it_is)
{
	struct resync resync = {.default_ns = 10 * S, .check_ns = 10 * S};
	struct resync_handler early, late;
	unsigned due[1] = {0};

	resync_add(&resync, &early, UINT64_MAX, begin);
	resync_start(&resync, begin);
	cr_assert_not(resync_add(&resync, &late, 2 * S, begin));
	cr_assert_eq(resync.check_ns, 10 * S);
	cr_assert_eq(late.period_ns, 10 * S, "raised");
	resync_add(&resync, &late, 15 * S, begin);
	count(&resync, &late, 1, 40 * S, due);
	cr_assert_eq(due[0], 2, "rounded up to looks: at 20 and 40");
}

/* client-go lets nobody resync then; here the handler's request counts. */
Test(resync, an_informer_without_a_period_takes_that_of_the_first_who_asks)
{
	struct resync resync = {.default_ns = 0};
	struct resync_handler silent, asks;
	unsigned due[2] = {0};

	resync_add(&resync, &silent, UINT64_MAX, begin);
	cr_assert_eq(resync_next(&resync), UINT64_MAX);
	resync_start(&resync, begin);
	cr_assert_eq(resync_next(&resync), UINT64_MAX, "nobody");
	resync_add(&resync, &asks, 2 * S, begin);
	cr_assert_eq(resync_next(&resync), begin + 2 * S);
	struct resync_handler both[] = {silent, asks};
	count(&resync, both, 2, 6 * S, due);
	cr_assert_eq(due[0], 0);
	cr_assert_eq(due[1], 3);
}

/* ---- the default changes ------------------------------------------------ */

/* As the informer does it for its handlers. */
static void change(struct resync *resync, struct resync_handler *handlers, unsigned n,
	uint64_t default_ns, uint64_t now)
{
	cr_assert(resync_set_default(resync, default_ns));
	for (unsigned i = 0; i < n; i++)
		resync_ask_again(resync, &handlers[i]);
	for (unsigned i = 0; i < n; i++)
		resync_adjust(resync, &handlers[i], now);
	resync_check_sooner(resync, now);
}

Test(resync, a_new_default_is_for_those_who_asked_for_none_of_their_own)
{
	struct resync resync = {0};
	struct resync_handler handlers[3];
	unsigned due[3] = {0};

	resync_add(&resync, &handlers[0], RESYNC_DEFAULT, begin);
	resync_add(&resync, &handlers[1], 0, begin);
	resync_add(&resync, &handlers[2], 3 * S, begin);
	resync_start(&resync, begin);
	cr_assert_not(resync_set_default(&resync, 0), "as it is");
	change(&resync, handlers, 3, 2 * S, begin);
	cr_assert_eq(resync.check_ns, 2 * S, "three are looked at at four");
	count(&resync, handlers, 3, 12 * S, due);
	cr_assert_eq(due[0], 6);
	cr_assert_eq(due[1], 0);
	cr_assert_eq(due[2], 3);
	change(&resync, handlers, 3, 0, begin + 12 * S);
	cr_assert_eq(handlers[0].period_ns, 0);
	cr_assert_eq(handlers[2].period_ns, 3 * S);
	cr_assert_eq(resync.check_ns, 3 * S);
}

Test(resync, a_shorter_default_counts_from_the_change_on_and_a_longer_one_too)
{
	struct resync resync = {.default_ns = 3600 * S, .check_ns = 3600 * S};
	struct resync_handler handler;
	unsigned due[1] = {0};

	resync_add(&resync, &handler, RESYNC_DEFAULT, begin - S);
	resync_start(&resync, begin - S);
	change(&resync, &handler, 1, 2 * S, begin);
	count(&resync, &handler, 1, 5 * S, due);
	cr_assert_eq(due[0], 2);
	change(&resync, &handler, 1, 3600 * S, begin + 5 * S);
	cr_assert_eq(handler.next_ns, begin + 3605 * S);
	change(&resync, &handler, 1, 0, begin + 6 * S);
	cr_assert_eq(resync_next(&resync), UINT64_MAX, "nobody is looked at any more");
}

/* Its period was raised to the check at the time; now the check is a shorter one. */
Test(resync, a_late_handler_gets_what_it_asked_for_when_the_default_changes)
{
	struct resync resync = {.default_ns = 10 * S, .check_ns = 10 * S};
	struct resync_handler handlers[2];

	resync_add(&resync, &handlers[0], RESYNC_DEFAULT, begin);
	resync_start(&resync, begin);
	resync_add(&resync, &handlers[1], 2 * S, begin);
	cr_assert_eq(handlers[1].period_ns, 10 * S);
	change(&resync, handlers, 2, 60 * S, begin);
	cr_assert_eq(handlers[0].period_ns, 60 * S);
	cr_assert_eq(handlers[1].period_ns, 2 * S);
	cr_assert_eq(resync_next(&resync), begin + 2 * S);
}

Test(resync, no_number_makes_it_look_all_the_time)
{
	struct resync resync = {.jitter_percent = 100};
	struct resync_handler handlers[2];

	resync_add(&resync, &handlers[0], RESYNC_DEFAULT, begin);
	resync_start(&resync, begin);
	change(&resync, handlers, 1, UINT64_MAX, begin);
	cr_assert_gt(resync_next(&resync), begin + RESYNC_MAX_NS - S);
	cr_assert_gt(handlers[0].next_ns, begin + RESYNC_MAX_NS - S);
	resync_add(&resync, &handlers[1], UINT64_MAX - 1, begin);
	cr_assert_gt(handlers[1].next_ns, begin + RESYNC_MAX_NS - S);
	change(&resync, handlers, 2, 1, begin);
	cr_assert_eq(handlers[0].period_ns, S);
}

Test(resync, jitter_delays_by_at_most_its_share)
{
	struct resync resync = {.default_ns = 10 * S, .check_ns = 10 * S, .jitter_percent = 20};
	uint64_t least = UINT64_MAX, most = 0, now = begin;

	resync_start(&resync, now);
	for (int i = 0; i < 1000; i++) {
		uint64_t in = resync_next(&resync) - now;

		least = in < least ? in : least;
		most = in > most ? in : most;
		now = resync_next(&resync);
		cr_assert(resync_is_time(&resync, now));
	}
	cr_assert_geq(least, 10 * S);
	cr_assert_lt(least, 10 * S + S / 4);
	cr_assert_leq(most, 12 * S);
	cr_assert_gt(most, 11 * S);
}
