/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/websocket.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/text/base64.h"
#include "serve/http/tls.h"

#define WEBSOCKET_GUID     "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define WEBSOCKET_FINAL    0x80
#define WEBSOCKET_MASKED   0x80
#define WEBSOCKET_TEXT     0x1
#define WEBSOCKET_CLOSE    0x8
#define WEBSOCKET_PING     0x9
#define WEBSOCKET_PONG     0xa
#define WEBSOCKET_NORMAL   1000
#define WEBSOCKET_PROTOCOL 1002 /* the client has broken the protocol */

void websocket_accept(struct bytes key, char ret_accept[WEBSOCKET_ACCEPT_SIZE])
{
	CLEANUP(buf_release) struct buf keyed = BUF_INIT, text = BUF_INIT;
	uint8_t digest[TLS_SHA1_SIZE];

	buf_bytes_put(&keyed, key);
	buf_bytes_put(&keyed, BYTES_LIT(WEBSOCKET_GUID));
	memset(ret_accept, 0, WEBSOCKET_ACCEPT_SIZE); /* also without memory */
	if (buf_error(&keyed) < 0 || !tls_sha1(BYTES(keyed.data, keyed.size), digest))
		return;
	base64_put(BYTES(digest, sizeof(digest)), &text);
	if (text.size == WEBSOCKET_ACCEPT_SIZE - 1)
		memcpy(ret_accept, text.data, text.size);
}

/* ---- frames of the client ----------------------------------------------- */

/* Returns the size of the frame's head as far as it is known. */
static size_t websocket_head_size(const struct websocket *socket)
{
	unsigned length = socket->head[1] & 0x7f;

	if (socket->n_head < 2)
		return 2;
	return 2 +
	       (length == 126          ? 2u
		       : length == 127 ? 8u
				       : 0u) +
	       (socket->head[1] & WEBSOCKET_MASKED ? 4u : 0u);
}

/* Ends the complete frame. */
static void websocket_end_frame(struct websocket *socket)
{
	unsigned opcode = socket->head[0] & 0x0f;

	socket->n_head = 0;
	if (opcode == WEBSOCKET_CLOSE)
		socket->closed = WEBSOCKET_NORMAL;
	if (opcode != WEBSOCKET_PING)
		return;
	socket->pong_due = true;
	socket->n_pong = (unsigned)socket->length;
	memcpy(socket->pong, socket->payload, socket->n_pong);
}

/* Begins the frame after its head. */
static void websocket_begin_frame(struct websocket *socket)
{
	const uint8_t *head = socket->head;
	unsigned small = head[1] & 0x7f, n = small == 126 ? 2 : small == 127 ? 8 : 0;
	bool control = head[0] & 0x8;

	socket->length = n ? 0 : small;
	for (unsigned i = 0; i < n; i++)
		socket->length = socket->length << 8 | head[2 + i];
	socket->n_payload = 0;
	if (!(head[1] & WEBSOCKET_MASKED) || (control && (n || !(head[0] & WEBSOCKET_FINAL))))
		socket->closed = WEBSOCKET_PROTOCOL;
	else if (!socket->length)
		websocket_end_frame(socket);
}

/* Takes bytes of the payload. Returns their number. */
static size_t websocket_take_payload(struct websocket *socket, const uint8_t *bytes, size_t size)
{
	const uint8_t *mask = socket->head + socket->n_head - 4;
	uint64_t left = socket->length - socket->n_payload;
	size_t n = size < left ? size : (size_t)left;

	if (socket->head[0] & 0x8)
		for (size_t i = 0; i < n; i++) {
			size_t at = (size_t)socket->n_payload + i;

			socket->payload[at] = bytes[i] ^ mask[at % 4];
		}
	socket->n_payload += n;
	if (socket->n_payload == socket->length)
		websocket_end_frame(socket);
	return n;
}

void websocket_take(struct websocket *socket, struct bytes bytes, bool end)
{
	const uint8_t *p = bytes.data;
	size_t i = 0;

	while (i < bytes.size && !socket->closed) {
		if (socket->n_head == websocket_head_size(socket)) {
			i += websocket_take_payload(socket, p + i, bytes.size - i);
			continue;
		}
		socket->head[socket->n_head++] = p[i++];
		if (socket->n_head == websocket_head_size(socket))
			websocket_begin_frame(socket);
	}
	if (end && !socket->closed)
		socket->closed = WEBSOCKET_NORMAL;
}

/* ---- frames of the server ----------------------------------------------- */

static void websocket_put(struct buf *out, unsigned opcode, struct bytes payload)
{
	uint64_t size = payload.size;
	unsigned n = size < 126 ? 0 : size < 65536 ? 2 : 8;

	buf_byte(out, (uint8_t)(WEBSOCKET_FINAL | opcode));
	buf_byte(out, (uint8_t)(n == 0 ? size : n == 2 ? 126 : 127));
	for (unsigned i = 0; i < n; i++)
		buf_byte(out, (uint8_t)(size >> (8 * (n - 1 - i))));
	buf_bytes_put(out, payload);
}

void websocket_put_pong(struct websocket *socket, struct buf *out)
{
	if (socket->pong_due && !socket->said_closed)
		websocket_put(out, WEBSOCKET_PONG, BYTES(socket->pong, socket->n_pong));
	socket->pong_due = false;
}

void websocket_put_close(struct websocket *socket, struct buf *out)
{
	if (!socket->closed)
		socket->closed = WEBSOCKET_NORMAL;
	const uint8_t code[2] = {(uint8_t)(socket->closed >> 8), (uint8_t)socket->closed};
	if (!socket->said_closed)
		websocket_put(out, WEBSOCKET_CLOSE, BYTES(code, sizeof(code)));
	socket->said_closed = true;
}

int websocket_frame_lines(struct buf *lines)
{
	CLEANUP(buf_release) struct buf framed = BUF_INIT;
	const uint8_t *p = lines->data, *end = p + lines->size;

	while (p < end) {
		const uint8_t *line_end = memchr(p, '\n', (size_t)(end - p));
		size_t size = line_end ? (size_t)(line_end + 1 - p) : (size_t)(end - p);

		websocket_put(&framed, WEBSOCKET_TEXT, BYTES(p, size));
		p += size;
	}
	int r = buf_error(&framed);
	if (r < 0)
		return r;
	buf_release(lines);
	*lines = framed;
	framed = BUF_INIT;
	return 0;
}
