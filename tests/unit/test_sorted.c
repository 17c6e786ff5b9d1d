/* SPDX-License-Identifier: Apache-2.0 */
/* Lists in the order of a field, with an index of it and without, against brute force; their pages
 * while everything changes. */
#include "reader/kinf.h"
#include "reader/sort_value.h"
#include "tests/unit/rig.h"

#define CONFIG \
	"feeds:\n" \
	"  - resource: pods\n" \
	"    indexes:\n" \
	"      weight: spec.weight\n"

#define OBJECTS 150

/* Both fields have the same value; only one is an index. */
static const char *const paths[] = {"spec.weight", "{.spec.plain}"};

struct pod {
	bool there;
	char key[16];
	unsigned weight; /* of the order; 0: no such field */
	unsigned app;
};

static struct {
	struct rig rig;
	uint32_t feed[3]; /* of the namespaces a, b, c */
	struct pod pods[OBJECTS];
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
} w;

static unsigned random_state = 11;

static unsigned dice(unsigned sides)
{
	random_state = random_state * 1103515245u + 12345u;
	return (random_state >> 8) % sides;
}

/* ---- the store ---------------------------------------------------------- */

static uint32_t feed_of(const struct pod *pod)
{
	return w.feed[pod->key[0] - 'a'];
}

/* Weights 1 to 20 are numbers in different spellings, from 21 on texts; 0 and 40 are no value. */
static const char *weight_json(unsigned weight)
{
	static const char *const spellings[][2] = {
		{"", ""}, {"\"", "\""}, {"\"", "000m\""}, {"", ".0"}, {"\"node-", "\""}};
	const char *const *around = spellings[weight > 20 ? 4 : dice(4)];
	static char text[32];

	if (weight == 40)
		return "\"\"";
	(void)snprintf(text, sizeof(text), "%s%u%s", around[0], weight, around[1]);
	return text;
}

static void write_pod(struct pod *pod)
{
	char json[400], fields[160] = "";
	const char *slash = strchr(pod->key, '/');

	if (pod->weight) {
		const char *weight = weight_json(pod->weight);
		(void)snprintf(
			fields, sizeof(fields), "\"weight\":%s,\"plain\":%s,", weight, weight);
	}
	(void)snprintf(json, sizeof(json),
		"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%.1s\",\"labels\":{\"app\":\"a%u\"}"
		"},"
		"\"spec\":{%s\"x\":1}}",
		slash + 1, pod->key, pod->app, fields);
	(void)rig_append(
		&w.rig, feed_of(pod), pod->there ? RECORD_MODIFIED : RECORD_ADDED, pod->key, json);
	pod->there = true;
}

static void change_pod(struct pod *pod)
{
	if (pod->there && dice(4) == 0) {
		(void)rig_append(&w.rig, feed_of(pod), RECORD_DELETED, pod->key, NULL);
		pod->there = false;
		return;
	}
	pod->weight = dice(41);
	if (dice(8) == 0)
		pod->app = dice(3);
	write_pod(pod);
}

static void change(unsigned n)
{
	while (n-- > 0)
		change_pod(&w.pods[dice(OBJECTS)]);
}

static void take(void)
{
	rig_take(&w.rig);
	OK(w.snapshot ? kinf_snapshot_renew(w.snapshot) : kinf_snapshot_open(w.kinf, &w.snapshot));
}

static void setup(void)
{
	static const char *const namespaces[] = {"a", "b", "c"};

	rig_open(&w.rig, CONFIG);
	for (unsigned i = 0; i < 3; i++) {
		w.feed[i] = rig_add_pods(&w.rig, namespaces[i]);
		(void)rig_append(&w.rig, w.feed[i], RECORD_LIST_BEGIN, NULL, NULL);
	}
	for (unsigned i = 0; i < OBJECTS; i++) {
		(void)snprintf(
			w.pods[i].key, sizeof(w.pods[i].key), "%s/p-%03u", namespaces[i % 3], i);
		change_pod(&w.pods[i]);
	}
	for (unsigned i = 0; i < 3; i++)
		(void)rig_append(&w.rig, w.feed[i], RECORD_LIST_END, NULL, NULL);
	rig_take(&w.rig);
	OK(kinf_open(scratch_path("store"), &w.kinf));
	take();
}

