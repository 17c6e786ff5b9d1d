/* SPDX-License-Identifier: Apache-2.0 */
/* Reads objects in a snapshot: by key, by index entry, by id, by seq. */
#include "store/read/snapshot.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "store/read/snapshot_internal.h"

/* ---- records ------------------------------------------------------------ */

int snapshot_open_walk(struct snapshot *snapshot, uint64_t from, struct journal_walk **ret_walk)
{
	const struct snapshot *s = snapshot_log(snapshot);
	uint64_t first = s->journal.horizon + 1;

	return journal_walk_open_checked(s->journal_txn, from > first ? from : first,
		s->journal.horizon, s->journal.next_seq, ret_walk);
}

/* Returns ERR_CORRUPT with a sentence, unless the snapshot has expired. */
static int snapshot_damaged(const struct snapshot *s, uint64_t seq, struct bytes key)
{
	int r = snapshot_result(s, ERR_CORRUPT);

	if (r != ERR_CORRUPT)
		return r;
	return err_say(ERR_CORRUPT, "record %llu, a version of '%.*s', is damaged: " STORE_REMEDY,
		(unsigned long long)seq, BYTES_ARG(key));
}

/* Checks a version before it is given out, if the store was opened so. */
static int snapshot_checked(const struct snapshot *s, const struct record *record)
{
	int r = s->store->options.check ? record_check(record) : 0;

	return r == ERR_CORRUPT ? snapshot_damaged(s, record->seq, record->key) : r;
}

int snapshot_record(struct snapshot *snapshot, uint32_t feed, struct bytes key,
	const struct index_entry *entry, struct record *ret_record)
{
	const struct snapshot *s = snapshot_active(snapshot);
	struct journal *journal = s->pair->journal;
	struct feed_checkpoint checkpoint;
	struct record record;
	int r;

	if (snapshot_has_place(s, entry))
		r = journal_get_at(journal, s->journal_txn, entry->seq, entry->place,
			entry->place_size, &record);
	else
		r = journal_get(journal, s->journal_txn, entry->seq, &record);
	if (r < 0)
		return r == ERR_CORRUPT ? snapshot_damaged(s, entry->seq, key) : r;
	if (r == FOUND && record.seq == entry->seq && record.feed == feed &&
		bytes_equal(record.key, key) && record_is_version(record.type) &&
		record.body.size) {
		r = snapshot_checked(s, &record);
		if (r == 0)
			*ret_record = record;
		return r;
	}
	/* The journal deletes the versions of a removed feed, or their bodies, before the horizon
	 * reaches its FEED_REMOVED, so this snapshot's index may still show the feed. */
	r = journal_feed_checkpoint(journal, s->journal_txn, feed, &checkpoint);
	if (r < 0)
		return r;
	if (r == NOT_FOUND || checkpoint.phase == FEED_REMOVED)
		return err_say(ERR_NO_FEED, "the feed of '%.*s' was removed", BYTES_ARG(key));
	r = snapshot_result(s, ERR_CORRUPT);
	if (r != ERR_CORRUPT)
		return r;
	if (store_pair_is_untrusted(s->pair))
		return err_say(ERR_CORRUPT,
			"'%.*s' can't be shown: this copy lacks its version %" PRIu64,
			BYTES_ARG(key), entry->seq);
	return err_say(ERR_CORRUPT,
		"the index names version %llu of '%.*s', missing in the journal: " STORE_REMEDY,
		(unsigned long long)entry->seq, BYTES_ARG(key));
}

bool snapshot_has_place(const struct snapshot *snapshot, const struct index_entry *entry)
{
	return entry->place &&
	       entry->generation == journal_generation(snapshot_active(snapshot)->pair->journal);
}

void snapshot_prefetch(struct snapshot *snapshot, const struct index_entry *entry)
{
	if (snapshot_has_place(snapshot, entry))
		txn_prefetch(snapshot->journal_txn, entry->place);
}

/* ---- by hints ----------------------------------------------------------- */

/* Reads a hint's record. Returns: FOUND: a version of FEED visible in the snapshot (hints.h tells
 * why it is the newest one); NOT_FOUND: ask the index, also to find any damage. */
