/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/proxy.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "reflector/net/no_proxy.h"

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

	for (size_t i = 0; i < sizeof(proxy_schemes) / sizeof(proxy_schemes[0]); i++)
		if (!strncasecmp(url, proxy_schemes[i].name, strlen(proxy_schemes[i].name))) {
			parts.scheme = &proxy_schemes[i];
			rest = url + strlen(proxy_schemes[i].name);
		}
	if (!parts.scheme && !strstr(url, "://"))
		parts.scheme = &proxy_schemes[0];
	if (!parts.scheme || !proxy_read_authority(rest, &parts))
		return err_say(ERR_CONFIG,
			"%s: not the URL of a proxy; write http://proxy:3128, https:// "
			"or socks5://",
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

/* Returns: the first of the two variables that is not empty, NULL: none. *RET_NAME is its name. */
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
