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
static void plan(struct runner *runner)
{
	uint64_t period = runner->shared->policy.check_ns;

	runner->check_ns = proc_monotonic_ns() + period / 4 + pace_jitter(period / 2);
	runner->check_period = period;
}

static void say_diverged(struct runner *runner, const struct consistency_result *result)
{
	log_event(LOG_WARNING, "feed", "diverged", "feed=%s rv=%s objects=%" PRIu64 " server=%" PRIu64
		" text=%s", log_quote(runner->definition.name), log_quote(result->rv), result->ours,
		result->theirs, log_quote("not what the server had: listing"));
	stats_add(runner->shared->stats, STAT_DIVERGED, 1);
}

static void on_checked(void *arg, const struct consistency_result *result)
{
	struct runner *runner = arg;

	CHECK_OBJ(runner, RUNNER_MAGIC);
	runner->check = NULL;
	plan(runner);
	if (result->outcome == CONSISTENCY_UNKNOWN) {
		log_event(LOG_INFO, "feed", "not-checked", "feed=%s rv=%s error=%s",
			log_quote(runner->definition.name), log_quote(result->rv),
			log_quote(result->why));
		return;
	}
	stats_add(runner->shared->stats, STAT_CHECKS, 1);
	if (result->outcome == CONSISTENCY_SAME)
		return;
	say_diverged(runner, result);
	/* A list that is on its way already brings the same. */
	if (runner->action.what == FEED_DO_WATCH)
		runner_relist(runner);
}

uint64_t runner_check_at(struct runner *runner)
{
	uint64_t period = runner->shared->policy.check_ns;

	if (!period || runner->check || runner->action.what != FEED_DO_WATCH)
		return UINT64_MAX;
	if (runner->check_period != period)
		plan(runner);
	return runner->check_ns;
}

void runner_check_start(struct runner *runner)
{
	struct consistency_request request = {
		.http = runner->shared->http,
		.journal = recorder_journal(runner->shared->recorder),
		.definition = &runner->definition,
		.page_size = runner->feed.page_size,
		.answer_ns = runner->shared->policy.answer_ns,
		.arg = runner,
		.done = on_checked,
	};

	plan(runner);
	/* What was passed over, or is about to change as a whole, differs from the server by intent. */
	if (feed_is_tolerant(&runner->feed))
		return;
	if (consistency_start(&request, &runner->check) < 0)
		err_clear(); /* memory, or the journal, whose own errors are seen elsewhere: later */
}

bool runner_is_checking(const struct runner *runner)
{
	return runner->check != NULL;
}

int runner_check_work(struct runner *runner)
{
	return runner->check ? consistency_work(runner->check) : 0;
}
