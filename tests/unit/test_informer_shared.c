/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of client-go's shared_informer_test.go, named after them (tests/INFORMER_ROWS.md). */
#include "reader/informer/informer.h"

#include <dirent.h>
#include <malloc.h>
#include <pthread.h>

#include "tests/unit/informer_rig.h"

TestSuite(informer_shared, .init = cache_open, .fini = informer_close, .timeout = 120);

static void two_pods(void)
{
	cache_put("a/x", NULL);
	cache_put("a/y", NULL);
	cache_take();
}

/* Changes missed in an outage come as a full list; an unchanged object gives no record. */
Test(informer_shared, TestSharedInformerWatchDisruption)
{
	two_pods();
	start(&a);
	tape_add(informer, &b, NULL);
	then_gets(&a, "add! a/x=1 add! a/y=2 sync");
	tape_is(&b, "add! a/x=1 add! a/y=2 sync");
	(void)rig_append(&cache.rig, cache.feed, RECORD_LIST_BEGIN, NULL, NULL);
	cache_put("a/x", NULL);
	cache_put("a/z", NULL);
	(void)rig_append(&cache.rig, cache.feed, RECORD_LIST_END, NULL, NULL);
	cache_take();
	b.handler->resync_owed = true;
	then_gets(&a, "upd a/x=1>3 add a/z=4");
	tape_is(&b, "upd a/x=1>3 add a/z=4 upd a/x=3>3 upd a/y=2>2 upd a/z=4>4");
}

Test(informer_shared, TestSharedInformerRemoveHandler)
{
	two_pods();
	start(&a);
	tape_add(informer, &b, NULL);
	KINF_OK(kinf_informer_remove_handler(informer, b.handler));
	then_gets(&a, "add! a/x=1 add! a/y=2 sync");
	tape_is(&b, "");
	KINF_OK(kinf_informer_remove_handler(informer, a.handler));
	cr_assert_eq(kinf_informer_remove_handler(informer, a.handler), KINF_NOT_FOUND);
	cache_put("a/x", NULL);
	cache_take();
	cr_assert_eq(kinf_informer_dispatch(informer, 0), 0);
	tape_is(&a, "");
}

Test(informer_shared, TestSharedInformerRemoveForeignHandler)
{
	CLEANUP(kinf_informer_free) struct kinf_informer *other = tape_informer(NULL);

	two_pods();
	start(&a);
	tape_add(other, &b, NULL);
	cr_assert_eq(kinf_informer_remove_handler(informer, b.handler), KINF_NOT_FOUND);
	cr_assert_eq(kinf_informer_remove_handler(informer, NULL), KINF_NOT_FOUND);
	tape_drain(informer);
	tape_drain(other);
	tape_is(&a, "add! a/x=1 add! a/y=2 sync");
	tape_is(&b, "add! a/x=1 add! a/y=2 sync");
}

Test(informer_shared, TestSharedInformerMultipleRegistration)
{
	informer = tape_informer(NULL);
	struct kinf_handler *first = tape_add(informer, &a, NULL);
	struct kinf_handler *second = tape_add(informer, &a, NULL);
	cr_assert_neq(first, second);
	then_gets(&a, "sync sync");
	KINF_OK(kinf_informer_remove_handler(informer, first));
	two_pods();
	then_gets(&a, "add a/x=1 add a/y=2");
	KINF_OK(kinf_informer_remove_handler(informer, second));
}

/* ---- many threads, each with an informer -------------------------------- */

#define THREADS 4

struct abuse {
	struct kinf_informer *informer;
	unsigned seed, calls, added;
	int error;
};

static bool abuse_over;

static void count_call(void *arg, const struct kinf_object *object, int initial)
{
	(void)object;
	(void)initial;
	((struct abuse *)arg)->calls++;
}

static void *abuse(void *arg)
{
	struct abuse *t = arg;
	struct kinf_handler_options options = {
		.size = sizeof(options), .arg = t, .on_add = count_call};
	struct kinf_handler *handlers[4] = {0};

	while (!__atomic_load_n(&abuse_over, __ATOMIC_ACQUIRE) && t->error >= 0) {
		t->seed = t->seed * 1103515245u + 12345u;
		struct kinf_handler **h = &handlers[t->seed >> 16 & 3];

		if (*h) {
			t->error = kinf_informer_remove_handler(t->informer, *h);
			*h = NULL;
		} else {
			t->error = kinf_informer_add_handler(t->informer, &options, h);
			t->added++;
		}
		if (t->error == 0)
			t->error = kinf_informer_dispatch(t->informer, 20);
	}
	return NULL;
}

