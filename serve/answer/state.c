/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a feed that a read shows: the tables of RV rules in README.md. A state is a seq S
 * and its RV. The newest one is that of the index; the journal may be ahead of it by a moment.
 */
#include "serve/answer/answer_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"

bool answer_feed_may_lack(const struct answer_request *request)
{
	struct catalog *catalog = request->worker->answer->catalog;

	catalog_lock(catalog);
	bool live = strcmp(request->feed->state, "live") == 0;
	catalog_unlock(catalog);
	return !live;
}

int answer_check_feed(struct answer_request *request)
{
	struct answer *answer = request->worker->answer;
	struct catalog_feed *feed = request->feed;
	struct api_status *status = &request->status;
	int r = 0;

	catalog_lock(answer->catalog);
	double age = feed->age_seconds;
	bool live = strcmp(feed->state, "live") == 0;

	if (feed->timeline.visible == 0) {
		r = api_status_initializing(status, feed->why);
		if (strcmp(feed->state, "forbidden") == 0)
			status->retry_after = 0; /* it stays so */
	} else if (__atomic_load_n(&answer->max_staleness_ns, __ATOMIC_RELAXED) && !live &&
		   (age < 0 || age * 1e9 > (double)answer->max_staleness_ns)) {
		r = api_status_set(status, 503, "ServiceUnavailable",
			"%s: the last contact with the API server is longer ago than maxStaleness "
			"allows: %s",
			feed->definition.name, *feed->why ? feed->why : feed->state);
	}
	catalog_unlock(answer->catalog);
	return r;
}

int answer_invalid_rv(struct answer_request *request)
{
	const char *rv = request->options.rv;
	bool digits = *rv && !rv[strspn(rv, "0123456789")];
	CLEANUP(buf_release) struct buf quoted = BUF_INIT;

	api_status_quote(&quoted, rv);
	return api_status_set(&request->status, 400, "BadRequest",
		"invalid resource version: resourceVersion: Invalid value: %s: strconv.ParseUint: "
		"parsing %s: %s",
		buf_cstr(&quoted), buf_cstr(&quoted),
		digits ? "value out of range" : "invalid syntax");
}

/* Returns whether nothing of the feed lies after A up to B. */
static bool state_same(const struct timeline *t, uint64_t a, uint64_t b)
{
	struct timeline_entry entry;

	return a >= b || timeline_next(t, a, &entry) == END || entry.seq > b;
}

/* Returns whether RV is newer than all that this journal has. A watch at an RV that only an
 * earlier journal had is told that it is gone; a list waits for it, as for any other that is to
 * come. */
static bool state_is_ahead(const struct timeline *t, timeline_rv rv)
{
	return !t->opaque && rv > t->newest;
}

/* Finds the state of exactly RV. NOW: the newest seq that the index shows. */
static int state_exact(struct answer_request *request, const struct timeline *t, const char *rv,
	uint64_t now, struct answer_state *ret_state)
{
	timeline_rv number;
	uint64_t position;

	switch (timeline_seek(t, bytes_str(rv), &position, &number)) {
	case TIMELINE_INVALID:
		return answer_invalid_rv(request);
	case TIMELINE_GONE:
		if (state_is_ahead(t, number))
			return AGAIN;
		return api_status_too_old(&request->status);
	case TIMELINE_FUTURE:
		return AGAIN;
	case TIMELINE_FOUND:
		break;
	}
	if (position > now && !state_same(t, now, position))
		return AGAIN;
	ret_state->seq = position < now ? position : now;
	if (t->opaque)
		(void)snprintf(ret_state->rv, sizeof(ret_state->rv), "%.60s", rv);
	else
		timeline_rv_format(number, ret_state->rv);
	return 0;
}

/* Checks that NOW, the newest seq that the index shows, is not older than RV. */
static int state_not_older(
	struct answer_request *request, const struct timeline *t, const char *rv, uint64_t now)
{
	timeline_rv number;
	uint64_t position;

	switch (timeline_seek(t, bytes_str(rv), &position, &number)) {
	case TIMELINE_INVALID:
		return answer_invalid_rv(request);
	case TIMELINE_GONE: /* older than all that is known, or of an earlier journal */
		if (state_is_ahead(t, number))
			return AGAIN;
		return t->opaque ? api_status_too_old(&request->status) : 0;
	case TIMELINE_FUTURE:
		return AGAIN;
	case TIMELINE_FOUND:
		break;
	}
	return position > now && !state_same(t, now, position) ? AGAIN : 0;
}

/* Returns whether the state as of NOW lacks the RV. */
static bool state_lacks(
	struct answer_request *request, const struct timeline *t, timeline_rv rv, uint64_t now)
{
	char text[TIMELINE_RV_SIZE];

	timeline_rv_format(rv, text);
	return rv && !t->opaque && state_not_older(request, t, text, now) == AGAIN;
}

/* Returns whether the index shows what was done to the object. */
static bool state_shows_key(struct answer_request *request, const struct floor_key *key)
{
	CLEANUP(selector_free) struct selector *terminating = NULL;
	struct record record;
	timeline_rv shown;
	int r = snapshot_get(
		request->worker->snapshot, request->feed->id, bytes_str(key->key), &record);

	if (r == FOUND && key->last)
		return timeline_rv_parse(record.rv, &shown) && shown > key->last;
	if (r == FOUND && record.seq != key->before && key->deleted) {
		r = selector_parse_fields("metadata.deletionTimestamp!=", &terminating);
		return r == 0 && selector_match(terminating, record.body) == 1;
	}
	return r == FOUND ? record.seq != key->before : r == NOT_FOUND;
}

