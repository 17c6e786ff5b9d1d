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

void runner_step(struct runner *runner, struct feed_input in, struct feed_action *ret_action)
{
	/* Random numbers are for pauses and time limits, not for every event. */
	bool hot = in.on == FEED_ON_EVENT || in.on == FEED_ON_ALIVE;

	in.now_ns = proc_monotonic_ns();
	in.random = hot ? in.now_ns : pace_random();
	if (turns_to_server(in.on))
		in.span_ns = pace_span(runner->shared->pace, in.now_ns);
	feed_step(&runner->feed, &in, ret_action);
	if (ret_action->phase_changed) {
		log_event(LOG_NOTICE, "feed", feed_phase_name(feed_phase(&runner->feed)),
			"feed=%s id=%u", log_quote(runner->definition.name), runner->definition.id);
		record_phase(&runner->record, feed_phase(&runner->feed));
		runner->row_changed = true;
	}
}

void runner_step_and_do(struct runner *runner, struct feed_input in)
{
	struct feed_action action;

	runner_step(runner, in, &action);
	runner_perform(runner, &action);
}

/* Until say_well; a feed with an error is not live. */
void runner_set_error(struct runner *runner, const char *text)
{
	runner->troubled = true;
	snprintf(runner->row.error, sizeof(runner->row.error), "%.*s",
		(int)sizeof(runner->row.error) - 1, text);
	runner->row_changed = true;
}

void runner_say_failed(struct runner *runner, const struct status *status)
{
	uint32_t kind = 1u << status->kind;
	enum log_level level = runner->said_kinds & kind ? LOG_DEBUG : LOG_WARNING;

	runner->said_kinds |= kind;
	log_event(level, "feed", "failed", "feed=%s kind=%s while=%s error=%s",
		log_quote(runner->definition.name), failure_kind_name(status->kind),
		feed_state_name(runner->feed.state), log_quote(status->text));
	runner_set_error(runner, status->text);
	runner->failing = true;
	runner->row.retries++;
	stats_add(runner->shared->stats, STAT_HTTP_ERRORS, 1);
}

void runner_fail(struct runner *runner, const struct status *status)
{
	/* Where discovery itself says that it is absent, nothing new has been learnt. */
	bool known = status->kind == FAILURE_ABSENT && runner->feed.state == FEED_AT_RESOLVING;

	runner_say_failed(runner, status);
	if (status->kind == FAILURE_ABSENT && !known && runner->shared->discovery)
		discovery_expire(runner->shared->discovery);
	if (!known)
		runner->shared->on_doubt(runner->shared->arg, runner, status->kind);
	runner_step_and_do(runner, (struct feed_input){.on = FEED_ON_FAILED, .status = status});
}

void runner_fail_with(struct runner *runner, enum failure_kind kind, const char *text)
{
	struct status status;

	status_set(kind, text, &status);
	runner_fail(runner, &status);
}

/* The error of a feed that is well but for what it passes over. */
static void show_passed(struct runner *runner)
{
	const struct record_feed *record = &runner->record;

	runner->row.error[0] = '\0';
	runner->row_changed = true;
	runner->passed_said = record->passed_over;
	if (record->passed_over)
		snprintf(runner->row.error, sizeof(runner->row.error),
			"%s not taken in, the last one is '%.100s': %.80s",
			record->passed_others ? "several objects are" : "an object is",
			record->passed_name, record->passed_why);
}

void runner_say_well(struct runner *runner)
{
	if (!runner->troubled)
		return;
	/* A rewind is the whole store's trouble, and the loop's to say. */
	if (runner->failing)
		log_event(LOG_NOTICE, "feed", "recovered", "feed=%s",
			log_quote(runner->definition.name));
	runner->troubled = runner->failing = false;
	runner->said_kinds = 0;
	show_passed(runner);
}

void runner_say_passed(struct runner *runner)
{
	const struct record_feed *record = &runner->record;
	uint64_t said = runner->passed_said;

	if (record->passed_over == said)
		return;
	show_passed(runner);
	if (!said)
		log_event(LOG_ERROR, "feed", "unreadable", "feed=%s error=%s",
			log_quote(runner->definition.name), log_quote(runner->row.error));
	else if (!record->passed_over)
		log_event(LOG_NOTICE, "feed", "readable", "feed=%s object=%s",
			log_quote(runner->definition.name), log_quote(record->passed_name));
}

/* ---- actions ---- */

