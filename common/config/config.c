/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/config/config_build.h"
#include "common/err.h"

#define MINUTE_NS ((uint64_t)60 * 1000000000)
#define MAP_MIN   ((uint64_t)16 << 20)
#define MAP_MAX   ((uint64_t)1 << 46)

/* ---- the file's keys ------------------------------------------------------------------------------ */

static const struct config_key cluster_keys[] = {
	{"kubeconfig", config_read_path, offsetof(struct config, kubeconfig)},
	{"context", config_read_text, offsetof(struct config, context)},
	{0},
};

static const struct config_key retention_keys[] = {
	{"time", config_read_duration, offsetof(struct config, retention_ns)},
	{"size", config_read_size, offsetof(struct config, retention_bytes)},
	{0},
};

static int read_cluster(const struct place *place, const struct yaml_node *node, void *config)
{
	return config_read_map(place, node, cluster_keys, config);
}

static int read_retention(const struct place *place, const struct yaml_node *node, void *config)
{
	return config_read_map(place, node, retention_keys, config);
}

static int set_durability(const struct place *place, const char *text, struct config *config)
{
	static const char *const names[] = {"process", "disk", NULL};
	unsigned choice;

	int r = config_choice(place, text, names, &choice);
	if (r == 0)
		config->durable = choice == 1;
	return r;
}

static int read_durability(const struct place *place, const struct yaml_node *node, void *config)
{
	const char *text;
	int r = config_scalar(place, node, &text);

	return r < 0 ? r : set_durability(place, text, config);
}

static int read_map_size(const struct place *place, const struct yaml_node *node, void *to)
{
	uint64_t bytes;

	int r = config_read_size(place, node, &bytes);
	if (r < 0)
		return r;
	if (bytes < MAP_MIN || bytes > MAP_MAX)
		return place_bad(place, "'%s': allowed are 16MiB to 64TiB", node->text);
	*(uint64_t *)to = bytes;
	return 0;
}

static const struct config_key top_keys[] = {
	{"cluster", read_cluster, 0},
	{"store", config_read_path, offsetof(struct config, store)},
	{"runtimeDir", config_read_path, offsetof(struct config, runtime_dir)},
	{"durability", read_durability, 0},
	{"retention", read_retention, 0},
	{"mapSize", read_map_size, offsetof(struct config, map_bytes)},
	{"group", config_read_text, offsetof(struct config, group)},
#define POLICY offsetof(struct config, policy)
	{"listConcurrency", config_read_list_concurrency, POLICY},
	{"watchTimeout", config_read_watch_timeout, POLICY},
	{"backoff", config_read_backoff, POLICY},
	{"timeouts", config_read_timeouts, POLICY},
	{"recheck", config_read_recheck, POLICY},
	{"streamingLists", config_read_streaming, POLICY},
	{"maxObjectSize", config_read_object_size, POLICY},
	{"holdMassDelete", config_read_hold, POLICY},
	{"consistencyCheck", config_read_check, POLICY},
#undef POLICY
	{"cursorExpiry", config_read_duration, offsetof(struct config, cursor_ns)},
	{"feeds", config_read_feeds, 0},
	{0},
};

/* ---- life ----------------------------------------------------------------------------------------- */

