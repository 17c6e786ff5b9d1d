/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watch whose client takes its events as messages of a WebSocket: the handshake, and what the
 * client says afterwards. The events are those of any other watch (watch.c).
 */
#include "serve/answer/answer_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/err.h"
#include "serve/http/forward.h"
#include "serve/http/websocket.h"

bool answer_takes_messages(const struct answer_request *request)
{
	const struct exchange *x = request->x;
	struct bytes protocol = exchange_header(x, "upgrade");

	bool is_socket = protocol.size == strlen("websocket") &&
			 strncasecmp(protocol.data, "websocket", protocol.size) == 0;
	/* A browser has its token among the protocols, which only the API server reads. */
	bool has_other_token =
		!exchange_header(x, "authorization").size && forward_has_credentials(x);

	return request->verb == ANSWER_WATCH && x->upgrade && is_socket && !has_other_token;
}

/* Checks the client's half of the handshake. Returns: 0; 400 with the Status. */
static int socket_check(struct answer_request *request)
{
	const struct exchange *x = request->x;
	struct bytes protocol = exchange_header(x, "sec-websocket-protocol");
	const char *why =
		!bytes_equal(exchange_header(x, "sec-websocket-version"), BYTES_LIT("13"))
			? "missing or bad WebSocket Version"
		: !exchange_header(x, "sec-websocket-key").size
			? "the request has no Sec-WebSocket-Key"
		: protocol.size && memchr(protocol.data, ',', protocol.size)
			? "a watch over a WebSocket takes one Sec-WebSocket-Protocol at most"
		: request->accept.protobuf ? "a watch over a WebSocket is given in JSON only"
					   : NULL;

	return why ? api_status_set(&request->status, 400, "BadRequest", "%s", why) : 0;
}

/* Hears the client, which says nothing but pings and that it has left. */
static void socket_heard(void *context)
{
	struct answer_watch *watch = context;
	struct exchange *x = watch->request->x;
	bool end;
	struct bytes bytes = exchange_body(x, &end);

	websocket_take(watch->socket, bytes, end);
	exchange_body_take(x, bytes.size);
	if (watch->socket->pong_due || watch->socket->closed)
		exchange_wake(x);
}

int answer_socket_make(struct answer_watch *watch)
{
	int r = socket_check(watch->request);

	if (r != 0)
		return r;
	watch->socket = calloc(1, sizeof(*watch->socket));
	if (!watch->socket)
		return err_set(-ENOMEM, "a watch over a WebSocket");
	return websocket_frame_lines(&watch->out); /* a Status, if the watch is over already */
}

void answer_socket_begin(struct answer_watch *watch)
{
	struct exchange *x = watch->request->x;
	struct bytes protocol = exchange_header(x, "sec-websocket-protocol");
	char accept[WEBSOCKET_ACCEPT_SIZE];
	struct answer_head head = {.n = 0};

	websocket_accept(exchange_header(x, "sec-websocket-key"), accept);
	answer_head_put(&head, "upgrade", "websocket");
	answer_head_put(&head, "connection", "Upgrade");
	answer_head_put(&head, "sec-websocket-accept", accept);
	answer_head_stale(watch->request, &head);
	if (protocol.size)
		head.headers[head.n++] =
			(struct exchange_header){BYTES_LIT("sec-websocket-protocol"), protocol};
	exchange_on_body(x, socket_heard, watch);
	x->relayed = true; /* no other headers */
	exchange_begin(x, 101, head.headers, head.n);
}
