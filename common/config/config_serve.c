/* SPDX-License-Identifier: Apache-2.0 */
/* The section `serve`: listen addresses, and checks across its keys. */
#include "common/config/config_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/decimal.h"

/* Returns whether the list ADDRESSES, a text separated by blanks, has one of SIZE bytes. Port 0 is
 * another one each time. */
static bool config_has_address(const char *addresses, const char *address, size_t size)
{
	if (size > 2 && memcmp(address + size - 2, ":0", 2) == 0)
		return false;
	for (const char *p = addresses; p; p = strchr(p, ' ')) {
		p += *p == ' ';
		if (strcspn(p, " ") == size && memcmp(p, address, size) == 0)
			return true;
	}
	return false;
}

/* Appends one address to the list: unix, ADDRESS:PORT, [ADDRESS]:PORT or :PORT. */
static int config_add_address(const struct config_place *place, const char *text, char **list)
{
	const char *colon = strrchr(text, ':');
	uint64_t port;
	char *whole;

	if (strcmp(text, "unix") != 0 &&
		(!colon || decimal_parse(bytes_str(colon + 1), 65535, &port) < 0 ||
			strpbrk(text, " \t,/") ||
			(text[0] == '[') != (colon > text && colon[-1] == ']') ||
			(text[0] != '[' && memchr(text, ':', (size_t)(colon - text)))))
		return config_refuse(
			place, "'%s': must be unix, ADDRESS:PORT, [ADDRESS]:PORT or :PORT", text);
	if (config_has_address(*list, text, strlen(text)))
		return config_refuse(place, "'%s' is there twice", text);
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

/* ---- rules of serve.allow ----------------------------------------------- */

enum { RULE_USERS, RULE_GROUPS, RULE_VERBS, RULE_RESOURCES, RULE_NAMESPACES, RULE_PARTS };

static const char *const rule_keys[RULE_PARTS] = {
	"users", "groups", "verbs", "resources", "namespaces"};

/* Appends the words of a list, separated by tabs. */
static int config_read_words(
	const struct config_place *place, const struct yaml_node *node, struct buf *out)
{
	const char *text;
	int r = 0;

	if (node->type != YAML_LIST || node->count == 0)
		return config_refuse(place, "must be a nonempty list");
	for (size_t i = 0; i < node->count; i++) {
		struct config_place here = config_place_item(place, i, node->items[i].line);

		r = config_scalar(&here, &node->items[i], &text);
		if (r == 0 && strpbrk(text, "\t\n"))
			r = config_refuse(&here, "must not have tabs or line breaks");
		if (r < 0)
			return r;
		buf_printf(out, "%s%s", i ? "\t" : "", text);
	}
	return buf_error(out);
}

static int config_read_rule(
	const struct config_place *place, const struct yaml_node *node, struct buf *out)
{
	if (node->type != YAML_MAP)
		return config_refuse(place, "must be a map with users or groups, and resources");
	for (size_t i = 0; i < node->count; i++) {
		struct config_place here =
			config_place_member(place, node->keys[i], node->key_lines[i]);
		bool known = false;

		for (size_t k = 0; k < RULE_PARTS; k++)
			known |= strcmp(node->keys[i], rule_keys[k]) == 0;
		if (!known)
			return config_refuse(&here, "unknown key; allowed here: users, groups, "
						    "verbs, resources, namespaces");
	}
	if (!yaml_get(node, "users") && !yaml_get(node, "groups"))
		return config_refuse(place, "needs users or groups");
	if (!yaml_get(node, "resources"))
		return config_refuse(place, "needs resources, for instance [pods, nodes]");
	for (size_t k = 0; k < RULE_PARTS; k++) {
		const struct yaml_node *part = yaml_get(node, rule_keys[k]);
		struct config_place here =
			config_place_member(place, rule_keys[k], part ? part->line : node->line);
		int r = part ? config_read_words(&here, part, out) : 0;

		if (r < 0)
			return r;
		if (!part && k == RULE_VERBS)
			buf_str(out, "get\tlist\twatch");
		buf_byte(out, '\n');
	}
	return buf_error(out);
}

int config_read_rules(
	const struct config_place *place, const struct yaml_node *node, char **ret_rules)
{
	CLEANUP(buf_release) struct buf rules = BUF_INIT;
	int r = 0;

	cleanup_free(ret_rules);
	if (node->type != YAML_LIST)
		return config_refuse(place, "must be a list");
	for (size_t i = 0; r == 0 && i < node->count; i++) {
		struct config_place here = config_place_item(place, i, node->items[i].line);

		r = config_read_rule(&here, &node->items[i], &rules);
	}
	return r < 0 ? r : config_copy(ret_rules, buf_cstr(&rules));
}

/* ---- the section -------------------------------------------------------- */

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
	config_forget_line(config, "serve.listen");
	int r = config_copy(&config->serve.listen, "unix");
	for (char *word; r == 0 && (word = strsep(&rest, ","));)
		if (strcmp(word, "unix") != 0)
			r = config_add_address(&at_serve, word, &config->serve.listen);
	return r;
}

