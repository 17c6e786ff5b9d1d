/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/cluster/catalogue.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/buf.h"
#include "common/err.h"
#include "common/value/value.h"

#define STALE_BEHIND ((uint64_t)1 << 20) /* more than a group has versions */
#define NEAR_MAX     3
#define ENTRIES_MAX  ((size_t)1 << 16) /* about 1 kB each; a cluster with 5,000 CRDs has 10,000 */

void catalogue_release(struct catalogue *catalogue)
{
	free(catalogue->at);
	free(catalogue->broken);
	*catalogue = (struct catalogue){NULL};
}

/* ---- filling ---- */

/* Names go into paths of requests: letters, digits, dots and dashes, nothing else. */
static bool text_take(struct bytes text, char *ret_text, size_t size)
{
	const char *p = text.data;

	if (text.size >= size)
		return false;
	for (size_t i = 0; i < text.size; i++)
		if (!isalnum((unsigned char)p[i]) && p[i] != '-' && p[i] != '.')
			return false;
	if (text.size)
		memcpy(ret_text, p, text.size);
	ret_text[text.size] = '\0';
	return true;
}

/* A text member, "" when it is absent or no text. */
static struct bytes text_of(const struct value *map, const char *key)
{
	struct value item;

	if (value_find(map, bytes_str(key), &item) != FOUND || item.type != VALUE_STRING)
		return BYTES_LIT("");
	return item.text;
}

static bool list_has(const struct value *map, const char *key, const char *wanted)
{
	struct value list, item;
	struct value_iter iter;
	struct bytes none;

	if (value_find(map, bytes_str(key), &list) != FOUND)
		return false;
	value_iter_init(&iter, &list);
	while (value_iter_next(&iter, &none, &item) == FOUND)
		if (item.type == VALUE_STRING && bytes_equal(item.text, bytes_str(wanted)))
			return true;
	return false;
}

static void take_short_names(const struct value *map, struct catalogue_entry *entry)
{
	struct value list, item;
	struct value_iter iter;
	struct bytes none;
	size_t used = 0;

	if (value_find(map, BYTES_LIT("shortNames"), &list) != FOUND)
		return;
	value_iter_init(&iter, &list);
	while (value_iter_next(&iter, &none, &item) == FOUND) {
		char name[sizeof(entry->short_names)];

		if (item.type != VALUE_STRING || !text_take(item.text, name, sizeof(name)) ||
			used + item.text.size + 2 > sizeof(entry->short_names))
			continue;
		used += (size_t)snprintf(entry->short_names + used,
			sizeof(entry->short_names) - used, "%s ", name);
	}
}

static int add_entry(struct catalogue *catalogue, const struct catalogue_entry *entry)
{
	if (catalogue->count == ENTRIES_MAX)
		return err_say(ERR_TOO_LARGE, "discovery: more than %zu resources", ENTRIES_MAX);
	if (catalogue->count == catalogue->capacity) {
		size_t capacity = catalogue->capacity ? 2 * catalogue->capacity : 64;
		void *at = reallocarray(catalogue->at, capacity, sizeof(*catalogue->at));

		if (!at)
			return err_set(-ENOMEM, "discovery");
		catalogue->at = at;
		catalogue->capacity = capacity;
	}
	catalogue->at[catalogue->count++] = *entry;
	return 0;
}

/* Where the two shapes of discovery keep what we want. */
struct shape {
	const char *plural, *singular;
	bool aggregated;
};

static bool is_namespaced(const struct value *item, const struct shape *shape)
{
	struct value flag;

	if (shape->aggregated)
		return bytes_equal(text_of(item, "scope"), BYTES_LIT("Namespaced"));
	return value_find(item, BYTES_LIT("namespaced"), &flag) == FOUND &&
	       flag.type == VALUE_BOOL && flag.u.b;
}

static struct bytes kind_of(const struct value *item, const struct shape *shape)
{
	struct value kind;