static int snapshot_hinted(const struct snapshot *s, uint32_t feed, uint64_t visible,
	const struct hint *hint, struct record *ret_record)
{
	struct journal *journal = s->pair->journal;
	int r = NOT_FOUND;

	if (hint->place && hint->generation == journal_generation(journal))
		r = journal_at(journal, s->journal_txn, hint->place, ret_record);
	else if (hint->seq && hint->seq <= visible)
		r = journal_get(journal, s->journal_txn, hint->seq, ret_record);
	err_ignore(r, "the index is asked instead, and finds what is damaged");
	return r == FOUND && ret_record->feed == feed && ret_record->seq <= visible &&
			       record_is_version(ret_record->type)
		       ? FOUND
		       : NOT_FOUND;
}

/* Gets an object by its hint. Returns: FOUND, NOT_FOUND, errors. */
static int snapshot_get_hinted(struct snapshot *snapshot, uint32_t feed, uint64_t visible,
	const struct hint *hint, struct bytes key, struct record *ret_record)
{
	const struct snapshot *s = snapshot_active(snapshot);
	struct index_entry entry;
	struct record record;
	int r;

	if (snapshot_hinted(s, feed, visible, hint, &record) == FOUND &&
		bytes_equal(record.key, key)) {
		r = snapshot_checked(s, &record);
		if (r == 0)
			*ret_record = record;
		return r;
	}
	r = index_get(s->pair->index, s->index_txn, feed, key, &entry);
	return r != FOUND ? r : snapshot_record(snapshot, feed, key, &entry, ret_record);
}

int snapshot_get(
	struct snapshot *snapshot, uint32_t feed, struct bytes key, struct record *ret_record)
{
	const struct snapshot *s = snapshot_active(snapshot);
	struct hint hint = {0};

	if (s->use_hints)
		hint = hints_name(s->use_hints, feed, key);
	if (hint.place) /* loads its cache lines together, not one after the other */
		txn_prefetch(s->journal_txn, hint.place);
	return snapshot_get_hinted(
		snapshot, feed, snapshot_visible(snapshot, feed), &hint, key, ret_record);
}

void snapshot_get_batch(
	struct snapshot *snapshot, uint32_t feed, struct snapshot_key **keys, size_t n)
{
	const struct snapshot *s = snapshot_active(snapshot);
	uint64_t visible = snapshot_visible(snapshot, feed);
	struct hint hints[SNAPSHOT_OBJECTS_MAX] = {{0}};
	struct hints_key names[SNAPSHOT_OBJECTS_MAX];

	REQUIRE(n <= SNAPSHOT_OBJECTS_MAX);
	for (size_t i = 0; i < n && s->use_hints; i++)
		names[i] = hints_prefetch_name(s->use_hints, feed, keys[i]->key);
	for (size_t i = 0; i < n && s->use_hints; i++) {
		hints[i] = hints_prefetched(s->use_hints, names[i]);
		if (hints[i].place)
			txn_prefetch(s->journal_txn, hints[i].place);
	}
	for (size_t i = 0; i < n; i++)
		keys[i]->result = snapshot_get_hinted(
			snapshot, feed, visible, &hints[i], keys[i]->key, &keys[i]->record);
}

bool snapshot_hints_agree(
	struct snapshot *snapshot, uint32_t feed, struct bytes key, const struct index_entry *entry)
{
	const struct snapshot *s = snapshot_active(snapshot);
	uint64_t visible = snapshot_visible(snapshot, feed);
	struct record record;

	if (!s->use_hints)
		return true;
	struct hint hint = hints_name(s->use_hints, feed, key);
	/* The hint of a name may lead to another name: compare the key. */
	if (snapshot_hinted(s, feed, visible, &hint, &record) == FOUND &&
		bytes_equal(record.key, key) && record.seq != entry->seq)
		return false;
	hint = hints_object(s->use_hints, entry->object);
	return snapshot_hinted(s, feed, visible, &hint, &record) != FOUND ||
	       (record.seq == entry->seq && bytes_equal(record.key, key));
}

int snapshot_walk_objects(struct snapshot *snapshot, uint32_t feed, struct index_walk *walk,
	struct snapshot_object ret_objects[SNAPSHOT_OBJECTS_MAX])
{
	const struct snapshot *s = snapshot_active(snapshot);
	uint64_t visible = snapshot_visible(snapshot, feed);
	struct hint hints[SNAPSHOT_OBJECTS_MAX] = {{0}};
	uint64_t ids[SNAPSHOT_OBJECTS_MAX];
	struct record record;
	size_t found = 0;
	int r = FOUND;

