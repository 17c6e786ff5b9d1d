/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WATCH. A watcher is a position in the log, a seq: everything up to it was given. Its only buffer
 * is the piece being sent, so a slow client costs nothing, and loses nothing until its position is
 * trimmed.
 *
 *	WAIT      the state of the RV that was asked for is not here yet (initial objects only)
 *	INITIAL   the objects as of a seq, in key order, in slices
 *	LIVE      records after the position; a relist is a bracket of them
 *	ENDED     after a Status in the stream, the deadline, or because this process ends
 */
#include "serve/answer/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/proc.h"
#include "serve/answer/encode.h"
#include "serve/answer/group.h"
#include "serve/answer/state.h"
#include "serve/http/gzip.h"
#include "serve/http/websocket.h"

#define WATCH_PIECE            ((size_t)32 << 10)
#define WATCH_SECOND           UINT64_C(1000000000)
#define WATCH_MIN_SECONDS      1800 /* without timeoutSeconds: this to twice this */
#define WATCH_BOOKMARK_NS      (30 * WATCH_SECOND)
#define WATCH_LAST_NS          (2 * WATCH_SECOND) /* a bookmark this long before the deadline */
#define WATCH_PROGRESS_SECONDS 3
#define WATCH_DECIDE_NS        (60 * WATCH_SECOND)
/* While nobody can decide (after offlineGrace, and for Secrets) a watch is asked about this often,
 * then it ends. */
#define WATCH_UNDECIDED_NS  (10 * WATCH_SECOND)
#define WATCH_UNDECIDED_MAX 6

enum watch_stage { WATCH_WAIT, WATCH_INITIAL, WATCH_LIVE, WATCH_ENDED };

struct watch {
	struct answer_member member; /* has its position */
	struct answer_request *request;
	struct answer_encoder encoder;
	enum watch_stage stage;
	unsigned undecided; /* how often nobody could decide */
	bool bookmark_due, finishing;
	bool said_stale;                /* by the last bookmark to a leaf */
	bool packs;                     /* the stream is gzip's */
	struct websocket *socket;       /* the events are its messages; NULL: they are lines */
	struct answer_objects *objects; /* the initial ones */
	char rv[TIMELINE_RV_SIZE];      /* newest one given, or the client's */
	timeline_rv skip;               /* the client's future RV: nothing up to it is sent */
	struct answer_bracket *bracket; /* a relist being given; NULL: none */
	struct buf out;
	size_t taken; /* of OUT */
	uint64_t deadline_ns, bookmark_ns, decide_ns, retry_ns;
	struct metric_cell *events, *watchers;
};

static void watch_free(void *stage)
{
	struct watch *w = stage;

	answer_group_leave(&w->member);
	if (w->watchers)
		metric_sub(w->watchers, 1);
	answer_objects_free(&w->objects);
	answer_bracket_free(&w->bracket);
	buf_release(&w->out);
	free(w->socket);
	free(w);
}

/* ---- time ---------------------------------------------------------------- */

/* Sets the timer to the earliest of the watch's times. A passed deadline does not count: the timer
 * would fire in every turn until the client has read the rest. */
static void watch_set_timer(struct watch *watch)
{
	uint64_t next = watch->deadline_ns > proc_monotonic_ns() ? watch->deadline_ns : UINT64_MAX;

	if (watch->bookmark_ns < next)
		next = watch->bookmark_ns;
	if (watch->decide_ns < next)
		next = watch->decide_ns;
	if (watch->retry_ns < next)
		next = watch->retry_ns;
	serve_timer_set(&watch->request->timer, next);
}

static void watch_decided(void *context, const struct auth_decision *decision)
{
	struct answer_request *request = context;

	request->pending = NULL;
	struct watch *watch = request->stage;
	bool again =
		auth_is_undecided(decision->answer) && ++watch->undecided < WATCH_UNDECIDED_MAX;

	if (decision->answer == AUTH_ALLOWED)
		watch->undecided = 0;
	if (again) {
		watch->decide_ns = proc_monotonic_ns() + WATCH_UNDECIDED_NS;
		watch_set_timer(watch);
	}
	if (again || decision->answer == AUTH_ALLOWED)
		return;
	watch->finishing = true; /* a clean end */
	exchange_wake(request->x);
}

/* Returns a random number below MOST, to spread the watches. */
static uint64_t watch_jitter(uint64_t most)
{
	uint64_t number = 0;

	err_ignore(proc_random(&number, sizeof(number)), "then there is no jitter");
	return number % most;
}

