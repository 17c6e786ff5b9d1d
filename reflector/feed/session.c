/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "common/proc.h"
#include "reflector/record/batch.h"
#include "reflector/feed/definition.h"
#include "reflector/feed/session_internal.h"

/* ---- the machine ---- */

/* After these a request may follow that many others may want at the same moment. */
static bool turns_to_server(enum feed_on on)
{
	return on == FEED_ON_START || on == FEED_ON_RESUME || on == FEED_ON_ENDED ||
		on == FEED_ON_FAILED;
}

void session_step(struct session *session, struct feed_input in, struct feed_action *ret_action)
{
	/* Random numbers are for pauses and time limits, not for every event. */
	bool hot = in.on == FEED_ON_EVENT || in.on == FEED_ON_ALIVE;

	in.now_ns = proc_monotonic_ns();
	in.random = hot ? in.now_ns : pace_random();
	if (turns_to_server(in.on))
		in.span_ns = pace_span(session->shared->pace, in.now_ns);
	feed_machine_step(&session->feed, &in, ret_action);
	if (ret_action->phase_changed) {
		LOG(feed_phase, .feed = session->definition.name, .id = session->definition.id,
			.phase = feed_phase_name(feed_machine_phase(&session->feed)));
		record_phase(&session->record, feed_machine_phase(&session->feed));
		session->row_changed = true;
	}
}

void session_step_and_do(struct session *session, struct feed_input in)
{
	struct feed_action action;

	session_step(session, in, &action);
	session_perform(session, &action);
}

/* Until say_well; a feed with an error is not live. */
void session_set_error(struct session *session, const char *text)
{
	session->troubled = true;
	snprintf(session->row.error, sizeof(session->row.error), "%.*s",
		(int)sizeof(session->row.error) - 1, text);
	session->row_changed = true;
}

void session_say_failed(struct session *session, const struct status *status)
{
	uint32_t kind = 1u << status->kind;
	const char *kind_name = failure_kind_name(status->kind);
	const char *state = feed_state_name(session->feed.state);

	if (session->said_kinds & kind)
		LOG(feed_failed_again, .feed = session->definition.name, .kind = kind_name, .state = state,
			.error = status->text);
	else
		LOG(feed_failed, .feed = session->definition.name, .kind = kind_name, .state = state,
			.error = status->text);
	session->said_kinds |= kind;
	session_set_error(session, status->text);
	session->failing = true;
	session->row.retries++;
	stats_add(session->shared->stats, STAT_HTTP_ERRORS, 1);
}

void session_fail(struct session *session, const struct status *status)
{
	/* Where discovery itself says that it is absent, nothing new has been learnt. */
	bool known = status->kind == FAILURE_ABSENT && session->feed.state == FEED_AT_RESOLVING;

	session_say_failed(session, status);
	if (status->kind == FAILURE_ABSENT && !known && session->shared->discovery)
		discovery_expire(session->shared->discovery);
	if (!known)
		session->shared->on_doubt(session->shared->arg, session, status->kind);
	session_step_and_do(session, (struct feed_input){.on = FEED_ON_FAILED, .status = status});
}

void session_fail_with(struct session *session, enum failure_kind kind, const char *text)
{
	struct status status;

	status_set(kind, text, &status);
	session_fail(session, &status);
}

/* The error of a feed that is well but for what it passes over. */
static void show_passed(struct session *session)
{
	const struct record_feed *record = &session->record;

	session->row.error[0] = '\0';
	session->row_changed = true;
	session->passed_said = record->passed_over;
	if (record->passed_over)
		snprintf(session->row.error, sizeof(session->row.error),
			"%s not taken in, the last one is '%.100s': %.80s",
			record->passed_others ? "several objects are" : "an object is",
			record->passed_name, record->passed_why);
}

void session_say_well(struct session *session)
{
	if (!session->troubled)
		return;
	/* A rewind is the whole store's trouble, and the loop's to say. */
	if (session->failing)
		LOG(feed_recovered, .feed = session->definition.name);
	session->troubled = session->failing = false;
	session->said_kinds = 0;
	show_passed(session);
}

