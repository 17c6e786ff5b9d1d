/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feeds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "reflector/batch.h"
#include "reflector/definition.h"
#include "reflector/entry.h"

#define FEEDS_MAGIC   0x46454453u
#define LISTS_AT_ONCE 4
#define SECOND        1000000000ull
#define PAGE_SIZE     500 /* of what nobody wants any more */
#define RETRY_FIRST   SECOND
#define RETRY_SLOW    (30 * SECOND)

/* One that the configuration wants. */
struct wanted {
	struct entry entry;
	bool verified;  /* discovery has said what it is */
	bool said;      /* that it can't be resolved */
	uint64_t ask_ns; /* not before; UINT64_MAX: discovery is being asked */
	uint64_t pause_ns;
	bool renamed; /* in the open transaction: the runner has the name once that is committed */
	struct runner *runner; /* NULL: not in the journal yet */
};

/* One that it does not want any more. It works on until what replaces it has been listed. */
struct unwanted {
	struct runner *runner;
	bool removed; /* in the open transaction */
};

struct feeds {
	uint32_t magic;
	bool started;
	struct journal *journal;
	struct runner_shared shared;
	struct wanted *wanted;
	size_t n_wanted;
	struct unwanted *unwanted;
	size_t n_unwanted;
};

/* ---- the journal's feeds ---- */

static int add_unwanted(struct feeds *feeds, struct runner *runner)
{
	struct unwanted *grown = realloc(feeds->unwanted, (feeds->n_unwanted + 1) * sizeof(*grown));

	if (!grown)
		return err_set(-ENOMEM, "feeds");
	feeds->unwanted = grown;
	grown[feeds->n_unwanted++] = (struct unwanted){.runner = runner};
	return 0;
}

static struct runner *take_unwanted(struct feeds *feeds, size_t i)
{
	struct runner *runner = feeds->unwanted[i].runner;

	feeds->unwanted[i] = feeds->unwanted[--feeds->n_unwanted];
	return runner;
}

struct load {
	struct feeds *feeds;
	int result;
};

/* At first nobody wants any of them; feeds_configure then takes what is meant. */
static int load_feed(void *arg, const struct feed_definition *definition,
	const struct feed_checkpoint *checkpoint)
{
	struct load *load = arg;
	CLEANUP(runner_free) struct runner *runner = NULL;

	if (checkpoint->phase == FEED_REMOVED)
		return 0;
	load->result = runner_new(&load->feeds->shared, definition, checkpoint, PAGE_SIZE, &runner);
	if (load->result >= 0)
		load->result = add_unwanted(load->feeds, runner);
	if (load->result >= 0)
		runner = NULL;
	return load->result < 0;
}

static int load_feeds(struct feeds *feeds)
{
	struct load load = {.feeds = feeds};
	struct txn *txn;
	int r = txn_begin_read(journal_env(feeds->journal), &txn);

	if (r < 0)
		return r;
	r = journal_each_feed(feeds->journal, txn, load_feed, &load);
	txn_abort(&txn);
	return r < 0 ? r : load.result;
}

static int append_removed(struct feeds *feeds, struct unwanted *unwanted)
{
	const struct feed_definition *d = runner_definition(unwanted->runner);
	struct record record = {.feed = d->id, .type = RECORD_FEED_REMOVED};
	uint64_t seq;

	log_event(LOG_NOTICE, "feed", "removed", "feed=%s id=%u", log_quote(d->name), d->id);
	unwanted->removed = true;
	return recorder_append(feeds->shared.recorder, &record, &seq);
}

/* ---- replacing ---- */

/* Every feed that is to stand for this name has been listed; so too when none is wanted any more. */
static bool is_name_ready(const struct feeds *feeds, const char *stored)
{
	for (size_t i = 0; i < feeds->n_wanted; i++) {
		const struct wanted *w = &feeds->wanted[i];

		if (entry_is_named(stored, w->entry.name) &&
			(!w->runner || !runner_is_listed(w->runner)))
			return false;
	}
	return true;
}

static bool has_old_of(const struct feeds *feeds, const char *name)
{
	for (size_t i = 0; i < feeds->n_unwanted; i++)
		if (!feeds->unwanted[i].removed &&
			entry_is_named(runner_definition(feeds->unwanted[i].runner)->name, name))
			return true;
	return false;
}

