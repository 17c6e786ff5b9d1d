/* SPDX-License-Identifier: Apache-2.0 */
/* The journal's counters, a row of the `meta` database. */
#include "store/journal/journal_internal.h"

#include <string.h>

#include "common/crc.h"
#include "common/err.h"

enum {
	AT_UUID = 0,
	AT_NEXT_FEED = 16,
	AT_ZERO = 20,
	AT_NEXT_SEQ = 24,
	AT_HORIZON = 32,
	AT_HISTORY = 40,
	AT_CLUSTER = 48,
	AT_CRC = AT_CLUSTER + sizeof(((struct journal_meta *)0)->cluster),
	META_SIZE = AT_CRC + 4,
};

/* Leaves out the filling after the text: every snapshot reads the row. */
static uint32_t meta_checksum(const uint8_t *row)
{
	return crc32c(
		0, row, AT_CLUSTER + strnlen((const char *)row + AT_CLUSTER, AT_CRC - AT_CLUSTER));
}

int meta_decode(struct bytes value, struct journal_meta *ret_meta)
{
	struct journal_meta meta;
	const uint8_t *p = value.data;

	if (value.size != META_SIZE || meta_checksum(p) != le32_get(p + AT_CRC))
		return err_set(ERR_CORRUPT, "the journal's meta row");
	memcpy(meta.uuid, p + AT_UUID, sizeof(meta.uuid));
	meta.next_feed = le32_get(p + AT_NEXT_FEED);
	meta.next_seq = le64_get(p + AT_NEXT_SEQ);
	meta.horizon = le64_get(p + AT_HORIZON);
	meta.history = le64_get(p + AT_HISTORY);
	memcpy(meta.cluster, p + AT_CLUSTER, sizeof(meta.cluster));
	if (meta.next_seq == 0 || meta.horizon >= meta.next_seq ||
		memchr(meta.cluster, '\0', sizeof(meta.cluster)) == NULL)
		return err_set(ERR_CORRUPT, "the journal's meta row");
	*ret_meta = meta;
	return 0;
}

int meta_read(struct txn *txn, struct journal_meta *ret_meta)
{
	struct bytes value;
	int r = txn_get(txn, DB_META, META_KEY, &value);

	return r < 0 ? r : meta_decode(r == FOUND ? value : BYTES_NONE, ret_meta);
}

int meta_write(struct txn *txn, const struct journal_meta *meta)
{
	void *place;
	int r = txn_reserve(txn, DB_META, META_KEY, META_SIZE, 0, &place);

	if (r < 0)
		return r;
	uint8_t *p = place;
	memcpy(p + AT_UUID, meta->uuid, sizeof(meta->uuid));
	le32_put(p + AT_NEXT_FEED, meta->next_feed);
	le32_put(p + AT_ZERO, 0);
	le64_put(p + AT_NEXT_SEQ, meta->next_seq);
	le64_put(p + AT_HORIZON, meta->horizon);
	le64_put(p + AT_HISTORY, meta->history);
	memcpy(p + AT_CLUSTER, meta->cluster, sizeof(meta->cluster));
	le32_put(p + AT_CRC, meta_checksum(p));
	return 0;
}
