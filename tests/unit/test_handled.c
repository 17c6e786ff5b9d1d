/* SPDX-License-Identifier: Apache-2.0 */
/* In a handler the cache holds the change, though events come from the journal before the index has
 * them. */
#include "reader/handled.h"

#include <pthread.h>
#include <time.h>

#include "reader/handle.h"
#include "reader/informer/informer.h"
#include "tests/unit/tape.h"

#define SOON_NS UINT64_C(20000000)

/* A callback's results of reading the cache. */
struct look {
	struct kinf_queue *queue; /* gets the keys; may be NULL */
	int renewed, found;
	uint64_t event, at;
	char text[200];
	unsigned calls;
};

static struct kinf_informer *informer;
static struct kinf_snapshot *snapshot;
static struct look look;

static void look_at_cache(const char *key)
{
	struct kinf_object object;

	look.calls++;
	look.event = kinf_handled_event();
	look.renewed = snapshot ? kinf_snapshot_renew(snapshot)
				: kinf_snapshot_open(cache.kinf, &snapshot);
	(void)snprintf(look.text, sizeof(look.text), "%s", kinf_error(cache.kinf));
	if (look.renewed != 0)
		return;
	look.at = kinf_snapshot_event(snapshot);
	look.found = kinf_get(snapshot, "pods", "a", key, &object);
	cr_assert_eq(kinf_snapshot_reset(snapshot), 0);
}

static void on_add(void *arg, const struct kinf_object *object, int initial)
{
	(void)arg;
	(void)initial;
	if (look.queue)
		cr_assert_eq(kinf_queue_add(look.queue, object->key, object->key_size), 0);
	else
		look_at_cache("x");
}

static void on_delete(void *arg, const struct kinf_object *object, int unknown)
{
	on_add(arg, object, unknown);
}

static void setup(void)
{
	const struct kinf_handler_options options = {
		.size = sizeof(options), .on_add = on_add, .on_delete = on_delete};

	cache_open();
	cache_take();
	look = (struct look){.queue = NULL};
	KINF_OK(kinf_informer_new(cache.kinf, "pods", NULL, &informer));
	KINF_OK(kinf_informer_add_handler(informer, &options, NULL));
	tape_drain(informer);
	KINF_OK(kinf_snapshot_open(cache.kinf, &snapshot));
}

static void teardown(void)
{
	kinf_queue_free(&look.queue);
	kinf_snapshot_close(&snapshot);
	kinf_informer_free(&informer);
	cache_close();
}

TestSuite(handled, .init = setup, .fini = teardown, .timeout = 60);

static void *settle_soon(void *arg)
{
	const struct timespec pause = {.tv_nsec = SOON_NS};

	(void)arg;
	(void)nanosleep(&pause, NULL);
	rig_settle(&cache.rig);
	return NULL;
}

/* Runs the informer, while the index takes the event a moment later. */
static void dispatch_before_the_index(void)
{
	pthread_t processor;

	rig_commit(&cache.rig);
	cr_assert_eq(pthread_create(&processor, NULL, settle_soon, NULL), 0);
	tape_drain(informer);
	cr_assert_eq(pthread_join(processor, NULL), 0);
}

Test(handled, a_handler_that_reads_the_cache_finds_its_change)
{
	uint64_t event = cache_put("a/x", NULL);

	dispatch_before_the_index();
	cr_assert_eq(look.calls, 1);
	cr_assert_eq(look.renewed, 0, "%s", look.text);
	cr_assert_geq(look.event, event);
	cr_assert_geq(look.at, event);
	cr_assert_eq(look.found, KINF_FOUND);
	cr_assert_eq(kinf_handled_event(), 0, "only in the callback");
}

Test(handled, a_deletion_is_an_event_too)
{
	cache_put("a/x", NULL);
	cache_take();
	tape_drain(informer);
	cache_delete("a/x");
	dispatch_before_the_index();
	cr_assert_eq(look.calls, 2);
	cr_assert_eq(look.renewed, 0, "%s", look.text);
	cr_assert_eq(look.found, KINF_NOT_FOUND);
}

Test(handled, a_handler_that_opens_a_snapshot_waits_as_well)
{
	kinf_snapshot_close(&snapshot);
	cache_put("a/x", NULL);
	dispatch_before_the_index();
	cr_assert_eq(look.renewed, 0, "%s", look.text);
	cr_assert_eq(look.found, KINF_FOUND);
}

