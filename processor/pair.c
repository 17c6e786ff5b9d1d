/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "processor/apply.h"
#include "processor/definitions.h"
#include "store/env/generation.h"
#include "store/ring/taken.h"

#define PAIR_MAGIC 0x50414952u

struct pair {
	uint32_t magic;
	bool published;  /* CURRENT names the index */
	bool wait_feeds; /* readers have an older pair and move when all feeds are listed here, */
	uint64_t waiting_ns; /* or the retention time after this (monotonic) */
	const struct processor *p;
	struct journal *journal;
	struct index *index;
	struct intake *intake;
	struct apply *apply;
	struct definitions *definitions;
	struct taken *word; /* NULL: it could not be made, and readers poll the index */
	bool word_warned;   /* of the missing word */
};

void pair_close(struct pair **pair_pointer)
{
	struct pair *pair = TAKE(*pair_pointer);

	if (!pair)
		return;
	CHECK_OBJ(pair, PAIR_MAGIC);
	taken_close(&pair->word);
	definitions_free(&pair->definitions);
	apply_free(&pair->apply);
	intake_free(&pair->intake);
	index_close(&pair->index);
	journal_close(&pair->journal);
	pair->magic = 0;
	free(pair);
}

struct env *pair_env(struct pair *pair)
{
	CHECK_OBJ(pair, PAIR_MAGIC);
	return index_env(pair->index);
}

struct env *pair_journal_env(struct pair *pair)
{
	CHECK_OBJ(pair, PAIR_MAGIC);
	return journal_env(pair->journal);
}

int pair_find_old_places(struct pair *pair)
{
	CHECK_OBJ(pair, PAIR_MAGIC);
	return index_find_old_places(pair->index, journal_generation(pair->journal));
}

const char *pair_state(const struct pair *pair)
{
	CHECK_OBJ(pair, PAIR_MAGIC);
	return pair->published ? "running" : "filling the index of a new journal";
}

bool pair_is_published(const struct pair *pair)
{
	CHECK_OBJ(pair, PAIR_MAGIC);
	return pair->published;
}

/* ---- which index goes with the journal ---------------------------------- */

static int pair_read_metas(
	struct pair *pair, struct index_meta *ret_index, struct journal_meta *ret_journal)
{
	CLEANUP(txn_abort) struct txn *index_view = NULL;
	CLEANUP(txn_abort) struct txn *journal_view = NULL;
	int r = txn_begin_read(index_env(pair->index), &index_view);

	if (!r)
		r = index_meta(pair->index, index_view, ret_index);
	if (!r)
		r = txn_begin_read(journal_env(pair->journal), &journal_view);
	return r ? r : journal_meta(pair->journal, journal_view, ret_journal);
}

/* Returns the reason why the index can't follow the journal; NULL: it can. */
static const char *pair_judge(
	const struct pair *pair, const struct index_meta *index, const struct journal_meta *journal)
{
	if (memcmp(index->journal, journal_uuid(pair->journal), 16) != 0)
		return "it belongs to another journal";
	if (index->building)
		return "it was never finished";
	if (journal->horizon > index->taken)
		return "the journal was trimmed beyond it";
	if (index->taken >= journal->next_seq)
		return "it is ahead of the journal";
	return NULL;
}

/* Returns true if an old index serves readers until the new one has all feeds: its journal can be
 * opened. An index of the same journal has the same seqs and is replaced at once. */
static bool pair_old_serves(const struct pair *pair, const struct index_meta *index)
{
	CLEANUP(journal_close) struct journal *old = NULL;

	if (memcmp(index->journal, journal_uuid(pair->journal), 16) == 0)
		return false;
	int r = journal_open_read(pair->p->home, index->journal, &old);
	err_ignore(r, "without its journal the old index is of no use to readers");
	return r == FOUND;
}

/* Opens the index of CURRENT. Returns: FOUND; NOT_FOUND: one must be built for REASON. */
static int pair_use_current(struct pair *pair, char *reason, size_t size)
{
	struct index_options options = {.map_bytes = pair->p->config->map_bytes};
	struct index_meta index;
	struct journal_meta journal;
	int r = index_open_write(pair->p->home, &options, &pair->index);

	if (r == FOUND)
		r = pair_read_metas(pair, &index, &journal);
	/* Locked: another program has its lock.mdb open. Readers of the old generation stay, new
	 * ones open the new one. */
	if (r == NOT_FOUND || r == ERR_CORRUPT || r == ERR_FORMAT || r == ERR_UNTRUSTED ||
		r == ERR_LOCKED || r == -EIO) {
		(void)snprintf(reason, size, "%s", r < 0 ? err_text(r) : "there is none");
		err_ignore(r < 0 ? r : 0, "another index is built");
		index_close(&pair->index);
		return NOT_FOUND;
	}
	if (r < 0)
		return r;
	const char *why = pair_judge(pair, &index, &journal);
	if (!why)
		return FOUND;
	(void)snprintf(reason, size, "%s", why);
	pair->wait_feeds = pair_old_serves(pair, &index);
	pair->waiting_ns = proc_monotonic_ns();
	index_close(&pair->index);
	return NOT_FOUND;
}