	if (!shape->aggregated)
		return text_of(item, "kind");
	if (value_find(item, BYTES_LIT("responseKind"), &kind) != FOUND)
		return BYTES_LIT("");
	return text_of(&kind, "kind");
}

/* A subresource ("pods/status") or what has no proper name is not taken. */
static int take_resource(struct catalogue *catalogue, const struct value *item,
	const struct shape *shape, const struct catalogue_place *place)
{
	struct catalogue_entry entry = {
		.rank = place->group_at << 32 | place->version_at,
		.usable = list_has(item, "verbs", "list") && list_has(item, "verbs", "watch"),
	};
	struct resource *resource = &entry.resource;

	if (!text_take(text_of(item, shape->plural), resource->plural, sizeof(resource->plural)) ||
		!text_take(kind_of(item, shape), resource->kind, sizeof(resource->kind)) ||
		!*resource->plural || !*resource->kind)
		return 0;
	if (!text_take(bytes_str(place->group), resource->group, sizeof(resource->group)) ||
		!text_take(bytes_str(place->version), resource->version,
			sizeof(resource->version)))
		return 0;
	(void)text_take(text_of(item, shape->singular), entry.singular, sizeof(entry.singular));
	(void)snprintf(resource->list_kind, sizeof(resource->list_kind), "%sList", resource->kind);
	resource->namespaced = is_namespaced(item, shape);
	take_short_names(item, &entry);
	(void)snprintf(resource->aliases, sizeof(resource->aliases), "%s%s%s", entry.singular,
		*entry.singular ? " " : "", entry.short_names);
	return add_entry(catalogue, &entry);
}

