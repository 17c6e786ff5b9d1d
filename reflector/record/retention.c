/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/record/retention.h"

#include <errno.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/env/generation.h"
#include "store/index/index.h"
#include "store/read/cursor_file.h"

#define RETENTION_MAGIC 0x52544e54u
/* Cursors are read once in CURSORS_NS, and for a twentieth of the time: members of the group may
 * put any number of files into the directory. */
#define CURSORS_NS    1000000000u
#define CURSORS_SHARE 20
#define AGED_MAX      32768 /* records examined at once for their age */

struct retention {
	uint32_t magic;
	struct home *home;
	struct journal *journal;
	struct retention_options options;
	struct index *index;
	/* the wall clock less the monotonic one, at the start */
	uint64_t wall_ns;
	uint64_t cursors_due_ns; /* they are read again then (monotonic) */
	uint64_t cursors_least;  /* the least seq needed by one */
};

/* ---- life --------------------------------------------------------------- */

int retention_new(struct home *home, struct journal *journal,
	const struct retention_options *options, struct retention **ret_retention)
{
	struct retention *retention = calloc(1, sizeof(*retention));

	if (!retention)
		return err_set(-ENOMEM, "retention");
	*retention = (struct retention){
		.magic = RETENTION_MAGIC, .home = home, .journal = journal, .options = *options};
	retention->wall_ns = proc_realtime_ns() - proc_monotonic_ns();
	*ret_retention = retention;
	return 0;
}

void retention_free(struct retention **retention)
{
	if (!*retention)
		return;
	CHECK_OBJ(*retention, RETENTION_MAGIC);
	index_close(&(*retention)->index);
	(*retention)->magic = 0;
	free(TAKE(*retention));
}

void retention_set(struct retention *retention, const struct retention_options *options)
{
	CHECK_OBJ(retention, RETENTION_MAGIC);
	retention->options = *options;
}

/* ---- by the index ------------------------------------------------------- */

/* Opens CURRENT's index. Returns: FOUND, NOT_FOUND, or an error. */
static int retention_open_index(struct retention *retention)
{
	uint32_t number;
	int r = generation_current(home_index_fd(retention->home), &number);

	/* Not by its number: the next index may get a removed one's. */
	if (r == FOUND && retention->index) {
		int moved = index_check(retention->index, retention->home, true);

		if (moved == 0)
			return FOUND;
		err_ignore(moved, "the index that CURRENT names now is opened");
	}
	index_close(&retention->index);
	if (r != FOUND)
		return r < 0 ? r : NOT_FOUND;
	return index_open_read(retention->home, &retention->index);
}

/* Lowers BOUND to before the open lists in the index. */
static int retention_take_lists(struct txn *txn, uint64_t *bound)
{
	CLEANUP(index_rows_release) struct index_rows rows = {txn};
	struct index_feed feed;
	int r;

	while ((r = index_next_feed(&rows, &feed)) == FOUND)
		/* No reader sees a feed during its first list: it holds nothing back. */
		if (feed.listed && feed.list_begin && feed.list_begin - 1 < *bound)
			*bound = feed.list_begin - 1;
	return r == END ? 0 : r;
}

/* Finds the last seq no longer needed by the index, by reading the journal's LOG. Returns: FOUND,
 * NOT_FOUND, or an error. */
static int retention_index_bound(
	struct retention *retention, uint64_t *ret_bound, struct journal_meta *ret_log)
{
	struct index_meta meta;
	struct txn *txn;
	int r = retention_open_index(retention);

