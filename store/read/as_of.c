/* SPDX-License-Identifier: Apache-2.0 */
#include "store/read/as_of.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "store/read/names.h"

#define AS_OF_MAGIC 0x61736f66u

/* An object changed or deleted since the seq. */
struct as_of_row {
	size_t key; /* offset in as_of.keys */
	size_t size;
	uint64_t seq; /* its version then */
};

struct as_of {
	uint32_t magic;
	uint32_t feed;
	uint64_t asked;
	uint64_t seq;
	uint64_t oldest; /* oldest seq readable from the snapshot */
	bool ready;      /* the log was examined up to the snapshot's visible(feed) */
	bool journal_known;
	uint8_t journal[16];
	uint64_t examined;         /* end of the log examined */
	struct snapshot *snapshot; /* NULL: at rest */
	struct as_of_row *rows;    /* by key when ready */
	size_t n_rows, rows_room, n_sorted;
	struct buf keys;
	/* The walk. */
	enum as_of_objects which;
	struct buf prefix, from;
	struct names *names; /* NULL: not begun in this snapshot */
	bool name_pending;   /* the two below were read and not given */
	struct bytes name;
	struct index_entry entry;
	size_t next_row;
	struct bytes given; /* the key given last; no data: none since as_of_walk or as_of_renew */
};

int as_of_new(uint32_t feed, uint64_t seq, struct as_of **ret_as_of)
{
	struct as_of *as_of = calloc(1, sizeof(*as_of));

	if (!as_of)
		return err_set(
			-ENOMEM, "reading feed %u as of %llu", feed, (unsigned long long)seq);
	as_of->magic = AS_OF_MAGIC;
	as_of->feed = feed;
	as_of->asked = as_of->seq = as_of->examined = seq;
	*ret_as_of = as_of;
	return 0;
}

void as_of_free(struct as_of **as_of)
{
	if (!*as_of)
		return;
	struct as_of *a = TAKE(*as_of);

	CHECK_OBJ(a, AS_OF_MAGIC);
	names_close(&a->names);
	free(a->rows);
	buf_release(&a->keys);
	buf_release(&a->prefix);
	buf_release(&a->from);
	a->magic = 0;
	free(a);
}

uint64_t as_of_seq(const struct as_of *as_of)
{
	CHECK_OBJ(as_of, AS_OF_MAGIC);
	return as_of->seq;
}

uint64_t as_of_asked(const struct as_of *as_of)
{
	CHECK_OBJ(as_of, AS_OF_MAGIC);
	return as_of->asked;
}

uint64_t as_of_oldest(const struct as_of *as_of)
{
	CHECK_OBJ(as_of, AS_OF_MAGIC);
	return as_of->oldest;
}

/* ---- changes since the seq ---------------------------------------------- */

static struct bytes as_of_key(const struct as_of *a, const struct as_of_row *row)
{
	return BYTES(a->keys.data + row->key, row->size);
}

static int as_of_compare(const void *x, const void *y, void *arg)
{
	return bytes_compare(as_of_key(arg, x), as_of_key(arg, y));
}

/* Checks that the snapshot has the state as of the seq. Returns: 0, LAPPED, GONE. */
static int as_of_check(struct as_of *a, uint64_t *ret_visible)
{
	struct snapshot *s = a->snapshot;
	uint64_t visible = snapshot_visible(s, a->feed);
	struct feed_checkpoint checkpoint;
	struct index_feed row;
	int r = journal_feed_checkpoint(
		snapshot_journal(s), snapshot_journal_txn(s), a->feed, &checkpoint);

	if (r == NOT_FOUND || (r == FOUND && checkpoint.phase == FEED_REMOVED))
		return GONE;
	if (r == FOUND)
		r = index_feed(snapshot_index(s), snapshot_index_txn(s), a->feed, &row);
	if (r < 0)
		return r;
	if (!a->journal_known) {
		memcpy(a->journal, snapshot_uuid(s), sizeof(a->journal));
		a->journal_known = true;
	}
	a->oldest = r == NOT_FOUND || !row.listed     ? 0
		    : row.listed > checkpoint.trimmed ? row.listed
						      : checkpoint.trimmed;
	if (!a->oldest || a->seq > snapshot_taken(s) ||
		memcmp(a->journal, snapshot_uuid(s), sizeof(a->journal)) != 0)
		return LAPPED;
	if (a->seq > visible) { /* within the open list */
		a->seq = visible;
		a->examined = visible;
	}
	if (a->oldest > a->seq)
		return LAPPED;
	if (snapshot_is_torn(s) && a->seq < visible)
		return err_say(ERR_CORRUPT,
			"the index and the journal of this copy are of different moments: states "
			"of before event %" PRIu64 " can't be read",
			visible);
	*ret_visible = visible;
	return 0;
}

