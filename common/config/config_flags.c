/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: the options shared by programs, laid over the file. */
#include "common/config/config_internal.h"

#include <errno.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"

#define NAMES_SHOWN 8 /* of feeds, in a sentence */

/* ---- options ------------------------------------------------------------ */

#define AT(field) offsetof(struct config_flags, field)

static const struct option_spec config_common_specs[] = {
	{0, "store", OPTION_TEXT, AT(store), "DIR",
		"the store (default that of --config or --cluster, $KINF_STORE, the file's)"},
	{0, "runtime-dir", OPTION_TEXT, AT(runtime_dir), "DIR",
		"rings and status pages (default as for the store, with $KINF_RUNTIME_DIR)"},
	{0, "config", OPTION_TEXT, AT(file), "FILE",
		"default $KINF_CONFIG, ./kinf.yaml, /etc/kinf/kinf.yaml"},
	{0, "cluster", OPTION_TEXT, AT(cluster), "NAME",
		"the configuration /etc/kinf/NAME.yaml and its store; 'kinf clusters' lists them"},
	{'v', "verbose", OPTION_COUNT, AT(verbose), NULL, "log more; twice: even more"},
	{0, "log-format", OPTION_WORD, AT(log_format), "FORMAT", "text or json", "text|json"},
};

static const struct option_spec config_running_specs[] = {
	{0, "kubeconfig", OPTION_TEXT, AT(kubeconfig), "FILE",
		"default $KUBECONFIG, ~/.kube/config, in-cluster"},
	{0, "context", OPTION_TEXT, AT(context), "NAME", "context of the kubeconfig"},
	{0, "watch", OPTION_TEXTS, AT(watch), "RESOURCE",
		"keep these objects: pods, deployments.apps, 'pods:web(-n web -l app=shop)', all, "
		"'*.apps'; the feeds of the file then don't count"},
	{0, "index", OPTION_TEXTS, AT(index), "FEED/NAME=PATH",
		"index a feed by a field: pods/node=spec.nodeName"},
	{0, "durability", OPTION_TEXT, AT(durability), "LEVEL",
		"process: survives any kill; disk: power cuts also", "process|disk"},
	{0, "serve", OPTION_TEXT_OPTIONAL, AT(serve), "ADDRESS:PORT",
		"serve the API server's dialect on serve.sock, and on this address"},
};

struct options_group config_common_options(struct config_flags *flags)
{
	return (struct options_group){
		"Common options", config_common_specs, ARRAY_SIZE(config_common_specs), flags};
}

struct options_group config_running_options(struct config_flags *flags)
{
	return (struct options_group){
		"Cluster and feeds", config_running_specs, ARRAY_SIZE(config_running_specs), flags};
}

void config_flags_release(struct config_flags *flags)
{
	option_texts_release(&flags->watch);
	option_texts_release(&flags->index);
}

enum log_format config_log_format(const struct config_flags *flags)
{
	return flags->log_format && strcmp(flags->log_format, "json") == 0 ? LOG_JSON : LOG_TEXT;
}

/* ---- --watch RESOURCE[:NAME][(OPTIONS)] --------------------------------- */

static const struct config_place at_watch = {.key = "--watch"};
static const struct config_place at_index = {.key = "--index"};

static const char spaces[] = " \t";

/* Sets the feed's key for OPTION. */
static int config_set_option(const char *option, char *value, struct config_feed *feed)
{
	static const struct {
		const char *letter, *name, *key;
		bool many; /* values separated by commas */
	} options[] = {
		{"-n", "--namespace", "namespaces", true},
		{"-l", "--selector", "labelSelector", false},
		{"", "--field-selector", "fieldSelector", false},
		{"", "--exclude", "exclude", true},
	};
	size_t i = 0, n = strlen(value);

	while (i < ARRAY_SIZE(options) && strcmp(options[i].letter, option) != 0 &&
		strcmp(options[i].name, option) != 0)
		i++;
	if (i == ARRAY_SIZE(options))
		return config_refuse(&at_watch,
			"unknown option '%s'; allowed are -n, -l, --field-selector and --exclude",
			option);
	if (n >= 2 && (value[0] == '\'' || value[0] == '"') && value[n - 1] == value[0]) {
		value[n - 1] = '\0';
		value++;
	}
	if (!*value)
		return config_refuse(&at_watch, "%s needs a value", option);
	int r = 0;
	while (r == 0 && value) {
		char *one = options[i].many ? strsep(&value, ",") : value;

		r = config_set(&at_watch, config_feed_keys, options[i].key, one, feed);
		if (!options[i].many)
			break;
	}
	return r;
}

/* Reads "-n web -l app in (a, b)"; cuts it in place. A value ends before a word with a leading
 * dash: selectors with blanks need no quotes, since no label, field or namespace begins so. */
