/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the index by itself: names against objects, terms against postings, counts against
 * both. */
#include "store/verify/verify_internal.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "store/index/index_internal.h"
#include "store/index/index_postings.h"

typedef int verify_row_fn(struct verify *v, struct bytes key, struct bytes value);

/* Calls FN for each row. The keys must ascend: a damaged tree could lead back for ever. */
static int verify_each_row(
	struct verify *v, enum index_database database, const char *name, verify_row_fn *fn)
{
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	uint8_t buffer[ENV_KEY_MAX];
	struct bytes key, value, last = BYTES(buffer, 0);
	int r = cursor_open(snapshot_index_txn(v->snapshot), database, &cursor);

	if (r == 0)
		r = cursor_seek(cursor, BYTES_NONE, &key, &value);
	for (; r == FOUND; r = cursor_next(cursor, &key, &value)) {
		if (key.size == 0 || key.size > sizeof(buffer) || bytes_compare(key, last) <= 0) {
			v->index_is_broken = true;
			verify_fault(v, "%s: keys are not in order", name);
			return 0;
		}
		memcpy(buffer, key.data, key.size);
		last.size = key.size;
		r = verify_failed(v, fn(v, key, value), name);
		if (r == 0)
			r = verify_tick(v);
		if (r < 0)
			return r;
	}
	if (r < 0)
		v->index_is_broken = true;
	return verify_failed(v, r, name);
}

/* ---- meta --------------------------------------------------------------- */

static int verify_meta_row(struct verify *v, struct bytes key, struct bytes value)
{
	struct index_definition definition;
	struct index_state state;
	struct index_feed feed;
	int r;

	switch (key.size == META_KEY ? *(const char *)key.data : 0) {
	case META_STATE:
		return index_read_state(key, value, &state);
	case META_DEFINITION:
		return index_read_definition(key, value, &definition);
	case META_FEED:
		r = index_read_feed(key, value, &feed);
		if (r < 0)
			return r;
		struct verify_feed *known;

		r = verify_feed_add(v, feed.feed, &known);
		if (r < 0)
			return r;
		known->in_index = true;
		known->index = feed;
		known->visible = snapshot_visible(v->snapshot, feed.feed);
		if (!known->in_journal && !feed.removed)
			verify_fault(v, "index: feed %u is unknown to the journal", feed.feed);
		return 0;
	default:
		return err_say(ERR_CORRUPT, "index: unknown row in meta");
	}
}

/* ---- names and objects -------------------------------------------------- */

static int verify_name_row(struct verify *v, struct bytes key, struct bytes value)
{
	struct index_entry entry, other;
	struct bytes other_key;
	uint32_t other_feed;

	v->report.objects++;
	if (key.size <= 4)
		return err_say(ERR_CORRUPT, "index: a key of %zu bytes in 'name'", key.size);
	uint32_t id = be32_get(key.data);
	struct bytes name = BYTES((const uint8_t *)key.data + 4, key.size - 4);
	struct verify_feed *feed = verify_feed(v, id);
	int r = index_read_name(key, value, &entry);

	if (r < 0)
		return r;
	if (!feed || !feed->in_index)
		verify_fault(v, "index: '%.*s' is of unknown feed %u", BYTES_ARG(name), id);
	else
		feed->expected++; /* compared with the count in the feed's row */
	r = index_object(snapshot_index(v->snapshot), snapshot_index_txn(v->snapshot), entry.object,
		&other_feed, &other_key, &other);
	if (r < 0)
		return r;
	if (r != FOUND)
		verify_fault(v, "index: '%.*s' names object %" PRIu64 ", which is missing",
			BYTES_ARG(name), entry.object);
	else if (other_feed != id || !bytes_equal(other_key, name) ||
		 memcmp(&entry, &other, sizeof(entry)) != 0)
		verify_fault(v, "index: '%.*s' and its object %" PRIu64 " differ", BYTES_ARG(name),
			entry.object);
	if (!snapshot_hints_agree(v->snapshot, id, name, &entry))
		verify_fault(v, "index: the hints of '%.*s' lead to another version than %" PRIu64,
			BYTES_ARG(name), entry.seq);
	return 0;
}

static int verify_object_row(struct verify *v, struct bytes key, struct bytes value)
{
	struct index_entry entry, named;
	struct bytes name;
	uint32_t feed;

	if (key.size != 8)
		return err_say(ERR_CORRUPT, "index: a key of %zu bytes in 'object'", key.size);
	int r = index_read_object(key, value, &feed, &name, &entry);

	if (r == 0)
		r = index_get(snapshot_index(v->snapshot), snapshot_index_txn(v->snapshot), feed,
			name, &named);
	if (r < 0)
		return r;
	if (entry.object != be64_get(key.data))
		verify_fault(v, "index: object %" PRIu64 " says it is %" PRIu64, be64_get(key.data),
			entry.object);
	if (r != FOUND || named.object != be64_get(key.data))
		verify_fault(v, "index: object %" PRIu64 " ('%.*s') has no name",
			be64_get(key.data), BYTES_ARG(name));
	return 0;
}

/* ---- terms and postings ------------------------------------------------- */

static int verify_term_row(struct verify *v, struct bytes key, struct bytes value)
{
	struct verify_term term = {0};

	v->report.terms++;
	if (key.size < 4 || key.size > TERM_KEY_MAX ||
		(!index_term_is_whole(key) && key.size != TERM_KEY_MAX))
		return err_say(ERR_CORRUPT, "index: a key of %zu bytes in 'term'", key.size);
	int r = index_read_term(key, value, &term.id, &term.count);

	if (r < 0)
		return r;
	term.definition = be32_get(key.data);
	return ARRAY_ADD(v->terms, v->n_terms, v->terms_room, term, "the terms to verify");
}

