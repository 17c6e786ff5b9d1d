/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of client-go's tests of stores and indexers, named after them (tests/INFORMER_ROWS.md). */
#include "reader/kinf.h"

#include <pthread.h>

#include "tests/unit/tape.h"

static struct kinf_snapshot *snapshot;

static void teardown(void)
{
	kinf_snapshot_close(&snapshot);
	cache_close();
}

TestSuite(informer_cache, .init = cache_open, .fini = teardown, .timeout = 60);

static void renew(void)
{
	cache_take();
	KINF_OK(snapshot ? kinf_snapshot_renew(snapshot)
			 : kinf_snapshot_open(cache.kinf, &snapshot));
}

static int put_value(void *arg, const char *value, size_t size, uint64_t count)
{
	buf_printf(arg, "%.*s=%d ", (int)size, value, (int)count);
	return 0;
}

/* "value=count " of the index "node". */
static void values_are(const char *text)
{
	CLEANUP(buf_release) struct buf values = BUF_INIT;

	renew();
	KINF_OK(kinf_index_values(snapshot, "pods", "node", NULL, put_value, &values));
	cr_assert_str_eq(buf_cstr(&values), text);
}

/* The keys QUERY finds, a blank after each. */
static void finds(struct kinf_query query, const char *text)
{
	CLEANUP(buf_release) struct buf keys = BUF_INIT;
	struct kinf_object object;
	struct kinf_listing *list;

	renew();
	query.size = sizeof(query);
	query.feed = "pods";
	KINF_OK(kinf_list(snapshot, &query, &list));
	while (kinf_list_next(list, &object) == KINF_FOUND)
		buf_printf(&keys, "%.*s ", (int)object.key_size, object.key);
	kinf_list_close(&list);
	cr_assert_str_eq(buf_cstr(&keys), text);
}

static void on_node(const char *node, const char *text)
{
	const struct kinf_term term = {"node", node};

	finds((struct kinf_query){.terms = &term, .n_terms = 1}, text);
}

Test(informer_cache, TestThreadSafeStoreDeleteRemovesEmptySetsFromIndex)
{
	cache_put("a/x", "n1");
	cache_put("a/y", "n1");
	cache_delete("a/x");
	values_are("n1=1 ");
	on_node("n1", "a/y ");
	cache_delete("a/y");
	values_are("");
}

/* NODES: a JSON array; the index is over each of its members. */
static void put_many(const char *key, const char *nodes)
{
	char json[256];
	static bool there;

	(void)snprintf(json, sizeof(json), "{\"metadata\":{\"name\":\"x\"},\"nodes\":%s}", nodes);
	(void)rig_append(&cache.rig, cache.feed, there ? RECORD_MODIFIED : RECORD_ADDED, key, json);
	there = true;
}

Test(informer_cache, TestThreadSafeStoreIndexingFunctionsWithMultipleValues)
{
	rig_configure(
		&cache.rig, "feeds:\n  - resource: pods\n    indexes:\n      node: nodes[*]\n");
	put_many("a/x", "[\"n1\",\"n2\"]");
	cache_take();
	values_are("n1=1 n2=1 ");
	put_many("a/x", "[\"n2\",\"n3\",\"n2\"]");
	values_are("n2=1 n3=1 ");
	on_node("n3", "a/x ");
	put_many("a/x", "[]");
	values_are("");
	put_many("a/x", "[\"n1\"]");
	values_are("n1=1 ");
	cache_delete("a/x");
	values_are("");
}

static int take_version(void *arg, const struct kinf_feed_info *status)
{
	(void)snprintf(arg, 64, "%s", status->resource_version);
	return 0;
}

static void version_is(const char *wanted)
{
	char version[64];

	renew();
	KINF_OK(kinf_feed_status(snapshot, "pods", take_version, version));
	cr_assert_str_eq(version, wanted);
}

static void move_checkpoint(const char *rv)
{
	cr_assert_eq(
		journal_checkpoint(cache.rig.journal, cache.feed, FEED_SYNCED, bytes_str(rv)), 0);
}

/* It moves in its object's transaction: with an add, an update, a delete, and with a bookmark, a
 * version alone. */
Test(informer_cache, TestThreadSafeStoreRV)
{
	cache_put("a/x", NULL);
	move_checkpoint("5");
	version_is("5");
	cache_put("a/x", NULL);
	cache_delete("a/x");
	move_checkpoint("9");
	version_is("9");
	cr_assert_eq(journal_begin(cache.rig.journal), 0);
	move_checkpoint("12");
	version_is("12");
}

Test(informer_cache, TestCache)
{
	struct kinf_object object;
	const char *text;
	size_t size;

	finds((struct kinf_query){0}, "");
	cache_put("a/foo", NULL);
	cache_put("a/bar", NULL);
	cache_put("a/foo", NULL);
	finds((struct kinf_query){0}, "a/bar a/foo ");
	cr_assert_eq(kinf_get(snapshot, "pods", "a", "foo", &object), KINF_FOUND);
	cr_assert_eq(kinf_object_path(&object, "v", &text, &size), KINF_FOUND);
	cr_assert(size == 1 && *text == '3');
	cache_delete("a/foo");
	finds((struct kinf_query){0}, "a/bar ");
	cr_assert_eq(kinf_get(snapshot, "pods", "a", "foo", &object), KINF_NOT_FOUND);
	cache_relist("a/baz b/qux");
	finds((struct kinf_query){0}, "a/baz b/qux ");
}