void session_say_passed(struct session *session)
{
	const struct record_feed *record = &session->record;
	uint64_t said = session->passed_said;

	if (record->passed_over == said)
		return;
	show_passed(session);
	if (!said)
		LOG(feed_object_unreadable, .feed = session->definition.name, .error = session->row.error);
	else if (!record->passed_over)
		LOG(feed_object_readable, .feed = session->definition.name, .object = record->passed_name);
}

/* ---- actions ---- */

static void do_list(struct session *session, const struct feed_action *action)
{
	if (action->first) {
		LOG(feed_listing, .feed = session->definition.name, .id = session->definition.id,
			.rv = action->rv);
		session->row.lists++;
		session->row.list_done = session->row.list_total = 0;
		stats_add(session->shared->stats, STAT_LISTS, 1);
		if (record_list_begin(&session->record) < 0)
			return; /* the batch failed: the loop rewinds */
	}
	session_call_start(session, action);
}

static void do_watch(struct session *session, const struct feed_action *action)
{
	session->row.watches++;
	stats_add(session->shared->stats, STAT_WATCHES, 1);
	LOG(feed_watching, .feed = session->definition.name, .rv = action->rv);
	if (action->keep)
		session_stream_go_on(session);
	else
		session_call_start(session, action);
}

/* Discovery says a while later what the server's 404 said: no answer of one that is just starting. */
static void absent_again(struct session *session, const char *why)
{
	session_fail_with(session, FAILURE_ABSENT, why);
	session_drop_begin(session);
}

static void do_resolve(struct session *session)
{
	const struct feed_definition *d = &session->definition;
	struct resource resource;
	char name[512];

	snprintf(name, sizeof(name), "%s.%s%s%s", d->resource, d->version, *d->group ? "." : "",
		d->group);
	int r = discovery_find(session->shared->discovery, name, &resource);
	if (r == FOUND)
		session_step_and_do(session, (struct feed_input){.on = FEED_ON_RESOLVED});
	else if (r == ERR_NO_RESOURCE)
		absent_again(session, err_text(r));
	else if (r != AGAIN)
		session_fail_with(session, FAILURE_NETWORK, err_text(r));
}

/* The request, what of it still waits to be taken, and the end of the list that it brought: a sweep
 * that went on into the next attempt would find nothing seen, and delete everything. */
static void let_go(struct session *session)
{
	http_cancel(&session->call);
	session->over = session->finishing = false;
	buf_trim(&session->held, 0);
}

void session_perform(struct session *session, const struct feed_action *action)
{
	if (action->what == FEED_DO_NOTHING)
		return;
	if (!action->keep)
		let_go(session);
	session->action = *action;
	session->queued_ns = 0;
	session->row_changed = true;
	switch (action->what) {
	case FEED_DO_RESOLVE:
		do_resolve(session);
		break;
	case FEED_DO_QUEUE:
		session->queued_ns = proc_monotonic_ns();
		break;
	case FEED_DO_LIST:
	case FEED_DO_STREAM:
		session->dropping = false; /* it has come back: the list goes on in the same bracket */
		do_list(session, action);
		break;
	case FEED_DO_FINISH_LIST:
		buf_reset(&session->list_rv);
		buf_str(&session->list_rv, action->rv);
		session->finishing = true;
		guard_begin(&session->guard);
		break;
	case FEED_DO_WATCH:
		do_watch(session, action);
		break;
	case FEED_DO_ROLLED_BACK:
		session_set_error(session, "the server's newest state is older than ours");
		session->shared->on_forget(session->shared->arg, session);
		break;
	case FEED_DO_NOTHING:
	case FEED_DO_WAIT:
	case FEED_DO_MAX:
		break;
	}
}

/* ---- for the loop ---- */

int session_new(const struct session_shared *shared, const struct feed_definition *definition,
	const struct feed_checkpoint *checkpoint, uint32_t page_size, struct session **ret_runner)
{
	CLEANUP(session_free) struct session *session = calloc(1, sizeof(*session));

	if (!session)
		return err_set(-ENOMEM, "a feed");
	session->magic = SESSION_MAGIC;
	session->shared = shared;
	buf_init(&session->list_rv, 2048);
	guard_init(&session->guard);
	feed_machine_init(&session->feed, page_size, &shared->policy);
	session->row.feed = definition->id;
	session->row_changed = true;
	int r = definition_copy(definition, &session->definition);
	if (r >= 0)
		r = record_feed_init(&session->record, shared->recorder, definition, checkpoint);
	if (r >= 0)
		r = session_call_init(session);
	if (r < 0)
		return r;
	*ret_runner = TAKE(session);
	return 0;
}

