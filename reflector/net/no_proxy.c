/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/no_proxy.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "common/text/decimal.h"
#include "common/err.h"

#define ENTRY_MAX 256 /* a name has at most 253 bytes, a port 6 */
#define MAPPED    12  /* bytes before an IPv4 address within ::ffff:0:0/96 */

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
