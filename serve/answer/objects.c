/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The objects that a list shows, or a watch begins with: those of the request's keys as of a seq
 * that the selectors match, in key order. They are read in slices, each from a snapshot of its own.
 *
 * Without an index every key is walked and every body read. If the selectors need a term of an
 * index (a label, a field with an index) that few objects have, the keys of those are collected
 * once: from the postings, which know the newest versions, and from the log, which knows what was
 * changed since. They hold every object that matches as of the seq, so later snapshots serve.
 */
#include "serve/answer/answer_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "reader/candidates.h"

#define OBJECTS_STEP    32   /* objects between two readings of the clock */
#define OBJECTS_INDEXED 2048 /* postings that are collected at once: some 2 ms */

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
	bool indexed; /* keys has all that can match, else as_of walks */
	bool over;    /* of an index: as_of walks what follows the last key given */
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

/* Collects the keys if an index makes that cheaper than a walk. */
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
	int r = as_of_renew(objects->as_of, objects->request->worker->snapshot, SIZE_MAX);

	return r == 0 && !objects->planned ? objects_plan(objects) : r;
}

void answer_objects_rest(struct answer_objects *objects)
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
