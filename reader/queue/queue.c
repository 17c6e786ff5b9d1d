/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client-go's work queue with its delays and rate limits (docs/informer.md). One lock guards all of
 * it.
 *
 * A key is dirty from the time it is added until it is handed out, and in work from then until
 * kinf_queue_done(). A dirty key not in work stands in line. A delayed key waits in a heap; a
 * thread looking at the queue moves due keys into the line.
 *
 * Waiting threads: at most one of them, the timekeeper, sleeps until the first delayed key is due,
 * all others sleep until they are woken. A woken thread, and one leaving with a key, wakes the next
 * one if there is more to do. So one signal for each added key is enough and none is lost.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/timer_queue.h"
#include "reader/handle.h"
#include "reader/handled.h"
#include "reader/queue/queue_internal.h"

#define QUEUE_MAGIC 0x6b717565u
#define NEVER       UINT64_MAX

/* A key. It lives while the key is dirty, in work, or delayed. */
struct queue_item {
	struct queue_key key;
	struct queue_item *next;       /* in line, if the caller has not set an order */
	struct queue_item *work_next;  /* in the list of the items in work */
	struct queue_item **work_at;   /* the pointer to this item in the list; NULL: not in work */
	uint64_t added_at, began_at;   /* ns */
	struct timer_queue_item timer; /* of a delayed key */
	struct handled handled; /* the newest event of the callers since the key was handed out */
	uint64_t taker;         /* the thread with the key in work */
	bool dirty;
};

struct queue_counts {
	uint64_t depth, adds, retries, processing;
	struct kinf_histogram queue_duration, work_duration;
};

struct kinf_queue {
	uint32_t magic;
	struct kinf_clock *clock; /* NULL: the machine's */
	struct kinf_limiter *limiter;
	struct kinf_queue_order order; /* size 0: none, first in, first out */
	struct clock_user user;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t ready, timer, drained;
	struct queue_keys keys;
	struct queue_item *first, **last; /* the line, without an order */
	size_t in_line;
	struct timer_queue delayed;
	struct queue_item *work; /* the items in work */
	struct queue_counts counts;
	unsigned waiting; /* threads on ready */
	bool timekeeper;  /* a thread is on timer */
	bool woken; /* a thread on ready was woken and does not run yet; it wakes the next one */
	pthread_cond_t *wake; /* to wake one thread when the lock is given back; NULL: none */
	bool shutting_down, draining;
};

static void queue_lock(struct kinf_queue *queue)
{
	CHECK_OBJ(queue, QUEUE_MAGIC);
	(void)pthread_mutex_lock(&queue->lock); /* a plain mutex does not fail */
}

/* A thread woken under the lock would only wait for it. */
static void queue_unlock(struct kinf_queue **queue)
{
	pthread_cond_t *wake = (*queue)->wake;

	(*queue)->wake = NULL;
	(void)pthread_mutex_unlock(&(*queue)->lock);
	if (wake)
		(void)pthread_cond_signal(wake);
}

/* Holds the lock until the end of the scope. */
#define LOCKED(queue) \
	CLEANUP(queue_unlock) __attribute__((unused)) struct kinf_queue *locked_ = (queue); \
	queue_lock(locked_)

/* ---- items and the line ------------------------------------------------- */

static void item_free_if_idle(struct kinf_queue *queue, struct queue_item *item)
{
	if (!item->dirty && !item->work_at && !item->timer.added)
		queue_keys_remove(&queue->keys, &item->key);
}

static int line_push(struct kinf_queue *queue, struct queue_item *item)
{
	if (queue->order.size) {
		int r = queue->order.push(queue->order.arg, item->key.text, item->key.size);

		if (r < 0)
			return err_set(r, "push() of the queue's order refused a key");
	} else {
		item->next = NULL;
		*queue->last = item;
		queue->last = &item->next;
	}
	queue->in_line++;
	return 0;
}

/* ---- waking ------------------------------------------------------------- */

