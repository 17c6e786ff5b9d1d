/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which proxy leads to the API server, by the rules of Go's net/http, which kubectl and client-go
 * follow:
 *
 * The cluster's `proxy-url`, else the environment: HTTPS_PROXY or https_proxy for a server behind
 * https, HTTP_PROXY or http_proxy for one behind http; what is empty counts as not set. NO_PROXY or
 * no_proxy (no_proxy.h), and loopback, are exceptions from the environment, not from proxy-url.
 * ALL_PROXY means nothing, and there is no rule for CGI programs: a daemon is none.
 *
 * Proxies are http:// and https:// (CONNECT), and socks5:// or socks5h://, which both leave the
 * server's name to the proxy. Without a scheme (in the environment) it is http://. A user and a password
 * in the URL are shown to the proxy and to nobody else.
 */
#ifndef REFLECTOR_PROXY_H
#define REFLECTOR_PROXY_H

#include <stdbool.h>

#include "reflector/access/kubeconfig.h"

struct proxy {
	char *url;          /* with port, as libcurl understands it; secret. NULL: none, go there directly */
	char *name;         /* the same without user and password, for sentences */
	const char *source; /* who says so: "proxy-url", "HTTPS_PROXY" ... */
	bool tls;           /* https:// */
};

/*
 * HOST (no brackets) and PORT are of CONFIG's server. Reads the environment. 0; ERR_CONFIG for a URL that
 * is none, with a sentence that names where it stands and nothing of it; -ENOMEM.
 */
int proxy_choose(const struct kubeconfig *config, const char *host, const char *port,
	struct proxy *ret_proxy);

void proxy_release(struct proxy *proxy);

#endif
