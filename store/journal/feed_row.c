/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds: definitions and checkpoints in the `feed` database, and the writer's memory of the
 * checkpoints. A bookmark changes only the memory; the rows are written once a transaction.
 */
#include "store/journal/journal_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/crc.h"
#include "common/err.h"
#include "common/value/value.h"

/* Offsets in a checkpoint; its rv and its trimmed_rv follow. */
enum {
	AT_PHASE = 0,
	AT_RV_LEN = 4,
	AT_TRIMMED_RV_LEN = 6,
	AT_LIST_BEGIN = 8,
	AT_LIST_NS = 16,
	AT_FIRST_LIST = 24,
	AT_TRIMMED = 32,
	AT_LAST = 40,
	AT_CONTACT_REAL = 48,
	AT_CONTACT_BOOTTIME = 56,
	AT_CONTACT_BOOT = 64,
	CHECKPOINT_HEADER = 72,
};

const char *feed_phase_name(uint32_t phase)
{
	static const char *const names[FEED_PHASE_MAX] = {
		[FEED_LISTING] = "listing",
		[FEED_SYNCED] = "synced",
		[FEED_FORBIDDEN] = "forbidden",
		[FEED_GONE] = "gone",
		[FEED_ERROR] = "error",
		[FEED_REMOVED] = "removed",
	};

	return phase < FEED_PHASE_MAX ? names[phase] : "unknown";
}

struct bytes feed_key(uint32_t feed, enum feed_part part, uint8_t room[FEED_KEY_SIZE])
{
	be32_put(room, feed);
	room[4] = (uint8_t)part;
	return BYTES(room, FEED_KEY_SIZE);
}

uint32_t row_checksum(struct bytes key, struct bytes content)
{
	return crc32c(crc32c(0, key.data, key.size), content.data, content.size);
}

void feed_checksum(uint32_t feed, enum feed_part part, struct buf *buf)
{
	uint8_t room[FEED_KEY_SIZE];
	uint32_t crc = row_checksum(feed_key(feed, part, room), buf_bytes(buf));
	void *place = buf_grow(buf, FEED_CRC_SIZE);

	if (place)
		le32_put(place, crc);
}

int feed_open(uint32_t feed, enum feed_part part, struct bytes stored, struct bytes *ret_content)
{
	static const char *const names[FEED_PART_MAX] = {
		"definition", "checkpoint", "list of what was passed over"};
	size_t size = stored.size < FEED_CRC_SIZE ? 0 : stored.size - FEED_CRC_SIZE;
	struct bytes content = BYTES(stored.data, size);
	uint8_t room[FEED_KEY_SIZE];

	if (!size || row_checksum(feed_key(feed, part, room), content) !=
			     le32_get((const uint8_t *)stored.data + size))
		return err_say(ERR_CORRUPT,
			"journal: the %s of feed %" PRIu32
			" is damaged: 'kinf run' lists everything again when it is started",
			names[part], feed);
	*ret_content = content;
	return 0;
}

/* ---- definitions -------------------------------------------------------- */

static const struct {
	const char *key;
	size_t offset;
} texts[] = {
#define TEXT(member, key, identity) {key, offsetof(struct feed_definition, member)},
#include "store/journal/feed_definition.def"
#undef TEXT
};

const char **feed_definition_text(struct feed_definition *definition, size_t i)
{
	return (const char **)(void *)((char *)definition + texts[i].offset);
}

int definition_write(const struct feed_definition *definition, struct buf *buf)
{
	struct feed_definition copy = *definition;
	size_t map = value_open_map(buf);

	for (size_t i = 0; i < FEED_TEXTS; i++) {
		const char *text = *feed_definition_text(&copy, i);

		value_put_string(buf, bytes_str(texts[i].key));
		value_put_string(buf, bytes_str(text ? text : ""));
	}
	value_put_string(buf, BYTES_LIT("namespaced"));
	value_put_bool(buf, copy.namespaced);
	value_put_string(buf, BYTES_LIT("metadataOnly"));
	value_put_bool(buf, copy.metadata_only);
	value_put_string(buf, BYTES_LIT("resync"));
	value_put_uint(buf, copy.resync_ns);
	value_close(buf, map, FEED_TEXTS + 3);
	feed_checksum(definition->id, FEED_DEFINITION, buf);
	return buf_error(buf);
}

/* A missing member is empty: an older program wrote it. */
static int definition_read_text(
	const struct value *map, const char *key, struct buf *buf, const char **ret_text)
{
	struct value item;

	int r = value_find(map, bytes_str(key), &item);
	if (r < 0)
		return r;
	if (r == FOUND && item.type != VALUE_STRING)
		return err_say(ERR_CORRUPT, "'%s' is no text", key);
	struct bytes text = r == FOUND ? item.text : BYTES_NONE;
	char *place = buf_grow(buf, text.size + 1);
	if (!place)
		return buf_error(buf);
	if (text.size)
		memcpy(place, text.data, text.size);
	place[text.size] = '\0';
	*ret_text = place;
	return 0;
}

