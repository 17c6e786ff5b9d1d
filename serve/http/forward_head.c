/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heads that pass through. Headers of one connection stay behind: the fixed ones of RFC 9110,
 * 7.6.1, and those that the Connection header names. Upgrade and Connection are written again for a
 * tunnel.
 */
#include "serve/http/forward_internal.h"

#include <string.h>
#include <strings.h>

static bool head_is_one_of(struct bytes name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes_equal(name, bytes_str(names[i])))
			return true;
	return false;
}

static bool head_is_hop_by_hop(struct bytes name)
{
	static const char *const names[] = {"connection", "keep-alive", "proxy-connection",
		"proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
		"upgrade", "content-length", "http2-settings"};

	return head_is_one_of(name, names, sizeof(names) / sizeof(*names));
}

/* Returns whether a Connection header among the N FIELDS names NAME. */
static bool head_is_of_connection(const struct exchange_header *fields, size_t n, struct bytes name)
{
	for (size_t i = 0; i < n; i++) {
		struct bytes rest = fields[i].value;

		if (!bytes_equal(fields[i].name, BYTES_LIT("connection")))
			continue;
		for (struct bytes word; (word = head_next_word(&rest)).size;)
			if (word.size == name.size &&
				strncasecmp(word.data, name.data, name.size) == 0)
				return true;
	}
	return false;
}

/* By these headers a front proxy tells the API server who the user is; from a client they are a
 * lie. */
static bool head_names_user(struct bytes name)
{
	return bytes_starts(name, BYTES_LIT("x-remote-"));
}

/* These decide what the request may do. Without its Impersonate-User a request has more rights
 * than it was to have, so a client of a front proxy that adds that header can't have it left out
 * by naming it in Connection. */
static bool head_is_credential(struct bytes name)
{
	return bytes_equal(name, BYTES_LIT("authorization")) ||
	       bytes_starts(name, BYTES_LIT("impersonate-"));
}

/* HTTP/2 has its own rules about which bytes a header may have. */
static bool head_is_clean(struct bytes text, bool blanks)
{
	const uint8_t *p = text.data;

	for (size_t i = 0; i < text.size; i++)
		if (p[i] == 0x7f || p[i] < 0x20 ? !(blanks && p[i] == '\t')
						: p[i] == ' ' && !blanks)
			return false;
	return true;
}

static bool head_is_name(struct bytes name)
{
	const char *p = name.data;

	for (size_t i = 0; i < name.size; i++)
		if (!p[i] || !strchr("abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~", p[i]))
			return false;
	return name.size != 0;
}

bool forward_head_is_chunked(const struct exchange *x)
{
	return x->has_body && !exchange_header(x, "content-length").data;
}

/* Appends the client's address to those that are known, for the API server's audit log. */
static void head_put_address(const struct exchange *x, struct buf *out)
{
	struct bytes before = exchange_header(x, "x-forwarded-for");
	const char *address = x->peer->address, *colon = strrchr(address, ':');
	bool brackets = *address == '[';

	if (x->peer->local || !colon)
		return;
	buf_printf(out, "x-forwarded-for: %.*s%s%.*s\r\n", BYTES_ARG(before),
		before.size ? ", " : "", (int)(colon - address) - 2 * brackets, address + brackets);
}

int forward_head_write(const struct exchange *x, struct bytes host, struct bytes base,
	bool uncompressed, struct buf *out)
{
	static const char *const ours[] = {"host", "expect", "x-forwarded-for"};

	if (!head_is_clean(x->method, false) || !head_is_clean(x->path, false) ||
		!head_is_clean(x->query, false))
		return 400;
	buf_bytes_put(out, x->method);
	buf_byte(out, ' ');
	buf_bytes_put(out, base);
	buf_bytes_put(out, x->path);
	if (x->query.data)
		buf_byte(out, '?');
	buf_bytes_put(out, x->query);
	buf_printf(out, " HTTP/1.1\r\nhost: %.*s\r\n", BYTES_ARG(host));
	for (size_t i = 0; i < x->n_headers; i++) {
		const struct exchange_header *h = &x->headers[i];

		if (head_is_hop_by_hop(h->name) || head_names_user(h->name) ||
			head_is_one_of(h->name, ours, sizeof(ours) / sizeof(*ours)) ||
			(uncompressed && bytes_equal(h->name, BYTES_LIT("accept-encoding"))) ||
			(!head_is_credential(h->name) &&
				head_is_of_connection(x->headers, x->n_headers, h->name)))
			continue;
		if (!head_is_name(h->name) || !head_is_clean(h->value, true))
			return 400;
		buf_bytes_put(out, h->name);
		buf_str(out, ": ");
		buf_bytes_put(out, h->value);
		buf_str(out, "\r\n");
	}
	head_put_address(x, out);
	if (x->upgrade)
		buf_printf(out, "connection: Upgrade\r\nupgrade: %.*s\r\n",
			BYTES_ARG(exchange_header(x, "upgrade")));
	if (forward_head_is_chunked(x))
		buf_str(out, "transfer-encoding: chunked\r\n");
	else if (exchange_header(x, "content-length").data)
		buf_printf(out, "content-length: %.*s\r\n",
			BYTES_ARG(exchange_header(x, "content-length")));
	buf_str(out, "\r\n");
	return buf_error(out);
}

size_t forward_head_answer(const struct request_head *head, bool tunnel,
	struct exchange_header *ret_headers, size_t room)
{
	size_t n = 0;

	for (size_t i = 0; i < head->n_fields && n + 2 < room; i++) {
		const struct exchange_header *h = &head->fields[i];

		if (!head_is_hop_by_hop(h->name) &&
			!head_is_of_connection(head->fields, head->n_fields, h->name))
			ret_headers[n++] = *h;
		else if (tunnel && bytes_equal(h->name, BYTES_LIT("upgrade")))
			ret_headers[n++] = *h;
	}
	if (tunnel)
		ret_headers[n++] =
			(struct exchange_header){BYTES_LIT("connection"), BYTES_LIT("Upgrade")};
	return n;
}
