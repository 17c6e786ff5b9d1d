/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/import/import_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/custom.h"
#include "common/value/value.h"
#include "reflector/cluster/catalogue.h"

enum { CLUSTER, NAMESPACED };

static const struct import_builtin {
	const char *group, *version, *plural, *kind, *short_names;
	int scope;
} builtins[] = {
#define RESOURCE(group, version, plural, kind, short_names, scope) \
	{group, version, plural, kind, short_names, scope},
#include "common/value/resources.def"
#undef RESOURCE
};

/* ---- names of files ----------------------------------------------------- */

/* Returns true if the first SIZE bytes of NAME, hyphens left out, mean B: "network-policy",
 * "pvcs", "deployments.apps". */
static bool feeds_is_named(const struct import_builtin *b, const char *name, size_t size)
{
	char word[64], full[128];
	size_t n = 0;

	for (size_t i = 0; i < size && n + 2 < sizeof(word); i++)
		if (name[i] != '-')
			word[n++] = (char)tolower((unsigned char)name[i]);
	word[n] = '\0';
	(void)snprintf(full, sizeof(full), "%s.%s", b->plural, b->group);
	if (strcmp(word, b->plural) == 0 || strcasecmp(word, b->kind) == 0 ||
		strcmp(word, full) == 0)
		return true;
	if (n && word[n - 1] == 's')
		word[n - 1] = '\0';
	return *b->short_names && strcmp(word, b->short_names) == 0;
}

bool import_find_named(const char *name, size_t size, struct import_kind *ret_kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(builtins); i++) {
		const struct import_builtin *b = &builtins[i];

		if (!feeds_is_named(b, name, size))
			continue;
		*ret_kind = (struct import_kind){.namespaced = b->scope == NAMESPACED};
		(void)snprintf(ret_kind->group, sizeof(ret_kind->group), "%s", b->group);
		(void)snprintf(ret_kind->version, sizeof(ret_kind->version), "%s", b->version);
		(void)snprintf(ret_kind->kind, sizeof(ret_kind->kind), "%s", b->kind);
		return true;
	}
	return false;
}

/* ---- kinds become resources --------------------------------------------- */

/* Writes the plural of KIND as kubectl guesses it. */
static void feeds_guess_plural(struct import_kind *kind)
{
	char *plural = kind->plural;
	size_t n = strlen(kind->kind), room = sizeof(kind->plural);
	const char *end = "s";

	for (size_t i = 0; i <= n; i++)
		plural[i] = (char)tolower((unsigned char)kind->kind[i]);
	char last = n ? plural[n - 1] : 0, before = n > 1 ? plural[n - 2] : 0;
	if (last == 's' || last == 'x' || (last == 'h' && (before == 'c' || before == 's'))) {
		end = "es";
	} else if (last == 'y' && !strchr("aeiou", before)) {
		plural[--n] = '\0';
		end = "ies";
	}
	(void)snprintf(plural + n, room - n, "%s", end);
}

/* Returns true if REST is .GROUP, or .GROUP and the end of a file's name. */
static bool feeds_ends_with_group(const char *rest, size_t size, const char *group)
{
	size_t n = strlen(group);

	return size > n && *rest == '.' && strncmp(rest + 1, group, n) == 0 &&
	       (size == n + 1 || rest[n + 1] == '.');
}

/* Finds the plural in the path of the file: <group>/<plural>/NAME.yaml, <plural>.<group>. A
 * component that begins as the kind does is believed also. */
static void feeds_read_path(const char *path, struct import_kind *kind)
{
	size_t stem = strlen(kind->kind);
	bool follows = false; /* the group */

	stem -= stem > 3; /* y becomes ies */
	for (size_t n; *path; path += n, path += *path == '/') {
		n = strcspn(path, "/");
		size_t word = strspn(path, "abcdefghijklmnopqrstuvwxyz0123456789-");
		bool is_plural = word && word < sizeof(kind->plural) && path[word - 1] == 's';
		bool is_of_group = (follows && word == n && path[n] == '/') ||
				   feeds_ends_with_group(path + word, n - word, kind->group);
		bool is_alike = word >= stem && word < strlen(kind->kind) + 4 &&
				strncasecmp(path, kind->kind, stem) == 0;

		if (is_plural && (is_of_group || is_alike))
			(void)snprintf(kind->plural, sizeof(kind->plural), "%.*s", (int)word, path);
		follows = bytes_equal(BYTES(path, n), bytes_str(kind->group));
	}
}

