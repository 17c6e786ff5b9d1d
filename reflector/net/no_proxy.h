/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads NO_PROXY as Go's golang.org/x/net/http/httpproxy does, and so as kubectl does; libcurl's
 * own rules differ in ports, networks and leading dots. Entries are separated by commas:
 *
 *	*                          everything
 *	10.0.0.0/8, fd00::/8       addresses of that network, whatever the port
 *	10.1.2.3, [fd00::1]:6443   that address, with a port only that port
 *	example.com, example.com:6443       that name and every name below it
 *	.example.com, *.example.com:6443    names below it only
 *
 * Addresses are compared with addresses and names with names; nothing is resolved. An entry that
 * can't be read matches nothing.
 */
#ifndef REFLECTOR_NET_NO_PROXY_H
#define REFLECTOR_NET_NO_PROXY_H

#include <stdbool.h>

/* Returns: whether an entry of LIST (may be NULL) covers HOST, a name or an address without
 * brackets. */
bool no_proxy_matches(const char *list, const char *host, const char *port);

/* Returns: whether HOST is "localhost", in 127.0.0.0/8 or ::1; those never use the environment's
 * proxy. */
bool no_proxy_is_loopback(const char *host);

#endif
