/* SPDX-License-Identifier: Apache-2.0 */
/* The feeds a snapshot sees, and which of them a name stands for. */
#include "store/read/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"

#define NAMES_SAID 20 /* of the feeds there are, in a sentence */

/* ---- collecting: one allocation for all feeds and their texts, so that the caller frees one ----
 */

enum {
#define TEXT(member, key, identity) TEXT_##member,
#include "store/journal/feed_definition.def"
#undef TEXT
	TEXTS /* of a definition */
};

struct collection {
	struct snapshot *snapshot;
	struct buf rows; /* struct snapshot_feed */
	struct buf
		text; /* of the same feeds: their texts and the checkpoint's rv, each with a NUL */
};

static void definition_texts(struct feed_definition *d, const char ***texts)
{
	const char **all[TEXTS] = {
#define TEXT(member, key, identity) &d->member,
#include "store/journal/feed_definition.def"
#undef TEXT
	};

	memcpy(texts, all, sizeof(all));
}

static int collect_feed(void *arg, const struct feed_definition *definition,
	const struct feed_checkpoint *checkpoint)
{
	struct collection *c = arg;
	struct snapshot_feed feed = {.definition = *definition, .checkpoint = *checkpoint};
	const char **texts[TEXTS];

	if (checkpoint->phase == FEED_REMOVED)
		return 0;
	int r = index_feed(snapshot_index(c->snapshot), snapshot_index_txn(c->snapshot),
		definition->id, &feed.index);

	if (r < 0)
		return r;
	feed.visible = snapshot_visible(c->snapshot, definition->id);
	definition_texts(&feed.definition, texts);
	for (size_t i = 0; i < TEXTS; i++)
		buf_put(&c->text, *texts[i], strlen(*texts[i]) + 1);
	buf_bytes_put(&c->text, checkpoint->rv);
	buf_byte(&c->text, '\0');
	buf_put(&c->rows, &feed, sizeof(feed));
	return 0;
}

/* Lets the texts of FEED begin at P; where the next feed's begin. */
static const char *place_texts(struct snapshot_feed *feed, const char *p)
{
	const char **texts[TEXTS];

	definition_texts(&feed->definition, texts);
	for (size_t i = 0; i < TEXTS; i++) {
		*texts[i] = p;
		p += strlen(p) + 1;
	}
	feed->checkpoint.rv.data = p;
	return p + feed->checkpoint.rv.size + 1;
}

static int collect(struct snapshot *snapshot, struct snapshot_feed **ret_feeds, size_t *ret_n)
{
	struct collection c = {.snapshot = snapshot};
	struct snapshot_feed *feeds = NULL;
	int r = journal_each_feed(
		snapshot_journal(snapshot), snapshot_journal_txn(snapshot), collect_feed, &c);

	if (r == 0)
		r = buf_error(&c.rows);
	if (r == 0)
		r = buf_error(&c.text);
	if (r == 0) {
		feeds = malloc(c.rows.size + c.text.size + 1);
		r = feeds ? 0 : err_set(-ENOMEM, "reading feeds");
	}
	if (r == 0) {
		size_t n = c.rows.size / sizeof(*feeds);
		char *text = (char *)(feeds + n);
		const char *p = text;

		if (n)
			memcpy(feeds, c.rows.data, c.rows.size);
		if (n)
			memcpy(text, c.text.data, c.text.size);
		for (size_t i = 0; i < n; i++)
			p = place_texts(&feeds[i], p);
		*ret_feeds = feeds;
		*ret_n = n;
	}
	buf_release(&c.rows);
	buf_release(&c.text);
	return r;
}

/* ---- order ---- */

/* Order of `namespace + "/"`, in which the object keys of several feeds follow each other. */
static int compare_namespaces(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	unsigned char x = *a ? (unsigned char)*a : '/', y = *b ? (unsigned char)*b : '/';

	return x != y ? (x > y) - (x < y) : (*a != '\0') - (*b != '\0');
}

/* By name and namespace; of the same the one to be preferred first: listed, then the newest. */
static int compare_feeds(const void *a, const void *b)
{
	const struct snapshot_feed *x = a, *y = b;
	int r = strcmp(x->definition.name, y->definition.name);

	if (r == 0)
		r = compare_namespaces(x->definition.namespace_, y->definition.namespace_);
	if (r == 0)
		r = (y->index.listed != 0) - (x->index.listed != 0);
	if (r == 0)
		r = (x->definition.id < y->definition.id) - (x->definition.id > y->definition.id);
	return r;
}

/* ---- names ---- */

/* Is NAME one of the aliases, each of which ends with a blank? */
static bool is_alias(const char *aliases, const char *name, size_t size)
{
	for (const char *blank; (blank = strchr(aliases, ' ')); aliases = blank + 1)
		if ((size_t)(blank - aliases) == size && strncasecmp(aliases, name, size) == 0)
			return true;
	return false;
}

