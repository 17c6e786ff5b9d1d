/* SPDX-License-Identifier: Apache-2.0 */
#include "store/journal/journal.h"

#include <inttypes.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/proc.h"
#include "store/journal/journal_internal.h"
#include "store/journal/journal_record.h"

/* A transaction writes this much beside its records: upper pages, feeds, LMDB's list of free
 * pages. */
#define KEEP_FREE ((uint64_t)1 << 20)

struct bytes seq_key(uint64_t seq, uint8_t room[SEQ_KEY_SIZE])
{
	be64_put(room, seq);
	return BYTES(room, SEQ_KEY_SIZE);
}

/* ---- transactions ------------------------------------------------------- */

struct txn *journal_txn(struct journal *journal)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	return journal->txn;
}

/* Trimming may use the room kept free by appends: else a full journal stays full. */
int journal_begin_trim(struct journal *journal)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	REQUIRE(journal->is_writer);
	if (journal->txn)
		return 0;
	int r = txn_begin_write(journal_env(journal), &journal->txn);
	if (r == 0 && journal->stale)
		r = journal_load(journal, journal->txn);
	journal->search.key_size = 0;
	if (r == 0)
		r = cursor_open(journal->txn, DB_HEAD, &journal->heads);
	if (r < 0)
		journal_abort(journal);
	return r;
}

int journal_begin(struct journal *journal)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	if (journal->txn)
		return 0;
	int r = journal_begin_trim(journal);
	if (r == 0)
		r = txn_keep_free(journal->txn, KEEP_FREE);
	if (r < 0)
		journal_abort(journal);
	return r;
}

void journal_abort(struct journal *journal)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	journal->stale |= journal->error < 0 || journal->meta_changed;
	for (size_t i = 0; i < journal->n_feeds; i++)
		journal->stale |= journal->feeds[i].changed;
	journal->error = 0;
	cursor_close(&journal->heads);
	txn_abort(&journal->txn);
}

int journal_finish(struct journal *journal)
{
	int r = journal->error;

	if (r == 0)
		r = feed_rows_flush(journal);
	if (r == 0 && journal->meta_changed)
		r = meta_write(journal->txn, &journal->meta);
	if (r < 0) {
		journal_abort(journal);
		return r;
	}
	cursor_close(&journal->heads);
	r = txn_commit(&journal->txn);
	if (r < 0) {
		journal->stale = true;
		return r;
	}
	for (size_t i = 0; i < journal->n_feeds; i++)
		journal->feeds[i].changed = false;
	journal->meta_changed = false;
	return 0;
}

int journal_commit(struct journal *journal)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	if (!journal->txn)
		return 0;
	int r = failpoint_pass(FAILPOINT_JOURNAL_BEFORE_COMMIT);
	if (r < 0) {
		journal_abort(journal);
		return r;
	}
	r = journal_finish(journal);
	if (r < 0)
		return r;
	FAILPOINT_RETURN(JOURNAL_AFTER_COMMIT);
	return 0;
}

/* ---- appending ---------------------------------------------------------- */

/* Checks the head at the cursor (MOVED: FOUND), and its page. */
static int journal_check_neighbour(
	struct journal *journal, int moved, struct bytes key, struct bytes value)
{
	struct head head;

	if (moved != FOUND)
		return moved == END ? 0 : moved;
	if (!cursor_page_is_whole(journal->heads, key))
		return err_set(ERR_CORRUPT, "a page of heads lacks some");
	return head_read(key, value, &head);
}

/* Searches the head of KEY and remembers the search. FOUND: the cursor stands on the head. END:
 * neither the head nor a later one is there. Otherwise both neighbours are checked: a damaged key
 * or page hides heads. */
static int journal_seek_head(struct journal *journal, struct bytes key, struct head *ret_head)
{
	struct head_search *search = &journal->search;
	struct bytes found, value;
	int moved = cursor_seek(journal->heads, key, &found, &value);

	search->key_size = 0;
	bool is_there = moved == FOUND && bytes_equal(found, key);
	int r = is_there ? head_read(key, value, ret_head)
			 : journal_check_neighbour(journal, moved, found, value);
	search->result = is_there ? FOUND : moved == END ? END : NOT_FOUND;
	if (r == 0 && !is_there) {
		moved = moved == END ? cursor_last(journal->heads, &found, &value)
				     : cursor_prev(journal->heads, &found, &value);
		r = journal_check_neighbour(journal, moved, found, value);
	}
	if (r < 0)
		return r;
	memcpy(search->key, key.data, key.size);
	search->key_size = key.size;
	search->seq = is_there ? ret_head->seq : 0;
	return search->result;
}