static int verify_compare_terms(const void *a, const void *b)
{
	const struct verify_term *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* Checks the existence of a posting's object. TERM may be NULL. */
static int verify_posting(
	struct verify *v, const struct verify_term *term, uint64_t id, uint64_t object)
{
	struct index_entry entry;
	struct bytes name;
	uint32_t feed;
	int r = index_object(snapshot_index(v->snapshot), snapshot_index_txn(v->snapshot), object,
		&feed, &name, &entry);

	if (r == NOT_FOUND && !(term && term->dropping))
		verify_fault(v,
			"index: a posting of term %" PRIu64 " is of object %" PRIu64
			", which is missing",
			id, object);
	return r < 0 ? r : 0;
}

/* The rows come in order, so the ids of a term have to ascend from block to block. */
static int verify_posting_row(struct verify *v, struct bytes key, struct bytes value)
{
	struct postings_block block;
	int r = postings_read(key, value, &block);

	if (r < 0)
		return r;
	struct verify_term *term = ARRAY_FIND(v->terms, v->n_terms, .id, block.term);

	v->report.postings += block.n;
	if (!term)
		verify_fault(
			v, "index: a posting is of term %" PRIu64 ", which is missing", block.term);
	for (size_t i = 0; i < block.n; i++) {
		uint64_t object = postings_object(&block, i);

		if (term && term->seen && object <= term->last)
			verify_fault(v,
				"index: object %" PRIu64 " of term %" PRIu64 " is not in its place",
				object, block.term);
		if (term) {
			term->seen++;
			term->last = object;
		}
		r = verify_posting(v, term, block.term, object);
		if (r < 0)
			return r;
	}
	return 0;
}

static void verify_count_terms(struct verify *v, const struct index_state *state)
{
	for (size_t i = 0; i < v->n_terms; i++) {
		const struct verify_term *t = &v->terms[i];

		if (t->id == 0 || t->id >= state->next_term)
			verify_fault(
				v, "index: term %" PRIu64 " has an id that was never given", t->id);
		if (i && v->terms[i - 1].id == t->id)
			verify_fault(v, "index: two values have term id %" PRIu64, t->id);
		else if (t->count == 0 || (t->count != t->seen && !t->dropping))
			verify_fault(v,
				"index: term %" PRIu64 " counts %" PRIu64
				" objects and has %" PRIu64,
				t->id, t->count, t->seen);
	}
}

/* ---- definitions -------------------------------------------------------- */

/* NEXT_DEFINITION: ids from there on were never given. */
static int verify_definitions(struct verify *v, uint32_t next_definition)
{
	CLEANUP(index_rows_release) struct index_rows rows = {snapshot_index_txn(v->snapshot)};
	struct index_definition definition;
	size_t i = 0; /* terms before this one belong to earlier definitions */
	int r;

	while ((r = index_next_definition(&rows, &definition)) == FOUND) {
		const struct verify_feed *feed = verify_feed(v, definition.feed);

		if (definition.id >= next_definition)
			verify_fault(v, "index: definition %u has an id that was never given",
				definition.id);
		if (!feed || !feed->in_index)
			verify_fault(v, "index: definition '%s' is of unknown feed %u",
				definition.name, definition.feed);
		/* The terms are still in key order, so in the order of definitions. */
		for (; i < v->n_terms && v->terms[i].definition <= definition.id; i++) {
			v->terms[i].dropping = definition.dropping;
			if (v->terms[i].definition < definition.id)
				verify_fault(v, "index: a value is of unknown definition %u",
					v->terms[i].definition);
		}
	}
	for (; i < v->n_terms; i++)
		verify_fault(
			v, "index: a value is of unknown definition %u", v->terms[i].definition);
	return verify_failed(v, r, "index: reading definitions");
}

/* ---- all of it ---------------------------------------------------------- */

int verify_index(struct verify *v)
{
	struct index_state state;
	uint8_t buffer[META_KEY];
	struct bytes key = index_meta_key(buffer, META_STATE, 0), value;
	int r = verify_failed(v, env_check(index_env(snapshot_index(v->snapshot))), "index");

	if (r == 0)
		r = txn_get(snapshot_index_txn(v->snapshot), INDEX_META, key, &value);
	if (r == NOT_FOUND)
		r = err_say(ERR_CORRUPT, "index: its state is missing in meta");
	if (r == FOUND)
		r = index_read_state(key, value, &state);
	if (r < 0) {
		v->index_is_broken = true;
		return verify_failed(v, r, "index");
	}
	r = verify_each_row(v, INDEX_META, "index: reading 'meta'", verify_meta_row);
	if (r == 0)
		r = verify_each_row(v, INDEX_NAME, "index: reading 'name'", verify_name_row);
	if (r == 0)
		r = verify_each_row(v, INDEX_OBJECT, "index: reading 'object'", verify_object_row);
	if (r == 0)
		r = verify_each_row(v, INDEX_TERM, "index: reading 'term'", verify_term_row);
	if (r == 0)
		r = verify_definitions(v, state.next_definition);
	if (r < 0)
		return r;
	for (size_t i = 0; i < v->n_feeds; i++) {
		struct verify_feed *feed = &v->feeds[i];

		if (feed->in_index && feed->index.objects != feed->expected)
			verify_fault(v,
				"index: feed %u counts %" PRIu64 " objects and has %" PRIu64,
				feed->id, feed->index.objects, feed->expected);
		feed->expected = 0;
	}
	if (v->n_terms)
		qsort(v->terms, v->n_terms, sizeof(*v->terms), verify_compare_terms);
	r = verify_each_row(v, INDEX_POSTING, "index: reading 'posting'", verify_posting_row);
	if (r < 0)
		return r;
	verify_count_terms(v, &state);
	return 0;
}