	while (found < SNAPSHOT_OBJECTS_MAX && (r = index_walk_next_id(walk, &ids[found])) == FOUND)
		found++;
	if (r < 0)
		return r;
	for (size_t i = 0; i < found && s->use_hints; i++)
		hints_prefetch_object(s->use_hints, ids[i]);
	for (size_t i = 0; i < found && s->use_hints; i++) {
		hints[i] = hints_object(s->use_hints, ids[i]);
		if (hints[i].place)
			txn_prefetch(s->journal_txn, hints[i].place);
	}
	for (size_t i = 0; i < found; i++) {
		int hinted = snapshot_hinted(s, feed, visible, &hints[i], &record);

		if (hinted == FOUND) /* nothing else confirms the key */
			hinted = record_check_header(&record);
		err_ignore(hinted < 0 ? hinted : 0, "the index is asked for the key");
		if (hinted == FOUND) {
			ret_objects[i] = (struct snapshot_object){
				.key = record.key,
				.entry = {.object = ids[i],
					.seq = record.seq,
					.place = hints[i].place,
					.place_size = (uint32_t)record.stored.size,
					.generation = hints[i].generation},
			};
			continue;
		}
		r = index_walk_object(walk, ids[i], &ret_objects[i].key, &ret_objects[i].entry);
		if (r < 0)
			return r;
	}
	return (int)found;
}

int snapshot_version(struct snapshot *snapshot, uint64_t seq, struct record *ret_record)
{
	const struct snapshot *s = snapshot_log(snapshot);
	struct record record;
	int r = journal_get(s->pair->journal, s->journal_txn, seq, &record);

	if (r == FOUND)
		r = snapshot_checked(s, &record);
	else if (r == ERR_CORRUPT)
		r = snapshot_result(s, r);
	if (r == FOUND)
		*ret_record = record;
	return r;
}

int snapshot_before(
	struct snapshot *snapshot, const struct record *record, struct record *ret_before)
{
	*ret_before = (struct record){0};
	int r = snapshot_checked(snapshot_log(snapshot), record);

	if (r == FOUND && record->prev)
		r = snapshot_version(snapshot, record->prev, ret_before);
	if (r == NOT_FOUND)
		return err_say(ERR_CORRUPT, "record %llu: the version before it, %llu, is missing",
			(unsigned long long)record->seq, (unsigned long long)record->prev);
	return r;
}

/* ---- definitions -------------------------------------------------------- */

static int snapshot_compare_definitions(const void *a, const void *b)
{
	const struct index_definition *x = a, *y = b;

	return x->feed != y->feed ? (x->feed > y->feed) - (x->feed < y->feed)
				  : (x->id > y->id) - (x->id < y->id);
}

/* Reads those of all feeds, as the index has them by id. */
static int snapshot_read_definitions(struct snapshot *s)
{
	CLEANUP(index_rows_release) struct index_rows rows = {s->index_txn};
	struct index_definition definition;
	int r = 0;

	s->n_definitions = 0;
	while (r == 0 && (r = index_next_definition(&rows, &definition)) == FOUND)
		r = ARRAY_ADD(s->definitions, s->n_definitions, s->definitions_room, definition,
			"the definitions of a snapshot");
	if (r < 0)
		return r;
	if (s->n_definitions)
		qsort(s->definitions, s->n_definitions, sizeof(*s->definitions),
			snapshot_compare_definitions);
	s->has_definitions = true;
	return 0;
}

int snapshot_definitions(struct snapshot *snapshot, uint32_t feed,
	const struct index_definition **ret_definitions, size_t *ret_n)
{
	const struct snapshot *s = snapshot_active(snapshot);
	int r = s->has_definitions ? 0 : snapshot_read_definitions(snapshot);

	if (r < 0)
		return r;
	size_t first = ARRAY_PLACE(s->definitions, s->n_definitions, .feed, feed), end = first;

	while (end < s->n_definitions && s->definitions[end].feed == feed)
		end++;
	*ret_definitions = end ? s->definitions + first : NULL;
	*ret_n = end - first;
	return 0;
}

int snapshot_definition(struct snapshot *snapshot, uint32_t feed, const char *name,
	struct index_definition *ret_definition)
{
	const struct index_definition *all;
	size_t n;
	int r = snapshot_definitions(snapshot, feed, &all, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (!all[i].dropping && strcmp(all[i].name, name) == 0) {
			*ret_definition = all[i];
			return all[i].filled == INDEX_READY ? FOUND : AGAIN;
		}
	return NOT_FOUND;
}
