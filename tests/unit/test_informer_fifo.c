/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of client-go's the_real_fifo_test.go and controller_test.go, named after them
 * (tests/INFORMER_ROWS.md). Their queue is the log here, from the commit to the dispatch.
 */
#include "reader/informer/informer.h"

#include <pthread.h>

#include "tests/unit/informer_rig.h"

TestSuite(informer_fifo, .init = cache_open, .fini = informer_close, .timeout = 60);

static void begin(void)
{
	start(&a);
	tape_drain(informer);
	buf_reset(&a.text);
}

static void told(const char *text)
{
	cache_take();
	then_gets(&a, text);
}

/* As if its time had come: test_resync.c is about times. */
static void resync_now(void)
{
	a.handler->resync_owed = true;
}

Test(informer_fifo, TestRealFIFO_basic)
{
	begin();
	for (int i = 0; i < 3; i++) {
		cache_put("a/int", NULL);
		cache_put("b/float", NULL);
	}
	told("add a/int=1 add b/float=2 upd a/int=1>3 upd b/float=2>4 upd a/int=3>5 upd "
	     "b/float=4>6");
}

Test(informer_fifo, TestRealFIFO_replaceWithDeleteDeltaIn)
{
	cache_put("a/foo", NULL);
	cache_take();
	begin();
	cache_delete("a/foo");
	cache_relist("a/foo");
	told("del a/foo=1 add a/foo=2");
}

Test(informer_fifo, TestRealFIFOW_ReplaceMakesDeletionsForObjectsOnlyInQueue)
{
	begin();
	cache_put("a/foo", NULL);
	cache_put("a/bar", NULL);
	cache_put("a/foo", NULL);
	cache_delete("a/bar");
	cache_relist("");
	told("add a/foo=1 add a/bar=2 upd a/foo=1>3 del a/bar=2 del? a/foo=3");
	cache_relist("");
	told("");
}

Test(informer_fifo, TestRealFIFO_addUpdate)
{
	begin();
	cache_put("a/foo", NULL);
	cache_put("a/foo", NULL);
	cache_delete("a/foo");
	told("add a/foo=1 upd a/foo=1>2 del a/foo=2");
}

Test(informer_fifo, TestRealFIFO_ResyncNonExisting)
{
	cache_put("a/foo", NULL);
	cache_take();
	begin();
	cache_delete("a/foo");
	cache_take();
	resync_now();
	told("del a/foo=1");
}

Test(informer_fifo, TestRealFIFO_ReplaceMakesDeletions)
{
	cache_put("a/bar", NULL);
	cache_put("a/baz", NULL);
	cache_put("a/foo", NULL);
	cache_take();
	begin();
	/* The queue's content counts: the last state of each. */
	cache_delete("a/baz");
	cache_put("a/bar", NULL);
	cache_relist("a/foo");
	told("del a/baz=2 upd a/bar=1>4 upd a/foo=3>5 del? a/bar=4");
	cache_put("a/foo", NULL);
	cache_relist("a/new");
	told("upd a/foo=5>6 add a/new=7 del? a/foo=6");
	cache_relist("a/new");
	cache_relist("");
	told("upd a/new=7>8 del? a/new=8");
}

Test(informer_fifo, TestRealFIFO_UpdateResyncRace)
{
	cache_put("a/foo", NULL);
	cache_take();
	begin();
	cache_put("a/foo", NULL);
	cache_take();
	resync_now();
	told("upd a/foo=1>2 upd a/foo=2>2");
}

static void is_not_synced(struct tape *tape)
{
	if (!strstr(buf_cstr(&tape->text), "sync"))
		cr_assert_eq(kinf_handler_synced(tape->handler), 0, "%s", buf_cstr(&tape->text));
}

/* Deletions during the initial state. */
Test(informer_fifo, TestRealFIFO_HasSyncedCorrectOnDeletion)
{
	cache_put("a/bar", NULL);
	cache_put("a/foo", NULL);
	cache_take();
	informer = tape_informer(NULL);
	a.then = is_not_synced;
	tape_add(informer, &a, NULL);
	cr_assert_eq(kinf_informer_dispatch(informer, 1), 1);
	cache_delete("a/bar");
	cache_take();
	then_gets(&a, "add! a/bar=1 del a/bar=1 add! a/foo=2 sync");
	cr_assert_eq(kinf_handler_synced(a.handler), 1);
}

Test(informer_fifo, TestRealFIFO_detectLineJumpers)
{
	begin();
	cache_put("a/foo", NULL);
	cache_put("a/bar", NULL);
	cache_put("a/foo", NULL);
	cache_put("a/foo", NULL);
	cache_take();
	cr_assert_eq(kinf_informer_dispatch(informer, 1), 1);
	tape_is(&a, "add a/foo=1");
	cache_put("a/foo", NULL);
	told("add a/bar=2 upd a/foo=1>3 upd a/foo=3>4 upd a/foo=4>5");
}