Test(informer_shared, TestSharedInformerHandlerAbuse)
{
	static struct abuse abuses[THREADS];
	pthread_t threads[THREADS];

	two_pods();
	for (unsigned i = 0; i < THREADS; i++) {
		abuses[i] = (struct abuse){.informer = tape_informer(NULL), .seed = i};
		cr_assert_eq(pthread_create(&threads[i], NULL, abuse, &abuses[i]), 0);
	}
	for (unsigned i = 0; i < 20; i++) {
		for (unsigned k = 0; k < 50; k++) { /* 1,000 in all */
			char key[16];

			(void)snprintf(key, sizeof(key), "a/%02u", (i * 50 + k) % 37);
			cache_put(key, NULL);
		}
		cache_take();
	}
	__atomic_store_n(&abuse_over, true, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < THREADS; i++) {
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
		cr_assert_geq(abuses[i].error, 0, "%d", abuses[i].error);
		cr_assert_gt(abuses[i].added, 0);
		kinf_informer_stop(abuses[i].informer);
		kinf_informer_free(&abuses[i].informer);
	}
}

/* ---- its life ----------------------------------------------------------- */

Test(informer_shared, TestStateSharedInformer)
{
	informer = tape_informer(NULL);
	cr_assert_eq(kinf_informer_phase(informer), KINF_INFORMER_NEW);
	tape_drain(informer);
	cr_assert_eq(kinf_informer_phase(informer), KINF_INFORMER_STARTED);
	kinf_informer_stop(informer);
	cr_assert_eq(kinf_informer_phase(informer), KINF_INFORMER_STOPPED);
	KINF_OK(kinf_informer_run(informer, -1));
	cr_assert_eq(kinf_informer_dispatch(informer, 0), 0);
}

Test(informer_shared, TestAddOnStoppedSharedInformer)
{
	struct kinf_handler_options options = tape_options(&a);
	struct kinf_handler *handler = NULL;

	informer = tape_informer(NULL);
	kinf_informer_stop(informer);
	cr_assert_eq(kinf_informer_add_handler(informer, &options, &handler), -ECANCELED);
	cr_assert_null(handler);
	cr_assert(strstr(kinf_error(cache.kinf), "because it has stopped already"), "%s",
		kinf_error(cache.kinf));
}

Test(informer_shared, TestRemoveOnStoppedSharedInformer)
{
	start(&a);
	tape_drain(informer);
	kinf_informer_stop(informer);
	KINF_OK(kinf_informer_remove_handler(informer, a.handler));
}

Test(informer_shared, TestAddWhileActive)
{
	two_pods();
	start(&a);
	tape_drain(informer);
	tape_add(informer, &b, NULL);
	cr_assert_eq(kinf_handler_synced(b.handler), 0);
	cr_assert_eq(kinf_informer_dispatch(informer, 1), 1);
	cr_assert_eq(kinf_handler_synced(b.handler), 0, "its replay is not handled");
	cache_put("a/z", NULL);
	cache_take();
	tape_drain(informer);
	cr_assert_eq(kinf_handler_synced(b.handler), 1);
	tape_is(&a, "add! a/x=1 add! a/y=2 sync add a/z=3");
	tape_is(&b, "add! a/x=1 add! a/y=2 add! a/z=3 sync");
	cr_assert_eq(kinf_handler_event(a.handler), kinf_handler_event(b.handler));
}

static unsigned entries_of(const char *path)
{
	DIR *directory = opendir(path);
	unsigned n = 0;

	cr_assert_not_null(directory);
	while (readdir(directory))
		n++;
	(void)closedir(directory);
	return n;
}