/* Removes the generations of killed builders, but not that of CURRENT: readers may use it. If
 * CURRENT is unreadable all stay until the next publication. */
static void pair_remove_leftovers(const struct processor *p)
{
	int fd = home_index_fd(p->home);
	uint32_t current;
	int r = generation_current(fd, &current);

	if (r >= 0)
		r = generation_remove_except(
			fd, &current, r == FOUND, home_replaced_files(p->home));
	if (r < 0 && !p->retrying)
		LOG(index_leftovers_kept, .error = err_text(r));
	err_ignore(r, "the next build of an index removes them");
}

/* Opens the index of CURRENT, or builds one. */
static int pair_open_index(struct pair *pair, const char *rebuild_reason)
{
	const struct processor *p = pair->p;
	struct index_options options = {.map_bytes = p->config->map_bytes};
	char reason[STATS_TEXT] = "";

	pair_remove_leftovers(p);
	(void)snprintf(reason, sizeof(reason), "%s", rebuild_reason ? rebuild_reason : "");
	int r = rebuild_reason ? NOT_FOUND : pair_use_current(pair, reason, sizeof(reason));
	pair->published = r == FOUND;
	if (r != NOT_FOUND)
		return r;
	if (p->retrying)
		LOG(index_building_again, .reason = reason);
	else
		LOG(index_building, .reason = reason);
	stats_set_state(p->stats, "building the index");
	r = rebuild(p, pair->journal, &options, &pair->index);
	if (r == ERR_CORRUPT) { /* an index is built from the journal alone */
		r = journal_note_damage(p->home);
		return err_say(
			r, "%s; the reflector begins another journal, and lists all", err_text(r));
	}
	if (r < 0)
		return r;
	LOG(index_built, .generation = index_generation(pair->index));
	return 0;
}

/* ---- when readers move to it -------------------------------------------- */

/* Makes the progress word unless it is there, and wakes readers: another index may be in use. */
static void pair_make_word(struct pair *pair)
{
	/* as a start: the pair is reopened after errors, and for another journal */
	static bool counted;
	struct home *home = pair->p->home;

	if (pair->word)
		return;
	int r = taken_create(home_runtime_fd(home), home_file_mode(home),
		intake_taken(pair->intake), !counted, &pair->word);

	counted |= r == 0;
	if (r == 0)
		home_guard_file(home, TAKEN_FILE);
	if (r == 0 && pair->word_warned)
		LOG(taken_word_recreated, .directory = home_runtime(home));
	if (r < 0 && !pair->word_warned)
		LOG(taken_word_missing, .error = err_text(r));
	pair->word_warned = r < 0;
	err_ignore(r, "readers poll the index, and the word is retried each second");
}

/* Counts the feeds of the new journal, and those that were listed once or can't be. */
static int pair_count_ready(struct pair *pair, size_t *ret_n, size_t *ret_ready)
{
	CLEANUP(feed_walk_release) struct feed_walk walk = {pair->journal};
	CLEANUP(txn_abort) struct txn *index_view = NULL;
	int r = intake_view(pair->intake, &walk.txn);

	*ret_n = *ret_ready = 0;
	if (!r)
		r = txn_begin_read(index_env(pair->index), &index_view);
	while (r >= 0 && (r = feed_walk_next(&walk)) == FOUND) {
		struct index_feed row = {0};

		if (walk.checkpoint.phase == FEED_REMOVED)
			continue;
		r = index_feed(pair->index, index_view, walk.definition.id, &row);
		bool failed = walk.checkpoint.phase == FEED_FORBIDDEN ||
			      walk.checkpoint.phase == FEED_GONE ||
			      walk.checkpoint.phase == FEED_ERROR;
		*ret_n += 1;
		*ret_ready += failed || (r == FOUND && row.listed);
	}
	return r < 0 ? r : 0;
}

/* Publishes the index as soon as all feeds are listed or have failed, or after the retention time:
 * until then readers see another cluster, or a state that etcd has left, and this journal is not
 * trimmed. */
