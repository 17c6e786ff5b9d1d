/* SPDX-License-Identifier: Apache-2.0 */
#include "store/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/proc.h"
#include "store/journal_parts.h"
#include "store/record.h"

#define JOURNAL_MAGIC  0x6b1e0e06u
#define JOURNAL_FORMAT 1
#define MAP_BYTES      ((uint64_t)64 << 30)
#define OPEN_TRIES     3

static const char *const databases[DB_MAX] = {
	[DB_LOG] = "log",
	[DB_HEAD] = "head",
	[DB_FEED] = "feed",
	[DB_META] = "meta",
};

static const struct generation_kind journal_kind = {
	.what = "journal",
	.format = JOURNAL_FORMAT,
	.databases = databases,
	.n_databases = DB_MAX,
};

struct bytes seq_key(uint64_t seq, uint8_t room[SEQ_KEY_SIZE])
{
	be64_put(room, seq);
	return BYTES(room, SEQ_KEY_SIZE);
}

/* ---- opening --------------------------------------------------------------------------------- */

static struct journal *journal_new(bool is_writer)
{
	struct journal *journal = calloc(1, sizeof(*journal));

	if (!journal) {
		(void)err_set(-ENOMEM, "opening the journal");
		return NULL;
	}
	journal->magic = JOURNAL_MAGIC;
	journal->is_writer = is_writer;
	return journal;
}

void journal_close(struct journal **journal)
{
	struct journal *j = *journal;

	if (!j)
		return;
	CHECK_OBJ(j, JOURNAL_MAGIC);
	if (j->is_writer)
		journal_abort(j);
	generation_close(&j->gen);
	feed_rows_release(j);
	buf_release(&j->scratch);
	j->magic = 0;
	free(j);
	*journal = NULL;
}

static struct generation_options options_of(const struct home *home,
	const struct journal_options *options)
{
	return (struct generation_options){
		.map_bytes = options->map_bytes ? options->map_bytes : MAP_BYTES,
		.durable = options->durable,
		.file_mode = home_file_mode(home),
	};
}

/* The log must not reach beyond what meta says, or sequence numbers would be given twice. */
static int check_end(struct journal *journal, struct txn *txn)
{
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	struct bytes key, value;

	int r = cursor_open(txn, DB_LOG, &cursor);
	if (r == 0)
		r = cursor_last(cursor, &key, &value);
	if (r == END)
		return 0;
	if (r == FOUND && (key.size != SEQ_KEY_SIZE || be64_get(key.data) >= journal->meta.next_seq))
		r = err_set(ERR_CORRUPT, "the log reaches beyond its end");
	return r;
}

static int load(struct journal *journal, struct txn *txn)
{
	int r = meta_read(txn, &journal->meta, &journal->next_feed);

	if (r == 0 && memcmp(journal->meta.uuid, journal_uuid(journal), 16) != 0)
		r = err_set(ERR_CORRUPT, "the journal's uuid is not the one in STATE");
	if (r == 0)
		r = feed_rows_load(journal, txn);
	if (r == 0)
		r = check_end(journal, txn);
	if (r < 0)
		return r;
	journal->meta_changed = false;
	journal->stale = false;
	return 0;
}

static int open_existing(struct home *home, const struct journal_options *options, uint32_t number,
	struct journal **ret_journal)
{
	struct generation_options gen_options = options_of(home, options);
	CLEANUP(journal_close) struct journal *journal = journal_new(true);
	CLEANUP(txn_abort) struct txn *txn = NULL;

	if (!journal)
		return -ENOMEM;
	int r = generation_open_write(
		home_journal_fd(home), &journal_kind, &gen_options, number, &journal->gen);
	if (r == 0)
		r = txn_begin_read(journal_env(journal), &txn);
	if (r == 0)
		r = load(journal, txn);
	if (r < 0)
		return r;
	*ret_journal = TAKE(journal);
	return 0;
}

/* A new uuid (RFC 4122, random). */
static int make_uuid(uint8_t uuid[16])
{
	int r = proc_random(uuid, 16);

	uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40);
	uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
	return r;
}

