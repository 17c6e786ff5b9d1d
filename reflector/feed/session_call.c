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
static void said_something(struct session *session)
{
	session->row.last_contact_ns = proc_realtime_ns();
	session->row_changed = true;
}

static void on_status(void *arg, const struct http_answer *answer)
{
	struct session *session = arg;
	struct feed_action action;

	CHECK_OBJ(session, SESSION_MAGIC);
	session->refused = answer->status != 200;
	session->retry_after_ns = answer->has_retry_after ? answer->retry_after_ns : 0;
	if (*answer->warning && warnings_are_new(session->shared->warnings, answer->warning))
		LOG(server_warning, .feed = session->definition.name, .text = answer->warning);
	if (session->refused)
		return;
	said_something(session);
	if (session->action.what == FEED_DO_WATCH) {
		session_say_well(session);
		session_probe_start(session);
	}
	session_step(session, (struct feed_input){.on = FEED_ON_ALIVE}, &action);
}

int session_call_unreadable(struct session *session, const char *what)
{
	session->unreadable = true;
	return err_add(ERR_PROTOCOL, "%s that can't be read", what);
}

static int take_item(void *arg, struct bytes item, bool cut)
{
	struct session *session = arg;
	bool tolerant = session->feed.tolerant;
	int r = cut ? record_large_item(&session->record, item, tolerant)
		: record_item(&session->record, item, tolerant);

	return r == RECORD_UNREADABLE ? session_call_unreadable(session, "an object") : r;
}

/* The machine may want to end this watch: that is done when the call has ended. */
static int tell(struct session *session, enum feed_on on, struct bytes rv)
{
	struct feed_action action;

	session_step(session, (struct feed_input){.on = on, .rv = rv}, &action);
	session->row.events++;
	stats_add(session->shared->stats, STAT_EVENTS, 1);
	if (action.what == FEED_DO_NOTHING)
		return 0;
	session->has_next = true;
	session->next = action;
	return END;
}

static int take_event(void *arg, const struct watch_event *event)
{
	struct session *session = arg;
	bool bookmark = event->type == WATCH_BOOKMARK;
	struct bytes rv;
	int r;

	if (event->type == WATCH_ERROR) {
		status_read(0, 0, event->object, &session->status);
		session->has_status = true;
		return END;
	}
	if (session->action.what == FEED_DO_STREAM)
		return session_stream_event(session, event);
	if (bookmark)
		r = record_bookmark(&session->record, event->object, &rv);
	else
		r = record_event(&session->record, event, session->feed.tolerant, &rv);
	if (r == RECORD_UNREADABLE)
		return session_call_unreadable(session, "an event");
	session_say_passed(session);
	return r < 0 ? r : tell(session, bookmark ? FEED_ON_BOOKMARK : FEED_ON_EVENT, rv);
}

int session_call_take(struct session *session, struct bytes bytes)
{
	int r = watch_feed(session->watch, bytes.data, bytes.size);
	size_t used = watch_used(session->watch);

	if (r == AGAIN)
		return session_stream_hold(session,
			BYTES((const char *)bytes.data + used, bytes.size - used));
	return r < 0 ? r : session->has_next || session->has_status ? SESSION_STOP : 0;
}

static int on_body(void *arg, struct bytes bytes)
{
	struct session *session = arg;

	CHECK_OBJ(session, SESSION_MAGIC);
	session->row.bytes += bytes.size;
	session->row_changed = true;
	stats_add(session->shared->stats, STAT_BYTES_READ, bytes.size);
	if (session->refused) {
		size_t room = ERROR_BODY_MAX - session->error_body.size;

		buf_put(&session->error_body, bytes.data, bytes.size < room ? bytes.size : room);
		return 0;
	}
	said_something(session);
	if (session->action.what == FEED_DO_LIST)
		return list_feed(session->list, bytes.data, bytes.size);
	if (session->finishing)
		return session_stream_hold(session, bytes);
	return session_call_take(session, bytes);
}

/* ---- the end of a call ---- */

static void end_page(struct session *session)
{
	struct list_page page;
	int r = list_end(session->list, &page);

	if (r >= 0 && failpoint_pass(FAILPOINT_LIST_PAGE) < 0)
		r = err_set(ERR_FAILPOINT, "list page");
	if (r < 0) {
		session_fail_with(session, FAILURE_PROTOCOL, err_text(r));
		return;
	}
	session->row.list_done = session->record.items;
	session->row.list_total = page.remaining < 0 ? 0
		: session->record.items + (uint64_t)page.remaining;
	session_step_and_do(session, (struct feed_input){.on = FEED_ON_PAGE, .rv = page.rv,
		.continue_ = page.continue_, .items = page.items});
}