/* Fills in the resource of KIND without definitions of the dump. */
static void feeds_resolve(const char *path, struct import_kind *kind)
{
	for (size_t i = 0; kind->kind[i]; i++)
		kind->singular[i] = (char)tolower((unsigned char)kind->kind[i]);
	(void)snprintf(kind->list_kind, sizeof(kind->list_kind), "%sList", kind->kind);
	for (size_t i = 0; i < ARRAY_SIZE(builtins); i++) {
		const struct import_builtin *b = &builtins[i];

		if (strcmp(b->group, kind->group) != 0 || strcmp(b->kind, kind->kind) != 0)
			continue;
		(void)snprintf(kind->plural, sizeof(kind->plural), "%s", b->plural);
		(void)snprintf(kind->short_names, sizeof(kind->short_names), "%s%s", b->short_names,
			*b->short_names ? " " : "");
		kind->namespaced = b->scope == NAMESPACED;
		kind->scope_is_known = true;
		return;
	}
	feeds_guess_plural(kind);
	if (*kind->group)
		feeds_read_path(path, kind);
}

/* ---- discovery and definitions in the dump ------------------------------ */

static void feeds_copy(const struct value *map, const char *key, char *room, size_t size)
{
	struct bytes text = catalogue_text(map, key);

	if (text.size)
		(void)catalogue_copy_name(text, room, size);
}

static void feeds_copy_names(const struct value *map, struct import_kind *kind)
{
	feeds_copy(map, "kind", kind->kind, sizeof(kind->kind));
	feeds_copy(map, "singular", kind->singular, sizeof(kind->singular));
	catalogue_read_words(map, "shortNames", kind->short_names, sizeof(kind->short_names));
	catalogue_read_words(map, "categories", kind->categories, sizeof(kind->categories));
}

static void feeds_take_name(struct import_kind *kind)
{
	if (!*kind->singular)
		for (size_t i = 0; kind->kind[i]; i++)
			kind->singular[i] = (char)tolower((unsigned char)kind->kind[i]);
	if (!*kind->list_kind)
		(void)snprintf(kind->list_kind, sizeof(kind->list_kind), "%sList", kind->kind);
}

int import_take_discovery(struct import *import, struct bytes body)
{
	struct value document, resources, resource, item;
	struct value_iter iter;
	char version[IMPORT_NAME] = "";
	int r = value_read(body, &document);

	struct bytes text = r == 0 ? catalogue_text(&document, "groupVersion") : BYTES_NONE;
	if (text.size < sizeof(version))
		(void)snprintf(version, sizeof(version), "%.*s", BYTES_ARG(text));
	if (r == 0)
		r = value_find(&document, BYTES_LIT("resources"), &resources);
	if (r != FOUND)
		return r < 0 ? r : 0;
	const char *slash = strrchr(version, '/');
	value_iter_init(&iter, &resources);
	while (r == 0 && value_iter_next(&iter, NULL, &resource) == FOUND) {
		struct import_kind kind = {.namespaced = false};

		(void)snprintf(kind.group, sizeof(kind.group), "%.*s",
			slash ? (int)(slash - version) : 0, version);
		(void)snprintf(
			kind.version, sizeof(kind.version), "%.63s", slash ? slash + 1 : version);
		feeds_copy(&resource, "name", kind.plural, sizeof(kind.plural));
		feeds_copy_names(&resource, &kind);
		kind.singular[0] = '\0';
		feeds_take_name(&kind);
		kind.scope_is_known =
			value_find(&resource, BYTES_LIT("namespaced"), &item) == FOUND &&
			item.type == VALUE_BOOL;
		kind.namespaced = kind.scope_is_known && item.u.b;
		if (*kind.plural && *kind.kind && !strchr(kind.plural, '/'))
			r = ARRAY_ADD(import->known, import->n_known, import->known_room, kind,
				"discovery");
	}
	return r;
}

