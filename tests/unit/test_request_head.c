/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/head.h"

#include "serve/http/chunks.h"
#include "tests/unit/unit.h"

/* ---- heads -------------------------------------------------------------- */

static struct request_head head;
static struct head_error error;
static uint8_t text[8192];

/* Finds and parses the head TEXT. Returns the status of the refusal, 0 if it is a head. */
static int status_of(const char *request)
{
	size_t size = strlen(request), from = 0;

	memcpy(text, request, size);
	size_t end = head_find_end(text, size, &from);
	if (end == SIZE_MAX)
		return 400;
	cr_assert_neq(end, 0, "no end: %s", request);
	cr_assert_leq(end, size);
	return head_parse(text, end, &head, NULL, &error) ? 0 : error.status;
}

static void expect(struct bytes bytes, const char *wanted)
{
	cr_expect(bytes_equal(bytes, bytes_str(wanted)), "'%.*s' is not '%s'", BYTES_ARG(bytes),
		wanted);
}

Test(request_head, parts_are_found)
{
	cr_assert_eq(
		status_of("GET /api/v1/pods?watch=1&a=b%20c HTTP/1.1\r\nHost: localhost:6445\r\n"
			  "Accept:  application/json \t\r\nX-Empty:\r\nUser-AGENT: x\r\n\r\n"),
		0);
	expect(head.method, "GET");
	expect(head.path, "/api/v1/pods");
	expect(head.query, "watch=1&a=b%20c");
	expect(head.host, "localhost:6445");
	cr_assert_eq(head.n_fields, 3);
	expect(head.fields[0].name, "accept");
	expect(head.fields[0].value, "application/json");
	expect(head.fields[1].value, "");
	expect(head.fields[2].name, "user-agent");
	cr_assert(!head.close && !head.chunked && !head.has_length &&
		  head.version == EXCHANGE_HTTP_1_1);
}

Test(request_head, other_forms_that_are_legal)
{
	cr_assert_eq(status_of("\r\nGET http://example.org:80/a?b HTTP/1.1\r\nHost: x\r\n\r\n"), 0);
	expect(head.path, "/a");
	expect(head.query, "b");
	cr_assert_eq(status_of("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"), 0);
	cr_assert_eq(status_of("GET / HTTP/1.0\r\n\r\n"), 0);
	cr_assert(head.close);
	cr_assert_eq(status_of("POST / HTTP/1.1\r\nHost: [::1]:80\r\nContent-Length: 5\r\nExpect: "
			       "100-Continue\r\n"
			       "Connection: foo, Close\r\n\r\n"),
		0);
	cr_assert(head.close && head.expects_continue && head.length == 5);
	cr_assert_eq(status_of("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n"
			       "Connection: Upgrade\r\n\r\n"),
		0);
	cr_assert(head.chunked && head.upgrade);
}

