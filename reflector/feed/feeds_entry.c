/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/feeds_entry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/err.h"

int entry_init(const struct config_feed *config, size_t n, struct entry *ret_entry)
{
	const char *name_space = n < config->n_namespaces ? config->namespaces[n] : "";

	*ret_entry = (struct entry){
		.name = strdup(config->name),
		.resource = strdup(config->resource),
		.name_space = strdup(name_space),
		.label_selector = strdup(config->label_selector),
		.field_selector = strdup(config->field_selector),
		.drop = strdup(config->drop),
		.metadata_only = config->metadata_only,
		.page_size = config->page_size,
		.drop_gone = config->drop_gone,
		.resync_ns = config->resync_ns,
	};
	if (ret_entry->name && ret_entry->resource && ret_entry->name_space &&
		ret_entry->label_selector && ret_entry->field_selector && ret_entry->drop)
		return 0;
	return err_set(-ENOMEM, "feed '%s'", config->name);
}

/* "pods.v1", "deployments.v1.apps". */
static void entry_write_resource(const struct entry_resource *resource, char *ret_text, size_t size)
{
	snprintf(ret_text, size, "%s.%s%s%s", resource->plural, resource->version,
		*resource->group ? "." : "", resource->group);
}

int entry_init_of(const struct config_feed *wildcard, size_t n,
	const struct entry_resource *resource, struct entry *ret_entry)
{
	char name[CONFIG_FULL_NAME_SIZE], text[2 * CONFIG_FULL_NAME_SIZE];
	struct config_feed one = *wildcard;

	snprintf(name, sizeof(name), "%s%s%s", resource->plural, *resource->group ? "." : "",
		resource->group);
	entry_write_resource(resource, text, sizeof(text));
	one.name = name;
	one.resource = text;
	return entry_init(&one, n, ret_entry);
}

bool entry_is_of(const struct entry *entry, const struct entry_resource *resource)
{
	char text[2 * CONFIG_FULL_NAME_SIZE];

	entry_write_resource(resource, text, sizeof(text));
	return !strcmp(entry->resource, text);
}

void entry_release(struct entry *entry)
{
	free(entry->name);
	free(entry->resource);
	free(entry->name_space);
	free(entry->label_selector);
	free(entry->field_selector);
	free(entry->drop);
	*entry = (struct entry){0};
}

bool entry_same(const struct entry *a, const struct entry *b)
{
	return !strcmp(a->name, b->name) && !strcmp(a->resource, b->resource) &&
	       !strcmp(a->name_space, b->name_space) &&
	       !strcmp(a->label_selector, b->label_selector) &&
	       !strcmp(a->field_selector, b->field_selector) && !strcmp(a->drop, b->drop) &&
	       a->metadata_only == b->metadata_only;
}

bool entry_is_named(const char *stored, const char *name)
{
	size_t size = strlen(name);

	return !strncmp(stored, name, size) && (!stored[size] || !strcmp(stored + size, FEED_NEXT));
}

bool entry_means(const struct entry *entry, const struct feed_definition *d)
{
	/* The first label of plural[.version][.group] may be a short name, known to discovery
	 * only. */
	const char *rest = strchr(entry->resource, '.');
	size_t version = strlen(d->version);

	if (!entry_is_named(d->name, entry->name) ||
		strcmp(d->namespace_, entry->name_space) != 0 ||
		strcmp(d->label_selector, entry->label_selector) != 0 ||
		strcmp(d->field_selector, entry->field_selector) != 0 ||
		strcmp(d->drop, entry->drop) != 0 || d->metadata_only != entry->metadata_only)
		return false;
	if (!rest || !strcmp(rest + 1, d->group) || !strcmp(rest + 1, d->version))
		return true;
	return !strncmp(rest + 1, d->version, version) && rest[1 + version] == '.' &&
	       !strcmp(rest + 2 + version, d->group);
}

int entry_define(const struct entry *entry, const struct resource *resource,
	struct feed_definition *ret_definition)
{
	if (*entry->name_space && !resource->namespaced)
		return err_say(ERR_CONFIG, "'%s' has no namespaces, but feed '%s' names one",
			resource->plural, entry->name);
	*ret_definition = (struct feed_definition){
		.name = entry->name,
		.aliases = resource->aliases,
		.categories = resource->categories,
		.group = resource->group,
		.version = resource->version,
		.resource = resource->plural,
		.kind = resource->kind,
		.list_kind = resource->list_kind,
		.namespace_ = entry->name_space,
		.label_selector = entry->label_selector,
		.field_selector = entry->field_selector,
		.drop = entry->drop,
		.namespaced = resource->namespaced,
		.metadata_only = entry->metadata_only,
		.resync_ns = entry->resync_ns,
	};
	return 0;
}
