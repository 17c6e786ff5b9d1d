/* SPDX-License-Identifier: Apache-2.0 */
/* Forwarded requests, and how long later reads wait for them. */
#include "serve/catalog/floor.h"
#include "tests/unit/unit.h"

#define NOW UINT64_C(5000000000)

static struct floor given;

static void setup(void)
{
	floor_init(&given);
}

static void teardown(void)
{
	floor_release(&given);
}

TestSuite(serve_floor, .init = setup, .fini = teardown, .timeout = 10);

static void look(uint64_t now, bool live)
{
	floor_lock(&given, now, live);
	floor_unlock(&given);
}

Test(serve_floor, the_newest_version_counts_until_a_reader_has_seen_it)
{
	cr_assert(floor_is_clear(&given));
	floor_raise(&given, "7", true, NOW);
	floor_raise(&given, "5", true, NOW);
	floor_raise(&given, "9", false, NOW);
	floor_raise(&given, "opaque", true, NOW);
	floor_lock(&given, NOW, true);
	cr_expect(given.written == 7 && given.read == 9);
	given.read = 0;
	floor_unlock(&given);
	cr_expect(!floor_is_clear(&given));
	floor_raise(&given, "8", true, NOW);
	floor_lock(&given, NOW, true);
	cr_expect(given.written == 8 && given.read == 0);
	given.written = 0;
	floor_unlock(&given);
	cr_expect(floor_is_clear(&given));
}

Test(serve_floor, a_version_that_a_live_feed_does_not_come_to_counts_for_two_minutes)
{
	floor_raise(&given, "7", true, NOW);
	floor_raise(&given, "8", false, NOW + 1);
	look(NOW + FLOOR_RV_NS - 1, true);
	cr_expect(given.written == 7 && given.read == 8);
	look(NOW + FLOOR_RV_NS, true);
	cr_expect(given.written == 0 && given.read == 8);
	look(NOW + FLOOR_RV_NS + 1, true);
	cr_expect(given.read == 0 && floor_is_clear(&given));
}

Test(serve_floor, while_the_feed_is_not_live_a_version_counts_on)
{
	floor_raise(&given, "7", true, NOW);
	look(NOW + 10 * FLOOR_RV_NS, false);
	cr_expect(given.written == 7);
	look(NOW + 10 * FLOOR_RV_NS, true);
	cr_expect(given.written == 0);
}

Test(serve_floor, a_newer_version_begins_the_two_minutes_again_an_older_one_does_not)
{
	floor_raise(&given, "7", true, NOW);
	floor_raise(&given, "6", true, NOW + FLOOR_RV_NS / 2);
	look(NOW + FLOOR_RV_NS, true);
	cr_expect(given.written == 0);
	floor_raise(&given, "7", true, NOW);
	floor_raise(&given, "8", true, NOW + FLOOR_RV_NS / 2);
	look(NOW + FLOOR_RV_NS, true);
	cr_expect(given.written == 8);
}

Test(serve_floor, objects_are_waited_for_a_second_and_too_many_are_waited_for_together)
{
	const struct floor_change change = {.before = 1, .deleted = true};
	char name[16];

	for (int i = 0; i < FLOOR_KEYS_MAX; i++) {
		cr_assert(snprintf(name, sizeof(name), "a/%d", i) > 0);
		floor_touch(&given, name, &change, NOW);
	}
	look(NOW, true);
	cr_expect(given.n_keys == FLOOR_KEYS_MAX && !given.all_ns);
	floor_touch(&given, "a/more", &change, NOW + 1);
	look(NOW + FLOOR_KEY_NS, true);
	cr_expect(given.n_keys == 0 && given.all_ns);
	look(NOW + FLOOR_KEY_NS + 1, true);
	cr_expect(!given.all_ns && floor_is_clear(&given));
}

Test(serve_floor, a_refused_write_counts_for_a_second)
{
	floor_refuse(&given, NOW);
	look(NOW + FLOOR_KEY_NS - 1, true);
	cr_expect(given.refused_ns && !given.all_ns && !floor_is_clear(&given));
	look(NOW + FLOOR_KEY_NS, true);
	cr_expect(!given.refused_ns && floor_is_clear(&given));
}
