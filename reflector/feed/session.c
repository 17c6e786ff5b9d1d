/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "common/text/text.h"
#include "reflector/feed/definition.h"
#include "reflector/feed/session_internal.h"
#include "reflector/record/recorder.h"

#define SHORT_WATCH UINT64_C(1000000000)
/* discovery is not asked for each of many objects */
#define WRONG_KIND_PAUSE UINT64_C(1000000000)
/* How much later than others a feed counts as queued. */
#define FIRST_LIST_WAITS (300 * UINT64_C(1000000000))
#define MUTE_WAITS       (2 * FIRST_LIST_WAITS)

/* ---- status row and log ------------------------------------------------- */

void session_touch(struct session *session)
{
	session->row_changed = true;
	timer_queue_touch(session->shared->timers, &session->item);
}

void session_set_error(struct session *session, const char *text)
{
	session->troubled = true;
	text_shorten(bytes_str(text), session->row.error, sizeof(session->row.error));
	session_touch(session);
}

/* Makes the skipped objects the error of an otherwise healthy feed. */
static void session_set_passed_error(struct session *session)
{
	const struct record_feed *record = &session->record;
	const struct passed *last = record->n_passed ? &record->passed[record->n_passed - 1] : NULL;
	char *error = session->row.error;

	session->passed_shown = record->passed_changes;
	if (!record_lacks(record))
		*error = '\0';
	else if (!last)
		(void)snprintf(
			error, STATS_TEXT, "objects can't be stored: the next list shows which");
	else if (record->n_passed == 1 && !record->passed_more)
		(void)snprintf(error, STATS_TEXT, "an object can't be stored: '%.120s': %.80s",
			*last->name ? last->name : "unnamed", last->why);
	else
		(void)snprintf(error, STATS_TEXT,
			"%s%u objects can't be stored: '%.120s': %.60s ...",
			record->passed_more ? "over " : "", (unsigned)record->n_passed,
			*last->name ? last->name : "unnamed", last->why);
	session_touch(session);
}

void session_set_heard(struct session *session)
{
	session->row.heard_ns = proc_realtime_ns();
	session_touch(session);
}

/* The feed no longer counts as hit by an outage. */
static void session_leave_outage(struct session *session)
{
	if (session->counted)
		session->shared->outage->failing--;
	session->counted = false;
}

void session_set_well(struct session *session)
{
	if (!session->troubled || session->useless_watch)
		return;
	/* The loop logs the end of a rewind: it concerned the whole store. */
	if (session->logged_kinds && !record_lacks(&session->record))
		LOG(feed_recovered, .feed = session->definition.name);
	if (session->failing)
		session->shared->on_well(session->shared->arg, session);
	session_leave_outage(session);
	session->troubled = session->failing = false;
	session->logged_kinds = 0;
	session_set_passed_error(session);
}

/* Asks discovery for the feed's resource again after an object of another kind or scope: a custom
 * resource may have been deleted and made again under the same name. */
static void session_rediscover(struct session *session)
{
	const struct session_shared *shared = session->shared;
	uint64_t now = proc_monotonic_ns();

	if (!session->record.wrong_kind || now < session->wrong_kind_ns)
		return;
	session->record.wrong_kind = false;
	session->wrong_kind_ns = now + WRONG_KIND_PAUSE;
	if (shared->discovery)
		discovery_expire(shared->discovery);
	shared->on_failure(shared->arg, session, FAILURE_ABSENT);
}

void session_show_passed(struct session *session)
{
	const struct record_feed *record = &session->record;
	bool lacks = record_lacks(record);

	session_rediscover(session);
	if (record->passed_changes != session->passed_shown)
		session_set_passed_error(session);
	if (lacks && !session->lacking)
		LOG(feed_object_unreadable, .feed = session->definition.name,
			.error = session->row.error);
	else if (!lacks && session->lacking)
		LOG(feed_object_readable, .feed = session->definition.name);
	session->lacking = lacks;
}

/* Returns true if an accepted watch was of no use: it failed without an event, and neither by an
 * answer to the request (410, 403, 404) nor, after its first moment, by a broken connection. */
static bool session_watch_is_useless(const struct session *session, enum failure_kind kind)
{
	const struct feed_machine *machine = &session->machine;

	if (machine->state != FEED_AT_WATCHING || !machine->alive || machine->progress)
		return false;
	if (kind == FAILURE_NETWORK)
		return proc_monotonic_ns() - machine->started_ns < SHORT_WATCH;
	return kind != FAILURE_EXPIRED && kind != FAILURE_RV_AHEAD && kind != FAILURE_FORBIDDEN &&
	       kind != FAILURE_ABSENT;
}