/* Are the SIZE bytes at NAME this feed's resource, its kind in any case, or a name it also has? */
static bool is_resource(const struct feed_definition *d, const char *name, size_t size)
{
	return (strlen(d->resource) == size && memcmp(d->resource, name, size) == 0) ||
	       (strlen(d->kind) == size && strncasecmp(d->kind, name, size) == 0) ||
	       is_alias(d->aliases, name, size);
}

/* plural, plural.group, plural.version.group; in the core group plural.version and plural.version.
 */
static bool is_called(const struct feed_definition *d, const char *name)
{
	const char *dot = strchr(name, '.');
	size_t version_size = strlen(d->version);

	if (!dot)
		return is_resource(d, name, strlen(name));
	if (!is_resource(d, name, (size_t)(dot - name)))
		return false;
	if (d->group[0] && strcmp(dot + 1, d->group) == 0)
		return true;
	if (strncmp(dot + 1, d->version, version_size) != 0)
		return false;
	const char *rest = dot + 1 + version_size;

	return *rest == '.' ? strcmp(rest + 1, d->group) == 0 : !*rest && !d->group[0];
}

/* The names there are, in order; with a wildcard too many for a sentence. */
static void put_names(const struct snapshot_feed *feeds, size_t n, struct buf *out)
{
	size_t named = 0;

	for (size_t i = 0; i < n; i++) {
		const char *name = feeds[i].definition.name;

		if (i && strcmp(feeds[i - 1].definition.name, name) == 0)
			continue;
		if (named++ < NAMES_SAID)
			buf_printf(out, "%s'%s'", named > 1 ? ", " : "", name);
	}
	if (named > NAMES_SAID)
		buf_printf(out, " and %zu more, which 'kinf status' lists", named - NAMES_SAID);
}

static int several(const struct snapshot_feed *feeds, size_t n, const char *name)
{
	CLEANUP(buf_release) struct buf names = BUF_INIT;

	put_names(feeds, n, &names);
	return err_say(ERR_NO_FEED, "several feeds watch the resource '%s'; there are: %s", name,
		buf_cstr(&names));
}

/* What to do comes first: names may be long, and a sentence has an end. */
static int no_feed(const struct snapshot_feed *feeds, size_t n, const char *name)
{
	CLEANUP(buf_release) struct buf names = BUF_INIT;

	if (n == 0)
		return err_say(ERR_NO_FEED,
			"no feed '%s': nothing is watched yet; 'kinf status' may say why", name);
	put_names(feeds, n, &names);
	if (!*name)
		return err_say(ERR_NO_FEED, "no feed has an empty name; there are: %s",
			buf_cstr(&names));
	return err_say(ERR_NO_FEED,
		"no feed '%s': add '- resource: %s' to the feeds in kinf.yaml; if it is there, 'kinf status' "
		"says why it has no feed; there are: %s",
		name, name, buf_cstr(&names));
}

/* Keeps the feeds that NAME stands for, of each namespace the first. */
static int select_feeds(struct snapshot_feed *feeds, size_t n, const char *name, size_t *ret_n)
{
	const struct snapshot_feed *first = NULL;
	bool configured = false;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		configured |= strcmp(feeds[i].definition.name, name) == 0;
	/* Nothing moves before all are looked at: the sentence names them all. */
	for (size_t i = 0; i < n && !configured; i++) {
		if (!is_called(&feeds[i].definition, name))
			continue;
		if (first && strcmp(first->definition.name, feeds[i].definition.name) != 0)
			return several(feeds, n, name);
		first = &feeds[i];
	}
	for (size_t i = 0; i < n; i++) {
		const struct feed_definition *d = &feeds[i].definition;

		if (configured ? strcmp(d->name, name) != 0 : !is_called(d, name))
			continue;
		if (kept && compare_namespaces(
				    feeds[kept - 1].definition.namespace_, d->namespace_) == 0)
			continue;
		feeds[kept++] = feeds[i];
	}
	*ret_n = kept;
	return kept ? 0 : no_feed(feeds, n, name);
}

int snapshot_feeds(struct snapshot *snapshot, const char *name, struct snapshot_feed **ret_feeds,
	size_t *ret_n)
{
	AUTO_FREE struct snapshot_feed *feeds = NULL;
	size_t n;
	int r = collect(snapshot, &feeds, &n);

	if (r < 0)
		return r;
	if (n)
		qsort(feeds, n, sizeof(*feeds), compare_feeds);
	if (name)
		r = select_feeds(feeds, n, name, &n);
	if (r < 0)
		return r;
	*ret_feeds = TAKE(feeds);
	*ret_n = n;
	return 0;
}

/* The journal may be ahead of the index. The checkpoint's RV, which bookmarks move also without a record,
 * counts as long as the journal has changed nothing of the feed since; an open list does not move it. */
struct bytes snapshot_feed_rv(const struct snapshot_feed *feed)
{
	const struct feed_checkpoint *c = &feed->checkpoint;
	uint64_t changed = c->list_begin ? c->list_begin - 1 : c->last;

	if (!feed->visible)
		return BYTES_NONE;
	return c->rv.size && c->rv.size < INDEX_RV_SIZE && changed <= feed->visible ? c->rv : bytes_str(feed->index.rv);
}
