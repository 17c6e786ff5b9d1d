/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/cluster/catalogue.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/err.h"
#include "common/value/value.h"

#define STALE_RANK ((uint64_t)1 << 20) /* more than a group has versions */
/* about 1 kB each; a cluster with 5,000 CRDs has 10,000 */
#define ENTRIES_MAX ((size_t)1 << 16)

void catalogue_release(struct catalogue *catalogue)
{
	free(catalogue->at);
	free(catalogue->broken);
	*catalogue = (struct catalogue){NULL};
}

/* ---- filling ------------------------------------------------------------ */

bool catalogue_copy_name(struct bytes text, char *ret_text, size_t size)
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

struct bytes catalogue_text(const struct value *map, const char *key)
{
	struct value item;

	if (value_find(map, bytes_str(key), &item) != FOUND || item.type != VALUE_STRING)
		return BYTES_LIT("");
	return item.text;
}

/* Begins a walk over MAP's list KEY. Returns: FOUND, NOT_FOUND, ERR_CORRUPT. */
static int catalogue_list(const struct value *map, const char *key, struct value_iter *ret_iter)
{
	struct value list;
	int r = value_find(map, bytes_str(key), &list);

	if (r == FOUND)
		value_iter_init(ret_iter, &list);
	return r;
}

static int catalogue_next(struct value_iter *iter, struct value *ret_item)
{
	struct bytes none;

	return value_iter_next(iter, &none, ret_item);
}

static bool catalogue_has_verb(const struct value *map, const char *wanted)
{
	struct value_iter iter;
	struct value item;

	if (catalogue_list(map, "verbs", &iter) != FOUND)
		return false;
	while (catalogue_next(&iter, &item) == FOUND)
		if (item.type == VALUE_STRING && bytes_equal(item.text, bytes_str(wanted)))
			return true;
	return false;
}

void catalogue_read_words(const struct value *map, const char *key, char *room, size_t size)
{
	struct value_iter iter;
	struct value item;
	char word[128];
	size_t used = 0;

	if (catalogue_list(map, key, &iter) != FOUND)
		return;
	room[0] = '\0';
	while (catalogue_next(&iter, &item) == FOUND)
		if (item.type == VALUE_STRING && used + item.text.size + 2 <= size &&
			catalogue_copy_name(item.text, word, sizeof(word)))
			used += (size_t)snprintf(room + used, size - used, "%s ", word);
}

/* The names of members in the two forms of discovery documents. */
struct catalogue_shape {
	const char *plural, *singular;
	bool aggregated;
};

