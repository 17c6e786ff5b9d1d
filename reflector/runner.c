/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/runner.h"

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
#include "reflector/batch.h"
#include "reflector/definition.h"
#include "reflector/fetch.h"
#include "reflector/list.h"
#include "reflector/request.h"

#define RUNNER_MAGIC   0x52554e52u
#define SECOND         1000000000ull
#define ANSWER_TIMEOUT (60 * SECOND)
#define WATCH_SLACK_S  30
#define ERROR_BODY_MAX 8192
#define PROBE_TIMEOUT  (20 * SECOND)

/* Our own ends of a call, given to http as the result of on_body. */
enum { STOP = 1 };

struct runner {
	uint32_t magic;
	const struct runner_shared *shared;
	struct feed_definition definition;
	struct feed feed;
	struct record_feed record;
	struct feed_action action; /* what is being done */
	struct buf list_rv;        /* finishing: the list is as of this */
	bool finishing;
	bool failing;              /* said so in the log */
	uint64_t queued_ns;

	struct fetch *probe;

	struct http_call *call;
	struct list *list;
	struct watch *watch;
	struct buf error_body;
	bool refused;    /* the answer is no success: its body says why */
	bool unreadable; /* the call ended for an object that can't be read */
	bool has_next;   /* the machine wants something else: after the call */
	struct feed_action next;
	bool has_status; /* an ERROR event ended the stream */
	struct status status;
	uint64_t retry_after_ns;

	struct stats_feed row;
	bool row_changed;
};

static int take_item(void *arg, struct bytes item);
static int take_event(void *arg, const struct watch_event *event);
static void perform(struct runner *runner, const struct feed_action *action);

/* ---- the machine ---- */

static uint64_t random_bits(void)
{
	uint64_t bits = proc_monotonic_ns();

	(void)proc_random(&bits, sizeof(bits)); /* only spreads the load */
	return bits;
}

static void step(struct runner *runner, struct feed_input in, struct feed_action *ret_action)
{
	/* Random numbers are for pauses and time limits, not for every event. */
	bool hot = in.on == FEED_ON_EVENT || in.on == FEED_ON_ALIVE;

	in.now_ns = proc_monotonic_ns();
	in.random = hot ? in.now_ns : random_bits();
	feed_step(&runner->feed, &in, ret_action);
	if (ret_action->phase_changed) {
		log_event(LOG_NOTICE, "feed", feed_phase_name(feed_phase(&runner->feed)),
			"feed=%s id=%u", log_quote(runner->definition.name), runner->definition.id);
		record_phase(&runner->record, feed_phase(&runner->feed));
		runner->row_changed = true;
	}
}

static void step_and_do(struct runner *runner, struct feed_input in)
{
	struct feed_action action;

	step(runner, in, &action);
	perform(runner, &action);
}

/* Until say_well; a feed with an error is not live. */
static void set_error(struct runner *runner, const char *text)
{
	runner->failing = true;
	snprintf(runner->row.error, sizeof(runner->row.error), "%.*s",
		(int)sizeof(runner->row.error) - 1, text);
	runner->row_changed = true;
}

static void say_failed(struct runner *runner, const struct status *status)
{
	enum log_level level = runner->failing ? LOG_DEBUG : LOG_WARNING;

	log_event(level, "feed", "failed", "feed=%s kind=%s while=%s error=%s",
		log_quote(runner->definition.name), failure_kind_name(status->kind),
		feed_state_name(runner->feed.state), log_quote(status->text));
	set_error(runner, status->text);
	runner->row.retries++;
	stats_add(runner->shared->stats, STAT_HTTP_ERRORS, 1);
}

static void fail(struct runner *runner, const struct status *status)
{
	say_failed(runner, status);
	if (status->kind == FAILURE_ABSENT && runner->shared->discovery)
		discovery_expire(runner->shared->discovery);
	runner->shared->on_doubt(runner->shared->arg, runner, status->kind);
	step_and_do(runner, (struct feed_input){.on = FEED_ON_FAILED, .status = status});
}

static void fail_with(struct runner *runner, enum failure_kind kind, const char *text)
{
	struct status status;

	status_set(kind, text, &status);
	fail(runner, &status);
}

static void say_well(struct runner *runner)
{
	if (!runner->failing)
		return;
	runner->failing = false;
	log_event(LOG_NOTICE, "feed", "recovered", "feed=%s", log_quote(runner->definition.name));
	runner->row.error[0] = '\0';
}

/* ---- the probe ---- */

