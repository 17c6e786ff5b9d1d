/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/answer/verbs.h"

#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "serve/answer/encode.h"
#include "serve/answer/state.h"
#include "serve/api/api_pretty.h"
#include "serve/api/api_token.h"
#include "serve/http/gzip.h"

#define LIST_PIECE ((size_t)64 << 10)

/* ---- get ----------------------------------------------------------------- */

static void get_free_state(void *stage)
{
	struct as_of *as_of = stage;

	as_of_free(&as_of);
}

/* Finds the object in the state shown: FOUND, NOT_FOUND; AGAIN: not here yet. One of the past, the
 * request's stage, is read in slices: AGAIN; LAPPED, GONE: it is not kept any more. */
static int get_record(struct answer_request *request, struct record *ret_record)
{
	struct answer_worker *worker = request->worker;
	struct catalog *catalog = worker->answer->catalog;
	struct bytes key = buf_bytes(&request->key);
	struct as_of *as_of = request->stage;
	struct answer_state state;
	int r = as_of ? 0 : answer_find_state(request, 0, &state);

	if (r == 0 && !catalog_is_past(catalog))
		return snapshot_get(worker->snapshot, request->feed->id, key, ret_record);
	if (r == 0 && !as_of) {
		r = as_of_new(request->feed->id, state.seq, &as_of);
		if (r == 0)
			answer_set_stage(request, as_of, get_free_state);
	}
	if (r == 0)
		r = catalog_renew(catalog, worker->snapshot, request->feed, as_of);
	return r == 0 ? as_of_get(as_of, key, ret_record) : r;
}

/* Puts the object into OUT. Returns: 0; AGAIN; HTTP statuses; errors. */
static int get_object(struct answer_request *request, struct buf *out)
{
	struct snapshot *snapshot = request->worker->snapshot;
	const struct api_path *path = &request->path;
	struct answer_encoder encoder = {.request = request};
	struct record record;
	int r = get_record(request, &record);

	if (r == NOT_FOUND && request->coverage == COVERAGE_WHOLE)
		return api_status_no_object(
			&request->status, path->group, path->resource, path->name);
	if (r == NOT_FOUND) {
		api_status_unknown_path(&request->status);
		buf_printf(&request->status.message,
			": the feed '%s' of kinf-serve holds a part of %s only, and this object is "
			"not in it",
			request->feed->definition.name, path->resource);
		return 404;
	}
	if (r == LAPPED || r == GONE)
		return api_status_too_old(&request->status);
	if (r != FOUND)
		return r;
	r = answer_encode_object(&encoder, record.body, out);
	return snapshot_made(snapshot, r);
}

void answer_get(struct answer_request *request)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	int r = answer_take_snapshot(request->worker);

	request->resume = answer_get;
	if (r == 0)
		r = get_object(request, &out);
	if (request->stage)
		as_of_rest(request->stage);
	answer_release_snapshot(request->worker);
	/* The API server may have the object. */
	bool is_whole = request->coverage == COVERAGE_WHOLE;
	bool is_elsewhere = r == 404 && (!is_whole || answer_feed_may_lack(request));
	request->cache_answers |= is_elsewhere && is_whole;
	if (r == AGAIN && request->stage)
		answer_wait(request, true);
	else if (r == AGAIN)
		answer_wait_for_state(request);
	else if (is_elsewhere && answer_can_forward(request))
		answer_forward(request);
	else if (r != 0)
		answer_refuse(request, r);
	else
		answer_send(request, &out);
}

/* ---- list ---------------------------------------------------------------- */

/*
 * LIST: the state as of a seq, read in slices of a millisecond, each from a fresh snapshot. However
 * large the list and slow the client, neither memory nor pages are held.
 *
 * A page's head says whether more follows, so a list with a limit is first measured: the keys are
 * walked up to the end of the page, then the rest is counted. In protobuf the size of all items
 * stands before them: they are made once for it, and dropped. The first 128 KiB are made before the
 * head is sent: a smaller answer has a content-length, a larger one may be compressed.
 */

enum list_stage { LIST_NEW, LIST_MEASURE, LIST_SIZE, LIST_ITEMS, LIST_ENDED };