static void teardown(void)
{
	kinf_snapshot_close(&w.snapshot);
	kinf_close(&w.kinf);
	rig_close(&w.rig);
}

TestSuite(sorted, .init = setup, .fini = teardown, .timeout = 120);

/* ---- what must come ----------------------------------------------------- */

static unsigned rank(unsigned weight)
{
	return weight == 40 ? 0 : weight;
}

static int compare_pods(const void *a, const void *b)
{
	const struct pod *x = *(const struct pod *const *)a, *y = *(const struct pod *const *)b;

	if (rank(x->weight) != rank(y->weight))
		return rank(x->weight) > rank(y->weight) ? 1 : -1;
	return strcmp(x->key, y->key);
}

static struct pod *pod_of(const struct kinf_object *object)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		if (strlen(w.pods[i].key) == object->key_size &&
			!memcmp(w.pods[i].key, object->key, object->key_size))
			return &w.pods[i];
	cr_assert_fail("unknown key %.*s", (int)object->key_size, object->key);
	return NULL;
}

/* APP 3: all. */
static bool takes(unsigned app, const struct pod *pod)
{
	return pod->there && (app == 3 || pod->app == app);
}

static struct kinf_query query_of(const char *path, unsigned app)
{
	static const char *const selectors[] = {"app=a0", "app=a1", "app=a2", NULL};

	return (struct kinf_query){.size = sizeof(struct kinf_query),
		.feed = "pods",
		.label_selector = selectors[app],
		.sort_by = path};
}

/* ---- tests -------------------------------------------------------------- */

Test(sorted, lists_come_in_the_order_of_the_field)
{
	unsigned by_index = 0;

	for (unsigned round = 0; round < 200; round++) {
		const struct pod *wanted[OBJECTS];
		unsigned app = dice(4), n = 0, given = 0;
		struct kinf_query query = query_of(paths[round % 2], app);
		struct kinf_object object;
		struct kinf_listing *list;
		int r;

		query.limit = dice(3) ? 1 + dice(20) : 0;
		for (unsigned i = 0; i < OBJECTS; i++)
			if (takes(app, &w.pods[i]))
				wanted[n++] = &w.pods[i];
		qsort(wanted, n, sizeof(wanted[0]), compare_pods);
		OK(kinf_list(w.snapshot, &query, &list));
		for (; (r = kinf_list_next(list, &object)) == KINF_FOUND; given++)
			cr_assert_str_eq(pod_of(&object)->key, wanted[given]->key, "%u. by %s",
				given, kinf_list_plan(list));
		cr_assert_eq(r, KINF_END, "%s", kinf_error(w.kinf));
		cr_assert_eq(given, query.limit && query.limit < n ? query.limit : n);
		cr_assert_eq(!!kinf_list_continue(list), given < n);
		by_index += strstr(kinf_list_plan(list), "in its order") != NULL;
		kinf_list_close(&list);
		if (round % 20 == 0) {
			change(10);
			take();
		}
	}
	cr_assert_gt(by_index, 25, "%u", by_index);
}

/* One page; how many there were. */
struct walk {
	struct kinf_query query;
	char *token;
	unsigned app, seen[OBJECTS], by_index, pages;
	struct pod then[OBJECTS]; /* as they were at the first page */
	const struct pod *last;
};

static void walk_begin(struct walk *walk, const char *path, unsigned app)
{
	*walk = (struct walk){.app = app, .query = query_of(path, app)};
	memcpy(walk->then, w.pods, sizeof(w.pods));
}

