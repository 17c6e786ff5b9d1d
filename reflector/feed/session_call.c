/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/session_internal.h"

#include "common/check.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "common/proc.h"
#include "reflector/feed/request.h"

#define SECOND         1000000000ull
#define WATCH_SLACK_S  30
#define ERROR_BODY_MAX 8192

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
	if (*answer->warning && warnings_are_new(runner->shared->warnings, answer->warning))
		log_event(LOG_WARNING, "server", "warning", "feed=%s text=%s",
			log_quote(runner->definition.name), log_quote(answer->warning));
	if (runner->refused)
		return;
	said_something(runner);
	if (runner->action.what == FEED_DO_WATCH) {
		runner_say_well(runner);
		runner_probe_start(runner);
	}
	runner_step(runner, (struct feed_input){.on = FEED_ON_ALIVE}, &action);
}

int runner_call_unreadable(struct runner *runner, const char *what)
{
	runner->unreadable = true;
	return err_add(ERR_PROTOCOL, "%s that can't be read", what);
}

static int take_item(void *arg, struct bytes item, bool cut)
{
	struct runner *runner = arg;
	bool tolerant = feed_is_tolerant(&runner->feed);
	int r = cut ? record_large_item(&runner->record, item, tolerant)
		: record_item(&runner->record, item, tolerant);

	return r == RECORD_UNREADABLE ? runner_call_unreadable(runner, "an object") : r;
}

/* The machine may want to end this watch: that is done when the call has ended. */
static int tell(struct runner *runner, enum feed_on on, struct bytes rv)
{
	struct feed_action action;

	runner_step(runner, (struct feed_input){.on = on, .rv = rv}, &action);
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
	if (runner->action.what == FEED_DO_STREAM)
		return runner_stream_event(runner, event);
	if (bookmark)
		r = record_bookmark(&runner->record, event->object, &rv);
	else
		r = record_event(&runner->record, event, feed_is_tolerant(&runner->feed), &rv);
	if (r == RECORD_UNREADABLE)
		return runner_call_unreadable(runner, "an event");
	runner_say_passed(runner);
	return r < 0 ? r : tell(runner, bookmark ? FEED_ON_BOOKMARK : FEED_ON_EVENT, rv);
}

int runner_call_take(struct runner *runner, struct bytes bytes)
{
	int r = watch_feed(runner->watch, bytes.data, bytes.size);
	size_t used = watch_used(runner->watch);

	if (r == AGAIN)
		return runner_stream_hold(runner,
			BYTES((const char *)bytes.data + used, bytes.size - used));
	return r < 0 ? r : runner->has_next || runner->has_status ? RUNNER_STOP : 0;
}

static int on_body(void *arg, struct bytes bytes)
{
	struct runner *runner = arg;

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
	if (runner->finishing)
		return runner_stream_hold(runner, bytes);
	return runner_call_take(runner, bytes);
}

/* ---- the end of a call ---- */

static void end_page(struct runner *runner)
{
	struct list_page page;
	int r = list_end(runner->list, &page);

	if (r >= 0 && failpoint_pass(FAILPOINT_LIST_PAGE) < 0)
		r = err_set(ERR_FAILPOINT, "list page");
	if (r < 0) {
		runner_fail_with(runner, FAILURE_PROTOCOL, err_text(r));
		return;
	}
	runner->row.list_done = runner->record.items;
	runner->row.list_total = page.remaining < 0 ? 0
		: runner->record.items + (uint64_t)page.remaining;
	runner_step_and_do(runner, (struct feed_input){.on = FEED_ON_PAGE, .rv = page.rv,
		.continue_ = page.continue_, .items = page.items});
}

static void end_watch(struct runner *runner)
{
	if (runner->action.what == FEED_DO_STREAM)
		runner_fail_with(runner, FAILURE_PROTOCOL,
			"the stream ended before the bookmark that ends its initial events");
	else if (watch_partial(runner->watch))
		runner_fail_with(runner, FAILURE_NETWORK, "the watch ended inside an event");
	else
		runner_step_and_do(runner, (struct feed_input){.on = FEED_ON_ENDED});
}