/* Sets the time of the next bookmark: after 30 s, a quarter more or less, or 2 s before the end. */
static void watch_set_bookmark(struct watch *watch, uint64_t now)
{
	uint64_t last = watch->deadline_ns - WATCH_LAST_NS;

	watch->bookmark_ns = now + WATCH_BOOKMARK_NS * 3 / 4 + watch_jitter(WATCH_BOOKMARK_NS / 2);
	if (now < last && last < watch->bookmark_ns)
		watch->bookmark_ns = last;
}

static void watch_set_decision(struct watch *watch, uint64_t now)
{
	bool soon = failpoint_pass(FAILPOINT_SERVE_DECIDE) < 0;

	watch->decide_ns = now + (soon ? WATCH_SECOND : WATCH_DECIDE_NS);
}

static void watch_timer(struct answer_request *request)
{
	struct watch *watch = request->stage;
	uint64_t now = proc_monotonic_ns();

	if (now >= watch->bookmark_ns) {
		watch->bookmark_due = true;
		watch_set_bookmark(watch, now);
	}
	if (now >= watch->retry_ns)
		watch->retry_ns = UINT64_MAX;
	if (now >= watch->decide_ns) {
		watch_set_decision(watch, now);
		if (!request->pending)
			answer_authorize_again(request, watch_decided);
	}
	watch_set_timer(watch);
	exchange_wake(request->x);
}

static void watch_set_times(struct watch *watch)
{
	const struct api_options *o = &watch->request->options;
	uint64_t now = proc_monotonic_ns();
	uint64_t seconds = o->timeout_seconds > 0 ? (uint64_t)o->timeout_seconds : 0;
	uint64_t length = seconds && seconds < UINT64_MAX / 4 / WATCH_SECOND
				  ? seconds * WATCH_SECOND
				  : WATCH_MIN_SECONDS * WATCH_SECOND +
					    watch_jitter(WATCH_MIN_SECONDS * WATCH_SECOND);

	watch->deadline_ns = now + length;
	watch->bookmark_ns = UINT64_MAX;
	if (o->bookmarks)
		watch_set_bookmark(watch, now);
	/* A leaf asks for progress (session_progress.c), because the feed has moved on. */
	watch->bookmark_due = watch->request->is_leaf && o->bookmarks && !o->send_initial &&
			      seconds && seconds <= WATCH_PROGRESS_SECONDS;
	watch_set_decision(watch, now);
	watch->retry_ns = UINT64_MAX;
}

/* ---- the end ------------------------------------------------------------ */

/* Ends the stream with the Status of the request. */
static void watch_fail(struct watch *watch)
{
	answer_encode_error(watch->request, &watch->out);
	watch->stage = WATCH_ENDED;
}

static void watch_expire(struct watch *watch)
{
	struct answer_request *request = watch->request;
	struct answer *answer = request->worker->answer;
	char oldest[TIMELINE_RV_SIZE];

	catalog_lock(answer->catalog);
	timeline_oldest(&request->feed->timeline, oldest);
	catalog_unlock(answer->catalog);
	metric_add(answer_cell(request, METRIC_GONE), 1);
	api_status_expired(
		&request->status, "too old resource version: %s (%s)", watch->rv, oldest);
	watch_fail(watch);
}

/* ---- initial objects ---------------------------------------------------- */

static int watch_begin_initial(struct watch *watch)
{
	struct answer_request *request = watch->request;
	uint64_t now = proc_monotonic_ns();
	struct answer_state state = {0};
	int r = answer_find_state(request, 0, &state);

	if (r == AGAIN && now < request->wait_until_ns) {
		watch->retry_ns = now + ANSWER_RETRY_NS;
		watch_set_timer(watch);
		return AGAIN;
	}
	if (r == AGAIN)
		r = answer_wait_is_over(request);
	if (r > 0) {
		watch_fail(watch);
		return 0;
	}
	if (r == 0)
		r = answer_objects_new(request, state.seq, BYTES_NONE, &watch->objects);
	watch->member.position = state.seq;
	memcpy(watch->rv, state.rv, sizeof(watch->rv));
	watch->stage = WATCH_INITIAL;
	return r;
}