/* Complete before CURRENT names it. */
static int create(struct home *home, const struct journal_options *options,
	struct journal **ret_journal)
{
	struct generation_options gen_options = options_of(home, options);
	CLEANUP(journal_close) struct journal *journal = journal_new(true);

	if (!journal)
		return -ENOMEM;
	int r = make_uuid(journal->meta.uuid);
	if (r == 0)
		r = generation_create(home_journal_fd(home), &journal_kind, &gen_options,
			journal->meta.uuid, &journal->gen);
	if (r < 0)
		return r;
	journal->meta.next_seq = 1;
	journal->next_feed = 1;
	journal->meta_changed = true;
	r = txn_begin_write(journal_env(journal), &journal->txn);
	if (r == 0)
		r = journal_finish(journal);
	if (r == 0 && options->durable)
		r = env_sync(journal_env(journal));
	if (r == 0)
		r = generation_publish(home_journal_fd(home), generation_number(journal->gen));
	if (r < 0)
		return r;
	*ret_journal = TAKE(journal);
	return 0;
}

/* What a new journal cures, at the price of listing everything again. */
static bool is_lost(int r)
{
	return r == -ENOENT || r == ERR_CORRUPT || r == ERR_FORMAT || r == ERR_UNTRUSTED ||
		r == ERR_LOCKED;
}

int journal_open_write(struct home *home, const struct journal_options *options, char reason[256],
	struct journal **ret_journal)
{
	uint32_t number;

	reason[0] = '\0';
	int r = generation_current(home_journal_fd(home), &number);
	if (r == FOUND)
		r = open_existing(home, options, number, ret_journal);
	if (r < 0 && !is_lost(r))
		return r;
	if (r != 0) {
		(void)snprintf(reason, 256, "%s", r < 0 ? err_text(r) : "there was no journal yet");
		/* First: a full disk would otherwise leave one more at each attempt. */
		(void)journal_remove_old(home);
		r = create(home, options, ret_journal);
	}
	if (r < 0)
		return r;
	(void)journal_remove_old(home); /* whatever is left is tried again the next time */
	err_clear();
	return 0;
}

int journal_begin_anew(struct journal **journal, struct home *home,
	const struct journal_options *options)
{
	struct journal *fresh = NULL;

	CHECK_OBJ(*journal, JOURNAL_MAGIC);
	REQUIRE((*journal)->is_writer);
	journal_abort(*journal);
	int r = create(home, options, &fresh);
	if (r < 0)
		return r;
	journal_close(journal);
	*journal = fresh;
	return 0;
}

/* The journal that the index in use belongs to; its readers still need it. 0: none. */
static uint32_t journal_of_index(struct home *home)
{
	uint32_t index, number;
	uint8_t uuid[16];

	if (generation_current(home_index_fd(home), &index) == FOUND &&
		generation_read_uuid(home_index_fd(home), index, uuid) == 0 &&
		generation_find(home_journal_fd(home), uuid, &number) == FOUND)
		return number;
	return 0;
}

int journal_remove_old(struct home *home)
{
	uint32_t keep[2] = {0, journal_of_index(home)};

	int r = generation_current(home_journal_fd(home), &keep[0]);
	if (r < 0)
		return r;
	return generation_remove_except(home_journal_fd(home), keep, 2);
}

static int open_read(struct home *home, uint32_t number, bool copy, struct journal **ret_journal)
{
	CLEANUP(journal_close) struct journal *journal = journal_new(false);
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct journal_meta meta;
	uint32_t next_feed;

	if (!journal)
		return -ENOMEM;
	int r = generation_open_read(home_journal_fd(home), &journal_kind, number, copy, &journal->gen);
	if (r == 0)
		r = txn_begin_read(journal_env(journal), &txn);
	if (r == 0)
		r = meta_read(txn, &meta, &next_feed);
	if (r == 0 && memcmp(meta.uuid, journal_uuid(journal), 16) != 0)
		r = err_set(ERR_CORRUPT, "the journal's uuid is not the one in STATE");
	if (r < 0)
		return r;
	*ret_journal = TAKE(journal);
	return 0;
}

