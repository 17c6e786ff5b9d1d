/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds and their indexes: the entries of `feeds` in kinf.yaml, and their checks. */
#include "common/config/config_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/stats.h"
#include "common/value/path.h"
#include "common/value/selector.h"

#define NAMESPACE_MAX 63
#define COMPOUND_MAX  8

#define LOWER   "abcdefghijklmnopqrstuvwxyz"
#define LETTERS LOWER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS  "0123456789"

/* ---- single values of a feed -------------------------------------------- */

/* Returns whether TEXT is 1 to CONFIG_NAME_MAX letters, digits, '-', '.' and '_'. */
static bool config_is_word(const char *text)
{
	size_t n = strspn(text, LETTERS DIGITS "-._");

	return n && !text[n] && n <= CONFIG_NAME_MAX;
}

/* Checks the name of a feed or an index; KIND: "a name". */
static int config_check_name(const struct config_place *place, const char *text, const char *kind)
{
	if (config_is_word(text) && !strchr("-._", text[0]))
		return 0;
	return config_refuse(place,
		"not %s: '%s'; allowed are letters, digits, '-', '.' and '_', the first one a "
		"letter or digit, at most %d",
		kind, text, CONFIG_NAME_MAX);
}

static int config_add_namespace(
	const struct config_place *place, const char *text, struct config_feed *feed)
{
	size_t n = strspn(text, LOWER DIGITS "-");

	if (!n || text[n] || n > NAMESPACE_MAX || text[0] == '-' || text[n - 1] == '-')
		return config_refuse(place,
			"not a namespace: '%s'; allowed are lower case letters, digits and '-' "
			"inside, at most %d",
			text, NAMESPACE_MAX);
	for (size_t i = 0; i < feed->n_namespaces; i++)
		if (strcmp(feed->namespaces[i], text) == 0)
			return config_refuse(place, "'%s' is there twice", text);
	return config_append(&feed->namespaces, &feed->n_namespaces, text);
}

/* Parses a path for a list of lines, as the store keeps them. */
static int config_parse_path(
	const struct config_place *place, const char *text, struct path **ret_path)
{
	int r = path_parse(text, ret_path);

	if (r < 0)
		return config_refuse_code(place, r);
	return strchr(path_text(*ret_path), '\n')
		       ? config_refuse(place, "must not have a line break within a field path")
		       : 0;
}

/* Inserts a line in its order, unless it is there. */
static int config_insert_line(char **lines, const char *line)
{
	const char *before = *lines ? *lines : "", *rest = before;
	char *joined;
	int order = 1;

	while (*rest) {
		size_t size = strcspn(rest, "\n");

		order = bytes_compare(BYTES(rest, size), bytes_str(line));
		if (order >= 0)
			break;
		rest += size + (rest[size] == '\n');
	}
	if (order == 0)
		return 0;
	if (asprintf(&joined, "%.*s%s%s%s%s", (int)(rest - before), before,
		    *before && !*rest ? "\n" : "", line, *rest ? "\n" : "", rest) < 0)
		return err_set(-ENOMEM, "a list of the configuration");
	free(*lines);
	*lines = joined;
	return 0;
}

static int config_add_drop(
	const struct config_place *place, const char *text, struct config_feed *feed)
{
	/* The reflector needs these of each object. */
	static const char *const needed[] = {"apiVersion", "kind", "metadata", "metadata.name",
		"metadata.namespace", "metadata.resourceVersion", "metadata.uid"};
	CLEANUP(path_free) struct path *path = NULL;

	int r = config_parse_path(place, text, &path);
	if (r < 0)
		return r;
	if (!path_is_plain(path))
		return config_refuse(place,
			"'%s': only paths of plain keys can be dropped, without [*] or [0]", text);
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (strcmp(path_text(path), needed[i]) == 0)
			return config_refuse(
				place, "'%s' is needed and can't be dropped", needed[i]);
	return config_insert_line(&feed->drop, path_text(path));
}

int config_set_feed_value(const struct config_place *place, enum config_type type, const char *text,
	struct config_feed *feed)
{
	CLEANUP(selector_free) struct selector *selector = NULL;
	int r;

	switch (type) {
	case CONFIG_RESOURCE:
		if (*text == '*' || !strcmp(text, "all"))
			return config_set_wildcard(place, text, feed);
		if (!config_is_word(text) || !strchr(LETTERS, text[0]) ||
			text[strlen(text) - 1] == '.' || strstr(text, "..") || strchr(text, '_'))
			return config_refuse(place,
				"not a resource: '%s'; write one as pods, deployments.apps or "
				"deployments.v1.apps",
				text);
		return config_copy(&feed->resource, text);
	case CONFIG_NAME:
		r = config_check_name(place, text, "a name");
		return r < 0 ? r : config_copy(&feed->name, text);
	case CONFIG_LABELS:
		r = selector_parse_labels(text, &selector);
		return r < 0 ? config_refuse_code(place, r)
			     : config_copy(&feed->label_selector, selector_text(selector));
	case CONFIG_FIELDS:
		r = selector_parse_query(text, &selector);
		if (r == 0 && selector_compares(selector))
			return config_refuse(place,
				"'%s': the API server knows only = and !=; 'kinf get "
				"--field-selector' compares",
				text);
		return r < 0 ? config_refuse_code(place, r)
			     : config_copy(&feed->field_selector, selector_text(selector));
	case CONFIG_NAMESPACES:
		return config_add_namespace(place, text, feed);
	case CONFIG_DROP:
		return config_add_drop(place, text, feed);
	case CONFIG_EXCLUDE:
		return config_add_exclude(place, text, feed);
	default:
		return config_refuse(place, "must be a list or a map");
	}
}