/* Wakes a thread to take a key or to keep the time. One at a time is on its way:
 * kinf_queue_get() wakes the next. */
static void queue_wake_one(struct kinf_queue *queue)
{
	if (!queue->waiting) {
		queue->wake = &queue->timer;
	} else if (!queue->woken) {
		queue->woken = true;
		queue->wake = &queue->ready;
	}
}

static void queue_wake_all(struct kinf_queue *queue)
{
	(void)pthread_cond_broadcast(&queue->ready);
	(void)pthread_cond_broadcast(&queue->timer);
}

static void queue_clock_stepped(void *arg)
{
	LOCKED(arg);
	queue_wake_all(locked_);
}

/* ---- adding ------------------------------------------------------------- */

/* Makes the item dirty: client-go's Add. */
static int item_add(struct kinf_queue *queue, struct queue_item *item)
{
	if (item->dirty) {
		if (!item->work_at && queue->order.size && queue->order.touch)
			queue->order.touch(queue->order.arg, item->key.text, item->key.size);
		return 0;
	}
	int r = item->work_at ? 0 : line_push(queue, item);
	if (r < 0)
		return r;
	item->dirty = true;
	item->added_at = clock_read(queue->clock);
	queue->counts.adds++;
	queue->counts.depth++;
	if (!item->work_at)
		queue_wake_one(queue);
	return 0;
}

/* Returns the key that is due first; NULL: none is delayed. */
static struct queue_item *queue_first_delayed(const struct kinf_queue *queue)
{
	return queue->delayed.n_heap ? queue->delayed.heap[0]->owner : NULL;
}

/* Moves due keys into the line. */
static int queue_add_due(struct kinf_queue *queue)
{
	struct queue_item *item;

	while ((item = queue_first_delayed(queue)) &&
		item->timer.time_ns <= clock_read(queue->clock)) {
		int r = item_add(queue, item);

		if (r < 0)
			return r;
		timer_queue_remove(&queue->delayed, &item->timer);
	}
	return 0;
}

/* Adds the key when DELAY_NS have passed; at once when it is 0. */
static int queue_add(struct kinf_queue *queue, const void *key, size_t size, uint64_t delay_ns)
{
	struct queue_key *found;
	int r = queue_keys_get(&queue->keys, key, size, sizeof(struct queue_item), &found);

	if (r < 0)
		return r;
	struct queue_item *item = (struct queue_item *)found;
	const struct handled handled = handled_get();
	handled_merge(&item->handled, &handled);
	if (delay_ns) {
		uint64_t now = clock_read(queue->clock);
		uint64_t ready_at = delay_ns < NEVER - 1 - now ? now + delay_ns : NEVER - 1;

		r = item->timer.added ? 0 : timer_queue_add(&queue->delayed, &item->timer);
		item->timer.owner = item;
		/* an earlier time that was asked for before stays */
		if (r == 0 && ready_at < item->timer.time_ns)
			timer_queue_set_time(&queue->delayed, &item->timer, ready_at);
		if (r == 0 && queue_first_delayed(queue) == item) {
			if (queue->timekeeper)
				queue->wake = &queue->timer;
			else
				queue_wake_one(queue);
		}
	} else {
		r = item_add(queue, item);
	}
	item_free_if_idle(queue, item);
	return r;
}

/* Keeps the sentence of an error for kinf_error(NULL). Returns R. */
static int queue_result(int r)
{
	return r < 0 ? kinf_result(NULL, r) : r;
}

int kinf_queue_add(struct kinf_queue *queue, const void *key, size_t size)
{
	LOCKED(queue);
	return queue->shutting_down ? END : queue_result(queue_add(queue, key, size, 0));
}

int kinf_queue_add_after(struct kinf_queue *queue, const void *key, size_t size, int64_t delay_ns)
{
	LOCKED(queue);
	if (queue->shutting_down)
		return END;
	queue->counts.retries++;
	return queue_result(queue_add(queue, key, size, delay_ns > 0 ? (uint64_t)delay_ns : 0));
}

