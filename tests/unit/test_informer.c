/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of one informer over a store changed by hand. */
#include "reader/informer/informer.h"

#include <poll.h>

#include "tests/unit/informer_rig.h"

TestSuite(informer, .init = cache_open, .fini = informer_close, .timeout = 60);

Test(informer, a_handler_gets_all_objects_then_sync_then_each_change)
{
	cache_put("a/x", NULL);
	cache_put("a/y", NULL);
	cache_take();
	start(&a);
	cr_assert_eq(kinf_handler_synced(a.handler), 0);
	then_gets(&a, "add! a/x=1 add! a/y=2 sync");
	cr_assert_eq(kinf_handler_synced(a.handler), 1);
	cache_put("a/x", NULL);
	cache_put("a/z", NULL);
	cache_delete("a/y");
	cache_put("a/x", NULL);
	cache_take();
	then_gets(&a, "upd a/x=1>3 add a/z=4 del a/y=2 upd a/x=3>5");
}

Test(informer, a_dispatch_runs_at_most_so_many_callbacks)
{
	cache_put("a/x", NULL);
	cache_put("a/y", NULL);
	cache_take();
	start(&a);
	cr_assert_eq(kinf_informer_dispatch(informer, 1), 1);
	tape_is(&a, "add! a/x=1");
	struct pollfd fd = {.fd = kinf_informer_fd(informer), .events = POLLIN};
	cr_assert_eq(poll(&fd, 1, 5000), 1, "there is more to do");
	cr_assert_eq(kinf_informer_dispatch(informer, 1), 1);
	cr_assert_eq(kinf_informer_dispatch(informer, 1), 1);
	tape_is(&a, "add! a/y=2 sync");
}

/* Changes between two dispatches of an initial state given one by one. */
Test(informer, changes_between_the_ranges_of_an_initial_state_fit)
{
	cache_put("a/b", NULL);
	cache_put("a/d", NULL);
	cache_put("a/f", NULL);
	cache_take();
	start(&a);
	cr_assert_eq(kinf_informer_dispatch(informer, 2), 2);
	cache_put("a/a", NULL);
	cache_put("a/b", NULL);
	cache_put("a/e", NULL);
	cache_put("a/f", NULL);
	cache_delete("a/d");
	cache_take();
	then_gets(&a,
		"add! a/b=1 add! a/d=2 add a/a=4 upd a/b=1>5 del a/d=2 add! a/e=6 add! a/f=7 sync");
}

Test(informer, a_change_that_crosses_the_filter_is_an_add_or_a_delete)
{
	cache_put("a/x", "n1");
	cache_put("a/y", "n2");
	cache_take();
	informer = tape_informer(NULL);
	tape_add(informer, &a, "spec.nodeName=n1");
	then_gets(&a, "add! a/x=1 sync");
	cache_put("a/y", "n1");
	cache_put("a/x", "n1");
	cache_put("a/x", "n2");
	cache_put("a/x", "n3");
	cache_delete("a/x");
	cache_delete("a/y");
	cache_take();
	then_gets(&a, "add a/y=3 upd a/x=1>4 del a/x=4 del a/y=3");
}

Test(informer, a_filter_may_ask_for_index_terms)
{
	const struct kinf_term on_n1 = {"node", "n1"}, no_index = {"colour", "red"};
	struct kinf_query filter = {.size = sizeof(filter), .terms = &on_n1, .n_terms = 1};
	struct kinf_handler_options options = tape_options(&a);

	cache_put("a/x", "n1");
	cache_put("a/y", "n2");
	cache_take();
	options.filter = &filter;
	informer = tape_informer(NULL);
	KINF_OK(kinf_informer_add_handler(informer, &options, &a.handler));
	then_gets(&a, "add! a/x=1 sync");
	filter.terms = &no_index;
	cr_assert_eq(kinf_informer_add_handler(informer, &options, &b.handler), KINF_NO_INDEX);
	cr_assert(strstr(kinf_error(cache.kinf), "colour"), "%s", kinf_error(cache.kinf));
}

