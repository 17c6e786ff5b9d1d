/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's side of a WebSocket (RFC 6455) for events: each message is one text frame, and
 * nothing is compressed or fragmented. Messages of the client are dropped; its pings are answered,
 * and its close frame ends the socket.
 */
#ifndef SERVE_HTTP_WEBSOCKET_H
#define SERVE_HTTP_WEBSOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/bytes.h"

#define WEBSOCKET_ACCEPT_SIZE 29  /* with its NUL */
#define WEBSOCKET_CONTROL_MAX 125 /* bytes of a control frame */

/* Zeroed: open, and nothing has come. */
struct websocket {
	uint8_t head[14]; /* of the incoming frame */
	unsigned n_head;  /* bytes so far */
	uint64_t length;  /* of its payload */
	uint64_t n_payload;
	uint8_t payload[WEBSOCKET_CONTROL_MAX]; /* of a control frame */
	uint8_t pong[WEBSOCKET_CONTROL_MAX];    /* the answer to the last ping */
	unsigned n_pong;
	bool pong_due;
	uint16_t closed;  /* 0: open; else the close frame's code */
	bool said_closed; /* and that frame was made */
};

/* Writes the value of Sec-WebSocket-Accept for a client's KEY. */
void websocket_accept(struct bytes key, char ret_accept[WEBSOCKET_ACCEPT_SIZE]);

/* Takes the client's bytes; END: no more will come. Closes the socket at its end, at a close frame,
 * and at a malformed frame. */
void websocket_take(struct websocket *socket, struct bytes bytes, bool end);

/* Appends the answer to a ping, if one is due. It may stand between two messages only. */
void websocket_put_pong(struct websocket *socket, struct buf *out);
/* Appends the close frame, once. */
void websocket_put_close(struct websocket *socket, struct buf *out);
/* Makes each line of LINES, with its line break, a message. Returns: 0; -ENOMEM. */
int websocket_frame_lines(struct buf *lines);

#endif