static int journal_put_record(struct journal *journal, const struct record *record)
{
	uint8_t room[SEQ_KEY_SIZE];
	void *place;

	int r = txn_reserve(journal->txn, DB_LOG, seq_key(record->seq, room), record_size(record),
		TXN_APPEND, &place);
	if (r < 0)
		return r;
	record_write(record, place);
	journal->meta.next_seq = record->seq + 1;
	journal->meta.history += record_size(record);
	journal->meta_changed = true;
	return 0;
}

/* The record first: its bytes may lie in the old head. */
static int journal_append_object(struct journal *journal, struct record *record)
{
	uint8_t room[HEAD_KEY_MAX];
	struct bytes key = head_key(record->feed, record->key, room);
	struct head_search *search = &journal->search;
	struct head head;

	REQUIRE(record->key.size > 0);
	int r = bytes_equal(BYTES(search->key, search->key_size), key)
			? search->result
			: journal_seek_head(journal, key, &head);
	if (r < 0)
		return r;
	record->prev = search->seq;
	search->key_size = 0;
	REQUIRE((r == FOUND) == (record->type != RECORD_ADDED));
	unsigned flags = r == END ? TXN_APPEND : 0; /* a first list comes in order */
	buf_reset(&journal->scratch);
	head_write(key, record, &journal->scratch);
	r = buf_error(&journal->scratch);
	if (r == 0)
		r = journal_put_record(journal, record);
	if (r < 0)
		return r;
	if (record->type == RECORD_DELETED)
		return cursor_del(journal->heads);
	return cursor_put(journal->heads, key, buf_bytes(&journal->scratch), flags);
}

static int journal_append_mark(struct journal *journal, struct feed_row *row, struct record *record)
{
	struct feed_checkpoint *c = &row->checkpoint;
	bool abandoned = record->flags & RECORD_ABANDONED;
	int r = 0;

	REQUIRE(record->key.size == 0);
	row->changed = true;
	if (record->type == RECORD_LIST_BEGIN) {
		REQUIRE(c->list_begin == 0);
		c->list_begin = record->seq;
		c->list_ns = record->time_ns;
	} else if (record->type == RECORD_LIST_END) {
		REQUIRE(c->list_begin != 0);
		REQUIRE(!abandoned || c->first_list != 0);
		record->prev = c->list_begin;
		c->list_begin = 0;
		if (!abandoned) { /* else list_ns stays: a list is still owed */
			c->list_ns = 0;
			c->phase = FEED_SYNCED;
			if (!c->first_list)
				c->first_list = record->seq;
			r = feed_row_set_rv(row, record->rv);
		}
	} else if (record->type == RECORD_FEED_REMOVED) {
		c->list_begin = 0;
		c->list_ns = 0;
		c->phase = FEED_REMOVED;
	}
	return r < 0 ? r : journal_put_record(journal, record);
}

static int journal_append_record(
	struct journal *journal, const struct record *record, uint64_t *ret_seq)
{
	struct feed_row *row = feed_row_find(journal, record->feed);
	struct record r = *record;

	REQUIRE(row && row->checkpoint.phase != FEED_REMOVED);
	r.seq = journal->meta.next_seq;
	r.prev = 0;
	if (!r.time_ns)
		r.time_ns = proc_realtime_ns();
	journal->error = r.type <= RECORD_DELETED ? journal_append_object(journal, &r)
						  : journal_append_mark(journal, row, &r);
	if (journal->error < 0)
		return journal->error;
	row->checkpoint.last = r.seq;
	row->changed = true;
	*ret_seq = r.seq;
	return 0;
}

void journal_require_open(const struct journal *journal)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	REQUIRE(journal->txn);
}

int journal_append(struct journal *journal, const struct record *record, uint64_t *ret_seq)
{
	journal_require_open(journal);
	REQUIRE(record->type > 0 && record->type < RECORD_TYPE_MAX &&
		record->type != RECORD_FEED_ADDED);
	if (journal->error < 0)
		return journal->error;
	uint64_t page = env_page_size(journal_env(journal));
	int r = record_fits(record);
	/* The record's own pages; then a leaf of the log, the head's leaf and its split, and one
	 * above them. Higher pages are shared by the whole transaction. */
	if (r == 0)
		r = txn_allocate(journal->txn, record_size(record) + 6 * page);
	return r < 0 ? r : journal_append_record(journal, record, ret_seq);
}