Test(handled, an_index_that_does_not_come_is_reported_after_a_limit)
{
	cache.kinf->index_wait_ns = SOON_NS;
	cache_put("a/x", NULL);
	rig_commit(&cache.rig);
	tape_drain(informer);
	cr_assert_eq(look.calls, 1);
	cr_assert_eq(look.renewed, KINF_AGAIN);
	cr_assert(strstr(look.text, "the index has not taken event"), "%s", look.text);
	KINF_OK(kinf_snapshot_renew(snapshot)); /* nobody has to wait outside */
	rig_settle(&cache.rig);
}

/* The index has taken the change but not the end of its list: no reader sees it yet. */
Test(handled, a_change_of_a_list_waits_for_the_end_of_the_list)
{
	cache.kinf->index_wait_ns = SOON_NS;
	(void)rig_append(&cache.rig, cache.feed, RECORD_LIST_BEGIN, NULL, NULL);
	cache_put("a/x", NULL);
	rig_take(&cache.rig);
	(void)rig_append(&cache.rig, cache.feed, RECORD_LIST_END, NULL, NULL);
	rig_commit(&cache.rig);
	tape_drain(informer);
	cr_assert_eq(look.calls, 1);
	cr_assert_eq(look.renewed, KINF_AGAIN, "it reads %d", look.found);
	rig_settle(&cache.rig);
}

Test(handled, any_thread_waits_for_an_event_that_it_names)
{
	pthread_t processor;
	uint64_t event = cache_put("a/x", NULL);

	rig_commit(&cache.rig);
	cr_assert_eq(pthread_create(&processor, NULL, settle_soon, NULL), 0);
	cr_assert_eq(kinf_snapshot_renew_at(snapshot, event), 0, "%s", kinf_error(cache.kinf));
	cr_assert_geq(kinf_snapshot_event(snapshot), event);
	cr_assert_eq(pthread_join(processor, NULL), 0);
	KINF_OK(kinf_snapshot_renew_at(snapshot, 0));
}

Test(handled, an_event_that_the_journal_does_not_have_is_gone)
{
	cr_assert_eq(kinf_snapshot_renew_at(snapshot, UINT64_C(1) << 40), KINF_GONE);
	cr_assert(strstr(kinf_error(cache.kinf), "another journal"), "%s", kinf_error(cache.kinf));
	KINF_OK(kinf_snapshot_renew(snapshot));
}

/* ---- calls that do not read the cache for the caller -------------------- */

static void on_add_call_others(void *arg, const struct kinf_object *object, int initial)
{
	const struct kinf_query of_node = {
		.size = sizeof(of_node), .field_selector = "spec.nodeName=n"};
	const struct kinf_handler_options filtered = {.size = sizeof(filtered), .filter = &of_node};
	const char *feeds[] = {"pods"};
	CLEANUP(kinf_informer_free) struct kinf_informer *other = NULL;

	(void)arg;
	(void)object;
	(void)initial;
	look.calls++;
	KINF_OK(kinf_wait_synced(cache.kinf, feeds, 1, 0));
	cr_assert_eq(kinf_wait_rv(cache.kinf, "pods", "1000000", 0), KINF_TIMEOUT);
	KINF_OK(kinf_informer_add_handler(informer, &filtered, NULL));
	cr_assert_eq(kinf_informer_new(cache.kinf, "pots", NULL, &other), KINF_NO_FEED);
	KINF_OK(kinf_informer_new(cache.kinf, "pods", NULL, &other));
	cr_assert_eq(kinf_informer_dispatch(other, 0), 0);
}

/* The index does not take the event while the handler runs: a waiter would wait for an hour. */
Test(handled, only_a_snapshot_of_the_caller_waits)
{
	const struct kinf_handler_options options = {
		.size = sizeof(options), .on_add = on_add_call_others};

	cache.kinf->index_wait_ns = UINT64_C(3600000000000);
	kinf_informer_free(&informer);
	KINF_OK(kinf_informer_new(cache.kinf, "pods", NULL, &informer));
	KINF_OK(kinf_informer_add_handler(informer, &options, NULL));
	tape_drain(informer);
	cache_put("a/x", NULL);
	KINF_OK(journal_checkpoint(cache.rig.journal, cache.feed, FEED_SYNCED, BYTES_LIT("100")));
	rig_commit(&cache.rig);
	tape_drain(informer);
	cr_assert_eq(look.calls, 1);
	rig_settle(&cache.rig);
}

/* ---- work queues -------------------------------------------------------- */

