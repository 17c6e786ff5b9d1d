/* SPDX-License-Identifier: Apache-2.0 */
/* Walks over the journal's databases in key order. */
#include "store/journal/journal_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"
#include "store/env/env.h"
#include "store/journal/journal_record.h"

#define JOURNAL_WALK_MAGIC 0x6b1e0e07u
#define HEAD_WALK_MAGIC    0x6b1e0e08u

struct journal_walk {
	uint32_t magic;
	bool started;
	uint64_t from;
	uint64_t seq; /* of the last step */
	struct txn *txn;
	struct cursor *cursor;
	/* Read-ahead: */
	struct ahead ahead;
	struct cursor *front;  /* at the last record announced; NULL: none */
	unsigned lead;         /* records between the two cursors */
	uint64_t horizon, end; /* no record between these two may be missing; end 0: any may */
	unsigned step, passed; /* PASSED of STEP records since the walk last looked */
};

int journal_walk_open(struct txn *txn, uint64_t from, struct journal_walk **ret_walk)
{
	CLEANUP(journal_walk_close) struct journal_walk *walk = calloc(1, sizeof(*walk));

	if (!walk)
		return err_set(-ENOMEM, "walking the log");
	walk->magic = JOURNAL_WALK_MAGIC;
	walk->from = from;
	walk->txn = txn;
	walk->step = txn_reads_by_page(txn) ? AHEAD_FIRST : 0;
	int r = cursor_open(txn, DB_LOG, &walk->cursor);
	if (r < 0)
		return r;
	*ret_walk = TAKE(walk);
	return 0;
}

int journal_walk_open_checked(struct txn *txn, uint64_t from, uint64_t horizon, uint64_t end,
	struct journal_walk **ret_walk)
{
	int r = journal_walk_open(txn, from, ret_walk);

	if (r < 0)
		return r;
	(*ret_walk)->seq = from ? from - 1 : 0;
	(*ret_walk)->horizon = horizon;
	(*ret_walk)->end = end;
	return 0;
}

/* Returns the next seq due in a checked walk. */
static uint64_t walk_due(const struct journal_walk *walk)
{
	return (walk->seq > walk->horizon ? walk->seq : walk->horizon) + 1;
}

/* Moves FRONT on and announces its records. Returns: FOUND; END; errors, to be met by the walk
 * itself. */
static int walk_announce(struct journal_walk *walk)
{
	uint8_t room[SEQ_KEY_SIZE];
	struct bytes key, value;
	uint64_t place;
	int r = walk->front ? 0 : cursor_open(walk->txn, DB_LOG, &walk->front);
	bool seek = r == 0 && !walk->lead;

	for (r = r < 0 ? r : FOUND; r == FOUND && walk->lead < 2 * walk->step;) {
		r = seek ? cursor_seek(walk->front, seq_key(walk->seq + 1, room), &key, &value)
			 : cursor_next(walk->front, &key, &value);
		seek = false;
		if (r != FOUND)
			break;
		walk->lead++;
		if (txn_place(walk->txn, value, &place) == FOUND)
			ahead_add(&walk->ahead, walk->txn, place, value.size);
	}
	ahead_send(&walk->ahead, walk->txn);
	return r;
}

/* Comes after each record. */
static void walk_look_ahead(struct journal_walk *walk)
{
	walk->lead -= walk->lead > 0;
	if (!walk->step || ++walk->passed < walk->step)
		return;
	walk->passed = 0;
	walk->step = ahead_grow(walk->step);
	if (!ahead_is_cold(&walk->ahead)) {
		cursor_close(&walk->front);
		walk->lead = 0;
		return;
	}
	int r = walk_announce(walk);
	if (r == FOUND)
		return;
	err_ignore(r < 0 ? r : 0, "the walk comes to it");
	cursor_close(&walk->front);
	walk->lead = walk->step = 0; /* no more is announced */
}

/* Reports the records before END as missing. The walk stays before them. */
static int walk_lacks(const struct journal_walk *walk, uint64_t end)
{
	return err_set(ERR_CORRUPT, "the records %" PRIu64 " to %" PRIu64 " are missing",
		walk_due(walk), end - 1);
}

int journal_walk_next(struct journal_walk *walk, struct record *ret_record)
{
	uint8_t room[SEQ_KEY_SIZE];
	struct bytes key, value;
	struct record record;

	CHECK_OBJ(walk, JOURNAL_WALK_MAGIC);
	int r = walk->started ? cursor_next(walk->cursor, &key, &value)
			      : cursor_seek(walk->cursor, seq_key(walk->from, room), &key, &value);
	walk->started = true;
	if (r == END && walk_due(walk) < walk->end)
		return walk_lacks(walk, walk->end);
	if (r)
		return r;
	uint64_t seq = key.size == SEQ_KEY_SIZE ? be64_get(key.data) : walk->seq + 1;
	if (walk->end && seq <= walk->seq)
		return err_set(
			ERR_CORRUPT, "record %" PRIu64 " comes after %" PRIu64, seq, walk->seq);
	if (walk->end && seq > walk_due(walk))
		return walk_lacks(walk, seq);
	walk->seq = seq;
	r = record_read(value, &record);
	if (r < 0)
		return err_add(r, "record %" PRIu64, walk->seq);
	if (key.size != SEQ_KEY_SIZE || seq != record.seq)
		return err_set(
			ERR_CORRUPT, "record %" PRIu64 " is in another one's place", record.seq);
	walk_look_ahead(walk);
	*ret_record = record;
	return FOUND;
}

