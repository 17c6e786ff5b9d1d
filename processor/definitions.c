/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/definitions.h"

#include <errno.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"

#define DEFINITIONS_MAGIC 0x4445464eu
#define SLICE             1024 /* objects or entries between two batches: some ten milliseconds */

struct definitions {
	uint32_t magic;
	bool pending; /* there may be something to fill or to drop */
	const struct processor *p;
	struct journal *journal;
	struct index *index;
	struct apply *apply;
	struct txn *journal_txn; /* of the running slice */
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

/* ---- what is wanted ---- */

static const struct config_feed *configured(
	const struct config *config, const struct feed_definition *d)
{
	return config ? config_find_feed(config, d->name, d->group, d->version, d->resource) : NULL;
}

static int wanted_index(
	const struct config_index *index, uint32_t feed, definition_wanted_fn *fn, void *arg)
{
	CLEANUP(buf_release) struct buf paths = BUF_INIT;

	for (size_t i = 0; i < index->n_paths; i++) {
		if (i)
			buf_byte(&paths, '\n');
		buf_str(&paths, index->paths[i]);
	}
	const char *text = buf_cstr(&paths);
	int r = buf_error(&paths);
	return r < 0 ? r : fn(arg, feed, index->name, text);
}

int definitions_wanted(const struct config *config, const struct feed_definition *of,
	definition_wanted_fn *fn, void *arg)
{
	const struct config_feed *entry = configured(config, of);
	uint32_t feed = of->id;
	int r = fn(arg, feed, INDEX_NAMESPACE, "");

	if (!r)
		r = fn(arg, feed, INDEX_LABEL, "");
	for (size_t i = 0; !r && entry && i < entry->n_indexes; i++)
		r = wanted_index(&entry->indexes[i], feed, fn, arg);
	return r;
}

/* ---- what is there, compared ---- */

struct have {
	uint32_t id, feed;
	bool wanted, dropping;
	char *name, *paths;
};

struct missing {
	uint32_t feed;
	char *name, *paths;
};

struct comparison {
	struct definitions *d;
	struct txn *txn; /* of the index, for reading */
	struct have *have;
	size_t n_have;
	struct missing *missing;
	size_t n_missing;
};

static void comparison_release(struct comparison *c)
{
	for (size_t i = 0; i < c->n_have; i++) {
		free(c->have[i].name);
		free(c->have[i].paths);
	}
	for (size_t i = 0; i < c->n_missing; i++) {
		free(c->missing[i].name);
		free(c->missing[i].paths);
	}
	free(c->have);
	free(c->missing);
	txn_abort(&c->txn);
}

static int note_have(void *arg, const struct index_definition *definition)
{
	struct comparison *c = arg;
	struct have *have = reallocarray(c->have, c->n_have + 1, sizeof(*have));
	if (!have)
		return err_set(-ENOMEM, "index definitions");
	c->have = have;
	have = &have[c->n_have];
	*have = (struct have){.id = definition->id,
		.feed = definition->feed,
		.dropping = definition->dropping,
		.wanted = true,
		.name = strdup(definition->name),
		.paths = strdup(definition->paths)};
	c->n_have++;
	c->d->pending |= definition->dropping || definition->filled != INDEX_READY;
	return have->name && have->paths ? 0 : err_set(-ENOMEM, "index definitions");
}

static int note_wanted(void *arg, uint32_t feed, const char *name, const char *paths)
{
	struct comparison *c = arg;

	for (size_t i = 0; i < c->n_have; i++) {
		struct have *have = &c->have[i];
		if (have->feed == feed && !have->dropping && !strcmp(have->name, name) &&
			!strcmp(have->paths, paths)) {
			have->wanted = true;
			return 0;
		}
	}
	struct missing *missing = reallocarray(c->missing, c->n_missing + 1, sizeof(*missing));
	if (!missing)
		return err_set(-ENOMEM, "index definitions");
	c->missing = missing;
	missing = &missing[c->n_missing++];
	*missing = (struct missing){feed, strdup(name), strdup(paths)};
	return missing->name && missing->paths ? 0 : err_set(-ENOMEM, "index definitions");
}

/* Only feeds of the configuration are compared: one that is no longer in it keeps what it has until
 * the reflector removes it. */
static int compare_feed(void *arg, const struct feed_definition *definition,
	const struct feed_checkpoint *checkpoint)
{
	struct comparison *c = arg;
	struct index_feed row;

	(void)checkpoint;
	int r = index_feed(c->d->index, c->txn, definition->id, &row);
	if (r == NOT_FOUND || (!r && row.removed)) {
		c->d->pending |= r == 0;
		return 0;
	}
	if (r || !configured(c->d->p->config, definition))
		return r;
	for (size_t i = 0; i < c->n_have; i++)
		if (c->have[i].feed == definition->id)
			c->have[i].wanted = false;
	return definitions_wanted(c->d->p->config, definition, note_wanted, c);
}

static int compare(struct definitions *d, struct txn *journal_txn, struct comparison *c)
{
	int r = txn_begin_read(index_env(d->index), &c->txn);

	if (!r)
		r = index_each_definition(d->index, c->txn, 0, note_have, c);
	if (!r)
		r = journal_each_feed(d->journal, journal_txn, compare_feed, c);
	return r;
}

/* Marking what is dropped comes first: the new one may have its name. */
static int change(struct definitions *d, const struct comparison *c)
{
	int n = 0, r = index_begin(d->index);

	for (size_t i = 0; r >= 0 && i < c->n_have; i++)
		if (!c->have[i].wanted && !c->have[i].dropping) {
			r = index_undefine(d->index, c->have[i].id, 1);
			n++;
		}
	for (size_t i = 0; r >= 0 && i < c->n_missing; i++) {
		const struct missing *missing = &c->missing[i];
		uint32_t id;
		r = index_define(d->index, missing->feed, missing->name, missing->paths, &id);
		n++;
	}
	if (r >= 0 && n)
		r = index_commit(d->index);
	else
		index_abort(d->index);
	if (n) {
		apply_forget(d->apply);
		d->pending = true;
	}
	return r < 0 ? r : n;
}

static bool differs(const struct comparison *c)
{
	for (size_t i = 0; i < c->n_have; i++)
		if (!c->have[i].wanted && !c->have[i].dropping)
			return true;
	return c->n_missing > 0;
}

int definitions_sync(struct definitions *d, struct intake *intake)
{
	CHECK_OBJ(d, DEFINITIONS_MAGIC);
	CLEANUP(comparison_release) struct comparison c = {.d = d};
	struct txn *txn;
	int r = intake_view(intake, &txn);

	if (!r)
		r = compare(d, txn, &c);
	txn_abort(&c.txn); /* before the writing one: nothing of it is needed any more */
	if (!r && differs(&c))
		r = change(d, &c);
	return r < 0 ? err_add(r, "index definitions") : r;
}

/* ---- work in slices ---- */

struct task {
	uint32_t remove_feed; /* 0: none */
	uint32_t drop;
	uint32_t fill;
};

static int find_removed(void *arg, const struct index_feed *row)
{
	struct task *task = arg;

	if (row->removed)
		task->remove_feed = row->feed;
	return row->removed ? END : 0;
}

static int find_definition(void *arg, const struct index_definition *definition)
{
	struct task *task = arg;

	if (definition->dropping)
		task->drop = definition->id;
	else if (definition->filled != INDEX_READY)
		task->fill = definition->id;
	return task->drop || task->fill ? END : 0;
}

static int fill_terms(void *arg, const struct index_entry *entry, uint32_t feed, struct bytes key,
	const struct index_term **ret_terms, size_t *ret_n)
{
	struct definitions *d = arg;
	const struct term_list *list;
	struct record record;
	int r = journal_get(d->journal, d->journal_txn, entry->seq, &record);

	if (r == NOT_FOUND || (!r && (record.feed != feed || !bytes_equal(record.key, key))))
		return err_set(ERR_CORRUPT, "the index holds seq %llu, the journal does not",
			(unsigned long long)entry->seq);
	if (!r)
		r = apply_terms(d->apply, &record, &list);
	if (r)
		return r;
	stats_add(d->p->stats, STAT_BACKFILLED, 1);
	*ret_terms = list->terms;
	*ret_n = list->n;
	return 0;
}

static int do_slice(struct definitions *d, const struct task *task)
{
	FAILPOINT_RETURN(INDEX_BACKFILL);
	if (task->remove_feed)
		return index_feed_drop(d->index, task->remove_feed, SLICE);
	if (task->drop)
		return index_undefine(d->index, task->drop, SLICE);
	return index_backfill(d->index, task->fill, SLICE, fill_terms, d);
}

/* Inside a transaction; 0 with an empty task: nothing to do. */
static int find_task(struct definitions *d, struct task *task)
{
	struct txn *txn = index_txn(d->index);
	int r = index_each_feed(d->index, txn, find_removed, task);

	if (!r)
		r = index_each_definition(d->index, txn, 0, find_definition, task);
	return r < 0 ? r : 0;
}

static int work(struct definitions *d)
{
	struct task task = {0};
	int r = find_task(d, &task);

	if (r < 0)
		return r;
	d->pending = task.remove_feed || task.drop || task.fill;
	if (!d->pending)
		return 0;
	r = do_slice(d, &task);
	if (r < 0)
		return r;
	int committed = index_commit(d->index);
	if (committed < 0)
		return committed;
	if (r != AGAIN)
		apply_forget(d->apply); /* a definition is ready, or gone */
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
		r = work(d);
	index_abort(d->index);
	d->journal_txn = NULL;
	return r < 0 ? err_add(r, "filling or dropping an index") : r;
}
