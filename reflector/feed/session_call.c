/* SPDX-License-Identifier: Apache-2.0 */
/* One request of a session: sending it, taking its answer apart, and its end. */
#include <stdio.h>

#include "reflector/feed/session_internal.h"

#include "common/check.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/proc.h"
#include "reflector/feed/request.h"
#include "reflector/record/object.h"
#include "reflector/record/recorder.h"

#define WATCH_SLACK_S    30
#define ERROR_BODY_MAX   8192
#define PROBE_ANSWER_MAX 8192
#define PROBE_TIMEOUT    (20 * SECOND_NS)
/* no etcd is restored within this after a watch that ended in good order */
#define VOUCHED  (5 * SECOND_NS)
#define HELD_MAX (1u << 20)
/* an error comes with a watch's head within this */
#define ACCEPTED (SECOND_NS / 5)
/* a failed watch's successor is well after this */
#define WELL (10 * SECOND_NS)

/* Given to http as the result of on_body when the session itself ends the call. */
#define SESSION_ENDS_CALL 1

/* ---- the probe ---------------------------------------------------------- */

/* The server's newest state is older than the watch's RV. Only a list for "" shows whether its etcd
 * was restored or its cache lags, so the session fails as if the watch had reported it. A standing
 * cache is older than that list as well, and the next one waits longer. */
static void session_on_probe(void *arg, const struct fetch_answer *answer)
{
	struct session *session = arg;
	struct status status;

	session->probe = NULL;
	if (answer->result < 0)
		return; /* the watch itself will notice */
	status_read(answer->status, 0, answer->body, &status);
	if (status.kind == FAILURE_RV_AHEAD && session->action.what == FEED_DO_WATCH)
		session_fail(session, &status);
}

static void session_probe_start(struct session *session)
{
	struct buf path = BUF_INIT;

	fetch_cancel(&session->probe);
	int r = request_probe_path(&session->definition, buf_cstr(&session->machine.rv), &path);
	if (r >= 0)
		r = fetch_start(session->shared->http,
			&(struct fetch_request){.path = buf_cstr(&path),
				.may_be_absent = true,
				.limit = PROBE_ANSWER_MAX,
				.total_ns = PROBE_TIMEOUT,
				.done = session_on_probe,
				.arg = session},
			&session->probe);
	buf_release(&path);
	err_ignore(r, "the next watch probes again");
}

/* ---- items and events --------------------------------------------------- */

static int session_unreadable(struct session *session, const char *what)
{
	session->unreadable = true;
	return err_add(ERR_PROTOCOL, "%s that can't be read", what);
}

static int session_take_item(void *arg, struct bytes item, bool cut)
{
	struct session *session = arg;
	int r = record_item(&session->record, item, cut, session->machine.tolerant);

	return r == RECORD_UNREADABLE ? session_unreadable(session, "an object") : r;
}

/* Leaves ACTION to be done when the call has ended. */
static int session_end_with(struct session *session, const struct feed_action *action)
{
	session->has_next = true;
	session->next = *action;
	return END;
}

/* Takes an initial event of a stream, or the bookmark at their end: then the list is finished first
 * (AGAIN). */
static int session_take_initial(struct session *session, const struct api_event *event)
{
	struct object_identity identity;
	struct feed_action action;

	if (event->type != WATCH_BOOKMARK) {
		int r = record_initial(&session->record, event, session->machine.tolerant);

		return r == RECORD_UNREADABLE ? session_unreadable(session, "an initial event") : r;
	}
	if (!object_ends_initial(event->object))
		return 0;
	if (object_identity(event->object, false, &identity) < 0 || !identity.rv.size)
		return session_unreadable(session, "the bookmark that ends the initial events");
	session->list_at = session->arrived;
	session_step(
		session, (struct feed_input){.on = FEED_ON_INITIAL, .rv = identity.rv}, &action);
	if (!action.keep)
		return session_end_with(session, &action);
	session_perform(session, &action);
	return AGAIN;
}

/* Takes over a stale relay's age from its bookmark. Returns true if the relay is stale. */
static bool session_take_staleness(struct session *session, struct bytes bookmark)
{
	struct moment heard = session->arrived;
	char text[240], why[OBJECT_STALE_MAX];
	uint64_t age;

	if (!object_is_stale(bookmark, &age, why))
		return false;
	age *= SECOND_NS;
	heard.realtime_ns -= age < heard.realtime_ns ? age : heard.realtime_ns - 1;
	heard.boottime_ns -= age < heard.boottime_ns ? age : heard.boottime_ns;
	record_contact(&session->record, &heard);
	(void)snprintf(text, sizeof(text), "the server is a relay that is stale: %.180s", why);
	session_set_error(session, text);
	return true;
}

