/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/index_internal.h"

#include "common/buf.h"
#include "common/check.h"
#include "common/crc.h"
#include "common/err.h"
#include "common/hash.h"

struct bytes index_name_key(uint8_t *buffer, uint32_t feed, struct bytes key)
{
	REQUIRE(key.size <= JOURNAL_KEY_MAX);
	be32_put(buffer, feed);
	if (key.size)
		memcpy(buffer + 4, key.data, key.size);
	return BYTES(buffer, 4 + key.size);
}

struct bytes index_term_key(uint8_t *buffer, uint32_t definition, struct bytes value)
{
	size_t kept = value.size <= INDEX_VALUE_MAX ? value.size : INDEX_VALUE_MAX;

	be32_put(buffer, definition);
	if (kept)
		memcpy(buffer + 4, value.data, kept);
	if (value.size <= INDEX_VALUE_MAX)
		return BYTES(buffer, 4 + kept);
	/* Equal hashes only make candidates; readers compare the body. */
	be64_put(buffer + 4 + kept, hash_bytes(value, 0));
	be64_put(buffer + 12 + kept, hash_bytes(value, 1));
	return BYTES(buffer, TERM_KEY_MAX);
}

struct bytes index_posting_key(uint8_t *buffer, uint64_t term, uint64_t object)
{
	be64_put(buffer, term);
	be64_put(buffer + 8, object);
	return BYTES(buffer, POSTING_KEY);
}

struct bytes index_meta_key(uint8_t *buffer, char tag, uint32_t id)
{
	buffer[0] = (uint8_t)tag;
	be32_put(buffer + 1, id);
	return BYTES(buffer, META_KEY);
}

void index_write_entry(uint8_t *row, const struct index_entry *entry)
{
	le64_put(row, entry->object);
	le64_put(row + 8, entry->seq);
	le64_put(row + 16, entry->place);
	le32_put(row + 24, entry->place_size);
	le32_put(row + 28, entry->generation);
}

void index_read_entry(const uint8_t *row, struct index_entry *ret_entry)
{
	ret_entry->object = le64_get(row);
	ret_entry->seq = le64_get(row + 8);
	ret_entry->place = le64_get(row + 16);
	ret_entry->place_size = le32_get(row + 24);
	ret_entry->generation = le32_get(row + 28);
}

__attribute__((cold)) static int index_bad_row(enum index_database db, struct bytes value)
{
	return err_set(ERR_CORRUPT, "index: a value of %zu bytes in '%s'", value.size,
		index_kind.databases[db]);
}

static uint32_t index_row_crc(struct bytes key, const void *row, size_t size)
{
	/* In a page of the database the value follows its key, unless it is a large one. */
	if ((const uint8_t *)key.data + key.size == (const uint8_t *)row)
		return crc32c(0, key.data, key.size + size);
	return crc32c(crc32c(0, key.data, key.size), row, size);
}

struct bytes index_checksum_row(struct bytes key, uint8_t *row, size_t size)
{
	le32_put(row + size, index_row_crc(key, row, size));
	return BYTES(row, size + ROW_CRC);
}

int index_check_row(enum index_database db, struct bytes key, struct bytes *value)
{
	const uint8_t *row = value->data;

	if (value->size < ROW_CRC)
		return index_bad_row(db, *value);
	value->size -= ROW_CRC;
	if (le32_get(row + value->size) != index_row_crc(key, row, value->size))
		return err_set(ERR_CORRUPT, "index: the checksum of a row of '%s' is wrong",
			index_kind.databases[db]);
	return 0;
}

int index_read_name(struct bytes key, struct bytes value, struct index_entry *ret_entry)
{
	int r = index_check_row(INDEX_NAME, key, &value);

	if (r < 0)
		return r;
	if (value.size != ENTRY_BYTES || key.size <= 4)
		return index_bad_row(INDEX_NAME, value);
	index_read_entry(value.data, ret_entry);
	return 0;
}

int index_read_object(struct bytes key, struct bytes value, uint32_t *ret_feed,
	struct bytes *ret_key, struct index_entry *ret_entry)
{
	const uint8_t *row = value.data;
	int r = index_check_row(INDEX_OBJECT, key, &value);

	if (r < 0)
		return r;
	if (key.size != 8 || value.size < OBJECT_HEAD || value.size > OBJECT_HEAD + JOURNAL_KEY_MAX)
		return index_bad_row(INDEX_OBJECT, value);
	index_read_entry(row, ret_entry);
	*ret_feed = le32_get(row + ENTRY_BYTES);
	*ret_key = BYTES(row + OBJECT_HEAD, value.size - OBJECT_HEAD);
	return 0;
}

