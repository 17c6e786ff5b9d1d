/* SPDX-License-Identifier: Apache-2.0 */
#include "common/timer_queue.h"
#include "tests/unit/unit.h"

#define N 300

struct thing {
	struct timer_queue_item item;
	uint64_t time_ns;
	bool touched, there;
};

static void add(struct timer_queue *queue, struct thing *thing)
{
	*thing = (struct thing){.item.owner = thing, .time_ns = UINT64_MAX, .there = true};
	cr_assert_eq(timer_queue_add(queue, &thing->item), 0);
}

static uint64_t earliest(const struct thing *things)
{
	uint64_t time_ns = UINT64_MAX;

	for (size_t i = 0; i < N; i++)
		if (things[i].there && things[i].time_ns < time_ns)
			time_ns = things[i].time_ns;
	return time_ns;
}

static void touch_due(struct timer_queue *queue, struct thing *things, uint64_t now_ns)
{
	timer_queue_touch_due(queue, now_ns);
	for (size_t i = 0; i < N; i++) {
		if (!things[i].there || things[i].time_ns > now_ns)
			continue;
		things[i].time_ns = UINT64_MAX;
		things[i].touched = true;
	}
}

/* Keeps every third touched item. */
static bool settle(void *arg, void *owner)
{
	struct thing *thing = owner, *things = arg;

	cr_assert(thing->touched && thing->there);
	thing->touched = (thing - things) % 3 == 0;
	return thing->touched;
}

static void check_list(const struct timer_queue *queue, const struct thing *things)
{
	size_t listed = 0, touched = 0;

	for (size_t i = 0; i < timer_queue_touched(queue); i++) {
		const struct thing *thing = timer_queue_owner(queue, i);

		listed += thing != NULL;
		cr_assert(!thing || thing->touched);
	}
	for (size_t i = 0; i < N; i++)
		touched += things[i].there && things[i].touched;
	cr_assert_eq(listed, touched);
}

Test(timer_queue, agrees_with_a_plain_search_over_all_items)
{
	static struct thing things[N];
	CLEANUP(timer_queue_release) struct timer_queue queue = {0};

	srand(7);
	for (size_t i = 0; i < N; i++)
		add(&queue, &things[i]);
	for (int round = 0; round < 20000; round++) {
		struct thing *thing = &things[rand() % N];

		switch (rand() % 8) {
		case 0:
			if (thing->there)
				timer_queue_remove(&queue, &thing->item);
			thing->there = false;
			break;
		case 1:
			if (!thing->there)
				add(&queue, thing);
			break;
		case 2:
			touch_due(&queue, things, (uint64_t)rand() % 1000);
			break;
		case 3:
			timer_queue_settle(&queue, settle, things);
			break;
		case 4:
			if (thing->there) {
				timer_queue_touch(&queue, &thing->item);
				thing->touched = true;
			}
			break;
		default:
			if (thing->there) {
				thing->time_ns =
					rand() % 10 ? 1 + (uint64_t)rand() % 100000 : UINT64_MAX;
				timer_queue_set_time(&queue, &thing->item, thing->time_ns);
			}
		}
		cr_assert_eq(timer_queue_next(&queue), earliest(things));
		check_list(&queue, things);
	}
}

Test(timer_queue, an_item_that_was_never_added_is_left_alone)
{
	CLEANUP(timer_queue_release) struct timer_queue queue = {0};
	struct timer_queue_item item = {0};

	timer_queue_touch(&queue, &item);
	timer_queue_remove(&queue, &item);
	cr_assert_eq(timer_queue_touched(&queue), 0);
	cr_assert_eq(timer_queue_next(&queue), UINT64_MAX);
}
