/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/definitions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "processor/config_indexes.h"
#include "processor/filling.h"

#define DEFINITIONS_MAGIC 0x4445464eu
/* objects or entries between two batches: some ten milliseconds */
#define SLICE 1024
/* bytes of a slice of records outside of memory */
#define ANNOUNCED_MAX ((uint64_t)4 << 20)

/* The state that decides the wanted definitions. */
struct definitions_inputs {
	bool known;
	uint32_t config_version, feed_changes;
	uint64_t journal_txn, feeds_hash;
};

struct definitions {
	uint32_t magic;
	bool pending; /* there may be work: a definition to fill or drop, a removed feed */
	const struct processor *p;
	struct journal *journal;
	struct index *index;
	struct apply *apply;
	struct definitions_inputs compared; /* at the last comparison */
	struct txn *journal_txn;            /* of the running slice */
	uint64_t announced;                 /* bytes of its records */
	struct filling filling;
};

int definitions_new(const struct processor *p, struct journal *journal, struct index *index,
	struct apply *apply, struct definitions **ret_definitions)
{
	struct definitions *d = calloc(1, sizeof(*d));
	if (!d)
		return err_set(-ENOMEM, "index definitions");
	*d = (struct definitions){.magic = DEFINITIONS_MAGIC,
		.pending = true,
		.p = p,
		.journal = journal,
		.index = index,
		.apply = apply};
	*ret_definitions = d;
	return 0;
}

void definitions_free(struct definitions **definitions)
{
	struct definitions *d = TAKE(*definitions);

	if (!d)
		return;
	CHECK_OBJ(d, DEFINITIONS_MAGIC);
	d->magic = 0;
	free(d);
}

/* ---- the comparison of wanted and existing definitions ------------------ */

struct comparison {
	struct definitions *d;
	struct index_definition *held; /* by feed; the texts are the index's */
	size_t n, room;
	int changes;
};

static int definitions_by_feed(const void *a, const void *b)
{
	const struct index_definition *x = a, *y = b;

	return (x->feed > y->feed) - (x->feed < y->feed);
}

/* Compares a wanted definition with HELD. Returns: 1: they are the same. */
static int definitions_is_held(void *held, uint32_t feed, const char *name, const char *paths)
{
	const struct index_definition *h = held;

	return h->feed == feed && !h->dropping && !strcmp(h->name, name) &&
	       !strcmp(h->paths, paths);
}

static int definitions_want(void *arg, uint32_t feed, const char *name, const char *paths)
{
	struct comparison *c = arg;
	uint32_t id;

	for (size_t i = ARRAY_PLACE(c->held, c->n, .feed, feed);
		i < c->n && c->held[i].feed == feed; i++)
		if (definitions_is_held(&c->held[i], feed, name, paths))
			return 0;
	c->changes++;
	return index_define(c->d->index, feed, name, paths, &id);
}

/* Compares a feed of the configuration. A feed no longer in it keeps its definitions until the
 * reflector removes it. Dropping comes first: a new definition may take a dropped one's name. */
static int definitions_compare_feed(struct comparison *c, const struct feed_definition *of)
{
	struct definitions *d = c->d;
	const struct index_feed *row = index_feed_held(d->index, of->id);
	int r = 0;

	if (!row || row->removed || !config_indexes_entry(d->p->config, of))
		return 0;
	for (size_t i = ARRAY_PLACE(c->held, c->n, .feed, of->id);
		r >= 0 && i < c->n && c->held[i].feed == of->id; i++) {
		r = config_indexes_each(d->p->config, of, definitions_is_held, &c->held[i]);
		if (r != 0 || c->held[i].dropping)
			continue;
		c->held[i].dropping = true; /* its texts may go with it */
		c->changes++;
		r = index_undefine(d->index, c->held[i].id, 1);
	}
	return r < 0 ? r : config_indexes_each(d->p->config, of, definitions_want, c);
}

/* Defines and drops where the two differ, in one transaction. Returns the number of changes. */
static int definitions_compare(struct definitions *d, struct txn *journal_txn)
{
	struct comparison c = {.d = d};
	const struct index_definition *definition;
	CLEANUP(feed_walk_release) struct feed_walk walk = {d->journal, journal_txn};
	int r = index_begin(d->index);

	while (r == 0 && (definition = index_definition_held(d->index, c.n)))
		r = ARRAY_ADD(c.held, c.n, c.room, *definition, "the list of definitions");
	if (c.n)
		qsort(c.held, c.n, sizeof(*c.held), definitions_by_feed);
	while (r >= 0 && (r = feed_walk_next(&walk)) == FOUND)
		r = definitions_compare_feed(&c, &walk.definition);
	if (r >= 0 && c.changes)
		r = index_commit(d->index);
	index_abort(d->index);
	free(c.held);
	if (c.changes)
		apply_forget(d->apply);
	d->pending = true;
	return r < 0 ? r : c.changes;
}

