/* SPDX-License-Identifier: Apache-2.0 */
#include "store/journal/salvage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "store/env/pages.h"
#include "store/journal/journal_internal.h"
#include "store/journal/journal_record.h"

#define SALVAGE_MAGIC 0x6b1e0e0bu

struct found_record {
	uint64_t seq;
	const uint8_t *place;
	uint32_t size;
};

struct found_feed {
	uint32_t id;
	uint64_t last;                       /* of the checkpoint */
	struct bytes definition, checkpoint; /* empty: not found */
};

struct salvage {
	uint32_t magic;
	uint32_t generation;
	struct pages pages;
	struct found_record *records; /* by seq, once it is open */
	size_t n_records, records_room;
	struct found_feed *feeds; /* by id */
	size_t n_feeds, feeds_room;
	struct journal_meta meta;
	bool has_uuid; /* of the journal, in meta.uuid */
	bool has_meta;
};

/* ---- rows --------------------------------------------------------------- */

/* Takes a whole record at the beginning of BYTES. */
static int salvage_take_record(struct salvage *s, struct bytes bytes, bool is_large)
{
	struct record record;

	if (bytes.size < RECORD_HEADER)
		return NOT_FOUND;
	size_t size = record_size_at(bytes.data), page = s->pages.page_size;
	/* A large value has as many pages as it needs, and any other row is the value alone. */
	if (size > bytes.size || (is_large ? bytes.size - size >= page : bytes.size != size))
		return NOT_FOUND;
	int r = record_read(BYTES(bytes.data, size), &record);
	if (r == 0)
		r = record_check(&record);
	if (r < 0) {
		err_ignore(r, "it is no record");
		return NOT_FOUND;
	}
	r = ARRAY_ADD(s->records, s->n_records, s->records_room,
		((struct found_record){record.seq, bytes.data, (uint32_t)size}),
		"the records that were found");
	return r < 0 ? r : FOUND;
}

static int salvage_take_feed(struct salvage *s, uint32_t id, uint8_t part, struct bytes value)
{
	CLEANUP(buf_release) struct buf texts = BUF_INIT;
	struct feed_definition definition;
	struct feed_checkpoint checkpoint = {.last = 0};
	int r = part == FEED_DEFINITION ? definition_read(id, value, &texts, &definition)
					: checkpoint_read(id, value, &checkpoint);

	if (r == -ENOMEM)
		return r;
	if (r < 0 || (part == FEED_DEFINITION && (!*definition.name || !*definition.resource))) {
		err_ignore(r, "it is no row of a feed");
		return NOT_FOUND;
	}
	size_t i = ARRAY_PLACE(s->feeds, s->n_feeds, .id, id);
	bool is_there = i < s->n_feeds && s->feeds[i].id == id;
	r = is_there ? 0
		     : ARRAY_INSERT(s->feeds, s->n_feeds, s->feeds_room, i,
			       (struct found_feed){.id = id}, "the feeds that were found");
	if (r < 0)
		return r;
	struct found_feed *feed = &s->feeds[i];
	if (part == FEED_DEFINITION)
		feed->definition = value;
	else if (!feed->checkpoint.size || checkpoint.last >= feed->last) {
		feed->checkpoint = value;
		feed->last = checkpoint.last;
	}
	return FOUND;
}

static int salvage_take_meta(struct salvage *s, struct bytes value)
{
	struct journal_meta meta;
	int r = meta_decode(value, &meta);

	if (r < 0 || (s->has_uuid && memcmp(meta.uuid, s->meta.uuid, sizeof(meta.uuid)) != 0)) {
		err_ignore(r, "it is no row of this journal");
		return NOT_FOUND;
	}
	if (!s->has_meta || meta.next_seq > s->meta.next_seq)
		s->meta = meta;
	s->has_meta = true;
	return FOUND;
}

static int salvage_take(void *arg, struct bytes key, struct bytes value)
{
	struct salvage *s = arg;
	const uint8_t *p = key.data;

	if (!key.size)
		return salvage_take_record(s, value, true);
	if (key.size == FEED_KEY_SIZE && be32_get(p) &&
		(p[4] == FEED_DEFINITION || p[4] == FEED_CHECKPOINT))
		return salvage_take_feed(s, be32_get(p), p[4], value);
	if (bytes_equal(key, META_KEY))
		return salvage_take_meta(s, value);
	bool is_log =
		key.size == SEQ_KEY_SIZE && value.size >= 8 && be64_get(p) == le64_get(value.data);
	return is_log ? salvage_take_record(s, value, false) : NOT_FOUND;
}

/* ---- opening ------------------------------------------------------------ */

