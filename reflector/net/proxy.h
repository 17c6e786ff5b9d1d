/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the proxy for the API server by the rules of Go's net/http, as kubectl and client-go do.
 *
 * The cluster's `proxy-url` comes first, then the environment: HTTPS_PROXY or https_proxy for an
 * https server, HTTP_PROXY or http_proxy for an http server; an empty variable counts as not set.
 * NO_PROXY or no_proxy and loopback addresses are exceptions from the environment's proxy, not from
 * proxy-url. ALL_PROXY is ignored, and so is Go's rule for CGI programs.
 *
 * A proxy is http:// or https:// (CONNECT), or socks5:// or socks5h:// (with both the proxy
 * resolves the server's name). Without a scheme it is http://. Only the proxy gets the user and
 * password in the URL.
 */
#ifndef REFLECTOR_NET_PROXY_H
#define REFLECTOR_NET_PROXY_H

#include <stdbool.h>

#include "reflector/net/kubeconfig.h"

struct proxy {
	char *url;          /* with port, for libcurl; secret. NULL: connect directly */
	char *name;         /* `url` without user and password, for sentences */
	const char *source; /* where it was given: "proxy-url", "HTTPS_PROXY" ... */
	bool tls;           /* https:// */
};

/* Chooses the proxy for CONFIG's server with HOST (without brackets) and PORT. Reads the
 * environment. Returns: 0, -ENOMEM, ERR_CONFIG for a bad URL; the sentence names the URL's source
 * but not the URL: it may hold a password. */
int proxy_choose(const struct kubeconfig *config, const char *host, const char *port,
	struct proxy *ret_proxy);

void proxy_release(struct proxy *proxy);

/*
 * Reads NO_PROXY as Go's golang.org/x/net/http/httpproxy does, and so as kubectl does; libcurl's
 * own rules differ in ports, networks and leading dots. Entries are separated by commas:
 *
 *	*                          everything
 *	10.0.0.0/8, fd00::/8       addresses of that network, any port
 *	10.1.2.3, [fd00::1]:6443   that address, with a port only that port
 *	example.com, example.com:6443       that name and every name below it
 *	.example.com, *.example.com:6443    names below it only
 *
 * Addresses are compared with addresses and names with names; nothing is resolved. An unreadable
 * entry matches nothing.
 */
/* Returns: whether an entry of LIST (may be NULL) covers HOST, a name or an address without
 * brackets. */
bool no_proxy_matches(const char *list, const char *host, const char *port);

/* Returns: whether HOST is "localhost", in 127.0.0.0/8 or ::1; those never use the environment's
 * proxy. */
bool no_proxy_is_loopback(const char *host);

#endif