Test(informer_cache, TestMultiIndexKeys)
{
	cache_put("a/x", "n1");
	cache_put("a/y", "n1");
	cache_put("a/z", "n2");
	values_are("n1=2 n2=1 ");
	on_node("n1", "a/x a/y ");
	on_node("n2", "a/z ");
	on_node("n3", "");
	cache_delete("a/y");
	cache_put("a/z", "n1");
	on_node("n1", "a/x a/z ");
	on_node("n2", "");
}

Test(informer_cache, TestListAll)
{
	for (unsigned i = 0; i < 300; i++) {
		char key[16];

		(void)snprintf(key, sizeof(key), "a/%03u", i);
		cache_put(key, i == 7 ? "odd" : NULL);
	}
	renew();
	struct kinf_query query = {.size = sizeof(query), .feed = "pods"};
	struct kinf_object object;
	struct kinf_listing *list;
	unsigned n = 0;
	KINF_OK(kinf_list(snapshot, &query, &list));
	while (kinf_list_next(list, &object) == KINF_FOUND)
		n++;
	kinf_list_close(&list);
	cr_assert_eq(n, 300);
	finds((struct kinf_query){.field_selector = "spec.nodeName=odd"}, "a/007 ");
	finds((struct kinf_query){.field_selector = "spec.nodeName=none"}, "");
}

/* Indexes are added to a full feed, and used when filled. */
Test(informer_cache, TestIndexer)
{
	const struct kinf_term term = {"name", "x"};

	cache_put("a/x", "n1");
	cache_take();
	rig_configure(&cache.rig, "feeds:\n  - resource: pods\n    indexes:\n"
				  "      node: spec.nodeName\n      name: metadata.name\n");
	put_many("a/late", "[]");
	finds((struct kinf_query){.terms = &term, .n_terms = 1}, "a/late ");
	on_node("n1", "a/x ");
	values_are("n1=1 ");
}

/* ---- waiting ------------------------------------------------------------ */

static void *wait_for_pods(void *arg)
{
	static const char *const pods[] = {"pods"};

	*(int *)arg = kinf_wait_synced(cache.kinf, pods, 1, 30000);
	return NULL;
}

Test(informer_cache, TestWaitFor)
{
	static const char *const names[] = {"pods", "nodes"};
	pthread_t threads[3];
	int results[3] = {1, 1, 1};

	KINF_OK(kinf_wait_synced(cache.kinf, names, 1, 0));
	cr_assert_eq(kinf_wait_synced(cache.kinf, names, 2, 20), KINF_TIMEOUT);
	cr_assert(strstr(kinf_error(cache.kinf), "20 ms"), "%s", kinf_error(cache.kinf));
	rig_record(&cache.rig, cache.feed, RECORD_FEED_REMOVED, NULL, NULL);
	rig_settle(&cache.rig);
	cr_assert_eq(kinf_wait_synced(cache.kinf, names, 1, 0), KINF_TIMEOUT);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, wait_for_pods, &results[i]), 0);
	cache.feed = rig_add_feed(&cache.rig, "pods");
	cache_relist("");
	cache_take();
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(pthread_join(threads[i], NULL), 0);
		cr_assert_eq(results[i], 0);
	}
}

/* ---- history ------------------------------------------------------------ */

static int put_change(void *arg, const struct kinf_change *change)
{
	const char *text = "";
	size_t size = 0;

	(void)kinf_object_path(&change->object, "v", &text, &size);
	buf_printf(arg, "%s%s=%.*s ", change->type, change->final_state_unknown ? "?" : "",
		(int)size, text);
	return 0;
}

static void history_is(const char *name, const char *text)
{
	CLEANUP(buf_release) struct buf changes = BUF_INIT;

	renew();
	KINF_OK(kinf_history(snapshot, "pods", "a", name, put_change, &changes));
	cr_assert_str_eq(buf_cstr(&changes), text);
}

static int stop_at_once(void *arg, const struct kinf_change *change)
{
	(void)change;
	return ++*(int *)arg + 40;
}

Test(informer_cache, history_is_what_is_retained_of_an_object)
{
	int calls = 0;

	cache_put("a/x", NULL);
	cache_put("a/y", NULL);
	cache_put("a/x", NULL);
	cache_delete("a/x");
	cache_put("a/x", NULL);
	history_is("x", "ADDED=1 MODIFIED=3 DELETED=3 ADDED=4 ");
	cache_put("a/x", NULL);
	cache_trim();
	history_is("x", "MODIFIED=5 ");
	cache_put("a/x", NULL);
	history_is("x", "MODIFIED=5 MODIFIED=6 ");
	cache_relist("");
	history_is("x", "MODIFIED=5 MODIFIED=6 DELETED?=6 ");
	cr_assert_eq(kinf_history(snapshot, "pods", "a", "x", stop_at_once, &calls), 41);
	cr_assert_eq(calls, 1);
	cr_assert_eq(
		kinf_history(snapshot, "pods", "a", "never", put_change, NULL), KINF_NOT_FOUND);
	cache_trim();
	renew();
	cr_assert_eq(kinf_history(snapshot, "pods", "a", "x", put_change, NULL), KINF_NOT_FOUND);
}