/* In the open transaction: old feeds of names that are ready go, and the new ones get the names. */
static int replace_ready(struct feeds *feeds)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < feeds->n_unwanted; i++) {
		struct unwanted *u = &feeds->unwanted[i];

		if (!u->removed && is_name_ready(feeds, runner_definition(u->runner)->name))
			r = append_removed(feeds, u);
	}
	for (size_t i = 0; r >= 0 && i < feeds->n_wanted; i++) {
		struct wanted *w = &feeds->wanted[i];
		const struct feed_definition *d = w->runner ? runner_definition(w->runner) : NULL;

		if (!d || w->renamed || !strcmp(d->name, w->entry.name) ||
			has_old_of(feeds, w->entry.name))
			continue;
		r = recorder_begin(feeds->shared.recorder);
		if (r >= 0)
			r = journal_rename_feed(feeds->journal, d->id, w->entry.name);
		if (r < 0)
			return recorder_fail(feeds->shared.recorder, r);
		recorder_changed(feeds->shared.recorder);
		w->renamed = true;
	}
	return r;
}

static int on_list_end(void *arg, struct runner *runner)
{
	struct feeds *feeds = arg;

	(void)runner; /* it counts as listed already */
	return replace_ready(feeds);
}

static bool has_replacing(const struct feeds *feeds)
{
	for (size_t i = 0; i < feeds->n_unwanted; i++)
		if (!feeds->unwanted[i].removed &&
			is_name_ready(feeds, runner_definition(feeds->unwanted[i].runner)->name))
			return true;
	return false;
}

/* ---- configuration ---- */

static void release_wanted(struct wanted *wanted, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		entry_release(&wanted[i].entry);
		runner_free(&wanted[i].runner);
	}
	free(wanted);
}

static int read_entries(const struct config *config, struct wanted **ret_wanted, size_t *ret_n)
{
	struct wanted *wanted = NULL;
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < config->n_feeds; i++) {
		const struct config_feed *feed = &config->feeds[i];
		size_t places = feed->n_namespaces ? feed->n_namespaces : 1;

		for (size_t j = 0; r >= 0 && j < places; j++) {
			struct wanted *grown = realloc(wanted, (n + 1) * sizeof(*grown));

			if (!grown) {
				r = err_set(-ENOMEM, "feeds");
				break;
			}
			wanted = grown;
			wanted[n] = (struct wanted){.pause_ns = RETRY_FIRST};
			r = entry_init(feed, j, &wanted[n++].entry);
		}
	}
	if (r < 0) {
		release_wanted(wanted, n);
		return r;
	}
	*ret_wanted = wanted;
	*ret_n = n;
	return 0;
}

/* What is wanted still, and was, goes on as it is. */
static void keep_same(struct feeds *feeds, struct wanted *wanted, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < feeds->n_wanted; j++) {
			struct wanted *was = &feeds->wanted[j];

			if (!was->runner || !entry_same(&was->entry, &wanted[i].entry))
				continue;
			wanted[i].verified = was->verified;
			wanted[i].runner = TAKE(was->runner);
			break;
		}
	}
}

static void take_meant(struct feeds *feeds)
{
	for (size_t i = 0; i < feeds->n_wanted; i++) {
		struct wanted *w = &feeds->wanted[i];

		for (size_t j = 0; !w->runner && j < feeds->n_unwanted; j++)
			if (entry_means(&w->entry, runner_definition(feeds->unwanted[j].runner)))
				w->runner = take_unwanted(feeds, j);
	}
}

int feeds_configure(struct feeds *feeds, const struct config *config)
{
	struct wanted *wanted;
	size_t n;
	int r = read_entries(config, &wanted, &n);

	CHECK_OBJ(feeds, FEEDS_MAGIC);
	if (r < 0)
		return r;
	keep_same(feeds, wanted, n);
	for (size_t i = 0; r >= 0 && i < feeds->n_wanted; i++) {
		if (!feeds->wanted[i].runner)
			continue;
		r = add_unwanted(feeds, feeds->wanted[i].runner);
		if (r >= 0)
			feeds->wanted[i].runner = NULL;
	}
	release_wanted(feeds->wanted, feeds->n_wanted);
	feeds->wanted = wanted;
	feeds->n_wanted = n;
	take_meant(feeds);
	for (size_t i = 0; i < n; i++)
		if (wanted[i].runner)
			runner_set_page_size(wanted[i].runner, wanted[i].entry.page_size);
	return r;
}

