/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of earlier states against the states noted then, and a list's advice about a missing
 * index. */
#include "common/text/decimal.h"
#include "reader/plan.h"
#include "reader/handle.h"
#include "tests/unit/query_rig.h"

TestSuite(query_past, .init = setup, .fini = teardown, .timeout = 120);

#define STATES 25

static struct pod states[STATES][OBJECTS];
static uint64_t events[STATES];

static void trim_history(void)
{
	uint64_t trimmed;
	int r;

	do
		r = journal_trim(w.rig.journal, rig_taken(&w.rig), 1000, &trimmed);
	while (r == AGAIN);
	OK(r);
	take();
}

/* Counts the listed objects equal to those in STATE. HOLDS must accept each. */
static unsigned count_state(
	const struct kinf_query *query, const struct pod *state, bool (*holds)(const struct pod *))
{
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	struct kinf_object object;
	const char *phase;
	size_t size;
	unsigned n = 0;
	int r;

	OK(kinf_list(w.snapshot, query, &list));
	while ((r = kinf_list_next(list, &object)) == KINF_FOUND) {
		const struct pod *pod;
		uint64_t number; /* the name ends with three digits */
		char wanted[16];

		OK(decimal_parse(BYTES(object.key + object.key_size - 3, 3), OBJECTS, &number));
		pod = &state[number];
		cr_assert(pod->there && holds(pod), "%.*s", (int)object.key_size, object.key);
		OK(kinf_object_path(&object, "status.phase", &phase, &size));
		(void)snprintf(wanted, sizeof(wanted), "p%u", pod->phase);
		cr_assert(size == strlen(wanted) && !memcmp(phase, wanted, size));
		n++;
	}
	cr_assert_eq(r, KINF_END, "%s", kinf_error(w.kinf));
	return n;
}

static bool any(const struct pod *pod)
{
	return pod->there;
}
static bool on_node_2(const struct pod *pod)
{
	return pod->there && pod->node == 2;
}
static bool of_app_1(const struct pod *pod)
{
	return pod->there && pod->app == 1;
}

Test(query_past, the_state_as_of_an_event_is_what_was_read_then)
{
	static const struct kinf_term on_node = {"node", "n2"};
	static const struct {
		struct kinf_query query;
		bool (*holds)(const struct pod *);
	} rows[] = {
		{{.feed = "pods"}, any},
		{{.feed = "pods", .sort_by = "status.phase"}, any},
		{{.feed = "pods", .field_selector = "spec.nodeName=n2"}, on_node_2},
		{{.feed = "pods", .terms = &on_node, .n_terms = 1}, on_node_2},
		{{.feed = "pods", .label_selector = "app=a1"}, of_app_1},
	};

	for (unsigned s = 0; s < STATES; s++) {
		memcpy(states[s], w.pods, sizeof(w.pods));
		events[s] = kinf_snapshot_event(w.snapshot);
		for (unsigned i = 0; i < 8; i++)
			change_pod(&w.pods[dice(OBJECTS)]);
		take();
	}
	for (unsigned s = 0; s < STATES; s++)
		for (unsigned row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
			struct kinf_query query = rows[row].query;
			unsigned wanted = 0;

			query.size = sizeof(query);
			query.at_event = events[s];
			for (unsigned i = 0; i < OBJECTS; i++)
				wanted += rows[row].holds(&states[s][i]);
			cr_assert_eq(count_state(&query, states[s], rows[row].holds), wanted,
				"state %u, query %u", s, row);
		}
}

Test(query_past, an_event_that_is_not_kept_or_not_there_is_explained)
{
	struct kinf_query query = {.size = sizeof(query), .feed = "pods", .limit = 1};
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	uint64_t first = kinf_snapshot_event(w.snapshot);
	struct kinf_object object;
	char wanted[200];

	query.at_event = first + 1;
	cr_assert_eq(kinf_list(w.snapshot, &query, &list), KINF_AGAIN);
	(void)snprintf(wanted, sizeof(wanted), "event %llu is not there yet; the newest is %llu",
		(unsigned long long)first + 1, (unsigned long long)first);
	cr_assert_str_eq(kinf_error(w.kinf), wanted);

	query.at_event = first;
	OK(kinf_list(w.snapshot, &query, &list));
	cr_assert_str_eq(kinf_list_resource_version(list), "");
	OK(kinf_list_next(list, &object));
	cr_assert_eq(kinf_list_next(list, &object), KINF_END);
	AUTO_FREE char *token = strdup(kinf_list_continue(list));
	kinf_list_close(&list);
	query.continue_token = token;
	OK(kinf_list(w.snapshot, &query, &list));
	kinf_list_close(&list);
	query.at_event = first - 1;
	cr_assert_eq(kinf_list(w.snapshot, &query, &list), KINF_SYNTAX);
	cr_assert(strstr(kinf_error(w.kinf), "the continue token is of a list as of event "));

	query.continue_token = NULL;
	query.at_event = first;
	for (unsigned i = 0; i < OBJECTS; i++)
		write_pod(&w.pods[i]);
	take();
	trim_history();
	cr_assert_eq(kinf_list(w.snapshot, &query, &list), KINF_GONE);
	(void)snprintf(wanted, sizeof(wanted),
		"the state of 'pods' as of event %llu is not kept, but those from ",
		(unsigned long long)first);
	cr_assert(
		strstr(kinf_error(w.kinf), wanted) == kinf_error(w.kinf), "%s", kinf_error(w.kinf));
	cr_assert(strstr(kinf_error(w.kinf), "'retention'"));
}

/* ---- advice ------------------------------------------------------------- */

/* Returns a list's advice after its last object. */
static const char *advice_of(const struct kinf_query *given)
{
	static char text[ADVICE_SIZE];
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	struct kinf_query query = *given;
	struct kinf_object object;

	query.size = sizeof(query);
	query.feed = "pods";
	OK(kinf_list(w.snapshot, &query, &list));
	while (kinf_list_next(list, &object) == KINF_FOUND)
		continue;
	(void)snprintf(text, sizeof(text), "%s", list_advice(list));
	return text;
}

#define ADVICE(path) \
	"; an index of " path \
	" would avoid that: add one to the 'indexes' of the feed 'pods' in kinf.yaml"

#define ADVISES(wanted, ...) \
	do { \
		const char *advice_ = advice_of(&(struct kinf_query){__VA_ARGS__}); \
		cr_assert_str_eq(advice_, wanted); \
	} while (0)

Test(query_past, a_list_that_reads_much_for_little_names_the_index_that_it_lacks)
{
	ADVISES("120 objects were read for 0" ADVICE("metadata.uid"),
		.field_selector = "metadata.uid=none");
	ADVISES("120 objects were read for 0" ADVICE("status.conditions[type=Ready].status"),
		.field_selector = "spec.nodeName!=x,status.conditions[type=Ready].status=True");
	ADVISES("120 objects were read for 2" ADVICE("metadata.name"), .sort_by = "metadata.name",
		.limit = 2);
}

Test(query_past, nothing_is_advised_where_an_index_is_or_would_not_help)
{
	ADVISES("", .field_selector = NULL);
	ADVISES("", .field_selector = "spec.nodeName=nowhere");
	ADVISES("", .field_selector = "spec.nodeName!=nowhere,metadata.name!=x,spec.none>3");
	ADVISES("", .field_selector = "spec.containers[*].name=x");
	ADVISES("", .label_selector = "app=nowhere");
	ADVISES("", .sort_by = "metadata.name");
	ADVISES("", .sort_by = "spec.containers[*].name", .limit = 1);
	ADVISES("", .prefix = "db-000");
}