/* Expects the version of the first page. */
static void check_version(const struct kinf_object *object, const struct pod *then)
{
	const char *text;
	size_t size;
	char app[16];

	cr_assert_eq(kinf_object_path(object, "metadata.labels.app", &text, &size), KINF_FOUND);
	(void)snprintf(app, sizeof(app), "a%u", then->app);
	cr_assert(size == strlen(app) && !memcmp(text, app, size), "%s", then->key);
}

static void walk_page(struct walk *walk)
{
	struct kinf_object object;
	struct kinf_listing *list;
	int r;

	walk->query.continue_token = walk->token;
	OK(kinf_list(w.snapshot, &walk->query, &list));
	while ((r = kinf_list_next(list, &object)) == KINF_FOUND) {
		size_t i = (size_t)(pod_of(&object) - w.pods);
		const struct pod *then = &walk->then[i];

		cr_assert(takes(walk->app, then), "%s came later", then->key);
		check_version(&object, then);
		cr_assert(!walk->last || compare_pods(&walk->last, &then) < 0,
			"%s (%u) after %s (%u) by %s", then->key, then->weight, walk->last->key,
			walk->last->weight, kinf_list_plan(list));
		walk->seen[i]++;
		walk->last = then;
	}
	cr_assert_eq(r, KINF_END, "%s", kinf_error(w.kinf));
	walk->by_index += strstr(kinf_list_plan(list), "in its order") != NULL;
	free(walk->token);
	walk->token = kinf_list_continue(list) ? strdup(kinf_list_continue(list)) : NULL;
	kinf_list_close(&list);
	cr_assert_lt(walk->pages++, OBJECTS);
}

static void walk_end(const struct walk *walk)
{
	for (unsigned i = 0; i < OBJECTS; i++)
		cr_assert_eq(walk->seen[i], takes(walk->app, &walk->then[i]), "%s comes %u times",
			w.pods[i].key, walk->seen[i]);
}

Test(sorted, pages_give_the_objects_of_the_first_page_s_state_once)
{
	unsigned by_index = 0;

	for (unsigned round = 0; round < 40; round++) {
		struct walk walk;

		walk_begin(&walk, paths[round % 2], dice(4));
		walk.query.limit = 1 + dice(12);
		do {
			walk_page(&walk);
			change(dice(6));
			take();
		} while (walk.token);
		walk_end(&walk);
		by_index += walk.by_index;
	}
	cr_assert_gt(by_index, 25, "%u", by_index);
}

Test(sorted, feed_that_was_listed_later_ends_the_walk)
{
	struct walk walk;
	struct kinf_listing *list = NULL;

	walk_begin(&walk, paths[1], 3);
	walk.query.limit = 5;
	walk_page(&walk);
	uint32_t feed = rig_add_pods(&w.rig, "d");
	(void)rig_append(&w.rig, feed, RECORD_LIST_BEGIN, NULL, NULL);
	(void)rig_append(&w.rig, feed, RECORD_LIST_END, NULL, NULL);
	take();
	walk.query.continue_token = walk.token;
	cr_assert_eq(kinf_list(w.snapshot, &walk.query, &list), KINF_GONE);
	free(walk.token);
}

Test(sorted, tokens_of_other_lists_are_refused)
{
	struct kinf_query query = query_of(paths[0], 3);
	struct kinf_listing *list = NULL;
	struct walk walk;

	walk_begin(&walk, paths[0], 3);
	walk.query.limit = 5;
	walk_page(&walk);
	query.continue_token = walk.token;
	query.sort_by = "spec.x";
	cr_assert_eq(kinf_list(w.snapshot, &query, &list), KINF_SYNTAX);
	cr_assert(strstr(kinf_error(w.kinf), "another list: repeat "), "%s", kinf_error(w.kinf));
	query.sort_by = NULL;
	cr_assert_eq(kinf_list(w.snapshot, &query, &list), KINF_SYNTAX);
	query.sort_by = paths[0];
	/* Shortened, and with each character another one: refused, or some place in the order. */
	for (size_t size = strlen(walk.token); size-- > 0;) {
		char *token = strdup(walk.token);
		struct kinf_object object;

		token[size] = token[size] == 'A' ? 'B' : 'A';
		query.continue_token = token;
		int r = kinf_list(w.snapshot, &query, &list);
		cr_assert(r == KINF_FOUND || r == KINF_SYNTAX || r == KINF_GONE, "%d", r);
		while (r == KINF_FOUND)
			r = kinf_list_next(list, &object);
		kinf_list_close(&list);
		token[size] = '\0';
		r = kinf_list(w.snapshot, &query, &list);
		cr_assert(r == KINF_FOUND || r == KINF_SYNTAX, "%zu: %d", size, r);
		kinf_list_close(&list);
		free(token);
	}
	query.continue_token = NULL;
	query.sort_by = "spec[";
	cr_assert_eq(kinf_list(w.snapshot, &query, &list), KINF_SYNTAX);
	free(walk.token);
}