/* No threads and no descriptors are left: dispatched, with a late handler, and never dispatched. */
Test(informer_shared, TestShutdown)
{
	two_pods();
	informer = tape_informer(NULL); /* opened once for all of them */
	tape_add(informer, &a, NULL);
	tape_drain(informer);
	kinf_informer_free(&informer);
	unsigned threads = entries_of("/proc/self/task"), files = entries_of("/proc/self/fd");

	for (int life = 0; life < 3; life++) {
		start(&a);
		if (life > 0)
			tape_drain(informer);
		if (life > 1)
			tape_add(informer, &b, NULL);
		kinf_informer_stop(informer);
		kinf_informer_free(&informer);
		cr_assert_eq(entries_of("/proc/self/task"), threads);
		cr_assert_eq(entries_of("/proc/self/fd"), files);
	}
}

/* Between two dispatches no callback runs: there is nothing to wait for, and the handler's
 * memory may go. */
Test(informer_shared, TestRemoveEventHandler_SynchronousShutdown)
{
	struct tape *heap = calloc(1, sizeof(*heap));

	two_pods();
	informer = tape_informer(NULL);
	tape_add(informer, heap, NULL);
	cr_assert_eq(kinf_informer_dispatch(informer, 1), 1);
	KINF_OK(kinf_informer_remove_handler(informer, heap->handler));
	tape_release(heap);
	free(heap);
	tape_drain(informer);
}

Test(informer_shared, TestShutDownEventHandler_Lifecycles)
{
	two_pods();
	start(&a);
	KINF_OK(kinf_informer_remove_handler(informer, a.handler)); /* never started */
	tape_add(informer, &a, NULL);                               /* before the start */
	tape_drain(informer);
	tape_add(informer, &b, NULL); /* after it */
	tape_drain(informer);
	KINF_OK(kinf_informer_remove_handler(informer, a.handler));
	KINF_OK(kinf_informer_remove_handler(informer, b.handler));
	cr_assert_null(informer->first);
	tape_is(&a, "add! a/x=1 add! a/y=2 sync");
	tape_is(&b, "add! a/x=1 add! a/y=2 sync");
}

/* ---- synctrack ---------------------------------------------------------- */

/* Synced once the feed is synced and the initial state handled, in any order. */
Test(informer_shared, TestBasicLogic)
{
	cache_replace_feed();
	rig_record(&cache.rig, cache.feed, RECORD_FEED_REMOVED, NULL, NULL);
	cache.feed = rig_add_feed(&cache.rig, "pods"); /* not listed */
	cache_take();
	start(&a);
	tape_drain(informer);
	cr_assert_eq(kinf_handler_synced(a.handler), 0, "upstream is not");
	(void)rig_append(&cache.rig, cache.feed, RECORD_LIST_BEGIN, NULL, NULL);
	cache_put("a/x", NULL);
	cache_put("a/y", NULL);
	cache_take();
	then_gets(&a, "");
	(void)rig_append(&cache.rig, cache.feed, RECORD_LIST_END, NULL, NULL);
	cache_take();
	while (a.calls < 2) {
		cr_assert_eq(kinf_handler_synced(a.handler), 0, "%s", buf_cstr(&a.text));
		cr_assert_geq(kinf_informer_dispatch(informer, 1), 0);
	}
	then_gets(&a, "add! a/x=1 add! a/y=2 sync");
	cr_assert_eq(kinf_handler_synced(a.handler), 1);
}

/* ---- what a follower costs ---------------------------------------------- */

size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t allocated(void)
{
	return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes()
						       : mallinfo2().uordblks;
}

Test(informer_shared, a_handler_takes_less_than_2_mib_of_its_own)
{
	struct kinf_informer_options options = {.size = sizeof(options), .flags = KINF_TRACK_KEYS};

	for (unsigned i = 0; i < 5000; i++) {
		char key[32];

		(void)snprintf(key, sizeof(key), "namespace-%u/name-%05u", i % 7, i);
		cache_put(key, NULL);
	}
	cache_take();
	size_t before = allocated();
	informer = tape_informer(&options);
	struct kinf_handler_options silent = {.size = sizeof(silent)};
	KINF_OK(kinf_informer_add_handler(informer, &silent, &a.handler));
	tape_drain(informer);
	cr_assert_eq(kinf_handler_synced(a.handler), 1);
	size_t used = allocated() - before;
	cr_assert_lt(used, 2u << 20, "%zu", used);
}
