/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of the log's records and of heads (FORMAT.md, Journal). Inside store/ only. */
#ifndef STORE_JOURNAL_JOURNAL_RECORD_H
#define STORE_JOURNAL_JOURNAL_RECORD_H

#include "common/buf.h"
#include "store/journal/journal.h"

#define RECORD_BODY_MAX ((size_t)1 << 30)
#define HEAD_KEY_MAX    (4 + JOURNAL_KEY_MAX)

/* Checks the sizes of RECORD's parts. Returns: 0; ERR_TOO_LARGE naming the part. */
int record_fits(const struct record *record);

size_t record_size(const struct record *record);
/* Writes RECORD into record_size() bytes at PLACE. */
void record_write(const struct record *record, void *place);
#define RECORD_HEADER 48 /* bytes before the key */
/* Returns the size of the whole record by its header, the first RECORD_HEADER bytes. */
size_t record_size_at(const void *header);
/* Reads a record, borrowed from STORED, without comparing checksums, for callers with feed, key and
 * seq at hand: the comparison costs half as much as the read. Returns: 0; ERR_CORRUPT: impossible
 * lengths or type. */
int record_parse(struct bytes stored, struct record *ret_record);
/* Reads a record, borrowed from STORED, and compares the header's checksum; record_check() compares
 * the body's. Returns: 0; ERR_CORRUPT; the caller names the record in the error. */
int record_read(struct bytes stored, struct record *ret_record);

/* Builds the key of an object's head in ROOM. */
struct bytes head_key(uint32_t feed, struct bytes key, uint8_t room[HEAD_KEY_MAX]);
/* KEY: of head_key(). */
void head_write(struct bytes key, const struct record *record, struct buf *buf);
int head_read(struct bytes key, struct bytes stored, struct head *ret_head);

#endif
