/* SPDX-License-Identifier: Apache-2.0 */
/* Progress on demand: moves the feed's RV on when a second watch has proved that nothing lies
 * between. */
#include "reflector/feed/session_internal.h"

#include <stdlib.h>

#include "common/check.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "reflector/record/recorder.h"

#define PROGRESS_PAUSE UINT64_C(1000000000) /* from one to the next */

/* Returns whether the feed's state is that of one RV which a server may have left; sets the RV. */
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
 * FROM is the RV that the second watch began at, and RV its bookmark's. The journal holds the
 * whole state as of machine.rv. If that is still FROM, nothing was taken since, and nothing lies
 * between, so it holds the state as of RV as well. If it is not, what the feed's own watch has
 * brought says more.
 */
static void session_on_progress(void *arg, struct bytes from, struct bytes rv)
{
	struct session *session = arg;

	CHECK_OBJ(session, SESSION_MAGIC);
	session->progress = NULL;
	(void)session_move_on(session, from, rv);
	session->wanted = 0; /* who still waits asks again */
	session_touch(session);
}

void session_progress(struct session *session, uint64_t wanted)
{
	uint64_t have;

	CHECK_OBJ(session, SESSION_MAGIC);
	if (!session_has_rv(session, &have) || wanted <= have)
		return;
	/* The smallest one: what a client asks for may be an RV that no server ever gives. */
	if (session->wanted && session->wanted <= wanted)
		return;
	if (session->progress && !progress_asks(session->progress))
		return; /* the server is beyond the smaller one already */
	/* The larger one may never come: the first that takes its place does not wait for the
	 * end of its pause. */
	if (session->progress && !session->progress_replaced) {
		session->progress_replaced = true;
		session->progress_ns = 0;
	}
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
	session->progress_replaced &= session->progress_ns == 0;
	session->progress_ns = now + PROGRESS_PAUSE;
	int r = progress_start(&(struct progress_request){.http = session->shared->http,
				       .definition = &session->definition,
				       .from = buf_cstr(&session->machine.rv),
				       .wanted = session->wanted,
				       .answer_ns = session->shared->policy.answer_ns,
				       .arg = session,
				       .done = session_on_progress},
		&session->progress);
	if (r < 0)
		session->wanted = 0;
	err_ignore(r, "who waits asks again");
}
