/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session's work on the journal, in slices between other feeds: ending a list, deleting the
 * objects of a gone resource (whenGone: drop), and the consistency check.
 */
#include "reflector/feed/session_internal.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/check.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "common/proc.h"
#include "reflector/record/recorder.h"

/* ---- ending a list ------------------------------------------------------ */

void session_finish_begin(struct session *session, const char *rv)
{
	struct list_doubt *doubt = &session->doubt;

	buf_reset(&session->list_rv);
	buf_str(&session->list_rv, rv);
	session->finishing = true;
	doubt->looked = false;
	doubt->heads = doubt->missing = doubt->known = 0;
	buf_reset(&doubt->at);
}

static bool session_count_missing(void *arg, struct bytes key, const struct head *head, bool seen)
{
	struct list_doubt *doubt = arg;

	(void)key, (void)head;
	doubt->heads++;
	doubt->missing += !seen;
	return true;
}

/*
 * Doubts implausible lists (holdMassDelete): a list without many of the known objects may be the
 * answer of a broken server, and followers act on deletions. So before the first deletion is
 * recorded the missing objects are counted, in slices. If their share is too large the list is
 * held, and the second one is believed. Returns: 1: hold it; 0; AGAIN; an error of the journal.
 */
static int session_doubts_list(struct session *session)
{
	struct list_doubt *doubt = &session->doubt;
	const struct record_feed *record = &session->record;
	uint32_t percent = session->shared->policy.hold_percent;

	if (!percent || !record->listed || doubt->looked || doubt->held)
		return 0;
	int r = record_walk_heads(&session->record, &doubt->at, session_count_missing, doubt);
	if (r != 0)
		return r;
	doubt->looked = true;
	doubt->known = doubt->heads - record->added;
	doubt->held = doubt->missing * 100 > doubt->known * percent;
	return doubt->held;
}

/* Holds the list: the sentence stays the feed's error until a list is taken. */
static void session_hold_list(struct session *session)
{
	const struct list_doubt *doubt = &session->doubt;
	char text[STATS_TEXT];

	snprintf(text, sizeof(text),
		"the list of rv %.60s lacks %" PRIu64 " of %" PRIu64
		" objects: held until a second list says so too",
		buf_cstr(&session->list_rv), doubt->missing, doubt->known);
	LOG(feed_list_held, .feed = session->definition.name, .error = text);
	session_set_error(session, text);
	session->failing = true;
	session->logged_kinds |= 1u << FAILURE_KIND_MAX;
	stats_add(session->shared->stats, STAT_LISTS_HELD, 1);
	session->finishing = false;
	session_step_and_do(session, (struct feed_input){.on = FEED_ON_DOUBTED});
}

/* Deletes one slice of the objects missing in the list; at the end LIST_END, and the machine goes
 * on to the watch. */
static int session_finish_list(struct session *session)
{
	const struct session_shared *shared = session->shared;
	struct record_feed *record = &session->record;
	int r = failpoint_pass(FAILPOINT_LIST_RECONCILE);

	if (r < 0)
		return recorder_fail(shared->recorder, r);
	r = session_doubts_list(session);
	if (r == 1) {
		session_hold_list(session);
		return 0;
	}
	if (r == 0)
		r = record_list_end(record, buf_bytes(&session->list_rv));
	if (r == AGAIN)
		return AGAIN;
	if (r >= 0) {
		record_contact(record, &session->list_at);
		r = shared->on_list_end(shared->list_arg, session);
	}
	if (r < 0 || session->stopped) /* it may have been kept only until this list ended */
		return r;
	session->finishing = false;
	session->doubt.held = false;
	session->check_period =
		0; /* the list is to be committed before it is checked: plan again */
	session_set_heard(session);
	session_set_well(session);
	LOG(feed_listed, .feed = session->definition.name, .id = session->definition.id,
		.objects = record->items, .rv = buf_cstr(&session->list_rv));
	if (!session->troubled)
		session_show_passed(session);
	session_step_and_do(session,
		(struct feed_input){.on = FEED_ON_LISTED, .lacking = record_lacks(record)});
	return 0;
}

/* ---- whenGone: drop ----------------------------------------------------- */

/*
 * Deletes a gone resource's objects as if an empty list had come: readers see all of them or none,
 * and followers get a deletion for each. The feed stays, and stays `gone`.
 */
void session_drop_begin(struct session *session)
{
	struct record_feed *record = &session->record;

	if (!session->drop_gone || session->dropping || !record->listed ||
		feed_machine_phase(&session->machine) != FEED_GONE ||
		record_has_objects(record) <= 0)
		return;
	buf_reset(&session->list_rv);
	buf_bytes_put(&session->list_rv, buf_bytes(&record->rv));
	session->dropping =
		record_list_begin(record) >= 0; /* else the batch failed: the loop rewinds */
	session_touch(session);
}

int session_is_void(struct session *session)
{
	CHECK_OBJ(session, SESSION_MAGIC);
	if (feed_machine_phase(&session->machine) != FEED_GONE || session->dropping)
		return 0;
	int r = record_has_objects(&session->record);
	return r < 0 ? r : !r;
}

/* ---- the consistency check, and renewing the RV of a quiet feed --------- */

/* etcd forgets older history, and then a watch can't be opened again. */
#define HISTORY (300 * UINT64_C(1000000000))

