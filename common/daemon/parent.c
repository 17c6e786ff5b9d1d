/* SPDX-License-Identifier: Apache-2.0 */
#include "common/daemon/parent.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/decimal.h"

#define PARENT_SOCKETS_MAX 1024

static char *kept; /* the address, after parent_keep_manager() */

/* Returns a path, or an abstract name after '@'; NULL: none. */
static const char *parent_manager(void)
{
	return kept ? kept : getenv("NOTIFY_SOCKET");
}

void parent_keep_manager(void)
{
	const char *path = getenv("NOTIFY_SOCKET");

	if (!path)
		return;
	kept = strdup(path);
	if (!kept)
		return;                  /* without memory the children notify too: little harm */
	(void)unsetenv("NOTIFY_SOCKET"); /* the names are good */
	(void)unsetenv("WATCHDOG_USEC");
	(void)unsetenv("WATCHDOG_PID");
}

bool parent_has_manager(void)
{
	return parent_manager() != NULL;
}

void parent_notify(const char *state)
{
	const char *path = parent_manager();
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t size = path ? strlen(path) : 0;

	if (size < 2 || (path[0] != '/' && path[0] != '@') || size >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, size);
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	else
		size++; /* a path travels with its NUL */
	AUTO_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	/* A deaf manager is not our error. */
	if (fd >= 0)
		(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
			(struct sockaddr *)&address,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + size));
}

unsigned parent_sockets(void)
{
	const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");
	uint64_t number, count;

	if (!pid || !n || decimal_parse(bytes_str(pid), INT32_MAX, &number) < 0 ||
		decimal_parse(bytes_str(n), PARENT_SOCKETS_MAX, &count) < 0)
		return 0;
	bool is_ours = number == (uint64_t)getpid() ||
		       (number == (uint64_t)getppid() && getenv("KINF_DEATH_FD"));
	return is_ours ? (unsigned)count : 0;
}

int parent_say_given(bool store, bool runtime_dir)
{
	char text[32];

	(void)snprintf(
		text, sizeof(text), "%s %s", store ? "store" : "", runtime_dir ? "runtimeDir" : "");
	return setenv("KINF_RUN_GIVEN", text, 1) < 0 ? err_set(-errno, "setting KINF_RUN_GIVEN")
						     : 0;
}

void parent_given(bool *ret_store, bool *ret_runtime_dir)
{
	const char *text = getenv("KINF_RUN_GIVEN");

	*ret_store = !text || strstr(text, "store");
	*ret_runtime_dir = !text || strstr(text, "runtimeDir");
}

int parent_pipe(void)
{
	const char *text = getenv("KINF_DEATH_FD");
	uint64_t fd;

	if (!text || decimal_parse(bytes_str(text), INT32_MAX, &fd) < 0)
		return -1;
	/* Fails also for a missing fd. Our own children must not hold it open. */
	if (fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
		return -1;
	return (int)fd;
}