/* An object is evaluated once, however many terms are asked for. */
Test(informer, a_filter_may_have_many_terms)
{
	enum { TERMS = 20000 };
	AUTO_FREE struct kinf_term *terms = calloc(TERMS, sizeof(*terms));
	struct kinf_query filter = {.size = sizeof(filter), .terms = terms, .n_terms = TERMS};
	struct kinf_handler_options options = tape_options(&a);

	for (size_t i = 0; i < TERMS; i++)
		terms[i] = (struct kinf_term){"node", "n1"};
	for (char key[] = "a/a"; key[2] < 'k'; key[2]++)
		cache_put(key, "n1");
	cache_put("a/y", "n2");
	cache_take();
	options.filter = &filter;
	informer = tape_informer(NULL);
	KINF_OK(kinf_informer_add_handler(informer, &options, &a.handler));
	then_gets(&a,
		"add! a/a=1 add! a/b=2 add! a/c=3 add! a/d=4 add! a/e=5 add! a/f=6 add! a/g=7 "
		"add! a/h=8 add! a/i=9 add! a/j=10 sync");
}

/* ---- laps --------------------------------------------------------------- */

/* X changes, Y goes, Z comes, and nobody can tell any more. */
static void change_and_trim(void)
{
	cache_put("a/x", NULL);
	cache_delete("a/y");
	cache_put("a/z", NULL);
	cache_trim();
}

static void three_objects(void)
{
	cache_put("a/w", NULL);
	cache_put("a/x", NULL);
	cache_put("a/y", NULL);
	cache_take();
}

Test(informer, a_lapped_handler_is_told_and_gets_everything_anew)
{
	three_objects();
	start(&a);
	then_gets(&a, "add! a/w=1 add! a/x=2 add! a/y=3 sync");
	change_and_trim();
	then_gets(&a, "lapped add! a/w=1 add! a/x=4 add! a/z=5 sync");
	cr_assert_eq(kinf_handler_synced(a.handler), 1);
}

static struct kinf_informer *tracking(void)
{
	struct kinf_informer_options options = {.size = sizeof(options), .flags = KINF_TRACK_KEYS};

	return tape_informer(&options);
}

Test(informer, with_tracked_keys_a_lapse_is_told_as_differences)
{
	three_objects();
	informer = tracking();
	tape_add(informer, &a, NULL);
	then_gets(&a, "add! a/w=1 add! a/x=2 add! a/y=3 sync");
	change_and_trim();
	then_gets(&a, "upd a/x=?>4 add a/z=5 del? a/y sync");
	cache_delete("a/z");
	cache_put("a/y", NULL);
	cache_take();
	then_gets(&a, "del a/z=5 add a/y=6");
}

Test(informer, with_tracked_keys_what_left_the_filter_during_a_lapse_is_deleted)
{
	cache_put("a/x", "n1");
	cache_put("a/y", "n1");
	cache_take();
	informer = tracking();
	tape_add(informer, &a, "spec.nodeName=n1");
	then_gets(&a, "add! a/x=1 add! a/y=2 sync");
	cache_put("a/x", "n2");
	cache_trim();
	then_gets(&a, "del? a/x sync");
}

Test(informer, a_lapse_in_the_middle_of_a_replay_is_told_too)
{
	three_objects();
	informer = tracking();
	tape_add(informer, &a, NULL);
	then_gets(&a, "add! a/w=1 add! a/x=2 add! a/y=3 sync");
	change_and_trim();
	cr_assert_eq(kinf_informer_dispatch(informer, 1), 1);
	tape_is(&a, "upd a/x=?>4");
	cache_put("a/w", NULL);
	cache_delete("a/x");
	cache_trim();
	tape_drain(informer);
	tape_is_any_order(&a, "upd a/w=?>6 add a/z=5 del? a/x del? a/y sync");
}

