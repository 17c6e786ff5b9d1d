/* SPDX-License-Identifier: Apache-2.0 */
#include "store/read/snapshot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/env/replaced.h"
#include "store/env/generation.h"
#include "store/read/snapshot_internal.h"

#define TRIES          32 /* to get a journal and an index of one pair */
#define SUPERSEDED_MAX 3  /* pairs replaced before they are read */

static uint64_t snapshot_feed_visible(const struct snapshot *s, const struct index_feed *feed)
{
	if (feed->listed == 0)
		return 0;
	return feed->list_begin ? feed->list_begin - 1 : s->index.taken;
}

static int snapshot_read_feeds(struct snapshot *s)
{
	CLEANUP(index_rows_release) struct index_rows rows = {s->index_txn};
	struct index_feed feed;
	int r = 0;

	s->n_feeds = 0;
	s->oldest = s->index.taken;
	while (r == 0 && (r = index_next_feed(&rows, &feed)) == FOUND) {
		uint64_t visible = snapshot_feed_visible(s, &feed);

		if (feed.listed && !feed.removed && visible < s->oldest)
			s->oldest = visible;
		r = ARRAY_ADD(s->feeds, s->n_feeds, s->feeds_room, feed, "the feeds of a snapshot");
	}
	return r == END ? 0 : r;
}

/*
 * Finds hints covering the snapshot. Each snapshot opens them by itself: a larger new table
 * concerns no other thread. A copy has none: the boot of its writer is unknown.
 */
static void snapshot_find_hints(struct snapshot *s)
{
	s->use_hints = s->hints;
	if (s->store->copy || (s->hints && hints_taken(s->hints) >= s->index.taken))
		return;
	s->use_hints = NULL;
	if (s->hints_checked_ns && s->taken_ns - s->hints_checked_ns < CURRENT_CHECK_NS)
		return;
	s->hints_checked_ns = s->taken_ns;
	hints_close(&s->hints);
	if (index_open_hints(s->pair->index, s->index.journal, &s->hints) == FOUND &&
		hints_taken(s->hints) >= s->index.taken)
		s->use_hints = s->hints;
}

static void snapshot_reset_txns(struct snapshot *s)
{
	if (s->index_txn)
		txn_reset(s->index_txn);
	if (s->journal_txn)
		txn_reset(s->journal_txn);
	s->part = SNAPSHOT_NOTHING;
}

static int snapshot_begin_log(struct snapshot *s)
{
	struct env *journal = journal_env(s->pair->journal);
	int r = s->journal_txn ? txn_renew(s->journal_txn)
			       : txn_begin_read(journal, &s->journal_txn);

	return r < 0 ? r : journal_meta(s->pair->journal, s->journal_txn, &s->journal);
}

/* Begins both transactions. Returns: 0; AGAIN: the journal does not belong to this index any more,
 * or not yet; errors. */
static int snapshot_begin(struct snapshot *s)
{
	struct env *index = index_env(s->pair->index);
	int r = s->index_txn ? txn_renew(s->index_txn) : txn_begin_read(index, &s->index_txn);

	if (r == 0)
		r = index_meta(s->pair->index, s->index_txn, &s->index);
	s->has_definitions = false;
	if (r < 0)
		return r;
	/* The feeds' rows change only with `taken`. It is compared as well: LMDB may give a tree
	 * newer than the transaction's id (docs/architecture.md, LMDB). */
	uint64_t id = txn_id(s->index_txn);

	if (s->feeds_txn != id || s->feeds_taken != s->index.taken) {
		s->feeds_txn = 0;
		r = snapshot_read_feeds(s);
		if (r < 0)
			return r;
		s->feeds_txn = id;
		s->feeds_taken = s->index.taken;
	}
	r = snapshot_begin_log(s);
	if (r < 0)
		return r;
	if (memcmp(s->journal.uuid, s->index.journal, sizeof(s->journal.uuid)) != 0)
		return AGAIN;
	s->torn = s->journal.horizon > s->oldest || s->journal.next_seq <= s->index.taken;
	if (s->torn && !(s->store->options.unchecked && store_pair_is_untrusted(s->pair)))
		return AGAIN;
	s->part = SNAPSHOT_WHOLE;
	return 0;
}

/* Writes why there is no pair although there is an index; "": no index, or running daemons may be
 * making one. */