/* The text of a list, with its encoder. A restarted list makes another. */
struct list_body {
	struct answer_encoder encoder;
	bool begun;      /* the head was made */
	struct buf json; /* compact, not packed yet */
	struct buf out;  /* indented or compressed */
	size_t taken;    /* of OUT */
	struct api_pretty indent;
	struct gzip *gzip;
};

struct listing {
	struct answer_request *request;
	enum list_stage stage;
	struct api_token token; /* the client's */
	struct answer_state state;
	struct answer_objects *objects;
	uint64_t limit; /* 0: none */
	uint64_t n;     /* objects measured */
	uint64_t remaining;
	uint64_t n_sized, size; /* protobuf: of the items */
	struct buf last;        /* the last key of the page */
	struct buf next;        /* the token of the next page; empty: there is none */
	bool counted;
	struct list_body body;
};

static void list_body_release(struct list_body *body)
{
	buf_release(&body->json);
	buf_release(&body->out);
	gzip_free(&body->gzip);
}

static void list_free(void *stage)
{
	struct listing *l = stage;

	api_token_release(&l->token);
	answer_objects_free(&l->objects);
	buf_release(&l->last);
	buf_release(&l->next);
	list_body_release(&l->body);
	free(l);
}

static int list_expired(struct listing *list)
{
	struct api_status *status = &list->request->status;

	if (list->token.rv <= 0)
		return api_status_too_old(status);
	api_status_expired(status,
		"The provided continue parameter is too old to display a consistent list result. "
		"You can start a new list without the continue parameter, or use the continue "
		"token in this response to retrieve the remainder of the results. Continuing with "
		"the provided token results in an inconsistent list - objects that were created, "
		"modified, or deleted between the time the first chunk was returned and now may "
		"show up in the list.");
	int r = api_token_write(-1, buf_bytes(&list->token.from), &status->token);
	return r < 0 ? r : 410;
}

/* Checks the options, and begins the walk. Returns: 0; AGAIN; HTTP statuses; errors. */
static int list_open(struct listing *list)
{
	struct answer_request *request = list->request;
	const struct api_options *o = &request->options;
	timeline_rv rv;
	int r = answer_find_state(request, list->token.rv, &list->state);

	if (r == 410)
		return list_expired(list);
	if (r != 0)
		return r;
	r = answer_objects_new(request, list->state.seq,
		list->token.rv ? buf_bytes(&list->token.from) : BYTES_NONE, &list->objects);
	if (r < 0)
		return r;
	/* The API server's cache ignores limits for "any version"; a token needs an RV of 63
	 * bits. */
	bool any = strcmp(o->rv, "0") == 0 && !list->token.rv;
	bool can = timeline_rv_parse(bytes_str(list->state.rv), &rv) && rv < INT64_MAX;
	list->limit = any || !can ? 0 : (uint64_t)o->limit;
	list->stage = list->limit                ? LIST_MEASURE
		      : request->accept.protobuf ? LIST_SIZE
						 : LIST_ITEMS;
	return 0;
}

/* Walks to the end of the page. Returns: 0: it was measured; AGAIN; errors. */
static int list_measure(struct listing *list, uint64_t until_ns)
{
	struct answer_request *request = list->request;
	bool selects = request->options.labels || request->options.fields;
	struct record record;
	int r = FOUND;

	while (r == FOUND && list->n < list->limit) {
		r = answer_objects_next(list->objects, until_ns, &record);
		if (r == FOUND && ++list->n == list->limit) {
			buf_bytes_put(&list->last, record.key);
			r = buf_error(&list->last);
		}
	}
	/* One more object proves another page, unless they are counted. */
	while (r == FOUND && !(selects && list->remaining)) {
		r = answer_objects_skip(list->objects, until_ns);
		list->remaining += r == FOUND;
	}
	if (r == AGAIN)
		return AGAIN;
	if (r < 0)
		return r;
	if (list->remaining) {
		CLEANUP(buf_release) struct buf start = BUF_INIT;
		size_t skip = *request->path.namespace_ ? strlen(request->path.namespace_) + 1 : 0;
		timeline_rv rv = 0;

		/* As the API server's cache writes it: with a slash before it. */
		buf_byte(&start, '/');
		buf_put(&start, list->last.data + skip, list->last.size - skip);
		buf_byte(&start, '\0');
		(void)timeline_rv_parse(bytes_str(list->state.rv), &rv);
		r = buf_error(&start);
		if (r == 0)
			r = api_token_write((int64_t)rv, buf_bytes(&start), &list->next);
		if (r < 0)
			return r;
	}
	if (selects)
		list->remaining = 0; /* not said: it is not known how many of them match */
	list->stage = request->accept.protobuf ? LIST_SIZE : LIST_ITEMS;
	return answer_objects_restart(list->objects);
}