static int find_journal(struct home *home, const uint8_t *uuid, uint32_t *ret_number)
{
	int fd = home_journal_fd(home);
	int r = fd < 0 ? NOT_FOUND
		: uuid ? generation_find(fd, uuid, ret_number)
		       : generation_current(fd, ret_number);

	if (r == NOT_FOUND && !uuid)
		return err_say(ERR_NO_STORE,
			"nothing was written to store '%s' yet: start one with 'kinf run --store %s'",
			home_path(home), home_path(home));
	return r;
}

int journal_open_read(struct home *home, const uint8_t *uuid, struct journal **ret_journal)
{
	bool copy = !home_is_writable(home);
	uint32_t number;
	int r = 0;

	if (copy && home_role_holder(home, HOME_REFLECTOR))
		return err_say(ERR_LOCKED,
			"store '%s' is in use, and cannot be read while this process may not write its "
			"lock file: mount it writable, join its group, or copy it while it is stopped",
			home_path(home));
	/* It may be replaced and removed between the look at CURRENT and the opening. */
	for (int i = 0; i < OPEN_TRIES; i++) {
		r = find_journal(home, uuid, &number);
		if (r)
			return r;
		r = open_read(home, number, copy, ret_journal);
		if (r != -ENOENT)
			break;
	}
	return r < 0 ? err_add(r, "store '%s'", home_path(home)) : 0;
}

struct env *journal_env(struct journal *journal)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	return generation_env(journal->gen);
}

const uint8_t *journal_uuid(const struct journal *journal)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	return generation_uuid(journal->gen);
}

uint32_t journal_generation(const struct journal *journal)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	return generation_number(journal->gen);
}

/* ---- transactions ---------------------------------------------------------------------------- */

struct txn *journal_txn(struct journal *journal)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	return journal->txn;
}

int journal_begin(struct journal *journal)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	REQUIRE(journal->is_writer);
	if (journal->txn)
		return 0;
	int r = txn_begin_write(journal_env(journal), &journal->txn);
	if (r == 0 && journal->stale)
		r = load(journal, journal->txn);
	if (r == 0)
		r = cursor_open(journal->txn, DB_HEAD, &journal->heads);
	if (r < 0)
		journal_abort(journal);
	return r;
}

static bool has_changes(const struct journal *journal)
{
	for (size_t i = 0; i < journal->n_feeds; i++)
		if (journal->feeds[i].changed)
			return true;
	return journal->meta_changed;
}

void journal_abort(struct journal *journal)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	journal->stale |= journal->error < 0 || has_changes(journal);
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
		r = meta_write(journal->txn, &journal->meta, journal->next_feed);
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

/* ---- appending ------------------------------------------------------------------------------- */

/* FOUND: the cursor stands on the head. */
static int find_head(struct journal *journal, struct bytes key, struct head *ret_head)
{
	struct bytes found, value;
	int r = cursor_seek(journal->heads, key, &found, &value);

	if (r == END || (r == FOUND && !bytes_equal(found, key)))
		return NOT_FOUND;
	return r < 0 ? r : head_read(value, ret_head);
}

static int put_record(struct journal *journal, const struct record *record)
{
	uint8_t room[SEQ_KEY_SIZE];
	void *place;

	int r = txn_reserve(journal->txn, DB_LOG, seq_key(record->seq, room), record_size(record),
		TXN_APPEND, &place);
	if (r < 0)
		return r;
	record_write(record, place);
	journal->meta.next_seq = record->seq + 1;
	journal->meta_changed = true;
	return 0;
}

/* The record first: its bytes may lie in the head that is about to change. */
static int append_object(struct journal *journal, struct record *record)
{
	uint8_t room[HEAD_KEY_MAX];
	struct bytes key = head_key(record->feed, record->key, room);
	struct head head = {0};

	REQUIRE(record->key.size > 0);
	int r = find_head(journal, key, &head);
	if (r < 0)
		return r;
	REQUIRE((r == FOUND) == (record->type != RECORD_ADDED));
	record->prev = head.seq;
	buf_reset(&journal->scratch);
	head_write(record, &journal->scratch);
	r = buf_error(&journal->scratch);
	if (r == 0)
		r = put_record(journal, record);
	if (r < 0)
		return r;
	if (record->type == RECORD_DELETED)
		return cursor_del(journal->heads);
	return cursor_put(journal->heads, key, buf_bytes(&journal->scratch), 0);
}

