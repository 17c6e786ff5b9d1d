/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the feeds of a snapshot, all or by name. */
#include "store/read/snapshot.h"

#include <errno.h>
#include <stdlib.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"
#include "common/text/similar.h"
#include "store/read/snapshot_internal.h"

#define NAMES_MAX 10 /* in an error */

static void feeds_take_index(struct snapshot *snapshot, struct snapshot_feed *feed)
{
	const struct index_feed *row = snapshot_index_feed(snapshot, feed->definition.id);

	feed->index = row ? *row : (struct index_feed){0};
	feed->visible = snapshot_visible(snapshot, feed->definition.id);
}

static void feeds_collect_one(
	struct snapshot *snapshot, const struct feed_walk *walk, struct buf *rows, struct buf *text)
{
	struct snapshot_feed feed = {
		.definition = walk->definition, .checkpoint = walk->checkpoint};

	feeds_take_index(snapshot, &feed);
	for (size_t i = 0; i < FEED_TEXTS; i++) {
		const char *one = *feed_definition_text(&feed.definition, i);

		buf_put(text, one, strlen(one) + 1);
	}
	buf_bytes_put(text, feed.checkpoint.rv);
	buf_byte(text, '\0');
	buf_bytes_put(text, feed.checkpoint.trimmed_rv);
	buf_byte(text, '\0');
	buf_put(rows, &feed, sizeof(feed));
}

/* All feeds and their texts become one allocation, for the caller to free. */
static int feeds_collect(struct snapshot *snapshot, struct snapshot_feed **ret_feeds, size_t *ret_n)
{
	CLEANUP(feed_walk_release)
	struct feed_walk walk = {snapshot_journal(snapshot), snapshot_journal_txn(snapshot)};
	CLEANUP(buf_release) struct buf rows = BUF_INIT; /* struct snapshot_feed */
	/* each feed's texts and its checkpoint's RVs, each with a NUL */
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	int r;

	while ((r = feed_walk_next(&walk)) == FOUND)
		if (walk.checkpoint.phase != FEED_REMOVED)
			feeds_collect_one(snapshot, &walk, &rows, &text);
	if (r == END)
		r = buf_error(&rows);
	if (r == 0)
		r = buf_error(&text);
	if (r < 0)
		return r;
	size_t n = rows.size / sizeof(struct snapshot_feed);
	struct snapshot_feed *feeds = malloc(rows.size + text.size + 1);

	if (!feeds)
		return err_set(-ENOMEM, "reading %zu feeds", n);
	if (n) {
		memcpy(feeds, rows.data, rows.size);
		memcpy(feeds + n, text.data, text.size);
	}
	const char *p = (const char *)(feeds + n);
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < FEED_TEXTS; k++) {
			*feed_definition_text(&feeds[i].definition, k) = p;
			p += strlen(p) + 1;
		}
		feeds[i].checkpoint.rv.data = p;
		p += feeds[i].checkpoint.rv.size + 1;
		feeds[i].checkpoint.trimmed_rv.data = p;
		p += feeds[i].checkpoint.trimmed_rv.size + 1;
	}
	*ret_feeds = feeds;
	*ret_n = n;
	return 0;
}

/* ---- the same feeds later ------------------------------------------------ */

int snapshot_feeds_hash(struct snapshot *snapshot, uint64_t *ret_hash)
{
	const struct snapshot *s = snapshot_active(snapshot);
	struct bytes order;
	uint64_t hash;
	int r = journal_definitions_hash(s->journal_txn, &hash);

	if (r == 0)
		r = journal_order(s->pair->journal, s->journal_txn, &order);
	if (r < 0)
		return r;
	hash = hash_bytes(order, hash);
	for (size_t i = 0; i < s->n_feeds; i++)
		if (s->feeds[i].listed)
			hash = hash_bytes(BYTES(&s->feeds[i].feed, sizeof(s->feeds[i].feed)), hash);
	*ret_hash = hash;
	return 0;
}

int snapshot_feeds_renew(
	struct snapshot *snapshot, struct snapshot_feed *feeds, size_t n, struct buf *text)
{
	int r = 0;

	buf_reset(text);
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct feed_checkpoint *c = &feeds[i].checkpoint;