static void end_watch(struct session *session)
{
	if (session->action.what == FEED_DO_STREAM)
		session_fail_with(session, FAILURE_PROTOCOL,
			"the stream ended before the bookmark that ends its initial events");
	else if (watch_partial(session->watch))
		session_fail_with(session, FAILURE_NETWORK, "the watch ended inside an event");
	else
		session_step_and_do(session, (struct feed_input){.on = FEED_ON_ENDED});
}

static enum failure_kind kind_of_result(const struct session *session, int result)
{
	if (session->unreadable)
		return FAILURE_UNREADABLE;
	if (result == ERR_CREDENTIALS)
		return FAILURE_REFUSED;
	return result == ERR_NETWORK || result == ERR_TIMEOUT || result == ERR_TLS
		? FAILURE_NETWORK : FAILURE_PROTOCOL;
}

void session_call_end(struct session *session, int result, int code)
{
	const char *text;
	struct status status;

	if (recorder_error(session->shared->recorder, &text) < 0)
		return; /* everything is about to be rewound */
	if (session->has_next) {
		struct feed_action next = session->next;

		session->has_next = false;
		session_perform(session, &next);
	} else if (session->has_status) {
		session_fail(session, &session->status);
	} else if (session->refused || (result >= 0 && code != 200)) {
		/* Its words may have got lost or not come to an end: the number says enough. */
		status_read(code, session->retry_after_ns, buf_bytes(&session->error_body), &status);
		session_fail(session, &status);
	} else if (result < 0) {
		session_fail_with(session, kind_of_result(session, result), err_text(result));
	} else if (session->action.what == FEED_DO_LIST) {
		end_page(session);
	} else {
		end_watch(session);
	}
}

static void on_done(void *arg, int result, int code)
{
	struct session *session = arg;

	CHECK_OBJ(session, SESSION_MAGIC);
	session->call = NULL;
	if (session->finishing)
		session->over = true; /* the list is whole: what ended is the watch behind it */
	else
		session_call_end(session, result, code);
}

/* ---- the request ---- */

void session_call_start(struct session *session, const struct feed_action *action)
{
	bool watch = action->what == FEED_DO_WATCH, stream = action->what == FEED_DO_STREAM;
	const struct config_policy *policy = &session->shared->policy;
	uint64_t answer_ns = policy->answer_ns;
	struct buf path = BUF_INIT;
	struct http_request request = {
		.accept = request_accept(&session->definition, watch || stream),
		.gzip = false, /* what it saves on the way it costs both ends many times over */
		.bulk = !watch,
		.renewable = watch,
		/* Some proxies hold a watch's head back until something comes, a bookmark at the latest. */
		.first_byte_ns = watch || stream ? answer_ns + answer_ns / 2 : answer_ns,
		.idle_ns = watch ? 0 : answer_ns,
		.total_ns = watch || stream ? (action->timeout_s + WATCH_SLACK_S) * SECOND : 0,
		.arg = session,
		.on_status = on_status,
		.on_body = on_body,
		.on_done = on_done,
	};

	buf_reset(&session->error_body);
	session->refused = session->unreadable = session->has_next = session->has_status = false;
	session->retry_after_ns = 0;
	list_set_max(session->list, policy->max_object_bytes);
	list_reset(session->list);
	watch_set_max(session->watch, policy->max_object_bytes);
	watch_reset(session->watch);
	int r = request_path(&session->definition, action, &path);
	if (r >= 0) {
		request.path = buf_cstr(&path);
		r = http_start(session->shared->http, &request, &session->call);
	}
	buf_release(&path);
	stats_add(session->shared->stats, STAT_REQUESTS, 1);
	/* No memory: as if the server were not there; the pause is what helps. */
	if (r < 0)
		session_fail_with(session, FAILURE_NETWORK, err_text(r));
}

int session_call_init(struct session *session)
{
	buf_init(&session->error_body, ERROR_BODY_MAX);
	int r = list_new(&(struct list_options){.item_fn = take_item, .arg = session}, &session->list);

	return r < 0 ? r : watch_new(&(struct watch_options){.event_fn = take_event, .arg = session},
		&session->watch);
}