static void open_list(struct feed_row *row, struct record *record)
{
	REQUIRE(row->checkpoint.list_begin == 0);
	row->checkpoint.list_begin = record->seq;
	row->checkpoint.list_ns = record->time_ns;
}

static int close_list(struct feed_row *row, struct record *record)
{
	struct feed_checkpoint *c = &row->checkpoint;
	bool abandoned = record->flags & RECORD_ABANDONED;

	REQUIRE(c->list_begin != 0);
	REQUIRE(!abandoned || c->first_list != 0);
	record->prev = c->list_begin;
	c->list_begin = 0;
	c->list_ns = 0;
	if (abandoned)
		return 0;
	c->phase = FEED_SYNCED;
	if (!c->first_list)
		c->first_list = record->seq;
	return feed_row_set_rv(row, record->rv);
}

static int append_mark(struct journal *journal, struct feed_row *row, struct record *record)
{
	int r = 0;

	REQUIRE(record->key.size == 0);
	row->changed = true;
	if (record->type == RECORD_LIST_BEGIN)
		open_list(row, record);
	else if (record->type == RECORD_LIST_END)
		r = close_list(row, record);
	else if (record->type == RECORD_FEED_REMOVED) {
		row->checkpoint.list_begin = 0;
		row->checkpoint.list_ns = 0;
		row->checkpoint.phase = FEED_REMOVED;
	}
	return r < 0 ? r : put_record(journal, record);
}

static int append(struct journal *journal, const struct record *record, uint64_t *ret_seq)
{
	struct feed_row *row = feed_row_find(journal, record->feed);
	struct record r = *record;

	REQUIRE(row && row->checkpoint.phase != FEED_REMOVED);
	r.seq = journal->meta.next_seq;
	r.prev = 0;
	r.time_ns = proc_realtime_ns();
	journal->error = r.type <= RECORD_DELETED ? append_object(journal, &r)
						  : append_mark(journal, row, &r);
	if (journal->error < 0)
		return journal->error;
	*ret_seq = r.seq;
	return 0;
}

static void require_open(const struct journal *journal)
{
	CHECK_OBJ(journal, JOURNAL_MAGIC);
	REQUIRE(journal->txn);
}

int journal_append(struct journal *journal, const struct record *record, uint64_t *ret_seq)
{
	require_open(journal);
	REQUIRE(record->type > 0 && record->type < RECORD_TYPE_MAX && record->type != RECORD_FEED_ADDED);
	if (journal->error < 0)
		return journal->error;
	int r = record_fits(record);
	return r < 0 ? r : append(journal, record, ret_seq);
}

/* ---- feeds ----------------------------------------------------------------------------------- */

static int put_definition(struct journal *journal, const struct feed_definition *definition)
{
	uint8_t room[FEED_KEY_SIZE];

	buf_reset(&journal->scratch);
	int r = definition_write(definition, &journal->scratch);
	return r < 0 ? r
		     : txn_put(journal->txn, DB_FEED, feed_key(definition->id, FEED_DEFINITION, room),
			       buf_bytes(&journal->scratch), 0);
}

int journal_add_feed(struct journal *journal, const struct feed_definition *definition,
	uint32_t *ret_feed)
{
	struct feed_definition given = *definition;
	struct feed_row *row;
	uint64_t seq;

	require_open(journal);
	if (journal->error < 0)
		return journal->error;
	given.id = journal->next_feed;
	int r = put_definition(journal, &given);
	if (r == 0)
		r = feed_row_add(journal, given.id, &row);
	if (r == 0) {
		journal->next_feed++;
		r = append(journal,
			&(struct record){.feed = given.id, .type = RECORD_FEED_ADDED}, &seq);
	}
	if (r < 0)
		return journal->error = r;
	*ret_feed = given.id;
	return 0;
}

