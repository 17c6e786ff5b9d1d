/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/proxy.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/decimal.h"

#define ENTRY_MAX 256 /* a name has at most 253 bytes, a port 6 */
#define MAPPED    12  /* bytes before an IPv4 address within ::ffff:0:0/96 */

/* ---- NO_PROXY ----------------------------------------------------------- */

struct no_proxy_address {
	uint8_t bytes[16];
	bool is_ipv4; /* in its mapped form */
};

static bool no_proxy_address(const char *text, struct no_proxy_address *ret_address)
{
	static const uint8_t mapped[MAPPED] = {[10] = 0xff, 0xff};
	struct no_proxy_address address;

	if (inet_pton(AF_INET6, text, address.bytes) != 1) {
		memcpy(address.bytes, mapped, MAPPED);
		if (inet_pton(AF_INET, text, address.bytes + MAPPED) != 1)
			return false;
	}
	address.is_ipv4 = !memcmp(address.bytes, mapped, MAPPED);
	*ret_address = address;
	return true;
}

static bool no_proxy_same_prefix(
	const struct no_proxy_address *a, const struct no_proxy_address *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	return !memcmp(a->bytes, b->bytes, whole) &&
	       (!rest || (a->bytes[whole] ^ b->bytes[whole]) >> (8 - rest) == 0);
}

/* Reads ENTRY, "ADDRESS/BITS", and cuts it at the slash. Returns: false when it is no network. */
static bool no_proxy_network(char *entry, struct no_proxy_address *ret_address, unsigned *ret_bits)
{
	char *slash = strchr(entry, '/');
	uint64_t bits;

	int r = decimal_parse(bytes_str(slash + 1), 128, &bits);

	if (r < 0) {
		err_ignore(r, "an entry that is not a network matches nothing");
		return false;
	}
	*slash = '\0';

	bool dotted = !strchr(entry, ':');

	if (!no_proxy_address(entry, ret_address) || (dotted && bits > 32))
		return false;
	*ret_bits = (unsigned)bits + (dotted ? 8 * MAPPED : 0);
	return true;
}

/* Cuts ":PORT" and the brackets before it off ENTRY. Returns: the port, "" without one. As for Go's
 * SplitHostPort, an address with colons and without brackets has no port. */
static const char *no_proxy_cut_port(char **entry)
{
	char *colon = strrchr(*entry, ':');

	if (!colon)
		return "";
	if (**entry == '[' && colon[-1] == ']') {
		colon[-1] = '\0';
		++*entry;
	} else if (strchr(*entry, ':') != colon) {
		return "";
	}
	*colon = '\0';
	return colon + 1;
}

/* ADDRESS is HOST's, NULL when HOST is a name. */
static bool no_proxy_entry_matches(
	char *entry, const char *host, const struct no_proxy_address *address, const char *port)
{
	struct no_proxy_address other;
	unsigned bits;

	if (!strcmp(entry, "*"))
		return true;
	if (strchr(entry, '/'))
		return no_proxy_network(entry, &other, &bits) && address &&
		       other.is_ipv4 == address->is_ipv4 &&
		       no_proxy_same_prefix(&other, address, bits);

	const char *wanted = no_proxy_cut_port(&entry);

	if (!*entry || (*wanted && strcmp(wanted, port) != 0))
		return false;
	if (no_proxy_address(entry, &other))
		return address && no_proxy_same_prefix(&other, address, 128);
	if (address)
		return false;

	bool below_only = *entry == '.' || !strncmp(entry, "*.", 2);
	const char *name = entry + (*entry == '*' && below_only) + below_only;
	size_t size = strlen(host), n = strlen(name);

	if (!below_only && !strcasecmp(host, name))
		return true;
	return n && size > n && host[size - n - 1] == '.' && !strcasecmp(host + size - n, name);
}

bool no_proxy_matches(const char *list, const char *host, const char *port)
{
	struct no_proxy_address address;
	bool is_address = no_proxy_address(host, &address);

	for (const char *p = list ? list : ""; *p;) {
		size_t size = strcspn(p, ",");
		const char *end = p + size, *next = end + (*end == ',');
		char entry[ENTRY_MAX];

		while (p < end && strchr(" \t\r\n", *p))
			p++;
		while (end > p && strchr(" \t\r\n", end[-1]))
			end--;
		size = (size_t)(end - p);
		if (size && size < sizeof(entry)) {
			memcpy(entry, p, size);
			entry[size] = '\0';
			if (no_proxy_entry_matches(entry, host, is_address ? &address : NULL, port))
				return true;
		}
		p = next;
	}
	return false;
}

bool no_proxy_is_loopback(const char *host)
{
	static const struct no_proxy_address loopback = {.bytes = {[15] = 1}};
	struct no_proxy_address address;

	if (!no_proxy_address(host, &address))
		return !strcmp(host, "localhost");
	return address.is_ipv4 ? address.bytes[MAPPED] == 127
			       : no_proxy_same_prefix(&address, &loopback, 128);
}