/* Returns true if other machines can reach ADDRESS; false for a name: kinf-serve resolves it. */
static bool config_is_remote(const char *address)
{
	char host[64];
	struct in_addr v4;
	struct in6_addr v6;
	const char *colon = strrchr(address, ':');
	size_t size = colon ? (size_t)(colon - address) : 0;
	bool quoted = size >= 2 && address[0] == '[';

	if (!colon || size >= sizeof(host))
		return false;
	(void)snprintf(
		host, sizeof(host), "%.*s", (int)(size - (quoted ? 2 : 0)), address + quoted);
	if (inet_pton(AF_INET, host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 != IN_LOOPBACKNET;
	if (inet_pton(AF_INET6, host, &v6) == 1)
		return !IN6_IS_ADDR_LOOPBACK(&v6);
	return !*host;
}

/* Refuses to serve everything to every client. ADDRESSES NULL: a Unix socket. */
static int config_check_open(const struct config_place *place, const char *addresses)
{
	AUTO_FREE char *copy = strdup(addresses ? addresses : "unix");
	char *rest = copy;

	if (!copy)
		return err_set(-ENOMEM, "checking the configuration");
	for (char *word; (word = strsep(&rest, " "));)
		if (config_is_remote(word))
			return config_refuse(place,
				"auth: open on %s would give the whole cache to other machines; "
				"listen on a loopback address, choose another mode, or set "
				"openRemote: true",
				word);
	return 0;
}

int config_check_serve(const struct config_place *place, const struct config *config)
{
	const struct config_serve *s = &config->serve;

	if (!s->certificate != !s->key)
		return config_refuse(place, "tls.cert and tls.key must be given together");
	if (s->auth == CONFIG_AUTH_ALLOW && !s->client_ca)
		return config_refuse(place, "auth: allow recognizes clients by their certificates; "
					    "name the CA that signs them in tls.clientCA");
	if (s->auth == CONFIG_AUTH_TOKEN && !s->token_file)
		return config_refuse(place, "auth: token needs tokenFile, the file of the token");
	if (!s->review_certificate != !s->review_key)
		return config_refuse(place, "review.cert and review.key must be given together");
	if (s->auth == CONFIG_AUTH_ALLOW && !s->allow)
		return config_refuse(place, "auth: allow needs rules; write some in allow");
	if (s->forward && s->auth == CONFIG_AUTH_OPEN)
		return config_refuse(place,
			"forward: on needs to know the client; it can't be used with auth: open");
	if (s->quorum && !s->forward)
		return config_refuse(place,
			"freshness: quorum lets the API server answer reads without a "
			"resourceVersion; it needs forward: on");
	for (const char *p = s->metrics; p; p = strchr(p, ' ')) {
		p += *p == ' ';
		size_t size = strcspn(p, " ");
		if (config_has_address(s->listen ? s->listen : "unix", p, size))
			return config_refuse(place,
				"metrics: '%.*s' is an address of listen; choose another one",
				(int)size, p);
	}
	return s->auth == CONFIG_AUTH_OPEN && !s->open_remote ? config_check_open(place, s->listen)
							      : 0;
}