/* ---- rate limits -------------------------------------------------------- */

int kinf_queue_add_rate_limited(struct kinf_queue *queue, const void *key, size_t size)
{
	int64_t delay_ns = 0;

	CHECK_OBJ(queue, QUEUE_MAGIC);
	int r = kinf_limiter_when(queue->limiter, key, size, &delay_ns);
	return r < 0 ? r : kinf_queue_add_after(queue, key, size, delay_ns);
}

void kinf_queue_forget(struct kinf_queue *queue, const void *key, size_t size)
{
	CHECK_OBJ(queue, QUEUE_MAGIC);
	kinf_limiter_forget(queue->limiter, key, size);
}

uint64_t kinf_queue_num_requeues(struct kinf_queue *queue, const void *key, size_t size)
{
	CHECK_OBJ(queue, QUEUE_MAGIC);
	return kinf_limiter_num_requeues(queue->limiter, key, size);
}

/* ---- handing out -------------------------------------------------------- */

static void histogram_add(struct kinf_histogram *histogram, uint64_t ns)
{
	uint64_t bound = 10; /* 1e-8 s */

	histogram->count++;
	histogram->sum += (double)ns / 1e9;
	for (unsigned i = 0; i < KINF_HISTOGRAM_BUCKETS; i++, bound *= 10)
		if (ns <= bound) {
			histogram->buckets[i]++;
			return;
		}
}

static void queue_hand_out(struct kinf_queue *queue, const char **ret_key, size_t *ret_size)
{
	struct queue_item *item = queue->first;

	queue->in_line--;
	if (queue->order.size) { /* the text lies after its item (queue_internal.h) */
		char *text = (char *)(uintptr_t)queue->order.pop(queue->order.arg);

		item = (struct queue_item *)(void *)(text - sizeof(*item));
	} else {
		queue->first = item->next;
		if (!queue->first)
			queue->last = &queue->first;
	}
	item->dirty = false;
	item->taker = handled_take_key(&item->handled);
	item->handled.event = 0;
	item->began_at = clock_read(queue->clock);
	item->work_next = queue->work;
	item->work_at = &queue->work;
	if (queue->work)
		queue->work->work_at = &item->work_next;
	queue->work = item;
	queue->counts.depth--;
	queue->counts.processing++;
	histogram_add(&queue->counts.queue_duration, item->began_at - item->added_at);
	*ret_key = item->key.text;
	*ret_size = item->key.size;
}

/* Times of CLOCK_MONOTONIC. */
static void queue_sleep_until(
	struct kinf_queue *queue, pthread_cond_t *condition, uint64_t deadline)
{
	struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000),
		.tv_nsec = (long)(deadline % 1000000000)};

	if (deadline == NEVER)
		(void)pthread_cond_wait(condition, &queue->lock);
	else /* the caller reads the clock in any case */
		(void)pthread_cond_timedwait(condition, &queue->lock, &until);
}

static int queue_get(
	struct kinf_queue *queue, uint64_t deadline, const char **ret_key, size_t *ret_size)
{
	for (;;) {
		int r = queue_add_due(queue);

		if (r < 0 && !queue->in_line)
			return r;
		err_ignore(r, "the keys in line come first");
		if (queue->in_line) {
			queue_hand_out(queue, ret_key, ret_size);
			return FOUND;
		}
		if (queue->shutting_down)
			return END;
		if (deadline != NEVER && proc_monotonic_ns() >= deadline)
			return AGAIN;
		const struct queue_item *next = queue_first_delayed(queue);
		if (!next || queue->timekeeper) {
			queue->waiting++;
			queue_sleep_until(queue, &queue->ready, deadline);
			queue->waiting--;
			queue->woken = false;
			continue;
		}
		/* The time of a stepped clock comes with queue_clock_stepped(). */
		uint64_t ready_at = queue->clock ? NEVER : next->timer.time_ns;
		queue->timekeeper = true;
		queue_sleep_until(queue, &queue->timer, ready_at < deadline ? ready_at : deadline);
		queue->timekeeper = false;
	}
}

