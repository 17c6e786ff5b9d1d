/* SPDX-License-Identifier: Apache-2.0 */
/* The head of an HTTP/1.1 request, then its chunked body: no part lies outside of the bytes or has
 * a line-ending byte, and a length is never ambiguous. */
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "serve/http/chunks.h"
#include "serve/http/head.h"
#include "tests/fuzz/fuzz.h"

static void check_part(const uint8_t *bytes, size_t size, struct bytes part)
{
	const uint8_t *p = part.data;

	if (!p)
		return;
	REQUIRE(p >= bytes && part.size <= size && (size_t)(p - bytes) <= size - part.size);
	for (size_t i = 0; i < part.size; i++)
		REQUIRE(p[i] == '\t' || (p[i] >= 0x20 && p[i] != 0x7f));
}

static void check_head(const uint8_t *bytes, size_t size, const struct request_head *head)
{
	unsigned lengths = 0;

	check_part(bytes, size, head->method);
	check_part(bytes, size, head->path);
	check_part(bytes, size, head->query);
	check_part(bytes, size, head->host);
	REQUIRE(head->method.size && head->path.size && !(head->chunked && head->has_length));
	REQUIRE(head->n_fields <= HEAD_FIELDS_MAX);
	for (size_t i = 0; i < head->n_fields; i++) {
		const struct exchange_header *field = &head->fields[i];
		const uint8_t *name = field->name.data;

		check_part(bytes, size, field->name);
		check_part(bytes, size, field->value);
		REQUIRE(field->name.size);
		for (size_t k = 0; k < field->name.size; k++)
			REQUIRE(name[k] > ' ' && name[k] != ':' &&
				!(name[k] >= 'A' && name[k] <= 'Z'));
		lengths += bytes_equal(field->name, BYTES_LIT("content-length")) ||
			   bytes_equal(field->name, BYTES_LIT("transfer-encoding"));
	}
	REQUIRE(lengths == (unsigned)(head->chunked || head->has_length));
}

static void check_chunks(const uint8_t *bytes, size_t size)
{
	struct chunks chunks = {0};

	for (size_t at = 0; at < size && !chunks_ended(&chunks);) {
		size_t data, n, used = chunks_take(&chunks, bytes + at, size - at, &data, &n);

		if (used == SIZE_MAX)
			return;
		REQUIRE(used && used <= size - at && data + n <= used);
		at += used;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct request_head head;
	struct head_error error = {0};
	uint8_t *bytes = malloc(size + 1);
	size_t from = 0;

	REQUIRE(bytes);
	memcpy(bytes, data, size);
	size_t end = head_find_end(bytes, size, &from);
	if (end && end != SIZE_MAX) {
		REQUIRE(end <= size);
		if (head_parse(bytes, end, &head, NULL, &error))
			check_head(bytes, end, &head);
		else
			REQUIRE(error.status >= 400 && error.why);
		check_chunks(bytes + end, size - end);
	}
	free(bytes);
	return 0;
}
