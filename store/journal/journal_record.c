/* SPDX-License-Identifier: Apache-2.0 */
#include "store/journal/journal_record.h"

#include <inttypes.h>

#include "common/check.h"
#include "common/crc.h"
#include "common/err.h"

/* Offsets in a record. The seq is first: readers following a place check it. */
enum {
	AT_SEQ = 0,
	AT_PREV = 8,
	AT_TIME = 16,
	AT_FEED = 24,
	AT_TYPE = 28,
	AT_FLAGS = 29,
	AT_KEY_LEN = 30,
	AT_UID_LEN = 32,
	AT_RV_LEN = 34,
	AT_BODY_LEN = 36,
	AT_CRC = 40,
	AT_HEADER_CRC = 44,
};
_Static_assert(RECORD_HEADER == AT_HEADER_CRC + 4, "FORMAT.md, Journal");

/* Offsets in a head. */
enum {
	HEAD_AT_SEQ = 0,
	HEAD_AT_UID_LEN = 8,
	HEAD_AT_RV_LEN = 10,
	HEAD_AT_CRC = 12,
	HEAD_HEADER = 16
};

const char *record_type_name(uint8_t type)
{
	static const char *const names[RECORD_TYPE_MAX] = {
		[RECORD_ADDED] = "ADDED",
		[RECORD_MODIFIED] = "MODIFIED",
		[RECORD_DELETED] = "DELETED",
		[RECORD_LIST_BEGIN] = "LIST_BEGIN",
		[RECORD_LIST_END] = "LIST_END",
		[RECORD_FEED_ADDED] = "FEED_ADDED",
		[RECORD_FEED_REMOVED] = "FEED_REMOVED",
	};

	return type < RECORD_TYPE_MAX && names[type] ? names[type] : "unknown";
}

int record_fits(const struct record *record)
{
	if (record->key.size > JOURNAL_KEY_MAX)
		return err_set(ERR_TOO_LARGE,
			"an object key of %zu bytes, at most %d can be stored", record->key.size,
			JOURNAL_KEY_MAX);
	if (record->uid.size > UINT16_MAX || record->rv.size > UINT16_MAX)
		return err_set(ERR_TOO_LARGE, "a uid of %zu or a resourceVersion of %zu bytes",
			record->uid.size, record->rv.size);
	if (record->body.size > RECORD_BODY_MAX)
		return err_set(ERR_TOO_LARGE, "an object of %zu bytes, at most %zu can be stored",
			record->body.size, RECORD_BODY_MAX);
	return 0;
}

size_t record_size(const struct record *record)
{
	return RECORD_HEADER + record->key.size + record->uid.size + record->rv.size +
	       record->body.size;
}

/* Returns the checksum of the whole record as if its crc field were 0. */
static uint32_t record_checksum(const uint8_t *record, size_t size)
{
	static const uint8_t zero[AT_HEADER_CRC - AT_CRC];
	uint32_t crc = crc32c(0, record, AT_CRC);

	crc = crc32c(crc, zero, sizeof(zero));
	return crc32c(crc, record + AT_HEADER_CRC, size - AT_HEADER_CRC);
}

/* Returns the checksum of all but the body (from BODY_AT on) and the two checksums. */
static uint32_t record_header_checksum(const uint8_t *record, size_t body_at)
{
	return crc32c(crc32c(0, record, AT_CRC), record + RECORD_HEADER, body_at - RECORD_HEADER);
}

static uint8_t *record_put(uint8_t *place, struct bytes part)
{
	if (part.size)
		memcpy(place, part.data, part.size);
	return place + part.size;
}

void record_write(const struct record *record, void *place)
{
	uint8_t *p = place;

	le64_put(p + AT_SEQ, record->seq);
	le64_put(p + AT_PREV, record->prev);
	le64_put(p + AT_TIME, record->time_ns);
	le32_put(p + AT_FEED, record->feed);
	p[AT_TYPE] = record->type;
	p[AT_FLAGS] = record->flags;
	le16_put(p + AT_KEY_LEN, (uint16_t)record->key.size);
	le16_put(p + AT_UID_LEN, (uint16_t)record->uid.size);
	le16_put(p + AT_RV_LEN, (uint16_t)record->rv.size);
	le32_put(p + AT_BODY_LEN, (uint32_t)record->body.size);
	uint8_t *next = record_put(p + RECORD_HEADER, record->key);
	next = record_put(next, record->uid);
	next = record_put(next, record->rv);
	le32_put(p + AT_HEADER_CRC, record_header_checksum(p, (size_t)(next - p)));
	next = record_put(next, record->body);
	le32_put(p + AT_CRC, record_checksum(p, (size_t)(next - p)));
}

size_t record_size_at(const void *header)
{
	const uint8_t *p = header;

	return RECORD_HEADER + (size_t)le16_get(p + AT_KEY_LEN) + le16_get(p + AT_UID_LEN) +
	       le16_get(p + AT_RV_LEN) + le32_get(p + AT_BODY_LEN);
}