int kinf_queue_get(struct kinf_queue *queue, int timeout_ms, const char **ret_key, size_t *ret_size)
{
	uint64_t deadline =
		timeout_ms < 0 ? NEVER : proc_monotonic_ns() + (uint64_t)timeout_ms * 1000000;

	LOCKED(queue);
	int r = queue_get(queue, deadline, ret_key, ret_size);
	/* This thread stops waiting: another one has to take the rest, or keep the time. */
	if (queue->in_line || (queue->delayed.n_heap && !queue->timekeeper))
		queue_wake_one(queue);
	return queue_result(r);
}

int kinf_queue_done(struct kinf_queue *queue, const void *key, size_t size)
{
	LOCKED(queue);
	struct queue_item *item = (struct queue_item *)queue_keys_find(&queue->keys, key, size);

	if (!item || !item->work_at)
		return NOT_FOUND;
	int r = item->dirty ? line_push(queue, item) : 0;
	if (r < 0)
		return queue_result(r);
	histogram_add(&queue->counts.work_duration, clock_read(queue->clock) - item->began_at);
	*item->work_at = item->work_next;
	if (item->work_next)
		item->work_next->work_at = item->work_at;
	item->work_at = NULL;
	queue->counts.processing--;
	handled_end_key(item->taker);
	if (item->dirty)
		queue_wake_one(queue);
	if (!queue->work)
		(void)pthread_cond_broadcast(&queue->drained);
	item_free_if_idle(queue, item);
	return 0;
}

int64_t kinf_queue_next_ms(struct kinf_queue *queue)
{
	LOCKED(queue);
	int r = queue_add_due(queue);
	const struct queue_item *next = queue_first_delayed(queue);

	err_ignore(r, "kinf_queue_get reports it");
	if (r < 0 || queue->in_line || queue->shutting_down)
		return 0; /* kinf_queue_get has something to report at once */
	if (!next)
		return -1;
	uint64_t now = clock_read(queue->clock);
	uint64_t ready_at = next->timer.time_ns;
	return ready_at > now ? (int64_t)((ready_at - now) / 1000000 + 1) : 0;
}

/* ---- counts ------------------------------------------------------------- */

size_t kinf_queue_len(struct kinf_queue *queue)
{
	LOCKED(queue);
	err_ignore(queue_add_due(queue), "kinf_queue_get reports it");
	return queue->in_line;
}

/* The ages of the items in work are summed up here, where client-go has a ticker. */
int kinf_queue_metrics(struct kinf_queue *queue, struct kinf_queue_counts *ret_metrics)
{
	LOCKED(queue);
	int r = kinf_check_size("kinf_queue_counts", ret_metrics->size, sizeof(*ret_metrics));
	if (r < 0)
		return queue_result(r);
	err_ignore(queue_add_due(queue), "kinf_queue_get reports it");
	const struct queue_counts *counts = &queue->counts;
	uint64_t now = clock_read(queue->clock);
	*ret_metrics = (struct kinf_queue_counts){
		.size = sizeof(*ret_metrics),
		.depth = counts->depth,
		.adds = counts->adds,
		.retries = counts->retries,
		.processing = counts->processing,
		.queue_duration = counts->queue_duration,
		.work_duration = counts->work_duration,
		.delayed = queue->delayed.n_items,
	};
	for (const struct queue_item *item = queue->work; item; item = item->work_next) {
		double age = (double)(now - item->began_at) / 1e9;

		ret_metrics->unfinished_work_seconds += age;
		if (age > ret_metrics->longest_running_processor_seconds)
			ret_metrics->longest_running_processor_seconds = age;
	}
	return 0;
}

/* ---- the end ------------------------------------------------------------ */