int journal_walk_next_sound(struct journal_walk *walk, struct record *ret_record)
{
	uint64_t last;
	int r;

	do {
		last = walk->seq;
		r = journal_walk_next(walk, ret_record);
	} while (r == ERR_CORRUPT && walk->seq > last);
	return r;
}

uint64_t journal_walk_seq(const struct journal_walk *walk)
{
	CHECK_OBJ(walk, JOURNAL_WALK_MAGIC);
	return walk->seq;
}

void journal_walk_close(struct journal_walk **walk)
{
	if (!*walk)
		return;
	cursor_close(&(*walk)->front);
	cursor_close(&(*walk)->cursor);
	(*walk)->magic = 0;
	free(*walk);
	*walk = NULL;
}

struct head_walk {
	uint32_t magic;
	bool started;
	struct cursor *cursor;
	struct bytes first;
	uint8_t room[HEAD_KEY_MAX];
};

int head_walk_open(struct txn *txn, uint32_t feed, struct bytes from, struct head_walk **ret_walk)
{
	CLEANUP(head_walk_close) struct head_walk *walk = calloc(1, sizeof(*walk));

	if (!walk)
		return err_set(-ENOMEM, "walking the heads");
	walk->magic = HEAD_WALK_MAGIC;
	/* No stored key is longer, so the first one not below the whole is not below its
	 * beginning. */
	if (from.size > JOURNAL_KEY_MAX)
		from.size = JOURNAL_KEY_MAX;
	walk->first = head_key(feed, from, walk->room);
	int r = cursor_open(txn, DB_HEAD, &walk->cursor);
	if (r < 0)
		return r;
	*ret_walk = TAKE(walk);
	return 0;
}

int head_walk_next(struct head_walk *walk, struct bytes *ret_key, struct head *ret_head)
{
	struct bytes key, value;

	CHECK_OBJ(walk, HEAD_WALK_MAGIC);
	int r = 0;
	if (walk->started) {
		r = cursor_next(walk->cursor, &key, &value);
	} else {
		walk->started = true;
		/* A damaged key may have taken the head before out of the walk. */
		r = cursor_before(walk->cursor, walk->first, &key, &value);
		if (r == FOUND)
			r = head_read(key, value, ret_head);
		if (r >= 0)
			r = cursor_seek(walk->cursor, walk->first, &key, &value);
	}
	if (r)
		return r;
	if (key.size <= 4)
		return err_set(ERR_CORRUPT, "a head's key of %zu bytes", key.size);
	if (!cursor_page_is_whole(walk->cursor, key))
		return err_set(ERR_CORRUPT, "a page of heads lacks some");
	r = head_read(key, value, ret_head); /* also of the next feed: a damaged key is of any */
	if (r < 0)
		return r;
	if (memcmp(key.data, walk->room, 4) != 0)
		return END;
	*ret_key = BYTES((const uint8_t *)key.data + 4, key.size - 4);
	return FOUND;
}

void head_walk_close(struct head_walk **walk)
{
	if (!*walk)
		return;
	cursor_close(&(*walk)->cursor);
	(*walk)->magic = 0;
	free(*walk);
	*walk = NULL;
}

int feed_walk_next(struct feed_walk *walk)
{
	struct bytes key, value;
	int r = walk->cursor ? 0 : cursor_open(walk->txn, DB_FEED, &walk->cursor);

	while (r == 0 && (r = cursor_next(walk->cursor, &key, &value)) == FOUND) {
		if (key.size != FEED_KEY_SIZE)
			return err_say(ERR_CORRUPT, "a feed's key of %zu bytes", key.size);
		if (((const uint8_t *)key.data)[4] != FEED_DEFINITION)
			continue;
		uint32_t feed = be32_get(key.data);
		r = definition_read(feed, value, &walk->texts, &walk->definition);
		if (r == 0)
			r = journal_feed_checkpoint(
				walk->journal, walk->txn, feed, &walk->checkpoint);
		return r == NOT_FOUND
			       ? err_say(ERR_CORRUPT, "feed %" PRIu32 " has no checkpoint", feed)
			       : r;
	}
	return r;
}

void feed_walk_release(struct feed_walk *walk)
{
	cursor_close(&walk->cursor);
	buf_release(&walk->texts);
}

int journal_feed_definition(
	struct txn *txn, uint32_t feed, struct buf *texts, struct feed_definition *ret_definition)
{
	uint8_t room[FEED_KEY_SIZE];
	struct bytes value;
	int r = txn_get(txn, DB_FEED, feed_key(feed, FEED_DEFINITION, room), &value);

	return r == FOUND ? definition_read(feed, value, texts, ret_definition) : r;
}

int journal_definitions_hash(struct txn *txn, uint64_t *ret_hash)
{
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	struct bytes key, value;
	uint64_t hash = 0;
	int r = cursor_open(txn, DB_FEED, &cursor);

	while (r == 0 && (r = cursor_next(cursor, &key, &value)) == FOUND) {
		if (key.size != FEED_KEY_SIZE)
			continue;
		enum feed_part part = ((const uint8_t *)key.data)[4];
		if (part == FEED_DEFINITION)
			hash = hash_bytes(value, hash_bytes(key, hash));
		else if (part == FEED_CHECKPOINT && checkpoint_is_removed(value))
			hash = hash_bytes(key, hash);
	}
	*ret_hash = hash;
	return r < 0 ? r : 0;
}
