/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "common/array.h"
#include "common/check.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/log.h"
#include "common/proc.h"
#include "serve/answer/answer.h"
#include "serve/auth/auth.h"
#include "serve/worker_internal.h"
#include "serve/http/connection.h"
#include "serve/http/listener.h"
#include "serve/http/upstream_link.h"

#define MILLISECOND_NS UINT64_C(1000000)
#define EVENTS_MAX     256
#define FINISH_MS      2500 /* watches are asked to finish within this, at random */
#define END_MS         3500 /* after this everything is cut; kinf run kills after 4 s */

/* ---- the main thread's side --------------------------------------------- */

void loop_give(struct serve_worker *w, const struct listener *listener, int fd)
{
	(void)pthread_mutex_lock(&w->lock);
	int r = ARRAY_ADD(w->arrivals, w->n_arrivals, w->arrivals_room,
		((struct worker_arrival){listener, fd}), "the new connections");
	(void)pthread_mutex_unlock(&w->lock);
	if (r < 0) {
		(void)close(fd);
		err_ignore(r, "the client sees a closed connection and tries again");
		return;
	}
	__atomic_add_fetch(&w->n_connections, 1, __ATOMIC_RELAXED);
	serve_worker_wake(w);
}

void loop_stop(struct serve_worker *w)
{
	(void)pthread_mutex_lock(&w->lock);
	w->stop_asked = true;
	(void)pthread_mutex_unlock(&w->lock);
	serve_worker_wake(w);
}

void loop_join(struct serve_worker *w)
{
	if (w->started)
		(void)pthread_join(w->thread, NULL);
	w->started = false;
	upstream_links_free(&w->links);
}

/* ---- the worker's thread ------------------------------------------------ */

/* Spreads the ends of watches: their clients must not come back at once. */
static void loop_drain(struct serve_worker *w)
{
	uint32_t share = 0;

	w->draining = true;
	w->end_ns = w->now_ns + END_MS * MILLISECOND_NS;
	for (struct http_connection *c = w->connections; c; c = c->next) {
		int r = proc_random(&share, sizeof(share));

		if (r < 0)
			err_ignore(r, "the ends of watches are spread less");
		connection_drain(c, w->now_ns + share % FINISH_MS * MILLISECOND_NS);
	}
}

/* Takes the new sockets; those for TLS wait if there is no slot for their handshakes. */
static void loop_take_arrivals(struct serve_worker *w)
{
	size_t n = 0;

	w->slot_freed = false;
	if (w->draining)
		return;
	(void)pthread_mutex_lock(&w->lock);
	for (size_t i = 0; i < w->n_arrivals; i++) {
		struct worker_arrival arrival = w->arrivals[i];

		if (arrival.listener->tls && w->n_handshakes >= HANDSHAKES_MAX) {
			w->arrivals[n++] = arrival;
			continue;
		}
		int r = connection_new(w, arrival.listener, arrival.fd);
		if (r < 0)
			err_ignore(r, "the client has gone, or sees a closed connection");
	}
	w->n_arrivals = n;
	bool stop = w->stop_asked;
	(void)pthread_mutex_unlock(&w->lock);
	if (stop)
		loop_drain(w);
}

static int loop_timeout(const struct serve_worker *w)
{
	uint64_t now = proc_monotonic_ns(), next = timer_queue_next(&w->timers);

	if (w->ready_first)
		return 0;
	if (w->end_ns < next)
		next = w->end_ns;
	if (next == UINT64_MAX)
		return -1;
	uint64_t ms = next > now ? (next - now) / MILLISECOND_NS + 1 : 0;
	return ms < 60000 ? (int)ms : 60000;
}

/* Gives each ready connection one turn; newly ready ones come next time. */
static void loop_turn_ready(struct serve_worker *w)
{
	struct http_connection *c = w->ready_first;

	w->ready_first = NULL;
	w->ready_last = &w->ready_first;
	for (struct http_connection *next; c; c = next) {
		next = c->ready_next;
		c->ready = false;
		connection_turn(c);
	}
}

static void loop_until_end(struct serve_worker *w)
{
	struct epoll_event events[EVENTS_MAX];

	while (!w->draining || (w->connections && w->now_ns < w->end_ns)) {
		int timeout = loop_timeout(w);

		__atomic_store_n(&w->turn_ns, 0, __ATOMIC_RELAXED);
		int n = epoll_wait(w->epoll, events, EVENTS_MAX, timeout);

		w->now_ns = proc_monotonic_ns();
		__atomic_store_n(&w->turn_ns, w->now_ns, __ATOMIC_RELAXED);
		/* Connections are freed in their turns only, so no event here names a freed one. */
		bool woken = false, links_ready = false;
		for (int i = 0; i < n; i++) {
			if (!events[i].data.ptr)
				woken = true;
			else if (events[i].data.ptr == w->links)
				links_ready = true;
			else
				connection_events(events[i].data.ptr, events[i].events);
		}
		if (woken) {
			uint64_t count;
			ssize_t ignored = read(w->wake_fd, &count, sizeof(count));

			(void)ignored;
			auth_deliver(w->shared->auth, w);
			answer_worker_woken(w->answers);
		}
		if (links_ready)
			upstream_links_run(w->links);
		for (struct serve_timer *timer;
			(timer = timer_queue_take_due(&w->timers, w->now_ns));)
			timer->fn(timer->context);
		loop_turn_ready(w);
		if (woken || w->slot_freed)
			loop_take_arrivals(w);
		err_forget();
	}
}

static void *loop_run(void *arg)
{
	struct serve_worker *w = arg;

	CHECK_OBJ(w, SERVE_WORKER_MAGIC);
	w->now_ns = proc_monotonic_ns();
	int r = answer_worker_open(w->shared->answer, w, &w->answers);
	if (r < 0) {
		LOG(worker_failed, .error = err_text(r));
		__atomic_store_n(&w->shared->failed, r, __ATOMIC_RELAXED);
		return NULL;
	}
	loop_until_end(w);
	w->ended = true;
	for (struct http_connection *c; (c = w->connections);) /* closing takes it off the list */
		connection_close(&c);
	w->ready_first = NULL;
	answer_worker_close(&w->answers);
	return NULL;
}

static void loop_ask(struct serve_worker *w, const struct listener *listener, struct exchange *x)
{
	(void)failpoint_pass(FAILPOINT_SERVE_REQUEST);
	if (!health_answer(w->shared, listener, x))
		serve_answer(w->answers, x);
}

int loop_start(struct serve_worker *w)
{
	struct epoll_event event = {.events = EPOLLIN};

	w->shared->ask = loop_ask;
	int r = w->shared->forward ? upstream_links_new(w, w->shared->runtime_fd, &w->links) : 0;
	if (r < 0)
		return r;
	/* The connections to the API server are watched as one descriptor. */
	event.data.ptr = w->links;
	if (w->links && epoll_ctl(w->epoll, EPOLL_CTL_ADD, upstream_links_fd(w->links), &event) < 0)
		return err_set(-errno, "starting a worker");
	r = pthread_create(&w->thread, NULL, loop_run, w);

	if (r)
		return err_set(-r, "starting a worker");
	w->started = true;
	return 0;
}
