/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/session_internal.h"

#include "common/proc.h"
#include "reflector/record/recorder.h"
#include "tests/unit/api_stub.h"
#include "tests/unit/config_rig.h"
#include "tests/unit/rig.h"

#define OBJECT(name, rv, more) \
	"{\"kind\":\"Thing\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"" name \
	"\",\"namespace\":\"d\",\"uid\":\"u\",\"resourceVersion\":\"" rv "\"" more "}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"

/* A list as a stream, its end mark, and the events after it. */
static const char stream[] = EVENT("ADDED", OBJECT("a", "5", "")) EVENT(
	"BOOKMARK", OBJECT("", "7", ",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}"))
	EVENT("MODIFIED", OBJECT("a", "8", ""));

struct world {
	struct rig rig;
	struct api_stub *stub;
	struct kubeconfig kubeconfig;
	struct recorder *recorder;
	struct session_shared shared;
	struct pace pace;
	struct warnings warnings;
	struct timer_queue timers;
	size_t queued, listing;
	struct session *session;
	bool remove; /* the feed, at its list's end */
	int ends;
};

/* As replace.c does with a removed feed. */
static int on_list_end(void *arg, struct session *session)
{
	struct world *world = arg;
	struct record record = {
		.feed = session_definition(session)->id, .type = RECORD_FEED_REMOVED};
	uint64_t seq;

	world->ends++;
	if (!world->remove)
		return 0;
	session_stop(session);
	return recorder_append(world->recorder, &record, &seq);
}

static void on_failure(void *arg, struct session *session, enum failure_kind kind)
{
	(void)arg;
	cr_assert_fail("%s failed: %d", session_definition(session)->name, kind);
}

static void on_well(void *arg, struct session *session)
{
	(void)arg;
	(void)session;
}

/* SECOND: the answer to a second watch asking for progress; PROBE: the end of the question before
 * it. */
static void set_up_with(struct world *world, const char *second, enum api_stub_fault probe)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;

	*world = (struct world){0};
	rig_open(&world->rig, "feeds: []\n");
	world->stub = api_stub_start((struct api_stub_answer[]){
		{"/api/v1/things", 200, "application/json", second, .fault = STUB_SILENT_BODY,
			.query = "timeoutSeconds=3&"},
		{"/api/v1/things", 200, "application/json", stream, NULL, STUB_SILENT_BODY},
		{"/api/v1/namespaces/default/things/kinf-probe", 404, "application/json", "{}",
			.fault = probe},
		{NULL}});
	world->kubeconfig = (struct kubeconfig){.server = (char *)api_stub_url(world->stub)};
	world->shared = (struct session_shared){.stats = world->rig.p.stats,
		.pace = &world->pace,
		.policy = default_policy(),
		.warnings = &world->warnings,
		.timers = &world->timers,
		.queued = &world->queued,
		.listing = &world->listing,
		.on_failure = on_failure,
		.on_well = on_well,
		.on_list_end = on_list_end,
		.list_arg = world};
	world->shared.policy.streaming_lists = true;
	(void)rig_add_feed(&world->rig, "things");
	cr_assert_eq(http_new(&world->kubeconfig, &world->shared.http), 0);
	cr_assert_eq(
		recorder_new(world->rig.journal, NULL, world->rig.p.stats, &world->recorder), 0);
	world->shared.recorder = world->recorder;
	cr_assert_eq(txn_begin_read(journal_env(world->rig.journal), &txn), 0);
	CLEANUP(feed_walk_release) struct feed_walk walk = {world->rig.journal, txn};
	while (feed_walk_next(&walk) == FOUND) {
		/* of a feed left in the store by an earlier set_up() of this test */
		session_free(&world->session);
		cr_assert_eq(session_new(&world->shared, &walk.definition, &walk.checkpoint, 500,
				     &world->session),
			0);
	}
}

static void set_up(struct world *world)
{
	set_up_with(world, "", STUB_GOOD);
}

static void tear_down(struct world *world)
{
	session_free(&world->session);
	cr_assert_eq(world->queued + world->listing, 0);
	timer_queue_release(&world->timers);
	recorder_free(&world->recorder);
	http_free(&world->shared.http);
	api_stub_stop(&world->stub);
	rig_close(&world->rig);
}

/* Runs until its list has ended with the events after it. */
static void run(struct world *world)
{
	const char *text;

	session_on(world->session, FEED_ON_START);
	session_on(world->session, FEED_ON_TURN);
	for (int i = 0; i < 1000 && !world->ends; i++) {
		cr_assert_eq(http_poll(world->shared.http, 10, NULL, 0), 0);
		cr_assert_geq(session_work(world->session), 0);
	}
	cr_assert_eq(world->ends, 1);
	cr_assert_eq(http_poll(world->shared.http, 10, NULL, 0), 0);
	OK(recorder_flush(world->recorder));
	cr_assert_eq(recorder_error(world->recorder, &text), 0);
}