static int pair_publish_when_ready(struct pair *pair)
{
	int r = 0;

	if (pair->wait_feeds) {
		uint64_t waited = proc_monotonic_ns() - pair->waiting_ns;
		size_t n, n_ready;
		r = pair_count_ready(pair, &n, &n_ready);
		if (r)
			return r;
		bool ready = n && n_ready == n;
		if (!ready && waited < pair->p->config->retention_ns)
			return 0;
		if (!ready)
			LOG(publish_timeout, .feeds_listed = n_ready, .feeds = n);
	}
	r = index_publish(pair->index, pair->p->home);
	if (r)
		return r;
	pair->published = true;
	LOG(index_published, .generation = index_generation(pair->index));
	stats_set_state(pair->p->stats, pair_state(pair));
	pair_make_word(pair);
	return 0;
}

/* ---- opening ------------------------------------------------------------ */

static int pair_open_work(struct pair *pair)
{
	struct index_meta index;
	struct journal_meta journal;
	int r = pair_read_metas(pair, &index, &journal);

	if (!r)
		r = intake_new(pair->p, pair->journal, index.taken, &pair->intake);
	if (!r)
		r = apply_new(pair->p, pair->journal, pair->index, &pair->apply);
	if (!r)
		r = definitions_new(
			pair->p, pair->journal, pair->index, pair->apply, &pair->definitions);
	if (!r && pair->published)
		pair_make_word(pair);
	else if (!r)
		r = pair_publish_when_ready(pair);
	if (pair->intake)
		intake_rest(pair->intake);
	return r;
}

int pair_open(const struct processor *p, const char *rebuild, struct pair **ret_pair)
{
	CLEANUP(pair_close) struct pair *pair = calloc(1, sizeof(*pair));
	if (!pair)
		return err_set(-ENOMEM, "opening the journal and its index");
	pair->magic = PAIR_MAGIC;
	pair->p = p;
	int r = journal_open_read(p->home, NULL, &pair->journal);

	if (r < 0 && p->once)
		return r;
	if (r == ERR_NO_STORE) {
		err_ignore(r, "the reflector makes the journal");
		return NOT_FOUND;
	}
	if (r == ERR_UNTRUSTED || r == ERR_FORMAT ||
		(p->patient && (r == ERR_CORRUPT || r == ERR_LOCKED || r == -ENOENT))) {
		err_ignore(r,
			"the reflector makes another journal, or opens this one, when it starts");
		return NOT_FOUND;
	}
	if (!r)
		r = pair_open_index(pair, rebuild);
	if (!r)
		r = pair_open_work(pair);
	if (r)
		return r;
	stats_set_state(p->stats, pair_state(pair));
	if (!p->retrying) /* else each attempt would log it; work_resumed reports success */
		LOG(journal_followed, .published = pair->published);
	*ret_pair = TAKE(pair);
	return 0;
}

/* ---- work --------------------------------------------------------------- */

int pair_step(struct pair *pair)
{
	CHECK_OBJ(pair, PAIR_MAGIC);
	int r = apply_batch(pair->apply, pair->intake);

	if (r < 0 || r == LAPPED)
		return r;
	if (r == FOUND && pair->word)
		taken_publish(pair->word, intake_taken(pair->intake));
	int more = definitions_work(pair->definitions, pair->intake);
	if (more >= 0 && !pair->published && r == AGAIN) {
		int published = pair_publish_when_ready(pair);
		more = published < 0 ? published : more;
	}
	intake_rest(pair->intake);
	/* Old versions of changed objects lie anywhere in the journal. */
	env_expect_random(journal_env(pair->journal),
		more == 0 ? pair->published : definitions_read_by_page(pair->definitions));
	return more < 0 ? more : more == AGAIN ? FOUND : r;
}

void pair_wait(struct pair *pair, int timeout_ms)
{
	CHECK_OBJ(pair, PAIR_MAGIC);
	(void)intake_wait(pair->intake, timeout_ms); /* the caller works again after any result */
}

int pair_check(struct pair *pair)
{
	CHECK_OBJ(pair, PAIR_MAGIC);
	int r = journal_check(pair->journal, pair->p->home);

	if (r == ERR_MOVED) {
		err_ignore(r, "the reflector has begun another journal, to be followed next");
		return GONE;
	}
	if (!r)
		r = index_check(pair->index, pair->p->home, pair->published);
	if (r)
		return r;
	if (pair->published)
		pair_make_word(pair);
	else /* pair_step() does it only when idle */
		r = pair_publish_when_ready(pair);
	if (!r)
		r = definitions_sync(pair->definitions, pair->intake);
	intake_rest(pair->intake);
	if (r > 0)
		LOG(index_definitions_changed, .changed = (uint64_t)r);
	return r < 0 ? r : 0;
}