/* Adds one resource. Skips subresources ("pods/status") and resources without a proper name. */
static int catalogue_read_resource(struct catalogue *catalogue, const struct value *item,
	const struct catalogue_shape *shape, const struct catalogue_place *place)
{
	struct catalogue_entry entry = {
		.rank = place->group_at << 32 | place->version_at,
		.usable = catalogue_has_verb(item, "list") && catalogue_has_verb(item, "watch"),
	};
	struct resource *resource = &entry.resource;
	struct bytes kind = catalogue_text(item, "kind");
	struct value member;

	if (shape->aggregated)
		kind = value_find(item, BYTES_LIT("responseKind"), &member) == FOUND
			       ? catalogue_text(&member, "kind")
			       : BYTES_LIT("");
	if (!catalogue_copy_name(catalogue_text(item, shape->plural), resource->plural,
		    sizeof(resource->plural)) ||
		!catalogue_copy_name(kind, resource->kind, sizeof(resource->kind)) ||
		!*resource->plural || !*resource->kind)
		return 0;
	if (!catalogue_copy_name(
		    bytes_str(place->group), resource->group, sizeof(resource->group)) ||
		!catalogue_copy_name(
			bytes_str(place->version), resource->version, sizeof(resource->version)))
		return 0;
	(void)catalogue_copy_name(
		catalogue_text(item, shape->singular), entry.singular, sizeof(entry.singular));
	/* Some servers (all before 1.27) give none: clients make one of the kind. */
	if (!*entry.singular)
		for (size_t i = 0; resource->kind[i]; i++)
			entry.singular[i] = (char)tolower((unsigned char)resource->kind[i]);
	(void)snprintf(resource->list_kind, sizeof(resource->list_kind), "%sList", resource->kind);
	if (shape->aggregated)
		resource->namespaced =
			bytes_equal(catalogue_text(item, "scope"), BYTES_LIT("Namespaced"));
	else
		resource->namespaced =
			value_find(item, BYTES_LIT("namespaced"), &member) == FOUND &&
			member.type == VALUE_BOOL && member.u.b;
	catalogue_read_words(item, "shortNames", entry.short_names, sizeof(entry.short_names));
	catalogue_read_words(
		item, "categories", resource->categories, sizeof(resource->categories));
	(void)snprintf(resource->aliases, sizeof(resource->aliases), "%s %s", entry.singular,
		entry.short_names);
	if (catalogue->count == ENTRIES_MAX)
		return err_say(ERR_TOO_LARGE, "discovery: more than %zu resources", ENTRIES_MAX);
	return ARRAY_ADD(catalogue->at, catalogue->count, catalogue->room, entry,
		"the catalogue of resources");
}