static void *work(void *arg)
{
	const char *key;
	size_t size;

	(void)arg;
	cr_assert_eq(kinf_queue_get(look.queue, -1, &key, &size), KINF_FOUND);
	look_at_cache("x");
	cr_assert_eq(kinf_queue_done(look.queue, key, size), KINF_FOUND);
	cr_assert_eq(kinf_handled_event(), 0, "done");
	return NULL;
}

Test(handled, a_worker_that_was_given_the_key_waits_as_well)
{
	pthread_t processor, worker;

	KINF_OK(kinf_queue_new(NULL, &look.queue));
	uint64_t event = cache_put("a/x", NULL);
	rig_commit(&cache.rig);
	tape_drain(informer);
	cr_assert_eq(kinf_queue_len(look.queue), 1);
	cr_assert_eq(pthread_create(&worker, NULL, work, NULL), 0);
	cr_assert_eq(pthread_create(&processor, NULL, settle_soon, NULL), 0);
	cr_assert_eq(pthread_join(worker, NULL), 0);
	cr_assert_eq(pthread_join(processor, NULL), 0);
	cr_assert_geq(look.event, event);
	cr_assert_eq(look.renewed, 0, "%s", look.text);
	cr_assert_eq(look.found, KINF_FOUND);
}

Test(handled, a_key_that_waits_keeps_the_newest_event)
{
	struct handled handled = {.event = 7};
	const char *key;
	size_t size;

	KINF_OK(kinf_queue_new(NULL, &look.queue));
	(void)handled_set(&handled);
	KINF_OK(kinf_queue_add(look.queue, "k", 1));
	handled.event = 5;
	(void)handled_set(&handled);
	KINF_OK(kinf_queue_add_after(look.queue, "k", 1, 1));
	KINF_OK(kinf_queue_get(look.queue, -1, &key, &size));
	cr_assert_eq(kinf_handled_event(), 7);
	KINF_OK(kinf_queue_done(look.queue, key, size));
}

static void put_key(const char *key, uint64_t event)
{
	const struct handled handled = {.event = event}, before = handled_set(&handled);

	KINF_OK(kinf_queue_add(look.queue, key, 1));
	(void)handled_set(&before);
}

Test(handled, a_worker_with_several_keys_has_the_newest_event_until_the_last_is_done)
{
	const char *key;
	size_t size;

	KINF_OK(kinf_queue_new(NULL, &look.queue));
	put_key("a", 9);
	put_key("b", 4);
	KINF_OK(kinf_queue_get(look.queue, -1, &key, &size));
	KINF_OK(kinf_queue_get(look.queue, -1, &key, &size));
	cr_assert_eq(kinf_handled_event(), 9);
	KINF_OK(kinf_queue_done(look.queue, "b", 1));
	cr_assert_eq(kinf_handled_event(), 9);
	KINF_OK(kinf_queue_done(look.queue, "a", 1));
	cr_assert_eq(kinf_handled_event(), 0);
	put_key("c", 11);
	KINF_OK(kinf_queue_get(look.queue, -1, &key, &size));
	kinf_queue_free(&look.queue);
	cr_assert_eq(kinf_handled_event(), 0, "the queue is gone");
}

static void on_add_drain_queue(void *arg, const struct kinf_object *object, int initial)
{
	const char *key;
	size_t size;

	(void)arg;
	(void)initial;
	look.event = kinf_handled_event();
	KINF_OK(kinf_queue_add(look.queue, object->key, object->key_size));
	KINF_OK(kinf_queue_get(look.queue, -1, &key, &size));
	KINF_OK(kinf_queue_done(look.queue, key, size));
	cr_assert_eq(kinf_handled_event(), look.event, "the callback still runs");
	look.calls++;
}

Test(handled, a_handler_that_works_off_a_queue_still_finds_its_change)
{
	const struct kinf_handler_options options = {
		.size = sizeof(options), .on_add = on_add_drain_queue};

	KINF_OK(kinf_queue_new(NULL, &look.queue));
	kinf_informer_free(&informer);
	KINF_OK(kinf_informer_new(cache.kinf, "pods", NULL, &informer));
	KINF_OK(kinf_informer_add_handler(informer, &options, NULL));
	cache_put("a/x", NULL);
	cache_take();
	tape_drain(informer);
	cr_assert_eq(look.calls, 1);
	cr_assert_gt(look.event, 0);
	cr_assert_eq(kinf_handled_event(), 0);
}