/* ---- discovery ---- */

static int add_feed(struct feeds *feeds, struct wanted *w, struct feed_definition *definition)
{
	struct recorder *recorder = feeds->shared.recorder;
	struct feed_checkpoint checkpoint = {.phase = FEED_LISTING};
	struct journal_meta meta;
	char next[512];

	snprintf(next, sizeof(next), "%s" ENTRY_NEXT, w->entry.name);
	if (has_old_of(feeds, w->entry.name))
		definition->name = next;
	int r = recorder_begin(recorder);
	if (r >= 0)
		r = journal_meta(feeds->journal, journal_txn(feeds->journal), &meta);
	if (r >= 0)
		r = journal_add_feed(feeds->journal, definition, &definition->id);
	if (r < 0)
		return recorder_fail(recorder, r);
	r = recorder_publish_from(recorder, meta.next_seq);
	/* On its own: what follows goes back to a checkpoint that must be there. */
	if (r >= 0)
		r = recorder_flush(recorder);
	if (r >= 0)
		r = runner_new(&feeds->shared, definition, &checkpoint, w->entry.page_size, &w->runner);
	if (r < 0)
		return r;
	log_event(LOG_NOTICE, "feed", "added", "feed=%s id=%u resource=%s group=%s version=%s",
		log_quote(definition->name), definition->id, definition->resource,
		*definition->group ? definition->group : "core", definition->version);
	if (feeds->started)
		runner_start(w->runner);
	return 0;
}

/* The entry is known to mean DEFINITION: go on with what it has, take what is there, or add it. */
static int settle(struct feeds *feeds, struct wanted *w, struct feed_definition *definition)
{
	if (w->runner && definition_same(runner_definition(w->runner), definition))
		return 0;
	if (w->runner) {
		int r = add_unwanted(feeds, w->runner);

		if (r < 0)
			return r;
		w->runner = NULL;
	}
	for (size_t i = 0; i < feeds->n_unwanted; i++) {
		if (!feeds->unwanted[i].removed &&
			definition_same(runner_definition(feeds->unwanted[i].runner), definition)) {
			w->runner = take_unwanted(feeds, i);
			runner_set_page_size(w->runner, w->entry.page_size);
			return 0;
		}
	}
	return add_feed(feeds, w, definition);
}

/* Not at once; longer each time, where what is wrong may pass. */
static void ask_later(struct wanted *w, bool passing, const char *why)
{
	w->ask_ns = proc_monotonic_ns() + (passing ? w->pause_ns : RETRY_SLOW);
	w->pause_ns = w->pause_ns * 2 < RETRY_SLOW ? w->pause_ns * 2 : RETRY_SLOW;
	if (!w->said)
		log_event(LOG_WARNING, "feed", "unresolved", "feed=%s resource=%s error=%s",
			log_quote(w->entry.name), log_quote(w->entry.resource), log_quote(why));
	w->said = true;
}

/* Errors are the journal's. */
static int resolve(struct feeds *feeds, struct wanted *w)
{
	struct resource resource;
	struct feed_definition definition;
	int r = discovery_find(feeds->shared.discovery, w->entry.resource, &resource);

	if (r == AGAIN) {
		w->ask_ns = UINT64_MAX;
		return 0;
	}
	if (r == FOUND)
		r = entry_define(&w->entry, &resource, &definition);
	if (r < 0) {
		/* What has a runner goes on with what was known. */
		ask_later(w, r == ERR_NETWORK || r == ERR_TIMEOUT || r == ERR_TLS, err_text(r));
		return 0;
	}
	w->said = false;
	w->pause_ns = RETRY_FIRST;
	int settled = settle(feeds, w, &definition);
	/* A batch that failed took the new feed with it: once more, when there is room again. */
	w->verified = settled >= 0;
	return settled;
}

static int resolve_due(struct feeds *feeds)
{
	uint64_t now = proc_monotonic_ns();
	int r = 0;

	for (size_t i = 0; r >= 0 && i < feeds->n_wanted; i++)
		if (!feeds->wanted[i].verified && feeds->wanted[i].ask_ns <= now)
			r = resolve(feeds, &feeds->wanted[i]);
	return r;
}

