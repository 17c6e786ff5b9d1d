/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds of many resources: '*', '*.GROUP', '*.VERSION.GROUP', and '*.VERSION' for the core group. A
 * wildcard depends on a resource's names alone: the reflector, with discovery, and the processor,
 * without, must agree.
 */
#include "common/config/config_internal.h"

#include <stdio.h>
#include <string.h>

static const char resource_characters[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";

int config_set_wildcard(
	const struct config_place *place, const char *text, struct config_feed *feed)
{
	size_t n = strlen(text);
	bool everything = !strcmp(text, "all") || !strcmp(text, "*");

	if (!everything && (n <= 2 || n > CONFIG_NAME_MAX || strncmp(text, "*.", 2) != 0 ||
				   strspn(text + 2, resource_characters) != n - 2 ||
				   text[2] == '.' || text[n - 1] == '.' || strstr(text, "..")))
		return config_refuse(place,
			"not a wildcard: '%s'; write one as '*' (or all), '*.apps' or '*.v1.apps'",
			text);
	feed->wildcard = true;
	return config_copy(&feed->resource, everything ? "*" : text);
}

int config_add_exclude(const struct config_place *place, const char *text, struct config_feed *feed)
{
	size_t n = strspn(text, resource_characters);

	if (!n || text[n] || n > CONFIG_NAME_MAX || text[0] == '.' || text[n - 1] == '.')
		return config_refuse(place,
			"not a resource: '%s'; write one as secrets or leases.coordination.k8s.io",
			text);
	return config_append(&feed->exclude, &feed->n_exclude, text);
}

bool config_covers(
	const struct config_feed *feed, const char *group, const char *version, const char *plural)
{
	const char *pattern = feed->resource;
	char name[CONFIG_FULL_NAME_SIZE];
	size_t n = strlen(version);

	if (!feed->wildcard)
		return false;
	/* The same objects as the core group's events. */
	if (!strcmp(pattern, "*") && !strcmp(group, "events.k8s.io") && !strcmp(plural, "events"))
		return false;
	if (strcmp(pattern, "*") != 0 && strcmp(pattern + 2, group) != 0) {
		/* After "*." only the core group's version, or VERSION.GROUP, matches now. */
		const char *rest = pattern + 2 + n;

		if (strncmp(pattern + 2, version, n) != 0 ||
			(*group ? *rest != '.' || strcmp(rest + 1, group) != 0 : *rest))
			return false;
	}
	(void)snprintf(name, sizeof(name), "%s%s%s", plural, *group ? "." : "", group);
	for (size_t i = 0; i < feed->n_exclude; i++)
		if (!strcmp(feed->exclude[i], plural) || !strcmp(feed->exclude[i], name))
			return false;
	return true;
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