/* ---- the proxy ---------------------------------------------------------- */

/* libcurl uses port 1080 for an http proxy without a port, and resolves names itself for socks5; Go
 * does neither. */
static const struct proxy_scheme {
	const char *name, *curl_name, *port;
} proxy_schemes[] = {
	{"http://", "http://", "80"},
	{"https://", "https://", "443"},
	{"socks5://", "socks5h://", "1080"},
	{"socks5h://", "socks5h://", "1080"},
};

struct proxy_parts {
	const struct proxy_scheme *scheme;
	int user_size, host_size, port_size; /* `user` includes the password and "@" */
	const char *user, *host, *port;
};

/* Splits "user:password@[::1]:3128/path" and drops the path. */
static bool proxy_read_authority(const char *text, struct proxy_parts *parts)
{
	size_t size = strcspn(text, "/?#");
	const char *at = memrchr(text, '@', size), *end = text + size;

	for (const char *p = text; p < end; p++)
		if (iscntrl((unsigned char)*p) || *p == ' ')
			return false;
	parts->user = text;
	parts->user_size = at ? (int)(at + 1 - text) : 0;
	parts->host = text + parts->user_size;

	const char *bracket = *parts->host == '['
				      ? memchr(parts->host, ']', (size_t)(end - parts->host))
				      : parts->host;

	if (!bracket)
		return false;

	const char *colon = memchr(bracket, ':', (size_t)(end - bracket));

	parts->host_size = (int)((colon ? colon : end) - parts->host);
	parts->port = colon && colon + 1 < end ? colon + 1 : parts->scheme->port;
	parts->port_size = parts->port == parts->scheme->port ? (int)strlen(parts->port)
							      : (int)(end - parts->port);
	for (int i = 0; i < parts->port_size; i++)
		if (!isdigit((unsigned char)parts->port[i]))
			return false;
	return parts->host_size > 0 && parts->port_size <= 5;
}

/* No sentence repeats URL: it may hold a password. */
static int proxy_read_url(const char *url, const char *source, struct proxy *ret_proxy)
{
	CLEANUP(proxy_release) struct proxy proxy = {.source = source};
	struct proxy_parts parts = {.scheme = NULL};
	const char *rest = url;

	for (size_t i = 0; i < ARRAY_SIZE(proxy_schemes); i++)
		if (!strncasecmp(url, proxy_schemes[i].name, strlen(proxy_schemes[i].name))) {
			parts.scheme = &proxy_schemes[i];
			rest = url + strlen(proxy_schemes[i].name);
		}
	if (!parts.scheme && !strstr(url, "://"))
		parts.scheme = &proxy_schemes[0];
	if (!parts.scheme || !proxy_read_authority(rest, &parts))
		return err_say(ERR_CONFIG,
			"%s: not the URL of a proxy; write http://proxy:3128, https:// or "
			"socks5://",
			source);
	proxy.tls = !strcmp(parts.scheme->name, "https://");
	if (asprintf(&proxy.url, "%s%.*s%.*s:%.*s", parts.scheme->curl_name, parts.user_size,
		    parts.user, parts.host_size, parts.host, parts.port_size, parts.port) < 0)
		proxy.url = NULL;
	if (asprintf(&proxy.name, "%s%.*s:%.*s", parts.scheme->name, parts.host_size, parts.host,
		    parts.port_size, parts.port) < 0)
		proxy.name = NULL;
	if (!proxy.url || !proxy.name)
		return err_set(-ENOMEM, "proxy");
	*ret_proxy = proxy;
	proxy = (struct proxy){NULL};
	return 0;
}

/* Returns: the first variable with a value, NULL: none. *RET_NAME is its name. */
static const char *proxy_environment(const char *upper, const char *lower, const char **ret_name)
{
	const char *value = getenv(upper);

	*ret_name = upper;
	if (value && *value)
		return value;
	*ret_name = lower;
	value = getenv(lower);
	return value && *value ? value : NULL;
}

int proxy_choose(const struct kubeconfig *config, const char *host, const char *port,
	struct proxy *ret_proxy)
{
	const char *source, *list;
	const char *url = config->tls ? proxy_environment("HTTPS_PROXY", "https_proxy", &source)
				      : proxy_environment("HTTP_PROXY", "http_proxy", &source);

	*ret_proxy = (struct proxy){NULL};
	if (config->proxy_url)
		return proxy_read_url(config->proxy_url, "proxy-url", ret_proxy);
	if (!url || no_proxy_is_loopback(host))
		return 0;
	list = proxy_environment("NO_PROXY", "no_proxy", &(const char *){NULL});
	return no_proxy_matches(list, host, port) ? 0 : proxy_read_url(url, source, ret_proxy);
}

void proxy_release(struct proxy *proxy)
{
	if (proxy->url)
		explicit_bzero(proxy->url, strlen(proxy->url));
	free(proxy->url);
	free(proxy->name);
	*proxy = (struct proxy){NULL};
}
