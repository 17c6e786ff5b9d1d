/* SPDX-License-Identifier: Apache-2.0 */
/* The store against the model: journal, index, and what a follower was told. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/path.h"
#include "tests/model/world.h"

/* ---- pieces ---- */

static uint64_t number_behind(struct bytes text, size_t skip)
{
	uint64_t n = 0;

	for (size_t i = skip; i < text.size; i++)
		n = n * 10 + (uint64_t)(((const char *)text.data)[i] - '0');
	return n;
}

/* The record says what OBJECT is, body included. */
static void check_object(const struct record *record, const struct object *object, const char *where)
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

/* ---- journal ---- */

static void check_record(const struct world *world, const struct record *record,
	const struct entry *entry)
{
	MUST(record->seq == entry->seq, "journal: record %" PRIu64 " where %" PRIu64 " was wanted",
		record->seq, entry->seq);
	MUST(record->type == entry->type && record->flags == entry->flags &&
			record->feed == world->id[entry->feed] && record->prev == entry->prev,
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
	int r = journal_walk_open(world->journal, txn, 0, &walk);

	MUST(r == 0, "journal: %s", err_text(r));
	for (size_t i = 0; i < world->model.committed_n; i++) {
		const struct entry *entry = &world->model.log[i];

		if (!model_survives(&world->model, entry))
			continue;
		r = journal_walk_next(walk, &record);
		MUST(r == FOUND, "journal: record %" PRIu64 " is missing: %s", entry->seq,
			err_text(r));
		check_record(world, &record, entry);
	}
	MUST(journal_walk_next(walk, &record) == END, "journal: record %" PRIu64 " is too much",
		record.seq);
}

static void check_heads(struct world *world, struct txn *txn, unsigned f)
{
	CLEANUP(head_walk_close) struct head_walk *walk = NULL;
	const struct feed_model *feed = &world->model.committed[f];
	struct bytes key;
	struct head head;
	int found = 0, wanted = 0;

	for (int k = 0; k < KEYS; k++)
		wanted += feed->head[k].object.there;
	MUST(head_walk_open(world->journal, txn, world->id[f], BYTES_NONE, &walk) == 0, "heads");
	while (head_walk_next(walk, &key, &head) == FOUND) {
		int k = key_number(key);

		MUST(k >= 0 && feed->head[k].object.there && feed->head[k].seq == head.seq,
			"head of %.*s: seq %" PRIu64, BYTES_ARG(key), head.seq);
		found++;
	}
	MUST(found == wanted, "feed %u: %d heads, wanted %d", f, found, wanted);
}

void world_check_journal(struct world *world)
{
	struct txn *txn;

	MUST(txn_begin_read(journal_env(world->journal), &txn) == 0, "read");
	check_log(world, txn);
	for (unsigned f = 0; f < FEEDS; f++)
		check_heads(world, txn, f);
	txn_abort(&txn);
}

/* ---- index ---- */

/* The newest snapshot; false: there is no index yet. */
static bool look(struct world *world)
{
	int r = world->snapshot ? snapshot_renew(world->snapshot)
				: snapshot_open(world->store, &world->snapshot);

	MUST(r == 0 || r == AGAIN, "snapshot: %s", err_text(r));
	return r == 0;
}

static void check_names(struct world *world, unsigned f, const struct latest state[KEYS])
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
		int r = snapshot_get(s, world->id[f], bytes_str(text), &record);
		MUST(r == (state[k].object.there ? FOUND : NOT_FOUND), "get %s: %d", text, r);
		MUST(r != FOUND || record.seq == state[k].seq,
			"get %s: version %" PRIu64 ", wanted %" PRIu64, text, record.seq,
			state[k].seq);
	}
	MUST(index_names(snapshot_index(s), snapshot_index_txn(s), world->id[f], BYTES_NONE,
		     BYTES_NONE, &walk) == 0, "names");
	while (index_walk_next(walk, &key, &entry) == FOUND) {
		int k = key_number(key);

		MUST(k >= 0 && state[k].object.there && state[k].seq == entry.seq,
			"index: feed %u %.*s is at %" PRIu64 ", wanted %" PRIu64, f, BYTES_ARG(key),
			entry.seq, k >= 0 ? state[k].seq : 0);
		int r = snapshot_get(s, world->id[f], key, &record);
		MUST(r == FOUND, "index: %.*s: %s", BYTES_ARG(key), err_text(r));
		check_object(&record, &state[k].object, "index");
		found++;
	}
	MUST(found == wanted, "index: feed %u has %d names, wanted %d", f, found, wanted);
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