/* Adds up the sizes of the items. Returns: 0; AGAIN; errors. */
static int list_size(struct listing *list, uint64_t until_ns)
{
	struct answer_encoder encoder = {.request = list->request};
	CLEANUP(buf_release) struct buf item = BUF_INIT;
	struct record record;
	int r = 0;

	while (r == 0 && !(list->limit && list->n_sized == list->limit)) {
		r = answer_objects_next(list->objects, until_ns, &record);
		if (r != FOUND)
			break;
		buf_reset(&item);
		r = answer_encode_item(&encoder, record.body, &item);
		list->size += item.size;
		list->n_sized++;
	}
	if (r < 0 || r == AGAIN)
		return r;
	list->stage = LIST_ITEMS;
	return answer_objects_restart(list->objects);
}

/* Makes items until there are WANTED bytes. Returns: 0; AGAIN: the slice is over; errors. */
static int list_items(struct listing *list, size_t wanted, uint64_t until_ns)
{
	const struct feed_definition *d = &list->request->feed->definition;
	struct list_body *body = &list->body;
	const struct api_page page = {
		list->state.rv, buf_cstr(&list->next), list->remaining, list->size};
	struct record record;
	int r = 0;

	if (!list->counted)
		metric_add(metrics_cell(list->request->worker->answer->metrics, METRIC_CACHE_LISTS,
				   (const char *[]){d->group, d->resource,
					   answer_objects_index(list->objects)}),
			1);
	list->counted = true;
	if (!body->begun)
		r = answer_encode_begin(&body->encoder, &page, &body->json);
	body->begun = true;
	while (r == 0 && body->json.size < wanted) {
		bool full = list->limit && body->encoder.items == list->limit;

		r = full ? END : answer_objects_next(list->objects, until_ns, &record);
		if (r == FOUND) {
			r = answer_encode_item(&body->encoder, record.body, &body->json);
		} else if (r == END) {
			list->stage = LIST_ENDED;
			return answer_encode_end(&body->encoder, &body->json);
		}
	}
	return r;
}

/* Works for a slice. Returns: 0: the list has ended, or WANTED bytes are there; AGAIN: the slice is
 * over; LAPPED: the state is not kept any more; HTTP statuses (before the first item); errors. */
static int list_slice(struct listing *list, size_t wanted)
{
	struct answer_worker *worker = list->request->worker;
	uint64_t until_ns = proc_monotonic_ns() + ANSWER_SLICE_NS;
	int r = answer_take_snapshot(worker);

	if (r == 0)
		r = answer_objects_renew(list->objects);
	if (r == 0 && list->stage == LIST_MEASURE)
		r = list_measure(list, until_ns);
	if (r == 0 && list->stage == LIST_SIZE)
		r = list_size(list, until_ns);
	if (r == 0 && list->stage == LIST_ITEMS)
		r = list_items(list, wanted, until_ns);
	/* this process may have been stopped for minutes in the middle of it */
	if (worker->snapshot)
		r = snapshot_made(worker->snapshot, r);
	answer_objects_release(list->objects);
	answer_release_snapshot(worker);
	return r;
}

/* ---- streams ------------------------------------------------------------ */

/* Packs the new text into OUT. */
static int list_pack(struct listing *list)
{
	bool end = list->stage == LIST_ENDED, pretty = answer_is_pretty(list->request);
	CLEANUP(buf_release) struct buf indented = BUF_INIT;
	struct list_body *body = &list->body;
	struct bytes piece;
	int r;

	if (body->taken) {
		buf_consume(&body->out, body->taken);
		body->taken = 0;
	}
	if (end && !pretty && !list->request->accept.protobuf)
		buf_byte(&body->json, '\n');
	piece = buf_bytes(&body->json);
	if (pretty) {
		api_pretty_put(&body->indent, piece, body->gzip ? &indented : &body->out);
		piece = buf_bytes(&indented);
	}
	r = buf_error(&body->json);
	if (r == 0 && body->gzip)
		r = gzip_put(body->gzip, piece, end, &body->out);
	else if (r == 0 && !pretty)
		buf_bytes_put(&body->out, piece);
	buf_trim(&body->json, 4 * LIST_PIECE);
	return r < 0 ? r : buf_error(&body->out);
}