void session_free(struct session **session)
{
	struct session *r = *session;

	if (!r)
		return;
	CHECK_OBJ(r, SESSION_MAGIC);
	http_cancel(&r->call);
	fetch_cancel(&r->probe);
	consistency_cancel(&r->check);
	(void)stats_feed_remove(r->shared->stats, r->row.feed); /* a row it may not have */
	recorder_leave(r->shared->recorder, &r->record);
	record_feed_release(&r->record);
	feed_machine_release(&r->feed);
	list_free(&r->list);
	watch_free(&r->watch);
	definition_release(&r->definition);
	buf_release(&r->error_body);
	buf_release(&r->list_rv);
	guard_release(&r->guard);
	buf_release(&r->held);
	r->magic = 0;
	free(r);
	*session = NULL;
}

const struct feed_definition *session_definition(const struct session *session)
{
	CHECK_OBJ(session, SESSION_MAGIC);
	return &session->definition;
}

int session_rename(struct session *session, const char *name)
{
	char *copy = strdup(name);

	CHECK_OBJ(session, SESSION_MAGIC);
	if (!copy)
		return err_set(-ENOMEM, "a feed's name");
	free((void *)session->definition.name);
	session->definition.name = copy;
	return 0;
}

void session_set_resync(struct session *session, uint64_t resync_ns)
{
	CHECK_OBJ(session, SESSION_MAGIC);
	session->definition.resync_ns = resync_ns;
	session->resync_open = true;
}

void session_committed(struct session *session)
{
	CHECK_OBJ(session, SESSION_MAGIC);
	session->resync_open = false;
}

void session_tune(struct session *session, uint32_t page_size, bool drop_gone)
{
	CHECK_OBJ(session, SESSION_MAGIC);
	session->feed.page_size = page_size;
	session->drop_gone = drop_gone;
}

bool session_is_listed(const struct session *session)
{
	return session->record.listed;
}

bool session_is_removed(const struct session *session)
{
	return session->record.phase == FEED_REMOVED;
}

static struct feed_input checkpoint_input(const struct session *session, enum feed_on on)
{
	const struct record_feed *record = &session->record;

	return (struct feed_input){.on = on, .rv = buf_bytes(&record->rv), .phase = record->phase,
		.list_open = record->list_ns != 0, .listed = record->listed, .resolved = true};
}

void session_start(struct session *session)
{
	CHECK_OBJ(session, SESSION_MAGIC);
	session_step_and_do(session, checkpoint_input(session, FEED_ON_START));
}

void session_tick(struct session *session)
{
	if (session->action.what == FEED_DO_WAIT)
		session_step_and_do(session, (struct feed_input){.on = FEED_ON_TICK});
}

void session_discovered(struct session *session, int result)
{
	if (session->action.what != FEED_DO_RESOLVE || session->stopped)
		return;
	if (result < 0)
		session_fail_with(session, FAILURE_NETWORK, err_text(result));
	else
		do_resolve(session);
}

static void say_listed(struct session *session)
{
	const struct record_feed *record = &session->record;

	session_say_well(session);
	LOG(feed_listed, .feed = session->definition.name, .id = session->definition.id,
		.objects = record->items, .rv = buf_cstr(&session->list_rv));
	session->row.error[0] = '\0';
	session->passed_said = 0;
	session_say_passed(session);
}

/* What is said stays the feed's error until a list is taken. */
static void hold_list(struct session *session)
{
	const struct guard *guard = &session->guard;
	char text[STATS_TEXT];

	snprintf(text, sizeof(text), "the list of rv %.60s lacks %" PRIu64 " of %" PRIu64
		" objects: held until a second list says so too", buf_cstr(&session->list_rv),
		guard->missing, guard->known);
	LOG(feed_list_held, .feed = session->definition.name, .error = text);
	session_set_error(session, text);
	session->failing = true;
	stats_add(session->shared->stats, STAT_LISTS_HELD, 1);
	session->finishing = false;
	session_step_and_do(session, (struct feed_input){.on = FEED_ON_DOUBTED});
}

