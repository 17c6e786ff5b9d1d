/* SPDX-License-Identifier: Apache-2.0 */
/* Where handlers begin: at a cursor (survives the process), at an event number. */
#include "reader/kinf.h"

#include "reader/handle.h"
#include "reader/informer/informer.h"
#include "tests/unit/informer_rig.h"

TestSuite(informer_cursor, .init = cache_open, .fini = informer_close, .timeout = 60);

static struct kinf_informer *with_cursor(uint32_t flags)
{
	struct kinf_informer_options options = {
		.size = sizeof(options), .flags = flags, .cursor = "c"};

	return tape_informer(&options);
}

static void again(uint32_t flags)
{
	kinf_informer_free(&informer);
	informer = with_cursor(flags);
	tape_add(informer, &a, NULL);
	tape_drain(informer);
}

Test(informer_cursor, a_cursor_goes_on_where_the_last_dispatch_ended)
{
	cache_put("a/x", NULL);
	cache_take();
	again(0);
	tape_is(&a, "add! a/x=1 sync");
	cache_put("a/x", NULL);
	cache_take();
	again(0);
	tape_is(&a, "sync upd a/x=1>2");
	cr_assert_eq(kinf_handler_synced(a.handler), 1);
	again(0);
	tape_is(&a, "sync");
}

static void free_it(struct tape *tape)
{
	kinf_informer_free(&tape->informer);
}

Test(informer_cursor, no_event_comes_after_a_sync_that_frees_the_informer_and_none_is_lost)
{
	cache_put("a/x", NULL);
	cache_take();
	again(0);
	tape_is(&a, "add! a/x=1 sync");
	kinf_informer_free(&informer);
	cache_put("a/x", NULL);
	cache_take();
	informer = with_cursor(0);
	tape_add(informer, &b, NULL);
	b.then = free_it;
	cr_assert_eq(kinf_informer_dispatch(informer, 0), 1);
	tape_is(&b, "sync");
	informer = NULL;
	again(0);
	tape_is(&a, "sync upd a/x=1>2");
}

Test(informer_cursor, the_sync_of_one_that_goes_on_is_counted)
{
	cache_put("a/x", NULL);
	cache_take();
	again(0);
	cache_put("a/x", NULL);
	cache_take();
	kinf_informer_free(&informer);
	tape_release(&a);
	informer = with_cursor(0);
	tape_add(informer, &a, NULL);
	cr_assert_eq(kinf_informer_dispatch(informer, 1), 2);
	tape_is(&a, "sync upd a/x=1>2");
	cr_assert_eq(kinf_informer_dispatch(informer, 1), 0);
}

Test(informer_cursor, what_was_not_committed_comes_again)
{
	cache_put("a/x", NULL);
	cache_take();
	again(KINF_COMMIT_BY_HAND);
	tape_is(&a, "add! a/x=1 sync");
	again(KINF_COMMIT_BY_HAND);
	tape_is(&a, "add! a/x=1 sync");
	KINF_OK(kinf_informer_commit(informer));
	cache_put("a/x", NULL);
	cache_take();
	again(KINF_COMMIT_BY_HAND);
	tape_is(&a, "sync upd a/x=1>2");
	again(KINF_COMMIT_BY_HAND);
	tape_is(&a, "sync upd a/x=1>2");
}

/* Otherwise the cursor of an idle follower would expire. */
Test(informer_cursor, one_that_does_not_move_is_written_now_and_then)
{
	struct home *home = store_home(cache.kinf->store);
	struct cursor_file file;

	cache_put("a/x", NULL);
	cache_take();
	again(0);
	cr_assert_eq(cursor_remove(home, "c"), FOUND);
	KINF_OK(kinf_informer_commit(informer));
	cr_assert_eq(cursor_load(home, "c", false, &file), NOT_FOUND, "it says nothing new");
	informer->written_ns -= 61 * UINT64_C(1000000000);
	KINF_OK(kinf_informer_commit(informer));
	cr_assert_eq(cursor_load(home, "c", false, &file), FOUND);
	cursor_release(&file);
}