static int config_read_options(char *p, struct config_feed *feed)
{
	int r = 0;

	p += strspn(p, spaces);
	while (r == 0 && *p) {
		char *end = p;

		while (*end && !(strchr(spaces, *end) && end[1] == '-'))
			end++;
		char *next = *end ? end + 1 : end;
		while (end > p && strchr(spaces, end[-1]))
			end--;
		*end = '\0';
		char *value = p + strcspn(p, " \t=");
		if (*value)
			*value++ = '\0';
		r = config_set_option(p, value + strspn(value, spaces), feed);
		p = next + strspn(next, spaces);
	}
	return r;
}

static int config_add_watch(struct config *config, const char *text)
{
	AUTO_FREE char *copy = strdup(text);
	struct config_feed *feed;

	if (!copy)
		return err_set(-ENOMEM, "reading --watch");
	int r = config_new_feed(config, &feed);
	if (r < 0)
		return r;
	if (!*text)
		return config_refuse(&at_watch, "must not be empty");
	char *options = strchr(copy, '('), *last = copy + strlen(copy) - 1;
	if (options && *last != ')')
		return config_refuse(&at_watch, "'%s': ')' is missing at the end", text);
	if (options) {
		*last = '\0';
		*options++ = '\0';
	}
	char *name = strchr(copy, ':');
	if (name)
		*name++ = '\0';
	r = config_set(&at_watch, config_feed_keys, "resource", copy, feed);
	if (r == 0 && name)
		r = config_set(&at_watch, config_feed_keys, "name", name, feed);
	if (r == 0 && options)
		r = config_read_options(options, feed);
	if (r == 0)
		r = config_finish_feed(&at_watch, NULL, config);
	return r < 0 ? r : config_check_count(&at_watch, config);
}

/* ---- --index FEED/NAME=PATH[,PATH] -------------------------------------- */

static int config_add_index(struct config *config, const char *text)
{
	AUTO_FREE char *copy = strdup(text);
	struct config_index *index;
	size_t i = 0;

	if (!copy)
		return err_set(-ENOMEM, "reading --index");
	char *name = strchr(copy, '/');
	char *paths = name ? strchr(name, '=') : NULL;
	if (!paths)
		return config_refuse(&at_index, "'%s': write one as FEED/NAME=PATH", text);
	*name++ = '\0';
	*paths++ = '\0';
	while (i < config->n_feeds && strcmp(config->feeds[i].name, copy) != 0)
		i++;
	if (i == config->n_feeds) {
		CLEANUP(buf_release) struct buf names = BUF_INIT;

		for (i = 0; i < config->n_feeds && i < NAMES_SHOWN; i++)
			buf_printf(&names, "%s'%s'", i ? ", " : "", config->feeds[i].name);
		if (config->n_feeds > NAMES_SHOWN)
			buf_str(&names, ", ...");
		/* a feed keeps the short name of its entry */
		return config_refuse(&at_index, "'%s': no feed '%s'; %s%s", text, copy,
			config->n_feeds ? "write its name as --watch or the file does: "
					: "name it with --watch, or in the file",
			buf_cstr(&names));
	}
	int r = config_new_index(&at_index, name, &config->feeds[i], &index);
	for (bool more = true; r == 0 && more;) {
		char quote = '\0', *end = paths;

		/* a quoted comma belongs to a key */
		for (; *end && (quote || *end != ','); end++) {
			if (*end == '\\' && end[1])
				end++;
			else if (quote ? *end == quote : *end == '\'' || *end == '"')
				quote = quote ? '\0' : *end;
		}
		more = *end != '\0';
		*end = '\0';
		r = config_add_index_path(&at_index, paths, index);
		paths = end + more;
	}
	return r < 0 ? r : config_check_index(&at_index, &config->feeds[i], index);
}

/* ---- all ---------------------------------------------------------------- */

int config_lay_flags(struct config *config, const struct config_flags *flags)
{
	const struct {
		struct config_place place;
		const char *key, *text;
	} given[] = {
		{{.key = "--store"}, "store", flags->store},
		{{.key = "--runtime-dir"}, "runtimeDir", flags->runtime_dir},
		{{.key = "--kubeconfig"}, "cluster.kubeconfig", flags->kubeconfig},
		{{.key = "--context"}, "cluster.context", flags->context},
		{{.key = "--durability"}, "durability", flags->durability},
	};
	const unsigned most = LOG_DEBUG - LOG_NOTICE;
	int r = 0;

	config->log_format = config_log_format(flags);
	config->log_level = LOG_NOTICE + (flags->verbose < most ? flags->verbose : most);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(given); i++)
		if (given[i].text)
			r = config_set(
				&given[i].place, config_keys, given[i].key, given[i].text, config);
	if (r == 0 && flags->serve)
		r = config_lay_serve_flag(config, flags->serve);
	if (r == 0 && flags->watch.n)
		config_free_feeds(config);
	for (size_t i = 0; r == 0 && i < flags->watch.n; i++)
		r = config_add_watch(config, flags->watch.items[i]);
	for (size_t i = 0; r == 0 && i < flags->index.n; i++)
		r = config_add_index(config, flags->index.items[i]);
	return r;
}