/* Reads a CustomResourceDefinition. Returns true if it defines FEED's kind. */
static bool feeds_read_definition(struct bytes body, struct import_kind *kind)
{
	struct value document, spec, names;
	struct import_kind found = {.namespaced = false};
	char scope[16] = "";

	if (value_read(body, &document) < 0 ||
		value_find(&document, BYTES_LIT("spec"), &spec) != FOUND ||
		value_find(&spec, BYTES_LIT("names"), &names) != FOUND)
		return false;
	feeds_copy(&spec, "group", found.group, sizeof(found.group));
	feeds_copy(&spec, "scope", scope, sizeof(scope));
	feeds_copy(&names, "plural", found.plural, sizeof(found.plural));
	feeds_copy(&names, "listKind", found.list_kind, sizeof(found.list_kind));
	feeds_copy_names(&names, &found);
	if (strcmp(found.group, kind->group) != 0 || strcmp(found.kind, kind->kind) != 0 ||
		!*found.plural)
		return false;
	feeds_take_name(&found);
	found.namespaced = strcmp(scope, "Namespaced") == 0;
	found.scope_is_known = found.namespaced || strcmp(scope, "Cluster") == 0;
	memcpy(found.version, kind->version, sizeof(found.version));
	*kind = found;
	return true;
}

/* ---- feeds -------------------------------------------------------------- */

static void feeds_definition(const struct import_feed *feed, const char *columns, char *texts,
	size_t size, struct feed_definition *ret_definition)
{
	const struct import_kind *kind = &feed->kind;
	size_t name = (size_t)snprintf(texts, size, "%s%s%s", kind->plural, *kind->group ? "." : "",
			      kind->group) +
		      1;

	(void)snprintf(texts + name, size - name, "%s %s", kind->singular, kind->short_names);
	*ret_definition = (struct feed_definition){.id = feed->id,
		.name = texts,
		.aliases = texts + name,
		.categories = kind->categories,
		.columns = columns,
		.group = kind->group,
		.version = kind->version,
		.resource = kind->plural,
		.kind = kind->kind,
		.list_kind = kind->list_kind,
		.namespaced = kind->namespaced};
}

static bool feeds_is_of(const struct import_feed *feed, const struct import_kind *kind)
{
	return strcmp(feed->kind.kind, kind->kind) == 0 &&
	       strcmp(feed->kind.group, kind->group) == 0 &&
	       strcmp(feed->kind.version, kind->version) == 0;
}

/* Looks for FEED among the definitions, the feed CRDS. COLUMNS gets its columns. */
static int feeds_find_definition(struct import *import, struct import_feed *feed,
	const struct import_feed *crds, struct buf *columns)
{
	struct txn *txn = journal_txn(import->journal);
	struct head_walk *walk = NULL;
	struct record record;
	struct bytes key;
	struct head head;
	bool found = false;

	int r = head_walk_open(txn, crds->id, BYTES_NONE, &walk);
	while (r == 0 && !found && (r = head_walk_next(walk, &key, &head)) == FOUND) {
		r = journal_get(import->journal, txn, head.seq, &record);
		found = r == FOUND && feeds_read_definition(record.body, &feed->kind);
	}
	if (r >= 0 && found)
		r = custom_write_columns(record.body, feed->kind.version, columns);
	head_walk_close(&walk);
	return r < 0 ? r : 0;
}

/* Gives FEED the names and the scope of discovery and definitions read so far. COLUMNS gets its
 * columns. */