int definition_read(
	uint32_t feed, struct bytes stored, struct buf *buf, struct feed_definition *ret_definition)
{
	struct feed_definition definition = {.id = feed};
	struct value map, item;
	struct bytes content;

	/* Room for all at once: texts must not move. */
	size_t room = stored.size + FEED_TEXTS;
	buf_reset(buf);
	if (!buf_grow(buf, room))
		return buf_error(buf);
	buf_truncate(buf, 0);
	int r = feed_open(feed, FEED_DEFINITION, stored, &content);
	if (r == 0)
		r = value_read(content, &map);
	if (r == 0 && map.type != VALUE_MAP)
		r = err_say(ERR_CORRUPT, "the row is no map");
	for (size_t i = 0; i < FEED_TEXTS && r == 0; i++)
		r = definition_read_text(
			&map, texts[i].key, buf, feed_definition_text(&definition, i));
	if (r == 0)
		r = value_find(&map, BYTES_LIT("namespaced"), &item);
	definition.namespaced = r == FOUND && item.type == VALUE_BOOL && item.u.b;
	if (r >= 0)
		r = value_find(&map, BYTES_LIT("metadataOnly"), &item);
	definition.metadata_only = r == FOUND && item.type == VALUE_BOOL && item.u.b;
	if (r >= 0)
		r = value_find(&map, BYTES_LIT("resync"), &item);
	if (r == FOUND && item.type == VALUE_UINT)
		definition.resync_ns = item.u.u;
	else if (r == FOUND)
		r = err_say(ERR_CORRUPT, "'resync' is no number");
	if (r < 0)
		return err_add(r, "definition of feed %" PRIu32, feed);
	*ret_definition = definition;
	return 0;
}

/* ---- checkpoints -------------------------------------------------------- */

bool checkpoint_is_removed(struct bytes stored)
{
	return stored.size >= CHECKPOINT_HEADER &&
	       le32_get((const uint8_t *)stored.data + AT_PHASE) == FEED_REMOVED;
}

int checkpoint_read(uint32_t feed, struct bytes stored, struct feed_checkpoint *ret_checkpoint)
{
	struct bytes content;
	int r = feed_open(feed, FEED_CHECKPOINT, stored, &content);

	if (r < 0)
		return r;
	const uint8_t *p = content.data;
	if (content.size < CHECKPOINT_HEADER || le32_get(p + AT_PHASE) >= FEED_PHASE_MAX)
		return err_set(ERR_CORRUPT, "a checkpoint of %zu bytes", content.size);
	size_t rv_size = le16_get(p + AT_RV_LEN), trimmed_size = le16_get(p + AT_TRIMMED_RV_LEN);
	if (content.size != CHECKPOINT_HEADER + rv_size + trimmed_size)
		return err_set(ERR_CORRUPT, "a checkpoint of %zu bytes", content.size);
	*ret_checkpoint = (struct feed_checkpoint){
		.phase = le32_get(p + AT_PHASE),
		.list_begin = le64_get(p + AT_LIST_BEGIN),
		.list_ns = le64_get(p + AT_LIST_NS),
		.first_list = le64_get(p + AT_FIRST_LIST),
		.trimmed = le64_get(p + AT_TRIMMED),
		.last = le64_get(p + AT_LAST),
		.contact = {.realtime_ns = le64_get(p + AT_CONTACT_REAL),
			.boottime_ns = le64_get(p + AT_CONTACT_BOOTTIME),
			.boot = le64_get(p + AT_CONTACT_BOOT)},
		.rv = BYTES(p + CHECKPOINT_HEADER, rv_size),
		.trimmed_rv = BYTES(p + CHECKPOINT_HEADER + rv_size, trimmed_size),
	};
	return 0;
}

/* ---- the writer's memory ------------------------------------------------ */

void feed_rows_release(struct journal *journal)
{
	for (size_t i = 0; i < journal->n_feeds; i++) {
		buf_release(&journal->feeds[i].rv);
		buf_release(&journal->feeds[i].trimmed_rv);
	}
	free(journal->feeds);
	journal->feeds = NULL;
	journal->n_feeds = journal->feeds_room = 0;
}

struct feed_row *feed_row_find(const struct journal *journal, uint32_t feed)
{
	return ARRAY_FIND(journal->feeds, journal->n_feeds, .id, feed);
}

/* Ids only grow, so the new one goes to the end. */
int feed_row_add(struct journal *journal, uint32_t feed, struct feed_row **ret_row)
{
	REQUIRE(journal->n_feeds == 0 || journal->feeds[journal->n_feeds - 1].id < feed);
	int r = ARRAY_ADD(journal->feeds, journal->n_feeds, journal->feeds_room,
		(struct feed_row){.id = feed}, "the list of feeds");
	if (r < 0)
		return r;
	*ret_row = &journal->feeds[journal->n_feeds - 1];
	return 0;
}

