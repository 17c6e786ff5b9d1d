/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "URL\nNO_PROXY\nHOST" of any bytes: the URL is refused, or parsed into an address with host and
 * port and a name without the user; and an exception for a host does not depend on the other
 * entries of the list.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "reflector/net/proxy.h"
#include "tests/fuzz/fuzz.h"

static void check_url(char *url)
{
	const struct kubeconfig config = {.tls = true, .proxy_url = url};
	struct proxy proxy;
	int r = proxy_choose(&config, "host", "443", &proxy);

	REQUIRE(r == 0 || r == ERR_CONFIG);
	if (r)
		return;

	const char *end = strrchr(proxy.name, ':');

	REQUIRE(proxy.url && strstr(proxy.name, "://") && end && end[1]);
	REQUIRE(strlen(proxy.url) >= strlen(end) &&
		!strcmp(proxy.url + strlen(proxy.url) - strlen(end), end));
	REQUIRE(!strchr(proxy.name, '@'));
	proxy_release(&proxy);
}

static void check_list(const char *list, const char *host)
{
	CLEANUP(buf_release) struct buf longer = BUF_INIT;

	(void)no_proxy_is_loopback(host);
	buf_printf(&longer, "other.example, %s ,10.0.0.0/8", list);
	if (no_proxy_matches(list, host, "443"))
		REQUIRE(no_proxy_matches(buf_cstr(&longer), host, "443"));
	REQUIRE(no_proxy_matches("*", host, "443"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_FREE char *text = strndup((const char *)data, size);

	REQUIRE(text);

	char *list = strchr(text, '\n'), *host = list ? strchr(list + 1, '\n') : NULL;

	if (list)
		*list++ = '\0';
	if (host)
		*host++ = '\0';
	check_url(text);
	if (host)
		check_list(list, host);
	return 0;
}