Test(informer_cursor, there_is_nothing_to_commit_before_sync)
{
	cache_put("a/x", NULL);
	cache_take();
	informer = with_cursor(0);
	cr_assert_eq(kinf_informer_commit(informer), KINF_AGAIN, "no handler");
	cr_assert_str_eq(kinf_error(cache.kinf), "there is no position to commit yet: the informer "
						 "has no handler, or one that is not synced yet");
	tape_add(informer, &a, NULL);
	cr_assert_eq(kinf_informer_dispatch(informer, 1), 1);
	cr_assert_eq(kinf_informer_commit(informer), KINF_AGAIN);
	again(0);
	tape_is(&a, "add! a/x=1 add! a/x=1 sync");
}

Test(informer_cursor, a_cursor_stands_where_the_slowest_handler_is)
{
	cache_put("a/x", NULL);
	cache_take();
	informer = with_cursor(0);
	tape_add(informer, &a, NULL);
	tape_drain(informer);
	/* A late one, not synced yet: the cursor stays where it is. */
	tape_add(informer, &b, NULL);
	cache_put("a/x", NULL);
	cache_take();
	cr_assert_eq(kinf_informer_dispatch(informer, 1), 1);
	cr_assert_eq(kinf_informer_commit(informer), KINF_AGAIN);
	tape_drain(informer);
	KINF_OK(kinf_informer_commit(informer));
}

Test(informer_cursor, a_cursor_behind_what_is_kept_is_lapped)
{
	cache_put("a/x", NULL);
	cache_take();
	again(0);
	tape_is(&a, "add! a/x=1 sync");
	kinf_informer_free(&informer);
	cache_put("a/x", NULL);
	cache_put("a/x", NULL);
	cache_trim();
	again(0);
	tape_is(&a, "lapped add! a/x=3 sync");
}

/* The keys are filled beside the changes; from then on a lapse is told as differences. */
Test(informer_cursor, a_cursor_with_tracked_keys_knows_what_an_earlier_process_was_told)
{
	cache_put("a/x", NULL);
	cache_put("a/y", NULL);
	cache_take();
	informer = with_cursor(KINF_TRACK_KEYS);
	tape_add(informer, &a, NULL);
	then_gets(&a, "add! a/x=1 add! a/y=2 sync");
	kinf_informer_free(&informer);
	informer = with_cursor(KINF_TRACK_KEYS);
	tape_add(informer, &a, NULL);
	then_gets(&a, "sync");
	cache_delete("a/x");
	cache_put("a/y", NULL);
	cache_trim();
	then_gets(&a, "upd a/y=?>3 del? a/x sync");
}

Test(informer_cursor, a_bad_cursor_name_is_refused_at_once)
{
	struct kinf_informer_options options = {.size = sizeof(options), .cursor = "../x"};

	cr_assert_eq(kinf_informer_new(cache.kinf, "pods", &options, &informer), -EINVAL);
	cr_assert(strstr(kinf_error(cache.kinf), "cursor name"), "%s", kinf_error(cache.kinf));
}

Test(informer_cursor, it_goes_on_after_an_event_number)
{
	struct kinf_informer_options options = {.size = sizeof(options)};

	cache_put("a/x", NULL);
	options.from = cache_put("a/y", NULL);
	cache_put("a/y", NULL);
	cache_delete("a/x");
	cache_take();
	informer = tape_informer(&options);
	tape_add(informer, &a, NULL);
	then_gets(&a, "sync upd a/y=2>3 del a/x=1");
	kinf_informer_free(&informer);
	options.from = 1000000; /* of another life of the store */
	informer = tape_informer(&options);
	tape_add(informer, &a, NULL);
	then_gets(&a, "lapped add! a/y=3 sync");
}

/* The follower's state is of the earlier feed; its deletions would be missed. */
Test(informer_cursor, an_event_number_from_before_the_feed_is_a_lapse)
{
	struct kinf_informer_options options = {.size = sizeof(options)};

	options.from = cache_put("a/x", NULL);
	cache_take();
	cache_replace_feed();
	cache_put("a/y", NULL);
	cache_take();
	informer = tape_informer(&options);
	tape_add(informer, &a, NULL);
	then_gets(&a, "lapped add! a/y=2 sync");
}