/* Sets the time of the next check, from the end of this one or of a list on. The mean distance is
 * the period; the checks of many feeds and hosts drift apart. */
static void session_plan_check(struct session *session)
{
	uint64_t period = session->shared->policy.check_ns;

	session->check_ns = proc_monotonic_ns() + period / 4 + pace_jitter(period / 2);
	session->check_period = period;
	session_touch(session);
}

void session_plan_renewal(struct session *session, uint64_t now_ns)
{
	uint64_t watch_ns = session->shared->policy.watch_ns,
		 least = (watch_ns < HISTORY ? watch_ns : HISTORY) / 2;

	session->renew_ns = now_ns + least + now_ns % (least / 2);
}

static void session_on_checked(void *arg, const struct consistency_result *result)
{
	struct session *session = arg;
	const char *name = session->definition.name;

	CHECK_OBJ(session, SESSION_MAGIC);
	session->check = NULL;
	if (session->renewing) {
		session->renewing = false;
		session_plan_renewal(session, proc_monotonic_ns());
		session_touch(session);
		/* If the newest state is the journal's, the journal has the state of the list's RV
		 * as well. Otherwise the watch's next events move the RV on. */
		if (result->outcome == CONSISTENCY_SAME &&
			session_move_on(session, bytes_str(result->rv), bytes_str(result->list_rv)))
			record_contact(&session->record, &result->at);
		return;
	}
	session_plan_check(session);
	if (result->outcome == CONSISTENCY_UNKNOWN) {
		LOG(feed_not_checked, .feed = name, .rv = result->rv, .error = result->why);
		return;
	}
	stats_add(session->shared->stats, STAT_CHECKS, 1);
	if (result->outcome == CONSISTENCY_SAME)
		return;
	LOG(feed_diverged, .feed = name, .rv = result->rv, .objects = result->ours,
		.server_objects = result->theirs);
	stats_add(session->shared->stats, STAT_DIVERGED, 1);
	/* A running list finds the difference as well. */
	if (session->action.what == FEED_DO_WATCH) {
		session_set_error(session,
			"the consistency check found a difference: it is being listed again");
		session_on(session, FEED_ON_RELIST);
	}
}

uint64_t session_check_at(struct session *session)
{
	uint64_t period = session->shared->policy.check_ns;

	if (session->check || session->action.what != FEED_DO_WATCH)
		return UINT64_MAX;
	if (!session->renew_ns)
		session_plan_renewal(session, proc_monotonic_ns());
	if (period && session->check_period != period)
		session_plan_check(session);
	return period && session->check_ns < session->renew_ns ? session->check_ns
							       : session->renew_ns;
}

void session_check_start(struct session *session)
{
	struct consistency_request request = {
		.http = session->shared->http,
		.journal = recorder_journal(session->shared->recorder),
		.definition = &session->definition,
		.page_size = session->machine.page_size,
		.answer_ns = session->shared->policy.answer_ns,
		.arg = session,
		.done = session_on_checked,
	};

	uint64_t now = proc_monotonic_ns();
	session->renewing = request.newest = session->renew_ns <= now;
	if (session->renewing)
		session_plan_renewal(session, now);
	else
		session_plan_check(session);
	/* A feed with skipped objects differs from the server by intent. */
	if (session->machine.tolerant || record_lacks(&session->record))
		return;
	err_ignore(
		consistency_start(&request, &session->check), "the feed is checked a period later");
	session_touch(session); /* or a feed without events never gets on with it */
}

bool session_is_checking(const struct session *session)
{
	return session->check != NULL;
}

/* ---- a turn ------------------------------------------------------------- */

int session_work(struct session *session)
{
	CHECK_OBJ(session, SESSION_MAGIC);
	if (session->action.what == FEED_DO_WAIT && session->action.until_ns <= proc_monotonic_ns())
		session_step_and_do(session, (struct feed_input){.on = FEED_ON_TICK});
	if (session->well_ns && session->well_ns <= proc_monotonic_ns()) {
		session->well_ns = 0;
		session->useless_watch = false;
		session_set_well(session);
	}
	if (session->stopped)
		return 0;
	if (session_progress_at(session) <= proc_monotonic_ns())
		session_progress_start(session);
	if (session->record.passed_unsure && session->action.what == FEED_DO_WATCH) {
		session->record.passed_unsure = false;
		session_on(session, FEED_ON_RELIST);
	}
	int more = session->check ? consistency_work(session->check) : 0;
	int r = 0;
	if (session->dropping) {
		r = record_list_end(&session->record, buf_bytes(&session->list_rv));
		if (r == 0) {
			session->dropping = false;
			/* record_list_end made it SYNCED. */
			record_phase(&session->record, FEED_GONE);
			LOG(feed_dropped, .feed = session->definition.name,
				.id = session->definition.id);
			session_touch(session);
		}
	} else if (session->finishing) {
		r = session_finish_list(session);
	}
	return r ? r : more;
}

int session_abandon_old(struct session *session, uint64_t limit_ns)
{
	struct record_feed *record = &session->record;
	uint64_t now = proc_monotonic_ns();
	uint64_t age = now > record->list_mono_ns ? now - record->list_mono_ns : 0;

	if (session->stopped || !record->listed || !record->list_begin || age < limit_ns)
		return 0;
	LOG(feed_list_abandoned, .feed = session->definition.name, .id = session->definition.id);
	return record_list_abandon(record);
}