/* Gone when the replay came by, and there again before its end: known all the time. */
Test(informer, what_comes_back_during_a_replay_is_an_update)
{
	three_objects();
	informer = tracking();
	tape_add(informer, &a, NULL);
	then_gets(&a, "add! a/w=1 add! a/x=2 add! a/y=3 sync");
	cache_delete("a/w");
	cache_put("a/x", NULL);
	cache_trim();
	cr_assert_eq(kinf_informer_dispatch(informer, 1), 1);
	tape_is(&a, "upd a/x=?>4");
	cache_put("a/w", NULL);
	cache_take();
	then_gets(&a, "upd a/w=?>5 sync");
	cache_delete("a/w");
	cache_take();
	then_gets(&a, "del a/w=5");
}

/* The object comes back outside the filter, changes, and is deleted. */
Test(informer, what_comes_back_out_of_the_filter_during_a_replay_is_deleted_once)
{
	cache_put("a/w", "n1");
	cache_put("a/x", "n1");
	cache_take();
	informer = tracking();
	tape_add(informer, &a, "spec.nodeName=n1");
	then_gets(&a, "add! a/w=1 add! a/x=2 sync");
	cache_delete("a/w");
	cache_put("a/x", "n1");
	cache_trim();
	cr_assert_eq(kinf_informer_dispatch(informer, 1), 1);
	tape_is(&a, "upd a/x=?>3");
	cache_put("a/w", "n2");
	cache_delete("a/w");
	cache_take();
	then_gets(&a, "del? a/w sync");
}

Test(informer, a_feed_of_another_definition_is_a_lapse)
{
	three_objects();
	start(&a);
	then_gets(&a, "add! a/w=1 add! a/x=2 add! a/y=3 sync");
	cache_replace_feed();
	cache_put("a/n", NULL);
	cache_take();
	for (int i = 0; i < 200 && a.calls < 7; i++) { /* looks anew after 10 ms */
		struct pollfd fd = {.fd = kinf_informer_fd(informer), .events = POLLIN};
		(void)poll(&fd, 1, 100);
		tape_drain(informer);
	}
	tape_is(&a, "lapped add! a/n=4 sync");
}

/* ---- callbacks that change the informer --------------------------------- */

static void remove_itself(struct tape *tape)
{
	cr_assert_eq(kinf_informer_remove_handler(tape->informer, tape->handler), 0);
	cr_assert_eq(kinf_informer_remove_handler(tape->informer, tape->handler), KINF_NOT_FOUND);
}

Test(informer, a_handler_may_remove_itself)
{
	three_objects();
	start(&a);
	tape_add(informer, &b, NULL);
	a.then = remove_itself;
	then_gets(&a, "add! a/w=1");
	tape_is(&b, "add! a/w=1 add! a/x=2 add! a/y=3 sync");
}

static void add_the_other(struct tape *tape)
{
	if (!b.handler)
		tape_add(tape->informer, &b, "spec.nodeName=n");
}

Test(informer, a_handler_may_add_another)
{
	three_objects();
	start(&a);
	a.then = add_the_other;
	then_gets(&a, "add! a/w=1 add! a/x=2 add! a/y=3 sync");
	tape_is(&b, "add! a/w=1 add! a/x=2 add! a/y=3 sync");
}

static void free_it(struct tape *tape)
{
	kinf_informer_free(&tape->informer);
}

Test(informer, a_handler_may_free_the_informer)
{
	three_objects();
	start(&a);
	a.then = free_it;
	cr_assert_eq(kinf_informer_dispatch(informer, 0), 1);
	tape_is(&a, "add! a/w=1");
	start(&a);
	KINF_OK(kinf_informer_run(informer, -1));
	tape_is(&a, "add! a/w=1");
	informer = NULL;
}

static void misuse(struct tape *tape)
{
	cr_assert_eq(kinf_informer_dispatch(tape->informer, 0), -EBUSY);
	cr_assert_eq(kinf_informer_run(tape->informer, -1), -EBUSY);
	cr_assert_eq(kinf_informer_commit(tape->informer), -EBUSY);
}

