/* SPDX-License-Identifier: Apache-2.0 */
/* Names of several feeds. */
#include <sys/syscall.h>
#include <time.h>

#include "common/moment.h"
#include "reader/handle.h"
#include "tests/unit/query_rig.h"

TestSuite(query, .init = setup, .fini = teardown, .timeout = 120);

/* This program's wall clock, set by tests. */
static int64_t step_s;

int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	int r = (int)syscall(SYS_clock_gettime, id, ret_time);

	if (id == CLOCK_REALTIME)
		ret_time->tv_sec += step_s;
	return r;
}

struct rows {
	char names[200];
	uint64_t node_values, node_entries, namespace_values;
};

static int add_row(void *arg, const char *name, const char *paths, uint64_t values,
	uint64_t entries, int ready)
{
	struct rows *rows = arg;

	(void)paths;
	cr_assert(ready);
	size_t used = strlen(rows->names);
	(void)snprintf(rows->names + used, sizeof(rows->names) - used, "%s ", name);
	if (strcmp(name, "node") == 0) {
		rows->node_values = values;
		rows->node_entries = entries;
	}
	if (strcmp(name, "namespace") == 0)
		rows->namespace_values = values;
	return 0;
}

Test(query, an_index_of_several_feeds_is_listed_once_with_its_values_counted_once)
{
	struct rows rows = {.names = ""};
	uint64_t there = 0;

	for (unsigned i = 0; i < OBJECTS; i++)
		there += w.pods[i].there;
	OK(kinf_index_list(w.snapshot, "pods", add_row, &rows));
	cr_assert_str_eq(rows.names, "namespace label node image node-phase ");
	cr_assert_eq(rows.node_values, 4);
	cr_assert_eq(rows.node_entries, there);
	cr_assert_eq(rows.namespace_values, 3);
}

/* A fourth namespace in its first list. */
static int keep_result(void *arg, size_t i, int result, const struct kinf_object *object)
{
	cr_assert_eq(result == KINF_FOUND, object != NULL);
	((int *)arg)[i] = result;
	return 0;
}

/* Gets an object, an absent name and an object of a feed in its first list, in one call. */
static void get_three(const struct pod *pod, int results[3])
{
	char there[300];
	const char *keys[] = {there, "a/nobody", "d/x"};

	(void)snprintf(there, sizeof(there), "%s/%s", pod->namespace_, pod->name);
	OK(kinf_get_many(w.snapshot, "pods", keys, 3, keep_result, results));
}

static int ignore_change(void *arg, const struct kinf_change *change)
{
	(void)arg, (void)change;
	return 0;
}

Test(query, nothing_is_said_of_a_namespace_that_was_never_listed)
{
	struct kinf_query query = {.size = sizeof(query), .feed = "pods"};
	struct kinf_object object;
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	uint32_t feed = rig_add_pods(&w.rig, "d");
	struct pod *pod = &w.pods[0];

	(void)rig_append(&w.rig, feed, RECORD_LIST_BEGIN, NULL, NULL);
	(void)rig_append(&w.rig, feed, RECORD_ADDED, "d/x",
		"{\"metadata\":{\"name\":\"x\",\"namespace\":\"d\"}}");
	if (!pod->there)
		write_pod(pod);
	take();
	cr_assert_eq(kinf_get(w.snapshot, "pods", "d", "x", &object), KINF_AGAIN);
	cr_assert_not_null(strstr(kinf_error(w.kinf), "pods in d: never listed so far"));
	cr_assert_eq(kinf_get(w.snapshot, "pods", "a", "nobody", &object), KINF_NOT_FOUND);
	OK(kinf_get(w.snapshot, "pods", pod->namespace_, pod->name, &object));
	int results[3];
	get_three(pod, results);
	cr_assert_eq(results[0], KINF_FOUND);
	cr_assert_eq(results[1], KINF_NOT_FOUND);
	cr_assert_eq(results[2], KINF_AGAIN);
	cr_assert_eq(kinf_list(w.snapshot, &query, &list), KINF_AGAIN);
	cr_assert_not_null(strstr(kinf_error(w.kinf), "pods in d: never listed so far"));
	query.namespace_ = "d";
	cr_assert_eq(kinf_list(w.snapshot, &query, &list), KINF_AGAIN);
	cr_assert_eq(kinf_history(w.snapshot, "pods", "d", "y", ignore_change, NULL), KINF_AGAIN);
	cr_assert_eq(kinf_history(w.snapshot, "pods", "a", "nobody", ignore_change, NULL),
		KINF_NOT_FOUND);
	query.namespace_ = "a";
	OK(kinf_list(w.snapshot, &query, &list));
	kinf_list_close(&list);

	(void)rig_append(&w.rig, feed, RECORD_LIST_END, NULL, NULL);
	take();
	OK(kinf_get(w.snapshot, "pods", "d", "x", &object));
	get_three(pod, results);
	cr_assert_eq(results[2], KINF_FOUND);
	query.namespace_ = NULL;
	OK(kinf_list(w.snapshot, &query, &list));
}