static uint32_t last_type(struct world *world)
{
	struct journal *journal = world->rig.journal;
	CLEANUP(txn_abort) struct txn *txn = NULL;
	CLEANUP(journal_walk_close) struct journal_walk *walk = NULL;
	struct record record;
	uint32_t type = 0;

	cr_assert_eq(txn_begin_read(journal_env(journal), &txn), 0);
	cr_assert_eq(journal_walk_open(txn, 1, &walk), 0);
	while (journal_walk_next(walk, &record) == FOUND)
		type = record.type;
	return type;
}

Test(session, events_after_the_end_mark_of_a_stream_are_taken)
{
	struct world world;

	set_up(&world);
	run(&world);
	cr_assert_eq(last_type(&world), RECORD_MODIFIED);
	tear_down(&world);
}

/* Its removal is its last record, in the same transaction too. */
Test(session, a_feed_removed_at_the_end_of_its_list_takes_no_more)
{
	struct world world;

	set_up(&world);
	world.remove = true;
	run(&world);
	cr_assert_eq(last_type(&world), RECORD_FEED_REMOVED);
	tear_down(&world);
}

/* ---- progress on demand: the feed is at 8 ------------------------------- */

static void rv_is(struct world *world, const char *rv)
{
	struct journal *journal = world->rig.journal;
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct feed_checkpoint checkpoint;

	cr_assert_eq(recorder_flush(world->recorder), 0);
	cr_assert_eq(txn_begin_read(journal_env(journal), &txn), 0);
	cr_assert_eq(journal_feed_checkpoint(
			     journal, txn, session_definition(world->session)->id, &checkpoint),
		FOUND);
	cr_assert(bytes_equal(checkpoint.rv, bytes_str(rv)), "%.*s instead of %s",
		BYTES_ARG(checkpoint.rv), rv);
	cr_assert_str_eq(buf_cstr(&world->session->machine.rv), rv);
}

static void ask(struct world *world, uint64_t wanted)
{
	session_progress(world->session, wanted);
	cr_assert_eq(session_work(world->session), 0);
	cr_assert(world->session->progress);
}

static void answer(struct world *world)
{
	for (int i = 0; i < 1000 && world->session->progress; i++)
		cr_assert_eq(http_poll(world->shared.http, 10, NULL, 0), 0);
	cr_assert_not(world->session->progress);
}

static void check_progress(const char *second, const char *rv)
{
	struct world world;

	set_up_with(&world, second, STUB_GOOD);
	run(&world);
	rv_is(&world, "8");
	ask(&world, 20);
	answer(&world);
	rv_is(&world, rv);
	tear_down(&world);
}

Test(session, a_bookmark_that_is_first_on_a_second_watch_moves_the_feed_on)
{
	check_progress(EVENT("BOOKMARK", OBJECT("", "30", "")), "30");
}

Test(session, anything_else_on_a_second_watch_proves_nothing)
{
	check_progress(EVENT("MODIFIED", OBJECT("a", "25", ""))
			       EVENT("BOOKMARK", OBJECT("", "30", "")),
		"8");
	check_progress(EVENT("DELETED", OBJECT("a", "8", ""))
			       EVENT("BOOKMARK", OBJECT("", "30", "")),
		"8");
	check_progress(EVENT("BOOKMARK", OBJECT("", "8", "")), "8");
	check_progress(EVENT("BOOKMARK", OBJECT("", "7", "")), "8");
	check_progress(
		EVENT("BOOKMARK",
			OBJECT("", "30", ",\"annotations\":{\"kinformer/stale\":\"3 away\"}")),
		"8");
	check_progress(
		EVENT("ERROR", "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}"), "8");
	check_progress("nonsense", "8");
}

Test(session, what_the_feed_took_meanwhile_outweighs_a_second_watch)
{
	struct world world;
	struct feed_action action;

	set_up_with(&world, EVENT("BOOKMARK", OBJECT("", "30", "")), STUB_GOOD);
	run(&world);
	ask(&world, 20);
	session_step(world.session, (struct feed_input){.on = FEED_ON_EVENT, .rv = BYTES_LIT("9")},
		&action);
	answer(&world);
	cr_assert_str_eq(buf_cstr(&world.session->machine.rv), "9");
	tear_down(&world);
}

Test(session, progress_is_asked_for_the_smallest_rv_and_once_a_second)
{
	struct world world;

	set_up_with(&world, "", STUB_SILENT);
	run(&world);
	session_progress(world.session, 8);
	cr_assert_eq(session_progress_at(world.session), UINT64_MAX, "the feed has it");
	ask(&world, UINT64_C(1) << 62);
	session_progress(world.session, UINT64_MAX);
	cr_assert(world.session->progress);
	session_progress(world.session, 20);
	cr_assert_not(world.session->progress,
		"what waits for an RV that is never given holds up nobody");
	cr_assert_eq(world.session->wanted, 20);
	uint64_t now = proc_monotonic_ns(), at = session_progress_at(world.session);
	cr_assert(at > now && at <= now + UINT64_C(1000000000));
	cr_assert_eq(session_work(world.session), 0);
	cr_assert_not(world.session->progress);
	tear_down(&world);
}
