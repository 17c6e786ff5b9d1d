/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds and their indexes, as kinf.yaml describes them. */
#include "common/config/config_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/path.h"
#include "common/value/selector.h"
#include "common/stats.h"

#define PAGE_SIZE_DEFAULT 500
#define PAGE_SIZE_MAX     100000
#define NAMESPACE_MAX     63
#define COMPOUND_MAX      8
#define RESYNC_MIN_NS     UINT64_C(1000000000)
#define RESYNC_MAX_NS     (3650 * UINT64_C(86400000000000))

static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
static const char word[] =
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";

/* ---- single values of a feed ---------------------------------------------------------------------- */

int config_set_resource(const struct place *place, const char *text, struct config_feed *feed)
{
	size_t n = strspn(text, word);

	if (config_is_wildcard(text))
		return config_set_wildcard(place, text, feed);
	if (!n || text[n] || n > CONFIG_NAME_MAX || !strchr(letters, text[0]) || text[n - 1] == '.' ||
		strstr(text, "..") || strchr(text, '_'))
		return place_bad(place,
			"not a resource: '%s'; write one as pods, deployments.apps or deployments.v1.apps",
			text);
	return config_set(&feed->resource, text);
}

static bool is_name(const char *text)
{
	size_t n = strspn(text, word);

	return n && !text[n] && n <= CONFIG_NAME_MAX && !strchr("-._", text[0]);
}

int config_set_name(const struct place *place, const char *text, struct config_feed *feed)
{
	if (!is_name(text))
		return place_bad(place,
			"not a name: '%s'; allowed are letters, digits, '-', '.' and '_', the first "
			"one a letter or digit, at most %d",
			text, CONFIG_NAME_MAX);
	return config_set(&feed->name, text);
}

int config_add_namespace(const struct place *place, const char *text, struct config_feed *feed)
{
	size_t n = strspn(text, lower);

	if (!n || text[n] || n > NAMESPACE_MAX || text[0] == '-' || text[n - 1] == '-')
		return place_bad(place,
			"not a namespace: '%s'; allowed are lower case letters, digits and '-' inside, "
			"at most %d",
			text, NAMESPACE_MAX);
	for (size_t i = 0; i < feed->n_namespaces; i++) {
		if (strcmp(feed->namespaces[i], text) == 0)
			return place_bad(place, "'%s' is there twice", text);
	}
	return config_append(&feed->namespaces, &feed->n_namespaces, text);
}

static int set_selector(const struct place *place, int parsed, struct selector *selector, char **to)
{
	if (parsed < 0)
		return place_refuse(place, parsed);
	return config_set(to, selector_text(selector));
}

int config_set_labels(const struct place *place, const char *text, struct config_feed *feed)
{
	CLEANUP(selector_free) struct selector *selector = NULL;
	int r = selector_parse_labels(text, &selector);

	return set_selector(place, r, selector, &feed->label_selector);
}

int config_set_fields(const struct place *place, const char *text, struct config_feed *feed)
{
	CLEANUP(selector_free) struct selector *selector = NULL;
	int r = selector_parse_fields(text, &selector);

	return set_selector(place, r, selector, &feed->field_selector);
}

/* What the reflector itself needs of each object. */
static bool is_needed(const char *path)
{
	static const char *const needed[] = {"apiVersion", "kind", "metadata", "metadata.name",
		"metadata.namespace", "metadata.resourceVersion", "metadata.uid"};

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
		if (strcmp(path, needed[i]) == 0)
			return true;
	}
	return false;
}

static int add_drop(const struct place *place, const char *text, struct config_feed *feed)
{
	CLEANUP(path_free) struct path *path = NULL;

	int r = path_parse(text, &path);
	if (r < 0)
		return place_refuse(place, r);
	if (!path_is_plain(path))
		return place_bad(place, "'%s': only paths of plain keys can be dropped, without [*] or [0]",
			text);
	if (is_needed(path_text(path)))
		return place_bad(place, "'%s' is needed and can't be dropped", path_text(path));
	return config_append(&feed->drop, &feed->n_drop, path_text(path));
}

/* ---- indexes -------------------------------------------------------------------------------------- */

int config_new_index(const struct place *place, const char *name, struct config_feed *feed,
	struct config_index **ret_index)
{
	if (!is_name(name))
		return place_bad(place,
			"not an index name: '%s'; allowed are letters, digits, '-', '.' and '_', the "
			"first one a letter or digit, at most %d",
			name, CONFIG_NAME_MAX);
	if (strcmp(name, "namespace") == 0 || strcmp(name, "label") == 0)
		return place_bad(place, "'%s' is built in; choose another name", name);
	for (size_t i = 0; i < feed->n_indexes; i++) {
		if (strcmp(feed->indexes[i].name, name) == 0)
			return place_bad(place, "feed '%s' already has an index '%s'", feed->name, name);
	}
	struct config_index *grown =
		reallocarray(feed->indexes, feed->n_indexes + 1, sizeof(*grown));
	if (!grown)
		return err_set(-ENOMEM, "configuration");
	feed->indexes = grown;
	struct config_index *index = &grown[feed->n_indexes++];
	*index = (struct config_index){0};
	*ret_index = index;
	return config_set(&index->name, name);
}

