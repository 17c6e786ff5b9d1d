/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "reflector/feed/machine.h"
#include "reflector/feed/request.h"
#include "reflector/feed/watch.h"
#include "reflector/net/fetch.h"
#include "reflector/record/object.h"

#define PROGRESS_MAGIC 0x50524f47u
#define ANSWER_MAX     65536 /* of an object with this unlikely name */
/* A server sends a bookmark 2 s before the end of a watch, and none if that is in the past. */
#define WATCH_S   3
#define ENDS_CALL 1

struct feed_progress {
	uint32_t magic;
	struct progress_options options;
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
	CHECK_OBJ(p, PROGRESS_MAGIC);
	fetch_cancel(&p->ask);
	http_cancel(&p->call);
	watch_free(&p->watch);
	buf_release(&p->from);
	buf_release(&p->rv);
	p->magic = 0;
	free(p);
}

bool progress_asks(const struct feed_progress *progress)
{
	CHECK_OBJ(progress, PROGRESS_MAGIC);
	return progress->ask != NULL;
}

static void progress_end(struct feed_progress *p)
{
	p->options.done(p->options.arg, buf_bytes(&p->from), buf_bytes(&p->rv));
	progress_cancel(&p);
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
	CHECK_OBJ(p, PROGRESS_MAGIC);
	p->call = NULL;
	err_ignore(result < 0 ? result : 0, "the feed's own watch reports what concerns it");
	progress_end(p);
}

static int progress_watch(struct feed_progress *p)
{
	const struct feed_definition *definition = p->options.definition;
	const struct feed_action action = {.what = FEED_DO_WATCH,
		.rv = buf_cstr(&p->from),
		.continue_ = "",
		.timeout_s = WATCH_S};
	CLEANUP(buf_release) struct buf path = BUF_INIT;
	int r = request_path(definition, &action, &path);

	return r < 0 ? r
		     : http_start(p->options.http,
			       &(struct http_request){
				       .path = buf_cstr(&path),
				       .accept = request_accept(definition, true),
				       .total_ns = p->options.answer_ns + WATCH_S * SECOND_NS,
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

	CHECK_OBJ(p, PROGRESS_MAGIC);
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

int progress_start(const struct progress_options *options, struct feed_progress **ret_progress)
{
	CLEANUP(progress_cancel) struct feed_progress *p = calloc(1, sizeof(*p));
	CLEANUP(buf_release) struct buf path = BUF_INIT;
	char wanted[24];

	if (!p)
		return err_set(-ENOMEM, "progress");
	*p = (struct feed_progress){
		.magic = PROGRESS_MAGIC, .options = *options, .from = BUF_INIT, .rv = BUF_INIT};
	buf_str(&p->from, options->from);
	(void)snprintf(wanted, sizeof(wanted), "%" PRIu64, options->wanted);
	int r = buf_error(&p->from);
	if (r >= 0)
		r = watch_new(&(struct watch_options){.event_fn = progress_take_event, .arg = p},
			&p->watch);
	if (r >= 0)
		r = request_probe_path(options->definition, wanted, &path);
	if (r >= 0)
		r = fetch_start(options->http,
			&(struct fetch_request){.path = buf_cstr(&path),
				.may_be_absent = true,
				.limit = ANSWER_MAX,
				.total_ns = options->answer_ns,
				.done = progress_on_answer,
				.arg = p},
			&p->ask);
	if (r < 0)
		return r;
	*ret_progress = TAKE(p);
	return 0;
}