static int watch_initial(struct watch *watch, uint64_t until_ns)
{
	struct record record;
	int r = answer_objects_renew(watch->objects);

	while (r == 0 && watch->out.size < WATCH_PIECE) {
		r = answer_objects_next(watch->objects, until_ns, &record);
		if (r != FOUND)
			break;
		r = answer_encode_event(
			&watch->encoder, "ADDED", record.body, BYTES_NONE, &watch->out);
		metric_add(watch->events, 1);
	}
	answer_objects_release(watch->objects);
	if (r == AGAIN) /* the slice is over */
		return 0;
	if (r == END) {
		answer_objects_free(&watch->objects);
		watch->stage = WATCH_LIVE;
		catalog_raise_floor(watch->request->feed, watch->member.position);
		return api_options_marks_end(&watch->request->options)
			       ? answer_encode_bookmark(
					 &watch->encoder, watch->rv, true, &watch->out)
			       : 0;
	}
	if (r == LAPPED || r == GONE) {
		watch_expire(watch);
		return 0;
	}
	return r;
}

/* ---- live --------------------------------------------------------------- */

static void watch_came_to(struct watch *watch, struct bytes rv)
{
	if (rv.size && rv.size < sizeof(watch->rv))
		(void)snprintf(watch->rv, sizeof(watch->rv), "%.*s", BYTES_ARG(rv));
}

static bool watch_skips(const struct watch *watch, struct bytes rv)
{
	timeline_rv number;

	return watch->skip && timeline_rv_parse(rv, &number) && number <= watch->skip;
}

/* Gives the rest of a relist. Returns: 0; LAPPED; errors. */
static int watch_give_bracket(struct watch *watch)
{
	struct answer_bracket *bracket = watch->bracket;
	int r = 0;

	while (r == 0 && bracket->next < bracket->n && watch->out.size < WATCH_PIECE) {
		r = answer_bracket_next(
			&watch->encoder, bracket, bytes_str(watch->rv), &watch->out);
		if (r == 1)
			metric_add(watch->events, 1);
		r = r == 1 ? 0 : r;
	}
	if (r != 0 || bracket->next < bracket->n)
		return r;
	watch->member.position = bracket->entry.seq;
	if (bracket->entry.rv >> 127 == 0) /* else it is a hash */
		timeline_rv_format(bracket->entry.rv, watch->rv);
	answer_bracket_free(&watch->bracket);
	return 0;
}

/* Gives the event of a record as it is for this watch alone. */
static int watch_give_own(struct watch *watch, uint64_t seq, bool *held)
{
	struct answer_request *request = watch->request;
	struct record record;
	int r = *held ? 0 : answer_take_log(request->worker);

	*held |= r == 0;
	if (r == 0)
		r = answer_event_read(request, seq, &record);
	return r != 0 ? r
		      : answer_event_record(
				&watch->encoder, &record, bytes_str(watch->rv), &watch->out);
}

/* Gives an entry of the timeline. *HELD: the log is held. Returns: 0; LAPPED, AGAIN; errors. */
static int watch_give_entry(struct watch *watch, const struct timeline_entry *entry, bool *held)
{
	struct answer_request *request = watch->request;
	bool begins_table = request->accept.form == API_FORM_TABLE && !watch->encoder.columns_given;
	const struct answer_frame *frame;
	size_t before = watch->out.size;
	int r;

	if (entry->begin) {
		r = *held ? 0 : answer_take_log(request->worker);
		*held |= r == 0;
		if (r == 0)
			r = answer_bracket_load(request, entry, &watch->bracket);
		return r != 0 ? r : watch_give_bracket(watch);
	}
	r = answer_frame(request, watch->member.group, entry->seq, held, &frame);
	if (r != 0)
		return r;
	if (!watch_skips(watch, bytes_str(frame->rv))) {
		if (!frame->of_watch)
			watch_came_to(watch, bytes_str(frame->rv));
		if (frame->n && (frame->of_watch || begins_table))
			r = watch_give_own(watch, entry->seq, held);
		else if (frame->n)
			buf_put(&watch->out, frame->lines, frame->size);
		if (r < 0 || r == LAPPED)
			return r;
		if (watch->out.size > before)
			metric_add(watch->events, 1);
	}
	watch->member.position = entry->seq;
	return 0;
}

/* Sends a bookmark. NEWEST: the RV of the visible state, sent in full. */
static int watch_bookmark(struct watch *watch, const char *newest)
{
	watch->bookmark_due = false;
	if (!*newest || watch_skips(watch, bytes_str(newest)))
		return 0;
	watch_came_to(watch, bytes_str(newest));
	return answer_encode_bookmark(&watch->encoder, watch->rv, false, &watch->out);
}

/* Gives the news after the position. Returns: 0: some, or the stream has ended; AGAIN: none;
 * errors. */