int config_add_index_path(const struct place *place, const char *text, struct config_index *index)
{
	CLEANUP(path_free) struct path *path = NULL;

	if (index->n_paths == COMPOUND_MAX)
		return place_bad(place, "at most %d paths in one index", COMPOUND_MAX);
	int r = path_parse(text, &path);
	if (r < 0)
		return place_refuse(place, r);
	return config_append(&index->paths, &index->n_paths, path_text(path));
}

static int read_index_paths(const struct place *place, const struct yaml_node *node,
	struct config_index *index)
{
	const char *text;

	if (node->type != YAML_LIST) {
		int r = config_scalar(place, node, &text);
		return r < 0 ? r : config_add_index_path(place, text, index);
	}
	if (!node->count)
		return place_bad(place, "must be a field path, or a list of at least one");
	for (size_t i = 0; i < node->count; i++) {
		struct place here = place_item(place, i, node->items[i].line);
		int r = config_scalar(&here, &node->items[i], &text);
		if (r == 0)
			r = config_add_index_path(&here, text, index);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_indexes(const struct place *place, const struct yaml_node *node, void *to)
{
	struct config_index *index;

	if (node->type != YAML_MAP)
		return place_bad(place, "must be a map from index names to field paths");
	for (size_t i = 0; i < node->count; i++) {
		struct place here = place_member(place, node->keys[i], node->key_lines[i]);
		int r = config_new_index(&here, node->keys[i], to, &index);
		if (r == 0)
			r = read_index_paths(&here, &node->items[i], index);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- keys of a feed ------------------------------------------------------------------------------- */

typedef int set_fn(const struct place *place, const char *text, struct config_feed *feed);

static int read_one(const struct place *place, const struct yaml_node *node, set_fn *set, void *feed)
{
	const char *text;
	int r = config_scalar(place, node, &text);

	return r < 0 ? r : set(place, text, feed);
}

static int read_list(const struct place *place, const struct yaml_node *node, set_fn *set, void *feed)
{
	if (node->type != YAML_LIST)
		return place_bad(place, "must be a list");
	for (size_t i = 0; i < node->count; i++) {
		struct place here = place_item(place, i, node->items[i].line);
		int r = read_one(&here, &node->items[i], set, feed);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_resource(const struct place *place, const struct yaml_node *node, void *feed)
{
	return read_one(place, node, config_set_resource, feed);
}

static int read_name(const struct place *place, const struct yaml_node *node, void *feed)
{
	return read_one(place, node, config_set_name, feed);
}

static int read_namespaces(const struct place *place, const struct yaml_node *node, void *feed)
{
	return read_list(place, node, config_add_namespace, feed);
}

static int read_labels(const struct place *place, const struct yaml_node *node, void *feed)
{
	return read_one(place, node, config_set_labels, feed);
}

static int read_fields(const struct place *place, const struct yaml_node *node, void *feed)
{
	return read_one(place, node, config_set_fields, feed);
}

static int read_drop(const struct place *place, const struct yaml_node *node, void *to)
{
	struct config_feed *feed = to;

	/* An empty list is a list: nothing is dropped. */
	feed->drop = calloc(1, sizeof(*feed->drop));
	if (!feed->drop)
		return err_set(-ENOMEM, "configuration");
	return read_list(place, node, add_drop, feed);
}

static int read_exclude(const struct place *place, const struct yaml_node *node, void *to)
{
	struct config_feed *feed = to;

	/* As above: nothing is left out. */
	feed->exclude = calloc(1, sizeof(*feed->exclude));
	if (!feed->exclude)
		return err_set(-ENOMEM, "configuration");
	return read_list(place, node, config_add_exclude, feed);
}

static int read_when_gone(const struct place *place, const struct yaml_node *node, void *to)
{
	static const char *const names[] = {"keep", "drop", NULL};
	struct config_feed *feed = to;

	return config_read_either(place, node, names, &feed->drop_gone);
}

static int read_objects(const struct place *place, const struct yaml_node *node, void *to)
{
	static const char *const names[] = {"full", "metadata", NULL};
	struct config_feed *feed = to;

	return config_read_either(place, node, names, &feed->metadata_only);
}

static int read_page_size(const struct place *place, const struct yaml_node *node, void *to)
{
	struct config_feed *feed = to;

	return config_read_number(place, node, 1, PAGE_SIZE_MAX, &feed->page_size);
}

/* What an informer can keep: reader/informer/resync.h. */
static int read_resync(const struct place *place, const struct yaml_node *node, void *to)
{
	struct config_feed *feed = to;
	const char *text;
	uint64_t ns;
	int r = config_read_duration(place, node, &ns);

	if (r == 0)
		r = config_scalar(place, node, &text);
	if (r < 0)
		return r;
	if (ns && (ns < RESYNC_MIN_NS || ns > RESYNC_MAX_NS))
		return place_bad(place, "%s: '%s'; allowed are 1s to 3650d, and 0s for none",
			ns < RESYNC_MIN_NS ? "less than 1s" : "more than 3650d", text);
	feed->resync_ns = ns;
	return 0;
}

static const struct config_key feed_keys[] = {
	{"resource", read_resource, 0},
	{"name", read_name, 0},
	{"namespaces", read_namespaces, 0},
	{"labelSelector", read_labels, 0},
	{"fieldSelector", read_fields, 0},
	{"objects", read_objects, 0},
	{"drop", read_drop, 0},
	{"indexes", read_indexes, 0},
	{"exclude", read_exclude, 0},
	{"whenGone", read_when_gone, 0},
	{"pageSize", read_page_size, 0},
	{"resync", read_resync, 0},
	{0},
};

struct config_feed *config_new_feed(struct config *config)
{
	struct config_feed *grown =
		reallocarray(config->feeds, config->n_feeds + 1, sizeof(*grown));

	if (!grown)
		return NULL;
	config->feeds = grown;
	struct config_feed *feed = &grown[config->n_feeds++];
	*feed = (struct config_feed){.page_size = PAGE_SIZE_DEFAULT};
	return feed;
}

int config_default_feed(struct config_feed *feed)
{
	int r = 0;

	if (!feed->name)
		r = config_set(&feed->name, feed->resource);
	if (r == 0 && !feed->label_selector)
		r = config_set(&feed->label_selector, "");
	if (r == 0 && !feed->field_selector)
		r = config_set(&feed->field_selector, "");
	if (r == 0 && !feed->drop)
		r = config_append(&feed->drop, &feed->n_drop, "metadata.managedFields");
	return r;
}

static int read_feed(const struct place *place, const struct yaml_node *node, struct config *config)
{
	struct config_feed *feed = config_new_feed(config);

	if (!feed)
		return err_set(-ENOMEM, "configuration");
	feed->line = node->line;
	int r = config_read_map(place, node, feed_keys, feed);
	if (r < 0)
		return r;
	struct place resource = place_member(place, "resource", node->line);
	if (!feed->resource)
		return place_bad(&resource, "is missing; write one as pods or deployments.apps");
	r = config_finish_wildcard(place, feed);
	if (r < 0)
		return r;
	return config_default_feed(feed);
}

/* The name is at its own line when it was written, else it is the resource's. */
static int check_name(const struct place *place, const struct yaml_node *node,
	const struct config *config)
{
	size_t last = config->n_feeds - 1;
	const struct yaml_node *name = yaml_get(node, "name");
	struct place here = place_member(place, "name", name ? name->line : node->line);
	struct place resource = place_member(place, "resource", node->line);

	for (size_t i = 0; i < last; i++) {
		const struct config_feed *feed = &config->feeds[i];

		if (strcmp(feed->name, config->feeds[last].name) != 0)
			continue;
		if (feed->wildcard)
			return place_bad(&resource, "'%s' is feeds[%zu] in line %zu already",
				feed->name, i, feed->line);
		return place_bad(&here,
			"'%s' is the name of feeds[%zu] in line %zu too; give one of them another",
			feed->name, i, feed->line);
	}
	return 0;
}

int config_read_feeds(const struct place *place, const struct yaml_node *node, void *config)
{
	if (node->type != YAML_LIST)
		return place_bad(place, "must be a list");
	for (size_t i = 0; i < node->count; i++) {
		struct place here = place_item(place, i, node->items[i].line);
		int r = read_feed(&here, &node->items[i], config);
		if (r == 0)
			r = check_name(&here, &node->items[i], config);
		if (r < 0)
			return r;
	}
	struct config *c = config;
	if (config_check_feeds(c) < 0)
		return place_bad(place, "more than %d, each namespace of a feed counted",
			STATS_FEEDS_MAX);
	return 0;
}

int config_check_feeds(const struct config *config)
{
	size_t n = 0;

	for (size_t i = 0; i < config->n_feeds; i++)
		n += config->feeds[i].n_namespaces ? config->feeds[i].n_namespaces : 1;
	return n > STATS_FEEDS_MAX ? ERR_CONFIG : 0;
}