		r = journal_feed_checkpoint(snapshot_journal(snapshot),
			snapshot_journal_txn(snapshot), feeds[i].definition.id, c);
		if (r != FOUND)
			break;
		feeds_take_index(snapshot, &feeds[i]);
		buf_bytes_put(text, c->rv);
		buf_bytes_put(text, c->trimmed_rv);
	}
	if (r == NOT_FOUND)
		return err_say(ERR_CORRUPT, "a feed has no checkpoint");
	if (r == 0)
		r = buf_error(text);
	if (r < 0)
		return r;
	const uint8_t *p = text->data;
	for (size_t i = 0; i < n; i++) {
		feeds[i].checkpoint.rv.data = p;
		p += feeds[i].checkpoint.rv.size;
		feeds[i].checkpoint.trimmed_rv.data = p;
		p += feeds[i].checkpoint.trimmed_rv.size;
	}
	return 0;
}

/* ---- order -------------------------------------------------------------- */

/* Compares `namespace + "/"`: the order of the feeds' object keys. */
static int feeds_compare_namespaces(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	unsigned char x = *a ? (unsigned char)*a : '/', y = *b ? (unsigned char)*b : '/';

	return x != y ? (x > y) - (x < y) : (*a != '\0') - (*b != '\0');
}

/* Orders by name and namespace; of equal ones listed feeds come first, then newer ones. */
static int feeds_compare(const void *a, const void *b)
{
	const struct snapshot_feed *x = a, *y = b;
	int r = strcmp(x->definition.name, y->definition.name);

	if (r == 0)
		r = feeds_compare_namespaces(x->definition.namespace_, y->definition.namespace_);
	if (r == 0)
		r = (y->index.listed != 0) - (x->index.listed != 0);
	if (r == 0)
		r = (x->definition.id < y->definition.id) - (x->definition.id > y->definition.id);
	return r;
}

/* ---- names -------------------------------------------------------------- */

/* Lists the feeds' names for an error; a wildcard can make too many. */
static void feeds_put_names(const struct snapshot_feed *feeds, size_t n, struct buf *out)
{
	size_t named = 0;

	for (size_t i = 0; i < n; i++) {
		const char *name = feeds[i].definition.name;

		if (i && strcmp(feeds[i - 1].definition.name, name) == 0)
			continue;
		if (named++ < NAMES_MAX)
			buf_printf(out, "%s'%s'", named > 1 ? ", " : "", name);
	}
	if (named > NAMES_MAX)
		buf_printf(out, " and %zu more, which 'kinf status' lists", named - NAMES_MAX);
}

/* Moves the feeds of NAME to the front: those of the configuration's entry, else of kubectl's
 * choice of resource. Returns how many there are. */
static size_t feeds_keep_called(
	struct snapshot_feed *feeds, size_t n, const char *name, struct bytes order)
{
	const struct feed_definition *first = NULL;
	bool configured = false;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		configured |= strcmp(feeds[i].definition.name, name) == 0;
	for (size_t i = 0; i < n; i++) {
		const struct feed_definition *d = &feeds[i].definition;

		if (configured ? strcmp(d->name, name) != 0
			       : !feed_definition_is_called(d, name) ||
					 d->name[feed_definition_name_size(d)])
			continue;
		int before =
			configured || !first ? 0 : feed_definition_compare(d, first, name, order);
		if (before > 0)
			continue;
		kept = before < 0 ? 0 : kept;
		feeds[kept] = feeds[i];
		first = &feeds[kept++].definition;
	}
	return kept;
}

/* Keeps the feeds of NAME: the first of each namespace. */
static int feeds_select(
	struct snapshot_feed *feeds, size_t n, const char *name, struct bytes order, size_t *ret_n)
{
	CLEANUP(buf_release) struct buf names = BUF_INIT;
	size_t called = feeds_keep_called(feeds, n, name, order), kept = 0;