static int found_record_compare(const void *a, const void *b)
{
	uint64_t one = ((const struct found_record *)a)->seq,
		 other = ((const struct found_record *)b)->seq;

	return (one > other) - (one < other);
}

void salvage_close(struct salvage **salvage)
{
	struct salvage *s = *salvage;

	if (!s)
		return;
	CHECK_OBJ(s, SALVAGE_MAGIC);
	pages_close(&s->pages);
	free(s->records);
	free(s->feeds);
	s->magic = 0;
	free(s);
	*salvage = NULL;
}

int salvage_open(const struct home *home, struct salvage **ret_salvage)
{
	CLEANUP(salvage_close) struct salvage *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(-ENOMEM, "looking for the journal's records");
	s->magic = SALVAGE_MAGIC;
	int r = home_journal_fd(home) < 0
			? NOT_FOUND
			: generation_current(home_journal_fd(home), &s->generation);
	if (r != FOUND)
		return r;
	r = generation_read_uuid(home_journal_fd(home), s->generation, s->meta.uuid);
	s->has_uuid = r == 0;
	err_ignore(r, "the rows of any journal are taken");
	r = pages_open(home_journal_fd(home), s->generation, &s->pages);
	if (r == 0)
		r = pages_each_row(&s->pages, salvage_take, s);
	if (r < 0)
		return err_add(r, "looking for the journal's records");
	if (!s->n_records)
		return NOT_FOUND;
	qsort(s->records, s->n_records, sizeof(*s->records), found_record_compare);
	size_t n = 1; /* each seq stays once */
	for (size_t i = 1; i < s->n_records; i++)
		if (s->records[n - 1].seq != s->records[i].seq)
			s->records[n++] = s->records[i];
	s->n_records = n;
	*ret_salvage = TAKE(s);
	return FOUND;
}

/* ---- results ------------------------------------------------------------ */

uint32_t salvage_generation(const struct salvage *salvage)
{
	CHECK_OBJ(salvage, SALVAGE_MAGIC);
	return salvage->generation;
}

const struct journal_meta *salvage_meta(const struct salvage *salvage)
{
	CHECK_OBJ(salvage, SALVAGE_MAGIC);
	return salvage->has_meta ? &salvage->meta : NULL;
}

int salvage_next_feed(const struct salvage *salvage, struct feed_walk *walk)
{
	CHECK_OBJ(salvage, SALVAGE_MAGIC);
	for (size_t i = 0; i < salvage->n_feeds; i++) {
		const struct found_feed *feed = &salvage->feeds[i];

		if (feed->id <= walk->definition.id ||
			!feed->definition.size) /* of an unknown resource */
			continue;
		int r = definition_read(
			feed->id, feed->definition, &walk->texts, &walk->definition);
		walk->checkpoint = (struct feed_checkpoint){.phase = FEED_LISTING};
		if (r == 0 && feed->checkpoint.size)
			r = checkpoint_read(feed->id, feed->checkpoint, &walk->checkpoint);
		return r;
	}
	return END;
}

int salvage_each_record(
	const struct salvage *salvage, uint64_t from, uint64_t to, salvage_record_fn *fn, void *arg)
{
	struct record record;
	int r = 0;

	CHECK_OBJ(salvage, SALVAGE_MAGIC);
	for (size_t i = ARRAY_PLACE(salvage->records, salvage->n_records, .seq, from);
		i < salvage->n_records && salvage->records[i].seq <= to && r == 0; i++) {
		r = record_read(
			BYTES(salvage->records[i].place, salvage->records[i].size), &record);
		if (r == 0)
			r = fn(arg, &record);
	}
	return r;
}

size_t salvage_records(const struct salvage *salvage)
{
	CHECK_OBJ(salvage, SALVAGE_MAGIC);
	return salvage->n_records;
}

/* ---- the sentence ------------------------------------------------------- */

void salvage_describe(const struct salvage *salvage, char text[SALVAGE_TEXT_SIZE])
{
	CHECK_OBJ(salvage, SALVAGE_MAGIC);
	size_t n = salvage->n_records,
	       below = ARRAY_PLACE(salvage->records, n, .seq, salvage->meta.horizon + 1);
	/* Above the horizon the journal has every seq. */
	uint64_t history = salvage->meta.next_seq - 1 - salvage->meta.horizon;
	int size = snprintf(text, SALVAGE_TEXT_SIZE,
		"%zu records were found in its pages by their checksums, events %" PRIu64
		" to %" PRIu64,
		n, salvage->records[0].seq, salvage->records[n - 1].seq);
	if (salvage->has_meta && n - below < history)
		(void)snprintf(text + size, SALVAGE_TEXT_SIZE - (size_t)size,
			"; missing of the history after event %" PRIu64 ": %" PRIu64,
			salvage->meta.horizon, history - (n - below));
}