Test(informer_fifo, TestRealFIFO_HasSynced)
{
	start(&a);
	cr_assert_eq(kinf_handler_synced(a.handler), 0, "nothing was dispatched");
	told("sync");
	cr_assert_eq(kinf_handler_synced(a.handler), 1, "an empty list");
	cache_put("a/x", NULL);
	cache_put("a/y", NULL);
	cache_take();
	tape_add(informer, &b, NULL);
	b.then = is_not_synced;
	then_gets(&b, "add! a/x=1 add! a/y=2 sync");
	cr_assert_eq(kinf_handler_synced(b.handler), 1);
}

static void *run(void *arg)
{
	cr_assert_eq(kinf_informer_run(arg, -1), 0);
	return NULL;
}

Test(informer_fifo, TestRealFIFO_PopShouldUnblockWhenClosed)
{
	struct kinf_informer *informers[3];
	pthread_t threads[3];

	for (int i = 0; i < 3; i++) {
		informers[i] = tape_informer(NULL);
		cr_assert_eq(pthread_create(&threads[i], NULL, run, informers[i]), 0);
	}
	for (int i = 0; i < 3; i++)
		kinf_informer_stop(informers[i]);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
		cr_assert_eq(kinf_informer_phase(informers[i]), KINF_INFORMER_STOPPED);
		kinf_informer_free(&informers[i]);
	}
}

Test(informer_fifo, TestRealFIFO_PopMultipleDeltaInBatch)
{
	cache_put("a/x", NULL);
	cache_put("a/y", NULL);
	cache_take();
	start(&a);
	cr_assert_eq(kinf_informer_dispatch(informer, 2), 2);
	tape_is(&a, "add! a/x=1 add! a/y=2");
	cache_put("a/z", NULL);
	cache_put("a/z", NULL);
	cache_put("a/x", NULL);
	cache_take();
	cr_assert_eq(kinf_informer_dispatch(informer, 2), 2);
	tape_is(&a, "upd a/x=1>5 add! a/z=4"); /* the change of a key passed, then the others */
	cr_assert_eq(kinf_informer_dispatch(informer, 2), 1);
	tape_is(&a, "sync");
}

Test(informer_fifo, TestRealFIFO_ReplaceAtomicPop)
{
	begin();
	cache_put("a/x", NULL);
	cache_relist("a/x a/y");
	cache_put("a/y", NULL);
	told("add a/x=1 upd a/x=1>2 add a/y=3 upd a/y=3>4");
}

Test(informer_fifo, TestRealFIFO_ResyncAtomic)
{
	cache_put("a/x", NULL);
	cache_put("a/y", NULL);
	cache_take();
	begin();
	resync_now();
	told("upd a/x=1>1 upd a/y=2>2");
	cache_put("a/x", NULL);
	resync_now();
	told("upd a/x=1>3 upd a/x=3>3 upd a/y=2>2");
}

/* ---- controller_test.go -------------------------------------------------- */

/* A handler gets all of a transaction, or nothing. It need not be in the index yet. */
Test(informer_fifo, TestProcessDeltasInBatch)
{
	start(&a);
	then_gets(&a, "sync");
	cache_put("a/x", NULL);
	cache_put("a/y", NULL);
	then_gets(&a, "");
	rig_commit(&cache.rig); /* the processor has not taken it */
	then_gets(&a, "add a/x=1 add a/y=2");
}

static void the_cache_is_final(struct tape *tape)
{
	CLEANUP(kinf_snapshot_close) struct kinf_snapshot *snapshot = NULL;
	CLEANUP(buf_release) struct buf keys = BUF_INIT;
	struct kinf_query query = {.size = sizeof(query), .feed = "pods"};
	struct kinf_object object;
	struct kinf_listing *list;

	(void)tape;
	KINF_OK(kinf_snapshot_open(cache.kinf, &snapshot));
	KINF_OK(kinf_list(snapshot, &query, &list));
	while (kinf_list_next(list, &object) == KINF_FOUND)
		buf_printf(&keys, "%.*s ", (int)object.key_size, object.key);
	kinf_list_close(&list);
	cr_assert_str_eq(buf_cstr(&keys), "a/n a/u ");
}

Test(informer_fifo, TestReplaceEvents)
{
	cache_put("a/d", NULL);
	cache_put("a/u", NULL);
	cache_take();
	start(&a);
	then_gets(&a, "add! a/d=1 add! a/u=2 sync");
	cache_relist("a/u a/n");
	cache_take();
	a.then = the_cache_is_final;
	then_gets(&a, "upd a/u=2>3 add a/n=4 del? a/d=1");
}