static int session_take_event(void *arg, const struct api_event *event)
{
	struct session *session = arg;
	bool bookmark = event->type == WATCH_BOOKMARK;
	struct feed_action action;
	struct bytes rv;
	int r;

	if (event->type == WATCH_ERROR) {
		status_read(0, 0, event->object, &session->status);
		session->has_status = true;
		return END;
	}
	if (session->action.what == FEED_DO_STREAM)
		return session_take_initial(session, event);
	if (bookmark)
		r = record_bookmark(&session->record, event->object, &rv);
	else
		r = record_event(&session->record, event, session->machine.tolerant, &rv);
	if (r == RECORD_UNREADABLE)
		return session_unreadable(session, "an event");
	session_show_passed(session);
	if (r < 0)
		return r;
	bool stale = bookmark && session_take_staleness(session, event->object);
	if (!stale)
		record_contact(&session->record, &session->arrived);
	r = recorder_flush_first(session->record.recorder);
	if (r < 0)
		return r;
	session->useless_watch = false;
	if (!stale)
		session_set_well(session);
	session_step(session,
		(struct feed_input){.on = bookmark ? FEED_ON_BOOKMARK : FEED_ON_EVENT,
			.rv = rv,
			.deletion = event->type == WATCH_DELETED},
		&action);
	session->row.events++;
	session->changes += !bookmark;
	stats_add(session->shared->stats, STAT_EVENTS, 1);
	return action.what == FEED_DO_NOTHING ? 0 : session_end_with(session, &action);
}

/* ---- the body ----------------------------------------------------------- */

/* Keeps a stream's bytes while its list is being finished; finishes the list at once if they become
 * too many. */
static int session_hold_body(struct session *session, struct bytes bytes)
{
	int r = 0;

	if (!session->held.size)
		session->held_at = session->arrived;
	buf_bytes_put(&session->held, bytes);
	if (buf_error(&session->held) < 0)
		return buf_error(&session->held);
	while (r >= 0 && session->finishing && session->held.size > HELD_MAX)
		r = session_work(session);
	return r < 0 ? r : 0;
}

/* Cuts BYTES of a watch into events. Returns: 0, SESSION_ENDS_CALL, or an error. */
static int session_take_events(struct session *session, struct bytes bytes)
{
	int r = watch_feed(session->watch, bytes.data, bytes.size);
	size_t used = watch_used(session->watch);

	if (r == AGAIN)
		return session_hold_body(
			session, BYTES((const char *)bytes.data + used, bytes.size - used));
	return r < 0 ? r : session->has_next || session->has_status ? SESSION_ENDS_CALL : 0;
}

void session_count_accepted(struct session *session)
{
	if (session->action.what == FEED_DO_WATCH) {
		session->row.watches++;
		stats_add(session->shared->stats, STAT_WATCHES, 1);
	} else if (session->action.first) {
		session->row.lists++;
		stats_add(session->shared->stats, STAT_LISTS, 1);
	}
}

/* Remembers TEXT. Returns whether it is new and there was room for it. */
static bool warnings_are_new(struct warnings *warnings, const char *text)
{
	uint64_t hash = hash_bytes(bytes_str(text), 0);

	for (size_t i = 0; i < warnings->n; i++)
		if (warnings->said[i] == hash)
			return false;
	if (warnings->n == WARNINGS_MAX)
		return false;
	warnings->said[warnings->n++] = hash;
	return true;
}

static void session_on_status(void *arg, const struct http_answer *answer)
{
	struct session *session = arg;
	struct feed_action action;

	CHECK_OBJ(session, SESSION_MAGIC);
	uint64_t now = proc_monotonic_ns();
	session->mute = session_silent_at(session) <= now;
	session->heard_ns = now;
	session->refused = answer->status != 200;
	session->retry_after_ns = answer->retry_after_ns;
	if (*answer->warning && warnings_are_new(session->shared->warnings, answer->warning))
		LOG(server_warning, .feed = session->definition.name, .text = answer->warning);
	if (session->refused)
		return;
	session_count_accepted(session);
	if (session->action.what == FEED_DO_WATCH) {
		session_set_heard(session);
		/* The answer to an expired RV begins the same way. */
		session->well_ns =
			session->troubled ? now + (session->useless_watch ? WELL : ACCEPTED) : 0;
		if (!session->vouched_ns || now - session->vouched_ns > VOUCHED)
			session_probe_start(session);
	}
	session_step(session, (struct feed_input){.on = FEED_ON_ALIVE}, &action);
}

static int session_on_body(void *arg, struct bytes bytes)
{
	struct session *session = arg;

	CHECK_OBJ(session, SESSION_MAGIC);
	session->row.bytes += bytes.size;
	session->heard_ns = proc_monotonic_ns();
	session_touch(session);
	if (session->refused) {
		size_t room = ERROR_BODY_MAX - session->error_body.size;

		buf_put(&session->error_body, bytes.data, bytes.size < room ? bytes.size : room);
		return 0;
	}
	moment_now(&session->arrived);
	session->spoke = true;
	if (session->action.what == FEED_DO_LIST && !session->list_at.realtime_ns)
		session->list_at = session->arrived;
	if (session->action.what == FEED_DO_LIST)
		return list_feed(session->list, bytes.data, bytes.size);
	if (session->finishing)
		return session_hold_body(session, bytes);
	return session_take_events(session, bytes);
}