/* Checks that the state as of NOW is not older than what was forwarded. The index shows VISIBLE,
 * which the timeline may not have come to: objects that changed since are not in the state yet.
 * Returns: 0; AGAIN. */
static int state_above_floor(
	struct answer_request *request, const struct timeline *t, uint64_t now, uint64_t visible)
{
	struct catalog_feed *feed = request->feed;
	bool can = answer_can_forward(request);
	/* A feed with selectors need not see a change of what it does not hold. */
	bool selects = feed->coverage.labels || feed->coverage.fields, again = false;
	CLEANUP(floor_view_release) struct floor_view view = {.n_keys = 0};

	if (floor_is_clear(&feed->forwarded))
		return 0;
	floor_view(&feed->forwarded, proc_monotonic_ns(), strcmp(feed->state, "live") == 0, &view);
	if (state_lacks(request, t, view.written, now)) {
		request->must_forward |= selects && can;
		again |= can || !selects;
		view.written = 0;
	}
	if (state_lacks(request, t, view.read, now)) {
		request->must_forward |= can;
		again |= can;
		view.read = 0;
	}
	for (size_t i = 0; i < view.n_keys; i++) {
		if (visible <= t->visible && state_shows_key(request, &view.keys[i]))
			continue;
		again |= !selects || can;
		free(view.keys[i].key);
		view.keys[i--] = view.keys[--view.n_keys];
	}
	floor_seen(&feed->forwarded, &view);
	/* Nothing in the feed shows that unknown objects have changed. */
	request->must_forward |= view.all && can;
	return again || view.all ? AGAIN : 0;
}

/* Notes that the read waits for RV if the feed has not come to that: R says whether it waits. */
static int state_wait_for(
	struct answer_request *request, const struct timeline *t, const char *rv, int r)
{
	timeline_rv number;
	bool ahead = r == AGAIN && !t->opaque && timeline_rv_parse(bytes_str(rv), &number) &&
		     number > t->newest && !(number >> 64);

	request->ahead = ahead ? (uint64_t)number : 0;
	return r;
}

static int state_find(struct answer_request *request, int64_t token_rv, const struct timeline *t,
	uint64_t visible, struct answer_state *ret_state)
{
	const struct api_options *o = &request->options;
	uint64_t now = timeline_settled(t, visible);
	uint64_t floor = __atomic_load_n(&request->feed->floor, __ATOMIC_ACQUIRE);
	char text[24];

	if (!visible || (floor > now && !state_same(t, now, floor)))
		return AGAIN;
	ret_state->seq = now;
	timeline_rv_at(t, now, ret_state->rv);
	if (token_rv > 0) {
		(void)snprintf(text, sizeof(text), "%lld", (long long)token_rv);
		return state_wait_for(
			request, t, text, state_exact(request, t, text, now, ret_state));
	}
	if (api_options_any_rv(o))
		return *o->rv ? 0 : state_above_floor(request, t, now, visible);
	timeline_rv number = 0;
	if (timeline_rv_parse(bytes_str(o->rv), &number) && answer_rv_is_too_long(t, number))
		return answer_invalid_rv(request);
	if (request->verb == ANSWER_LIST &&
		(o->match == API_MATCH_EXACT || (o->match == API_MATCH_ABSENT && o->limit > 0)))
		return state_wait_for(
			request, t, o->rv, state_exact(request, t, o->rv, now, ret_state));
	int r = state_not_older(request, t, o->rv, now);
	/* If what is newer than N is not shown yet, the state is that of N, however much older
	 * its last change is. */
	timeline_rv shown;
	if (r == 0 && !t->opaque && number <= t->newest &&
		timeline_rv_parse(bytes_str(ret_state->rv), &shown) && shown < number)
		timeline_rv_format(number, ret_state->rv);
	return state_wait_for(request, t, o->rv, r);
}

int answer_find_state(
	struct answer_request *request, int64_t token_rv, struct answer_state *ret_state)
{
	struct answer *answer = request->worker->answer;
	struct catalog_feed *feed = request->feed;
	uint64_t visible = snapshot_visible(request->worker->snapshot, feed->id);

	catalog_lock(answer->catalog);
	request->ahead = 0;
	int r = state_find(request, token_rv, &feed->timeline, visible, ret_state);
	catalog_unlock(answer->catalog);
	if (request->ahead)
		catalog_wish(answer->catalog, feed, request->ahead);
	if (r == 0 && request->wait_until_ns)
		metric_observe_ns(answer_cell(request, METRIC_CACHE_READ_WAIT),
			proc_monotonic_ns() + ANSWER_WAIT_NS - request->wait_until_ns);
	if (!__atomic_load_n(&feed->gone, __ATOMIC_ACQUIRE))
		return r;
	return api_status_initializing(&request->status, "");
}

int answer_wait_is_over(struct answer_request *request)
{
	struct answer *answer = request->worker->answer;
	char current[TIMELINE_RV_SIZE], text[24];

	catalog_lock(answer->catalog);
	memcpy(current, request->feed->timeline.newest_text, sizeof(current));
	catalog_unlock(answer->catalog);
	if (request->ahead) { /* of a token, perhaps */
		(void)snprintf(text, sizeof(text), "%" PRIu64, request->ahead);
		return api_status_too_large(&request->status, text, current);
	}
	const char *rv = request->options.rv;
	while (rv[0] == '0' && rv[1])
		rv++;
	if (*rv && strcmp(rv, "0") != 0)
		return api_status_too_large(&request->status, rv, current);
	api_status_set(&request->status, 504, "Timeout",
		"Timeout: the index does not show yet what watches have shown");
	request->status.retry_after = 1;
	return 504;
}