void session_fail(struct session *session, const struct status *status)
{
	const struct session_shared *shared = session->shared;
	uint32_t kind = 1u << status->kind;
	const char *name = session->definition.name, *kind_name = failure_kind_name(status->kind);
	const char *state = feed_state_name(session->machine.state);
	/* A 404 is news to discovery and cluster, unless discovery itself reported it. */
	bool known = status->kind == FAILURE_ABSENT && session->machine.state == FEED_AT_RESOLVING;

	if (session_watch_is_useless(session, status->kind))
		session->useless_watch = true;
	/* A restarted API server has none of the RVs of before. */
	bool is_outage = status->kind == FAILURE_NETWORK || status->kind == FAILURE_EXPIRED;
	struct session_outage *outage = is_outage && !session->counted ? shared->outage : NULL;
	/* The log has the failures of some other feeds already. */
	bool many = outage && outage->failing == SESSION_OUTAGE_LINES;

	if (outage && !many) {
		outage->failing++;
		session->counted = true;
	}

	if (many || session->logged_kinds & kind)
		LOG(feed_failed_again, .feed = name, .kind = kind_name, .state = state,
			.error = status->text);
	else
		LOG(feed_failed, .feed = name, .kind = kind_name, .state = state,
			.error = status->text);
	session->logged_kinds |= many ? 0 : kind;
	session_set_error(session, status->text);
	session->failing = true;
	session->vouched_ns = 0;
	session->row.retries++;
	session_rediscover(session);
	if (status->kind == FAILURE_ABSENT && !known && shared->discovery)
		discovery_expire(shared->discovery);
	if (!known)
		shared->on_failure(shared->arg, session, status->kind);
	session_step_and_do(session, (struct feed_input){.on = FEED_ON_FAILED, .status = status});
}

void session_fail_with(struct session *session, enum failure_kind kind, const char *text)
{
	struct status status;

	status_set(kind, text, &status);
	session_fail(session, &status);
}

bool session_settle(struct session *session)
{
	CHECK_OBJ(session, SESSION_MAGIC);
	uint64_t until = session->action.what == FEED_DO_WAIT ? session->action.until_ns
			 : session->well_ns                   ? session->well_ns
							      : UINT64_MAX;
	uint64_t progress_at = session_progress_at(session);
	timer_queue_set_time(
		session->shared->timers, &session->item, progress_at < until ? progress_at : until);
	if (session->row_changed) {
		session->row_changed = false;
		session->row.phase = feed_machine_phase(&session->machine);
		if (session->action.what == FEED_DO_LIST || session->action.what == FEED_DO_STREAM)
			session->row.list_done = session->record.items;
		(void)stats_feed_set(session->shared->stats, &session->row); /* no room: no row */
	}
	return !session->stopped &&
	       (session->finishing || session->dropping ||
		       (session->check && consistency_has_work(session->check)));
}

/* ---- the machine -------------------------------------------------------- */

void session_step(struct session *session, struct feed_input in, struct feed_action *ret_action)
{
	/* Events and answers come by the thousand and need no random number. */
	bool hot = in.on == FEED_ON_EVENT || in.on == FEED_ON_ALIVE;

	in.now_ns = proc_monotonic_ns();
	in.random = hot ? in.now_ns : pace_random();
	/* After these many feeds may want to send a request at once. */
	if (in.on == FEED_ON_START || in.on == FEED_ON_RESUME || in.on == FEED_ON_ENDED ||
		in.on == FEED_ON_FAILED)
		in.span_ns = pace_span(session->shared->pace, in.now_ns);
	feed_machine_step(&session->machine, &in, ret_action);
	if (in.on == FEED_ON_EVENT || in.on == FEED_ON_BOOKMARK || in.on == FEED_ON_LISTED)
		session_plan_renewal(session, in.now_ns);
	if (ret_action->phase_changed) {
		enum feed_phase phase = feed_machine_phase(&session->machine);

		LOG(feed_phase, .feed = session->definition.name, .id = session->definition.id,
			.phase = feed_phase_name(phase));
		record_phase(&session->record, phase);
		session_touch(session);
	}
}

void session_step_and_do(struct session *session, struct feed_input in)
{
	struct feed_action action;

	session_step(session, in, &action);
	session_perform(session, &action);
}

static void session_resolve(struct session *session)
{
	const struct feed_definition *d = &session->definition;
	struct resource resource;
	char name[512];

	snprintf(name, sizeof(name), "%s.%s%s%s", d->resource, d->version, *d->group ? "." : "",
		d->group);
	int r = discovery_find(session->shared->discovery, name, &resource);
	if (r == FOUND) {
		session_step_and_do(session, (struct feed_input){.on = FEED_ON_RESOLVED});
	} else if (r == ERR_NO_RESOURCE) {
		/* Discovery confirms the server's 404 a while later, so the server was not just
		 * starting. */
		session_fail_with(session, FAILURE_ABSENT, err_text(r));
		session_drop_begin(session);
	} else if (r != AGAIN) {
		session_fail_with(session, FAILURE_NETWORK, err_text(r));
	}
}

