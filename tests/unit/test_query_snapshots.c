/* SPDX-License-Identifier: Apache-2.0 */
/* Reset and renewed snapshots, later feeds, a fork, threads. */
#include <pthread.h>

#include "reader/kinf.h"
#include "tests/unit/query_rig.h"

TestSuite(query_snapshots, .init = setup, .fini = teardown, .timeout = 120);

/* As in a daemon entering / after opening its files. */
Test(query_snapshots, a_store_of_a_relative_path_is_found_again_after_chdir)
{
	CLEANUP(kinf_close) struct kinf *kinf = NULL;
	CLEANUP(kinf_snapshot_close) struct kinf_snapshot *snapshot = NULL;

	cr_assert_eq(chdir(scratch()), 0);
	OK(kinf_open("store", &kinf));
	cr_assert_eq(chdir("/"), 0);
	cr_assert_eq(kinf_set_check(kinf, 1), 0, "%s", kinf_error(kinf));
	OK(kinf_snapshot_open(kinf, &snapshot));
}

Test(query_snapshots, a_snapshot_that_was_reset_reads_nothing_and_a_renewed_one_the_newest)
{
	struct kinf_query query = {.size = sizeof(query), .feed = "pods"};
	struct kinf_object object;
	struct kinf_listing *list;
	struct pod *pod = w.pods;

	while (pod->there)
		change_pod(pod); /* deletes it sooner or later */
	take();
	OK(kinf_list(w.snapshot, &query, &list));
	OK(kinf_snapshot_reset(w.snapshot));
	cr_assert_eq(kinf_list_next(list, &object), -EINVAL);
	kinf_list_close(&list);
	cr_assert_eq(kinf_get(w.snapshot, "pods", "a", "x", &object), -EINVAL);
	cr_assert_str_eq(kinf_error(w.kinf), "the snapshot was reset: renew it first");
	cr_assert_eq(kinf_list(w.snapshot, &query, &list), -EINVAL);
	cr_assert_eq(kinf_snapshot_event(w.snapshot), 0);
	OK(kinf_snapshot_renew(w.snapshot));
	cr_assert_eq(
		kinf_get(w.snapshot, "pods", pod->namespace_, pod->name, &object), KINF_NOT_FOUND);
	OK(kinf_list(w.snapshot, &query, &list));
	write_pod(pod);
	take();
	cr_assert_eq(kinf_list_next(list, &object), -EINVAL, "its walk was the old snapshot's");
	kinf_list_close(&list);
	cr_assert_eq(kinf_get(w.snapshot, "pods", pod->namespace_, pod->name, &object), KINF_FOUND);
	cr_assert_eq(pod_of(&object), pod);
}

/* Feeds are kept over renewals as long as nothing was committed. */
Test(query_snapshots, feeds_that_come_later_are_seen_after_a_renewal)
{
	unsigned n = 0;

	OK(kinf_feed_status(w.snapshot, "pods", count_feed, &n));
	cr_assert_eq(n, 3);
	OK(kinf_snapshot_renew(w.snapshot));
	(void)rig_add_pods(&w.rig, "d");
	take();
	n = 0;
	OK(kinf_feed_status(w.snapshot, "pods", count_feed, &n));
	cr_assert_eq(n, 4);
}

static int ignore_value(void *arg, const char *value, size_t size, uint64_t count)
{
	(void)arg;
	(void)value;
	(void)size;
	(void)count;
	return 0;
}

/* While the processor is away or behind, the journal has a feed, and then its list, before the
 * index does. */
Test(query_snapshots, a_feed_that_the_index_lacks_is_not_left_out_of_a_list)
{
	struct kinf_query query = {.size = sizeof(query), .feed = "pods"};
	uint32_t feed = rig_add_pods(&w.rig, "d");
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	struct kinf_object object;

	OK(kinf_snapshot_renew(w.snapshot));
	cr_assert_eq(
		kinf_index_values(w.snapshot, "pods", "node", "", ignore_value, NULL), KINF_AGAIN);
	cr_assert_eq(kinf_list(w.snapshot, &query, &list), KINF_AGAIN);
	(void)rig_append(&w.rig, feed, RECORD_LIST_BEGIN, NULL, NULL);
	take();
	OK(kinf_index_values(w.snapshot, "pods", "node", "", ignore_value, NULL));
	cr_assert_eq(kinf_list(w.snapshot, &query, &list), KINF_AGAIN);
	(void)rig_append(&w.rig, feed, RECORD_ADDED, "d/x", "{\"metadata\":{}}");
	(void)rig_append(&w.rig, feed, RECORD_LIST_END, NULL, NULL);
	rig_commit(&w.rig);
	OK(kinf_snapshot_renew(w.snapshot));
	cr_assert_eq(kinf_get(w.snapshot, "pods", "d", "x", &object), KINF_AGAIN);
	cr_assert_eq(kinf_list(w.snapshot, &query, &list), KINF_AGAIN);
	take();
	OK(kinf_get(w.snapshot, "pods", "d", "x", &object));
	query.namespace_ = "d";
	OK(kinf_list(w.snapshot, &query, &list));
	OK(kinf_list_next(list, &object));
}

