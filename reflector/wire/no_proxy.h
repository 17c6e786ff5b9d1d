/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NO_PROXY as Go's golang.org/x/net/http/httpproxy reads it, so that what works with kubectl works
 * here; libcurl's own reading differs in ports, networks and leading dots. Entries are separated by
 * commas:
 *
 *	*                          everything
 *	10.0.0.0/8, fd00::/8       addresses of that network, whatever the port
 *	10.1.2.3, [fd00::1]:6443   that address, with a port only that port
 *	example.com, example.com:6443       that name and every name below it
 *	.example.com, *.example.com:6443    names below it only
 *
 * Addresses are compared with addresses and names with names: nothing is resolved. What can't be read
 * matches nothing.
 */
#ifndef REFLECTOR_NO_PROXY_H
#define REFLECTOR_NO_PROXY_H

#include <stdbool.h>

/* HOST: a name or an address, without brackets. LIST may be NULL. */
bool no_proxy_matches(const char *list, const char *host, const char *port);

/* "localhost", 127.0.0.0/8 and ::1 never go through a proxy of the environment. */
bool no_proxy_is_loopback(const char *host);

#endif