void feed_row_remove(struct journal *journal, uint32_t feed)
{
	struct feed_row *row = feed_row_find(journal, feed);

	REQUIRE(row);
	size_t after = journal->n_feeds - (size_t)(row - journal->feeds) - 1;
	buf_release(&row->rv);
	buf_release(&row->trimmed_rv);
	memmove(row, row + 1, after * sizeof(*row));
	journal->n_feeds--;
}

int feed_row_set_rv(struct feed_row *row, struct bytes rv)
{
	if (rv.data != row->rv.data) {
		buf_reset(&row->rv);
		buf_bytes_put(&row->rv, rv);
	}
	row->checkpoint.rv = buf_bytes(&row->rv);
	row->changed = true;
	return buf_error(&row->rv);
}

int feed_row_set_trimmed(struct feed_row *row, uint64_t seq, struct bytes rv)
{
	if (row->checkpoint.trimmed >= seq)
		return 0;
	row->checkpoint.trimmed = seq;
	row->changed = true;
	/* A DELETED found by a list has the list's RV, newer than the next ones. */
	if (!rv.size || rv_compare(rv, buf_bytes(&row->trimmed_rv)) == -1)
		return 0;
	buf_reset(&row->trimmed_rv);
	buf_bytes_put(&row->trimmed_rv, rv);
	row->checkpoint.trimmed_rv = buf_bytes(&row->trimmed_rv);
	return buf_error(&row->trimmed_rv);
}

static int feed_row_load(struct journal *journal, struct bytes key, struct bytes value)
{
	struct feed_checkpoint checkpoint;
	struct feed_row *row;
	const uint8_t *p = key.data;

	if (key.size != FEED_KEY_SIZE || p[4] >= FEED_PART_MAX)
		return err_set(ERR_CORRUPT, "a feed's key of %zu bytes", key.size);
	if (p[4] != FEED_CHECKPOINT) /* read when needed, but must be sound */
		return feed_open(be32_get(p), p[4], value, &value);
	int r = checkpoint_read(be32_get(p), value, &checkpoint);
	if (r == 0)
		r = feed_row_add(journal, be32_get(p), &row);
	if (r < 0)
		return r;
	row->checkpoint = checkpoint;
	row->checkpoint.trimmed = 0;
	r = feed_row_set_rv(row, checkpoint.rv);
	if (r == 0)
		r = feed_row_set_trimmed(row, checkpoint.trimmed, checkpoint.trimmed_rv);
	row->changed = false;
	return r;
}

int feed_rows_load(struct journal *journal, struct txn *txn)
{
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	struct bytes key, value;

	feed_rows_release(journal);
	int r = cursor_open(txn, DB_FEED, &cursor);
	while (r == 0 && (r = cursor_next(cursor, &key, &value)) == FOUND)
		r = feed_row_load(journal, key, value);
	return r < 0 ? r : 0;
}

int feed_rows_flush(struct journal *journal)
{
	for (size_t i = 0; i < journal->n_feeds; i++) {
		const struct feed_row *row = &journal->feeds[i];
		const struct feed_checkpoint *c = &row->checkpoint;
		size_t size = CHECKPOINT_HEADER + c->rv.size + c->trimmed_rv.size;
		uint8_t room[FEED_KEY_SIZE];
		struct bytes key = feed_key(row->id, FEED_CHECKPOINT, room);
		void *place;

		if (!row->changed)
			continue;
		int r = txn_reserve(journal->txn, DB_FEED, key, size + FEED_CRC_SIZE, 0, &place);
		if (r < 0)
			return r;
		uint8_t *p = place;
		le32_put(p + AT_PHASE, c->phase);
		le16_put(p + AT_RV_LEN, (uint16_t)c->rv.size);
		le16_put(p + AT_TRIMMED_RV_LEN, (uint16_t)c->trimmed_rv.size);
		le64_put(p + AT_LIST_BEGIN, c->list_begin);
		le64_put(p + AT_LIST_NS, c->list_ns);
		le64_put(p + AT_FIRST_LIST, c->first_list);
		le64_put(p + AT_TRIMMED, c->trimmed);
		le64_put(p + AT_LAST, c->last);
		le64_put(p + AT_CONTACT_REAL, c->contact.realtime_ns);
		le64_put(p + AT_CONTACT_BOOTTIME, c->contact.boottime_ns);
		le64_put(p + AT_CONTACT_BOOT, c->contact.boot);
		if (c->rv.size)
			memcpy(p + CHECKPOINT_HEADER, c->rv.data, c->rv.size);
		if (c->trimmed_rv.size)
			memcpy(p + CHECKPOINT_HEADER + c->rv.size, c->trimmed_rv.data,
				c->trimmed_rv.size);
		le32_put(p + size, row_checksum(key, BYTES(p, size)));
	}
	return 0;
}