/* Returns 7: all calls are refused, the parent keeps its handles, and the child's own handle
 * reads. */
static int use_as_a_child(void)
{
	struct kinf_snapshot *other = NULL;
	struct kinf_object object;
	struct kinf *own = NULL;

	if (kinf_get(w.snapshot, "pods", "a", "x", &object) != KINF_FORKED)
		return 1;
	if (kinf_snapshot_reset(w.snapshot) != KINF_FORKED ||
		kinf_snapshot_open(w.kinf, &other) != KINF_FORKED)
		return 2;
	kinf_snapshot_close(&w.snapshot);
	kinf_close(&w.kinf);
	if (kinf_open(scratch_path("store"), &own) != 0 || kinf_snapshot_open(own, &other) != 0)
		return 3;
	if (kinf_get(other, "pods", "a", "x", &object) < 0)
		return 4;
	kinf_snapshot_close(&other);
	kinf_close(&own);
	return 7;
}

Test(query_snapshots, a_child_of_fork_is_told_to_open_its_own)
{
	struct kinf_object object;
	pid_t child = fork();
	int status;

	if (child == 0) {
		pid_t its = fork(); /* its own child as well */

		if (its == 0)
			_exit(use_as_a_child());
		_exit(waitpid(its, &status, 0) == its && WIFEXITED(status) &&
					WEXITSTATUS(status) == 7
				? use_as_a_child()
				: 8);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7, "%x", status);
	OK(kinf_snapshot_check(w.snapshot));
	cr_assert_geq(kinf_get(w.snapshot, "pods", "a", "x", &object), 0, "the parent goes on");
}

/* ---- threads ------------------------------------------------------------ */

struct reading {
	const char *feed, *sentence;
	const char *wrong;
};

static const char *fail_on_and_on(const struct reading *reading)
{
	struct kinf_snapshot *snapshot;
	struct kinf_object object;
	const char *text;
	size_t size;

	if (kinf_snapshot_open(w.kinf, &snapshot) != 0)
		return "no snapshot";
	for (unsigned i = 0; i < 2000; i++) {
		if (kinf_get(snapshot, reading->feed, "a", "x", &object) != KINF_NO_FEED)
			return "no error";
		if (strcmp(kinf_error(w.kinf), reading->sentence) != 0)
			return "another's sentence";
	}
	for (unsigned i = 0; i < OBJECTS; i++)
		if (kinf_get(snapshot, "pods", w.pods[i].namespace_, w.pods[i].name, &object) ==
				KINF_FOUND &&
			kinf_object_path(&object, "metadata.name", &text, &size) != KINF_FOUND)
			return "no name";
	kinf_snapshot_close(&snapshot);
	return NULL;
}

static void *run_reading(void *arg)
{
	struct reading *reading = arg;

	reading->wrong = fail_on_and_on(reading);
	return NULL;
}

/* Under the sanitizers also: no race for the sentence, and no leak when a thread ends. */
Test(query_snapshots, threads_with_snapshots_of_one_store_have_their_own_errors)
{
	static struct reading readings[] = {
		{"secrets", NO_FEED("secrets"), NULL},
		{"nodes", NO_FEED("nodes"), NULL},
	};
	pthread_t threads[2];

	for (unsigned i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, run_reading, &readings[i]), 0);
	for (unsigned i = 0; i < 2; i++) {
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
		cr_assert_null(readings[i].wrong, "%s", readings[i].wrong);
	}
	cr_assert_str_eq(kinf_error(w.kinf), "", "none of this thread");
}
