/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ring/wish.h"

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

#define WISH_SOCKET "wish.reflector" /* in the runtime directory */
#define WISH_MAGIC  0x31475250u      /* "PRG1" */

/* Offsets in a wish (FORMAT.md, Wishes for progress). */
enum { AT_MAGIC = 0, AT_FEED = 4, AT_RV = 8, AT_JOURNAL = 16, WISH_SIZE = 32 };

/* By the descriptor: the directory's path may be too long for an address. */
static struct sockaddr_un wish_address(const struct home *home)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" WISH_SOCKET,
		home_runtime_fd(home));
	return address;
}

static int wish_open(const struct home *home)
{
	struct sockaddr_un address = wish_address(home);
	mode_t mode =
		home_file_mode(home) & 0040 ? 0660 : 0600; /* sending takes the right to write */
	int runtime = home_runtime_fd(home);
	AUTO_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || (unlinkat(runtime, WISH_SOCKET, 0) < 0 && errno != ENOENT) ||
		bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
		fchmodat(runtime, WISH_SOCKET, mode, 0) < 0)
		return err_set(
			-errno, "making the socket '%s/" WISH_SOCKET "'", home_runtime(home));
	return TAKE_FD(fd);
}

void wish_keep(struct home *home, int *fd)
{
	if (*fd >= 0)
		return;
	*fd = wish_open(home);
	if (*fd >= 0)
		home_guard_file(home, WISH_SOCKET);
	else
		err_ignore(*fd, "it is tried again each second");
}

int wish_receive(int fd, struct wish *ret_wish)
{
	uint8_t bytes[WISH_SIZE + 1];

	for (unsigned n = 0; fd >= 0 && n < WISHES_MAX; n++) {
		ssize_t size = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

		if (size < 0)
			return AGAIN; /* none; or a fault of the socket, which home_check() finds */
		if (size != WISH_SIZE || le32_get(bytes + AT_MAGIC) != WISH_MAGIC)
			continue;
		*ret_wish = (struct wish){
			.rv = le64_get(bytes + AT_RV), .feed = le32_get(bytes + AT_FEED)};
		memcpy(ret_wish->journal, bytes + AT_JOURNAL, sizeof(ret_wish->journal));
		return FOUND;
	}
	return AGAIN;
}

void wish_send(const struct home *home, const struct wish *wish)
{
	uint8_t bytes[WISH_SIZE];

	if (home_runtime_fd(home) < 0)
		return;
	struct sockaddr_un address = wish_address(home);
	le32_put(bytes + AT_MAGIC, WISH_MAGIC);
	le32_put(bytes + AT_FEED, wish->feed);
	le64_put(bytes + AT_RV, wish->rv);
	memcpy(bytes + AT_JOURNAL, wish->journal, sizeof(wish->journal));
	AUTO_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0) /* failing is losing the wish, which is allowed */
		(void)sendto(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL,
			(struct sockaddr *)&address, sizeof(address));
}