int session_work(struct session *session)
{
	CHECK_OBJ(session, SESSION_MAGIC);
	int more = session_check_work(session);
	if (session->dropping)
		return session_drop_work(session);
	if (!session->finishing)
		return more;
	int r = failpoint_pass(FAILPOINT_LIST_SWEEP);
	if (r < 0)
		return recorder_fail(session->shared->recorder, r);
	r = guard_look(&session->guard, &session->record, session->shared->policy.hold_percent);
	if (r == GUARD_HOLD) {
		hold_list(session);
		return 0;
	}
	if (r == GUARD_PASS)
		r = record_list_end(&session->record, buf_bytes(&session->list_rv));
	if (r == AGAIN)
		return AGAIN;
	if (r >= 0)
		r = session->shared->on_list_end(session->shared->list_arg, session);
	if (r < 0 || session->stopped) /* its list was the last thing it was wanted for */
		return r;
	session->finishing = false;
	guard_end(&session->guard);
	session->check_period = 0; /* what the list brought is to be committed first: planned anew */
	say_listed(session);
	session_step_and_do(session, (struct feed_input){.on = FEED_ON_LISTED,
		.unreadable = session->record.passed_over});
	return more;
}

uint64_t session_until(const struct session *session)
{
	return session->action.what == FEED_DO_WAIT ? session->action.until_ns : UINT64_MAX;
}

uint64_t session_queued(const struct session *session)
{
	return session->queued_ns;
}

void session_take_turn(struct session *session)
{
	session_step_and_do(session, (struct feed_input){.on = FEED_ON_TURN});
}

bool session_is_listing(const struct session *session)
{
	enum feed_do what = session->action.what;

	return what == FEED_DO_LIST || what == FEED_DO_STREAM || what == FEED_DO_FINISH_LIST;
}

void session_stop(struct session *session)
{
	CHECK_OBJ(session, SESSION_MAGIC);
	let_go(session);
	consistency_cancel(&session->check);
	fetch_cancel(&session->probe);
	session->stopped = true;
}

int session_rewind(struct session *session, const char *why)
{
	session_stop(session);
	session->stopped = false;
	session_set_error(session, why);
	session->finishing = session->has_next = session->dropping = false;
	if (session->resync_open)
		session->definition.resync_ns = SESSION_NO_RESYNC;
	session->resync_open = false;
	int r = record_feed_reload(&session->record);
	if (r >= 0)
		session_step_and_do(session, checkpoint_input(session, FEED_ON_REWIND));
	return r;
}

void session_resume(struct session *session)
{
	session_step_and_do(session, (struct feed_input){.on = FEED_ON_RESUME});
}

void session_relist(struct session *session)
{
	session_step_and_do(session, (struct feed_input){.on = FEED_ON_RELIST});
}

void session_retry_passed(struct session *session)
{
	CHECK_OBJ(session, SESSION_MAGIC);
	if (session->record.passed_over)
		session_relist(session);
}

int session_abandon_old(struct session *session, uint64_t limit_ns)
{
	struct record_feed *record = &session->record;
	uint64_t now = proc_realtime_ns();

	if (!record->listed || !record->list_begin || now < record->list_ns ||
		now - record->list_ns < limit_ns)
		return 0;
	LOG(feed_list_abandoned, .feed = session->definition.name, .id = session->definition.id);
	return record_list_abandon(record);
}

uint64_t session_list_begin(const struct session *session)
{
	const struct record_feed *record = &session->record;

	return record->listed && record->list_begin ? record->list_begin : UINT64_MAX;
}

void session_report(struct session *session)
{
	if (!session->row_changed)
		return;
	session->row_changed = false;
	session->row.phase = feed_machine_phase(&session->feed);
	if (session->action.what == FEED_DO_LIST || session->action.what == FEED_DO_STREAM)
		session->row.list_done = session->record.items;
	(void)stats_feed_set(session->shared->stats, &session->row); /* no room: no row */
}