int record_parse(struct bytes stored, struct record *ret_record)
{
	const uint8_t *p = stored.data;

	if (stored.size < RECORD_HEADER)
		return err_set(ERR_CORRUPT, "it has %zu bytes", stored.size);
	size_t key = le16_get(p + AT_KEY_LEN), uid = le16_get(p + AT_UID_LEN);
	size_t rv = le16_get(p + AT_RV_LEN), body = le32_get(p + AT_BODY_LEN);
	uint64_t seq = le64_get(p + AT_SEQ);
	uint8_t type = p[AT_TYPE];
	if (RECORD_HEADER + key + uid + rv + body != stored.size || type == 0 ||
		type >= RECORD_TYPE_MAX || le64_get(p + AT_PREV) >= seq)
		return err_set(ERR_CORRUPT, "its lengths or its type");
	const uint8_t *at = p + RECORD_HEADER;
	*ret_record = (struct record){
		.seq = seq,
		.prev = le64_get(p + AT_PREV),
		.time_ns = le64_get(p + AT_TIME),
		.feed = le32_get(p + AT_FEED),
		.type = type,
		.flags = p[AT_FLAGS],
		.key = BYTES(at, key),
		.uid = BYTES(at + key, uid),
		.rv = BYTES(at + key + uid, rv),
		.body = BYTES(at + key + uid + rv, body),
		.stored = stored,
	};
	return 0;
}

int record_check_header(const struct record *record)
{
	const uint8_t *p = record->stored.data;
	size_t body_at = record->stored.size - record->body.size;

	REQUIRE(body_at >= RECORD_HEADER);
	if (record_header_checksum(p, body_at) != le32_get(p + AT_HEADER_CRC))
		return err_set(ERR_CORRUPT, "the checksum of its header");
	return 0;
}

int record_read(struct bytes stored, struct record *ret_record)
{
	struct record record;
	int r = record_parse(stored, &record);

	if (r == 0)
		r = record_check_header(&record);
	if (r == 0)
		*ret_record = record;
	return r;
}

int record_check(const struct record *record)
{
	const uint8_t *p = record->stored.data;

	REQUIRE(record->stored.size >= RECORD_HEADER);
	if (record_checksum(p, record->stored.size) != le32_get(p + AT_CRC))
		return err_set(ERR_CORRUPT, "checksum of record %" PRIu64, record->seq);
	return 0;
}

struct bytes head_key(uint32_t feed, struct bytes key, uint8_t room[HEAD_KEY_MAX])
{
	REQUIRE(key.size <= JOURNAL_KEY_MAX);
	be32_put(room, feed);
	(void)record_put(room + 4, key);
	return BYTES(room, 4 + key.size);
}

/* Returns the checksum of a head's key and of its value without the checksum. */
static uint32_t head_checksum(struct bytes key, struct bytes value)
{
	const uint8_t *p = value.data;
	uint32_t crc = crc32c(crc32c(0, key.data, key.size), p, HEAD_AT_CRC);

	return crc32c(crc, p + HEAD_HEADER, value.size - HEAD_HEADER);
}

void head_write(struct bytes key, const struct record *record, struct buf *buf)
{
	size_t size = HEAD_HEADER + record->uid.size + record->rv.size;
	uint8_t *p = buf_grow(buf, size);

	if (!p)
		return;
	le64_put(p + HEAD_AT_SEQ, record->seq);
	le16_put(p + HEAD_AT_UID_LEN, (uint16_t)record->uid.size);
	le16_put(p + HEAD_AT_RV_LEN, (uint16_t)record->rv.size);
	(void)record_put(record_put(p + HEAD_HEADER, record->uid), record->rv);
	le32_put(p + HEAD_AT_CRC, head_checksum(key, BYTES(p, size)));
}

int head_read(struct bytes key, struct bytes stored, struct head *ret_head)
{
	const uint8_t *p = stored.data;

	if (stored.size < HEAD_HEADER)
		return err_set(ERR_CORRUPT, "a head of %zu bytes", stored.size);
	size_t uid = le16_get(p + HEAD_AT_UID_LEN), rv = le16_get(p + HEAD_AT_RV_LEN);
	if (HEAD_HEADER + uid + rv != stored.size)
		return err_set(ERR_CORRUPT, "a head of %zu bytes", stored.size);
	if (head_checksum(key, stored) != le32_get(p + HEAD_AT_CRC))
		return err_set(ERR_CORRUPT, "the checksum of a head");
	*ret_head = (struct head){
		.seq = le64_get(p + HEAD_AT_SEQ),
		.uid = BYTES(p + HEAD_HEADER, uid),
		.rv = BYTES(p + HEAD_HEADER + uid, rv),
	};
	return 0;
}
