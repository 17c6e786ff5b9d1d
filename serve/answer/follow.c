/* SPDX-License-Identifier: Apache-2.0 */
/* The events that a watch sends: the initial objects, then the changes after its position. */
#include <stdio.h>
#include <stdlib.h>

#include "common/err.h"
#include "common/proc.h"
#include "serve/answer/answer_internal.h"

#define WATCH_ENTRIES 32 /* read from the timeline at once */

/* ---- the end ------------------------------------------------------------ */

/* Ends the stream with the Status of the request. */
static void watch_fail(struct answer_watch *watch)
{
	answer_encode_error(watch->request, &watch->out);
	watch->stage = WATCH_ENDED;
}

void answer_watch_expire(struct answer_watch *watch)
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

/* Counts an event that was added to OUT, which had BEFORE bytes. */
static void watch_count(struct answer_watch *watch, size_t before)
{
	metric_add(watch->events, 1);
	metric_observe_size(watch->sizes, watch->out.size - before);
}

/* ---- initial objects ---------------------------------------------------- */

static int watch_begin_initial(struct answer_watch *watch)
{
	struct answer_request *request = watch->request;
	uint64_t now = proc_monotonic_ns();
	struct answer_state state = {0};
	int r = answer_find_state(request, 0, &state);

	if (r == AGAIN && now < request->wait_until_ns) {
		watch->retry_ns = now + ANSWER_RETRY_NS;
		answer_watch_set_timer(watch);
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
	watch->position = state.seq;
	memcpy(watch->rv, state.rv, sizeof(watch->rv));
	watch->stage = WATCH_INITIAL;
	return r;
}

static void watch_end_initial(struct answer_watch *watch)
{
	struct answer_request *request = watch->request;
	const struct feed_definition *d = &request->feed->definition;

	answer_objects_free(&watch->objects);
	watch->stage = WATCH_LIVE;
	catalog_raise_floor(request->feed, watch->position);
	metric_observe_ns(metrics_cell(request->worker->answer->metrics, METRIC_WATCH_LIST_SECONDS,
				  (const char *[]){d->group, d->version, d->resource,
					  *request->path.namespace_ ? "namespace" : "cluster"}),
		proc_monotonic_ns() - request->x->began_ns);
	if (api_options_marks_end(&request->options))
		answer_encode_bookmark(&watch->encoder, watch->rv, true, &watch->out);
}

static int watch_initial(struct answer_watch *watch, uint64_t until_ns)
{
	struct record record;
	int r = answer_objects_renew(watch->objects);

	while (r == 0 && watch->out.size < WATCH_PIECE) {
		r = answer_objects_next(watch->objects, until_ns, &record);
		if (r != FOUND)
			break;
		size_t before = watch->out.size;

		r = answer_encode_event(
			&watch->encoder, "ADDED", record.body, BYTES_NONE, &watch->out);
		watch_count(watch, before);
	}
	answer_objects_rest(watch->objects);
	if (r == AGAIN) /* the slice is over */
		return 0;
	if (r == END) {
		watch_end_initial(watch);
		return 0;
	}
	if (r == LAPPED || r == GONE) {
		answer_watch_expire(watch);
		return 0;
	}
	return r;
}

/* ---- live --------------------------------------------------------------- */

static void watch_came_to(struct answer_watch *watch, struct bytes rv)
{
	if (rv.size && rv.size < sizeof(watch->rv))
		(void)snprintf(watch->rv, sizeof(watch->rv), "%.*s", BYTES_ARG(rv));
}

static bool watch_skips(const struct answer_watch *watch, struct bytes rv)
{
	timeline_rv number;

	return watch->skip && timeline_rv_parse(rv, &number) && number <= watch->skip;
}

/* Gives what is left of a relist. Returns: 0; LAPPED; errors. */
static int watch_give_bracket(struct answer_watch *watch)
{
	struct answer_bracket *bracket = watch->bracket;
	int r = 0;

	while (r == 0 && bracket->next < bracket->n && watch->out.size < WATCH_PIECE) {
		char stamp[TIMELINE_RV_SIZE];
		size_t before = watch->out.size;

		memcpy(stamp, watch->rv, sizeof(stamp));
		r = answer_bracket_next(&watch->encoder, bracket, stamp, &watch->out);
		if (r == 1)
			watch_count(watch, before);
		r = r == 1 ? 0 : r;
	}
	if (r != 0 || bracket->next < bracket->n)
		return r;
	watch->position = bracket->entry.seq;
	if (bracket->entry.rv >> 127 == 0) /* else it is a hash */
		timeline_rv_format(bracket->entry.rv, watch->rv);
	answer_bracket_free(&watch->bracket);
	return 0;
}

/* Gives the event of a record as it is for this watch alone. */
static int watch_give_own(struct answer_watch *watch, uint64_t seq, bool *held)
{
	struct answer_request *request = watch->request;
	struct record record;
	int r = *held ? 0 : answer_hold_log(request->worker);

	*held |= r == 0;
	if (r == 0)
		r = answer_event_read(request, seq, &record);
	return r != 0 ? r
		      : answer_event_record(
				&watch->encoder, &record, bytes_str(watch->rv), &watch->out);
}

/* Gives an entry of the timeline. *HELD: the log is held. Returns: 0; LAPPED, AGAIN; errors. */
static int watch_give_entry(
	struct answer_watch *watch, const struct timeline_entry *entry, bool *held)
{
	struct answer_request *request = watch->request;
	bool begins_table = request->accept.form == API_FORM_TABLE && !watch->encoder.columns_given;
	const struct answer_frame *frame;
	size_t before = watch->out.size;
	int r;

	if (entry->begin) {
		r = *held ? 0 : answer_hold_log(request->worker);
		*held |= r == 0;
		if (r == 0)
			r = answer_bracket_load(request, entry, &watch->bracket);
		return r != 0 ? r : watch_give_bracket(watch);
	}
	r = answer_frame(request, watch->group, entry->seq, held, &frame);
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
			watch_count(watch, before);
	}
	watch->position = entry->seq;
	return 0;
}