static void snapshot_explain_no_pair(const struct snapshot *s, char *text, size_t size)
{
	const struct home *home = s->store->home;
	uint32_t number = 0;
	uint8_t uuid[16];

	if (home_lacks_journal(home)) {
		(void)snprintf(text, size,
			"the store's directory journal/ is missing, or the file CURRENT in it");
		return;
	}
	int r = home_index_fd(home) < 0 || store_is_written(home)
			? NOT_FOUND
			: generation_current(home_index_fd(home), &number);
	if (r == FOUND) {
		r = generation_current(home_journal_fd(home), &number);
		if (r == FOUND)
			r = generation_read_uuid(home_journal_fd(home), number, uuid);
		(void)snprintf(text, size, "%s%s",
			r < 0 ? "its journal can't be opened: "
			      : "the index was made of another journal",
			r < 0 ? err_text(r) : "");
	}
	err_ignore(r < 0 ? r : 0, "the caller says it");
}

/* Writes why they do not match, for instance in a copy made while daemons wrote. */
static void snapshot_note_mismatch(struct snapshot *s)
{
	char text[sizeof(s->store->mismatch)] = "";

	if (!s->pair)
		snapshot_explain_no_pair(s, text, sizeof(text));
	else if (memcmp(s->journal.uuid, s->index.journal, sizeof(s->journal.uuid)) != 0)
		(void)snprintf(text, sizeof(text), "the index was made of another journal");
	else if (s->journal.next_seq <= s->index.taken)
		(void)snprintf(text, sizeof(text),
			"the index has taken event %" PRIu64
			", and the journal ends at event %" PRIu64,
			s->index.taken, s->journal.next_seq - 1);
	else
		(void)snprintf(text, sizeof(text),
			"the index shows event %" PRIu64
			", and the journal begins after event %" PRIu64,
			s->oldest, s->journal.horizon);
	(void)pthread_mutex_lock(&s->store->lock);
	memcpy(s->store->mismatch, text, sizeof(text));
	(void)pthread_mutex_unlock(&s->store->lock);
}

/* Ends the transactions and gives the pair back. */
static void snapshot_leave(struct snapshot *s)
{
	txn_abort(&s->journal_txn);
	txn_abort(&s->index_txn);
	store_leave(s->store, &s->pair);
	s->feeds_txn = 0;
	hints_close(&s->hints);
	s->use_hints = NULL;
	s->hints_checked_ns = 0;
}

/* Returns true if another generation replaced one of the pair, so no pin is possible in it. */
static bool snapshot_is_superseded(struct snapshot *s)
{
	struct err_kept failure;

	if (!s->pair)
		return false;
	err_keep(&failure);
	(void)pthread_mutex_lock(&s->store->lock);
	bool result = index_check(s->pair->index, s->store->home, true) == ERR_MOVED ||
		      journal_check(s->pair->journal, s->store->home) == ERR_MOVED;
	(void)pthread_mutex_unlock(&s->store->lock);
	err_restore(&failure);
	return result;
}

static int snapshot_take(struct snapshot *s)
{
	int superseded = 0;

	for (int i = 0; i < TRIES; i++) {
		struct store_pair *pair = NULL;
		int r = store_join(s->store, superseded || i > TRIES / 2, s->pair, &pair);

		if (r == 0 && pair != s->pair) {
			snapshot_leave(s);
			s->pair = pair;
		}
		bool is_joined = r == 0;
		if (r == 0)
			r = snapshot_begin(s);
		if (r == 0) {
			s->taken_ns = proc_monotonic_ns();
			snapshot_find_hints(s);
			if (s->torn)
				snapshot_note_mismatch(s);
			return 0;
		}
		snapshot_reset_txns(s);
		if (r < 0 && ((superseded++ == SUPERSEDED_MAX && !is_joined) ||
				     !snapshot_is_superseded(s)))
			/* the process has become another user since it opened the store */
			return r == -EACCES ? home_explain_denied(r, home_path(s->store->home))
					    : err_add(r, "taking a snapshot");
		err_ignore(r < 0 ? r : 0, "the pair that CURRENT names is opened");
		/* An open pair without its files is being removed: its daemons make another one. */
		if (!s->pair || superseded > SUPERSEDED_MAX)
			break;
	}
	snapshot_note_mismatch(s);
	return AGAIN;
}