/* Adds all of OWNER's list "resources". */
static int catalogue_read_resources(struct catalogue *catalogue, const struct value *owner,
	const struct catalogue_shape *shape, const struct catalogue_place *place)
{
	struct value_iter iter;
	struct value item;
	int r = catalogue_list(owner, "resources", &iter);

	if (r != FOUND)
		return r == NOT_FOUND ? 0 : r;
	while ((r = catalogue_next(&iter, &item)) == FOUND) {
		r = catalogue_read_resource(catalogue, &item, shape, place);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

int catalogue_add_resources(
	struct catalogue *catalogue, struct bytes document, const struct catalogue_place *place)
{
	static const struct catalogue_shape shape = {.plural = "name", .singular = "singularName"};
	struct value root;
	int r = value_read(document, &root);

	return r < 0 ? r : catalogue_read_resources(catalogue, &root, &shape, place);
}

int catalogue_add_broken(struct catalogue *catalogue, const char *group, const char *version)
{
	struct catalogue_broken broken;

	if (catalogue->n_broken == ENTRIES_MAX)
		return err_say(
			ERR_TOO_LARGE, "discovery: more than %zu broken groups", ENTRIES_MAX);
	if (!catalogue_copy_name(bytes_str(group), broken.group, sizeof(broken.group)) ||
		!catalogue_copy_name(bytes_str(version), broken.version, sizeof(broken.version)))
		return 0;
	return ARRAY_ADD(catalogue->broken, catalogue->n_broken, catalogue->broken_room, broken,
		"the list of broken groups");
}

/* Adds the versions of one group. A stale version lists the resources last known, often none. */
static int catalogue_read_group(
	struct catalogue *catalogue, const struct value *item, uint64_t group_at)
{
	static const struct catalogue_shape shape = {
		.plural = "resource", .singular = "singularResource", .aggregated = true};
	struct value meta, version;
	struct value_iter iter;
	char group[254] = "", name[64];
	int r;

	if (value_find(item, BYTES_LIT("metadata"), &meta) == FOUND &&
		!catalogue_copy_name(catalogue_text(&meta, "name"), group, sizeof(group)))
		return 0;
	r = catalogue_list(item, "versions", &iter);
	if (r != FOUND)
		return r == NOT_FOUND ? 0 : r;
	for (uint64_t i = 0; (r = catalogue_next(&iter, &version)) == FOUND; i++) {
		bool stale = bytes_equal(catalogue_text(&version, "freshness"), BYTES_LIT("Stale"));
		struct catalogue_place place = {.group = group,
			.version = name,
			.group_at = group_at,
			.version_at = i + (stale ? STALE_RANK : 0)};
		size_t before = catalogue->count;

		if (!catalogue_copy_name(catalogue_text(&version, "version"), name, sizeof(name)) ||
			!*name)
			continue;
		r = catalogue_read_resources(catalogue, &version, &shape, &place);
		if (!r && stale && catalogue->count == before)
			r = catalogue_add_broken(catalogue, group, name);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

int catalogue_add_aggregated(
	struct catalogue *catalogue, struct bytes document, uint64_t groups_before)
{
	struct value_iter iter;
	struct value root, item;
	int r = value_read(document, &root);

	if (!r)
		r = catalogue_list(&root, "items", &iter);
	if (r != FOUND)
		return r == NOT_FOUND ? 0 : r;
	while ((r = catalogue_next(&iter, &item)) == FOUND) {
		r = catalogue_read_group(catalogue, &item, groups_before++);
		if (r < 0)
			return r;
	}
	return r < 0 ? r : 0;
}

/* ---- documents of servers without aggregated discovery ------------------ */

/* Reads one group. Its preferred version has position 0, the others follow in their order. */
static int catalogue_each_group_version(
	const struct value *group, uint64_t group_at, catalogue_place_fn *fn, void *arg)
{
	struct value_iter iter;
	struct value item, preferred;
	struct bytes first = BYTES_LIT("");
	char name[254], version[64];
	int r;

	if (!catalogue_copy_name(catalogue_text(group, "name"), name, sizeof(name)) || !*name ||
		catalogue_list(group, "versions", &iter) != FOUND)
		return 0;
	if (value_find(group, BYTES_LIT("preferredVersion"), &preferred) == FOUND)
		first = catalogue_text(&preferred, "version");
	for (uint64_t i = 1; (r = catalogue_next(&iter, &item)) == FOUND; i++) {
		struct bytes text = catalogue_text(&item, "version");
		struct catalogue_place place = {.group = name,
			.version = version,
			.group_at = group_at,
			.version_at = bytes_equal(text, first) ? 0 : i};

		if (!text.size || !catalogue_copy_name(text, version, sizeof(version)))
			continue;
		r = fn(arg, &place);
		if (r)
			return r;
	}
	return r < 0 ? r : 0;
}

int catalogue_each_place(
	struct bytes document, uint64_t groups_before, catalogue_place_fn *fn, void *arg)
{
	struct value_iter iter;
	struct value root, item;
	char version[64];
	int r = value_read(document, &root);

	if (r < 0)
		return r;
	if (catalogue_list(&root, "groups", &iter) == FOUND) {
		while ((r = catalogue_next(&iter, &item)) == FOUND) {
			r = catalogue_each_group_version(&item, groups_before++, fn, arg);
			if (r)
				return r;
		}
		return r < 0 ? r : 0;
	}
	/* The core group's APIVersions: {"versions": ["v1"]}. */
	if (catalogue_list(&root, "versions", &iter) != FOUND)
		return 0;
	for (uint64_t i = 0; (r = catalogue_next(&iter, &item)) == FOUND; i++) {
		struct catalogue_place place = {.group = "",
			.version = version,
			.group_at = groups_before,
			.version_at = i};

		if (item.type != VALUE_STRING ||
			!catalogue_copy_name(item.text, version, sizeof(version)))
			continue;
		r = fn(arg, &place);
		if (r)
			return r;
	}
	return r < 0 ? r : 0;
}

static int catalogue_by_rank(const void *a, const void *b)
{
	const struct catalogue_entry *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return strcmp(x->resource.plural, y->resource.plural);
}

void catalogue_sort(struct catalogue *catalogue)
{
	if (catalogue->count)
		qsort(catalogue->at, catalogue->count, sizeof(*catalogue->at), catalogue_by_rank);
}