Test(informer, a_handler_may_not_dispatch_or_commit)
{
	struct kinf_informer_options options = {.size = sizeof(options), .cursor = "c"};

	three_objects();
	informer = tape_informer(&options);
	tape_add(informer, &a, NULL);
	a.then = misuse;
	then_gets(&a, "add! a/w=1 add! a/x=2 add! a/y=3 sync");
}

/* ---- states ------------------------------------------------------------- */

static char states[256];

static void on_state(void *arg, const struct kinf_feed_info *status)
{
	(void)arg;
	(void)snprintf(states + strlen(states), sizeof(states) - strlen(states), "%s=%s ",
		status->name, status->state);
}

Test(informer, states_are_told_when_they_are_others)
{
	struct kinf_informer_options options = {.size = sizeof(options), .on_state = on_state};

	states[0] = '\0';
	informer = tape_informer(&options);
	tape_drain(informer);
	cr_assert_str_eq(states, "pods=offline ", "%s", states);
	informer->checked_ns = 0;
	tape_drain(informer);
	cr_assert_str_eq(states, "pods=offline ", "%s", states);
	rig_record(&cache.rig, cache.feed, RECORD_FEED_REMOVED, NULL, NULL);
	rig_settle(&cache.rig);
	informer->checked_ns = 0;
	(void)kinf_informer_dispatch(informer, 0);
	cr_assert_str_eq(states, "pods=offline pods=gone ", "%s", states);
}

Test(informer, a_feed_that_takes_another_ones_place_is_reported_after_it)
{
	struct kinf_informer_options options = {.size = sizeof(options), .on_state = on_state};

	states[0] = '\0';
	informer = tape_informer(&options);
	tape_drain(informer);
	cache_replace_feed();
	informer->checked_ns = 0;
	(void)kinf_informer_dispatch(informer, 0);
	cr_assert_str_eq(states, "pods=offline pods=gone pods=offline ", "%s", states);
}

Test(informer, a_feed_that_is_not_there_is_refused_and_one_that_goes_is_told)
{
	int r = kinf_informer_new(cache.kinf, "secrets", NULL, &informer);

	cr_assert_eq(r, KINF_NO_FEED);
	start(&a);
	tape_drain(informer);
	rig_record(&cache.rig, cache.feed, RECORD_FEED_REMOVED, NULL, NULL);
	rig_settle(&cache.rig);
	for (int i = 0; i < 100 && (r = kinf_informer_dispatch(informer, 0)) >= 0; i++) {
		struct pollfd fd = {.fd = kinf_informer_fd(informer), .events = POLLIN};
		(void)poll(&fd, 1, 100);
	}
	cr_assert_eq(r, KINF_NO_FEED, "%d", r);
	cr_assert_eq(kinf_informer_dispatch(informer, 0), KINF_NO_FEED);
	cache.feed = rig_add_feed(&cache.rig, "pods");
	(void)rig_append(&cache.rig, cache.feed, RECORD_LIST_BEGIN, NULL, NULL);
	(void)rig_append(&cache.rig, cache.feed, RECORD_LIST_END, NULL, NULL);
	cache_take();
	then_gets(&a, "sync lapped sync");
}

/* ---- options ------------------------------------------------------------ */

Test(informer, options_of_another_library_are_refused)
{
	struct kinf_informer_options options = {.size = 1};
	struct kinf_handler_options handler = {.size = 1};

	cr_assert_eq(kinf_informer_new(cache.kinf, "pods", &options, &informer), KINF_UNSUPPORTED);
	options = (struct kinf_informer_options){.size = sizeof(options), .flags = 1u << 31};
	cr_assert_eq(kinf_informer_new(cache.kinf, "pods", &options, &informer), KINF_UNSUPPORTED);
	options = (struct kinf_informer_options){.size = sizeof(options), .cursor = "c", .from = 1};
	cr_assert_eq(kinf_informer_new(cache.kinf, "pods", &options, &informer), -EINVAL);
	informer = tape_informer(NULL);
	cr_assert_eq(kinf_informer_add_handler(informer, &handler, NULL), KINF_UNSUPPORTED);
}