/* ---- the end ------------------------------------------------------------ */

static void session_end_page(struct session *session)
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
	session->row.list_total =
		page.remaining < 0 ? 0 : session->record.items + (uint64_t)page.remaining;
	session_step_and_do(session, (struct feed_input){.on = FEED_ON_PAGE,
					     .rv = page.rv,
					     .continue_ = page.continue_,
					     .items = page.items});
}

/* Reports the end of a call to the machine; RESULT and CODE are those of on_done. */
static void session_end_call(struct session *session, int result, int code)
{
	const char *text;
	struct status status;

	if (recorder_error(session->shared->recorder, &text) < 0)
		return; /* the loop is about to rewind all feeds */
	if (session->has_next) {
		struct feed_action next = session->next;

		session->has_next = false;
		session_perform(session, &next);
	} else if (session->has_status) {
		session_fail(session, &session->status);
	} else if (session->refused || (result >= 0 && code != 200)) {
		/* The body may be missing or cut off: the status code says enough. */
		status_read(
			code, session->retry_after_ns, buf_bytes(&session->error_body), &status);
		session_fail(session, &status);
	} else if (result < 0) {
		session_fail_with(session,
			session->unreadable         ? FAILURE_UNREADABLE
			: result == ERR_CREDENTIALS ? FAILURE_UNAUTHORIZED
			: result == ERR_NETWORK || result == ERR_TIMEOUT || result == ERR_TLS
				? FAILURE_NETWORK
				: FAILURE_PROTOCOL,
			err_text(result));
	} else if (session->action.what == FEED_DO_LIST) {
		session_end_page(session);
	} else if (session->action.what == FEED_DO_STREAM) {
		session_fail_with(session, FAILURE_PROTOCOL,
			"the stream ended before the bookmark that ends its initial events");
	} else if (watch_partial(session->watch)) {
		session_fail_with(session, FAILURE_NETWORK, "the watch ended inside an event");
	} else {
		uint64_t now = proc_monotonic_ns();

		/* Sooner: perhaps the server's own watch of etcd broke, which ends all its watches.
		 */
		session->vouched_ns =
			session->spoke && result != HTTP_SILENT && now >= session->ends_ns ? now
											   : 0;
		session_step_and_do(session, (struct feed_input){.on = FEED_ON_ENDED});
	}
}

static void session_on_done(void *arg, int result, int code)
{
	struct session *session = arg;

	CHECK_OBJ(session, SESSION_MAGIC);
	session->call = NULL;
	if (session->finishing)
		session->over = true; /* the list is whole: its watch ended */
	else
		session_end_call(session, result, code);
}

void session_stream_go_on(struct session *session)
{
	struct buf held = session->held;

	session->held = BUF_INIT;
	session->arrived = session->held_at;
	if (session->call)
		http_set_quiet(session->call);
	int r = session_take_events(session, buf_bytes(&held));
	buf_release(&held);
	if (r == 0 && !session->over)
		return;
	session->over = false;
	http_cancel(&session->call);
	session_end_call(session, r, 200);
}

/* ---- the request -------------------------------------------------------- */

void session_call_start(struct session *session, const struct feed_action *action)
{
	bool watch = action->what == FEED_DO_WATCH, stream = action->what == FEED_DO_STREAM;
	const struct config_policy *policy = &session->shared->policy;
	uint64_t answer_ns = policy->answer_ns;
	struct buf path = BUF_INIT;
	struct http_request request = {
		.accept = request_accept(&session->definition, watch || stream),
		.gzip = false, /* costs both ends many times more than it saves */
		.bulk = !watch,
		.renewable = watch,
		/* Some proxies hold a watch's head back until a first event or bookmark. */
		.first_byte_ns = watch || stream ? answer_ns + answer_ns / 2 : answer_ns,
		.idle_ns = watch ? 0 : answer_ns,
		.total_ns = watch || stream ? (action->timeout_s + WATCH_SLACK_S) * SECOND_NS : 0,
		.arg = session,
		.on_status = session_on_status,
		.on_body = session_on_body,
		.on_done = session_on_done,
	};

	buf_reset(&session->error_body);
	session->refused = session->unreadable = session->has_next = session->has_status = false;
	session->retry_after_ns = 0;
	session->mute = !watch;
	session->spoke = false;
	session->heard_ns = proc_monotonic_ns();
	session->ends_ns = session->heard_ns + action->timeout_s * SECOND_NS;
	session->record.item_max = policy->max_object_bytes;
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
	/* Without memory the request fails as if the server were away: a pause helps. */
	if (r < 0)
		session_fail_with(session, FAILURE_NETWORK, err_text(r));
}

int session_call_init(struct session *session)
{
	buf_init(&session->error_body, ERROR_BODY_MAX);
	int r = list_new(&(struct list_options){.item_fn = session_take_item, .arg = session},
		&session->list);

	return r < 0 ? r
		     : watch_new(&(struct watch_options){.event_fn = session_take_event,
					 .arg = session},
			       &session->watch);
}
