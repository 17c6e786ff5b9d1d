/* SPDX-License-Identifier: Apache-2.0 */
/* Compares journal and index with the model. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "tests/model/world.h"

/* ---- pieces ------------------------------------------------------------- */

static uint64_t number_behind(struct bytes text, size_t skip)
{
	uint64_t n = 0;

	for (size_t i = skip; i < text.size; i++)
		n = n * 10 + (uint64_t)(((const char *)text.data)[i] - '0');
	return n;
}

/* Asserts that the record, body included, describes OBJECT. */
void check_object(const struct record *record, const struct object *object, const char *where)
{
	struct bytes node;
	char want[16];
	struct value spec, value, document;

	MUST(number_behind(record->uid, 1) == object->uid, "%s: record %" PRIu64 ": uid", where,
		record->seq);
	MUST(number_behind(record->rv, 0) == object->rv,
		"%s: record %" PRIu64 ": rv %.*s, wanted %" PRIu64, where, record->seq,
		BYTES_ARG(record->rv), object->rv);
	MUST(record_check(record) == 0, "%s: record %" PRIu64 ": checksum", where, record->seq);
	MUST(value_read(record->body, &document) == 0 &&
			value_find(&document, BYTES_LIT("spec"), &spec) == FOUND &&
			value_find(&spec, BYTES_LIT("nodeName"), &value) == FOUND,
		"%s: record %" PRIu64 ": body", where, record->seq);
	node = value.text;
	(void)snprintf(want, sizeof(want), "node-%u", object->node);
	MUST(bytes_equal(node, bytes_str(want)), "%s: record %" PRIu64 ": node %.*s, wanted %s",
		where, record->seq, BYTES_ARG(node), want);
}

/* ---- journal ------------------------------------------------------------ */

static void check_record(const struct record *record, const struct entry *entry)
{
	MUST(record->seq == entry->seq, "journal: record %" PRIu64 " where %" PRIu64 " was wanted",
		record->seq, entry->seq);
	MUST(record->type == entry->type && record->flags == entry->flags &&
			record->feed == entry->id && record->prev == entry->prev,
		"journal: record %" PRIu64 " is type %u flags %u prev %" PRIu64
		", wanted %u, %u, %" PRIu64,
		record->seq, record->type, record->flags, record->prev, entry->type, entry->flags,
		entry->prev);
	MUST(key_number(record->key) == entry->key, "journal: record %" PRIu64 ": key",
		record->seq);
	if (entry->key >= 0 && !(entry->flags & STATE_UNKNOWN))
		check_object(record, &entry->object, "journal");
}

static void check_log(struct world *world, struct txn *txn)
{
	CLEANUP(journal_walk_close) struct journal_walk *walk = NULL;
	struct record record;
	int r = journal_walk_open(txn, 0, &walk);

	MUST(r == 0, "journal: %s", err_text(r));
	r = journal_walk_next(walk, &record);
	for (size_t i = 0; i < world->model.committed_n; i++) {
		const struct entry *entry = &world->model.log[i];

		enum survival survival = model_survives(&world->model, entry);

		if (survival == IS_GONE || (survival == MAY_BE_GONE && record.seq > entry->seq))
			continue;
		MUST(r == FOUND, "journal: record %" PRIu64 " is missing: %s", entry->seq,
			err_text(r));
		check_record(&record, entry);
		r = journal_walk_next(walk, &record);
	}
	MUST(r == END, "journal: record %" PRIu64 " is too much", record.seq);
}

/* Compares the heads of feed ID in the journal; SOME: the feed has left, and some of them may be
 * gone. */
static void check_heads(struct txn *txn, uint32_t id, const struct latest want[KEYS], bool some)
{
	CLEANUP(head_walk_close) struct head_walk *walk = NULL;
	struct bytes key;
	struct head head;
	int found = 0, wanted = 0;

	for (int k = 0; k < KEYS; k++)
		wanted += want[k].object.there;
	MUST(head_walk_open(txn, id, BYTES_NONE, &walk) == 0, "heads");
	while (head_walk_next(walk, &key, &head) == FOUND) {
		int k = key_number(key);

		MUST(k >= 0 && want[k].object.there && want[k].seq == head.seq,
			"head of %.*s: seq %" PRIu64, BYTES_ARG(key), head.seq);
		found++;
	}
	MUST(found == wanted || (some && found < wanted), "feed %" PRIu32 ": %d heads, wanted %d",
		id, found, wanted);
}

static void check_left_heads(struct world *world, struct txn *txn)
{
	static const struct latest none[KEYS];
	const struct model *model = &world->model;

	for (size_t i = 0; i < model->committed_left; i++) {
		const struct left_feed *left = &model->left[i];
		bool gone = left->seq <= model->horizon;

		check_heads(
			txn, left->id, gone ? none : left->head, left->seq == model->horizon + 1);
	}
}

void world_check_journal(struct world *world)
{
	struct txn *txn;

	MUST(txn_begin_read(journal_env(world->journal), &txn) == 0, "read");
	check_log(world, txn);
	for (unsigned f = 0; f < FEEDS; f++)
		if (world->model.committed[f].id)
			check_heads(txn, world->model.committed[f].id,
				world->model.committed[f].head, false);
	check_left_heads(world, txn);
	txn_abort(&txn);
}

/* ---- index -------------------------------------------------------------- */

