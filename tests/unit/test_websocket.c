/* SPDX-License-Identifier: Apache-2.0 */
/* The server's side of a WebSocket: the handshake's value, frames both ways. */
#include "serve/http/websocket.h"
#include "tests/unit/unit.h"

TestSuite(websocket, .timeout = 20);

static void accept_is(const char *key, const char *accept)
{
	char have[WEBSOCKET_ACCEPT_SIZE];

	websocket_accept(bytes_str(key), have);
	cr_expect_str_eq(have, accept, "%s: %s", key, have);
}

Test(websocket, the_handshake_is_that_of_rfc_6455)
{
	accept_is("dGhlIHNhbXBsZSBub25jZQ==", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
	accept_is("eA==", "ZbX6LUtWYQ7CrIna69ZRTb/V5NM=");
}

static void frame_of(size_t size, const char *head, size_t head_size)
{
	CLEANUP(buf_release) struct buf lines = BUF_INIT;

	for (size_t i = 0; i + 1 < size; i++)
		buf_byte(&lines, 'x');
	buf_byte(&lines, '\n');
	cr_assert_eq(websocket_frame_lines(&lines), 0);
	cr_assert_eq(lines.size, head_size + size, "%zu: %zu", size, lines.size);
	cr_expect_arr_eq(lines.data, head, head_size, "%zu", size);
	cr_expect_eq(lines.data[lines.size - 1], '\n');
}

Test(websocket, each_line_is_a_message)
{
	struct buf lines = BUF_INIT;

	cr_assert_eq(websocket_frame_lines(&lines), 0);
	cr_expect_eq(lines.size, 0, "nothing stays nothing");
	buf_str(&lines, "one\ntwo 2\n");
	cr_assert_eq(websocket_frame_lines(&lines), 0);
	cr_expect_str_eq(buf_cstr(&lines), "\x81\x04one\n\x81\x06two 2\n");
	buf_release(&lines);
	frame_of(1, "\x81\x01", 2);
	frame_of(125, "\x81\x7d", 2);
	frame_of(126, "\x81\x7e\x00\x7e", 4);
	frame_of(65535, "\x81\x7e\xff\xff", 4);
	frame_of(65536, "\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00", 10);
}

/* Gives INPUT to a socket in pieces of STEP bytes. */
static struct websocket heard(struct bytes input, size_t step)
{
	struct websocket socket = {0};
	const uint8_t *p = input.data;

	for (size_t i = 0; i < input.size; i += step)
		websocket_take(&socket, BYTES(p + i, step < input.size - i ? step : input.size - i),
			false);
	return socket;
}

/* Checks a socket's output after INPUT and before its close. */
static void says(struct bytes input, struct bytes pong, unsigned closed)
{
	for (size_t step = 1; step <= input.size; step++) {
		struct websocket socket = heard(input, step);
		struct buf out = BUF_INIT;

		websocket_put_pong(&socket, &out);
		cr_expect(
			bytes_equal(buf_bytes(&out), pong), "step %zu: %zu bytes", step, out.size);
		cr_expect_eq(socket.closed, closed, "step %zu: %u", step, socket.closed);
		buf_release(&out);
	}
}

Test(websocket, the_client_is_heard)
{
	says(BYTES_LIT("\x89\x84\x01\x02\x03\x04\x60\x60\x60\x60"),
		BYTES_LIT("\x8a\x04\x61\x62\x63\x64"), 0);
	says(BYTES_LIT("\x89\x80\x01\x02\x03\x04"), BYTES_LIT("\x8a\x00"), 0);
	/* Messages of the client are passed over, in fragments and of any length. */
	says(BYTES_LIT("\x81\x81\x01\x02\x03\x04x\x02\xfe\x00\x03\x01\x02\x03\x04xyz\x80\xff\x00"
		       "\x00\x00\x00\x00\x00\x00\x01\x01\x02\x03\x04!"),
		BYTES_NONE, 0);
	says(BYTES_LIT("\x89\x81\x00\x00\x00\x00"
		       "a\x89\x81\x00\x00\x00\x00"
		       "b"),
		BYTES_LIT("\x8a\x01"
			  "b"),
		0); /* the last one */
	says(BYTES_LIT("\x88\x82\x01\x02\x03\x04\x02\xea"), BYTES_NONE, 1000);
	says(BYTES_LIT("\x88\x80\x01\x02\x03\x04\x89\x80\x00\x00\x00\x00"), BYTES_NONE,
		1000); /* nothing after it */
	/* No WebSocket: without a mask, long control frames, a fragment. */
	says(BYTES_LIT("\x81\x01x"), BYTES_NONE, 1002);
	says(BYTES_LIT("\x89\xfe\x00\x7e\x00\x00\x00\x00"), BYTES_NONE, 1002);
	says(BYTES_LIT("\x09\x81\x00\x00\x00\x00x"), BYTES_NONE, 1002);
}

Test(websocket, it_is_closed_once)
{
	struct websocket socket = {0};
	CLEANUP(buf_release) struct buf out = BUF_INIT;

	websocket_put_close(&socket, &out);
	cr_expect(bytes_equal(buf_bytes(&out), BYTES_LIT("\x88\x02\x03\xe8")));
	websocket_put_close(&socket, &out);
	cr_expect_eq(out.size, 4);
	buf_release(&out);
	socket = (struct websocket){0};
	websocket_take(&socket, BYTES_NONE, false);
	cr_expect_eq(socket.closed, 0);
	websocket_take(&socket, BYTES_NONE, true);
	cr_expect_eq(socket.closed, 1000);
	socket = heard(BYTES_LIT("\x81\x01x"), 3);
	websocket_put_close(&socket, &out);
	cr_expect(bytes_equal(buf_bytes(&out), BYTES_LIT("\x88\x02\x03\xea")));
}
