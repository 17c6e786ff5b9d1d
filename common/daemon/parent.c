/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/parent.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/decimal.h"

/* A path, or with a leading @ a name in the abstract namespace; 0 when it is neither or too long. */
static socklen_t parent_address(const char *path, struct sockaddr_un *ret_address)
{
	size_t size = strlen(path);

	if ((path[0] != '/' && path[0] != '@') || size < 2 || size >= sizeof(ret_address->sun_path))
		return 0;
	*ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(ret_address->sun_path, path, size);
	if (path[0] == '@')
		ret_address->sun_path[0] = '\0';
	else
		size++; /* a path travels with its NUL */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
}

void parent_notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address;
	socklen_t size = path ? parent_address(path, &address) : 0;

	if (!size)
		return;
	AUTO_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	/* A manager that does not listen is not our error. */
	if (fd >= 0)
		(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
			(struct sockaddr *)&address, size);
}

int parent_pipe(void)
{
	const char *text = getenv("KINF_DEATH_FD");
	uint64_t fd;

	if (!text || decimal_parse(bytes_str(text), INT32_MAX, &fd) < 0)
		return -1;
	/* Also fails when there is no such fd. Our own children must not hold it open. */
	if (fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
		return -1;
	return (int)fd;
}