	if (r != FOUND)
		return r;
	r = txn_begin_read(index_env(retention->index), &txn);
	if (r < 0)
		return r;
	r = index_meta(retention->index, txn, &meta);
	uint64_t bound = meta.taken;
	if (r >= 0)
		r = retention_take_lists(txn, &bound);
	txn_abort(&txn);
	if (r < 0)
		return r;
	if (meta.building || memcmp(meta.journal, journal_uuid(retention->journal), 16) != 0)
		return NOT_FOUND;
	r = txn_begin_read(journal_env(retention->journal), &txn);
	if (r < 0)
		return r;
	r = journal_meta(retention->journal, txn, ret_log);
	txn_abort(&txn);
	if (r < 0)
		return r;
	if (meta.taken > ret_log->next_seq - 1)
		return NOT_FOUND; /* damaged: the processor builds another */
	*ret_bound = bound;
	return FOUND;
}

int retention_taken(struct retention *retention, uint64_t *ret_taken)
{
	struct journal_meta log;

	CHECK_OBJ(retention, RETENTION_MAGIC);
	*ret_taken = 0;
	return retention_index_bound(retention, ret_taken, &log);
}

/* Finds the least seq needed by a cursor, and removes expired ones. */
static void retention_read_cursors(struct retention *retention, uint64_t now)
{
	const struct cursor_keeping keeping = {.uuid = journal_uuid(retention->journal),
		.expiry_ns = retention->options.cursor_ns,
		.steady_ns = retention->wall_ns + now};
	unsigned removed;

	if (now < retention->cursors_due_ns)
		return;
	err_ignore(cursor_find_least(retention->home, &keeping, &retention->cursors_least),
		"cursors that can't be read keep no history");
	err_ignore(cursor_clean(retention->home, &keeping, &removed), "the next one removes them");
	retention->cursors_due_ns =
		now + CURSORS_NS + (proc_monotonic_ns() - now) * (CURSORS_SHARE - 1);
}

/* ---- by time ------------------------------------------------------------ */

/* Returns the last record up to BOUND of those older than the retention time. It is the first
 * unreadable one where the walk meets one: trimming comes to it, and reports it. */
static int retention_find_aged(
	struct retention *retention, uint64_t horizon, uint64_t bound, uint64_t *ret_seq)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	CLEANUP(journal_walk_close) struct journal_walk *walk = NULL;
	uint64_t steady_ns = retention->wall_ns + proc_monotonic_ns();
	struct record record;
	int r = txn_begin_read(journal_env(retention->journal), &txn);

	*ret_seq = horizon;
	if (r == 0)
		r = journal_walk_open(txn, horizon + 1, &walk);
	for (size_t n = 0; r == 0 && n < AGED_MAX && *ret_seq < bound; n++) {
		r = journal_walk_next(walk, &record);
		if (r == ERR_CORRUPT)
			*ret_seq = journal_walk_seq(walk);
		if (r != FOUND ||
			!proc_is_aged(record.time_ns, retention->options.time_ns, steady_ns))
			break;
		*ret_seq = record.seq;
	}
	err_ignore(r == ERR_CORRUPT ? r : 0, "trimming comes to it, and reports it");
	return r < 0 && r != ERR_CORRUPT ? r : 0;
}

int retention_goal(
	struct retention *retention, uint64_t list_begin, bool pressed, struct trim_goal *ret_goal)
{
	uint64_t bound, target;
	struct journal_meta log;

	CHECK_OBJ(retention, RETENTION_MAGIC);
	int r = retention_index_bound(retention, &bound, &log);
	if (r != FOUND) {
		index_close(&retention->index);
		err_ignore(
			r, "nothing is trimmed while the index, which may need it, can't be read");
		return AGAIN;
	}
	if (list_begin != UINT64_MAX && list_begin - 1 < bound)
		bound = list_begin - 1;
	retention_read_cursors(retention, proc_monotonic_ns());
	r = retention_find_aged(retention, log.horizon,
		bound < retention->cursors_least ? bound : retention->cursors_least, &target);
	err_ignore(r, "it is looked at again in two seconds");
	if (pressed || target > bound)
		target = bound;
	*ret_goal = (struct trim_goal){.target = target,
		.bound = bound,
		.most = retention->options.bytes ? retention->options.bytes : UINT64_MAX};
	return 0;
}
