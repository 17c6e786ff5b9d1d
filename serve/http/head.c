/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/head.h"

#include <string.h>
#include <strings.h>

#include "common/text/decimal.h"

/* ---- characters (RFC 9110, 5.6.2) --------------------------------------- */

static bool head_is_token(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool head_fail(struct head_error *ret_error, int status, const char *why)
{
	*ret_error = (struct head_error){status, why};
	return false;
}

static bool head_equal(struct bytes value, const char *word)
{
	return value.size == strlen(word) && strncasecmp(value.data, word, value.size) == 0;
}

/* ---- the request line --------------------------------------------------- */

/* Splits a target, also an absolute one ("http://host/path"): HTTP/1.1 servers must accept it. */
static bool head_parse_target(
	struct bytes target, struct request_head *head, struct head_error *ret_error)
{
	const char *p = target.data, *end = p + target.size;

	if (target.size > 7 && strncasecmp(p, "http://", 7) == 0)
		p += 7;
	else if (target.size > 8 && strncasecmp(p, "https://", 8) == 0)
		p += 8;
	if (p != target.data) {
		const char *slash = memchr(p, '/', (size_t)(end - p));

		if (!slash || slash == p)
			return head_fail(ret_error, 400, "the request's target has no path");
		p = slash;
	} else if (*p != '/' && !(target.size == 1 && *p == '*')) {
		return head_fail(
			ret_error, 400, "the request's target does not begin with a slash");
	}
	const char *mark = memchr(p, '?', (size_t)(end - p));
	head->path = BYTES(p, (size_t)((mark ? mark : end) - p));
	head->query = mark ? BYTES(mark + 1, (size_t)(end - mark - 1)) : BYTES_NONE;
	return true;
}

static bool head_parse_request_line(const uint8_t *p, const uint8_t *end, struct request_head *head,
	struct head_error *ret_error)
{
	const uint8_t *start = p;

	while (p < end && head_is_token(*p))
		p++;
	if (p == start || p == end || *p != ' ')
		return head_fail(ret_error, 400, "the request line has no method");
	head->method = BYTES(start, (size_t)(p - start));
	start = ++p;
	while (p<end && * p> 0x20 && *p != 0x7f)
		p++;
	if (p == start || p == end || *p != ' ')
		return head_fail(ret_error, 400, "the request line has no target");
	if (!head_parse_target(BYTES(start, (size_t)(p - start)), head, ret_error))
		return false;
	p++;
	if (end - p != 8 || memcmp(p, "HTTP/", 5) != 0 || p[5] < '0' || p[5] > '9' || p[6] != '.' ||
		p[7] < '0' || p[7] > '9')
		return head_fail(
			ret_error, 400, "the request line does not end with an HTTP version");
	if (p[5] != '1' || p[7] > '1')
		return head_fail(
			ret_error, 505, "only HTTP/1.0, HTTP/1.1 and HTTP/2 are supported");
	head->version = p[7] == '1' ? EXCHANGE_HTTP_1_1 : EXCHANGE_HTTP_1_0;
	return true;
}

/* ---- fields ------------------------------------------------------------- */

struct bytes head_next_word(struct bytes *rest)
{
	const char *p = rest->data, *end = p + rest->size;

	while (p < end && (*p == ' ' || *p == '\t' || *p == ','))
		p++;
	const char *start = p;
	while (p < end && *p != ',')
		p++;
	*rest = BYTES(p, (size_t)(end - p));
	while (p > start && (p[-1] == ' ' || p[-1] == '\t'))
		p--;
	return BYTES(start, (size_t)(p - start));
}

/* Reads the fields of the request's framing. */
static bool head_read_framing(const struct exchange_header *field, struct request_head *head,
	struct head_error *ret_error)
{
	struct bytes value = field->value;

	if (head_equal(field->name, "content-length")) {
		if (head->has_length)
			return head_fail(ret_error, 400, "there are two Content-Length headers");
		if (decimal_parse(value, INT64_MAX, &head->length) < 0)
			return head_fail(ret_error, 400, "Content-Length is not a number");
		head->has_length = true;
	} else if (head_equal(field->name, "transfer-encoding")) {
		if (head->chunked)
			return head_fail(ret_error, 400, "there are two Transfer-Encoding headers");
		if (head->version == EXCHANGE_HTTP_1_0)
			return head_fail(ret_error, 400, "HTTP/1.0 has no Transfer-Encoding");
		if (!head_equal(value, "chunked"))
			return head_fail(ret_error, 501, "the only Transfer-Encoding is chunked");
		head->chunked = true;
	} else if (head_equal(field->name, "connection")) {
		for (struct bytes word; (word = head_next_word(&value)).size;) {
			head->close |= head_equal(word, "close");
			head->upgrade |= head_equal(word, "upgrade");
			if (head->version == EXCHANGE_HTTP_1_0 && head_equal(word, "keep-alive"))
				head->close = false;
		}
	} else if (head_equal(field->name, "expect")) {
		if (!head_equal(value, "100-continue"))
			return head_fail(ret_error, 417, "the only expectation is 100-continue");
		head->expects_continue = head->version == EXCHANGE_HTTP_1_1;
	}
	return true;
}

/* Parses the line from P to END, without its CR LF. */
static bool head_parse_field(
	uint8_t *p, uint8_t *end, struct request_head *head, struct head_error *ret_error)
{
	struct exchange_header *field = &head->fields[head->n_fields];
	uint8_t *start = p;

	for (; p < end && head_is_token(*p); p++)
		if (*p >= 'A' && *p <= 'Z')
			*p |= 0x20;
	if (p == start || p == end || *p != ':')
		return head_fail(ret_error, 400,
			*start == ' ' || *start == '\t' ? "a header line is folded"
							: "a header line has no name");
	field->name = BYTES(start, (size_t)(p - start));
	p++;
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	for (const uint8_t *q = p; q < end; q++)
		if ((*q < 0x20 && *q != '\t') || *q == 0x7f)
			return head_fail(ret_error, 400, "a header has a control character");
	field->value = BYTES(p, (size_t)(end - p));
	if (head_equal(field->name, "host")) {
		if (head->host.data)
			return head_fail(ret_error, 400, "there are two Host headers");
		for (const uint8_t *q = p; q < end; q++)
			if (!head_is_token(*q) && !strchr(":[]", *q))
				return head_fail(ret_error, 400, "the Host header is malformed");
		head->host = field->value;
		return true;
	}
	if (head->n_fields == HEAD_FIELDS_MAX - 1)
		return head_fail(ret_error, 431, "the request has too many headers");
	head->n_fields++;
	return head_read_framing(field, head, ret_error);
}

/* ---- the head ----------------------------------------------------------- */

size_t head_find_end(const uint8_t *bytes, size_t size, size_t *from)
{
	size_t i = *from;

	for (const uint8_t *lf; size && (lf = memchr(bytes + i, '\n', size - i));
		i = (size_t)(lf - bytes) + 1) {
		size_t at = (size_t)(lf - bytes);

		if (at == 0 || bytes[at - 1] != '\r')
			return SIZE_MAX;
		/* An empty line; one before the request line is passed over (RFC 9112, 2.2). */
		if (at >= 4 && bytes[at - 2] == '\n')
			return at + 1;
		*from = at + 1;
	}
	return 0;
}

static bool head_parse_status_line(
	const uint8_t *p, const uint8_t *end, struct request_head *head, int *ret_status)
{
	if (end - p < 12 || memcmp(p, "HTTP/1.", 7) != 0 || (p[7] != '0' && p[7] != '1') ||
		p[8] != ' ' || p[9] < '1' || p[9] > '5' || p[10] < '0' || p[10] > '9' ||
		p[11] < '0' || p[11] > '9' || (end - p > 12 && p[12] != ' '))
		return false;
	head->version = p[7] == '1' ? EXCHANGE_HTTP_1_1 : EXCHANGE_HTTP_1_0;
	*ret_status = (p[9] - '0') * 100 + (p[10] - '0') * 10 + (p[11] - '0');
	return true;
}

bool head_parse(uint8_t *bytes, size_t size, struct request_head *ret_head, int *ret_status,
	struct head_error *ret_error)
{
	uint8_t *p = bytes, *end = bytes + size - 2; /* without the empty line */
	bool first = true;

	ret_head->method = ret_head->path = ret_head->query = ret_head->host = BYTES_NONE;
	ret_head->n_fields = 0;
	ret_head->length = 0;
	ret_head->has_length = ret_head->chunked = ret_head->close = ret_head->expects_continue =
		ret_head->upgrade = false;
	if (size >= 2 && p[0] == '\r' && p[1] == '\n')
		p += 2;
	for (uint8_t *next; p < end; p = next, first = false) {
		uint8_t *lf = memchr(p, '\n', (size_t)(end - p));

		if (!lf || lf == p || lf[-1] != '\r')
			return head_fail(
				ret_error, 400, "a line of the request does not end with CR LF");
		next = lf + 1;
		if (first && ret_status && !head_parse_status_line(p, lf - 1, ret_head, ret_status))
			return head_fail(ret_error, 502, "the answer has no status line");
		if (first && !ret_status &&
			!head_parse_request_line(p, lf - 1, ret_head, ret_error))
			return false;
		if (first)
			ret_head->close = ret_head->version == EXCHANGE_HTTP_1_0;
		else if (!head_parse_field(p, lf - 1, ret_head, ret_error))
			return false;
	}
	if (first)
		return head_fail(ret_error, 400, "the request is empty");
	if (ret_head->chunked && ret_head->has_length)
		return head_fail(ret_error, 400, "there are Content-Length and Transfer-Encoding");
	if (!ret_status && !ret_head->host.data && ret_head->version == EXCHANGE_HTTP_1_1)
		return head_fail(ret_error, 400, "the Host header is missing");
	return true;
}