int definitions_sync(struct definitions *d, struct intake *intake)
{
	CHECK_OBJ(d, DEFINITIONS_MAGIC);
	struct definitions_inputs now = {.known = true,
		.config_version = d->p->config_version,
		.feed_changes = apply_feed_changes(d->apply)};
	const struct definitions_inputs *last = &d->compared;
	struct txn *txn;
	int r = intake_view(intake, &txn);

	if (r < 0)
		return r;
	now.journal_txn = txn_id(txn);
	bool same = last->known && now.config_version == last->config_version &&
		    now.feed_changes == last->feed_changes;
	if (same && now.journal_txn == last->journal_txn)
		return 0;
	r = journal_definitions_hash(txn, &now.feeds_hash);
	if (!r && !(same && now.feeds_hash == last->feeds_hash))
		r = definitions_compare(d, txn);
	if (r < 0)
		return err_add(r, "index definitions");
	d->compared = now;
	return r;
}

/* ---- work in slices ----------------------------------------------------- */

static int definitions_terms(void *arg, const struct index_entry *entry, uint32_t feed,
	struct bytes key, const struct index_term **ret_terms, size_t *ret_n)
{
	struct definitions *d = arg;
	const struct term_list *list;
	struct record record;
	int r = journal_get(d->journal, d->journal_txn, entry->seq, &record);

	if (r == NOT_FOUND || (!r && (record.feed != feed || !bytes_equal(record.key, key))))
		return err_say(ERR_CORRUPT, "the index holds seq %" PRIu64 ", the journal does not",
			entry->seq);
	if (!r)
		r = apply_terms(d->apply, &record, &list);
	if (r)
		return r;
	stats_add(d->p->stats, STAT_BACKFILLED, 1);
	*ret_terms = list->terms;
	*ret_n = list->n;
	return 0;
}

static int definitions_announce(void *arg, const struct index_entry *entry)
{
	struct definitions *d = arg;

	d->announced += filling_announce(&d->filling, d->journal, d->journal_txn, entry->seq);
	return d->announced < ANNOUNCED_MAX ? 0 : END;
}

/* Fills a slice. An announced slice ends with the announced records. */
static int definitions_fill(struct definitions *d, uint32_t definition)
{
	size_t limit = SLICE;

	d->announced = 0;
	if (filling_look(&d->filling, d->journal, d->journal_txn)) {
		int r = index_each_unfilled(
			d->index, definition, SLICE, definitions_announce, d, &limit);
		if (r < 0)
			return r;
		ahead_send(&d->filling.ahead, d->journal_txn);
	}
	return index_backfill(d->index, definition, limit ? limit : 1, definitions_terms, d);
}

/* Does one slice of the first task, and commits it. AGAIN: there may be more. */
static int definitions_slice(struct definitions *d)
{
	struct index_task task = index_find_task(d->index);
	int r;

	d->pending = task.remove_feed || task.drop || task.fill;
	if (!d->pending) {
		d->filling = (struct filling){0};
		return 0;
	}
	r = failpoint_pass(FAILPOINT_INDEX_BACKFILL);
	if (r < 0)
		return r;
	r = task.remove_feed || task.drop ? index_drop_leftover(d->index, &task, SLICE)
					  : definitions_fill(d, task.fill);
	int committed = r < 0 ? r : index_commit(d->index);
	if (committed < 0)
		return committed;
	if (r != AGAIN)
		apply_forget(d->apply); /* a definition became ready, or is gone */
	return AGAIN;
}

int definitions_work(struct definitions *d, struct intake *intake)
{
	CHECK_OBJ(d, DEFINITIONS_MAGIC);
	if (!d->pending)
		return 0;
	int r = intake_view(intake, &d->journal_txn);
	if (!r)
		r = index_begin(d->index);
	if (!r)
		r = definitions_slice(d);
	index_abort(d->index);
	d->journal_txn = NULL;
	return r < 0 ? err_add(r, "filling or dropping an index") : r;
}

bool definitions_read_by_page(const struct definitions *definitions)
{
	CHECK_OBJ(definitions, DEFINITIONS_MAGIC);
	return definitions->filling.by_page;
}