static int snapshot_take_log(struct snapshot *s)
{
	for (int superseded = 0;; superseded++) {
		struct store_pair *pair = NULL;
		int r = superseded ? store_join(s->store, true, s->pair, &pair)
				   : store_join_log(s->store, s->pair, &pair);

		if (r != 0)
			return r < 0 ? err_add(r, "taking a snapshot of the journal") : r;
		if (pair != s->pair) {
			snapshot_leave(s);
			s->pair = pair;
		}
		r = snapshot_begin_log(s);
		if (r >= 0)
			break;
		snapshot_reset_txns(s);
		if (superseded == SUPERSEDED_MAX || !snapshot_is_superseded(s))
			return err_add(r, "taking a snapshot of the journal");
		err_ignore(r, "the pair that CURRENT names is opened");
	}
	s->part = SNAPSHOT_LOG;
	s->taken_ns = proc_monotonic_ns();
	return 0;
}

static int snapshot_new(
	struct store *store, int (*take)(struct snapshot *), struct snapshot **ret_snapshot)
{
	CLEANUP(snapshot_close) struct snapshot *s = calloc(1, sizeof(*s));

	CHECK_OBJ(store, STORE_MAGIC);
	if (!s)
		return err_set(-ENOMEM, "taking a snapshot");
	s->magic = SNAPSHOT_MAGIC;
	store_ref(store);
	s->store = store;
	int r = take(s);

	if (r != 0)
		return r;
	*ret_snapshot = TAKE(s);
	return 0;
}

int snapshot_open(struct store *store, struct snapshot **ret_snapshot)
{
	return snapshot_new(store, snapshot_take, ret_snapshot);
}

int snapshot_renew(struct snapshot *snapshot)
{
	int r = snapshot_reset(snapshot);

	return r < 0 ? r : snapshot_take(snapshot);
}

int snapshot_open_log(struct store *store, struct snapshot **ret_snapshot)
{
	return snapshot_new(store, snapshot_take_log, ret_snapshot);
}

int snapshot_renew_log(struct snapshot *snapshot)
{
	int r = snapshot_reset(snapshot);

	return r < 0 ? r : snapshot_take_log(snapshot);
}

static bool snapshot_is_given_up(const struct snapshot *s)
{
	return s->part != SNAPSHOT_NOTHING &&
	       (txn_is_given_up(s->journal_txn) ||
		       (s->part == SNAPSHOT_WHOLE && txn_is_given_up(s->index_txn)));
}

int snapshot_check(const struct snapshot *snapshot)
{
	struct env_info index, journal;

	if (snapshot->part == SNAPSHOT_NOTHING)
		return 0;
	const struct snapshot *s = snapshot_log(snapshot);
	bool whole = s->part == SNAPSHOT_WHOLE;

	if (snapshot_is_given_up(s))
		return err_say(ERR_SNAPSHOT_EXPIRED,
			"the snapshot was held for too long: its file was replaced, and its space "
			"taken back because more than %d such files were held; take another one, "
			"and hold it for less than a minute",
			REPLACED_FILES_KEPT);
	if (txn_is_pinned(s->journal_txn) && (!whole || txn_is_pinned(s->index_txn)))
		return 0;
	int r = whole ? env_info(index_env(s->pair->index), &index) : 0;

	if (r == 0)
		r = env_info(journal_env(s->pair->journal), &journal);
	if (r < 0)
		return r;
	/* A reader without pins does not keep a writer from using its pages again; such a writer
	 * has committed. */
	if ((whole && index.last_txn != txn_id(s->index_txn)) ||
		journal.last_txn != txn_id(s->journal_txn))
		return err_say(ERR_SNAPSHOT_EXPIRED,
			"the store was written while it was read as a copy: read it again");
	return 0;
}

/* Returns ERR_SNAPSHOT_EXPIRED if the program has closed its pin files. */
static int snapshot_keep_pins(const struct snapshot *snapshot)
{
	if (snapshot->part == SNAPSHOT_NOTHING)
		return 0;
	const struct snapshot *s = snapshot_log(snapshot);
	bool kept = txn_keeps_pin(s->journal_txn);

	if (s->part == SNAPSHOT_WHOLE)
		kept = txn_keeps_pin(s->index_txn) && kept;
	return kept ? 0
		    : err_say(ERR_SNAPSHOT_EXPIRED,
			      "the program closed libkinf's file descriptors (as closefrom(3) "
			      "does), so the store's daemons may have overwritten the data being "
			      "read. Open the store again, after the closing");
}

