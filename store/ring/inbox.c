/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ring/inbox.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/err.h"

/* By the descriptor: the directory's path may be too long for an address. */
static struct sockaddr_un inbox_address(const struct home *home, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s",
		home_runtime_fd(home), name);
	return address;
}

static int inbox_open(const struct home *home, const char *name)
{
	struct sockaddr_un address = inbox_address(home, name);
	mode_t mode =
		home_file_mode(home) & 0040 ? 0660 : 0600; /* sending takes the right to write */
	int runtime = home_runtime_fd(home);
	AUTO_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || (unlinkat(runtime, name, 0) < 0 && errno != ENOENT) ||
		bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		fchmodat(runtime, name, mode, 0) < 0)
		return err_set(-errno, "making the socket '%s/%s'", home_runtime(home), name);
	return TAKE_FD(fd);
}

void inbox_keep(struct home *home, const char *name, int *fd)
{
	if (*fd >= 0)
		return;
	*fd = inbox_open(home, name);
	if (*fd >= 0)
		home_guard_file(home, name);
	else
		err_ignore(*fd, "it is tried again each second");
}

int inbox_receive(int fd, uint32_t magic, unsigned most, uint8_t ret_message[INBOX_MESSAGE])
{
	uint8_t bytes[INBOX_MESSAGE + 1];

	for (unsigned n = 0; fd >= 0 && n < most; n++) {
		ssize_t size = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

		if (size < 0)
			return AGAIN; /* none; or a fault of the socket, which home_check() finds */
		if (size != INBOX_MESSAGE || le32_get(bytes) != magic)
			continue;
		memcpy(ret_message, bytes, INBOX_MESSAGE);
		return FOUND;
	}
	return AGAIN;
}

void inbox_send(const struct home *home, const char *name, const uint8_t message[INBOX_MESSAGE])
{
	struct sockaddr_un address = inbox_address(home, name);

	if (home_runtime_fd(home) < 0)
		return;
	AUTO_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0) /* failing is losing the message, which is allowed */
		(void)sendto(fd, message, INBOX_MESSAGE, MSG_DONTWAIT | MSG_NOSIGNAL,
			(struct sockaddr *)&address, sizeof(address));
}
