/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress on demand moves on the RV of a quiet feed. A watch gets a bookmark once a minute, so a
 * quiet feed stays at an old RV (docs/protocol.md 7.4). Two requests:
 *
 *	1. a GET of any object, at least as new as the wanted RV: the server's watch cache asks etcd
 *	   for its newest RV, and the answer proves that the cache has reached the wanted one;
 *	2. a second watch from the feed's RV (FROM), so short that its bookmark comes at once.
 *
 * A bookmark first on that watch proves that nothing of the feed has changed after FROM up to the
 * bookmark's RV: a stream comes in order. Anything else proves nothing. The feed's own watch is
 * left alone: another stream's bookmark does not show how much of it has arrived.
 */
#include "reflector/feed/session_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "reflector/feed/request.h"
#include "reflector/record/object.h"

#define PROGRESS_PAUSE SECOND_NS /* from one to the next */
#define ANSWER_MAX     65536     /* of an object with this unlikely name */
/* A server sends a bookmark 2 s before the end of a watch, and none if that is in the past. */
#define WATCH_S   3
#define ENDS_CALL 1

struct feed_progress {
	struct session *session;
	struct buf from;
	struct fetch *ask;
	struct http_call *call; /* the watch */
	struct watch_stream *watch;
	struct buf rv; /* of the bookmark; empty: none has come */
	bool refused, over;
};

void progress_cancel(struct feed_progress **progress)
{
	struct feed_progress *p = *progress;

	*progress = NULL;
	if (!p)
		return;
	fetch_cancel(&p->ask);
	http_cancel(&p->call);
	watch_free(&p->watch);
	buf_release(&p->from);
	buf_release(&p->rv);
	free(p);
}

/* ---- the feed's RV ------------------------------------------------------ */

/* Returns true, with the RV, if the feed watches from a number the server may have passed. */
static bool session_has_rv(struct session *session, uint64_t *ret_rv)
{
	char *end;

	if (session->stopped || session->action.what != FEED_DO_WATCH)
		return false;
	const char *text = buf_cstr(&session->machine.rv);
	*ret_rv = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && *ret_rv != UINT64_MAX;
}

bool session_move_on(struct session *session, struct bytes from, struct bytes rv)
{
	struct feed_action action;
	uint64_t have;

	if (!bytes_equal(from, buf_bytes(&session->machine.rv)) || !session_has_rv(session, &have))
		return false;
	if (!rv.size || rv_compare(rv, from) != 1)
		return true;
	record_progress(&session->record, rv);
	session_step(session, (struct feed_input){.on = FEED_ON_PROGRESS, .rv = rv}, &action);
	stats_add(session->shared->stats, STAT_PROGRESS, 1);
	LOG(feed_progressed, .feed = session->definition.name,
		.rv = buf_cstr(&session->machine.rv));
	return true;
}

/*
 * The journal holds the whole state as of machine.rv. If that is still FROM, nothing lies between,
 * so the journal holds the state as of the bookmark's RV as well. Otherwise the feed's own watch is
 * further.
 */
static void progress_end(struct feed_progress *p)
{
	struct session *session = p->session;

	CHECK_OBJ(session, SESSION_MAGIC);
	(void)session_move_on(session, buf_bytes(&p->from), buf_bytes(&p->rv));
	session->wanted = 0; /* waiting clients ask again */
	session_touch(session);
	progress_cancel(&session->progress);
}

/* ---- the second watch --------------------------------------------------- */

static int progress_take_event(void *arg, const struct api_event *event)
{
	struct feed_progress *p = arg;
	struct object_identity identity;
	char why[OBJECT_STALE_MAX];
	uint64_t age;

	p->over = true;
	/* A relay without its server knows no more than the feed. */
	if (event->type != WATCH_BOOKMARK || object_is_stale(event->object, &age, why))
		return END;
	if (object_identity(event->object, false, &identity) == 0 && identity.rv.size <= RV_MAX)
		buf_bytes_put(&p->rv, identity.rv);
	if (buf_error(&p->rv) < 0)
		buf_reset(&p->rv);
	return END;
}

static void progress_on_status(void *arg, const struct http_answer *answer)
{
	struct feed_progress *p = arg;

	p->refused = answer->status != 200;
}