int snapshot_check_pins(const struct snapshot *snapshot)
{
	int r = snapshot_check(snapshot);

	return r < 0 ? r : snapshot_keep_pins(snapshot);
}

int snapshot_result(const struct snapshot *snapshot, int r)
{
	CHECK_OBJ(snapshot, SNAPSHOT_MAGIC);
	bool may_be_wrong = r == ERR_CORRUPT || snapshot_is_given_up(snapshot);

	if (r >= 0 && !may_be_wrong)
		return r;
	int checked = may_be_wrong ? snapshot_check(snapshot) : 0;
	if (checked == 0)
		checked = snapshot_keep_pins(snapshot);
	return checked < 0 ? checked : r;
}

int snapshot_made(const struct snapshot *snapshot, int r)
{
	int checked = r < 0 ? snapshot_result(snapshot, r) : snapshot_check(snapshot);

	return checked < 0 ? checked : r;
}

int snapshot_reset(struct snapshot *snapshot)
{
	CHECK_OBJ(snapshot, SNAPSHOT_MAGIC);
	if (snapshot->part == SNAPSHOT_NOTHING)
		return 0;
	int r = snapshot_check(snapshot);

	snapshot_reset_txns(snapshot);
	return r;
}

int snapshot_reset_pins(struct snapshot *snapshot)
{
	int kept = snapshot_keep_pins(snapshot), r = snapshot_reset(snapshot);

	return r < 0 ? r : kept;
}

void snapshot_close(struct snapshot **snapshot)
{
	struct snapshot *s = *snapshot;

	if (!s)
		return;
	CHECK_OBJ(s, SNAPSHOT_MAGIC);
	if (s->store) {
		snapshot_leave(s);
		store_unref(s->store);
	}
	taken_detach(&s->taken);
	free(s->feeds);
	free(s->definitions);
	s->magic = 0;
	free(s);
	*snapshot = NULL;
}

/* ---- accessors ---------------------------------------------------------- */

bool snapshot_is_torn(const struct snapshot *snapshot)
{
	return snapshot_active(snapshot)->torn;
}

uint64_t snapshot_taken(const struct snapshot *snapshot)
{
	return snapshot_active(snapshot)->index.taken;
}

uint64_t snapshot_horizon(const struct snapshot *snapshot)
{
	return snapshot_log(snapshot)->journal.horizon;
}

uint64_t snapshot_last(const struct snapshot *snapshot)
{
	return snapshot_log(snapshot)->journal.next_seq - 1;
}

uint64_t snapshot_log_visible(
	const struct snapshot *snapshot, const struct feed_checkpoint *checkpoint)
{
	if (!checkpoint->first_list)
		return 0;
	return checkpoint->list_begin ? checkpoint->list_begin - 1 : snapshot_last(snapshot);
}

const uint8_t *snapshot_uuid(const struct snapshot *snapshot)
{
	return snapshot_log(snapshot)->journal.uuid;
}

const struct index_feed *snapshot_index_feed(const struct snapshot *snapshot, uint32_t feed)
{
	const struct snapshot *s = snapshot_active(snapshot);

	return ARRAY_FIND(s->feeds, s->n_feeds, .feed, feed);
}

uint64_t snapshot_visible(struct snapshot *snapshot, uint32_t feed)
{
	const struct snapshot *s = snapshot_active(snapshot);
	const struct index_feed *row = snapshot_index_feed(s, feed);

	return row ? snapshot_feed_visible(s, row) : 0;
}

uint64_t snapshot_age_ns(const struct snapshot *snapshot)
{
	return proc_monotonic_ns() - snapshot_log(snapshot)->taken_ns;
}

struct index *snapshot_index(struct snapshot *snapshot)
{
	return snapshot_active(snapshot)->pair->index;
}

struct txn *snapshot_index_txn(struct snapshot *snapshot)
{
	return snapshot_active(snapshot)->index_txn;
}

struct journal *snapshot_journal(struct snapshot *snapshot)
{
	return snapshot_log(snapshot)->pair->journal;
}

struct txn *snapshot_journal_txn(struct snapshot *snapshot)
{
	return snapshot_log(snapshot)->journal_txn;
}