/* Sends a bookmark. NEWEST: the RV of the visible state, which the watch has sent in full. */
static void watch_bookmark(struct answer_watch *watch, const char *newest)
{
	watch->bookmark_due = false;
	if (!*newest || watch_skips(watch, bytes_str(newest)))
		return;
	watch_came_to(watch, bytes_str(newest));
	answer_encode_bookmark(&watch->encoder, watch->rv, false, &watch->out);
}

/* Gives what has come after the position. Returns: 0: something was given, or the stream has ended;
 * AGAIN: there is nothing; errors. */
static int watch_live(struct answer_watch *watch)
{
	struct answer_request *request = watch->request;
	struct answer *answer = request->worker->answer;
	struct timeline *timeline = &request->feed->timeline;
	struct timeline_entry entries[WATCH_ENTRIES];
	char newest[TIMELINE_RV_SIZE];
	uint64_t walked = watch->group->feed->walked, position, visible;
	bool held = false;
	size_t n = 0;
	int r = 0;

	if (watch->caught_up && watch->position < walked)
		watch->position = walked;
	answer_group_set_caught_up(watch, false);
	position = watch->position;
	catalog_lock(answer->catalog);
	bool gone = __atomic_load_n(&request->feed->gone, __ATOMIC_ACQUIRE);
	while (!watch->bracket && n < WATCH_ENTRIES &&
		(r = timeline_next(timeline, position, &entries[n])) == FOUND)
		position = entries[n++].seq;
	visible = timeline->visible;
	memcpy(newest, timeline->newest_text, sizeof(newest));
	catalog_unlock(answer->catalog);
	if (gone || (n == 0 && r == LAPPED)) {
		answer_watch_expire(watch);
		return 0;
	}
	if (n == 0 && !watch->bracket) {
		if (watch->position < visible)
			watch->position = visible;
		answer_group_set_caught_up(watch, true);
		if (request->is_leaf && request->options.bookmarks) {
			double age;
			char why[200];
			bool stale = answer_is_stale(request, &age, why);

			watch->bookmark_due |= stale != watch->said_stale;
			watch->said_stale = stale;
		}
		if (!watch->bookmark_due)
			return AGAIN;
		watch_bookmark(watch, newest);
		return watch->out.size > watch->taken ? 0 : AGAIN;
	}
	/* The snapshot comes after the entries, so that it has their records. */
	r = watch->bracket ? answer_hold_log(request->worker) : 0;
	if (watch->bracket) {
		held = r == 0;
		if (r == 0)
			r = watch_give_bracket(watch);
	}
	for (size_t i = 0; r == 0 && i < n && watch->out.size < WATCH_PIECE; i++) {
		r = watch_give_entry(watch, &entries[i], &held);
		if (watch->bracket)
			break;
	}
	if (held)
		answer_rest(request->worker);
	catalog_raise_floor(request->feed, watch->position);
	if (r == AGAIN) { /* the log can't be read now; nobody wakes a watch that lags */
		watch->retry_ns = proc_monotonic_ns() + ANSWER_RETRY_NS;
		answer_watch_set_timer(watch);
	}
	if (r == LAPPED) {
		answer_watch_expire(watch);
		return 0;
	}
	return r;
}

/* ---- one turn ----------------------------------------------------------- */

int answer_watch_produce(struct answer_watch *watch)
{
	struct answer_worker *worker = watch->request->worker;
	uint64_t until_ns = proc_monotonic_ns() + ANSWER_SLICE_NS;
	int r;

	if (watch->stage == WATCH_LIVE)
		return watch_live(watch);
	r = answer_hold(worker);
	if (r == 0 && watch->stage == WATCH_WAIT)
		r = watch_begin_initial(watch);
	if (r == 0 && watch->stage == WATCH_INITIAL)
		r = watch_initial(watch, until_ns);
	answer_rest(worker);
	return r;
}
