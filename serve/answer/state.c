/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/answer/state.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"
#include "common/proc.h"
#include "reader/candidates.h"

#define OBJECTS_STEP    32   /* objects between two readings of the clock */
#define OBJECTS_INDEXED 2048 /* at once: some 2 ms */

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

bool answer_rv_is_too_long(const struct timeline *t, timeline_rv rv)
{
	return rv >> 64 && !(t->newest >> 64);
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

/* Finds the position of RV. NOW: the index's newest seq. Returns: FOUND; AGAIN: the index has not
 * got there; GONE: RV is older than the history; 400. */
static int state_seek(struct answer_request *request, const struct timeline *t, const char *rv,
	uint64_t now, uint64_t *ret_position, timeline_rv *ret_number)
{
	switch (timeline_seek(t, bytes_str(rv), ret_position, ret_number)) {
	case TIMELINE_INVALID:
		return answer_invalid_rv(request);
	case TIMELINE_GONE:
		/* At an RV of an earlier journal only, a watch is gone; a list waits, as for any
		 * future RV. */
		return !t->opaque && *ret_number > t->newest ? AGAIN : GONE;
	case TIMELINE_FUTURE:
		return AGAIN;
	case TIMELINE_FOUND:
		break;
	}
	return *ret_position > now && !state_same(t, now, *ret_position) ? AGAIN : FOUND;
}

/* Finds the state of exactly RV. */
static int state_exact(struct answer_request *request, const struct timeline *t, const char *rv,
	uint64_t now, struct answer_state *ret_state)
{
	timeline_rv number;
	uint64_t position;
	int r = state_seek(request, t, rv, now, &position, &number);

	if (r != FOUND)
		return r == GONE ? api_status_too_old(&request->status) : r;
	ret_state->seq = position < now ? position : now;
	if (t->opaque)
		(void)snprintf(ret_state->rv, sizeof(ret_state->rv), "%.60s", rv);
	else
		timeline_rv_format(number, ret_state->rv);
	return 0;
}

/* Checks that NOW, the index's newest seq, is not older than RV. */
static int state_not_older(
	struct answer_request *request, const struct timeline *t, const char *rv, uint64_t now)
{
	timeline_rv number;
	uint64_t position;
	int r = state_seek(request, t, rv, now, &position, &number);

	if (r == GONE)
		return t->opaque ? api_status_too_old(&request->status) : 0;
	return r;
}

/* Returns whether the state as of NOW lacks the RV. */
static bool state_lacks(
	struct answer_request *request, const struct timeline *t, timeline_rv rv, uint64_t now)
{
	char text[TIMELINE_RV_SIZE];

	timeline_rv_format(rv, text);
	return rv && !t->opaque && state_not_older(request, t, text, now) == AGAIN;
}

/* Returns true if the index shows the change of the object. */
static bool state_shows_key(struct answer_request *request, const struct floor_key *key)
{
	const struct floor_change *change = &key->change;
	CLEANUP(selector_free) struct selector *changed = NULL;
	struct record record;
	timeline_rv shown;
	int r = snapshot_get(
		request->worker->snapshot, request->feed->id, bytes_str(key->key), &record);

	if (r == NOT_FOUND)
		return change->deleted || change->before;
	if (r != FOUND || record.seq == change->before)
		return false;
	if (change->last)
		return timeline_rv_parse(record.rv, &shown) && shown > change->last;
	if (change->uid && hash_bytes(record.uid, 0) != change->uid)
		return true; /* it is another one */
	r = selector_parse_fields(
		change->deleted ? "metadata.deletionTimestamp!=" : "spec.nodeName!=", &changed);
	return r == 0 && selector_match(changed, record.body) == 1;
}

/* Checks that the state as of NOW is not older than forwarded writes. The index shows VISIBLE:
 * beyond the timeline, changed objects are not in the state yet. Returns: 0; AGAIN. */
static int state_above_floor(
	struct answer_request *request, const struct timeline *t, uint64_t now, uint64_t visible)
{
	struct catalog_feed *feed = request->feed;
	struct floor *floor = &feed->forwarded;
	bool can = answer_can_forward(request);
	/* A feed with selectors need not see every change. */
	bool selects = feed->coverage.labels || feed->coverage.fields, again = false;

	if (floor_is_clear(floor))
		return 0;
	floor_lock(floor, proc_monotonic_ns(), strcmp(feed->state, "live") == 0);
	if (state_lacks(request, t, floor->written, now)) {
		request->must_forward |= selects && can;
		again |= can || !selects;
	} else {
		floor->written = 0;
	}
	if (state_lacks(request, t, floor->read, now)) {
		request->must_forward |= can;
		again |= can;
	} else {
		floor->read = 0;
	}
	for (size_t i = floor->n_keys; i-- > 0;)
		if (visible <= t->visible && state_shows_key(request, &floor->keys[i]))
			floor_drop_key(floor, i);
		else
			again |= !selects || can;
	/* The feed can't show changes of unknown objects. */
	bool elsewhere = floor->refused_ns && can && request->verb == ANSWER_GET;
	request->must_forward |= (floor->all_ns && can) || elsewhere;
	again |= floor->all_ns || elsewhere;
	floor_unlock(floor);
	return again ? AGAIN : 0;
}

/* Sets the RV that the read waits for if R is AGAIN, and no other reason. */
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
	/* Nothing newer than N is shown, so the state is that of N, however old its last change. */
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
		catalog_request_progress(answer->catalog, feed, request->ahead);
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

/* ---- the objects of a state ---------------------------------------------- */

/*
 * The objects of a list, or a watch's initial objects: the request's keys as of a seq, matched by
 * the selectors, in key order. They are read in slices, each from a snapshot of its own.
 *
 * Without an index every key is walked and every body read. If the selectors need an index term (a
 * label, an indexed field) with few postings, the keys are collected once: from the postings, for
 * the newest versions, and from the log, for the changes since. No match as of the seq is missing,
 * so later snapshots serve.
 */

/* A key in texts. */
struct objects_key {
	size_t at, size;
};

struct answer_objects {
	struct answer_request *request;
	struct as_of *as_of;
	struct buf from; /* the first key */
	unsigned steps;
	bool planned;
	bool indexed; /* true: candidates are in keys; false: scan as_of */
	bool over;    /* of an index: as_of counts on after the last key */
	struct buf texts;
	struct objects_key *keys;
	size_t n, room, next;
};

void answer_objects_free(struct answer_objects **objects)
{
	struct answer_objects *o = TAKE(*objects);

	if (!o)
		return;
	as_of_free(&o->as_of);
	buf_release(&o->from);
	buf_release(&o->texts);
	free(o->keys);
	free(o);
}

int answer_objects_new(struct answer_request *request, uint64_t seq, struct bytes after,
	struct answer_objects **ret_objects)
{
	CLEANUP(answer_objects_free) struct answer_objects *o = calloc(1, sizeof(*o));

	if (!o)
		return err_set(-ENOMEM, "a list");
	o->request = request;
	buf_bytes_put(&o->from, buf_bytes(&request->key));
	buf_bytes_put(&o->from, after);
	int r = buf_error(&o->from);
	if (r == 0)
		r = as_of_new(request->feed->id, seq, &o->as_of);
	if (r == 0)
		r = answer_objects_restart(o);
	if (r == 0)
		*ret_objects = TAKE(o);
	return r;
}

int answer_objects_restart(struct answer_objects *objects)
{
	objects->next = 0;
	objects->over = false;
	return as_of_walk(objects->as_of, AS_OF_ALL, buf_bytes(&objects->request->key),
		buf_bytes(&objects->from));
}

const char *answer_objects_index(const struct answer_objects *objects)
{
	return objects->indexed ? "term" : "";
}

/* ---- the plan ----------------------------------------------------------- */

static int objects_collect(
	struct answer_objects *o, const struct query *query, const struct plan *plan)
{
	CLEANUP(candidates_release)
	struct candidates c = {
		.snapshot = o->request->worker->snapshot,
		.feed = o->request->feed->id,
		.query = query,
		.plan = plan,
		.as_of = o->as_of,
	};
	struct index_entry entry;
	struct bytes key;
	int r = candidates_open(&c);

	while (r == 0 && (r = candidates_next(&c, &key, &entry)) == FOUND) {
		const struct objects_key place = {o->texts.size, key.size};

		buf_bytes_put(&o->texts, key);
		r = buf_error(&o->texts);
		if (r == 0)
			r = ARRAY_ADD(o->keys, o->n, o->room, place, "the keys of a list");
	}
	return r == END ? 0 : r;
}

/* Collects the keys if an index is cheaper than a walk. */
static int objects_plan(struct answer_objects *o)
{
	struct answer_request *request = o->request;
	const struct api_options *options = &request->options;
	const struct snapshot_feed feed = {.definition = request->feed->definition};
	const char *namespace_ = *request->path.namespace_ ? request->path.namespace_ : NULL;
	const struct query query = {.namespace_ = namespace_,
		.labels = options->labels,
		.fields = options->fields,
		.from = buf_bytes(&o->from)};
	CLEANUP(plan_release) struct plan plan = {0};

	o->planned = true;
	/* The keys of one name are few. */
	if ((!options->labels && !options->fields) ||
		request->key.size > (namespace_ ? strlen(namespace_) + 1 : 0))
		return 0;
	int r = plan_make(request->worker->snapshot, &feed, &query, false, &plan);
	if (r != 0 || !plan.postings || plan.terms[plan.driver].count > OBJECTS_INDEXED)
		return r;
	o->indexed = true;
	r = objects_collect(o, &query, &plan);
	return r == 0 ? answer_objects_restart(o) : r;
}

int answer_objects_renew(struct answer_objects *objects)
{
	struct answer_request *request = objects->request;
	struct answer_worker *worker = request->worker;
	int r = catalog_renew(
		worker->answer->catalog, worker->snapshot, request->feed, objects->as_of);

	return r == 0 && !objects->planned ? objects_plan(objects) : r;
}

void answer_objects_release(struct answer_objects *objects)
{
	as_of_rest(objects->as_of);
}

/* ---- the walk ----------------------------------------------------------- */

static struct bytes objects_key_at(const struct answer_objects *o, size_t i)
{
	return BYTES(o->texts.data + o->keys[i].at, o->keys[i].size);
}

/* Reads the next object, whether or not the selectors match. Returns: FOUND, END; NOT_FOUND: the
 * next key had no object as of the seq. */
static int objects_read(struct answer_objects *o, struct record *ret_record)
{
	struct answer_request *request = o->request;
	struct index_entry entry;
	struct bytes key;

	if (o->indexed)
		return o->next == o->n
			       ? END
			       : as_of_get(o->as_of, objects_key_at(o, o->next++), ret_record);
	int r = as_of_next(o->as_of, &key, &entry);
	if (r != FOUND)
		return r;
	r = snapshot_record(request->worker->snapshot, request->feed->id, key, &entry, ret_record);
	return r == 0 ? FOUND : r;
}

int answer_objects_next(
	struct answer_objects *objects, uint64_t until_ns, struct record *ret_record)
{
	int r;

	do {
		if (++objects->steps % OBJECTS_STEP == 0 && proc_monotonic_ns() > until_ns)
			return AGAIN;
		r = objects_read(objects, ret_record);
		if (r == FOUND) {
			int matches = answer_matches(objects->request, ret_record->body);

			r = matches < 0 ? matches : matches ? FOUND : NOT_FOUND;
		}
	} while (r == NOT_FOUND);
	return r;
}

int answer_objects_skip(struct answer_objects *objects, uint64_t until_ns)
{
	CLEANUP(buf_release) struct buf after = BUF_INIT;
	struct index_entry entry;
	struct bytes key;
	int r = 0;

	if (++objects->steps % OBJECTS_STEP == 0 && proc_monotonic_ns() > until_ns)
		return AGAIN;
	if (objects->indexed && !objects->over && objects->next) {
		buf_bytes_put(&after, objects_key_at(objects, objects->next - 1));
		buf_byte(&after, '\0');
		r = buf_error(&after);
		if (r == 0)
			r = as_of_walk(objects->as_of, AS_OF_ALL, buf_bytes(&objects->request->key),
				buf_bytes(&after));
	}
	objects->over = true;
	return r == 0 ? as_of_next(objects->as_of, &key, &entry) : r;
}