/* Behind us: whether that is another past or only a cache that lags, a list for "" tells. */
static void on_probe(void *arg, const struct fetch_answer *answer)
{
	struct runner *runner = arg;
	struct status status;

	runner->probe = NULL;
	if (answer->result < 0)
		return; /* the watch itself will notice */
	status_read(answer->status, 0, answer->body, &status);
	if (status.kind != FAILURE_RV_AHEAD || runner->action.what != FEED_DO_WATCH)
		return;
	say_failed(runner, &status);
	step_and_do(runner, (struct feed_input){.on = FEED_ON_RELIST});
}

static void probe(struct runner *runner)
{
	struct buf path = BUF_INIT;

	fetch_cancel(&runner->probe);
	int r = request_probe_path(&runner->definition, buf_cstr(&runner->feed.rv), &path);
	if (r >= 0)
		r = fetch_start(runner->shared->http, &(struct fetch_request){.path = buf_cstr(&path),
			.limit = ERROR_BODY_MAX, .total_ns = PROBE_TIMEOUT, .done = on_probe,
			.arg = runner}, &runner->probe);
	buf_release(&path);
	if (r < 0)
		err_clear(); /* asked again with the next watch */
}

/* ---- answers ---- */

/* What the server refuses is no contact: the data ages meanwhile. */
static void said_something(struct runner *runner)
{
	runner->row.last_contact_ns = proc_realtime_ns();
	runner->row_changed = true;
}

static void on_status(void *arg, const struct http_answer *answer)
{
	struct runner *runner = arg;
	struct feed_action action;

	CHECK_OBJ(runner, RUNNER_MAGIC);
	runner->refused = answer->status != 200;
	runner->retry_after_ns = answer->has_retry_after ? answer->retry_after_ns : 0;
	if (*answer->warning)
		log_event(LOG_DEBUG, "feed", "warning", "feed=%s text=%s",
			log_quote(runner->definition.name), log_quote(answer->warning));
	if (runner->refused)
		return;
	said_something(runner);
	if (runner->action.what == FEED_DO_WATCH) {
		say_well(runner);
		probe(runner);
	}
	step(runner, (struct feed_input){.on = FEED_ON_ALIVE}, &action);
}

static int take_item(void *arg, struct bytes item)
{
	struct runner *runner = arg;
	int r = record_item(&runner->record, item, feed_is_tolerant(&runner->feed));

	if (r != RECORD_UNREADABLE)
		return r;
	runner->unreadable = true;
	return err_add(ERR_PROTOCOL, "an object that can't be read");
}

/* The machine may want to end this watch: that is done when the call has ended. */
static int tell(struct runner *runner, enum feed_on on, struct bytes rv)
{
	struct feed_action action;

	step(runner, (struct feed_input){.on = on, .rv = rv}, &action);
	runner->row.events++;
	stats_add(runner->shared->stats, STAT_EVENTS, 1);
	if (action.what == FEED_DO_NOTHING)
		return 0;
	runner->has_next = true;
	runner->next = action;
	return END;
}

static int take_event(void *arg, const struct watch_event *event)
{
	struct runner *runner = arg;
	bool bookmark = event->type == WATCH_BOOKMARK;
	struct bytes rv;
	int r;

	if (event->type == WATCH_ERROR) {
		status_read(0, 0, event->object, &runner->status);
		runner->has_status = true;
		return END;
	}
	if (bookmark)
		r = record_bookmark(&runner->record, event->object, &rv);
	else
		r = record_event(&runner->record, event, feed_is_tolerant(&runner->feed), &rv);
	if (r == RECORD_UNREADABLE) {
		runner->unreadable = true;
		return err_add(ERR_PROTOCOL, "a %s event that can't be read",
			watch_type_name(event->type));
	}
	return r < 0 ? r : tell(runner, bookmark ? FEED_ON_BOOKMARK : FEED_ON_EVENT, rv);
}

static int on_body(void *arg, struct bytes bytes)
{
	struct runner *runner = arg;
	int r;

	CHECK_OBJ(runner, RUNNER_MAGIC);
	runner->row.bytes += bytes.size;
	runner->row_changed = true;
	stats_add(runner->shared->stats, STAT_BYTES_READ, bytes.size);
	if (runner->refused) {
		size_t room = ERROR_BODY_MAX - runner->error_body.size;

		buf_put(&runner->error_body, bytes.data, bytes.size < room ? bytes.size : room);
		return 0;
	}
	said_something(runner);
	if (runner->action.what == FEED_DO_LIST)
		return list_feed(runner->list, bytes.data, bytes.size);
	r = watch_feed(runner->watch, bytes.data, bytes.size);
	return r < 0 ? r : runner->has_next || runner->has_status ? STOP : 0;
}

/* ---- the end of a call ---- */