/* Ends the request, drops its held bytes, and stops finishing a list: deletions that went on in the
 * next attempt would find no object seen, and delete all. */
static void session_let_go(struct session *session)
{
	http_cancel(&session->call);
	session->well_ns = 0;
	session->over = session->finishing = false;
	buf_trim(&session->held, 0);
}

bool session_is_listing(const struct session *session)
{
	enum feed_do what = session->action.what;

	return what == FEED_DO_LIST || what == FEED_DO_STREAM || what == FEED_DO_FINISH_LIST;
}

static void session_set_action(struct session *session, const struct feed_action *action)
{
	const struct session_shared *shared = session->shared;

	*shared->listing -= session_is_listing(session);
	*shared->queued -= session->queued_ns != 0;
	session->action = *action;
	session->queued_ns = action->what == FEED_DO_QUEUE ? proc_monotonic_ns() : 0;
	*shared->listing += session_is_listing(session);
	*shared->queued += session->queued_ns != 0;
	session_touch(session);
}

void session_perform(struct session *session, const struct feed_action *action)
{
	if (action->what == FEED_DO_NOTHING)
		return;
	if (!action->keep)
		session_let_go(session);
	if (action->what == FEED_DO_FAIL) {
		session_fail_with(session, FAILURE_PROTOCOL, action->why);
		return;
	}
	session_set_action(session, action);
	switch (action->what) {
	case FEED_DO_RESOLVE:
		session_resolve(session);
		break;
	case FEED_DO_LIST:
	case FEED_DO_STREAM:
		session->dropping = false; /* the resource is back: the same bracket goes on */
		if (action->first) {
			LOG(feed_listing, .feed = session->definition.name,
				.id = session->definition.id, .rv = action->rv);
			session->row.list_done = session->row.list_total = 0;
			session->list_at = (struct moment){0};
			if (record_list_begin(&session->record) < 0)
				return; /* the batch failed: the loop rewinds */
		}
		session_call_start(session, action);
		break;
	case FEED_DO_FINISH_LIST:
		session_finish_begin(session, action->rv);
		break;
	case FEED_DO_WATCH:
		LOG(feed_watching, .feed = session->definition.name, .rv = action->rv);
		if (action->keep)
			session_count_accepted(session); /* with its list */
		if (action->keep)
			session_stream_go_on(session);
		else
			session_call_start(session, action);
		break;
	case FEED_DO_ROLLED_BACK:
		session_set_error(session, "the server's newest state is older than ours");
		session->shared->on_etcd_rollback(session->shared->arg, session);
		break;
	case FEED_DO_NOTHING:
	case FEED_DO_QUEUE:
	case FEED_DO_WAIT:
	case FEED_DO_FAIL:
	case FEED_DO_MAX:
		break;
	}
}

/* ---- life --------------------------------------------------------------- */

int session_new(const struct session_shared *shared, const struct feed_definition *definition,
	const struct feed_checkpoint *checkpoint, uint32_t page_size, struct session **ret_session)
{
	CLEANUP(session_free) struct session *session = calloc(1, sizeof(*session));

	if (!session)
		return err_set(-ENOMEM, "a feed");
	session->magic = SESSION_MAGIC;
	session->shared = shared;
	session->item.owner = session;
	buf_init(&session->list_rv, 2048);
	buf_init(&session->doubt.at, JOURNAL_KEY_MAX + 1);
	feed_machine_init(&session->machine, page_size, &shared->policy);
	session->row.feed = definition->id;
	int r = definition_copy(definition, &session->definition);
	if (r >= 0)
		r = record_feed_init(&session->record, shared->recorder, definition, checkpoint);
	if (r >= 0)
		r = session_call_init(session);
	if (r >= 0)
		r = timer_queue_add(shared->timers, &session->item);
	if (r < 0)
		return r;
	session_show_passed(session);
	session_touch(session);
	*ret_session = TAKE(session);
	return 0;
}

void session_free(struct session **session)
{
	struct session *s = *session;

	if (!s)
		return;
	CHECK_OBJ(s, SESSION_MAGIC);
	session_set_action(s, &(struct feed_action){.what = FEED_DO_NOTHING});
	timer_queue_remove(s->shared->timers, &s->item);
	http_cancel(&s->call);
	fetch_cancel(&s->probe);
	progress_cancel(&s->progress);
	session_leave_outage(s);
	consistency_cancel(&s->check);
	(void)stats_feed_remove(s->shared->stats, s->row.feed); /* a row it may not have */
	recorder_leave(s->shared->recorder, &s->record);
	record_feed_release(&s->record);
	feed_machine_release(&s->machine);
	list_free(&s->list);
	watch_free(&s->watch);
	definition_release(&s->definition);
	buf_release(&s->error_body);
	buf_release(&s->list_rv);
	buf_release(&s->doubt.at);
	buf_release(&s->held);
	s->magic = 0;
	free(s);
	*session = NULL;
}

