/* SPDX-License-Identifier: Apache-2.0 */
/* Feeds and indexes from the command line: --watch and --index. */
#include "common/config/config_build.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/stats.h"

static const struct place at_watch = {.key = "--watch"};
static const struct place at_index = {.key = "--index"};

static const char spaces[] = " \t";

/* ---- --watch RESOURCE[:NAME][(OPTIONS)] ------------------------------------------------------------ */

typedef int set_fn(const struct place *place, const char *text, struct config_feed *feed);

static int add_each(const struct place *place, const char *text, set_fn *add,
	struct config_feed *feed)
{
	AUTO_FREE char *copy = strdup(text);
	int r = 0;

	if (!copy)
		return err_set(-ENOMEM, "configuration");
	for (char *rest = copy; r == 0 && rest;) {
		char *one = strsep(&rest, ",");
		r = add(place, one, feed);
	}
	return r;
}

static int add_namespaces(const struct place *place, const char *text, struct config_feed *feed)
{
	return add_each(place, text, config_add_namespace, feed);
}

static int add_excludes(const struct place *place, const char *text, struct config_feed *feed)
{
	return add_each(place, text, config_add_exclude, feed);
}

static const struct {
	const char *letter, *name;
	set_fn *set;
} watch_options[] = {
	{"-n", "--namespace", add_namespaces},
	{"-l", "--selector", config_set_labels},
	{NULL, "--field-selector", config_set_fields},
	{NULL, "--exclude", add_excludes},
};

/* Takes quotes off that enclose all of TEXT. */
static char *unquote(char *text)
{
	size_t n = strlen(text);

	if (n < 2 || (text[0] != '\'' && text[0] != '"') || text[n - 1] != text[0])
		return text;
	text[n - 1] = '\0';
	return text + 1;
}

static int set_option(const char *option, char *value, struct config_feed *feed)
{
	for (size_t i = 0; i < ARRAY_SIZE(watch_options); i++) {
		const char *letter = watch_options[i].letter;
		if ((!letter || strcmp(letter, option) != 0) &&
			strcmp(watch_options[i].name, option) != 0)
			continue;
		value = unquote(value);
		if (!*value)
			return place_bad(&at_watch, "%s needs a value", option);
		return watch_options[i].set(&at_watch, value, feed);
	}
	return place_bad(&at_watch, "unknown option '%s'; allowed are -n, -l, --field-selector and --exclude",
		option);
}

/* Where the next option begins: a word that starts with a dash. A value reaches to there, so that
 * selectors with blanks in them need no quotes (no label, field or namespace begins so). */
static char *next_option(char *p)
{
	for (; *p; p++) {
		if (strchr(spaces, *p) && p[1] == '-')
			return p;
	}
	return p;
}

static void strip_end(char *text)
{
	size_t n = strlen(text);

	while (n && strchr(spaces, text[n - 1]))
		text[--n] = '\0';
}

/* "-n web -l app in (a, b)"; P is cut in place. */
static int read_options(char *p, struct config_feed *feed)
{
	p += strspn(p, spaces);
	while (*p) {
		char *end = next_option(p);
		char *behind = *end ? end + 1 : end;
		*end = '\0';
		strip_end(p);
		char *value = p + strcspn(p, " \t=");
		if (*value)
			*value++ = '\0';
		int r = set_option(p, value + strspn(value, spaces), feed);
		if (r < 0)
			return r;
		p = behind + strspn(behind, spaces);
	}
	return 0;
}

static int read_watch(char *text, struct config_feed *feed)
{
	char *options = strchr(text, '(');
	size_t n = strlen(text);
	int r;

	if (options && text[n - 1] != ')')
		return place_bad(&at_watch, "'%s': ')' is missing at the end", text);
	if (options) {
		text[n - 1] = '\0';
		*options++ = '\0';
	}
	char *name = strchr(text, ':');
	if (name)
		*name++ = '\0';
	r = config_set_resource(&at_watch, text, feed);
	if (r == 0 && name)
		r = config_set_name(&at_watch, name, feed);
	if (r == 0 && options)
		r = read_options(options, feed);
	return r;
}

int config_watch(struct config *config, const char *text)
{
	AUTO_FREE char *copy = strdup(text);
	struct config_feed *feed = config_new_feed(config);

	if (!copy || !feed)
		return err_set(-ENOMEM, "configuration");
	if (!*text)
		return place_bad(&at_watch, "must not be empty");
	int r = read_watch(copy, feed);
	if (r == 0)
		r = config_finish_wildcard(&at_watch, feed);
	if (r == 0)
		r = config_default_feed(feed);
	if (r < 0)
		return r;
	for (size_t i = 0; i + 1 < config->n_feeds; i++) {
		if (strcmp(config->feeds[i].name, feed->name) == 0)
			return place_bad(&at_watch,
				"two feeds '%s'; give one another name, '%s:NAME'", feed->name,
				feed->resource);
	}
	if (config_check_feeds(config) < 0)
		return place_bad(&at_watch, "more than %d, each namespace counted", STATS_FEEDS_MAX);
	return 0;
}

/* ---- --index FEED/NAME=PATH[,PATH] ----------------------------------------------------------------- */

static struct config_feed *find_feed(struct config *config, const char *name)
{
	for (size_t i = 0; i < config->n_feeds; i++) {
		if (strcmp(config->feeds[i].name, name) == 0)
			return &config->feeds[i];
	}
	return NULL;
}

/* The comma behind the path at P, or its end; one inside quotes belongs to a key. */
static char *path_end(char *p)
{
	char quote = '\0';

	for (; *p && (quote || *p != ','); p++) {
		if (*p == '\\' && p[1])
			p++;
		else if (quote ? *p == quote : *p == '\'' || *p == '"')
			quote = quote ? '\0' : *p;
	}
	return p;
}

int config_add_index(struct config *config, const char *text)
{
	AUTO_FREE char *copy = strdup(text);
	struct config_index *index;

	if (!copy)
		return err_set(-ENOMEM, "configuration");
	char *name = strchr(copy, '/');
	char *paths = name ? strchr(name, '=') : NULL;
	if (!paths)
		return place_bad(&at_index, "'%s': write one as FEED/NAME=PATH", text);
	*name++ = '\0';
	*paths++ = '\0';
	struct config_feed *feed = find_feed(config, copy);
	if (!feed)
		return place_bad(&at_index, "'%s': no feed '%s'", text, copy);
	int r = config_new_index(&at_index, name, feed, &index);
	for (bool more = true; r == 0 && more;) {
		char *end = path_end(paths);
		more = *end != '\0';
		*end = '\0';
		r = config_add_index_path(&at_index, paths, index);
		paths = end + more;
	}
	return r;
}