static void check_node_index(struct world *world, unsigned f, const struct latest state[KEYS])
{
	struct snapshot *s = world->snapshot;
	uint32_t definition;

	if (snapshot_definition(s, world->id[f], "node", &definition) != FOUND)
		return; /* not configured now, or being filled */
	for (unsigned node = 0; node < NODES; node++) {
		CLEANUP(index_walk_close) struct index_walk *walk = NULL;
		struct snapshot_object object[SNAPSHOT_OBJECTS_MAX];
		char value[16];
		uint64_t count = 0, found = 0, wanted = 0;

		(void)snprintf(value, sizeof(value), "node-%u", node);
		for (int k = 0; k < KEYS; k++)
			wanted += state[k].object.there && state[k].object.node == node;
		int r = index_postings(snapshot_index(s), snapshot_index_txn(s), definition,
			bytes_str(value), &count, &walk);
		MUST(r == FOUND || r == NOT_FOUND, "postings: %s", err_text(r));
		int n = r == FOUND ? 1 : 0;

		while (n > 0 && (n = snapshot_walk_objects(s, world->id[f], walk, object,
					 SNAPSHOT_OBJECTS_MAX)) > 0) {
			check_objects(value, node, object, n, state);
			found += (uint64_t)n;
		}
		MUST(n == 0, "postings: %s", err_text(n));
		MUST(found == wanted && count == wanted,
			"index: %s has %" PRIu64 " postings, count %" PRIu64 ", wanted %" PRIu64,
			value, found, count, wanted);
	}
}

/* All that the snapshot shows. */
static void check_snapshot(struct world *world)
{
	for (unsigned f = 0; f < FEEDS; f++) {
		struct latest state[KEYS];
		uint64_t visible = snapshot_visible(world->snapshot, world->id[f]);

		MUST(visible <= world->model.committed_n, "visible %" PRIu64 " of %zu", visible,
			world->model.committed_n);
		if (!visible)
			continue; /* not listed yet */
		model_state(&world->model, f, visible, state);
		check_names(world, f, state);
		check_node_index(world, f, state);
	}
}

/* The snapshot is held to the next check: it shows then what it showed before the steps between. */
void world_check_index(struct world *world)
{
	if (world->snapshot && world->held)
		check_snapshot(world);
	world->held = look(world);
	if (world->held)
		check_snapshot(world);
}

void world_check(struct world *world)
{
	world_check_journal(world);
	world_check_index(world);
}

/* ---- the follower ---- */

void world_readers_open(struct world *world)
{
	struct store_options options = {.check = true};
	struct follower *follower = &world->follower;
	struct follow_options from = {.from = follower->positions,
		.n_from = follower->positions ? FEEDS : 0, .from_uuid = follower->uuid};
	int r = store_open(home_path(world->home), &options, &world->store);

	MUST(r == 0, "store: %s", err_text(r));
	r = follow_new(world->store, world->id, FEEDS, follower->positions ? &from : NULL,
		&follower->follow);
	MUST(r == 0, "follower: %s", err_text(r));
	if (!follower->positions)
		memset(follower->state, 0, sizeof(follower->state));
}

void world_readers_close(struct world *world)
{
	struct follower *follower = &world->follower;
	const struct follow_position *positions;

	free(follower->positions);
	follower->positions = NULL;
	if (follower->follow && follow_synced(follower->follow)) {
		follower->positions = calloc(FEEDS, sizeof(*positions));
		MUST(follower->positions && follow_positions(follower->follow, &positions) == FEEDS,
			"positions");
		memcpy(follower->positions, positions, FEEDS * sizeof(*positions));
		memcpy(follower->uuid, follow_uuid(follower->follow), sizeof(follower->uuid));
	}
	follow_free(&follower->follow);
	snapshot_close(&world->snapshot);
	world->held = false;
	store_close(&world->store);
}

