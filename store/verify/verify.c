/* SPDX-License-Identifier: Apache-2.0 */
#include "store/verify/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/text/utf8.h"
#include "store/env/generation.h"
#include "store/journal/salvage.h"
#include "store/verify/verify_internal.h"

/* ---- faults and arrays -------------------------------------------------- */

/* Returns whether pages of the files were taken away (replaced.h): earlier findings may come of
 * it. */
static bool verify_is_expired(const struct verify *v)
{
	return (v->journal_txn && txn_is_given_up(v->journal_txn)) ||
	       (v->snapshot && txn_is_given_up(snapshot_index_txn(v->snapshot)));
}

static int verify_expired(const struct verify *v)
{
	return err_say(ERR_SNAPSHOT_EXPIRED,
		"copies took the place of the store's files again and again while it was read for "
		"so long, and the old ones are not kept any more%s: verify it again",
		v->report.faults ? "; the faults found before are true" : "");
}

void verify_fault(struct verify *v, const char *format, ...)
{
	char sentence[1024];
	va_list args;

	if (verify_is_expired(v))
		return; /* verify_all() says so */
	v->report.faults++;
	if (!v->options->fault)
		return;
	va_start(args, format);
	(void)vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	utf8_make_printable(sentence); /* in a damaged store keys may contain any bytes */
	v->options->fault(v->options->arg, sentence);
}

int verify_failed(struct verify *v, int r, const char *what)
{
	if (r >= 0)
		return 0;
	if (r == -ENOMEM || r == -EINTR || r == ERR_SNAPSHOT_EXPIRED)
		return r;
	verify_fault(v, "%s: %s", what, err_text(r));
	err_forget();
	return 0;
}

int verify_tick(struct verify *v)
{
	FAILPOINT_RETURN(VERIFY_TICK);
	if (verify_is_expired(v))
		return verify_expired(v);
	return v->options->tick && ++v->ticks % 1024 == 0 ? v->options->tick(v->options->tick_arg)
							  : 0;
}

/* ---- feeds -------------------------------------------------------------- */

struct verify_feed *verify_feed(struct verify *v, uint32_t id)
{
	return ARRAY_FIND(v->feeds, v->n_feeds, .id, id);
}

bool verify_wants(const struct verify *v, uint32_t feed)
{
	bool wanted = !v->options->feed;

	for (size_t i = 0; i < v->n_chosen; i++)
		wanted |= v->chosen[i].definition.id == feed;
	return wanted;
}

int verify_feed_add(struct verify *v, uint32_t id, struct verify_feed **ret_feed)
{
	size_t i = ARRAY_PLACE(v->feeds, v->n_feeds, .id, id);

	bool is_there = i < v->n_feeds && v->feeds[i].id == id;
	int r = is_there ? 0
			 : ARRAY_INSERT(v->feeds, v->n_feeds, v->feeds_room, i,
				   (struct verify_feed){.id = id}, "the feeds to verify");
	if (r < 0)
		return r;
	*ret_feed = &v->feeds[i];
	return 0;
}

/* ---- the store ---------------------------------------------------------- */

static int verify_parts(struct verify *v)
{
	int r = v->snapshot && v->options->feed
			? snapshot_feeds(v->snapshot, v->options->feed, &v->chosen, &v->n_chosen)
			: 0;

	if (r == 0)
		r = verify_journal(v);
	if (r < 0 || !v->snapshot)
		return r;
	v->report.has_index = true;
	r = verify_index(v);
	for (size_t i = 0; i < v->n_feeds; i++)
		v->feeds[i].compared = verify_wants(v, v->feeds[i].id);
	if (r == 0 && !v->index_is_broken)
		r = verify_state(v);
	if (r == 0 && v->options->deep && !v->index_is_broken)
		r = verify_terms(v);
	return r;
}

static int verify_all(struct verify *v)
{
	int r = verify_parts(v);

	return verify_is_expired(v) ? verify_expired(v) : r;
}