/* ---- feeds -------------------------------------------------------------- */

static int journal_put_definition(struct journal *journal, const struct feed_definition *definition)
{
	uint8_t room[FEED_KEY_SIZE];

	buf_reset(&journal->scratch);
	int r = definition_write(definition, &journal->scratch);
	return r < 0 ? r
		     : txn_put(journal->txn, DB_FEED,
			       feed_key(definition->id, FEED_DEFINITION, room),
			       buf_bytes(&journal->scratch), 0);
}

int journal_add_feed(
	struct journal *journal, const struct feed_definition *definition, uint32_t *ret_feed)
{
	struct feed_definition given = *definition;
	struct feed_row *row;
	uint64_t seq;

	journal_require_open(journal);
	if (journal->error < 0)
		return journal->error;
	given.id = journal->meta.next_feed;
	int r = journal_put_definition(journal, &given);
	if (r == 0)
		r = feed_row_add(journal, given.id, &row);
	if (r == 0) {
		journal->meta.next_feed++;
		r = journal_append_record(journal,
			&(struct record){.feed = given.id, .type = RECORD_FEED_ADDED}, &seq);
	}
	if (r < 0)
		return journal->error = r;
	*ret_feed = given.id;
	return 0;
}

/* Sets *TEXT to GIVEN unless that is NULL. Returns whether it differs. */
static bool journal_change_text(const char **text, const char *given)
{
	if (!given || strcmp(*text, given) == 0)
		return false;
	*text = given;
	return true;
}

int journal_change_feed(struct journal *journal, uint32_t feed, const struct feed_change *change)
{
	CLEANUP(buf_release) struct buf texts = BUF_INIT;
	struct feed_definition definition;

	journal_require_open(journal);
	if (journal->error < 0)
		return journal->error;
	int r = journal_feed_definition(journal->txn, feed, &texts, &definition);
	REQUIRE(r != NOT_FOUND);
	if (r < 0)
		return journal->error = r;
	bool changed = change->resync_ns && definition.resync_ns != *change->resync_ns;
	if (changed)
		definition.resync_ns = *change->resync_ns;
	changed |= journal_change_text(&definition.name, change->name);
	changed |= journal_change_text(&definition.aliases, change->aliases);
	changed |= journal_change_text(&definition.categories, change->categories);
	changed |= journal_change_text(&definition.columns, change->columns);
	return changed ? journal_define_feed(journal, &definition) : END;
}

int journal_define_feed(struct journal *journal, const struct feed_definition *definition)
{
	journal_require_open(journal);
	REQUIRE(feed_row_find(journal, definition->id));
	if (journal->error < 0)
		return journal->error;
	journal->meta_changed = true; /* tells journal_abort() of a change */
	return journal->error = journal_put_definition(journal, definition);
}

bool journal_list_is_open(const struct journal *journal, uint32_t feed)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	const struct feed_row *row = feed_row_find(journal, feed);

	return row && row->checkpoint.list_begin;
}

int journal_checkpoint(struct journal *journal, uint32_t feed, uint32_t phase, struct bytes rv)
{
	journal_require_open(journal);
	struct feed_row *row = feed_row_find(journal, feed);
	REQUIRE(row && row->checkpoint.phase != FEED_REMOVED && phase < FEED_REMOVED);
	if (journal->error < 0)
		return journal->error;
	if (row->checkpoint.phase == phase && bytes_equal(row->checkpoint.rv, rv))
		return 0;
	row->checkpoint.phase = phase;
	return journal->error = feed_row_set_rv(row, rv);
}

int journal_set_contact(struct journal *journal, uint32_t feed, const struct moment *contact)
{
	journal_require_open(journal);
	struct feed_row *row = feed_row_find(journal, feed);
	REQUIRE(row && row->checkpoint.phase != FEED_REMOVED);
	if (memcmp(&row->checkpoint.contact, contact, sizeof(*contact)) != 0) {
		row->checkpoint.contact = *contact;
		row->changed = true;
	}
	return journal->error;
}

int journal_set_cluster(struct journal *journal, const char *cluster)
{
	journal_require_open(journal);
	if (strlen(cluster) >= sizeof(journal->meta.cluster))
		return err_set(ERR_TOO_LARGE, "the cluster's identity '%s'", cluster);
	memset(journal->meta.cluster, 0, sizeof(journal->meta.cluster));
	memcpy(journal->meta.cluster, cluster, strlen(cluster));
	journal->meta_changed = true;
	return 0;
}

