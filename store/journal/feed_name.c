/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of resources as kubectl reads them: RESOURCE[.VERSION][.GROUP] with the plural, kind,
 * singular or short name. Several feeds can share a name (nodes of the core group and of
 * longhorn.io); the order of discovery decides then. The reflector stores it in the row `order` for
 * copies of the store.
 */
#include "store/journal/journal_internal.h"

#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/utf8.h"
#include "common/value/custom.h"

#define ORDER_KEY BYTES_LIT("order")
#define CRC_SIZE  4

/* ---- naming ------------------------------------------------------------- */

/* How a name fits a resource, the best first. */
enum feed_naming { NAMED_FULLY, NAMED_SHORT, NAMINGS };
enum feed_scope { SCOPE_GROUP, SCOPE_VERSION, SCOPE_GROUP_PREFIX, SCOPES };
#define NOT_NAMED ((unsigned)SCOPES * NAMINGS)

/* Returns whether NAME is one of WORDS, each followed by a blank, or NULL. */
static bool feed_has_word(const char *words, struct bytes name)
{
	for (const char *blank; words && (blank = strchr(words, ' ')); words = blank + 1)
		if (ascii_equal(BYTES(words, (size_t)(blank - words)), name))
			return true;
	return false;
}

static enum feed_naming feed_naming(const struct feed_definition *d, struct bytes name)
{
	if (ascii_equal(bytes_str(d->resource), name) || ascii_equal(bytes_str(d->kind), name))
		return NAMED_FULLY;
	return feed_has_word(d->aliases, name) ? NAMED_SHORT : NAMINGS;
}

/* REST is the name after its first dot. `widgets.example.com` and `deployments.v1.apps` look the
 * same. */
static enum feed_scope feed_scope(const struct feed_definition *d, const char *rest)
{
	struct bytes group = bytes_str(d->group), text = bytes_str(rest);
	const char *dot = strchr(rest, '.');
	bool version =
		ascii_equal(bytes_str(d->version), dot ? BYTES(rest, (size_t)(dot - rest)) : text);

	if (!text.size || ascii_equal(text, group) ||
		(version && dot && ascii_equal(bytes_str(dot + 1), group)))
		return SCOPE_GROUP;
	if (version && (!dot || !dot[1]))
		return SCOPE_VERSION;
	return group.size > text.size && ascii_equal(BYTES(group.data, text.size), text)
		       ? SCOPE_GROUP_PREFIX
		       : SCOPES;
}

/* Returns how well NAME fits D, smaller is better; NOT_NAMED. */
static unsigned feed_fit(const struct feed_definition *d, const char *name)
{
	const char *dot = strchr(name, '.');
	enum feed_naming naming =
		feed_naming(d, dot ? BYTES(name, (size_t)(dot - name)) : bytes_str(name));
	enum feed_scope scope = dot ? feed_scope(d, dot + 1) : SCOPE_GROUP;

	return naming == NAMINGS || scope == SCOPES ? NOT_NAMED
						    : (unsigned)scope * NAMINGS + naming;
}

bool feed_definition_is_called(const struct feed_definition *definition, const char *name)
{
	return feed_fit(definition, name) != NOT_NAMED;
}

bool feed_definition_is_in(const struct feed_definition *definition, const char *category)
{
	return feed_has_word(definition->categories, bytes_str(category));
}

size_t feed_definition_name_size(const struct feed_definition *definition)
{
	size_t size = strlen(definition->name), suffix = strlen(FEED_NEXT);

	return size > suffix && strcmp(definition->name + size - suffix, FEED_NEXT) == 0
		       ? size - suffix
		       : size;
}

/* ---- precedence --------------------------------------------------------- */

/* Returns the line of the feed's group and version in ORDER, SIZE_MAX: none. */
static size_t feed_line(const struct feed_definition *d, struct bytes order)
{
	size_t group = strlen(d->group), version = strlen(d->version), line = 0;

	for (const char *p = order.data, *end = p + order.size, *next; p < end; p = next, line++) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		size_t size = (size_t)((stop ? stop : end) - p);

		next = stop ? stop + 1 : end;
		if (size == group + (group != 0) + version && memcmp(p, d->group, group) == 0 &&
			(!group || p[group] == '/') &&
			memcmp(p + size - version, d->version, version) == 0)
			return line;
	}
	return SIZE_MAX;
}

int feed_definition_compare(const struct feed_definition *a, const struct feed_definition *b,
	const char *name, struct bytes order)
{
	unsigned fit_a = feed_fit(a, name), fit_b = feed_fit(b, name);
	size_t line_a = feed_line(a, order), line_b = feed_line(b, order);

	if (fit_a != fit_b)
		return fit_a < fit_b ? -1 : 1;
	if (line_a != line_b)
		return line_a < line_b ? -1 : 1;
	/* Not in the order of discovery: the core group, the API server's others, then by name. */
	bool own_a = custom_is_builtin_group(a->group), own_b = custom_is_builtin_group(b->group);
	return own_a != own_b && *a->group && *b->group ? own_b - own_a
							: strcmp(a->group, b->group);
}

/* ---- the order of discovery --------------------------------------------- */

int journal_order(struct journal *journal, struct txn *txn, struct bytes *ret_order)
{
	struct bytes row;

	CHECK_OBJ(journal, JOURNAL_MAGIC);
	*ret_order = BYTES_NONE;
	int r = txn_get(txn, DB_META, ORDER_KEY, &row);
	if (r != FOUND)
		return r < 0 ? r : 0;
	struct bytes order = BYTES(row.data, row.size < CRC_SIZE ? 0 : row.size - CRC_SIZE);
	if (order.size &&
		row_checksum(ORDER_KEY, order) == le32_get((const uint8_t *)row.data + order.size))
		*ret_order = order;
	return 0;
}

int journal_set_order(struct journal *journal, struct bytes order)
{
	CLEANUP(buf_release) struct buf row = BUF_INIT;
	struct bytes stored;
	void *crc;

	journal_require_open(journal);
	if (journal->error < 0)
		return journal->error;
	int r = journal_order(journal, journal->txn, &stored);
	if (r == 0 && bytes_equal(stored, order))
		return END;
	buf_bytes_put(&row, order);
	crc = buf_grow(&row, CRC_SIZE);
	if (r == 0 && !crc)
		r = buf_error(&row);
	if (r < 0)
		return journal->error = r;
	le32_put(crc, row_checksum(ORDER_KEY, order));
	journal->meta_changed = true; /* tells journal_abort() of a change */
	return journal->error = txn_put(journal->txn, DB_META, ORDER_KEY, buf_bytes(&row), 0);
}