int index_read_term(struct bytes key, struct bytes value, uint64_t *ret_term, uint64_t *ret_count)
{
	int r = index_check_row(INDEX_TERM, key, &value);

	if (r < 0)
		return r;
	if (value.size != TERM_BYTES || !le64_get((const uint8_t *)value.data + 8))
		/* a value without postings is removed; readers divide by the count */
		return index_bad_row(INDEX_TERM, value);
	*ret_term = le64_get(value.data);
	*ret_count = le64_get((const uint8_t *)value.data + 8);
	return 0;
}

enum { STATE_BUILDING = 1u << 0 };

int index_read_state(struct bytes key, struct bytes value, struct index_state *ret_state)
{
	const uint8_t *row = value.data;
	int r = index_check_row(INDEX_META, key, &value);

	if (r < 0)
		return r;
	if (value.size != STATE_BYTES)
		return index_bad_row(INDEX_META, value);
	*ret_state = (struct index_state){
		.meta = {.taken = le64_get(row + 16),
			.building = le32_get(row + 44) & STATE_BUILDING},
		.next_object = le64_get(row + 24),
		.next_term = le64_get(row + 32),
		.next_definition = le32_get(row + 40),
	};
	memcpy(ret_state->meta.journal, row, 16);
	return 0;
}

void index_write_state(uint8_t row[STATE_BYTES], const struct index_state *state)
{
	memcpy(row, state->meta.journal, 16);
	le64_put(row + 16, state->meta.taken);
	le64_put(row + 24, state->next_object);
	le64_put(row + 32, state->next_term);
	le32_put(row + 40, state->next_definition);
	le32_put(row + 44, state->meta.building ? STATE_BUILDING : 0);
	le64_put(row + 48, 0);
}

enum { FEED_ROW_REMOVED = 1u << 0 };

int index_read_feed(struct bytes key, struct bytes value, struct index_feed *ret_feed)
{
	const uint8_t *row = value.data;
	int r = index_check_row(INDEX_META, key, &value);

	if (r < 0)
		return r;
	if (key.size != META_KEY || value.size != FEED_BYTES)
		return index_bad_row(INDEX_META, value);
	*ret_feed = (struct index_feed){
		.feed = be32_get((const uint8_t *)key.data + 1),
		.listed = le64_get(row),
		.list_begin = le64_get(row + 8),
		.objects = le64_get(row + 16),
		.removed = le32_get(row + 24) & FEED_ROW_REMOVED,
	};
	memcpy(ret_feed->rv, row + 32, INDEX_RV_SIZE - 1); /* its NUL is there already */
	return 0;
}

void index_write_feed(uint8_t row[FEED_BYTES], const struct index_feed *feed)
{
	le64_put(row, feed->listed);
	le64_put(row + 8, feed->list_begin);
	le64_put(row + 16, feed->objects);
	le32_put(row + 24, feed->removed ? FEED_ROW_REMOVED : 0);
	le32_put(row + 28, 0);
	memcpy(row + 32, feed->rv, INDEX_RV_SIZE);
}

enum { DEFINITION_DROPPING = 1u << 0 };

int index_read_definition(
	struct bytes key, struct bytes value, struct index_definition *ret_definition)
{
	const uint8_t *row = value.data;
	int r = index_check_row(INDEX_META, key, &value);

	if (r < 0)
		return r;
	if (key.size != META_KEY || value.size < DEFINITION_HEAD + 2)
		return index_bad_row(INDEX_META, value);
	const char *name = (const char *)row + DEFINITION_HEAD;
	size_t room = value.size - DEFINITION_HEAD;
	size_t name_size = strnlen(name, room);

	if (name_size + 2 > room ||
		strnlen(name + name_size + 1, room - name_size - 1) + name_size + 2 != room)
		return index_bad_row(INDEX_META, value);
	*ret_definition = (struct index_definition){
		.id = be32_get((const uint8_t *)key.data + 1),
		.feed = le32_get(row),
		.name = name,
		.paths = name + name_size + 1,
		.filled = le64_get(row + 8),
		.dropping = le32_get(row + 4) & DEFINITION_DROPPING,
	};
	return 0;
}

void index_write_definition(struct buf *row, const struct index_definition *definition)
{
	uint8_t *head = buf_grow(row, DEFINITION_HEAD);

	if (!head)
		return;
	le32_put(head, definition->feed);
	le32_put(head + 4, definition->dropping ? DEFINITION_DROPPING : 0);
	le64_put(head + 8, definition->filled);
	buf_put(row, definition->name, strlen(definition->name) + 1);
	buf_put(row, definition->paths, strlen(definition->paths) + 1);
}

void index_compound_add(struct buf *value, struct bytes part, bool first)
{
	if (!first)
		buf_byte(value, ',');
	buf_escape(value, part, ",\\");
}

size_t index_compound_parts(struct bytes value)
{
	const char *text = value.data;
	size_t parts = 1;

	for (size_t i = 0; i < value.size; i++) {
		if (text[i] == '\\')
			i++;
		else if (text[i] == ',')
			parts++;
	}
	return parts;
}
