/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/doorbell.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"

#define DOORBELL_MAGIC 0x62656c6cu
#define BELLS_MAX      512 /* who comes later polls with a short timer */
#define WAITING_MAX    64

struct doorbell {
	uint32_t magic;
	int listener;
	size_t n;
	int bells[BELLS_MAX];
};

static int make_socket(const struct home *home, int *ret_fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int runtime = home_runtime_fd(home);
	AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (unlinkat(runtime, HOME_DOORBELL, 0) < 0 && errno != ENOENT)
		return -errno;
	/* By the descriptor: the folder's path may be too long for an address. */
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/" HOME_DOORBELL,
		runtime);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	/* Who may read may connect, which takes the right to write. */
	mode_t mode = home_file_mode(home) & 0040 ? 0660 : 0600;
	if (fchmodat(runtime, HOME_DOORBELL, mode, 0) < 0 || listen(fd, WAITING_MAX) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int doorbell_open(const struct home *home, struct doorbell **ret_doorbell)
{
	CLEANUP(doorbell_close) struct doorbell *d = calloc(1, sizeof(*d));

	if (!d)
		return err_set(-ENOMEM, "doorbell");
	d->magic = DOORBELL_MAGIC;
	d->listener = -1;
	int r = make_socket(home, &d->listener);
	if (r < 0)
		return err_set(r, "'%s/" HOME_DOORBELL "'", home_runtime(home));
	*ret_doorbell = TAKE(d);
	return 0;
}

/* The socket's name stays: the next processor's takes its place. */
void doorbell_close(struct doorbell **doorbell)
{
	struct doorbell *d = TAKE(*doorbell);

	if (!d)
		return;
	CHECK_OBJ(d, DOORBELL_MAGIC);
	for (size_t i = 0; i < d->n; i++)
		cleanup_fd(&d->bells[i]);
	cleanup_fd(&d->listener);
	d->magic = 0;
	free(d);
}

/* Who finds no room is hung up on, and so knows. */
static void take_in(struct doorbell *d)
{
	int fd;

	while ((fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		if (d->n < BELLS_MAX)
			d->bells[d->n++] = fd;
		else
			cleanup_fd(&fd);
	}
}

/* False: he has left. */
static bool ring(int bell)
{
	return send(bell, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 || errno == EAGAIN ||
		errno == ENOBUFS || errno == EINTR;
}

void doorbell_ring(struct doorbell *d)
{
	if (!d)
		return;
	CHECK_OBJ(d, DOORBELL_MAGIC);
	take_in(d);
	for (size_t i = 0; i < d->n;) {
		if (ring(d->bells[i])) {
			i++;
			continue;
		}
		cleanup_fd(&d->bells[i]);
		d->bells[i] = d->bells[--d->n];
	}
}