static int watch_live(struct watch *watch)
{
	struct answer_request *request = watch->request;
	struct catalog_news news;
	bool held = false;

	answer_group_set_caught_up(&watch->member, false);
	int r = catalog_read(request->worker->answer->catalog, request->feed,
		watch->member.position, watch->bracket ? 0 : CATALOG_ENTRIES, &news);
	/* An API server ends the watches of a deleted resource without a Status: the next watch is
	 * 404, by which clients stop. A 410 would make them list what is not there. */
	if (news.removed) {
		watch->stage = WATCH_ENDED;
		return 0;
	}
	if (news.gone || (news.n == 0 && r == LAPPED)) {
		watch_expire(watch);
		return 0;
	}
	if (news.n == 0 && !watch->bracket) {
		if (watch->member.position < news.visible)
			watch->member.position = news.visible;
		answer_group_set_caught_up(&watch->member, true);
		if (request->is_leaf && request->options.bookmarks) {
			double age;
			char why[200];
			bool stale = answer_is_stale(request, &age, why);

			watch->bookmark_due |= stale != watch->said_stale;
			watch->said_stale = stale;
		}
		if (!watch->bookmark_due)
			return AGAIN;
		r = watch_bookmark(watch, news.newest);
		return r < 0 ? r : watch->out.size > watch->taken ? 0 : AGAIN;
	}
	/* The snapshot comes after the entries, to have their records. */
	r = watch->bracket ? answer_take_log(request->worker) : 0;
	if (watch->bracket) {
		held = r == 0;
		if (r == 0)
			r = watch_give_bracket(watch);
	}
	for (size_t i = 0; r == 0 && i < news.n && watch->out.size < WATCH_PIECE; i++) {
		r = watch_give_entry(watch, &news.entries[i], &held);
		if (watch->bracket)
			break;
	}
	if (held)
		answer_release_snapshot(request->worker);
	catalog_raise_floor(request->feed, watch->member.position);
	if (r == AGAIN) { /* the log is busy, and a lagging watch is woken by nobody */
		watch->retry_ns = proc_monotonic_ns() + ANSWER_RETRY_NS;
		watch_set_timer(watch);
	}
	if (r == LAPPED) {
		watch_expire(watch);
		return 0;
	}
	return r;
}

/* ---- one turn ----------------------------------------------------------- */

static int watch_produce(struct watch *watch)
{
	struct answer_worker *worker = watch->request->worker;
	uint64_t until_ns = proc_monotonic_ns() + ANSWER_SLICE_NS;
	int r;

	if (watch->stage == WATCH_LIVE)
		return watch_live(watch);
	r = answer_take_snapshot(worker);
	if (r == 0 && watch->stage == WATCH_WAIT)
		r = watch_begin_initial(watch);
	if (r == 0 && watch->stage == WATCH_INITIAL)
		r = watch_initial(watch, until_ns);
	answer_release_snapshot(worker);
	return r;
}

/* ---- over a WebSocket ---------------------------------------------------- */

/*
 * A watch whose client takes events as messages of a WebSocket: the handshake, and the client's
 * later messages.
 */

/* Checks the client's half of the handshake. Returns: 0; 400 with the Status. */
static int socket_check(struct answer_request *request)
{
	const struct exchange *x = request->x;
	struct bytes protocol = exchange_header(x, "sec-websocket-protocol");
	const char *why =
		!bytes_equal(exchange_header(x, "sec-websocket-version"), BYTES_LIT("13"))
			? "missing or bad WebSocket Version"
		: !exchange_header(x, "sec-websocket-key").size
			? "the request has no Sec-WebSocket-Key"
		: protocol.size && memchr(protocol.data, ',', protocol.size)
			? "a watch over a WebSocket takes one Sec-WebSocket-Protocol at most"
		: request->accept.protobuf ? "a watch over a WebSocket is given in JSON only"
					   : NULL;

	return why ? api_status_set(&request->status, 400, "BadRequest", "%s", why) : 0;
}

/* Hears the client: pings, and its end. */
static void socket_heard(void *context)
{
	struct watch *watch = context;
	struct exchange *x = watch->request->x;
	bool end;
	struct bytes bytes = exchange_body(x, &end);

	websocket_take(watch->socket, bytes, end);
	exchange_body_take(x, bytes.size);
	if (watch->socket->pong_due || watch->socket->closed)
		exchange_wake(x);
}