static int progress_on_body(void *arg, struct bytes bytes)
{
	struct feed_progress *p = arg;
	int r = p->refused ? ENDS_CALL : watch_feed(p->watch, bytes.data, bytes.size);

	return r < 0 ? r : p->over ? ENDS_CALL : r;
}

static void progress_on_done(void *arg, int result, int code)
{
	struct feed_progress *p = arg;

	(void)code;
	p->call = NULL;
	err_ignore(result < 0 ? result : 0, "the feed's own watch reports what concerns it");
	progress_end(p);
}

static int progress_watch(struct feed_progress *p)
{
	const struct feed_definition *definition = &p->session->definition;
	const struct feed_action action = {.what = FEED_DO_WATCH,
		.rv = buf_cstr(&p->from),
		.continue_ = "",
		.timeout_s = WATCH_S};
	CLEANUP(buf_release) struct buf path = BUF_INIT;
	int r = request_path(definition, &action, &path);

	return r < 0 ? r
		     : http_start(p->session->shared->http,
			       &(struct http_request){
				       .path = buf_cstr(&path),
				       .accept = request_accept(definition, true),
				       .total_ns = p->session->shared->policy.answer_ns +
						   WATCH_S * SECOND_NS,
				       .arg = p,
				       .on_status = progress_on_status,
				       .on_body = progress_on_body,
				       .on_done = progress_on_done,
			       },
			       &p->call);
}

/* ---- the question ------------------------------------------------------- */

static void progress_on_answer(void *arg, const struct fetch_answer *answer)
{
	struct feed_progress *p = arg;
	int r = answer->result;

	p->ask = NULL;
	/* 504: the server is not there either, or can't find out. */
	if (r >= 0 && (answer->status == 200 || answer->status == 404)) {
		r = progress_watch(p);
		if (r == 0)
			return;
	}
	err_ignore(r < 0 ? r : 0, "who waits asks again");
	progress_end(p);
}

/* ---- beginning ---------------------------------------------------------- */

/* Each request may take as long as other calls: a silent one closes its connection, and others use
 * that. */
static int progress_start(struct session *session)
{
	CLEANUP(progress_cancel) struct feed_progress *p = calloc(1, sizeof(*p));
	CLEANUP(buf_release) struct buf path = BUF_INIT;
	char wanted[24];

	if (!p)
		return err_set(-ENOMEM, "progress");
	*p = (struct feed_progress){.session = session, .from = BUF_INIT, .rv = BUF_INIT};
	buf_bytes_put(&p->from, buf_bytes(&session->machine.rv));
	(void)snprintf(wanted, sizeof(wanted), "%" PRIu64, session->wanted);
	int r = buf_error(&p->from);
	if (r >= 0)
		r = watch_new(&(struct watch_options){.event_fn = progress_take_event, .arg = p},
			&p->watch);
	if (r >= 0)
		r = request_probe_path(&session->definition, wanted, &path);
	if (r >= 0)
		r = fetch_start(session->shared->http,
			&(struct fetch_request){.path = buf_cstr(&path),
				.may_be_absent = true,
				.limit = ANSWER_MAX,
				.total_ns = session->shared->policy.answer_ns,
				.done = progress_on_answer,
				.arg = p},
			&p->ask);
	if (r < 0)
		return r;
	session->progress = TAKE(p);
	return 0;
}

void session_progress(struct session *session, uint64_t wanted)
{
	uint64_t have;

	CHECK_OBJ(session, SESSION_MAGIC);
	if (!session_has_rv(session, &have) || wanted <= have)
		return;
	/* The smallest one: a client may ask for an RV far in the future. */
	if (session->wanted && session->wanted <= wanted)
		return;
	if (session->progress && !session->progress->ask)
		return; /* the server is beyond the smaller one already */
	progress_cancel(&session->progress);
	session->wanted = wanted;
	session_touch(session);
}

uint64_t session_progress_at(const struct session *session)
{
	return session->wanted && !session->progress ? session->progress_ns : UINT64_MAX;
}

void session_progress_start(struct session *session)
{
	uint64_t have, now = proc_monotonic_ns();

	if (!session_has_rv(session, &have) || session->wanted <= have) {
		session->wanted = 0;
		return;
	}
	session->progress_ns = now + PROGRESS_PAUSE;
	int r = progress_start(session);
	if (r < 0)
		session->wanted = 0;
	err_ignore(r, "who waits asks again");
}