static void do_list(struct runner *runner, const struct feed_action *action)
{
	if (action->first) {
		log_event(LOG_INFO, "feed", "listing", "feed=%s id=%u rv=%s",
			log_quote(runner->definition.name), runner->definition.id, log_quote(action->rv));
		runner->row.lists++;
		runner->row.list_done = runner->row.list_total = 0;
		stats_add(runner->shared->stats, STAT_LISTS, 1);
		if (record_list_begin(&runner->record) < 0)
			return; /* the batch failed: the loop rewinds */
	}
	runner_call_start(runner, action);
}

static void do_watch(struct runner *runner, const struct feed_action *action)
{
	runner->row.watches++;
	stats_add(runner->shared->stats, STAT_WATCHES, 1);
	log_event(LOG_DEBUG, "feed", "watching", "feed=%s rv=%s", log_quote(runner->definition.name),
		log_quote(action->rv));
	if (action->keep)
		runner_stream_go_on(runner);
	else
		runner_call_start(runner, action);
}

/* Discovery says a while later what the server's 404 said: no answer of one that is just starting. */
static void absent_again(struct runner *runner, const char *why)
{
	runner_fail_with(runner, FAILURE_ABSENT, why);
	runner_drop_begin(runner);
}

static void do_resolve(struct runner *runner)
{
	const struct feed_definition *d = &runner->definition;
	struct resource resource;
	char name[512];

	snprintf(name, sizeof(name), "%s.%s%s%s", d->resource, d->version, *d->group ? "." : "",
		d->group);
	int r = discovery_find(runner->shared->discovery, name, &resource);
	if (r == FOUND)
		runner_step_and_do(runner, (struct feed_input){.on = FEED_ON_RESOLVED});
	else if (r == ERR_NO_RESOURCE)
		absent_again(runner, err_text(r));
	else if (r != AGAIN)
		runner_fail_with(runner, FAILURE_NETWORK, err_text(r));
}

/* The request, what of it still waits to be taken, and the end of the list that it brought: a sweep
 * that went on into the next attempt would find nothing seen, and delete everything. */
static void let_go(struct runner *runner)
{
	http_cancel(&runner->call);
	runner->over = runner->finishing = false;
	buf_trim(&runner->held, 0);
}

void runner_perform(struct runner *runner, const struct feed_action *action)
{
	if (action->what == FEED_DO_NOTHING)
		return;
	if (!action->keep)
		let_go(runner);
	runner->action = *action;
	runner->queued_ns = 0;
	runner->row_changed = true;
	switch (action->what) {
	case FEED_DO_RESOLVE:
		do_resolve(runner);
		break;
	case FEED_DO_QUEUE:
		runner->queued_ns = proc_monotonic_ns();
		break;
	case FEED_DO_LIST:
	case FEED_DO_STREAM:
		runner->dropping = false; /* it has come back: the list goes on in the same bracket */
		do_list(runner, action);
		break;
	case FEED_DO_FINISH_LIST:
		buf_reset(&runner->list_rv);
		buf_str(&runner->list_rv, action->rv);
		runner->finishing = true;
		guard_begin(&runner->guard);
		break;
	case FEED_DO_WATCH:
		do_watch(runner, action);
		break;
	case FEED_DO_FORGET:
		runner_set_error(runner, "the server's newest state is older than ours");
		runner->shared->on_forget(runner->shared->arg, runner);
		break;
	case FEED_DO_NOTHING:
	case FEED_DO_WAIT:
	case FEED_DO_MAX:
		break;
	}
}

/* ---- for the loop ---- */

int runner_new(const struct runner_shared *shared, const struct feed_definition *definition,
	const struct feed_checkpoint *checkpoint, uint32_t page_size, struct runner **ret_runner)
{
	CLEANUP(runner_free) struct runner *runner = calloc(1, sizeof(*runner));

	if (!runner)
		return err_set(-ENOMEM, "a feed");
	runner->magic = RUNNER_MAGIC;
	runner->shared = shared;
	buf_init(&runner->list_rv, 2048);
	guard_init(&runner->guard);
	feed_init(&runner->feed, page_size, &shared->policy);
	runner->row.feed = definition->id;
	runner->row_changed = true;
	int r = definition_copy(definition, &runner->definition);
	if (r >= 0)
		r = record_feed_init(&runner->record, shared->recorder, definition, checkpoint);
	if (r >= 0)
		r = runner_call_init(runner);
	if (r < 0)
		return r;
	*ret_runner = TAKE(runner);
	return 0;
}

