/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a resource by a name in a person's writing, by kubectl's rules. */
#include "reflector/cluster/catalogue.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/buf.h"
#include "common/err.h"
#include "common/text/similar.h"

#define NEAR_MAX 3 /* similar names in a sentence */

struct catalogue_query {
	char name[64];
	const char *version; /* NULL: any */
	const char *group;   /* NULL: any */
	bool group_prefix;   /* `group` is a prefix, kubectl's last attempt: `deployments.app` */
};

static bool query_matches_scope(
	const struct catalogue_query *query, const struct resource *resource)
{
	if (query->version && strcasecmp(query->version, resource->version))
		return false;
	if (!query->group)
		return true;
	if (query->group_prefix)
		return !strncasecmp(query->group, resource->group, strlen(query->group));
	return !strcasecmp(query->group, resource->group);
}

static bool is_short_name(const char *names, const char *name)
{
	size_t size = strlen(name);

	for (const char *p = names; *p; p += strcspn(p, " ") + 1)
		if (!strncasecmp(p, name, size) && p[size] == ' ')
			return true;
	return false;
}

/* The ways to name a resource, in the order of the attempts. */
enum query_naming { BY_PLURAL, BY_SINGULAR, BY_SHORT_NAME, BY_KIND, NAMING_MAX };

static const struct catalogue_entry *query_find_name(
	const struct catalogue *catalogue, const struct catalogue_query *query, bool usable)
{
	for (enum query_naming by = 0; by < NAMING_MAX; by++)
		for (size_t i = 0; i < catalogue->count; i++) {
			const struct catalogue_entry *entry = &catalogue->at[i];
			const char *const names[NAMING_MAX] = {
				[BY_PLURAL] = entry->resource.plural,
				[BY_SINGULAR] = entry->singular,
				[BY_KIND] = entry->resource.kind,
			};

			if (entry->usable == usable &&
				query_matches_scope(query, &entry->resource) &&
				(by == BY_SHORT_NAME
						? is_short_name(entry->short_names, query->name)
						: !strcasecmp(query->name, names[by])))
				return entry;
		}
	return NULL;
}

/* Finds a name, with REST after its first dot (NULL: no dot). `widgets.example.com` and
 * `deployments.v1.apps` look the same, so REST is tried as VERSION.GROUP, GROUP, VERSION of any
 * group, and the prefix of a group. */
static const struct catalogue_entry *query_find(const struct catalogue *catalogue,
	struct catalogue_query *query, const char *rest, bool usable)
{
	const struct catalogue_entry *entry = NULL;
	char version[64];

	if (!rest || !*rest)
		return query_find_name(catalogue, query, usable);

	const char *dot = strchr(rest, '.');

	if (dot &&
		catalogue_copy_name(BYTES(rest, (size_t)(dot - rest)), version, sizeof(version))) {
		query->version = version;
		query->group = dot[1] ? dot + 1 : NULL;
		entry = query_find_name(catalogue, query, usable);
		query->version = NULL;
	}
	query->group = rest;
	if (!entry)
		entry = query_find_name(catalogue, query, usable);
	if (!entry && !dot) {
		query->group = NULL;
		query->version = rest;
		entry = query_find_name(catalogue, query, usable);
		query->version = NULL;
	}
	if (!entry) {
		query->group = rest;
		query->group_prefix = true;
		entry = query_find_name(catalogue, query, usable);
		query->group_prefix = false;
	}
	return entry;
}

/* ---- similar names ------------------------------------------------------ */

/* Appends "; did you mean 'pods', 'nodes'?", or nothing. */
static const char *find_similar_names(
	const struct catalogue *catalogue, const char *name, struct buf *out)
{
	const struct resource *shown[NEAR_MAX];
	size_t found = 0;

	for (size_t i = 0; i < catalogue->count && found < NEAR_MAX; i++) {
		const struct catalogue_entry *entry = &catalogue->at[i];
		const struct resource *resource = &entry->resource;
		bool again = false; /* in another version */

		if (!entry->usable ||
			(!similar(name, resource->plural) && !similar(name, entry->singular)))
			continue;
		for (size_t j = 0; j < found; j++)
			again |= strcmp(shown[j]->plural, resource->plural) == 0 &&
				 strcmp(shown[j]->group, resource->group) == 0;
		if (again)
			continue;
		shown[found] = resource;
		buf_str(out, found++ ? ", '" : "; did you mean '");
		buf_str(out, resource->plural);
		if (*resource->group)
			buf_printf(out, ".%s", resource->group);
		buf_str(out, "'");
	}
	buf_str(out, found ? "?" : "");
	return buf_cstr(out);
}

/* ---- the result --------------------------------------------------------- */

static int find_failed(const struct catalogue *catalogue, struct catalogue_query *query,
	const char *name, const char *rest)
{
	const struct catalogue_broken *broken = NULL; /* it may have the resource */
	struct buf near = BUF_INIT;
	size_t size = rest ? strlen(rest) : 0;
	int r;

	for (size_t i = 0; i < catalogue->n_broken && !broken; i++) {
		const char *group = catalogue->broken[i].group;
		size_t n = strlen(group);

		if (!size || (size >= n && !strcasecmp(rest + size - n, group)))
			broken = &catalogue->broken[i];
	}
	if (query_find(catalogue, query, rest, false))
		return err_say(ERR_NO_RESOURCE, "'%s' can't be listed and watched", name);
	if (broken)
		return err_say(ERR_HTTP,
			"the server has no resource '%s', but '%s%s%s' could not be read", name,
			broken->group, *broken->group ? "/" : "", broken->version);
	r = err_say(ERR_NO_RESOURCE, "the server has no resource '%s'%s", name,
		find_similar_names(catalogue, query->name, &near));
	buf_release(&near);
	return r;
}

int catalogue_find(
	const struct catalogue *catalogue, const char *name, struct resource *ret_resource)
{
	struct catalogue_query query = {.name = ""};
	const char *dot = strchr(name, '.');
	const char *rest = dot ? dot + 1 : NULL;
	size_t size = dot ? (size_t)(dot - name) : strlen(name);
	const struct catalogue_entry *entry;

	if (!size || !catalogue_copy_name(BYTES(name, size), query.name, sizeof(query.name)))
		return err_say(ERR_CONFIG, "'%s' is not the name of a resource", name);
	entry = query_find(catalogue, &query, rest, true);
	if (!entry)
		return find_failed(catalogue, &query, name, rest);
	*ret_resource = entry->resource;
	return FOUND;
}
