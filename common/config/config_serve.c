/* SPDX-License-Identifier: Apache-2.0 */
/* The section `serve`: addresses to listen on, and the checks that concern several of its keys. */
#include "common/config/config_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/decimal.h"
#include "common/err.h"

/* Checks one address: unix, ADDRESS:PORT, [ADDRESS]:PORT or :PORT. */
static int config_check_address(const struct config_place *place, const char *text)
{
	const char *colon = strrchr(text, ':');
	uint64_t port;

	if (strcmp(text, "unix") == 0)
		return 0;
	if (!colon || decimal_parse(bytes_str(colon + 1), 65535, &port) < 0 ||
		strpbrk(text, " \t,/") || (text[0] == '[') != (colon > text && colon[-1] == ']') ||
		(text[0] != '[' && memchr(text, ':', (size_t)(colon - text))))
		return config_refuse(
			place, "'%s': must be unix, ADDRESS:PORT, [ADDRESS]:PORT or :PORT", text);
	return 0;
}

/* Appends an address to the list, which is kept as one text with blanks between them. */
int config_add_address(const struct config_place *place, const char *text, char **list)
{
	char *whole;
	int r = config_check_address(place, text);

	if (r < 0)
		return r;
	if (asprintf(&whole, "%s%s%s", *list ? *list : "", *list ? " " : "", text) < 0)
		return err_set(-ENOMEM, "copying a text of the configuration");
	free(*list);
	*list = whole;
	return 0;
}

int config_read_addresses(
	const struct config_place *place, const struct yaml_node *node, char **list)
{
	const char *text;
	int r = 0;

	cleanup_free(list);
	if (node->type != YAML_LIST) {
		r = config_scalar(place, node, &text);
		return r < 0 ? r : config_add_address(place, text, list);
	}
	if (node->count == 0)
		return config_refuse(place, "must not be empty; the default is [unix]");
	for (size_t i = 0; r == 0 && i < node->count; i++) {
		struct config_place here = config_place_item(place, i, node->items[i].line);

		r = config_scalar(&here, &node->items[i], &text);
		if (r == 0)
			r = config_add_address(&here, text, list);
	}
	return r;
}

int config_lay_serve_flag(struct config *config, const char *addresses)
{
	static const struct config_place at_serve = {.key = "--serve"};
	AUTO_FREE char *copy = strdup(addresses);
	char *rest = copy;

	if (!copy)
		return err_set(-ENOMEM, "reading --serve");
	config->serve.enabled = true;
	if (!*addresses)
		return 0;
	int r = config_copy(&config->serve.listen, "unix");
	for (char *word; r == 0 && (word = strsep(&rest, ","));)
		if (strcmp(word, "unix") != 0)
			r = config_add_address(&at_serve, word, &config->serve.listen);
	return r;
}

int config_check_serve(const struct config_place *place, const struct config *config)
{
	const struct config_serve *s = &config->serve;

	if (!s->certificate != !s->key)
		return config_refuse(place, "tls.cert and tls.key must be given together");
	if ((s->auth == CONFIG_AUTH_REVIEW || s->auth == CONFIG_AUTH_ALLOW) && !s->client_ca)
		return config_refuse(place,
			"auth: %s recognizes clients by their certificates; name the CA that signs "
			"them in "
			"tls.clientCA",
			s->auth == CONFIG_AUTH_REVIEW ? "review" : "allow");
	if (s->forward && s->auth == CONFIG_AUTH_OPEN)
		return config_refuse(place,
			"forward: on needs to know the client; it can't be used with auth: open");
	return 0;
}