/* Reads a list of texts in place of the default. */
int config_read_list(const struct config_place *place, const struct yaml_node *node,
	const struct config_key *key, struct config_feed *feed)
{
	const char *text;
	int r = 0;

	if (node->type != YAML_LIST)
		return config_refuse(place, "must be a list");
	if (key->type == CONFIG_DROP)
		r = config_copy(&feed->drop, "");
	for (size_t i = 0; r == 0 && i < node->count; i++) {
		struct config_place here = config_place_item(place, i, node->items[i].line);

		r = config_scalar(&here, &node->items[i], &text);
		if (r == 0)
			r = config_set_feed_value(&here, key->type, text, feed);
	}
	return r;
}

/* ---- indexes ------------------------------------------------------------ */

int config_new_index(const struct config_place *place, const char *name, struct config_feed *feed,
	struct config_index **ret_index)
{
	int r = config_check_name(place, name, "an index name");

	if (r < 0)
		return r;
	if (strcmp(name, "namespace") == 0 || strcmp(name, "label") == 0)
		return config_refuse(place, "'%s' is built in; choose another name", name);
	for (size_t i = 0; i < feed->n_indexes; i++)
		if (strcmp(feed->indexes[i].name, name) == 0)
			return config_refuse(
				place, "feed '%s' already has an index '%s'", feed->name, name);
	r = ARRAY_ADD(feed->indexes, feed->n_indexes, feed->indexes_room, (struct config_index){0},
		"the indexes of a feed");
	if (r < 0)
		return r;
	*ret_index = &feed->indexes[feed->n_indexes - 1];
	return config_copy(&(*ret_index)->name, name);
}

int config_add_index_path(
	const struct config_place *place, const char *text, struct config_index *index)
{
	CLEANUP(path_free) struct path *path = NULL;

	if (index->n_paths == COMPOUND_MAX)
		return config_refuse(place, "at most %d paths in one index", COMPOUND_MAX);
	int r = config_parse_path(place, text, &path);
	return r < 0 ? r : config_append(&index->paths, &index->n_paths, path_text(path));
}

/* An index has one path or a list of them. */
int config_read_indexes(
	const struct config_place *place, const struct yaml_node *node, struct config_feed *feed)
{
	struct config_index *index;
	const char *text;
	int r = 0;

	if (node->type != YAML_MAP)
		return config_refuse(place, "must be a map from index names to field paths");
	for (size_t i = 0; r == 0 && i < node->count; i++) {
		const struct yaml_node *paths = &node->items[i];
		bool is_list = paths->type == YAML_LIST;
		struct config_place here =
			config_place_member(place, node->keys[i], node->key_lines[i]);

		r = config_new_index(&here, node->keys[i], feed, &index);
		if (r == 0 && is_list && !paths->count)
			r = config_refuse(&here, "must be a field path, or a list of at least one");
		for (size_t k = 0; r == 0 && k < (is_list ? paths->count : 1); k++) {
			const struct yaml_node *path = is_list ? &paths->items[k] : paths;
			struct config_place at =
				is_list ? config_place_item(&here, k, path->line) : here;

			r = config_scalar(&at, path, &text);
			if (r == 0)
				r = config_add_index_path(&at, text, index);
		}
	}
	return r;
}

int config_check_index(const struct config_place *place, const struct config_feed *feed,
	const struct config_index *index)
{
	for (size_t i = 0; i < index->n_paths; i++) {
		CLEANUP(path_free) struct path *path = NULL;
		int r = path_parse(index->paths[i], &path);

		if (r < 0)
			return r;
		if (!path_is_kept(path, feed->metadata_only, feed->drop))
			return config_refuse(place,
				"index '%s': the objects of feed '%s' are kept without '%s' "
				"('objects' or 'drop')",
				index->name, feed->name, index->paths[i]);
	}
	return 0;
}

/* Adds the indexes of `resolve`: one for each field that kinf_who() reads. */
static int config_add_resolve(const struct config_place *place, struct config_feed *feed)
{
	static const struct {
		const char *name, *path;
	} indexes[] = {
		{"who-ip", "status.podIPs[*].ip"},
		{"who-uid", "metadata.uid"},
		{"who-container", "status.containerStatuses[*].containerID"},
		{"who-init-container", "status.initContainerStatuses[*].containerID"},
		{"who-ephemeral-container", "status.ephemeralContainerStatuses[*].containerID"},
	};
	struct config_index *index;
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(indexes); i++) {
		r = config_new_index(place, indexes[i].name, feed, &index);
		if (r == 0)
			r = config_add_index_path(place, indexes[i].path, index);
	}
	return r;
}