int journal_rename_feed(struct journal *journal, uint32_t feed, const char *name)
{
	CLEANUP(buf_release) struct buf texts = BUF_INIT;
	struct feed_definition definition;
	uint8_t room[FEED_KEY_SIZE];
	struct bytes stored;

	require_open(journal);
	if (journal->error < 0)
		return journal->error;
	int r = txn_get(journal->txn, DB_FEED, feed_key(feed, FEED_DEFINITION, room), &stored);
	REQUIRE(r != NOT_FOUND);
	if (r == FOUND)
		r = definition_read(feed, stored, &texts, &definition);
	if (r == 0) {
		definition.name = name;
		r = put_definition(journal, &definition);
	}
	journal->meta_changed = true; /* an abort must not be taken for one of nothing */
	return journal->error = r;
}

int journal_checkpoint(struct journal *journal, uint32_t feed, uint32_t phase, struct bytes rv)
{
	require_open(journal);
	struct feed_row *row = feed_row_find(journal, feed);
	REQUIRE(row && row->checkpoint.phase != FEED_REMOVED && phase < FEED_REMOVED);
	if (journal->error < 0)
		return journal->error;
	if (row->checkpoint.phase == phase && bytes_equal(row->checkpoint.rv, rv))
		return 0;
	row->checkpoint.phase = phase;
	return journal->error = feed_row_set_rv(row, rv);
}

int journal_set_cluster(struct journal *journal, const char *cluster)
{
	require_open(journal);
	if (strlen(cluster) >= sizeof(journal->meta.cluster))
		return err_set(ERR_TOO_LARGE, "the cluster's identity '%s'", cluster);
	memset(journal->meta.cluster, 0, sizeof(journal->meta.cluster));
	memcpy(journal->meta.cluster, cluster, strlen(cluster));
	journal->meta_changed = true;
	return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

int journal_meta(struct journal *journal, struct txn *txn, struct journal_meta *ret_meta)
{
	uint32_t next_feed;

	CHECK_OBJ(journal, JOURNAL_MAGIC);
	if (txn != journal->txn)
		return meta_read(txn, ret_meta, &next_feed);
	*ret_meta = journal->meta;
	return 0;
}

static int get_stored(struct txn *txn, uint64_t seq, struct bytes *ret_stored)
{
	uint8_t room[SEQ_KEY_SIZE];

	return txn_get(txn, DB_LOG, seq_key(seq, room), ret_stored);
}

int journal_get(struct journal *journal, struct txn *txn, uint64_t seq, struct record *ret_record)
{
	struct record record;
	struct bytes stored;

	CHECK_OBJ(journal, JOURNAL_MAGIC);
	int r = get_stored(txn, seq, &stored);
	if (r == FOUND)
		r = record_read(stored, &record);
	if (r)
		return r;
	if (record.seq != seq)
		return err_set(ERR_CORRUPT, "record %" PRIu64 " says that it is %" PRIu64, seq, record.seq);
	*ret_record = record;
	return FOUND;
}

int journal_get_at(struct journal *journal, struct txn *txn, uint64_t seq, uint64_t place,
	size_t size, struct record *ret_record)
{
	struct record record;
	struct bytes stored;

	CHECK_OBJ(journal, JOURNAL_MAGIC);
	if (place && size >= sizeof(seq) && txn_at(txn, place, size, &stored) == FOUND &&
		le64_get(stored.data) == seq && record_read(stored, &record) == 0) {
		*ret_record = record;
		return FOUND;
	}
	return journal_get(journal, txn, seq, ret_record);
}

int journal_place(struct journal *journal, struct txn *txn, uint64_t seq, uint64_t *ret_place,
	uint32_t *ret_size)
{
	uint64_t place = 0;
	struct bytes stored;

	CHECK_OBJ(journal, JOURNAL_MAGIC);
	int r = get_stored(txn, seq, &stored);
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
	if (txn == journal->txn)
		return find_head(journal, wanted, ret_head);
	int r = txn_get(txn, DB_HEAD, wanted, &value);
	return r ? r : head_read(value, ret_head);
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
	return r ? r : checkpoint_read(value, ret_checkpoint);
}