/* Reads the log on to VISIBLE. Returns: 0, AGAIN after LIMIT records. */
static int as_of_examine_log(struct as_of *a, uint64_t visible, size_t limit)
{
	CLEANUP(journal_walk_close) struct journal_walk *log = NULL;
	struct record record;

	if (a->examined >= visible)
		return 0;
	int r = snapshot_open_walk(a->snapshot, a->examined + 1, &log);

	while (r == 0) {
		if (limit-- == 0)
			return AGAIN;
		r = journal_walk_next(log, &record);
		if (r == END || (r == FOUND && record.seq > visible)) {
			a->examined = visible;
			return 0;
		}
		if (r != FOUND)
			return r;
		a->examined = record.seq;
		if (record.feed == a->feed && record.type == RECORD_LIST_END &&
			record.prev <= a->seq) {
			/* The seq is within this list: begin again from before it. */
			a->seq = a->examined = record.prev - 1;
			buf_reset(&a->keys);
			a->n_rows = a->n_sorted = 0;
			return AGAIN;
		}
		/* Keep the version before the object's first change since; ADDED has none. */
		if (record.feed != a->feed || record.prev == 0 || record.prev > a->seq ||
			(record.type != RECORD_MODIFIED && record.type != RECORD_DELETED))
			continue;
		const struct as_of_row row = {a->keys.size, record.key.size, record.prev};

		buf_bytes_put(&a->keys, record.key);
		r = buf_error(&a->keys);
		if (r == 0)
			r = ARRAY_ADD(
				a->rows, a->n_rows, a->rows_room, row, "the changes since a seq");
	}
	return r;
}

int as_of_renew(struct as_of *as_of, struct snapshot *snapshot, size_t limit)
{
	struct as_of *a = as_of;
	uint64_t visible, seq;
	int r;

	CHECK_OBJ(a, AS_OF_MAGIC);
	as_of_rest(a);
	a->snapshot = snapshot;
	a->ready = false;
	do { /* again when the seq turned out to be within a list */
		r = as_of_check(a, &visible);
		if (r != 0)
			return r;
		seq = a->seq;
		r = as_of_examine_log(a, visible, limit);
	} while (r == AGAIN && a->seq != seq);
	if (r != 0)
		return r;
	if (a->n_rows > a->n_sorted)
		qsort_r(a->rows, a->n_rows, sizeof(*a->rows), as_of_compare, a);
	a->n_sorted = a->n_rows;
	a->ready = true;
	return 0;
}

int as_of_take(struct as_of *as_of, const struct as_of *other)
{
	CHECK_OBJ(as_of, AS_OF_MAGIC);
	CHECK_OBJ(other, AS_OF_MAGIC);
	REQUIRE(other->feed == as_of->feed);
	if (as_of->journal_known)
		return 0;
	int r = ARRAY_ROOM(
		as_of->rows, 0, as_of->rows_room, other->n_rows, "the changes since a seq");

	buf_bytes_put(&as_of->keys, buf_bytes(&other->keys));
	if (r == 0)
		r = buf_error(&as_of->keys);
	if (r < 0)
		return r;
	if (other->n_rows)
		memcpy(as_of->rows, other->rows, other->n_rows * sizeof(*other->rows));
	as_of->n_rows = other->n_rows;
	as_of->n_sorted = other->n_sorted;
	as_of->seq = other->seq;
	as_of->examined = other->examined;
	as_of->journal_known = other->journal_known;
	memcpy(as_of->journal, other->journal, sizeof(as_of->journal));
	return 0;
}