static int feeds_learn(struct import *import, struct import_feed *feed, struct buf *columns)
{
	const struct import_feed *crds = NULL;

	for (size_t i = 0; i < import->n_feeds; i++)
		if (strcmp(import->feeds[i].kind.kind, "CustomResourceDefinition") == 0)
			crds = &import->feeds[i];
	for (size_t k = 0; k < import->n_known; k++)
		if (feeds_is_of(&(struct import_feed){.kind = import->known[k]}, &feed->kind))
			feed->kind = import->known[k];
	buf_reset(columns);
	return crds && !custom_is_builtin_group(feed->kind.group)
		       ? feeds_find_definition(import, feed, crds, columns)
		       : 0;
}

static int feeds_add(struct import *import, const struct import_kind *kind)
{
	CLEANUP(buf_release) struct buf columns = BUF_INIT;
	struct import_feed feed = {.kind = *kind, .is_new = true};
	struct feed_definition definition;
	char texts[4 * IMPORT_NAME];

	feeds_resolve(import->file->path, &feed.kind);
	int r = feeds_learn(import, &feed, &columns);
	feeds_definition(&feed, buf_cstr(&columns), texts, sizeof(texts), &definition);
	if (r == 0)
		r = journal_add_feed(import->journal, &definition, &feed.id);
	return r < 0 ? r
		     : ARRAY_ADD(import->feeds, import->n_feeds, import->feeds_room, feed,
			       "the feeds");
}

/* Returns the index of KIND's feed, or import->n_feeds. An object that was written or deleted has
 * one feed, whatever version it is written in. */
static size_t feeds_find(const struct import *import, const struct import_kind *kind)
{
	size_t found = import->n_feeds;

	for (size_t i = 0; i < import->n_feeds; i++) {
		const struct import_kind *other = &import->feeds[i].kind;

		if (feeds_is_of(&import->feeds[i], kind))
			return i;
		if (import->change && strcmp(other->kind, kind->kind) == 0 &&
			strcmp(other->group, kind->group) == 0)
			found = i;
	}
	return found;
}

void import_take_plural(struct import *import, struct bytes plural)
{
	struct import_kind *kind = &import->feeds[import->last_feed].kind;
	char name[sizeof(kind->plural)];

	if (plural.size && catalogue_copy_name(plural, name, sizeof(name)))
		memcpy(kind->plural, name, sizeof(name));
}

int import_find_feed(
	struct import *import, const struct import_kind *kind, struct import_feed **ret_feed)
{
	size_t i = import->last_feed;
	int r = 0;

	if (i >= import->n_feeds || !feeds_is_of(&import->feeds[i], kind))
		i = feeds_find(import, kind);
	if (i == import->n_feeds)
		r = feeds_add(import, kind);
	if (r < 0)
		return r;
	struct import_feed *feed = &import->feeds[i];
	import->last_feed = i;
	if (!feed->open && (!import->change || feed->is_new)) {
		struct record record = {.feed = feed->id,
			.type = RECORD_LIST_BEGIN,
			.time_ns = import->change ? import->audit_ns : import->time_ns};
		uint64_t end;

		r = journal_append(import->journal, &record, &feed->begin);
		record.type = RECORD_LIST_END;
		record.rv = BYTES_LIT("1");
		if (r == 0 && import->change) /* no list: changes from nothing on */
			r = journal_append(import->journal, &record, &end);
		feed->open = !import->change;
		feed->is_new &= feed->open;
	}
	if (custom_compare_versions(kind->version, feed->kind.version) < 0)
		memcpy(feed->kind.version, kind->version, sizeof(kind->version));
	if (!feed->kind.scope_is_known)
		feed->kind.namespaced |= kind->namespaced;
	*ret_feed = feed;
	return r;
}

int import_define_feeds(struct import *import)
{
	CLEANUP(buf_release) struct buf columns = BUF_INIT;
	int r = 0;

	for (size_t i = 0; r == 0 && i < import->n_feeds; i++) {
		struct import_feed *feed = &import->feeds[i];
		struct feed_definition definition;
		char texts[4 * IMPORT_NAME];

		r = feeds_learn(import, feed, &columns);
		feeds_definition(feed, buf_cstr(&columns), texts, sizeof(texts), &definition);
		if (r == 0)
			r = journal_define_feed(import->journal, &definition);
	}
	return r;
}