static int session_replace_text(const char **text, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return err_set(-ENOMEM, "a feed's names");
	free((void *)*text);
	*text = copy;
	return 0;
}

int session_rename(struct session *session, const char *name)
{
	CHECK_OBJ(session, SESSION_MAGIC);
	return session_replace_text(&session->definition.name, name);
}

int session_set_aliases(struct session *session, const char *aliases, const char *categories)
{
	CHECK_OBJ(session, SESSION_MAGIC);
	int r = session_replace_text(&session->definition.aliases, aliases);
	return r < 0 ? r : session_replace_text(&session->definition.categories, categories);
}

void session_set_resync(struct session *session, uint64_t resync_ns)
{
	CHECK_OBJ(session, SESSION_MAGIC);
	session->definition.resync_ns = resync_ns;
}

void session_tune(struct session *session, uint32_t page_size, bool drop_gone)
{
	CHECK_OBJ(session, SESSION_MAGIC);
	session->machine.page_size = page_size;
	session->drop_gone = drop_gone;
}

void session_stop(struct session *session)
{
	CHECK_OBJ(session, SESSION_MAGIC);
	session_let_go(session);
	session_set_action(session, &(struct feed_action){.what = FEED_DO_NOTHING});
	consistency_cancel(&session->check);
	fetch_cancel(&session->probe);
	progress_cancel(&session->progress);
	session->wanted = 0;
	session->stopped = true;
}

/* Returns whether an object was passed over because it is larger than maxObjectSize was then:
 * now it may fit. */
static bool session_fits_more(const struct session *session)
{
	return record_would_fit(&session->record, session->shared->policy.max_object_bytes);
}

void session_list_what_fits(struct session *session)
{
	if (session_fits_more(session))
		session_on(session, FEED_ON_RELIST);
}

void session_on(struct session *session, enum feed_on on)
{
	const struct record_feed *record = &session->record;

	CHECK_OBJ(session, SESSION_MAGIC);
	/* The machine reads the checkpoint at the start and when it goes back to it. */
	session_step_and_do(
		session, (struct feed_input){.on = on,
				 .rv = buf_bytes(&record->rv),
				 .deletion = record->deletion,
				 .phase = record->phase,
				 .list_open = record->list_ns != 0 || session_fits_more(session),
				 .listed = record->listed,
				 .resolved = true});
}

int session_rewind(struct session *session, const char *why)
{
	session_stop(session);
	session->stopped = session->has_next = session->dropping = false;
	session_set_error(session, why);
	session->definition.resync_ns = UINT64_MAX; /* unknown: it is set once more */
	int r = record_feed_reload(&session->record);
	if (r >= 0)
		session_on(session, FEED_ON_REWIND);
	return r;
}

void session_discovered(struct session *session, int result)
{
	if (session->action.what != FEED_DO_RESOLVE)
		return;
	if (result < 0)
		session_fail_with(session, FAILURE_NETWORK, err_text(result));
	else
		session_resolve(session);
}

/* ---- questions ---------------------------------------------------------- */

const struct feed_definition *session_definition(const struct session *session)
{
	CHECK_OBJ(session, SESSION_MAGIC);
	return &session->definition;
}

const char *session_obstacle(const struct session *session)
{
	CHECK_OBJ(session, SESSION_MAGIC);
	return session->failing || session->machine.state == FEED_AT_HELD ? session->row.error
									  : NULL;
}

bool session_is_queued(const struct session *session)
{
	return session->queued_ns != 0;
}

uint64_t session_place(const struct session *session)
{
	return session->queued_ns + (session->record.listed ? 0 : FIRST_LIST_WAITS) +
	       (session->mute ? MUTE_WAITS : 0);
}

uint64_t session_changes(const struct session *session)
{
	return session->changes;
}

bool session_is_mute(const struct session *session)
{
	return session->mute;
}

uint64_t session_silent_at(const struct session *session)
{
	enum feed_do what = session->action.what;

	return what == FEED_DO_LIST || what == FEED_DO_STREAM ? session->heard_ns + SESSION_SILENT
							      : UINT64_MAX;
}

const struct record_feed *session_record(const struct session *session)
{
	CHECK_OBJ(session, SESSION_MAGIC);
	return &session->record;
}