static void end_page(struct runner *runner)
{
	struct list_page page;
	int r = list_end(runner->list, &page);

	if (r >= 0 && failpoint_pass(FAILPOINT_LIST_PAGE) < 0)
		r = err_set(ERR_FAILPOINT, "list page");
	if (r < 0) {
		fail_with(runner, FAILURE_PROTOCOL, err_text(r));
		return;
	}
	runner->row.list_done = runner->record.items;
	runner->row.list_total = page.remaining < 0 ? 0
		: runner->record.items + (uint64_t)page.remaining;
	step_and_do(runner, (struct feed_input){.on = FEED_ON_PAGE, .rv = page.rv,
		.continue_ = page.continue_, .items = page.items});
}

static void end_watch(struct runner *runner)
{
	if (watch_partial(runner->watch))
		fail_with(runner, FAILURE_NETWORK, "the watch ended inside an event");
	else
		step_and_do(runner, (struct feed_input){.on = FEED_ON_ENDED});
}

static enum failure_kind kind_of_result(const struct runner *runner, int result)
{
	if (runner->unreadable)
		return FAILURE_UNREADABLE;
	return result == ERR_NETWORK || result == ERR_TIMEOUT || result == ERR_TLS
		? FAILURE_NETWORK : FAILURE_PROTOCOL;
}

static void on_done(void *arg, int result, int code)
{
	struct runner *runner = arg;
	const char *text;
	struct status status;

	CHECK_OBJ(runner, RUNNER_MAGIC);
	runner->call = NULL;
	if (recorder_error(runner->shared->recorder, &text) < 0)
		return; /* everything is about to be rewound */
	if (runner->has_next) {
		struct feed_action next = runner->next;

		runner->has_next = false;
		perform(runner, &next);
	} else if (runner->has_status) {
		fail(runner, &runner->status);
	} else if (result < 0) {
		fail_with(runner, kind_of_result(runner, result), err_text(result));
	} else if (code != 200) {
		status_read(code, runner->retry_after_ns, buf_bytes(&runner->error_body), &status);
		fail(runner, &status);
	} else if (runner->action.what == FEED_DO_LIST) {
		end_page(runner);
	} else {
		end_watch(runner);
	}
}

/* ---- actions ---- */

static void ask(struct runner *runner, const struct feed_action *action)
{
	bool watch = action->what == FEED_DO_WATCH;
	struct buf path = BUF_INIT;
	struct http_request request = {
		.accept = request_accept(&runner->definition, watch),
		.gzip = false, /* what it saves on the way it costs both ends many times over */
		.bulk = !watch,
		.first_byte_ns = ANSWER_TIMEOUT + (watch ? WATCH_SLACK_S * SECOND : 0),
		.idle_ns = watch ? 0 : ANSWER_TIMEOUT,
		.total_ns = watch ? (action->timeout_s + WATCH_SLACK_S) * SECOND : 0,
		.arg = runner,
		.on_status = on_status,
		.on_body = on_body,
		.on_done = on_done,
	};

	buf_reset(&runner->error_body);
	runner->refused = runner->unreadable = runner->has_next = runner->has_status = false;
	runner->retry_after_ns = 0;
	if (watch)
		watch_reset(runner->watch);
	else
		list_reset(runner->list);
	int r = request_path(&runner->definition, action, &path);
	if (r >= 0) {
		request.path = buf_cstr(&path);
		r = http_start(runner->shared->http, &request, &runner->call);
	}
	buf_release(&path);
	stats_add(runner->shared->stats, STAT_REQUESTS, 1);
	/* No memory: as if the server were not there; the pause is what helps. */
	if (r < 0)
		fail_with(runner, FAILURE_NETWORK, err_text(r));
}

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
	ask(runner, action);
}

static void do_watch(struct runner *runner, const struct feed_action *action)
{
	runner->row.watches++;
	stats_add(runner->shared->stats, STAT_WATCHES, 1);
	log_event(LOG_DEBUG, "feed", "watching", "feed=%s rv=%s", log_quote(runner->definition.name),
		log_quote(action->rv));
	ask(runner, action);
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
		step_and_do(runner, (struct feed_input){.on = FEED_ON_RESOLVED});
	else if (r == ERR_NO_RESOURCE)
		fail_with(runner, FAILURE_ABSENT, err_text(r));
	else if (r != AGAIN)
		fail_with(runner, FAILURE_NETWORK, err_text(r));
}