void runner_free(struct runner **runner)
{
	struct runner *r = *runner;

	if (!r)
		return;
	CHECK_OBJ(r, RUNNER_MAGIC);
	http_cancel(&r->call);
	fetch_cancel(&r->probe);
	consistency_cancel(&r->check);
	(void)stats_feed_remove(r->shared->stats, r->row.feed); /* a row it may not have */
	recorder_leave(r->shared->recorder, &r->record);
	record_feed_release(&r->record);
	feed_release(&r->feed);
	list_free(&r->list);
	watch_free(&r->watch);
	definition_release(&r->definition);
	buf_release(&r->error_body);
	buf_release(&r->list_rv);
	guard_release(&r->guard);
	buf_release(&r->held);
	r->magic = 0;
	free(r);
	*runner = NULL;
}

const struct feed_definition *runner_definition(const struct runner *runner)
{
	CHECK_OBJ(runner, RUNNER_MAGIC);
	return &runner->definition;
}

int runner_rename(struct runner *runner, const char *name)
{
	char *copy = strdup(name);

	CHECK_OBJ(runner, RUNNER_MAGIC);
	if (!copy)
		return err_set(-ENOMEM, "a feed's name");
	free((void *)runner->definition.name);
	runner->definition.name = copy;
	return 0;
}

void runner_set_resync(struct runner *runner, uint64_t resync_ns)
{
	CHECK_OBJ(runner, RUNNER_MAGIC);
	runner->definition.resync_ns = resync_ns;
	runner->resync_open = true;
}

void runner_committed(struct runner *runner)
{
	CHECK_OBJ(runner, RUNNER_MAGIC);
	runner->resync_open = false;
}

void runner_tune(struct runner *runner, uint32_t page_size, bool drop_gone)
{
	CHECK_OBJ(runner, RUNNER_MAGIC);
	runner->feed.page_size = page_size;
	runner->drop_gone = drop_gone;
}

bool runner_is_listed(const struct runner *runner)
{
	return runner->record.listed;
}

bool runner_is_removed(const struct runner *runner)
{
	return runner->record.phase == FEED_REMOVED;
}

static struct feed_input checkpoint_input(const struct runner *runner, enum feed_on on)
{
	const struct record_feed *record = &runner->record;

	return (struct feed_input){.on = on, .rv = buf_bytes(&record->rv), .phase = record->phase,
		.list_open = record->list_ns != 0, .listed = record->listed, .resolved = true};
}

void runner_start(struct runner *runner)
{
	CHECK_OBJ(runner, RUNNER_MAGIC);
	runner_step_and_do(runner, checkpoint_input(runner, FEED_ON_START));
}

void runner_tick(struct runner *runner)
{
	if (runner->action.what == FEED_DO_WAIT)
		runner_step_and_do(runner, (struct feed_input){.on = FEED_ON_TICK});
}

void runner_discovered(struct runner *runner, int result)
{
	if (runner->action.what != FEED_DO_RESOLVE || runner->stopped)
		return;
	if (result < 0)
		runner_fail_with(runner, FAILURE_NETWORK, err_text(result));
	else
		do_resolve(runner);
}

static void say_listed(struct runner *runner)
{
	const struct record_feed *record = &runner->record;

	runner_say_well(runner);
	log_event(LOG_NOTICE, "feed", "listed", "feed=%s id=%u objects=%" PRIu64 " rv=%s",
		log_quote(runner->definition.name), runner->definition.id, record->items,
		log_quote(buf_cstr(&runner->list_rv)));
	runner->row.error[0] = '\0';
	runner->passed_said = 0;
	runner_say_passed(runner);
}

/* What is said stays the feed's error until a list is taken. */
static void hold_list(struct runner *runner)
{
	const struct guard *guard = &runner->guard;
	char text[STATS_TEXT];

	snprintf(text, sizeof(text), "the list of rv %.60s lacks %" PRIu64 " of %" PRIu64
		" objects: held until a second list says so too", buf_cstr(&runner->list_rv),
		guard->missing, guard->known);
	log_event(LOG_WARNING, "feed", "held", "feed=%s error=%s",
		log_quote(runner->definition.name), log_quote(text));
	runner_set_error(runner, text);
	runner->failing = true;
	stats_add(runner->shared->stats, STAT_LISTS_HELD, 1);
	runner->finishing = false;
	runner_step_and_do(runner, (struct feed_input){.on = FEED_ON_DOUBTED});
}

