/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ring/progress_request.h"

#include <string.h>
#include <sys/socket.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/unix_socket.h"

#define PROGRESS_SOCKET "wish.reflector" /* in the runtime directory */
#define REQUEST_MAGIC   0x31475250u      /* "PRG1" */

/* Offsets in a request (FORMAT.md, Progress requests). */
enum { AT_MAGIC = 0, AT_FEED = 4, AT_RV = 8, AT_JOURNAL = 16, REQUEST_SIZE = 32 };

void progress_request_keep(struct home *home, int *fd)
{
	if (*fd >= 0)
		return;
	unsigned mode = home_file_mode(home) & 0040 ? 0660 : 0600;
	*fd = unix_socket_bind(home_runtime_fd(home), PROGRESS_SOCKET, SOCK_DGRAM, mode);
	if (*fd >= 0)
		home_guard_file(home, PROGRESS_SOCKET);
	else
		err_ignore(*fd, "it is tried again each second");
}

int progress_request_receive(int fd, struct progress_request *ret_request)
{
	uint8_t bytes[REQUEST_SIZE + 1];

	for (unsigned n = 0; fd >= 0 && n < PROGRESS_REQUESTS_MAX; n++) {
		ssize_t size = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

		if (size < 0)
			/* none; or a fault of the socket, to be found by home_check() */
			return AGAIN;
		if (size != REQUEST_SIZE || le32_get(bytes + AT_MAGIC) != REQUEST_MAGIC)
			continue;
		*ret_request = (struct progress_request){
			.rv = le64_get(bytes + AT_RV), .feed = le32_get(bytes + AT_FEED)};
		memcpy(ret_request->journal, bytes + AT_JOURNAL, sizeof(ret_request->journal));
		return FOUND;
	}
	return AGAIN;
}

void progress_request_send(const struct home *home, const struct progress_request *request)
{
	uint8_t bytes[REQUEST_SIZE];

	if (home_runtime_fd(home) < 0)
		return;
	struct sockaddr_un address = unix_socket_address(home_runtime_fd(home), PROGRESS_SOCKET);
	le32_put(bytes + AT_MAGIC, REQUEST_MAGIC);
	le32_put(bytes + AT_FEED, request->feed);
	le64_put(bytes + AT_RV, request->rv);
	memcpy(bytes + AT_JOURNAL, request->journal, sizeof(request->journal));
	AUTO_FD int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0) /* a request may be lost */
		(void)sendto(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL,
			(struct sockaddr *)&address, sizeof(address));
}
