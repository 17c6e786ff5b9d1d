/* SPDX-License-Identifier: Apache-2.0 */
#include "common/unix_socket.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"

struct sockaddr_un unix_socket_address(int directory_fd, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s",
		directory_fd, name);
	return address;
}

int unix_socket_bind(int directory_fd, const char *name, int type, unsigned mode)
{
	struct sockaddr_un address = unix_socket_address(directory_fd, name);
	AUTO_FD int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || (unlinkat(directory_fd, name, 0) < 0 && errno != ENOENT) ||
		bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		fchmodat(directory_fd, name, mode, 0) < 0)
		return err_set(-errno, "making the socket '%s'", name);
	return TAKE_FD(fd);
}

int unix_socket_listen(int directory_fd, const char *name, int type, unsigned mode, int backlog)
{
	AUTO_FD int fd = unix_socket_bind(directory_fd, name, type, mode);

	if (fd >= 0 && listen(fd, backlog) < 0)
		return err_set(-errno, "listening on the socket '%s'", name);
	return TAKE_FD(fd);
}