/* ---- reading ------------------------------------------------------------ */

int journal_meta(struct journal *journal, struct txn *txn, struct journal_meta *ret_meta)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	if (txn != journal->txn)
		return meta_read(txn, ret_meta);
	*ret_meta = journal->meta;
	return 0;
}

bool journal_is_imported(const struct journal_meta *meta)
{
	return strncmp(meta->cluster, JOURNAL_IMPORTED, strlen(JOURNAL_IMPORTED)) == 0;
}

uint64_t journal_history(const struct journal *journal)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	return journal->meta.history;
}

int journal_get(struct journal *journal, struct txn *txn, uint64_t seq, struct record *ret_record)
{
	uint8_t room[SEQ_KEY_SIZE];
	struct record record;
	struct bytes stored;

	CHECK_OBJ(journal, JOURNAL_MAGIC);
	int r = txn_get(txn, DB_LOG, seq_key(seq, room), &stored);
	if (r == FOUND)
		r = record_read(stored, &record);
	if (r < 0)
		return err_add(r, "record %" PRIu64, seq);
	if (r == NOT_FOUND)
		return r;
	if (record.seq != seq)
		return err_set(ERR_CORRUPT, "record %" PRIu64 " says that it is %" PRIu64, seq,
			record.seq);
	*ret_record = record;
	return FOUND;
}

int journal_at(struct journal *journal, struct txn *txn, uint64_t place, struct record *ret_record)
{
	struct bytes stored;

	CHECK_OBJ(journal, JOURNAL_MAGIC);
	if (txn_at(txn, place, RECORD_HEADER, &stored) != FOUND ||
		txn_at(txn, place, record_size_at(stored.data), &stored) != FOUND)
		return NOT_FOUND;
	int r = record_parse(stored, ret_record);
	err_ignore(r, "the caller finds the record by its seq");
	return r == 0 ? FOUND : NOT_FOUND;
}

int journal_get_at(struct journal *journal, struct txn *txn, uint64_t seq, uint64_t place,
	size_t size, struct record *ret_record)
{
	struct record record;
	struct bytes stored;

	CHECK_OBJ(journal, JOURNAL_MAGIC);
	if (place && size >= sizeof(seq) && txn_at(txn, place, size, &stored) == FOUND &&
		le64_get(stored.data) == seq && record_parse(stored, &record) == 0) {
		*ret_record = record;
		return FOUND;
	}
	return journal_get(journal, txn, seq, ret_record);
}

int journal_place(struct journal *journal, struct txn *txn, uint64_t seq, uint64_t *ret_place,
	uint32_t *ret_size)
{
	uint8_t room[SEQ_KEY_SIZE];
	uint64_t place = 0;
	struct bytes stored;

	CHECK_OBJ(journal, JOURNAL_MAGIC);
	int r = txn_get(txn, DB_LOG, seq_key(seq, room), &stored);
	if (r)
		return r;
	if (txn_place(txn, stored, &place) != FOUND)
		place = 0;
	*ret_place = place;
	*ret_size = (uint32_t)stored.size;
	return FOUND;
}

int journal_head(struct journal *journal, struct txn *txn, uint32_t feed, struct bytes key,
	struct head *ret_head)
{
	uint8_t room[HEAD_KEY_MAX];
	struct bytes value;

	CHECK_OBJ(journal, JOURNAL_MAGIC);
	if (key.size == 0 || key.size > JOURNAL_KEY_MAX)
		return NOT_FOUND;
	struct bytes wanted = head_key(feed, key, room);
	if (txn == journal->txn) {
		int found = journal_seek_head(journal, wanted, ret_head);
		return found == END ? NOT_FOUND : found;
	}
	int r = txn_get(txn, DB_HEAD, wanted, &value);
	return r ? r : head_read(wanted, value, ret_head);
}

int journal_feed_checkpoint(struct journal *journal, struct txn *txn, uint32_t feed,
	struct feed_checkpoint *ret_checkpoint)
{
	uint8_t room[FEED_KEY_SIZE];
	struct bytes value;

	CHECK_OBJ(journal, JOURNAL_MAGIC);
	if (txn == journal->txn) {
		struct feed_row *row = feed_row_find(journal, feed);
		if (!row)
			return NOT_FOUND;
		*ret_checkpoint = row->checkpoint;
		return FOUND;
	}
	int r = txn_get(txn, DB_FEED, feed_key(feed, FEED_CHECKPOINT, room), &value);
	return r ? r : checkpoint_read(feed, value, ret_checkpoint);
}