static unsigned feed_number(const struct world *world, uint32_t id)
{
	for (unsigned f = 0; f < FEEDS; f++)
		if (world->id[f] == id)
			return f;
	world_fail("follower: item of feed %" PRIu32, id);
}

/* The change fits what the follower knew, and is the very one the model has. */
static void follow_change(struct world *world, unsigned f, const struct follow_item *item)
{
	int k = key_number(item->record.key);
	MUST(k >= 0 && item->seq <= world->model.committed_n, "follower: event %" PRIu64, item->seq);
	const struct entry *entry = &world->model.log[item->seq - 1];
	struct latest *known = &world->follower.state[f][k];

	MUST(entry->feed == f && entry->key == k && entry->type == item->record.type,
		"follower: event %" PRIu64 " is no such record", item->seq);
	MUST(entry->prev == (known->object.there ? known->seq : 0),
		"follower: event %" PRIu64 " follows %" PRIu64 ", the follower knew %" PRIu64,
		item->seq, entry->prev, known->seq);
	MUST(item->old.seq == entry->prev, "follower: event %" PRIu64 ": old state", item->seq);
	if (entry->prev)
		check_object(&item->old, &known->object, "old state");
	known->seq = item->seq;
	known->object = entry->object;
	known->object.there = entry->type != DELETED;
}

static void follow_initial(struct world *world, unsigned f, const struct follow_item *item)
{
	int k = key_number(item->record.key);
	MUST(k >= 0 && !world->follower.state[f][k].object.there,
		"follower: initial %.*s is known already", BYTES_ARG(item->record.key));
	const struct entry *entry = &world->model.log[item->record.seq - 1];

	MUST(entry->feed == f && entry->key == k, "follower: initial record %" PRIu64,
		item->record.seq);
	world->follower.state[f][k] = (struct latest){item->record.seq, entry->object};
}

static void follow_item(struct world *world, const struct follow_item *item)
{
	world->follower.items++;
	switch (item->kind) {
	case FOLLOW_INITIAL:
		follow_initial(world, feed_number(world, item->feed), item);
		break;
	case FOLLOW_CHANGE:
		follow_change(world, feed_number(world, item->feed), item);
		break;
	case FOLLOW_LAPPED:
		memset(world->follower.state[feed_number(world, item->feed)], 0,
			sizeof(world->follower.state[0]));
		world->follower.lapses++;
		break;
	default:
		break;
	}
}

/* At most ITEMS; the passes that a live follower makes once a second come at once, by a wait. */
void world_follow(struct world *world, unsigned items)
{
	struct follow_item item;

	for (unsigned n = 0; n < items; n++) {
		int r = follow_next(world->follower.follow, &item);

		if (r == AGAIN)
			return;
		MUST(r == FOUND, "follower: %s", err_text(r));
		follow_item(world, &item);
	}
}

/* Is what the follower made of its items the state that can be seen? Where not: the key. */
static bool follow_is_current(struct world *world, unsigned *ret_feed, int *ret_key)
{
	struct latest state[KEYS];

	for (unsigned f = 0; f < FEEDS; f++) {
		model_state(&world->model, f,
			snapshot_visible(world->snapshot, world->id[f]), state);
		for (int k = 0; k < KEYS; k++) {
			const struct latest *known = &world->follower.state[f][k];

			if (known->object.there == state[k].object.there &&
				(!known->object.there || known->seq == state[k].seq))
				continue;
			*ret_feed = f;
			*ret_key = k;
			return false;
		}
	}
	return true;
}

/* A follower looks at the log at least once a second; it gives nothing while a feed is not listed. */
void world_follow_check(struct world *world)
{
	unsigned f = 0;
	int key = 0;

	world->held = look(world);
	MUST(world->held, "no index");
	for (f = 0; f < FEEDS; f++)
		if (!snapshot_visible(world->snapshot, world->id[f]))
			return;
	for (int tries = 0; tries < 100; tries++) {
		world_follow(world, UINT32_MAX);
		if (follow_is_current(world, &f, &key)) {
			MUST(snapshot_reset(world->snapshot) == 0, "reset");
			world->held = false;
			return;
		}
		(void)follow_wait(world->follower.follow, 50);
	}
	world_fail("follower: feed %u key %d is at %" PRIu64, f, key,
		world->follower.state[f][key].seq);
}
