/* SPDX-License-Identifier: Apache-2.0 */
#include <isa-l/igzip_lib.h>

#include "serve/http/gzip.h"
#include "tests/unit/unit.h"

/* Appends SIZE bytes, about one in EVERY random. */
static void put_input(struct buf *in, size_t size, unsigned every)
{
	static const char text[] = "{\"metadata\":{\"name\":\"front-0\",\"namespace\":\"web\"}},";

	srand(33);
	for (size_t i = 0; i < size; i++)
		buf_byte(
			in, (uint8_t)(rand() % (int)every ? text[i % (sizeof(text) - 1)] : rand()));
	cr_assert_eq(buf_error(in), 0);
}

static void assert_unpacks_to(const struct buf *packed, const struct buf *in)
{
	struct inflate_state state;
	AUTO_FREE uint8_t *out = malloc(in->size + 1);

	isal_inflate_init(&state);
	state.crc_flag = ISAL_GZIP;
	state.next_in = packed->data;
	state.avail_in = (uint32_t)packed->size;
	state.next_out = out;
	state.avail_out = (uint32_t)in->size + 1;
	cr_assert_eq(isal_inflate(&state), ISAL_DECOMP_OK);
	cr_assert_eq(state.block_state, ISAL_BLOCK_FINISH, "one whole member");
	cr_assert_eq(state.avail_in, 0, "and nothing after it");
	cr_assert_eq(state.avail_out, 1);
	cr_assert(in->size == 0 || memcmp(out, in->data, in->size) == 0);
}

/* Packs SIZE bytes in pieces of at most PIECE. */
static void check_pieces(size_t size, size_t piece, unsigned every)
{
	CLEANUP(buf_release) struct buf in = BUF_INIT, packed = BUF_INIT;
	struct gzip *gzip;

	put_input(&in, size, every);
	cr_assert_eq(gzip_new(&gzip), 0);
	for (size_t at = 0; at < size; at += piece) {
		size_t n = size - at < piece ? size - at : piece;

		cr_assert_eq(gzip_put(gzip, BYTES(in.data + at, n), false, &packed), 0);
		cr_assert_eq(gzip_put(gzip, BYTES_NONE, false, &packed), 0);
	}
	cr_assert_eq(gzip_put(gzip, BYTES_NONE, true, &packed), 0);
	gzip_free(&gzip);
	assert_unpacks_to(&packed, &in);
}

Test(gzip, pieces_of_any_size_make_one_member)
{
	static const size_t sizes[] = {0, 1, 100, 65535, 65536, 200000, 1000000};
	static const size_t pieces[] = {1000, 65536, 1000000};
	static const unsigned randoms[] = {1, 20, 1000};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (size_t k = 0; k < sizeof(pieces) / sizeof(*pieces); k++)
			for (size_t m = 0; m < sizeof(randoms) / sizeof(*randoms); m++)
				check_pieces(sizes[i], pieces[k], randoms[m]);
	check_pieces(3000, 1, 20);
}

Test(gzip, a_body_is_packed_at_once)
{
	CLEANUP(buf_release) struct buf in = BUF_INIT, packed = BUF_INIT;

	put_input(&in, 300000, 50);
	cr_assert_eq(gzip_all(buf_bytes(&in), &packed), 0);
	assert_unpacks_to(&packed, &in);
	cr_assert_lt(packed.size, in.size / 5);
}

/* A lost client leaves a stream in its middle; LeakSanitizer looks. */
Test(gzip, a_stream_is_freed_in_its_middle)
{
	CLEANUP(buf_release) struct buf in = BUF_INIT, packed = BUF_INIT;
	struct gzip *gzip;

	put_input(&in, 100000, 50);
	cr_assert_eq(gzip_new(&gzip), 0);
	cr_assert_eq(gzip_put(gzip, buf_bytes(&in), false, &packed), 0);
	gzip_free(&gzip);
	cr_assert_null(gzip);
}