int runner_work(struct runner *runner)
{
	CHECK_OBJ(runner, RUNNER_MAGIC);
	int more = runner_check_work(runner);
	if (runner->dropping)
		return runner_drop_work(runner);
	if (!runner->finishing)
		return more;
	int r = failpoint_pass(FAILPOINT_LIST_SWEEP);
	if (r < 0)
		return recorder_fail(runner->shared->recorder, r);
	r = guard_look(&runner->guard, &runner->record, runner->shared->policy.hold_percent);
	if (r == GUARD_HOLD) {
		hold_list(runner);
		return 0;
	}
	if (r == GUARD_PASS)
		r = record_list_end(&runner->record, buf_bytes(&runner->list_rv));
	if (r == AGAIN)
		return AGAIN;
	if (r >= 0)
		r = runner->shared->on_list_end(runner->shared->list_arg, runner);
	if (r < 0 || runner->stopped) /* its list was the last thing it was wanted for */
		return r;
	runner->finishing = false;
	guard_end(&runner->guard);
	runner->check_period = 0; /* what the list brought is to be committed first: planned anew */
	say_listed(runner);
	runner_step_and_do(runner, (struct feed_input){.on = FEED_ON_LISTED,
		.unreadable = runner->record.passed_over});
	return more;
}

uint64_t runner_until(const struct runner *runner)
{
	return runner->action.what == FEED_DO_WAIT ? runner->action.until_ns : UINT64_MAX;
}

uint64_t runner_queued(const struct runner *runner)
{
	return runner->queued_ns;
}

void runner_take_turn(struct runner *runner)
{
	runner_step_and_do(runner, (struct feed_input){.on = FEED_ON_TURN});
}

bool runner_is_listing(const struct runner *runner)
{
	enum feed_do what = runner->action.what;

	return what == FEED_DO_LIST || what == FEED_DO_STREAM || what == FEED_DO_FINISH_LIST;
}

void runner_stop(struct runner *runner)
{
	CHECK_OBJ(runner, RUNNER_MAGIC);
	let_go(runner);
	consistency_cancel(&runner->check);
	fetch_cancel(&runner->probe);
	runner->stopped = true;
}

int runner_rewind(struct runner *runner, const char *why)
{
	runner_stop(runner);
	runner->stopped = false;
	runner_set_error(runner, why);
	runner->finishing = runner->has_next = runner->dropping = false;
	if (runner->resync_open)
		runner->definition.resync_ns = RUNNER_NO_RESYNC;
	runner->resync_open = false;
	int r = record_feed_reload(&runner->record);
	if (r >= 0)
		runner_step_and_do(runner, checkpoint_input(runner, FEED_ON_REWIND));
	return r;
}

void runner_resume(struct runner *runner)
{
	runner_step_and_do(runner, (struct feed_input){.on = FEED_ON_RESUME});
}

void runner_relist(struct runner *runner)
{
	runner_step_and_do(runner, (struct feed_input){.on = FEED_ON_RELIST});
}

void runner_retry_passed(struct runner *runner)
{
	CHECK_OBJ(runner, RUNNER_MAGIC);
	if (runner->record.passed_over)
		runner_relist(runner);
}

int runner_abandon_old(struct runner *runner, uint64_t limit_ns)
{
	struct record_feed *record = &runner->record;
	uint64_t now = proc_realtime_ns();

	if (!record->listed || !record->list_begin || now < record->list_ns ||
		now - record->list_ns < limit_ns)
		return 0;
	log_event(LOG_WARNING, "feed", "abandoned", "feed=%s id=%u",
		log_quote(runner->definition.name), runner->definition.id);
	return record_list_abandon(record);
}

uint64_t runner_list_begin(const struct runner *runner)
{
	const struct record_feed *record = &runner->record;

	return record->listed && record->list_begin ? record->list_begin : UINT64_MAX;
}

void runner_report(struct runner *runner)
{
	if (!runner->row_changed)
		return;
	runner->row_changed = false;
	runner->row.phase = feed_phase(&runner->feed);
	if (runner->action.what == FEED_DO_LIST || runner->action.what == FEED_DO_STREAM)
		runner->row.list_done = runner->record.items;
	(void)stats_feed_set(runner->shared->stats, &runner->row); /* no room: no row */
}