bool world_renew_snapshot(struct world *world)
{
	int r = world->snapshot ? snapshot_renew(world->snapshot)
				: snapshot_open(world->store, &world->snapshot);

	MUST(r == 0 || r == AGAIN, "snapshot: %s", err_text(r));
	return r == 0;
}

static void check_names(struct world *world, uint32_t id, const struct latest state[KEYS])
{
	CLEANUP(index_walk_close) struct index_walk *walk = NULL;
	struct snapshot *s = world->snapshot;
	struct index_entry entry;
	struct record record;
	struct bytes key;
	int found = 0, wanted = 0;

	for (int k = 0; k < KEYS; k++) {
		char text[16];

		wanted += state[k].object.there;
		key_text(k, text);
		int r = snapshot_get(s, id, bytes_str(text), &record);
		MUST(r == (state[k].object.there ? FOUND : NOT_FOUND), "get %s: %d", text, r);
		MUST(r != FOUND || record.seq == state[k].seq,
			"get %s: version %" PRIu64 ", wanted %" PRIu64, text, record.seq,
			state[k].seq);
	}
	MUST(index_names(snapshot_index(s), snapshot_index_txn(s), id, BYTES_NONE, BYTES_NONE,
		     &walk) == 0,
		"names");
	while (index_walk_next(walk, &key, &entry) == FOUND) {
		int k = key_number(key);

		MUST(k >= 0 && state[k].object.there && state[k].seq == entry.seq,
			"index: feed %" PRIu32 " %.*s is at %" PRIu64 ", wanted %" PRIu64, id,
			BYTES_ARG(key), entry.seq, k >= 0 ? state[k].seq : 0);
		int r = snapshot_get(s, id, key, &record);
		MUST(r == FOUND, "index: %.*s: %s", BYTES_ARG(key), err_text(r));
		check_object(&record, &state[k].object, "index");
		found++;
	}
	MUST(found == wanted, "index: feed %" PRIu32 " has %d names, wanted %d", id, found, wanted);
}

static void check_objects(const char *value, unsigned node, const struct snapshot_object *object,
	int n, const struct latest state[KEYS])
{
	for (int i = 0; i < n; i++) {
		int k = key_number(object[i].key);

		MUST(k >= 0 && state[k].object.there && state[k].object.node == node,
			"index: %.*s stands under %s", BYTES_ARG(object[i].key), value);
		MUST(object[i].entry.seq == state[k].seq, "index: %.*s is at %" PRIu64 " under %s",
			BYTES_ARG(object[i].key), object[i].entry.seq, value);
	}
}

static void check_node_index(struct world *world, uint32_t id, const struct latest state[KEYS])
{
	struct snapshot *s = world->snapshot;
	struct index_definition definition;

	if (snapshot_definition(s, id, "node", &definition) != FOUND)
		return; /* not configured now, or being filled */
	for (unsigned node = 0; node < NODES; node++) {
		CLEANUP(index_walk_close) struct index_walk *walk = NULL;
		struct snapshot_object object[SNAPSHOT_OBJECTS_MAX];
		char value[16];
		uint64_t count = 0, found = 0, wanted = 0;

		(void)snprintf(value, sizeof(value), "node-%u", node);
		for (int k = 0; k < KEYS; k++)
			wanted += state[k].object.there && state[k].object.node == node;
		int r = index_postings(snapshot_index(s), snapshot_index_txn(s), definition.id,
			bytes_str(value), &count, &walk);
		MUST(r == FOUND || r == NOT_FOUND, "postings: %s", err_text(r));
		int n = r == FOUND ? 1 : 0;

		while (n > 0 && (n = snapshot_walk_objects(s, id, walk, object)) > 0) {
			check_objects(value, node, object, n, state);
			found += (uint64_t)n;
		}
		MUST(n == 0, "postings: %s", err_text(n));
		MUST(found == wanted && count == wanted,
			"index: %s has %" PRIu64 " postings, count %" PRIu64 ", wanted %" PRIu64,
			value, found, count, wanted);
	}
}

static void check_feed(struct world *world, uint32_t id)
{
	struct latest state[KEYS];
	uint64_t visible = snapshot_visible(world->snapshot, id);

	MUST(visible <= world->model.committed_n, "visible %" PRIu64 " of %zu", visible,
		world->model.committed_n);
	if (!visible)
		return; /* not listed yet */
	model_state(&world->model, id, visible, state);
	check_names(world, id, state);
	check_node_index(world, id, state);
}

/* Compares all feeds of the snapshot, including those removed since. */
static void check_snapshot(struct world *world)
{
	const struct model *model = &world->model;

	for (unsigned f = 0; f < FEEDS; f++)
		if (model->committed[f].id)
			check_feed(world, model->committed[f].id);
	for (size_t i = 0; i < model->committed_left; i++)
		if (snapshot_taken(world->snapshot) < model->left[i].seq)
			check_feed(world, model->left[i].id);
}

/* Compares the snapshot held since the last check: it must show the same as then. Then renews
 * it. */
void world_check_index(struct world *world)
{
	if (world->snapshot && world->held)
		check_snapshot(world);
	world->held = world_renew_snapshot(world);
	if (world->held) {
		check_snapshot(world);
		world_check_as_of(world);
	}
}

void world_check(struct world *world)
{
	world_check_journal(world);
	world_check_index(world);
}