static int socket_make(struct watch *watch)
{
	int r = socket_check(watch->request);

	if (r != 0)
		return r;
	watch->socket = calloc(1, sizeof(*watch->socket));
	if (!watch->socket)
		return err_set(-ENOMEM, "a watch over a WebSocket");
	return websocket_frame_lines(&watch->out); /* a Status, if the watch is over already */
}

static void socket_begin(struct watch *watch)
{
	struct exchange *x = watch->request->x;
	struct bytes protocol = exchange_header(x, "sec-websocket-protocol");
	char accept[WEBSOCKET_ACCEPT_SIZE];
	struct answer_head head = {.n = 0};

	websocket_accept(exchange_header(x, "sec-websocket-key"), accept);
	answer_head_put(&head, "upgrade", "websocket");
	answer_head_put(&head, "connection", "Upgrade");
	answer_head_put(&head, "sec-websocket-accept", accept);
	answer_head_stale(watch->request, &head);
	if (protocol.size)
		head.headers[head.n++] =
			(struct exchange_header){BYTES_LIT("sec-websocket-protocol"), protocol};
	exchange_on_body(x, socket_heard, watch);
	x->relayed = true; /* no other headers */
	exchange_begin(x, 101, head.headers, head.n);
}

/* ---- compressed --------------------------------------------------------- */

/* Makes a member of gzip of each piece, as the API server does at each flush: then an idle watch
 * keeps no state. Only the first objects are COMPRESSED, which are most; a compressed event would
 * cost each of its watches as much as TLS does. */
static int watch_pack(struct watch *watch, bool compressed)
{
	struct gzip **gzip = &watch->request->worker->gzip;
	struct buf packed = BUF_INIT;
	int r = compressed && !*gzip ? gzip_new(gzip) : 0;

	if (r == 0)
		r = gzip_member(compressed ? *gzip : NULL, buf_bytes(&watch->out), &packed);
	buf_release(&watch->out);
	watch->out = packed;
	return r;
}

/* ---- the stream --------------------------------------------------------- */

/* Makes the next piece if the last one is gone. Returns: 0; AGAIN: nothing now; errors, after which
 * half an event may stay unsent. */
static int watch_fill(struct watch *watch)
{
	uint64_t now = proc_monotonic_ns(), until = now + ANSWER_SLICE_NS;
	struct websocket *socket = watch->socket;
	bool initial = watch->stage < WATCH_LIVE;
	int r = 0;

	if (watch->taken == watch->out.size) {
		buf_trim(&watch->out, 2 * WATCH_PIECE);
		watch->taken = 0;
		if (socket)
			websocket_put_pong(socket, &watch->out);
	}
	if (watch->out.size)
		return 0;
	if (now >= watch->deadline_ns || (socket && socket->closed))
		watch->stage = WATCH_ENDED;
	while (r == 0 && watch->out.size == 0 && watch->stage != WATCH_ENDED && now < until) {
		r = watch_produce(watch);
		now = proc_monotonic_ns();
	}
	if (watch->out.size == 0 && r == AGAIN && watch->finishing) {
		bool last = watch->stage == WATCH_LIVE && watch->request->options.bookmarks;

		watch->stage = WATCH_ENDED;
		r = last ? answer_encode_bookmark(&watch->encoder, watch->rv, false, &watch->out)
			 : 0;
	}
	if (r >= 0 && buf_error(&watch->out) < 0)
		r = buf_error(&watch->out);
	if (watch->packs && watch->out.size && r >= 0) {
		int packed = watch_pack(watch, initial);

		r = packed < 0 ? packed : r;
	}
	if (!socket || r < 0)
		return r;
	int framed = websocket_frame_lines(&watch->out);
	if (framed == 0 && watch->out.size == 0 && watch->stage == WATCH_ENDED)
		websocket_put_close(socket, &watch->out);
	return framed < 0 ? framed : r;
}

static ssize_t watch_read(void *context, uint8_t *out, size_t room)
{
	struct watch *watch = context;
	int r = watch_fill(watch);
	size_t size = watch->out.size - watch->taken;

	if (r < 0)
		return r;
	if (size == 0 && watch->stage == WATCH_ENDED)
		return 0;
	if (size == 0) {
		if (r == 0) /* more to do, in another turn */
			exchange_wake(watch->request->x);
		else /* a waiting watch keeps no memory */
			buf_trim(&watch->out, 0);
		return (ssize_t)-EAGAIN;
	}
	size = size < room ? size : room;
	memcpy(out, watch->out.data + watch->taken, size);
	watch->taken += size;
	return (ssize_t)size;
}