Test(request_head, doubtful_requests_are_refused)
{
	static const struct {
		int status;
		const char *request;
	} wrong[] = {
		{400, "GET / HTTP/1.1\nHost: x\n\n"},
		{400, "GET / HTTP/1.1\r\nHost: x\n\r\n"},
		{400, "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n"},
		{400, "GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n"},
		{400, "GET / HTTP/1.1\r\n A: b\r\nHost: x\r\n\r\n"},
		{400, "GET / HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n"},
		{400, "GET / HTTP/1.1\r\nHost: x\r\nA\r\n\r\n"},
		{400, "GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n"},
		{400, "GET / HTTP/1.1\r\nHost: x\r\nA: \x01\r\n\r\n"},
		{400, "GET / HTTP/1.1\r\n\r\n"},
		{400, "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n"},
		{400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"},
		{400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"},
		{400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: "
		      "chunked\r\n\r\n"},
		{400, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: "
		      "1\r\n\r\n"},
		{400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: "
		      "1\r\n\r\n"},
		{400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 1\r\n\r\n"},
		{400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n"},
		{400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0x1\r\n\r\n"},
		{400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\n"},
		{400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n"},
		{400, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
		      "Transfer-Encoding: chunked\r\n\r\n"},
		{400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{501, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"},
		{501, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n"},
		{501, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \x0b"
		      "chunked\r\n\r\n"},
		{417, "POST / HTTP/1.1\r\nHost: x\r\nExpect: tea\r\n\r\n"},
		{505, "GET / HTTP/2.0\r\n\r\n"},
		{505, "GET / HTTP/1.2\r\n\r\n"},
		{400, "GET  / HTTP/1.1\r\nHost: x\r\n\r\n"},
		{400, "GET /  HTTP/1.1\r\nHost: x\r\n\r\n"},
		{400, "GET / HTTP/1.1 \r\nHost: x\r\n\r\n"},
		{400, "GET /\r\nHost: x\r\n\r\n"},
		{400, "GET / http/1.1\r\nHost: x\r\n\r\n"},
		{400, "G@T / HTTP/1.1\r\nHost: x\r\n\r\n"},
		{400, "GET x HTTP/1.1\r\nHost: x\r\n\r\n"},
		{400, "GET http://x HTTP/1.1\r\nHost: x\r\n\r\n"},
		{400, "GET http:///a HTTP/1.1\r\nHost: x\r\n\r\n"},
		{400, "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n"},
		{400, "\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int status = status_of(wrong[i].request);

		/* A control character is refused before the name is compared. */
		if (strchr(wrong[i].request, '\x0b'))
			cr_expect_eq(status, 400);
		else
			cr_expect_eq(status, wrong[i].status, "%d: %s", status, wrong[i].request);
	}
}

Test(request_head, more_headers_than_there_is_room_for_are_refused)
{
	static const char begin[] = "GET / HTTP/1.1\r\nHost: x\r\n", field[] = "a: b\r\n",
			  end[] = "\r\n";
	size_t size = sizeof(begin) - 1, from = 0;

	memcpy(text, begin, size);
	for (int i = 0; i < HEAD_FIELDS_MAX; i++, size += sizeof(field) - 1)
		memcpy(text + size, field, sizeof(field) - 1);
	memcpy(text + size, end, sizeof(end) - 1);
	size += sizeof(end) - 1;
	cr_assert_eq(head_find_end(text, size, &from), size);
	cr_assert(!head_parse(text, size, &head, NULL, &error));
	cr_assert_eq(error.status, 431);
}

Test(request_head, end_is_found_however_the_bytes_arrive)
{
	static const char request[] = "\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\nrest\r\n\r\n";
	size_t from = 0, whole = strstr(request, "rest") - request;

	for (size_t size = 0; size < whole; size++)
		cr_assert_eq(head_find_end((const uint8_t *)request, size, &from), 0, "%zu", size);
	cr_assert_eq(head_find_end((const uint8_t *)request, whole, &from), whole);
	from = 0;
	cr_assert_eq(head_find_end((const uint8_t *)request, sizeof(request) - 1, &from), whole);
}

/* ---- chunks ------------------------------------------------------------- */

/* Decodes BODY, given in pieces of STEP bytes. Returns the number of its bytes, SIZE_MAX if it is
 * malformed, 0 if it does not end. */
static size_t decode(const char *body, size_t step, char *out)
{
	struct chunks chunks = {0};
	size_t size = strlen(body), at = 0, n_out = 0;

	while (at < size && !chunks_ended(&chunks)) {
		size_t piece = size - at < step ? size - at : step, end = at + piece;

		while (at < end && !chunks_ended(&chunks)) {
			size_t data, n;
			size_t used = chunks_take(
				&chunks, (const uint8_t *)body + at, end - at, &data, &n);

			if (used == SIZE_MAX)
				return SIZE_MAX;
			cr_assert(used > 0 && data + n <= used);
			memcpy(out + n_out, body + at + data, n);
			n_out += n;
			at += used;
		}
	}
	out[n_out] = '\0';
	return chunks_ended(&chunks) ? at : 0;
}

Test(chunks, bodies_are_the_same_in_pieces_of_any_size)
{
	static const char body[] = "5\r\nhello\r\n1;name=\"v\"\r\n "
				   "\r\n00a\r\nbig\r\nworld\r\n0\r\nTrailer: x\r\n\r\nGET";
	char out[100];

	for (size_t step = 1; step < sizeof(body); step++) {
		cr_assert_eq(decode(body, step, out), sizeof(body) - 1 - 3);
		cr_assert_str_eq(out, "hello big\r\nworld");
	}
}

Test(chunks, malformed_bodies_are_refused)
{
	static const char *const wrong[] = {"\r\n", "x\r\n", " 5\r\nhello", "5 \r\nhello",
		"5\nhello", "-1\r\n", "0x5\r\nhello", "5\r\nhelloX\r\n", "5\r\nhello\n0\r\n",
		"5\r\nhello\r0", "1111111111111111\r\n", "5;\x01\r\n", "0\r\nA: b\n\r\n", "0\r\n\n",
		";\r\n"};
	char out[100];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		for (size_t step = 1; step < 4; step++)
			cr_expect_eq(decode(wrong[i], step, out), SIZE_MAX, "%s", wrong[i]);
	cr_assert_eq(decode("5\r\nhel", 9, out), 0);
}

Test(chunks, endless_trailers_and_extensions_are_refused)
{
	static char body[20000], out[20000];

	memset(body, 'a', sizeof(body) - 1);
	memcpy(body, "1;", 2);
	cr_assert_eq(decode(body, 100, out), SIZE_MAX);
	memcpy(body, "0\r\n", 3);
	cr_assert_eq(decode(body, 100, out), SIZE_MAX);
}