int feeds_discovered(struct feeds *feeds, int result)
{
	CHECK_OBJ(feeds, FEEDS_MAGIC);
	for (size_t i = 0; i < feeds->n_wanted; i++) {
		struct wanted *w = &feeds->wanted[i];

		if (w->verified || w->ask_ns != UINT64_MAX)
			continue;
		w->ask_ns = 0;
		if (result < 0)
			ask_later(w, true, err_text(result));
	}
	for (size_t i = 0; i < feeds->n_wanted; i++)
		if (feeds->wanted[i].runner)
			runner_discovered(feeds->wanted[i].runner, result);
	for (size_t i = 0; i < feeds->n_unwanted; i++)
		runner_discovered(feeds->unwanted[i].runner, result);
	return 0;
}

void feeds_doubt(struct feeds *feeds)
{
	for (size_t i = 0; i < feeds->n_wanted; i++) {
		if (!feeds->wanted[i].verified)
			continue;
		feeds->wanted[i].verified = false;
		feeds->wanted[i].ask_ns = proc_monotonic_ns() + RETRY_FIRST;
	}
}

/* ---- all of them ---- */

int feeds_new(struct journal *journal, const struct runner_shared *shared,
	struct feeds **ret_feeds)
{
	CLEANUP(feeds_free) struct feeds *feeds = calloc(1, sizeof(*feeds));

	if (!feeds)
		return err_set(-ENOMEM, "feeds");
	feeds->magic = FEEDS_MAGIC;
	feeds->journal = journal;
	feeds->shared = *shared;
	feeds->shared.on_list_end = on_list_end;
	feeds->shared.list_arg = feeds;
	int r = load_feeds(feeds);
	if (r < 0)
		return r;
	*ret_feeds = TAKE(feeds);
	return 0;
}

void feeds_free(struct feeds **feeds)
{
	struct feeds *f = *feeds;

	if (!f)
		return;
	CHECK_OBJ(f, FEEDS_MAGIC);
	release_wanted(f->wanted, f->n_wanted);
	for (size_t i = 0; i < f->n_unwanted; i++)
		runner_free(&f->unwanted[i].runner);
	free(f->unwanted);
	f->magic = 0;
	free(f);
	*feeds = NULL;
}

typedef int each_fn(struct feeds *feeds, struct runner *runner, void *arg);

/* Calls FN for each runner that is not about to go; stops at the first error. AGAIN of one is AGAIN
 * of all. */
static int each(struct feeds *feeds, each_fn *fn, void *arg)
{
	int result = 0;

	for (size_t i = 0; i < feeds->n_wanted + feeds->n_unwanted; i++) {
		const struct unwanted *u = i < feeds->n_wanted ? NULL
			: &feeds->unwanted[i - feeds->n_wanted];
		struct runner *runner = u ? u->runner : feeds->wanted[i].runner;

		if (!runner || (u && u->removed))
			continue;
		int r = fn(feeds, runner, arg);
		if (r < 0)
			return r;
		if (r == AGAIN)
			result = AGAIN;
	}
	return result;
}

static int start_one(struct feeds *feeds, struct runner *runner, void *arg)
{
	(void)feeds;
	(void)arg;
	runner_start(runner);
	return 0;
}

int feeds_start(struct feeds *feeds)
{
	CHECK_OBJ(feeds, FEEDS_MAGIC);
	if (feeds->started)
		return 0;
	feeds->started = true;
	return each(feeds, start_one, NULL);
}

/* Places among the lists: the one that has waited longest comes first. */
struct queue {
	size_t listing;
	struct runner *first;
};

static int look_at_queue(struct feeds *feeds, struct runner *runner, void *arg)
{
	struct queue *queue = arg;
	uint64_t queued = runner_queued(runner);

	(void)feeds;
	queue->listing += runner_is_listing(runner);
	if (queued && (!queue->first || queued < runner_queued(queue->first)))
		queue->first = runner;
	return 0;
}

static void grant_turns(struct feeds *feeds)
{
	for (;;) {
		struct queue queue = {0};

		(void)each(feeds, look_at_queue, &queue);
		if (!queue.first || queue.listing >= LISTS_AT_ONCE)
			return;
		runner_take_turn(queue.first);
	}
}

