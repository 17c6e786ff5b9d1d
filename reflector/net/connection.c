/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/array.h"

void connections_release(struct connections *connections)
{
	free(connections->at);
	*connections = (struct connections){NULL};
}

void connections_remove(struct connections *connections, int fd)
{
	for (size_t i = 0; i < connections->count; i++)
		if (connections->at[i].fd == fd) {
			connections->at[i] = connections->at[--connections->count];
			return;
		}
}

int connections_add(struct connections *connections, int fd, uint64_t now_ns)
{
	connections_remove(connections, fd);
	struct connection connection = {.fd = fd, .heard_ns = now_ns};
	return ARRAY_ADD(connections->at, connections->count, connections->room, connection,
		"the list of connections");
}

/* A socket has no local port before it connects, so the port is read when it is first needed. */
static uint16_t connection_port(int fd)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &size))
		return 0;
	if (address.ss_family == AF_INET)
		return ntohs(((struct sockaddr_in *)&address)->sin_port);
	if (address.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
	return 0;
}

static struct connection *connection_find(struct connections *connections, uint16_t port)
{
	for (size_t i = 0; port && i < connections->count; i++) {
		struct connection *connection = &connections->at[i];

		if (!connection->port)
			connection->port = connection_port(connection->fd);
		if (connection->port == port)
			return connection;
	}
	return NULL;
}

void connections_heard(struct connections *connections, uint16_t port, uint64_t now_ns)
{
	struct connection *connection = connection_find(connections, port);

	if (connection)
		connection->heard_ns = now_ns;
}

void connections_condemn(struct connections *connections, uint16_t port, uint64_t since_ns)
{
	struct connection *connection = connection_find(connections, port);

	if (connection && connection->heard_ns <= since_ns)
		(void)shutdown(connection->fd, SHUT_RDWR); /* fails if the peer has closed it */
}
