/* SPDX-License-Identifier: Apache-2.0 */
/* A feed's passed-over objects, kept in the `feed` database over a restart. */
#include "store/journal/journal_internal.h"

#include "common/check.h"
#include "common/err.h"
#include "common/value/value.h"

static void passed_write(const struct feed_passed *passed, struct buf *buf)
{
	size_t map = value_open_map(buf);

	value_put_string(buf, BYTES_LIT("more"));
	value_put_bool(buf, passed->more);
	value_put_string(buf, BYTES_LIT("objects"));
	size_t array = value_open_array(buf);
	for (size_t i = 0; i < passed->n; i++) {
		const struct passed_object *object = &passed->objects[i];
		size_t opened = value_open_map(buf);

		value_put_string(buf, BYTES_LIT("name"));
		value_put_string(buf, object->name);
		value_put_string(buf, BYTES_LIT("why"));
		value_put_string(buf, object->why);
		value_put_string(buf, BYTES_LIT("limit"));
		value_put_uint(buf, object->limit);
		value_close(buf, opened, 3);
	}
	value_close(buf, array, (uint32_t)passed->n);
	value_close(buf, map, 2);
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
		feed_checksum(feed, FEED_PASSED, &journal->scratch);
		r = buf_error(&journal->scratch);
		if (r == 0)
			r = txn_put(journal->txn, DB_FEED, key, buf_bytes(&journal->scratch), 0);
	} else {
		r = txn_del(journal->txn, DB_FEED, key);
	}
	journal->meta_changed = true; /* tells journal_abort() of a change */
	return r < 0 ? journal->error = r : 0;
}

static struct bytes passed_text(const struct value *map, struct bytes key)
{
	struct value item;

	return value_find(map, key, &item) == FOUND && item.type == VALUE_STRING ? item.text
										 : BYTES_NONE;
}

/* A missing member, or one of another type, is empty: it is only told to people. */
static int passed_read(struct bytes stored, struct feed_passed *ret_passed)
{
	struct value map, item, object;
	struct value_iter iter;
	struct bytes key;

	ret_passed->n = 0;
	int r = value_read(stored, &map);
	if (r == 0)
		r = value_find(&map, BYTES_LIT("more"), &item);
	ret_passed->more = r != FOUND || item.type != VALUE_BOOL || item.u.b;
	if (r >= 0)
		r = value_find(&map, BYTES_LIT("objects"), &item);
	if (r != FOUND)
		return r < 0 ? r : FOUND;
	value_iter_init(&iter, &item);
	while (ret_passed->n < FEED_PASSED_MAX &&
		(r = value_iter_next(&iter, &key, &object)) == FOUND) {
		bool limited = value_find(&object, BYTES_LIT("limit"), &item) == FOUND &&
			       item.type == VALUE_UINT;

		ret_passed->objects[ret_passed->n++] =
			(struct passed_object){.name = passed_text(&object, BYTES_LIT("name")),
				.why = passed_text(&object, BYTES_LIT("why")),
				.limit = limited ? item.u.u : 0};
	}
	return r < 0 ? r : FOUND;
}

int journal_passed(
	struct journal *journal, struct txn *txn, uint32_t feed, struct feed_passed *ret_passed)
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