static void watch_end(void *context, enum exchange_end why)
{
	struct watch *watch = context;
	struct answer_request *request = watch->request;

	if (why == EXCHANGE_SLOW)
		metric_add(answer_cell(request, METRIC_TERMINATED_WATCHERS), 1);
	answer_request_free(&request);
}

static void watch_finish(void *context)
{
	struct watch *watch = context;

	watch->finishing = true;
	exchange_wake(watch->request->x);
}

/* ---- from the beginning ------------------------------------------------- */

/* Checks the client's RV, and finds the position of a watch without initial objects. Returns: 0,
 * also if the stream is to end at once with the Status 410; 400. */
static int watch_seek(struct watch *watch)
{
	struct answer_request *request = watch->request;
	struct catalog *catalog = request->worker->answer->catalog;
	const struct timeline *timeline = &request->feed->timeline;
	const char *rv = request->options.rv;
	enum timeline_place place = TIMELINE_FOUND;
	timeline_rv number = 0;

	catalog_lock(catalog);
	watch->member.position = timeline->visible;
	memcpy(watch->rv, timeline->newest_text, sizeof(watch->rv));
	if (!api_options_any_rv(&request->options)) {
		place = timeline_seek(timeline, bytes_str(rv), &watch->member.position, &number);
		if (place != TIMELINE_INVALID)
			(void)snprintf(watch->rv, sizeof(watch->rv), "%s", rv);
	}
	if (place == TIMELINE_FUTURE && answer_rv_is_too_long(timeline, number))
		place = TIMELINE_INVALID;
	catalog_unlock(catalog);
	if (place == TIMELINE_INVALID)
		return answer_invalid_rv(request);
	if (request->options.send_initial)
		return 0;
	watch->stage = WATCH_LIVE;
	if (place == TIMELINE_GONE)
		watch_expire(watch);
	if (place == TIMELINE_FUTURE)
		watch->skip = number;
	return 0;
}

static int watch_make(struct answer_request *request)
{
	const struct feed_definition *d = &request->feed->definition;
	struct metrics *metrics = request->worker->answer->metrics;
	struct watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return err_set(-ENOMEM, "a watch");
	answer_set_stage(request, watch, watch_free);
	watch->request = watch->member.request = request;
	watch->encoder.request = request;
	watch->events = metrics_cell(
		metrics, METRIC_WATCH_EVENTS, (const char *[]){d->group, d->version, d->resource});
	watch->watchers = metrics_cell(metrics, METRIC_WATCHERS, NULL);
	metric_add(watch->watchers, 1);
	request->wait_until_ns = proc_monotonic_ns() + ANSWER_WAIT_NS;
	watch_set_times(watch);
	int r = answer_timer_init(request);
	if (r == 0)
		r = watch_seek(watch);
	return r != 0 ? r : answer_group_join(&watch->member);
}

/* Returns true if the feed may lag for long after forwarded requests: the initial objects then come
 * from the API server. */
static bool watch_is_elsewhere(struct answer_request *request)
{
	struct answer_state state;

	if (!request->options.send_initial || *request->options.rv ||
		!answer_can_forward(request) || floor_is_clear(&request->feed->forwarded))
		return false;
	int r = answer_take_snapshot(request->worker);
	if (r == 0)
		r = answer_find_state(request, 0, &state);
	answer_release_snapshot(request->worker);
	err_ignore(r < 0 ? r : 0, "the watch meets the error again");
	return r == AGAIN && request->must_forward;
}

void answer_watch(struct answer_request *request)
{
	if (watch_is_elsewhere(request)) {
		answer_forward(request);
		return;
	}
	int r = watch_make(request);
	struct watch *watch = request->stage;
	struct answer_head head;

	if (r == 0 && answer_takes_messages(request))
		r = socket_make(watch);
	if (r != 0) {
		answer_refuse(request, r);
		return;
	}
	const struct exchange_source source = {.read = watch_read,
		.end = watch_end,
		.finish = watch_finish,
		.context = watch,
		.size = -1};

	request->x->long_running = true;
	request->resume = watch_timer;
	watch_set_timer(watch);
	watch->packs = request->gzip && !watch->socket && request->options.send_initial &&
		       request->options.bookmarks;
	answer_head(request, answer_type(request), watch->packs, &head);
	if (watch->socket)
		socket_begin(watch);
	else
		exchange_begin(request->x, 200, head.headers, head.n);
	free(TAKE(request->user)); /* it was for the head, and a waiting watch keeps no memory */
	exchange_stream(request->x, &source);
}
