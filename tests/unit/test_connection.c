/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/unit/unit.h"

/* A connected pair over loopback; the port of the first end. */
static uint16_t connect_pair(int *ret_near, int *ret_far)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	AUTO_FD int listener = socket(AF_INET, SOCK_STREAM, 0);

	cr_assert_eq(bind(listener, (struct sockaddr *)&address, size), 0);
	cr_assert_eq(listen(listener, 1), 0);
	cr_assert_eq(getsockname(listener, (struct sockaddr *)&address, &size), 0);
	*ret_near = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(connect(*ret_near, (struct sockaddr *)&address, size), 0);
	*ret_far = accept(listener, NULL, NULL);
	cr_assert(*ret_far >= 0);
	cr_assert_eq(getsockname(*ret_near, (struct sockaddr *)&address, &size), 0);
	return ntohs(address.sin_port);
}

Test(connection, silent_one_is_shut_down_and_a_talking_one_is_not)
{
	CLEANUP(connections_release) struct connections connections = {NULL};
	int near[2], far[2];
	uint16_t port[2];
	char byte;

	for (int i = 0; i < 2; i++) {
		port[i] = connect_pair(&near[i], &far[i]);
		cr_assert_eq(connections_add(&connections, near[i], 100), 0);
	}
	connections_heard(&connections, port[0], 200);
	connections_condemn(&connections, port[0], 150);
	connections_condemn(&connections, port[1], 150);
	cr_assert_eq(recv(far[1], &byte, 1, 0), 0); /* the other end sees it */
	cr_assert_eq(recv(far[0], &byte, 1, MSG_DONTWAIT), -1);
	for (int i = 0; i < 2; i++) {
		connections_remove(&connections, near[i]);
		close(near[i]);
		close(far[i]);
	}
	cr_assert_eq(connections.count, 0);
}

/* Else the older entry would hear for it, and the newer one be taken for silent. */
Test(connection, a_descriptor_that_is_used_again_is_one_connection)
{
	CLEANUP(connections_release) struct connections connections = {NULL};
	int near, far;

	(void)connect_pair(&near, &far);
	cr_assert_eq(connections_add(&connections, near, 100), 0);
	cr_assert_eq(connections_add(&connections, near, 1000), 0);
	cr_assert_eq(connections.count, 1);
	connections_remove(&connections, near);
	cr_assert_eq(connections.count, 0);
	close(near);
	close(far);
}