static ssize_t list_read(void *context, uint8_t *out, size_t room)
{
	struct listing *list = context;
	struct list_body *body = &list->body;
	int r = 0;

	while (r == 0 && body->out.size == body->taken && list->stage != LIST_ENDED) {
		r = list_slice(list, LIST_PIECE);
		if (r == 0 || r == AGAIN) {
			int packed = list_pack(list);
			r = packed < 0 ? packed : r;
		}
	}
	size_t size = body->out.size - body->taken;
	if (r < 0 || r == LAPPED || r == GONE)
		return r < 0 ? r : err_say(ERR_EXPIRED, "the state of a list is not kept any more");
	if (size == 0 && r == AGAIN) {
		exchange_wake(list->request->x);
		return (ssize_t)-EAGAIN;
	}
	size = size < room ? size : room;
	if (size)
		memcpy(out, body->out.data + body->taken, size);
	body->taken += size;
	return (ssize_t)size;
}

static void list_end(void *context, enum exchange_end why)
{
	struct listing *list = context;
	struct answer_request *request = list->request;

	(void)why;
	answer_request_free(&request);
}

static void list_stream(struct listing *list)
{
	struct answer_request *request = list->request;
	const struct exchange_source source = {
		.read = list_read, .end = list_end, .context = list, .size = -1};
	struct answer_head head;
	int r = 0;

	/* Over HTTP/2 the text is dropped, and made again when the client takes it: a connection
	 * may ask for hundreds of lists and take none. */
	if (request->x->version == EXCHANGE_HTTP_2) {
		list_body_release(&list->body);
		list->body = (struct list_body){.encoder.request = request};
		list->stage = LIST_ITEMS;
		r = answer_objects_restart(list->objects);
	}
	if (r == 0 && request->gzip)
		r = gzip_new(&list->body.gzip);
	if (r == 0 && request->x->version != EXCHANGE_HTTP_2)
		r = list_pack(list);
	if (r < 0) {
		answer_refuse(request, r);
		return;
	}
	answer_head(request, answer_type(request), list->body.gzip != NULL, &head);
	exchange_begin(request->x, 200, head.headers, head.n);
	exchange_stream(request->x, &source);
}

/* ---- from the beginning ------------------------------------------------- */

static void list_go_on(struct answer_request *request)
{
	struct listing *list = request->stage;
	int r = 0;

	if (list->stage == LIST_NEW) {
		r = answer_take_snapshot(request->worker);
		if (r == 0)
			r = list_open(list);
		answer_release_snapshot(request->worker);
		if (r == AGAIN) {
			answer_wait_for_state(request);
			return;
		}
	}
	if (r == 0)
		r = list_slice(list, ANSWER_GZIP_BYTES + 1);
	if (r == AGAIN) {
		answer_wait(request, true);
		return;
	}
	if (r == LAPPED || r == GONE)
		r = list_expired(list);
	if (r != 0)
		answer_refuse(request, r);
	else if (list->stage == LIST_ENDED && list->body.json.size <= ANSWER_GZIP_BYTES)
		answer_send(request, &list->body.json);
	else
		list_stream(list);
}

void answer_list(struct answer_request *request)
{
	const struct api_options *o = &request->options;
	struct listing *list = calloc(1, sizeof(*list));
	int r = list ? 0 : err_set(-ENOMEM, "a list");

	request->resume = list_go_on;
	if (list) {
		list->request = request;
		list->body.encoder.request = request;
		answer_set_stage(request, list, list_free);
		if (*o->token)
			r = api_token_parse(o->token, &list->token, &request->status);
	}
	if (r == 0 && *o->token && !api_options_any_rv(o))
		r = api_status_set(&request->status, 400, "BadRequest",
			"specifying resource version is not allowed when using continue");
	if (r != 0)
		answer_refuse(request, r);
	else
		list_go_on(request);
}