Test(sorted, first_of_several_values_counts)
{
	struct kinf_query query = query_of("metadata.labels[*]", 3);
	struct kinf_object object;
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	unsigned last = 0;
	int r;

	OK(kinf_list(w.snapshot, &query, &list));
	while ((r = kinf_list_next(list, &object)) == KINF_FOUND) {
		cr_assert_geq(pod_of(&object)->app, last);
		last = pod_of(&object)->app;
	}
	cr_assert_eq(r, KINF_END);
}

/* A program compiled before sort_by. */
Test(sorted, older_callers_have_a_shorter_query)
{
	struct kinf_query query = query_of("spec[", 3);
	struct kinf_listing *list;

	query.size = offsetof(struct kinf_query, sort_by);
	OK(kinf_list(w.snapshot, &query, &list));
	kinf_list_close(&list);
	query.size--;
	cr_assert_eq(kinf_list(w.snapshot, &query, &list), KINF_UNSUPPORTED);
}

/* ---- values ------------------------------------------------------------- */

Test(sort_value, order_is_that_of_people)
{
	static const char *const in_order[] = {"", "-1.5Gi", "-2", "-1", "0", "1n", "1u", "0.5",
		"600m", "1", "1.5", "2", "10", "1e2", "1000", "1025", "2k", "2Ki", "1e6", "1Mi",
		"1G", "1Gi", "9007199254740992", "9007199254740993", "9223372036854775806",
		"9223372036854775807", "18446744073709551615", "1e300", "+", "-", ".", "1 000",
		"1e", "1e+", "1x", "10.0.0.1", "10.0.0.9", "10.0.0.10", "2026-01-02T03:04:05Z",
		"2026-11-02T03:04:05Z", "Gi", "false", "node", "node-09", "node-9", "node-10",
		"node-10a", "true"};
	size_t n = sizeof(in_order) / sizeof(in_order[0]);

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			struct sort_value a, b;

			sort_value_read(bytes_str(in_order[i]), &a);
			sort_value_read(bytes_str(in_order[j]), &b);
			int r = sort_value_compare(&a, &b);
			cr_assert_eq((r > 0) - (r < 0), (i > j) - (i < j), "'%s' and '%s': %d",
				in_order[i], in_order[j], r);
		}
}

Test(sort_value, same_worth_is_equal)
{
	static const char *const pairs[][2] = {{"100m", "0.1"}, {"1", "1.0"}, {"1", "+1"},
		{"1Ki", "1024"}, {"1k", "1e3"}, {"1E3", "1000"}, {"0", "-0"}, {"0", "0Gi"},
		{"1e-1", "0.1"}, {".5", "0.5"}, {"5.", "5"}, {"1500u", "1.5m"}};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct sort_value a, b;

		sort_value_read(bytes_str(pairs[i][0]), &a);
		sort_value_read(bytes_str(pairs[i][1]), &b);
		cr_assert_eq(a.kind, SORT_NUMBER);
		cr_assert_eq(sort_value_compare(&a, &b), 0, "%s %s", pairs[i][0], pairs[i][1]);
	}
}