/* ---- whole feeds -------------------------------------------------------- */

int config_new_feed(struct config *config, struct config_feed **ret_feed)
{
	int r = ARRAY_ADD(config->feeds, config->n_feeds, config->feeds_room,
		(struct config_feed){0}, "the list of configured feeds");

	if (r < 0)
		return r;
	*ret_feed = &config->feeds[config->n_feeds - 1];
	return config_set_defaults(config_feed_keys, *ret_feed);
}

void config_free_feeds(struct config *config)
{
	for (size_t i = 0; i < config->n_feeds; i++) {
		struct config_feed *feed = &config->feeds[i];

		for (size_t k = 0; k < feed->n_indexes; k++) {
			free(feed->indexes[k].name);
			config_free_list(feed->indexes[k].paths, feed->indexes[k].n_paths);
		}
		free(feed->indexes);
		config_free_list(feed->namespaces, feed->n_namespaces);
		config_free_list(feed->exclude, feed->n_exclude);
		free(feed->name);
		free(feed->resource);
		free(feed->label_selector);
		free(feed->field_selector);
		free(feed->drop);
	}
	free(config->feeds);
	config->feeds = NULL;
	config->n_feeds = config->feeds_room = 0;
}

/* Refuses the last feed if an earlier one has its name. The error's line is that of `name`, else of
 * `resource`. */
static int config_check_unique(
	const struct config_place *place, const struct yaml_node *node, const struct config *config)
{
	const struct config_feed *last = &config->feeds[config->n_feeds - 1];
	size_t i = 0;

	while (strcmp(config->feeds[i].name, last->name) != 0)
		i++;
	const struct config_feed *first = &config->feeds[i];
	if (first == last)
		return 0;
	if (!node)
		return config_refuse(place, "two feeds '%s'; give one another name, '%s:NAME'",
			last->name, last->resource);
	const struct yaml_node *name = yaml_get(node, "name");
	struct config_place here = config_place_member(
		place, first->wildcard ? "resource" : "name", name ? name->line : node->line);
	if (first->wildcard)
		return config_refuse(&here, "'%s' is feeds[%zu] in line %zu already", first->name,
			i, first->line);
	return config_refuse(&here,
		"'%s' is also the name of feeds[%zu] in line %zu; give one of them another",
		first->name, i, first->line);
}

int config_finish_feed(
	const struct config_place *place, const struct yaml_node *node, struct config *config)
{
	struct config_feed *feed = &config->feeds[config->n_feeds - 1];
	bool excludes = feed->n_exclude || yaml_get(node, "exclude");
	struct config_place here = *place;
	int r = 0;

	if (node)
		here = config_place_member(place, feed->wildcard ? "name" : "exclude", feed->line);
	if (feed->wildcard && feed->name)
		return config_refuse(&here, "a wildcard's feeds are named after their resources");
	if (!feed->wildcard && excludes)
		return config_refuse(&here, "only a wildcard leaves something out");
	/* Events change most, matter least to a cache, and expire by themselves. */
	if (!excludes && strcmp(feed->resource, "*") == 0)
		r = config_append(&feed->exclude, &feed->n_exclude, "events");
	if (r == 0 && !feed->name)
		r = config_copy(&feed->name, feed->resource);
	if (r == 0 && feed->resolve)
		r = config_add_resolve(place, feed);
	if (node)
		here = config_place_member(
			place, feed->resolve ? "resolve" : "indexes", feed->line);
	for (size_t i = 0; r == 0 && i < feed->n_indexes; i++)
		r = config_check_index(&here, feed, &feed->indexes[i]);
	return r < 0 ? r : config_check_unique(place, node, config);
}

/* The status page of the reflector has a row for each feed and namespace. */
int config_check_count(const struct config_place *place, const struct config *config)
{
	size_t n = 0;

	for (size_t i = 0; i < config->n_feeds; i++)
		n += config->feeds[i].n_namespaces ? config->feeds[i].n_namespaces : 1;
	if (n > STATS_FEEDS_MAX)
		return config_refuse(
			place, "more than %d, each namespace of a feed counted", STATS_FEEDS_MAX);
	return 0;
}

int config_read_feeds(
	const struct config_place *place, const struct yaml_node *node, struct config *config)
{
	int r = 0;

	if (node->type != YAML_LIST)
		return config_refuse(place, "must be a list");
	for (size_t i = 0; r == 0 && i < node->count; i++) {
		const struct yaml_node *item = &node->items[i];
		struct config_place here = config_place_item(place, i, item->line);
		struct config_feed *feed;

		r = config_new_feed(config, &feed);
		if (r < 0)
			return r;
		feed->line = item->line;
		r = config_read_map(&here, item, config_feed_keys, "", feed);
		if (r == 0 && !feed->resource) {
			here = config_place_member(&here, "resource", item->line);
			r = config_refuse(
				&here, "is missing; write one as pods or deployments.apps");
		}
		if (r == 0)
			r = config_finish_feed(&here, item, config);
	}
	return r < 0 ? r : config_check_count(place, config);
}
