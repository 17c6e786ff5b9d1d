/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "serve/worker_internal.h"

#define INPUT_SIZE ((size_t)64 << 10)
#define WAKE_TRIES 8

/* ---- worker.h ----------------------------------------------------------- */

size_t serve_worker_held(const struct serve_worker *worker)
{
	return worker->held;
}

uint64_t serve_worker_now_ns(const struct serve_worker *w)
{
	return w->now_ns;
}

void serve_worker_wake(struct serve_worker *w)
{
	static const uint64_t one = 1;

	/* A worker without its wake-up never ends, so a failed call is repeated. A full counter
	 * (EAGAIN) wakes also. */
	for (int i = 0;
		i < WAKE_TRIES && write(w->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN; i++)
		;
}

int serve_timer_init(
	struct serve_worker *w, struct serve_timer *timer, void (*fn)(void *context), void *context)
{
	*timer = (struct serve_timer){
		.worker = w, .fn = fn, .context = context, .item.owner = timer};
	return timer_queue_add(&w->timers, &timer->item);
}

void serve_timer_set(struct serve_timer *timer, uint64_t monotonic_ns)
{
	timer_queue_set_time(&timer->worker->timers, &timer->item, monotonic_ns);
}

void serve_timer_release(struct serve_timer *timer)
{
	if (timer->worker)
		timer_queue_remove(&timer->worker->timers, &timer->item);
}

/* ---- begin and end ------------------------------------------------------ */

int serve_worker_init(struct serve_worker *w, struct worker_shared *shared)
{
	struct epoll_event event = {
		.events = EPOLLIN}; /* data.ptr NULL: the wake-up; w->links: links */

	*w = (struct serve_worker){.magic = SERVE_WORKER_MAGIC,
		.shared = shared,
		.epoll = -1,
		.wake_fd = -1,
		.end_ns = UINT64_MAX};
	w->ready_last = &w->ready_first;
	(void)pthread_mutex_init(&w->lock, NULL);
	w->input = malloc(INPUT_SIZE);
	if (!w->input)
		return err_set(-ENOMEM, "making a worker");
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->epoll < 0 || w->wake_fd < 0 ||
		epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->wake_fd, &event) < 0)
		return err_set(-errno, "making a worker");
	return 0;
}

void serve_worker_release(struct serve_worker *w)
{
	if (!w->magic)
		return;
	for (size_t i = 0; i < w->n_arrivals; i++)
		(void)close(w->arrivals[i].fd);
	free(w->arrivals);
	free(w->input);
	buf_release(&w->output);
	timer_queue_release(&w->timers);
	cleanup_fd(&w->epoll);
	cleanup_fd(&w->wake_fd);
	(void)pthread_mutex_destroy(&w->lock);
	w->magic = 0;
}
