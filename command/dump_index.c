/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of the index (objects, terms, postings) and of the files beside the databases
 * (cursors, ring). */
#include <string.h>

#include "command/dump.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "store/read/follow.h"
#include "store/ring/ring.h"
#include "store/ring/taken.h"

/* ---- objects ------------------------------------------------------------ */

/* Prints an object, with the body from the journal. */
static int dump_object(
	struct dump *dump, uint32_t feed, struct bytes key, const struct index_entry *entry)
{
	struct record record;

	dump_begin(dump, "object");
	dump_number(dump, "object", entry->object);
	dump_number(dump, "feed", feed);
	dump_text(dump, "key", key);
	dump_number(dump, "seq", entry->seq);
	if (entry->place) {
		dump_number(dump, "place", entry->place);
		dump_number(dump, "placeSize", entry->place_size);
		dump_number(dump, "generation", entry->generation);
	}
	if (dump->body && dump->journal) {
		int r = journal_get(dump->journal, dump->journal_txn, entry->seq, &record);

		if (r < 0)
			return r;
		if (r == NOT_FOUND)
			dump_flag(dump, "missing", true);
		else if (record_check(&record) < 0)
			dump_flag(dump, "damaged", true);
		else if (dump_body(dump, record.body) < 0)
			dump_flag(dump, "bodyDamaged", true);
	}
	return dump_end(dump);
}

static int dump_names(struct dump *dump, const struct index_feed *feed)
{
	CLEANUP(index_walk_close) struct index_walk *walk = NULL;
	struct index_entry entry;
	struct bytes key;
	int r = index_names(
		dump->index, dump->index_txn, feed->feed, BYTES_NONE, BYTES_NONE, &walk);
	while (r == 0 && (r = index_walk_next(walk, &key, &entry)) == FOUND)
		if (dump_wants(dump, feed->feed, key) && entry.seq >= dump->from &&
			entry.seq <= dump->to)
			r = dump_object(dump, feed->feed, key, &entry);
	return r == END ? 0 : r;
}

int dump_objects(struct dump *dump)
{
	CLEANUP(index_rows_release) struct index_rows rows = {dump->index_txn};
	struct index_feed feed;
	int r = dump->index ? 0 : END;

	while (r == 0 && (r = index_next_feed(&rows, &feed)) == FOUND)
		if (dump_wants_feed(dump, feed.feed))
			r = dump_names(dump, &feed);
	return r == END ? 0 : r;
}

/* ---- terms and postings ------------------------------------------------- */

static void dump_term_names(struct dump *dump, const struct index_definition *definition,
	const struct index_term_row *row)
{
	dump_number(dump, "feed", definition->feed);
	dump_text(dump, "index", bytes_str(definition->name));
	dump_text(dump, "value", row->value);
	dump_flag(dump, "cut", !row->whole);
	dump_number(dump, "term", row->term);
}

static int dump_postings(struct dump *dump, const struct index_definition *definition,
	const struct index_term_row *row)
{
	CLEANUP(index_walk_close) struct index_walk *walk = NULL;
	struct index_entry entry;
	struct bytes key;
	int r = index_term_postings(dump->index, dump->index_txn, row->term, &walk);

	while (r == 0 && (r = index_walk_next(walk, &key, &entry)) == FOUND) {
		if (!dump_wants(dump, definition->feed, key))
			continue;
		dump_begin(dump, "posting");
		dump_term_names(dump, definition, row);
		dump_number(dump, "object", entry.object);
		dump_text(dump, "key", key);
		r = dump_end(dump);
	}
	return r == END ? 0 : r;
}

static int dump_definition_terms(
	struct dump *dump, const struct index_definition *definition, bool postings)
{
	CLEANUP(index_rows_release)
	struct index_rows rows = {.txn = dump->index_txn, .definition = definition->id};
	struct index_term_row row;
	int r = 0;

	while (r == 0 && (r = index_next_value(&rows, &row)) == FOUND) {
		if (postings) {
			r = dump_postings(dump, definition, &row);
			continue;
		}
		dump_begin(dump, "term");
		dump_term_names(dump, definition, &row);
		dump_number(dump, "postings", row.count);
		r = dump_end(dump);
	}
	return r == END ? 0 : r;
}

int dump_terms(struct dump *dump, bool postings)
{
	CLEANUP(index_rows_release) struct index_rows rows = {dump->index_txn};
	struct index_definition definition;
	int r = dump->index ? 0 : END;

	while (r == 0 && (r = index_next_definition(&rows, &definition)) == FOUND)
		if (dump_wants_feed(dump, definition.feed))
			r = dump_definition_terms(dump, &definition, postings);
	return r == END ? 0 : r;
}

/* ---- cursors ------------------------------------------------------------ */

static int dump_cursor(void *arg, const char *name, const struct cursor_file *cursor)
{
	struct dump *dump = arg;
	int r = 0;

	for (size_t i = 0; r == 0 && i < cursor->n; i++) {
		if (!dump_wants_feed(dump, cursor->positions[i].feed))
			continue;
		dump_begin(dump, "cursor");
		dump_text(dump, "name", bytes_str(name));
		dump_uuid(dump, "journal", cursor->uuid);
		dump_number(dump, "written", cursor->written_ns);
		dump_number(dump, "feed", cursor->positions[i].feed);
		dump_number(dump, "seq", cursor->positions[i].seq);
		r = dump_end(dump);
	}
	return r;
}

int dump_cursors(struct dump *dump)
{
	return cursor_each(dump->home, dump_cursor, NULL, dump);
}

/* ---- ring and progress word --------------------------------------------- */

static int dump_delta_ring(struct dump *dump, int runtime)
{
	CLEANUP(ring_detach) struct ring_reader *reader = NULL;
	struct ring_status status;

	dump_begin(dump, "ring");
	dump_text(dump, "name", bytes_str(DELTA_RING));
	if (runtime < 0 || ring_attach(runtime, DELTA_RING, &reader) < 0) {
		dump_flag(dump, "noWriter", true);
		return dump_end(dump);
	}
	ring_status(reader, &status);
	dump_uuid(dump, "uuid", ring_uuid(reader));
	dump_number(dump, "epoch", status.epoch);
	dump_number(dump, "state", status.state);
	dump_number(dump, "writerPid", (uint64_t)status.writer_pid);
	dump_number(dump, "capacity", status.capacity);
	dump_number(dump, "claim", status.claim);
	dump_number(dump, "tail", status.tail);
	dump_number(dump, "lastSeq", status.last_seq);
	dump_number(dump, "heartbeat", status.heartbeat_ns);
	return dump_end(dump);
}

int dump_rings(struct dump *dump)
{
	CLEANUP(taken_detach) struct taken_reader *word = NULL;
	int runtime = home_runtime_fd(dump->home);
	int r = dump_delta_ring(dump, runtime);

	if (r != 0)
		return r;
	dump_begin(dump, "taken");
	dump_text(dump, "name", bytes_str(TAKEN_FILE));
	if (runtime < 0 || taken_attach(runtime, &word) < 0) {
		dump_flag(dump, "noWriter", true);
		return dump_end(dump);
	}
	dump_number(dump, "seq", taken_seq(word));
	dump_number(dump, "starts", taken_starts(word));
	return dump_end(dump);
}
