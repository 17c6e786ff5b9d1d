/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds that stand for many resources: '*', '*.GROUP', '*.VERSION.GROUP', and '*.VERSION' of the core
 * group. Which resources those are is told from their names alone, so that the reflector, which knows
 * discovery, and the processor, which does not, agree.
 */
#include "common/config/config_build.h"

#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"

/* Left out of '*': what most churns and least matters to a cache. It expires by itself, is there twice
 * (v1 and events.k8s.io), and is most of what a large cluster writes. */
#define EXCLUDED "events"

static const char word[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";

/* As a resource is written with its group: "pods", "deployments.apps". */
static void full_name(const char *group, const char *plural, char *ret_name, size_t size)
{
	(void)snprintf(ret_name, size, "%s%s%s", plural, *group ? "." : "", group);
}

static bool is_pattern(const char *text)
{
	size_t n = strlen(text);

	if (!strcmp(text, "*"))
		return true;
	return n > 2 && n <= CONFIG_NAME_MAX && !strncmp(text, "*.", 2) &&
		strspn(text + 2, word) == n - 2 && text[2] != '.' && text[n - 1] != '.' &&
		!strstr(text, "..");
}

int config_set_wildcard(const struct place *place, const char *text, struct config_feed *feed)
{
	if (!strcmp(text, "all"))
		text = "*";
	if (!is_pattern(text))
		return place_bad(place,
			"not a wildcard: '%s'; write one as '*' (or all), '*.apps' or '*.v1.apps'", text);
	feed->wildcard = true;
	return config_set(&feed->resource, text);
}

bool config_is_wildcard(const char *text)
{
	return *text == '*' || !strcmp(text, "all");
}

int config_add_exclude(const struct place *place, const char *text, struct config_feed *feed)
{
	size_t n = strspn(text, word);

	if (!n || text[n] || n > CONFIG_NAME_MAX || text[0] == '.' || text[n - 1] == '.')
		return place_bad(place, "not a resource: '%s'; write one as secrets or leases.coordination.k8s.io",
			text);
	return config_append(&feed->exclude, &feed->n_exclude, text);
}

int config_finish_wildcard(const struct place *place, struct config_feed *feed)
{
	struct place at = *place;

	if (place->file)
		at = place_member(place, feed->wildcard ? "name" : "exclude", feed->line);
	if (!feed->wildcard)
		return feed->exclude ? place_bad(&at, "only a wildcard leaves something out") : 0;
	if (feed->name)
		return place_bad(&at, "a wildcard's feeds are named after their resources");
	if (!feed->exclude && !strcmp(feed->resource, "*"))
		return config_append(&feed->exclude, &feed->n_exclude, EXCLUDED);
	return 0;
}

static bool is_excluded(const struct config_feed *feed, const char *group, const char *plural)
{
	char name[CONFIG_FULL_NAME_SIZE];

	full_name(group, plural, name, sizeof(name));
	for (size_t i = 0; i < feed->n_exclude; i++)
		if (!strcmp(feed->exclude[i], plural) || !strcmp(feed->exclude[i], name))
			return true;
	return false;
}

static bool is_meant(const char *pattern, const char *group, const char *version)
{
	const char *rest = pattern + 2; /* behind "*." */
	size_t n = strlen(version);

	if (!strcmp(pattern, "*") || !strcmp(rest, group))
		return true;
	if (strncmp(rest, version, n) != 0)
		return false;
	return *group ? rest[n] == '.' && !strcmp(rest + n + 1, group) : !rest[n];
}

bool config_covers(const struct config_feed *feed, const char *group, const char *version,
	const char *plural)
{
	return feed->wildcard && is_meant(feed->resource, group, version) &&
		!is_excluded(feed, group, plural);
}

const struct config_feed *config_find_feed(const struct config *config, const char *name,
	const char *group, const char *version, const char *plural)
{
	for (size_t i = 0; i < config->n_feeds; i++)
		if (!config->feeds[i].wildcard && !strcmp(config->feeds[i].name, name))
			return &config->feeds[i];
	for (size_t i = 0; i < config->n_feeds; i++)
		if (config_covers(&config->feeds[i], group, version, plural))
			return &config->feeds[i];
	return NULL;
}
