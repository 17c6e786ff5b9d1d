/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ring/doorbell.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/unix_socket.h"

#define DOORBELL_MAGIC 0x62656c6cu
#define LISTENER       UINT32_MAX

struct bell {
	int fd; /* -1: the slot is free */
	bool armed;
	uint64_t rung; /* last rung for this batch */
};

struct doorbell {
	uint32_t magic;
	int listener, epoll;
	uint64_t batch; /* counts the published batches */
	size_t used;    /* no slot from here on is in use: most are never touched */
	struct bell bells[DOORBELL_BELLS_MAX];
};

static int doorbell_watch(struct doorbell *d, int fd, uint32_t slot)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = slot};

	return epoll_ctl(d->epoll, EPOLL_CTL_ADD, fd, &event);
}

static int doorbell_listen(struct doorbell *d, const struct home *home)
{
	unsigned mode = home_file_mode(home) & 0040 ? 0660 : 0600;

	d->listener = unix_socket_listen(
		home_runtime_fd(home), HOME_DOORBELL, SOCK_STREAM, mode, DOORBELL_BELLS_MAX);
	if (d->listener < 0)
		return err_add(d->listener, "%s", home_runtime(home));
	d->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (d->epoll < 0 || doorbell_watch(d, d->listener, LISTENER) < 0)
		return err_set(
			-errno, "making the doorbell '%s/" HOME_DOORBELL "'", home_runtime(home));
	return 0;
}

int doorbell_open(const struct home *home, struct doorbell **ret_doorbell)
{
	CLEANUP(doorbell_close) struct doorbell *d = calloc(1, sizeof(*d));

	if (!d)
		return err_set(-ENOMEM, "making the doorbell");
	d->magic = DOORBELL_MAGIC;
	d->listener = d->epoll = -1;
	d->batch = 1;
	for (size_t i = 0; i < DOORBELL_BELLS_MAX; i++)
		d->bells[i].fd = -1;
	int r = doorbell_listen(d, home);
	if (r < 0)
		return r;
	*ret_doorbell = TAKE(d);
	return 0;
}

/* The socket's name stays: the next reflector replaces it. */
void doorbell_close(struct doorbell **doorbell)
{
	struct doorbell *d = TAKE(*doorbell);

	if (!d)
		return;
	CHECK_OBJ(d, DOORBELL_MAGIC);
	for (size_t i = 0; i < DOORBELL_BELLS_MAX; i++)
		cleanup_fd(&d->bells[i].fd);
	cleanup_fd(&d->listener);
	cleanup_fd(&d->epoll);
	d->magic = 0;
	free(d);
}

/* Receives a follower's byte, or its end. */
static void doorbell_hear(struct bell *bell)
{
	char bytes[16];
	ssize_t size = recv(bell->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	bell->armed |= size > 0;
	if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))
		cleanup_fd(&bell->fd);
}

static void doorbell_accept(struct doorbell *d)
{
	uint32_t slot = 0;

	for (int n = 0; n < DOORBELL_BELLS_MAX; n++) {
		AUTO_FD int fd = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return; /* none, or no descriptor is left: tried again at the next turn */
		while (slot < DOORBELL_BELLS_MAX && d->bells[slot].fd >= 0)
			slot++;
		if (slot == DOORBELL_BELLS_MAX || doorbell_watch(d, fd, slot) < 0)
			continue; /* closed: its follower polls by a timer and tries again later */
		d->bells[slot] = (struct bell){.fd = TAKE_FD(fd)};
		if (slot >= d->used)
			d->used = slot + 1;
		doorbell_hear(&d->bells[slot]); /* a byte sent before the batch counts for it */
	}
}

/* Rings the armed bells not yet rung for the newest batch. */
static void doorbell_ring_armed(struct doorbell *d)
{
	while (d->used && d->bells[d->used - 1].fd < 0)
		d->used--;
	for (struct bell *bell = d->bells; bell < d->bells + d->used; bell++) {
		if (bell->fd < 0 || !bell->armed || bell->rung == d->batch)
			continue;
		bell->armed = false;
		bell->rung = d->batch;
		if (send(bell->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno != EAGAIN &&
			errno != ENOBUFS && errno != EINTR)
			cleanup_fd(&bell->fd);
	}
}

void doorbell_ring(struct doorbell *d)
{
	if (!d)
		return;
	CHECK_OBJ(d, DOORBELL_MAGIC);
	d->batch++;
	/* First the known ones: most arm again long before the next batch. */
	doorbell_ring_armed(d);
	doorbell_turn(d);
	doorbell_ring_armed(d);
}

void doorbell_turn(struct doorbell *d)
{
	struct epoll_event events[DOORBELL_BELLS_MAX + 1];

	if (!d)
		return;
	CHECK_OBJ(d, DOORBELL_MAGIC);
	int n = epoll_wait(d->epoll, events, DOORBELL_BELLS_MAX + 1, 0);
	for (int i = 0; i < n; i++) {
		if (events[i].data.u32 == LISTENER)
			doorbell_accept(d);
		else
			doorbell_hear(&d->bells[events[i].data.u32]);
	}
}
