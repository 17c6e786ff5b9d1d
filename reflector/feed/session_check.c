/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/session_internal.h"

#include <inttypes.h>

#include "common/check.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "reflector/record/batch.h"

/* The next one, from the end of this one or of a list on. The mean distance is the period; the checks
 * of many feeds and machines drift apart. */
static void plan(struct session *session)
{
	uint64_t period = session->shared->policy.check_ns;

	session->check_ns = proc_monotonic_ns() + period / 4 + pace_jitter(period / 2);
	session->check_period = period;
}

static void say_diverged(struct session *session, const struct consistency_result *result)
{
	LOG(feed_diverged, .feed = session->definition.name, .rv = result->rv,
		.objects = result->ours, .server_objects = result->theirs);
	stats_add(session->shared->stats, STAT_DIVERGED, 1);
}

static void on_checked(void *arg, const struct consistency_result *result)
{
	struct session *session = arg;

	CHECK_OBJ(session, SESSION_MAGIC);
	session->check = NULL;
	plan(session);
	if (result->outcome == CONSISTENCY_UNKNOWN) {
		LOG(feed_not_checked, .feed = session->definition.name, .rv = result->rv,
			.error = result->why);
		return;
	}
	stats_add(session->shared->stats, STAT_CHECKS, 1);
	if (result->outcome == CONSISTENCY_SAME)
		return;
	say_diverged(session, result);
	/* A list that is on its way already brings the same. */
	if (session->action.what == FEED_DO_WATCH)
		session_relist(session);
}

uint64_t session_check_at(struct session *session)
{
	uint64_t period = session->shared->policy.check_ns;

	if (!period || session->check || session->action.what != FEED_DO_WATCH)
		return UINT64_MAX;
	if (session->check_period != period)
		plan(session);
	return session->check_ns;
}

void session_check_start(struct session *session)
{
	struct consistency_request request = {
		.http = session->shared->http,
		.journal = recorder_journal(session->shared->recorder),
		.definition = &session->definition,
		.page_size = session->feed.page_size,
		.answer_ns = session->shared->policy.answer_ns,
		.arg = session,
		.done = on_checked,
	};

	plan(session);
	/* What was passed over, or is about to change as a whole, differs from the server by intent. */
	if (session->feed.tolerant)
		return;
	if (consistency_start(&request, &session->check) < 0)
		err_clear(); /* memory, or the journal, whose own errors are seen elsewhere: later */
}

bool session_is_checking(const struct session *session)
{
	return session->check != NULL;
}

int session_check_work(struct session *session)
{
	return session->check ? consistency_work(session->check) : 0;
}