/* Checks journal and index in one snapshot. Returns AGAIN if there is no index. */
static int verify_in_snapshot(struct verify *v, const char *directory)
{
	CLEANUP(store_close) struct store *store = NULL;
	CLEANUP(snapshot_close) struct snapshot *snapshot = NULL;
	int r = store_open(directory, &(struct store_options){.unchecked = true}, &store);

	if (r == 0)
		r = snapshot_open(store, &snapshot);
	if ((r == AGAIN && store_is_copy(store)) || (r == 0 && snapshot_is_torn(snapshot))) {
		char mismatch[STORE_MISMATCH_SIZE];

		store_mismatch(store, mismatch, sizeof(mismatch));
		if (*mismatch) /* no daemon is about to make another index */
			verify_fault(v, "index: %s", mismatch);
	}
	if (r != 0)
		return r;
	v->snapshot = snapshot;
	v->journal = snapshot_journal(snapshot);
	v->journal_txn = snapshot_journal_txn(snapshot);
	r = verify_all(v);
	v->snapshot = NULL;
	v->journal = NULL;
	v->journal_txn = NULL;
	if (r == 0)
		r = verify_failed(v, snapshot_reset(snapshot), "store");
	return r;
}

static void verify_release(struct verify *v)
{
	free(v->feeds);
	free(v->versions);
	free(v->terms);
	free(v->chosen);
}

/* Checks the journal's CURRENT: only the reflector opens the journal by it, readers by the
 * index. */
static int verify_current(struct verify *v, const struct home *home)
{
	uint32_t number = 0;
	uint8_t uuid[16];
	int r = generation_current(home_journal_fd(home), &number);

	if (r == FOUND)
		r = generation_read_uuid(home_journal_fd(home), number, uuid);
	if (r == NOT_FOUND)
		verify_fault(v, "journal: CURRENT is missing: the reflector lists everything when "
				"it is started");
	if (r == -ENOENT) {
		err_ignore(r, "a journal that takes its place has another number");
		return 0;
	}
	return verify_failed(v, r, "journal");
}

/* The journal can't be opened: reports its remaining records. */
static int verify_salvage(struct verify *v, const struct home *home)
{
	CLEANUP(salvage_close) struct salvage *salvage = NULL;
	char text[SALVAGE_TEXT_SIZE];
	int r = v->options->salvage ? salvage_open(home, &salvage) : NOT_FOUND;

	if (r != FOUND)
		return verify_failed(v, r, "journal");
	v->report.records = salvage_records(salvage);
	salvage_describe(salvage, text);
	verify_fault(v, "journal: %s: 'kinf dump journal' prints those that are there", text);
	return 0;
}

/* Checks the journal alone, because no snapshot of the store could be opened: for the reason
 * WHY, or because there is no index. */
static int verify_without_index(struct verify *v, struct home *home, const struct err_kept *why)
{
	int r = journal_open_read(home, NULL, &v->journal);

	if (why->code < 0 &&
		(r == 0 ||
			!strstr(why->text, err_text(r)))) /* else it says the same of the journal */
		verify_fault(v, "store: %s", why->text);
	if (r == 0)
		r = txn_begin_read(journal_env(v->journal), &v->journal_txn);
	if (r == 0)
		r = verify_all(v);
	else if (r != ERR_NO_STORE) {
		r = verify_failed(v, r, "journal");
		if (r == 0)
			r = verify_salvage(v, home);
	}
	txn_abort(&v->journal_txn);
	journal_close(&v->journal);
	return r;
}

int verify_store(const char *directory, const struct verify_options *options,
	struct verify_report *ret_report)
{
	CLEANUP(home_close) struct home *home = NULL;
	CLEANUP(verify_release) struct verify v = {.options = options};
	struct home_options how = {.unchecked = true};
	struct err_kept why = {.code = 0};
	int r = home_open(directory, &how, &home);

	if (r < 0)
		return r;
	r = verify_in_snapshot(&v, directory);
	if (r == AGAIN && options->feed)
		return err_say(
			ERR_NO_FEED, "there is no index yet to look '%s' up in", options->feed);
	/* All others mean a store unreadable now, not a bad one. */
	if (r < 0 && r != ERR_CORRUPT && r != ERR_FORMAT && r != ERR_UNTRUSTED && r != -EIO &&
		r != -ENOENT)
		return r;
	if (r < 0)
		err_keep(&why);
	err_ignore(r < 0 ? r : 0, "the journal is checked by itself");
	r = r != 0 ? verify_without_index(&v, home, &why) : verify_current(&v, home);
	*ret_report = v.report;
	return r;
}
