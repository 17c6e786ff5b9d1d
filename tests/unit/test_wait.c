/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for the cache: conditions and wake-ups. */
#include <pthread.h>
#include <time.h>

#include "reader/kinf.h"
#include "tests/unit/small_store.h"
#include "tests/unit/unit.h"

#define LONG_MS 20000 /* never reached: the tests end before, or fail */

static struct small_store store;
static struct kinf *kinf;

static void set_up(void)
{
	small_store_open(&store);
	OK(kinf_open(store.path, &kinf));
}

static void tear_down(void)
{
	kinf_close(&kinf);
	small_store_close(&store);
}

/* Records a bookmark as the reflector does: no record. */
static void bookmark(const char *rv)
{
	OK(journal_begin(store.journal));
	OK(journal_checkpoint(store.journal, store.feed, FEED_SYNCED, bytes_str(rv)));
	OK(journal_commit(store.journal));
}

static int wait_ms(const char *rv, int ms)
{
	return kinf_wait_rv(kinf, "pods", rv, ms);
}

TestSuite(wait, .init = set_up, .fini = tear_down);

Test(wait, version_that_is_there_is_not_waited_for)
{
	bookmark("100");
	OK(wait_ms("100", 0));
	OK(wait_ms("99", 0));
	OK(wait_ms("1", LONG_MS));
}

Test(wait, later_version_is_waited_for_up_to_the_timeout)
{
	bookmark("100");
	cr_assert_eq(wait_ms("101", 0), KINF_TIMEOUT);
	cr_assert_eq(wait_ms("101", 30), KINF_TIMEOUT);
	cr_assert_str_eq(
		kinf_error(kinf), "feed 'pods' did not reach resourceVersion '101' within 30 ms");
	cr_assert_eq(wait_ms("1000000000000000000000", 0), KINF_TIMEOUT);
}

Test(wait, what_the_journal_has_must_be_in_the_index_too)
{
	CLEANUP(kinf_snapshot_close) struct kinf_snapshot *snapshot = NULL;
	struct kinf_object pod;

	(void)small_store_put(&store, "web/a", "n1", 10);
	bookmark("100");
	cr_assert_eq(wait_ms("100", 30), KINF_TIMEOUT, "read before it was taken");
	small_store_take(&store);
	OK(wait_ms("100", LONG_MS));
	OK(kinf_snapshot_open(kinf, &snapshot));
	cr_assert_eq(kinf_get(snapshot, "pods", "web", "a", &pod), KINF_FOUND);
}

Test(wait, half_a_list_is_not_enough)
{
	(void)small_store_list_begin(&store);
	(void)small_store_put(&store, "web/a", "n1", 10);
	small_store_take(&store);
	bookmark("100");
	cr_assert_eq(wait_ms("100", 30), KINF_TIMEOUT, "a list is open");
	(void)small_store_list_end(&store);
	bookmark("100");
	small_store_take(&store);
	OK(wait_ms("100", LONG_MS));
}

static void *bookmark_later(void *arg)
{
	const struct timespec pause = {.tv_nsec = 30 * 1000000};

	(void)nanosleep(&pause, NULL);
	bookmark(arg);
	return NULL;
}

Test(wait, bookmark_ends_it_without_any_record)
{
	pthread_t thread;
	char rv[] = "200";

	bookmark("100");
	cr_assert_eq(pthread_create(&thread, NULL, bookmark_later, rv), 0);
	OK(wait_ms("200", LONG_MS));
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

Test(wait, versions_that_cannot_be_compared_are_an_error)
{
	bookmark("100");
	cr_assert_eq(wait_ms("abc", LONG_MS), KINF_UNSUPPORTED);
	cr_assert_not_null(strstr(kinf_error(kinf), "'abc'"), "%s", kinf_error(kinf));
	cr_assert_eq(wait_ms("0100", LONG_MS), KINF_UNSUPPORTED);
}

Test(wait, unknown_feed_is_said_by_one_and_waited_for_by_the_other)
{
	const char *feeds[] = {"pods", "services"};

	cr_assert_eq(kinf_wait_rv(kinf, "services", "1", LONG_MS), KINF_NO_FEED);
	OK(kinf_wait_synced(kinf, feeds, 1, 0));
	cr_assert_eq(kinf_wait_synced(kinf, feeds, 2, 30), KINF_TIMEOUT);
	OK(kinf_wait_synced(kinf, NULL, 0, 0));
}