/* All of the list LIST_KEY of OWNER. */
static int take_resources(struct catalogue *catalogue, const struct value *owner,
	const struct shape *shape, const struct catalogue_place *place)
{
	struct value list, item;
	struct value_iter iter;
	struct bytes none;
	int r;

	r = value_find(owner, BYTES_LIT("resources"), &list);
	if (r != FOUND)
		return r == NOT_FOUND ? 0 : r;
	value_iter_init(&iter, &list);
	while ((r = value_iter_next(&iter, &none, &item)) == FOUND) {
		r = take_resource(catalogue, &item, shape, place);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

int catalogue_add_resources(struct catalogue *catalogue, struct bytes document,
	const struct catalogue_place *place)
{
	static const struct shape shape = {.plural = "name", .singular = "singularName"};
	struct value root;
	int r = value_read(document, &root);

	return r < 0 ? r : take_resources(catalogue, &root, &shape, place);
}

int catalogue_add_broken(struct catalogue *catalogue, const char *group, const char *version)
{
	struct catalogue_broken *broken;

	if (catalogue->n_broken == ENTRIES_MAX)
		return err_say(ERR_TOO_LARGE, "discovery: more than %zu broken groups", ENTRIES_MAX);
	broken = reallocarray(catalogue->broken, catalogue->n_broken + 1, sizeof(*broken));
	if (!broken)
		return err_set(-ENOMEM, "discovery");
	catalogue->broken = broken;
	broken += catalogue->n_broken;
	if (text_take(bytes_str(group), broken->group, sizeof(broken->group)) &&
		text_take(bytes_str(version), broken->version, sizeof(broken->version)))
		catalogue->n_broken++;
	return 0;
}

/* A version that the server calls stale keeps the resources that were last known of it, often none. */
static int take_version(struct catalogue *catalogue, const struct value *item,
	struct catalogue_place *place)
{
	static const struct shape shape = {
		.plural = "resource", .singular = "singularResource", .aggregated = true};
	bool stale = bytes_equal(text_of(item, "freshness"), BYTES_LIT("Stale"));
	size_t before = catalogue->count;
	char version[64];
	int r;

	if (!text_take(text_of(item, "version"), version, sizeof(version)) || !*version)
		return 0;
	place->version = version;
	if (stale)
		place->version_at += STALE_BEHIND;
	r = take_resources(catalogue, item, &shape, place);
	if (!r && stale && catalogue->count == before)
		r = catalogue_add_broken(catalogue, place->group, version);
	return r;
}

static int take_group(struct catalogue *catalogue, const struct value *item, uint64_t group_at)
{
	struct value meta, versions, version;
	struct value_iter iter;
	struct bytes none;
	char group[254] = "";
	int r;

	if (value_find(item, BYTES_LIT("metadata"), &meta) == FOUND &&
		!text_take(text_of(&meta, "name"), group, sizeof(group)))
		return 0;
	r = value_find(item, BYTES_LIT("versions"), &versions);
	if (r != FOUND)
		return r == NOT_FOUND ? 0 : r;
	value_iter_init(&iter, &versions);
	for (uint64_t i = 0; (r = value_iter_next(&iter, &none, &version)) == FOUND; i++) {
		struct catalogue_place place = {
			.group = group, .group_at = group_at, .version_at = i};

		r = take_version(catalogue, &version, &place);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

int catalogue_add_aggregated(struct catalogue *catalogue, struct bytes document,
	uint64_t groups_before)
{
	struct value root, items, item;
	struct value_iter iter;
	struct bytes none;
	int r = value_read(document, &root);

	if (!r)
		r = value_find(&root, BYTES_LIT("items"), &items);
	if (r != FOUND)
		return r == NOT_FOUND ? 0 : r;
	value_iter_init(&iter, &items);
	while ((r = value_iter_next(&iter, &none, &item)) == FOUND) {
		r = take_group(catalogue, &item, groups_before++);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

/* ---- the older documents ---- */

/* The core group's APIVersions: {"versions": ["v1"]}. */
static int each_core_version(const struct value *versions, uint64_t group_at,
	catalogue_place_fn *fn, void *arg)
{
	struct value_iter iter;
	struct value item;
	struct bytes none;
	int r;

	value_iter_init(&iter, versions);
	for (uint64_t i = 0; (r = value_iter_next(&iter, &none, &item)) == FOUND; i++) {
		struct catalogue_place place = {.group = "", .group_at = group_at, .version_at = i};
		char version[64];

		if (item.type != VALUE_STRING || !text_take(item.text, version, sizeof(version)))
			continue;
		place.version = version;
		r = fn(arg, &place);
		if (r)
			return r;
	}
	return r < 0 ? r : 0;
}

/* The preferred version has place 0, the others follow in their order. */
static int each_group_version(const struct value *group, uint64_t group_at, catalogue_place_fn *fn,
	void *arg)
{
	struct value versions, item, preferred;
	struct value_iter iter;
	struct bytes none, first = BYTES_LIT("");
	char name[254], version[64];
	int r;

	if (!text_take(text_of(group, "name"), name, sizeof(name)) || !*name ||
		value_find(group, BYTES_LIT("versions"), &versions) != FOUND)
		return 0;
	if (value_find(group, BYTES_LIT("preferredVersion"), &preferred) == FOUND)
		first = text_of(&preferred, "version");
	value_iter_init(&iter, &versions);
	for (uint64_t i = 1; (r = value_iter_next(&iter, &none, &item)) == FOUND; i++) {
		struct bytes text = text_of(&item, "version");
		struct catalogue_place place = {.group = name, .version = version,
			.group_at = group_at, .version_at = bytes_equal(text, first) ? 0 : i};

		if (!text.size || !text_take(text, version, sizeof(version)))
			continue;
		r = fn(arg, &place);
		if (r)
			return r;
	}
	return r < 0 ? r : 0;
}

int catalogue_each_place(struct bytes document, uint64_t groups_before, catalogue_place_fn *fn,
	void *arg)
{
	struct value root, list, item;
	struct value_iter iter;
	struct bytes none;
	int r = value_read(document, &root);

	if (r < 0)
		return r;
	if (value_find(&root, BYTES_LIT("groups"), &list) != FOUND)
		return value_find(&root, BYTES_LIT("versions"), &list) == FOUND
			       ? each_core_version(&list, groups_before, fn, arg)
			       : 0;
	value_iter_init(&iter, &list);
	while ((r = value_iter_next(&iter, &none, &item)) == FOUND) {
		r = each_group_version(&item, groups_before++, fn, arg);
		if (r)
			return r;
	}
	return r < 0 ? r : 0;
}

static int by_rank(const void *a, const void *b)
{
	const struct catalogue_entry *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return strcmp(x->resource.plural, y->resource.plural);
}

void catalogue_sort(struct catalogue *catalogue)
{
	if (catalogue->count)
		qsort(catalogue->at, catalogue->count, sizeof(*catalogue->at), by_rank);
}

/* ---- finding ---- */

struct wanted {
	char name[64];
	const char *version; /* NULL: any */
	const char *group;   /* NULL: any */
	bool group_prefix;   /* kubectl's second try: `deployments.app` */
};

static bool scope_matches(const struct wanted *wanted, const struct resource *resource)
{
	if (wanted->version && strcasecmp(wanted->version, resource->version))
		return false;
	if (!wanted->group)
		return true;
	if (wanted->group_prefix)
		return !strncasecmp(wanted->group, resource->group, strlen(wanted->group));
	return !strcasecmp(wanted->group, resource->group);
}

static bool is_short_name(const char *names, const char *name)
{
	size_t size = strlen(name);

	for (const char *p = names; *p; p += strcspn(p, " ") + 1)
		if (!strncasecmp(p, name, size) && p[size] == ' ')
			return true;
	return false;
}

/* The ways to name a resource, the most exact first. */
enum naming { BY_PLURAL, BY_SINGULAR, BY_SHORT_NAME, BY_KIND, NAMING_MAX };

static bool name_matches(enum naming by, const char *name, const struct catalogue_entry *entry)
{
	switch (by) {
	case BY_PLURAL:
		return !strcasecmp(name, entry->resource.plural);
	case BY_SINGULAR:
		return !strcasecmp(name, entry->singular);
	case BY_SHORT_NAME:
		return is_short_name(entry->short_names, name);
	default:
		return !strcasecmp(name, entry->resource.kind);
	}
}

static const struct catalogue_entry *match(const struct catalogue *catalogue,
	const struct wanted *wanted, bool usable)
{
	for (enum naming by = 0; by < NAMING_MAX; by++)
		for (size_t i = 0; i < catalogue->count; i++) {
			const struct catalogue_entry *entry = &catalogue->at[i];

			if (entry->usable == usable && scope_matches(wanted, &entry->resource) &&
				name_matches(by, wanted->name, entry))
				return entry;
		}
	return NULL;
}

/*
 * NAME's REST may be VERSION.GROUP, GROUP, or VERSION (of the core group, or of any); tried in this
 * order, as `widgets.example.com` and `deployments.v1.apps` look the same.
 */
static const struct catalogue_entry *match_rest(const struct catalogue *catalogue,
	struct wanted *wanted, const char *rest, bool usable)
{
	const struct catalogue_entry *entry = NULL;
	const char *dot = strchr(rest, '.');
	char version[64];

	if (dot && text_take(BYTES(rest, (size_t)(dot - rest)), version, sizeof(version))) {
		wanted->version = version;
		wanted->group = dot + 1;
		entry = match(catalogue, wanted, usable);
		wanted->version = NULL;
	}
	wanted->group = rest;
	if (!entry)
		entry = match(catalogue, wanted, usable);
	if (!entry && !dot) {
		wanted->group = NULL;
		wanted->version = rest;
		entry = match(catalogue, wanted, usable);
		wanted->version = NULL;
	}
	if (!entry) {
		wanted->group = rest;
		wanted->group_prefix = true;
		entry = match(catalogue, wanted, usable);
		wanted->group_prefix = false;
	}
	return entry;
}

static const struct catalogue_entry *match_name(const struct catalogue *catalogue,
	struct wanted *wanted, const char *rest, bool usable)
{
	if (rest && *rest)
		return match_rest(catalogue, wanted, rest, usable);
	return match(catalogue, wanted, usable);
}

/* ---- near names ---- */

/* Levenshtein distance of two words of at most 63 letters. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[65];
	size_t n = strlen(b);

	for (size_t j = 0; j <= n; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; a[i - 1]; i++) {
		unsigned corner = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= n; j++) {
			bool same = tolower((unsigned char)a[i - 1]) ==
				    tolower((unsigned char)b[j - 1]);
			unsigned best = corner + !same;

			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			corner = row[j];
			row[j] = best;
		}
	}
	return row[n];
}

static bool is_near(const char *name, const struct catalogue_entry *entry)
{
	unsigned most = strlen(name) < 5 ? 1 : 2;

	return entry->usable && (distance(name, entry->resource.plural) <= most ||
					distance(name, entry->singular) <= most);
}

/* "; did you mean 'pods', 'nodes'", or nothing. */
static const char *near_names(const struct catalogue *catalogue, const char *name, struct buf *out)
{
	size_t found = 0;

	for (size_t i = 0; i < catalogue->count && found < NEAR_MAX; i++) {
		const struct resource *resource = &catalogue->at[i].resource;

		if (!is_near(name, &catalogue->at[i]))
			continue;
		buf_str(out, found++ ? ", '" : "; did you mean '");
		buf_str(out, resource->plural);
		if (*resource->group)
			buf_printf(out, ".%s", resource->group);
		buf_str(out, "'");
	}
	return buf_cstr(out);
}

/* ---- the answer ---- */

/* It may be there all the same, in a group that could not be read. */
static const struct catalogue_broken *perhaps_in(const struct catalogue *catalogue,
	const char *rest)
{
	for (size_t i = 0; i < catalogue->n_broken; i++) {
		const char *group = catalogue->broken[i].group;
		size_t n = strlen(group), m = rest ? strlen(rest) : 0;

		if (!m || (m >= n && !strcasecmp(rest + m - n, group)))
			return &catalogue->broken[i];
	}
	return NULL;
}

static int not_found(const struct catalogue *catalogue, struct wanted *wanted, const char *name,
	const char *rest)
{
	const struct catalogue_broken *broken = perhaps_in(catalogue, rest);
	struct buf near = BUF_INIT;
	int r;

	if (match_name(catalogue, wanted, rest, false))
		return err_say(ERR_NO_RESOURCE, "'%s' can't be listed and watched", name);
	if (broken)
		return err_say(ERR_HTTP,
			"the server has no resource '%s', but '%s%s%s' could not be read", name,
			broken->group, *broken->group ? "/" : "", broken->version);
	r = err_say(ERR_NO_RESOURCE, "the server has no resource '%s'%s", name,
		near_names(catalogue, wanted->name, &near));
	buf_release(&near);
	return r;
}

int catalogue_find(const struct catalogue *catalogue, const char *name,
	struct resource *ret_resource)
{
	struct wanted wanted = {.name = ""};
	const char *dot = strchr(name, '.');
	const char *rest = dot ? dot + 1 : NULL;
	size_t size = dot ? (size_t)(dot - name) : strlen(name);
	const struct catalogue_entry *entry;

	if (!size || !text_take(BYTES(name, size), wanted.name, sizeof(wanted.name)))
		return err_say(ERR_CONFIG, "'%s' is no name of a resource", name);
	entry = match_name(catalogue, &wanted, rest, true);
	if (!entry)
		return not_found(catalogue, &wanted, name, rest);
	*ret_resource = entry->resource;
	return FOUND;
}