static void perform(struct runner *runner, const struct feed_action *action)
{
	if (action->what == FEED_DO_NOTHING)
		return;
	http_cancel(&runner->call);
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
		do_list(runner, action);
		break;
	case FEED_DO_FINISH_LIST:
		buf_reset(&runner->list_rv);
		buf_str(&runner->list_rv, action->rv);
		runner->finishing = true;
		break;
	case FEED_DO_WATCH:
		do_watch(runner, action);
		break;
	case FEED_DO_FORGET:
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
	buf_init(&runner->error_body, ERROR_BODY_MAX);
	buf_init(&runner->list_rv, 2048);
	feed_init(&runner->feed, page_size);
	runner->row.feed = definition->id;
	runner->row_changed = true;
	int r = definition_copy(definition, &runner->definition);
	if (r >= 0)
		r = record_feed_init(&runner->record, shared->recorder, definition, checkpoint);
	if (r >= 0)
		r = list_new(&(struct list_options){.item_fn = take_item, .arg = runner},
			&runner->list);
	if (r >= 0)
		r = watch_new(&(struct watch_options){.event_fn = take_event, .arg = runner},
			&runner->watch);
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
	(void)stats_feed_remove(r->shared->stats, r->row.feed); /* a row it may not have */
	recorder_leave(r->shared->recorder, &r->record);
	record_feed_release(&r->record);
	feed_release(&r->feed);
	list_free(&r->list);
	watch_free(&r->watch);
	definition_release(&r->definition);
	buf_release(&r->error_body);
	buf_release(&r->list_rv);
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

void runner_set_page_size(struct runner *runner, uint32_t page_size)
{
	CHECK_OBJ(runner, RUNNER_MAGIC);
	runner->feed.page_size = page_size;
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
	step_and_do(runner, checkpoint_input(runner, FEED_ON_START));
}

void runner_tick(struct runner *runner)
{
	if (runner->action.what == FEED_DO_WAIT)
		step_and_do(runner, (struct feed_input){.on = FEED_ON_TICK});
}

void runner_discovered(struct runner *runner, int result)
{
	if (runner->action.what != FEED_DO_RESOLVE)
		return;
	if (result < 0)
		fail_with(runner, FAILURE_NETWORK, err_text(result));
	else
		do_resolve(runner);
}

static void say_listed(struct runner *runner)
{
	const struct record_feed *record = &runner->record;

	say_well(runner);
	log_event(LOG_NOTICE, "feed", "listed", "feed=%s id=%u objects=%" PRIu64 " rv=%s",
		log_quote(runner->definition.name), runner->definition.id, record->items,
		log_quote(buf_cstr(&runner->list_rv)));
	runner->row.error[0] = '\0';
	if (!record->unreadable)
		return;
	snprintf(runner->row.error, sizeof(runner->row.error),
		"%" PRIu64 " objects of the list can't be read, the last one is '%.150s'",
		record->unreadable, record->unreadable_name);
	log_event(LOG_ERROR, "feed", "unreadable", "feed=%s error=%s",
		log_quote(runner->definition.name), log_quote(runner->row.error));
}

int runner_work(struct runner *runner)
{
	CHECK_OBJ(runner, RUNNER_MAGIC);
	if (!runner->finishing)
		return 0;
	int r = failpoint_pass(FAILPOINT_LIST_SWEEP);
	if (r < 0)
		return recorder_fail(runner->shared->recorder, r);
	r = record_list_end(&runner->record, buf_bytes(&runner->list_rv));
	if (r == AGAIN)
		return AGAIN;
	if (r >= 0)
		r = runner->shared->on_list_end(runner->shared->list_arg, runner);
	if (r < 0)
		return r;
	runner->finishing = false;
	say_listed(runner);
	step_and_do(runner, (struct feed_input){.on = FEED_ON_LISTED,
		.unreadable = runner->record.unreadable});
	return 0;
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
	step_and_do(runner, (struct feed_input){.on = FEED_ON_TURN});
}

bool runner_is_listing(const struct runner *runner)
{
	return runner->action.what == FEED_DO_LIST || runner->action.what == FEED_DO_FINISH_LIST;
}

int runner_rewind(struct runner *runner, const char *why)
{
	CHECK_OBJ(runner, RUNNER_MAGIC);
	http_cancel(&runner->call);
	fetch_cancel(&runner->probe);
	set_error(runner, why);
	runner->finishing = runner->has_next = false;
	int r = record_feed_reload(&runner->record);
	if (r >= 0)
		step_and_do(runner, checkpoint_input(runner, FEED_ON_REWIND));
	return r;
}

void runner_resume(struct runner *runner)
{
	step_and_do(runner, (struct feed_input){.on = FEED_ON_RESUME});
}

void runner_relist(struct runner *runner)
{
	runner->finishing = false;
	step_and_do(runner, (struct feed_input){.on = FEED_ON_RELIST});
}

int runner_abandon_old(struct runner *runner, uint64_t limit_ns)
{
	struct record_feed *record = &runner->record;

	if (!record->listed || !record->list_begin ||
		proc_realtime_ns() < record->list_ns + limit_ns)
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
	if (runner->action.what == FEED_DO_LIST)
		runner->row.list_done = runner->record.items;
	(void)stats_feed_set(runner->shared->stats, &runner->row); /* no room: no row */
}