static int read_in_callback(void *arg, const struct kinf_feed_info *status)
{
	struct kinf_object object;
	unsigned *n = arg;

	cr_assert_str_eq(status->full_name, "pods");
	/* New names: the snapshot looks them up, and keeps the result. */
	(void)kinf_get(w.snapshot, "po", "a", "x", &object);
	(void)kinf_get(w.snapshot, "pod", "a", "x", &object);
	(void)kinf_get(w.snapshot, "Pod", "a", "x", &object);
	(void)kinf_feed_status(w.snapshot, NULL, count_feed, &(unsigned){0});
	++*n;
	return 0;
}

Test(query, a_callback_may_read_from_its_snapshot)
{
	unsigned n = 0;

	OK(kinf_feed_status(w.snapshot, "pods", read_in_callback, &n));
	cr_assert_eq(n, 3);
}

static int keep_age(void *arg, const struct kinf_feed_info *status)
{
	if (status->feed == feed_of(&w.pods[0])) {
		cr_assert_eq(status->lag, 1);
		*(double *)arg = status->last_contact_seconds;
	}
	return 0;
}

/* The index stood still, and the clock was set back. Its old data must not be called fresh. */
Test(query, a_clock_that_is_set_back_makes_no_data_fresh)
{
	struct moment contact;
	double age = 0;

	moment_now(&contact);
	change_pod(&w.pods[0]);
	OK(journal_set_contact(w.rig.journal, feed_of(&w.pods[0]), &contact));
	rig_commit(&w.rig);
	step_s = 3600;
	OK(kinf_snapshot_renew(w.snapshot));
	OK(kinf_feed_status(w.snapshot, "pods", keep_age, &age));
	cr_assert_geq(age, 3600);
	step_s = -3600;
	OK(kinf_feed_status(w.snapshot, "pods", keep_age, &age));
	cr_assert_lt(age, 0, "%g", age);
}

/* Compares all but definitions. */
static void assert_state_is_of_a_new_snapshot(const struct feed_set *set, const char *name)
{
	CLEANUP(kinf_snapshot_close) struct kinf_snapshot *snapshot = NULL;
	const struct feed_set *fresh;

	OK(kinf_snapshot_open(w.kinf, &snapshot));
	cr_assert_geq(feed_set_get(snapshot, name, &fresh), 0);
	cr_assert_eq(set->n, fresh->n);
	for (size_t i = 0; i < set->n; i++) {
		const struct snapshot_feed *a = &set->feeds[i], *b = &fresh->feeds[i];

		cr_assert_eq(a->definition.id, b->definition.id);
		cr_assert_eq(a->visible, b->visible);
		cr_assert_eq(a->index.objects, b->index.objects);
		cr_assert_eq(a->checkpoint.last, b->checkpoint.last);
		cr_assert(bytes_equal(a->checkpoint.rv, b->checkpoint.rv));
	}
}

/* Takes another snapshot. Returns whether all definitions of NAME are still those in memory that
 * the last call has marked. */
static bool definitions_are_kept(const char *name, size_t n)
{
	const struct feed_set *set;
	bool kept = true;

	take();
	cr_assert_geq(feed_set_get(w.snapshot, name, &set), 0);
	cr_assert_eq(set->n, n);
	assert_state_is_of_a_new_snapshot(set, name);
	for (size_t i = 0; i < n; i++) {
		kept &= set->feeds[i].definition.resync_ns == 77;
		set->feeds[i].definition.resync_ns = 77;
	}
	return kept;
}

Test(query, definitions_of_feeds_are_read_again_only_if_others_may_be_chosen)
{
	const char *const names[] = {"pods", "Pod", NULL};

	for (unsigned i = 0; i < 3; i++)
		cr_assert_not(definitions_are_kept(names[i], 3));
	for (unsigned i = 0; i < 3; i++) {
		write_pod(&w.pods[i]);
		write_pod(&w.pods[i + 3]);
		cr_assert(definitions_are_kept(names[i], 3));
	}
	uint32_t feed = rig_add_pods(&w.rig, "d");
	cr_assert_not(definitions_are_kept("pods", 4), "a new feed");
	(void)rig_append(&w.rig, feed, RECORD_LIST_BEGIN, NULL, NULL);
	cr_assert(definitions_are_kept("pods", 4));
	(void)rig_append(&w.rig, feed, RECORD_LIST_END, NULL, NULL);
	cr_assert_not(definitions_are_kept("pods", 4), "listed");
	cr_assert(definitions_are_kept("pods", 4));
	(void)rig_append(&w.rig, feed, RECORD_FEED_REMOVED, NULL, NULL);
	cr_assert_not(definitions_are_kept("pods", 3), "removed");
}
