/* SPDX-License-Identifier: Apache-2.0 */
/* The `feed` database says what the reflector could not take into a feed, so that a restart knows it as well. */
#include "store/journal/journal_internal.h"

#include <errno.h>

#include "common/check.h"
#include "common/err.h"
#include "common/value/value.h"

static void passed_write(const struct feed_passed *passed, struct buf *buf)
{
	size_t map = value_open_map(buf);

	value_put_string(buf, BYTES_LIT("name"));
	value_put_string(buf, passed->name);
	value_put_string(buf, BYTES_LIT("why"));
	value_put_string(buf, passed->why);
	value_put_string(buf, BYTES_LIT("several"));
	value_put_bool(buf, passed->several);
	value_put_string(buf, BYTES_LIT("limit"));
	value_put_uint(buf, passed->limit);
	value_close(buf, map, 4);
}

int journal_set_passed(struct journal *journal, uint32_t feed, const struct feed_passed *passed)
{
	uint8_t room[FEED_KEY_SIZE];
	struct bytes key = feed_key(feed, FEED_PASSED, room);
	int r;

	journal_require_open(journal);
	if (journal->error < 0)
		return journal->error;
	if (passed) {
		buf_reset(&journal->scratch);
		passed_write(passed, &journal->scratch);
		feed_seal(feed, FEED_PASSED, &journal->scratch);
		r = buf_error(&journal->scratch);
		if (r == 0)
			r = txn_put(journal->txn, DB_FEED, key, buf_bytes(&journal->scratch), 0);
	} else {
		r = txn_del(journal->txn, DB_FEED, key);
	}
	journal->meta_changed = true; /* an abort must not be taken for one of nothing */
	return r < 0 ? journal->error = r : 0;
}

/* A member that is missing or of another type is empty: of all that is known here only that something is passed over
 * matters to more than a sentence. */
static int passed_read(struct bytes stored, struct feed_passed *ret_passed)
{
	struct value map, item;

	*ret_passed = (struct feed_passed){.name = BYTES_NONE};
	int r = value_read(stored, &map);
	if (r == 0)
		r = value_find(&map, BYTES_LIT("name"), &item);
	if (r == FOUND && item.type == VALUE_STRING)
		ret_passed->name = item.text;
	if (r >= 0)
		r = value_find(&map, BYTES_LIT("why"), &item);
	if (r == FOUND && item.type == VALUE_STRING)
		ret_passed->why = item.text;
	if (r >= 0)
		r = value_find(&map, BYTES_LIT("several"), &item);
	ret_passed->several = r == FOUND && item.type == VALUE_BOOL && item.u.b;
	if (r >= 0)
		r = value_find(&map, BYTES_LIT("limit"), &item);
	if (r == FOUND && item.type == VALUE_UINT)
		ret_passed->limit = item.u.u;
	return r < 0 ? r : FOUND;
}

int journal_passed(struct journal *journal, struct txn *txn, uint32_t feed, struct feed_passed *ret_passed)
{
	uint8_t room[FEED_KEY_SIZE];
	struct bytes stored;

	CHECK_OBJ(journal, JOURNAL_MAGIC);
	int r = txn_get(txn, DB_FEED, feed_key(feed, FEED_PASSED, room), &stored);
	if (r == FOUND)
		r = feed_open(feed, FEED_PASSED, stored, &stored);
	if (r == 0)
		r = passed_read(stored, ret_passed);
	return r < 0 ? err_add(r, "what feed %u passed over", feed) : r;
}