	if (called && strcmp(feeds[0].definition.name, feeds[called - 1].definition.name) != 0) {
		feeds_put_names(feeds, called, &names);
		return err_say(ERR_NO_FEED, "several feeds watch the resource '%s': name one of %s",
			name, buf_cstr(&names));
	}
	for (size_t i = 0; i < called; i++)
		if (!kept || feeds_compare_namespaces(feeds[kept - 1].definition.namespace_,
				     feeds[i].definition.namespace_) != 0)
			feeds[kept++] = feeds[i];
	*ret_n = kept;
	if (kept)
		return 0;
	if (n == 0)
		return err_say(ERR_NO_FEED,
			"no feed '%s': " SNAPSHOT_NO_FEEDS "; 'kinf status' may say why", name);
	feeds_put_names(feeds, n, &names);
	if (!*name)
		return err_say(
			ERR_NO_FEED, "no feed has an empty name; there are: %s", buf_cstr(&names));
	if (strcmp(name, "all") == 0)
		return err_say(ERR_NO_FEED,
			"no feed is called 'all': name one of %s; 'kinf get all' prints pods, "
			"services and the other kinds that run something",
			buf_cstr(&names));
	if (strpbrk(name, "/, ")) /* no resource has such a name: it can't be added */
		return err_say(ERR_NO_FEED,
			"no feed '%s': write the name of one feed and nothing else; there are: %s",
			name, buf_cstr(&names));
	for (size_t i = 0; i < n; i++) {
		const struct feed_definition *d = &feeds[i].definition;

		if (similar(name, d->name) || similar(name, d->resource) || similar(name, d->kind))
			return err_say(ERR_NO_FEED,
				"no feed '%s': did you mean '%s'? Else add '- resource: %s' to the "
				"feeds in kinf.yaml; there are: %s",
				name, d->name, name, buf_cstr(&names));
	}
	/* The remedy comes first: the names may be cut off. */
	return err_say(ERR_NO_FEED,
		"no feed '%s': add '- resource: %s' to the feeds in kinf.yaml; if it is there, "
		"'kinf status' says why it has no feed; there are: %s",
		name, name, buf_cstr(&names));
}

int snapshot_feeds(struct snapshot *snapshot, const char *name, struct snapshot_feed **ret_feeds,
	size_t *ret_n)
{
	AUTO_FREE struct snapshot_feed *feeds = NULL;
	struct bytes order;
	size_t n;
	int r = feeds_collect(snapshot, &feeds, &n);

	if (r < 0)
		return r;
	if (n)
		qsort(feeds, n, sizeof(*feeds), feeds_compare);
	if (name)
		r = journal_order(
			snapshot_journal(snapshot), snapshot_journal_txn(snapshot), &order);
	if (name && r == 0)
		r = feeds_select(feeds, n, name, order, &n);
	if (r < 0)
		return r;
	*ret_feeds = TAKE(feeds);
	*ret_n = n;
	return 0;
}

int snapshot_feeds_among(struct snapshot *snapshot, const struct snapshot_feed *all, size_t n,
	const char *name, struct snapshot_feed **ret_feeds, size_t *ret_n)
{
	AUTO_FREE struct snapshot_feed *feeds = malloc((n + 1) * sizeof(*feeds));
	struct bytes order;

	if (!feeds)
		return err_set(-ENOMEM, "reading %zu feeds", n);
	if (n)
		memcpy(feeds, all, n * sizeof(*feeds));
	int r = journal_order(snapshot_journal(snapshot), snapshot_journal_txn(snapshot), &order);
	if (r == 0)
		r = feeds_select(feeds, n, name, order, ret_n);
	if (r < 0)
		return r;
	struct snapshot_feed *kept = realloc(feeds, *ret_n * sizeof(*feeds));
	if (kept)
		feeds = kept;
	*ret_feeds = TAKE(feeds);
	return 0;
}

/* The journal may be ahead of the index. The checkpoint's RV (bookmarks move it without a record)
 * counts while the journal has no newer change of the feed; an open list does not move it. */
struct bytes snapshot_feed_rv(const struct snapshot_feed *feed)
{
	const struct feed_checkpoint *c = &feed->checkpoint;
	uint64_t changed = c->list_begin ? c->list_begin - 1 : c->last;

	if (!feed->visible)
		return BYTES_NONE;
	return c->rv.size && c->rv.size < INDEX_RV_SIZE && changed <= feed->visible
		       ? c->rv
		       : bytes_str(feed->index.rv);
}