/* Finds the first row with a key not before KEY. */
static size_t as_of_seek_row(const struct as_of *a, struct bytes key)
{
	size_t begin = 0, end = a->n_rows;

	while (begin < end) {
		size_t middle = begin + (end - begin) / 2;

		if (bytes_compare(as_of_key(a, &a->rows[middle]), key) < 0)
			begin = middle + 1;
		else
			end = middle;
	}
	return begin;
}

int as_of_get(struct as_of *as_of, struct bytes key, struct record *ret_record)
{
	CHECK_OBJ(as_of, AS_OF_MAGIC);
	REQUIRE(as_of->ready && as_of->snapshot);
	struct record record;
	size_t i = as_of_seek_row(as_of, key);

	if (i < as_of->n_rows && bytes_equal(as_of_key(as_of, &as_of->rows[i]), key)) {
		const struct index_entry entry = {.seq = as_of->rows[i].seq};

		return snapshot_record(as_of->snapshot, as_of->feed, key, &entry, ret_record);
	}
	int r = snapshot_get(as_of->snapshot, as_of->feed, key, &record);
	if (r == FOUND && record.seq > as_of->seq)
		return NOT_FOUND;
	if (r == FOUND)
		*ret_record = record;
	return r;
}

/* ---- the walk ----------------------------------------------------------- */

int as_of_walk(
	struct as_of *as_of, enum as_of_objects which, struct bytes prefix, struct bytes from)
{
	CHECK_OBJ(as_of, AS_OF_MAGIC);
	names_close(&as_of->names);
	as_of->which = which;
	as_of->given = BYTES_NONE;
	buf_reset(&as_of->prefix);
	buf_reset(&as_of->from);
	buf_bytes_put(&as_of->prefix, prefix);
	buf_bytes_put(&as_of->from, bytes_compare(from, prefix) > 0 ? from : prefix);
	int r = buf_error(&as_of->prefix);
	return r < 0 ? r : buf_error(&as_of->from);
}

void as_of_rest(struct as_of *as_of)
{
	CHECK_OBJ(as_of, AS_OF_MAGIC);
	names_close(&as_of->names);
	if (as_of->given.data) {
		buf_reset(&as_of->from);
		buf_bytes_put(&as_of->from, as_of->given);
		buf_byte(&as_of->from, '\0');
	}
	as_of->given = BYTES_NONE;
	as_of->snapshot = NULL;
}

int as_of_next(struct as_of *as_of, struct bytes *ret_key, struct index_entry *ret_entry)
{
	struct as_of *a = as_of;
	int r;

	CHECK_OBJ(a, AS_OF_MAGIC);
	REQUIRE(a->ready && a->snapshot);
	if (!a->names) {
		r = buf_error(&a->from);
		if (r < 0)
			return r;
		a->next_row = as_of_seek_row(a, buf_bytes(&a->from));
		a->name_pending = false;
		r = names_open(a->snapshot, a->feed, buf_bytes(&a->prefix), buf_bytes(&a->from),
			NULL, NULL, &a->names);
		if (r < 0)
			return r;
	}
	/* The next name unchanged since the seq. */
	r = a->which == AS_OF_CHANGED ? END : FOUND;
	while (r == FOUND && !a->name_pending) {
		r = names_next(a->names, &a->name, &a->entry);
		a->name_pending = r == FOUND && a->entry.seq <= a->seq;
	}
	if (r < 0)
		return r;

	const struct as_of_row *row = a->next_row < a->n_rows ? &a->rows[a->next_row] : NULL;
	struct bytes key = row ? as_of_key(a, row) : BYTES_NONE;
	bool has_row = row && bytes_starts(key, buf_bytes(&a->prefix));
	int order = !has_row ? 1 : r == END ? -1 : bytes_compare(key, a->name);
	if (!has_row && r == END)
		return END;
	if (order == 0)
		return err_say(ERR_CORRUPT,
			"the index names version %llu of '%.*s', replaced in the journal: run "
			"'kinf verify'",
			(unsigned long long)a->entry.seq, BYTES_ARG(key));
	if (order < 0) {
		*ret_entry = (struct index_entry){.seq = row->seq};
		a->next_row++;
	} else {
		key = a->name;
		*ret_entry = a->entry;
		a->name_pending = false;
	}
	*ret_key = a->given = key;
	return FOUND;
}