static void free_list(char **list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

static void free_feed(struct config_feed *feed)
{
	for (size_t i = 0; i < feed->n_indexes; i++) {
		free(feed->indexes[i].name);
		free_list(feed->indexes[i].paths, feed->indexes[i].n_paths);
	}
	free(feed->indexes);
	free_list(feed->namespaces, feed->n_namespaces);
	free_list(feed->drop, feed->n_drop);
	free_list(feed->exclude, feed->n_exclude);
	free(feed->name);
	free(feed->resource);
	free(feed->label_selector);
	free(feed->field_selector);
}

static void free_feeds(struct config *config)
{
	for (size_t i = 0; i < config->n_feeds; i++)
		free_feed(&config->feeds[i]);
	free(config->feeds);
	config->feeds = NULL;
	config->n_feeds = 0;
}

void config_free(struct config **config)
{
	struct config *c = *config;

	if (!c)
		return;
	free_feeds(c);
	free(c->file);
	free(c->kubeconfig);
	free(c->context);
	free(c->store);
	free(c->runtime_dir);
	free(c->group);
	free(c);
	*config = NULL;
}

static int config_new(struct config **ret_config)
{
	struct config *c = malloc(sizeof(*c));

	if (!c)
		return err_set(-ENOMEM, "configuration");
	*c = (struct config){
		.retention_ns = 10 * MINUTE_NS,
		.retention_bytes = (uint64_t)1 << 30,
		.map_bytes = (uint64_t)64 << 30,
		.cursor_ns = 7 * 24 * 60 * MINUTE_NS,
		.policy = config_policy_default(),
		.log_format = LOG_TEXT,
		.log_level = LOG_NOTICE,
	};
	*ret_config = c;
	return 0;
}

/* ---- defaults from the environment ---------------------------------------------------------------- */

static const char *from_environment(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

int config_default_store(char **ret_path)
{
	const char *given = from_environment("KINF_STORE");
	const char *state = from_environment("XDG_STATE_HOME");
	char *path = NULL;
	int r;

	if (given)
		r = config_set_path(&path, given, NULL);
	else if (geteuid() == 0)
		r = config_set(&path, "/var/lib/kinf");
	else if (state)
		r = config_set_path(&path, "kinf", state);
	else
		r = config_set_path(&path, "~/.local/state/kinf", NULL);
	if (r == 0)
		*ret_path = path;
	return r;
}

int config_default_runtime(char **ret_path)
{
	const char *given = from_environment("KINF_RUNTIME_DIR");
	const char *runtime = from_environment("XDG_RUNTIME_DIR");
	char *path = NULL;

	if (!given)
		given = geteuid() == 0 ? "/run" : runtime ? runtime : "/dev/shm";
	int r = config_set_path(&path, given, NULL);
	if (r == 0)
		*ret_path = path;
	return r;
}

/* The first of: flag, environment, what the file said (in *TO already), default. */
static int settle_path(char **to, const char *flag, const char *variable,
	int (*default_fn)(char **ret_path))
{
	if (flag)
		return config_set_path(to, flag, NULL);
	if (*to && !from_environment(variable))
		return 0;
	char *path;
	int r = default_fn(&path);
	if (r < 0)
		return r;
	free(*to);
	*to = path;
	return 0;
}

static int settle_paths(struct config *config, const struct config_flags *flags)
{
	int r = settle_path(&config->store, flags->store, "KINF_STORE", config_default_store);

	if (r < 0)
		return r;
	return settle_path(&config->runtime_dir, flags->runtime_dir, "KINF_RUNTIME_DIR",
		config_default_runtime);
}

/* ---- the file ------------------------------------------------------------------------------------- */

/* Takes the tree of one file into CONFIG. */
static int read_tree(struct config *config, const struct yaml *yaml, const char *name)
{
	const struct yaml_node *root = yaml_root(yaml);

	if (!root)
		return 0;
	struct place place = {.file = name, .line = root->line};
	return config_read_map(&place, root, top_keys, config);
}

/* No valid YAML at all is a bad configuration like any other. */
static int as_config(int code)
{
	return code == ERR_SYNTAX ? err_say(ERR_CONFIG, "%s", err_text(code)) : code;
}

int config_parse(const char *text, size_t size, const char *name, struct config **ret_config)
{
	static const struct config_flags none;
	CLEANUP(config_free) struct config *config = NULL;
	CLEANUP(yaml_free) struct yaml *yaml = NULL;

	int r = yaml_parse(text, size, name, &yaml);
	if (r < 0)
		return as_config(r);
	r = config_new(&config);
	if (r == 0)
		r = config_set(&config->file, name);
	if (r == 0)
		r = read_tree(config, yaml, name);
	if (r == 0)
		r = settle_paths(config, &none);
	if (r < 0)
		return r;
	*ret_config = TAKE(config);
	return 0;
}

/* Which file to read, NULL when there is none. One that was named must exist; yaml_load says so. */
static const char *find_file(const struct config_flags *flags)
{
	static const char *const usual[] = {"kinf.yaml", "/etc/kinf/kinf.yaml"};

	if (flags->file)
		return flags->file;
	if (from_environment("KINF_CONFIG"))
		return from_environment("KINF_CONFIG");
	for (size_t i = 0; i < ARRAY_SIZE(usual); i++) {
		if (access(usual[i], F_OK) == 0)
			return usual[i];
	}
	return NULL;
}

static int read_file(struct config *config, const struct config_flags *flags)
{
	CLEANUP(yaml_free) struct yaml *yaml = NULL;
	const char *file = find_file(flags);

	if (!file)
		return 0;
	int r = yaml_load(file, &yaml);
	if (r < 0)
		return as_config(r);
	r = config_set(&config->file, file);
	return r < 0 ? r : read_tree(config, yaml, file);
}

/* ---- the flags ------------------------------------------------------------------------------------ */

static int lay_log(struct config *config, const struct config_flags *flags)
{
	static const char *const names[] = {[LOG_TEXT] = "text", [LOG_JSON] = "json", NULL};
	static const struct place place = {.key = "--log-format"};
	unsigned choice = LOG_TEXT;

	int r = flags->log_format ? config_choice(&place, flags->log_format, names, &choice) : 0;
	config->log_format = (enum log_format)choice;
	unsigned room = LOG_DEBUG - LOG_NOTICE;
	config->log_level = LOG_NOTICE + (flags->verbose < room ? flags->verbose : room);
	return r;
}

static int lay_feeds(struct config *config, const struct config_flags *flags)
{
	int r = 0;

	if (flags->watch.n)
		free_feeds(config);
	for (size_t i = 0; r == 0 && i < flags->watch.n; i++)
		r = config_watch(config, flags->watch.items[i]);
	for (size_t i = 0; r == 0 && i < flags->index.n; i++)
		r = config_add_index(config, flags->index.items[i]);
	return r;
}

static int lay_flags(struct config *config, const struct config_flags *flags)
{
	static const struct place at_durability = {.key = "--durability"};
	int r = lay_log(config, flags);

	if (r == 0)
		r = settle_paths(config, flags);
	if (r == 0 && flags->kubeconfig)
		r = config_set_path(&config->kubeconfig, flags->kubeconfig, NULL);
	if (r == 0 && flags->context)
		r = config_set(&config->context, flags->context);
	if (r == 0 && flags->durability)
		r = set_durability(&at_durability, flags->durability, config);
	if (r == 0)
		r = lay_feeds(config, flags);
	return r;
}

int config_load(const struct config_flags *flags, struct config **ret_config)
{
	static const struct config_flags none;
	CLEANUP(config_free) struct config *config = NULL;

	if (!flags)
		flags = &none;
	int r = config_new(&config);
	if (r == 0)
		r = read_file(config, flags);
	if (r == 0)
		r = lay_flags(config, flags);
	if (r < 0)
		return r;
	*ret_config = TAKE(config);
	return 0;
}
