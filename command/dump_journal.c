/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of the journal: feeds, journal, events, meta. */
#include "command/dump.h"

#include "common/cleanup.h"
#include "common/err.h"

/* Rows for the gaps of a feed. */
static int dump_passed(struct dump *dump, uint32_t feed)
{
	struct feed_passed passed;
	int r = dump->journal ? journal_passed(dump->journal, dump->journal_txn, feed, &passed)
			      : NOT_FOUND;

	if (r != FOUND)
		return r < 0 ? r : 0;
	for (size_t i = 0; r >= 0 && i < passed.n + passed.more; i++) {
		bool others = i == passed.n;

		dump_begin(dump, "passedOver");
		dump_number(dump, "feed", feed);
		dump_text(dump, "name", others ? BYTES_LIT("") : passed.objects[i].name);
		dump_text(dump, "why",
			others ? BYTES_LIT("there may be others") : passed.objects[i].why);
		dump_number(dump, "limit", others ? 0 : passed.objects[i].limit);
		r = dump_end(dump);
	}
	return r < 0 ? r : 0;
}

static int dump_feed(
	struct dump *dump, const struct feed_definition *d, const struct feed_checkpoint *c)
{
	struct index_feed feed;

	dump_begin(dump, "feed");
	dump_number(dump, "id", d->id);
	dump_text(dump, "name", bytes_str(d->name));
	dump_text(dump, "group", bytes_str(d->group));
	dump_text(dump, "version", bytes_str(d->version));
	dump_text(dump, "resource", bytes_str(d->resource));
	dump_text(dump, "kind", bytes_str(d->kind));
	dump_text(dump, "listKind", bytes_str(d->list_kind));
	dump_text(dump, "namespace", bytes_str(d->namespace_));
	dump_text(dump, "labelSelector", bytes_str(d->label_selector));
	dump_text(dump, "fieldSelector", bytes_str(d->field_selector));
	dump_text(dump, "drop", bytes_str(d->drop));
	dump_flag(dump, "namespaced", d->namespaced);
	dump_flag(dump, "metadataOnly", d->metadata_only);
	dump_number(dump, "resync", d->resync_ns);
	dump_text(dump, "phase", bytes_str(feed_phase_name(c->phase)));
	dump_text(dump, "rv", c->rv);
	dump_number(dump, "firstList", c->first_list);
	dump_number(dump, "listBegin", c->list_begin);
	dump_number(dump, "listTime", c->list_ns);
	dump_number(dump, "trimmed", c->trimmed);
	dump_number(dump, "last", c->last);
	dump_number(dump, "contact", c->contact.realtime_ns);
	dump_flag(dump, "salvaged", !dump->journal);
	int found =
		dump->index ? index_feed(dump->index, dump->index_txn, d->id, &feed) : NOT_FOUND;
	int r = dump_pass_damage(found);
	if (r < 0)
		return r;
	if (found == FOUND) {
		dump_number(dump, "indexListed", feed.listed);
		dump_number(dump, "indexListBegin", feed.list_begin);
		dump_number(dump, "indexObjects", feed.objects);
		dump_text(dump, "indexRV", bytes_str(feed.rv));
		dump_flag(dump, "indexRemoved", feed.removed);
	}
	r = dump_end(dump);
	return r < 0 ? r : dump_passed(dump, d->id);
}

int dump_next_feed(const struct dump *dump, struct feed_walk *walk)
{
	if (dump->journal)
		return feed_walk_next(walk);
	return dump->salvage ? salvage_next_feed(dump->salvage, walk) : END;
}

int dump_feeds(struct dump *dump)
{
	CLEANUP(feed_walk_release) struct feed_walk walk = {dump->journal, dump->journal_txn};
	int r = 0;

	while (r == 0 && (r = dump_next_feed(dump, &walk)) == FOUND)
		if (dump_wants_feed(dump, walk.definition.id))
			r = dump_feed(dump, &walk.definition, &walk.checkpoint);
	return r == END ? 0 : r;
}

/* ---- the log ------------------------------------------------------------ */

struct log_dump {
	struct dump *dump;
	bool changes_only; /* for followers: changes of objects after the low-water mark */
	bool salvaged;
};

static int dump_record(const struct log_dump *log, const struct record *record)
{
	struct dump *dump = log->dump;

	if ((log->changes_only && !record_is_change(record->type)) ||
		!dump_wants(dump, record->feed, record->key))
		return 0;
	dump_begin(dump, log->changes_only ? "event" : "record");
	dump_number(dump, "seq", record->seq);
	dump_number(dump, "feed", record->feed);
	dump_text(dump, "type", bytes_str(record_type_name(record->type)));
	dump_flag(dump, "finalStateUnknown", record->flags & RECORD_FINAL_STATE_UNKNOWN);
	dump_flag(dump, "abandoned", record->flags & RECORD_ABANDONED);
	if (record->key.size)
		dump_text(dump, "key", record->key);
	if (record->uid.size)
		dump_text(dump, "uid", record->uid);
	if (record->rv.size)
		dump_text(dump, "rv", record->rv);
	dump_number(dump, "prev", record->prev);
	dump_number(dump, "time", record->time_ns);
	dump_number(dump, "bodySize", record->body.size);
	dump_flag(dump, "salvaged", log->salvaged);
	if (record_check(record) < 0)
		dump_flag(dump, "damaged", true);
	else if (dump_body(dump, record->body) < 0)
		dump_flag(dump, "bodyDamaged", true);
	return dump_end(dump);
}

