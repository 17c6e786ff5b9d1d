/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of the log's records and of heads (FORMAT.md, Journal). Inside store/ only. */
#ifndef STORE_JOURNAL_JOURNAL_RECORD_H
#define STORE_JOURNAL_JOURNAL_RECORD_H

#include "common/buf.h"
#include "store/journal/journal.h"

#define RECORD_BODY_MAX ((size_t)1 << 30)
#define HEAD_KEY_MAX    (4 + JOURNAL_KEY_MAX)

/* Checks that RECORD can be stored. Returns: 0; ERR_TOO_LARGE with a sentence that names the
 * part. */
int record_fits(const struct record *record);

size_t record_size(const struct record *record);
/* Writes RECORD into record_size() bytes at PLACE. */
void record_write(const struct record *record, void *place);
#define RECORD_HEADER 48 /* bytes before the key */
/* Returns the size of the whole record by its header, the first RECORD_HEADER bytes. */
size_t record_size_at(const void *header);
/* Reads a record, which borrows from STORED, and compares no checksum: for objects whose feed,
 * key and seq the caller knows. A comparison costs half as much as such a read. Returns: 0;
 * ERR_CORRUPT when the lengths or the type make no sense. */
int record_parse(struct bytes stored, struct record *ret_record);
/* Reads a record, which borrows from STORED, and compares the checksum of all but its body; that
 * of the whole is left to record_check(). Returns: 0; ERR_CORRUPT; the caller knows which record
 * it is. */
int record_read(struct bytes stored, struct record *ret_record);

/* Returns the key of an object's head, which lies in ROOM. */
struct bytes head_key(uint32_t feed, struct bytes key, uint8_t room[HEAD_KEY_MAX]);
/* KEY: of head_key(). */
void head_write(struct bytes key, const struct record *record, struct buf *buf);
int head_read(struct bytes key, struct bytes stored, struct head *ret_head);

#endif