static int work_one(struct feeds *feeds, struct runner *runner, void *arg)
{
	(void)feeds;
	if (runner_until(runner) <= *(const uint64_t *)arg)
		runner_tick(runner);
	return runner_work(runner);
}

int feeds_work(struct feeds *feeds)
{
	uint64_t now = proc_monotonic_ns();

	CHECK_OBJ(feeds, FEEDS_MAGIC);
	if (!feeds->started)
		return 0;
	int r = resolve_due(feeds);
	int more = r < 0 ? r : each(feeds, work_one, &now);
	if (more >= 0 && has_replacing(feeds)) {
		r = replace_ready(feeds);
		more = r < 0 ? r : more;
	}
	if (more >= 0)
		grant_turns(feeds);
	return more;
}

static int until_one(struct feeds *feeds, struct runner *runner, void *arg)
{
	uint64_t *until = arg;

	(void)feeds;
	if (runner_until(runner) < *until)
		*until = runner_until(runner);
	return 0;
}

uint64_t feeds_until(const struct feeds *feeds)
{
	uint64_t until = UINT64_MAX;

	if (!feeds->started)
		return until;
	(void)each((struct feeds *)feeds, until_one, &until);
	for (size_t i = 0; i < feeds->n_wanted; i++)
		if (!feeds->wanted[i].verified && feeds->wanted[i].ask_ns < until)
			until = feeds->wanted[i].ask_ns;
	return until;
}

void feeds_committed(struct feeds *feeds)
{
	for (size_t i = 0; i < feeds->n_wanted; i++) {
		struct wanted *w = &feeds->wanted[i];

		/* Without memory for the name it is given once more. */
		if (w->renamed && runner_rename(w->runner, w->entry.name) < 0)
			err_clear();
		w->renamed = false;
	}
	for (size_t i = 0; i < feeds->n_unwanted;) {
		if (!feeds->unwanted[i].removed) {
			i++;
			continue;
		}
		struct runner *runner = take_unwanted(feeds, i);
		runner_free(&runner);
	}
}

static int rewind_one(struct feeds *feeds, struct runner *runner, void *arg)
{
	(void)feeds;
	return runner_rewind(runner, arg);
}

int feeds_rewind(struct feeds *feeds, const char *why)
{
	for (size_t i = 0; i < feeds->n_wanted; i++)
		feeds->wanted[i].renamed = false;
	for (size_t i = 0; i < feeds->n_unwanted; i++)
		feeds->unwanted[i].removed = false;
	int r = each(feeds, rewind_one, (void *)why);
	/* A full batch may have been committed between the removal and the failure. */
	for (size_t i = 0; i < feeds->n_unwanted; i++)
		feeds->unwanted[i].removed = runner_is_removed(feeds->unwanted[i].runner);
	return r;
}

static int resume_one(struct feeds *feeds, struct runner *runner, void *arg)
{
	(void)feeds;
	(void)arg;
	runner_resume(runner);
	return 0;
}

void feeds_resume(struct feeds *feeds)
{
	(void)each(feeds, resume_one, NULL);
}

static int abandon_one(struct feeds *feeds, struct runner *runner, void *arg)
{
	(void)feeds;
	return runner_abandon_old(runner, *(const uint64_t *)arg);
}

int feeds_abandon_old(struct feeds *feeds, uint64_t limit_ns)
{
	return each(feeds, abandon_one, &limit_ns);
}

static int begin_one(struct feeds *feeds, struct runner *runner, void *arg)
{
	uint64_t *begin = arg;

	(void)feeds;
	if (runner_list_begin(runner) < *begin)
		*begin = runner_list_begin(runner);
	return 0;
}

uint64_t feeds_list_begin(const struct feeds *feeds)
{
	uint64_t begin = UINT64_MAX;

	(void)each((struct feeds *)feeds, begin_one, &begin);
	return begin;
}

static int report_one(struct feeds *feeds, struct runner *runner, void *arg)
{
	(void)feeds;
	(void)arg;
	runner_report(runner);
	return 0;
}

void feeds_report(struct feeds *feeds)
{
	(void)each(feeds, report_one, NULL);
}

size_t feeds_count(const struct feeds *feeds)
{
	return feeds->n_wanted;
}