static int dump_salvaged(void *arg, const struct record *record)
{
	return dump_record(arg, record);
}

/* Prints the selected records after AFTER and before END. */
static int dump_gap(const struct log_dump *log, uint64_t after, uint64_t end)
{
	struct dump *dump = log->dump;
	struct log_dump gap = {dump, log->changes_only, true};
	uint64_t first = after + 1 > dump->from ? after + 1 : dump->from,
		 last = end - 1 < dump->to ? end - 1 : dump->to;

	dump_salvage(dump);
	return dump->salvage && first <= last
		       ? salvage_each_record(dump->salvage, first, last, dump_salvaged, &gap)
		       : 0;
}

static int dump_walk(
	const struct log_dump *log, struct journal_walk *walk, uint64_t from, uint64_t next_seq)
{
	struct dump *dump = log->dump;
	struct record record;
	int r = 0;

	for (uint64_t last = from ? from - 1 : 0; r == 0;) {
		r = journal_walk_next(walk, &record);
		if (r == ERR_CORRUPT) {
			(void)dump_pass_damage(r);
			uint64_t seq = journal_walk_seq(walk);

			if (seq <= last) { /* no step goes on */
				r = dump_gap(log, last, next_seq);
				break;
			}
			r = dump_gap(log, seq - 1, seq + 1);
			last = seq;
			continue;
		}
		if (r != FOUND || record.seq > dump->to)
			break;
		last = record.seq;
		r = dump_record(log, &record);
	}
	return r < 0 ? r : 0;
}

/* Prints all of the log, or only the records for followers. */
int dump_log(struct dump *dump, bool changes_only)
{
	CLEANUP(journal_walk_close) struct journal_walk *walk = NULL;
	const struct log_dump log = {dump, changes_only, false};
	struct journal_meta meta = {.horizon = 0};
	int r = 0;

	if (dump->journal)
		r = journal_meta(dump->journal, dump->journal_txn, &meta);
	else if (dump->salvage && salvage_meta(dump->salvage))
		meta = *salvage_meta(dump->salvage);
	if (r < 0 || (!dump->journal && !dump->salvage))
		return r;
	uint64_t from = changes_only && dump->from <= meta.horizon ? meta.horizon + 1 : dump->from;
	if (!dump->journal)
		return dump_gap(&log, from ? from - 1 : 0, UINT64_MAX);
	r = journal_walk_open(dump->journal_txn, from, &walk);
	return r == 0 ? dump_walk(&log, walk, from, meta.next_seq) : r;
}

/* ---- meta --------------------------------------------------------------- */

static int dump_index_definition(struct dump *dump, const struct index_definition *definition)
{
	dump_begin(dump, "definition");
	dump_number(dump, "id", definition->id);
	dump_number(dump, "feed", definition->feed);
	dump_text(dump, "name", bytes_str(definition->name));
	dump_text(dump, "paths", bytes_str(definition->paths));
	if (definition->filled == INDEX_READY)
		dump_flag(dump, "ready", true);
	else
		dump_number(dump, "filled", definition->filled);
	dump_flag(dump, "dropping", definition->dropping);
	return dump_end(dump);
}

static int dump_journal_meta(
	struct dump *dump, uint32_t generation, const struct journal_meta *meta)
{
	dump_begin(dump, "journal");
	dump_number(dump, "generation", generation);
	dump_uuid(dump, "uuid", meta->uuid);
	dump_number(dump, "nextSeq", meta->next_seq);
	dump_number(dump, "horizon", meta->horizon);
	dump_text(dump, "cluster", bytes_str(meta->cluster));
	dump_flag(dump, "salvaged", !dump->journal);
	return dump_end(dump);
}

int dump_meta(struct dump *dump)
{
	CLEANUP(index_rows_release) struct index_rows rows = {dump->index_txn};
	struct index_definition definition;
	struct journal_meta journal;
	struct index_meta index;
	int r = 0;

	if (dump->journal) {
		r = journal_meta(dump->journal, dump->journal_txn, &journal);
		if (r == 0)
			r = dump_journal_meta(dump, journal_generation(dump->journal), &journal);
	} else if (dump->salvage && salvage_meta(dump->salvage))
		r = dump_journal_meta(
			dump, salvage_generation(dump->salvage), salvage_meta(dump->salvage));
	if (r != 0 || !dump->index)
		return r;
	r = index_meta(dump->index, dump->index_txn, &index);
	if (r < 0)
		return r;
	dump_begin(dump, "index");
	dump_number(dump, "generation", index_generation(dump->index));
	dump_uuid(dump, "journal", index.journal);
	dump_number(dump, "taken", index.taken);
	dump_flag(dump, "building", index.building);
	r = dump_end(dump);
	while (r == 0 && (r = index_next_definition(&rows, &definition)) == FOUND)
		if (dump_wants_feed(dump, definition.feed))
			r = dump_index_definition(dump, &definition);
	return r == END ? 0 : r;
}
