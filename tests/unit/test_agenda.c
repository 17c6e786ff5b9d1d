/* SPDX-License-Identifier: Apache-2.0 */
#include "common/agenda.h"

#include <criterion/criterion.h>

#include <stdlib.h>

#define N 300

struct thing {
	struct agenda_item item;
	uint64_t time_ns;
	bool touched, there;
};

static void add(struct agenda *agenda, struct thing *thing)
{
	*thing = (struct thing){.item.owner = thing, .time_ns = UINT64_MAX, .there = true};
	cr_assert_eq(agenda_add(agenda, &thing->item), 0);
}

static uint64_t earliest(const struct thing *things)
{
	uint64_t time_ns = UINT64_MAX;

	for (size_t i = 0; i < N; i++)
		if (things[i].there && things[i].time_ns < time_ns)
			time_ns = things[i].time_ns;
	return time_ns;
}

static void touch_due(struct agenda *agenda, struct thing *things, uint64_t now_ns)
{
	agenda_touch_due(agenda, now_ns);
	for (size_t i = 0; i < N; i++) {
		if (!things[i].there || things[i].time_ns > now_ns)
			continue;
		things[i].time_ns = UINT64_MAX;
		things[i].touched = true;
	}
}

/* Keeps every third item that was touched. */
static bool settle(void *arg, void *owner)
{
	struct thing *thing = owner, *things = arg;

	cr_assert(thing->touched && thing->there);
	thing->touched = (thing - things) % 3 == 0;
	return thing->touched;
}

static void check_list(const struct agenda *agenda, const struct thing *things)
{
	size_t listed = 0, touched = 0;

	for (size_t i = 0; i < agenda_touched(agenda); i++) {
		const struct thing *thing = agenda_owner(agenda, i);

		listed += thing != NULL;
		cr_assert(!thing || thing->touched);
	}
	for (size_t i = 0; i < N; i++)
		touched += things[i].there && things[i].touched;
	cr_assert_eq(listed, touched);
}

Test(agenda, agrees_with_a_plain_search_over_all_items)
{
	static struct thing things[N];
	struct agenda agenda = {0};

	srand(7);
	for (size_t i = 0; i < N; i++)
		add(&agenda, &things[i]);
	for (int round = 0; round < 20000; round++) {
		struct thing *thing = &things[rand() % N];

		switch (rand() % 8) {
		case 0:
			if (thing->there)
				agenda_remove(&agenda, &thing->item);
			thing->there = false;
			break;
		case 1:
			if (!thing->there)
				add(&agenda, thing);
			break;
		case 2:
			touch_due(&agenda, things, (uint64_t)rand() % 1000);
			break;
		case 3:
			agenda_settle(&agenda, settle, things);
			break;
		case 4:
			if (thing->there) {
				agenda_touch(&agenda, &thing->item);
				thing->touched = true;
			}
			break;
		default:
			if (thing->there) {
				thing->time_ns =
					rand() % 10 ? 1 + (uint64_t)rand() % 100000 : UINT64_MAX;
				agenda_set_time(&agenda, &thing->item, thing->time_ns);
			}
		}
		cr_assert_eq(agenda_next(&agenda), earliest(things));
		check_list(&agenda, things);
	}
	agenda_release(&agenda);
}

Test(agenda, an_item_that_was_never_added_is_left_alone)
{
	struct agenda agenda = {0};
	struct agenda_item item = {0};

	agenda_touch(&agenda, &item);
	agenda_remove(&agenda, &item);
	cr_assert_eq(agenda_touched(&agenda), 0);
	cr_assert_eq(agenda_next(&agenda), UINT64_MAX);
	agenda_release(&agenda);
}