static enum failure_kind kind_of_result(const struct runner *runner, int result)
{
	if (runner->unreadable)
		return FAILURE_UNREADABLE;
	if (result == ERR_CREDENTIALS)
		return FAILURE_REFUSED;
	return result == ERR_NETWORK || result == ERR_TIMEOUT || result == ERR_TLS
		? FAILURE_NETWORK : FAILURE_PROTOCOL;
}

void runner_call_end(struct runner *runner, int result, int code)
{
	const char *text;
	struct status status;

	if (recorder_error(runner->shared->recorder, &text) < 0)
		return; /* everything is about to be rewound */
	if (runner->has_next) {
		struct feed_action next = runner->next;

		runner->has_next = false;
		runner_perform(runner, &next);
	} else if (runner->has_status) {
		runner_fail(runner, &runner->status);
	} else if (runner->refused || (result >= 0 && code != 200)) {
		/* Its words may have got lost or not come to an end: the number says enough. */
		status_read(code, runner->retry_after_ns, buf_bytes(&runner->error_body), &status);
		runner_fail(runner, &status);
	} else if (result < 0) {
		runner_fail_with(runner, kind_of_result(runner, result), err_text(result));
	} else if (runner->action.what == FEED_DO_LIST) {
		end_page(runner);
	} else {
		end_watch(runner);
	}
}

static void on_done(void *arg, int result, int code)
{
	struct runner *runner = arg;

	CHECK_OBJ(runner, RUNNER_MAGIC);
	runner->call = NULL;
	if (runner->finishing)
		runner->over = true; /* the list is whole: what ended is the watch behind it */
	else
		runner_call_end(runner, result, code);
}

/* ---- the request ---- */

void runner_call_start(struct runner *runner, const struct feed_action *action)
{
	bool watch = action->what == FEED_DO_WATCH, stream = action->what == FEED_DO_STREAM;
	const struct config_policy *policy = &runner->shared->policy;
	uint64_t answer_ns = policy->answer_ns;
	struct buf path = BUF_INIT;
	struct http_request request = {
		.accept = request_accept(&runner->definition, watch || stream),
		.gzip = false, /* what it saves on the way it costs both ends many times over */
		.bulk = !watch,
		.renewable = watch,
		/* Some proxies hold a watch's head back until something comes, a bookmark at the latest. */
		.first_byte_ns = watch || stream ? answer_ns + answer_ns / 2 : answer_ns,
		.idle_ns = watch ? 0 : answer_ns,
		.total_ns = watch || stream ? (action->timeout_s + WATCH_SLACK_S) * SECOND : 0,
		.arg = runner,
		.on_status = on_status,
		.on_body = on_body,
		.on_done = on_done,
	};

	buf_reset(&runner->error_body);
	runner->refused = runner->unreadable = runner->has_next = runner->has_status = false;
	runner->retry_after_ns = 0;
	list_set_max(runner->list, policy->max_object_bytes);
	list_reset(runner->list);
	watch_set_max(runner->watch, policy->max_object_bytes);
	watch_reset(runner->watch);
	int r = request_path(&runner->definition, action, &path);
	if (r >= 0) {
		request.path = buf_cstr(&path);
		r = http_start(runner->shared->http, &request, &runner->call);
	}
	buf_release(&path);
	stats_add(runner->shared->stats, STAT_REQUESTS, 1);
	/* No memory: as if the server were not there; the pause is what helps. */
	if (r < 0)
		runner_fail_with(runner, FAILURE_NETWORK, err_text(r));
}

int runner_call_init(struct runner *runner)
{
	buf_init(&runner->error_body, ERROR_BODY_MAX);
	int r = list_new(&(struct list_options){.item_fn = take_item, .arg = runner}, &runner->list);

	return r < 0 ? r : watch_new(&(struct watch_options){.event_fn = take_event, .arg = runner},
		&runner->watch);
}
