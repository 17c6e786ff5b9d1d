/* SPDX-License-Identifier: Apache-2.0 */
/* A list's body: items and metadata are the same whether it is parsed in one piece or in many. */
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/err.h"
#include "reflector/feed/list.h"
#include "tests/fuzz/fuzz.h"

#define ITEM_MAX 512

static int keep_item(void *arg, struct bytes item, bool cut)
{
	buf_bytes_put(arg, item);
	buf_byte(arg, cut ? '+' : '\n');
	return 0;
}

/* Parses all bytes and appends the list's metadata. Returns the first error. */
static int read_list(const uint8_t *data, size_t size, size_t piece, struct buf *out)
{
	struct list_options options = {.item_max = ITEM_MAX, .item_fn = keep_item, .arg = out};
	struct list_page page;
	struct list *list = NULL;
	int r = 0;

	REQUIRE(list_new(&options, &list) == 0);
	for (size_t at = 0; at < size && !r; at += piece) {
		size_t n = size - at < piece ? size - at : piece;
		uint8_t *copy = malloc(n);

		REQUIRE(copy != NULL);
		memcpy(copy, data + at, n);
		r = list_feed(list, copy, n);
		free(copy);
	}
	if (!r)
		r = list_end(list, &page);
	if (!r) {
		buf_bytes_put(out, page.kind);
		buf_bytes_put(out, page.rv);
		buf_bytes_put(out, page.continue_);
		buf_printf(out, "%lld %llu", (long long)page.remaining,
			(unsigned long long)page.items);
	}
	list_free(&list);
	return r;
}

/* If the body has two faults, larger pieces may report the later one. */
static bool same_result(int a, int b)
{
	return a == b || (a < 0 && b < 0 && (a == ERR_TOO_LARGE || b == ERR_TOO_LARGE));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole = BUF_INIT, pieces = BUF_INIT;

	if (size < 1)
		return 0;

	int r = read_list(data + 1, size - 1, size, &whole);
	int s = read_list(data + 1, size - 1, data[0] % 67 + 1u, &pieces);

	REQUIRE(same_result(r, s));
	REQUIRE(bytes_equal(buf_bytes(&whole), buf_bytes(&pieces)));
	buf_release(&whole);
	buf_release(&pieces);
	return 0;
}
