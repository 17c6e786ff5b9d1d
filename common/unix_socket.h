/* SPDX-License-Identifier: Apache-2.0 */
/* Unix sockets, named by an open directory: its path may be too long for a socket's address. */
#ifndef COMMON_UNIX_SOCKET_H
#define COMMON_UNIX_SOCKET_H

#include <sys/socket.h>
#include <sys/un.h>

/* Returns the address of DIRECTORY_FD/NAME, by way of /proc. */
struct sockaddr_un unix_socket_address(int directory_fd, const char *name);

/* Makes a socket of TYPE (SOCK_STREAM, ...) that does not block, in the place of an older one, and
 * sets its MODE. Connecting takes the right to write. Returns the fd; errors. */
int unix_socket_bind(int directory_fd, const char *name, int type, unsigned mode);

/* As unix_socket_bind(), and listens: nobody can connect before the mode is set. */
int unix_socket_listen(int directory_fd, const char *name, int type, unsigned mode, int backlog);

#endif