static void queue_shut_down(struct kinf_queue *queue, bool drain)
{
	struct queue_item *item;

	/* Keys due before the end are still handed out. */
	err_ignore(queue_add_due(queue), "the queue ends");
	queue->draining = drain;
	queue->shutting_down = true;
	while ((item = queue_first_delayed(queue))) {
		timer_queue_remove(&queue->delayed, &item->timer);
		item_free_if_idle(queue, item);
	}
	queue_wake_all(queue);
	(void)pthread_cond_broadcast(&queue->drained);
}

void kinf_queue_shut_down(struct kinf_queue *queue)
{
	LOCKED(queue);
	queue_shut_down(queue, false);
}

void kinf_queue_shut_down_with_drain(struct kinf_queue *queue)
{
	LOCKED(queue);
	queue_shut_down(queue, true);
	while (queue->work && queue->draining)
		(void)pthread_cond_wait(&queue->drained, &queue->lock);
}

int kinf_queue_shutting_down(struct kinf_queue *queue)
{
	LOCKED(queue);
	return queue->shutting_down;
}

/* ---- making and freeing ------------------------------------------------- */

/* The lock is held for less time than a sleep takes, so a thread looks at it some times before
 * it sleeps for it: with eight threads on two cores 3.5 times as many keys pass. None of these
 * calls fails on Linux. */
static void queue_init_lock(struct kinf_queue *queue)
{
	pthread_mutexattr_t adaptive;
	pthread_condattr_t monotonic;

	(void)pthread_mutexattr_init(&adaptive);
	(void)pthread_mutexattr_settype(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP);
	(void)pthread_mutex_init(&queue->lock, &adaptive);
	(void)pthread_mutexattr_destroy(&adaptive);
	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&queue->ready, &monotonic);
	(void)pthread_cond_init(&queue->timer, &monotonic);
	(void)pthread_cond_init(&queue->drained, &monotonic);
	(void)pthread_condattr_destroy(&monotonic);
}

int kinf_queue_new(const struct kinf_queue_options *options, struct kinf_queue **ret_queue)
{
	const struct kinf_queue_options defaults = {.size = sizeof(defaults)};

	if (!options)
		options = &defaults;
	int r = kinf_check_size("kinf_queue_options", options->size, sizeof(*options));
	const struct kinf_queue_order *order = r == 0 ? options->order : NULL;
	if (order)
		r = kinf_check_size("kinf_queue_order", order->size, sizeof(*order));
	if (r == 0 && order && (!order->push || !order->pop))
		r = err_say(-EINVAL, "a kinf_queue_order without push or pop");
	if (r < 0)
		return queue_result(r);
	struct kinf_queue *queue = calloc(1, sizeof(*queue));
	if (!queue)
		return queue_result(err_set(-ENOMEM, "queue"));
	queue->limiter = options->limiter;
	r = queue_keys_init(&queue->keys);
	if (r == 0 && !queue->limiter)
		r = kinf_limiter_default_controller(options->clock, &queue->limiter);
	if (r < 0) {
		free(queue);
		return queue_result(r);
	}
	queue->magic = QUEUE_MAGIC;
	queue->clock = options->clock;
	if (order)
		queue->order = *order;
	queue->last = &queue->first;
	queue_init_lock(queue);
	queue->user = (struct clock_user){.wake = queue_clock_stepped, .arg = queue};
	clock_subscribe(queue->clock, &queue->user);
	*ret_queue = queue;
	return 0;
}

void kinf_queue_free(struct kinf_queue **queue)
{
	if (!queue || !*queue)
		return;
	struct kinf_queue *q = TAKE(*queue);

	CHECK_OBJ(q, QUEUE_MAGIC);
	clock_unsubscribe(q->clock, &q->user);
	for (const struct queue_item *item = q->work; item; item = item->work_next)
		handled_end_key(item->taker);
	queue_keys_release(&q->keys);
	timer_queue_release(&q->delayed);
	kinf_limiter_free(&q->limiter);
	(void)pthread_cond_destroy(&q->ready);
	(void)pthread_cond_destroy(&q->timer);
	(void)pthread_cond_destroy(&q->drained);
	(void)pthread_mutex_destroy(&q->lock);
	q->magic = 0;
	free(q);
}
