/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client-go's work queue, delaying and rate-limiting (docs/informer.md 7), behind one lock.
 *
 * A key is dirty from when it is added until it is handed out, and in work from then until done. In
 * line stand those that are dirty and not in work. What is there for later waits in a heap, and
 * becomes dirty when whoever looks at the queue finds its time to have come.
 *
 * Waiting: at most one thread, the timekeeper, sleeps until the first of those for later; all
 * others sleep until they are woken. Who is woken, or leaves with a key, passes on what is still to
 * be had, so one signal per added key is enough and none is lost.
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
#include "reader/queue/queue_clock.h"
#include "reader/queue/queue_delayed.h"
#include "reader/queue/queue_keys.h"

#define QUEUE_MAGIC 0x6b717565u
#define NEVER       UINT64_MAX

/* A key and all that is known of it. It lives while the key waits, is worked on, or is delayed. */
struct queue_item {
	struct queue_key key;
	struct queue_item *next;      /* in line, if the queue has no order of the caller's */
	struct queue_item *work_next; /* in the list of the items that are worked on */
	struct queue_item **work_at;  /* the pointer to this item in that list; NULL: not worked on */
	uint64_t added_at, began_at;  /* ns */
	struct queue_timer timer;
	bool dirty; /* in line, or to be put there when the work on it ends */
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
	pthread_mutex_t lock; /* what follows is under it */
	pthread_cond_t ready, timer, drained;
	struct queue_keys keys;
	struct queue_item *first, **last; /* in line, without an order */
	size_t in_line;
	struct queue_delayed delayed;
	struct queue_item *work;
	struct queue_counts counts;
	unsigned waiting; /* threads on ready */
	bool timekeeper;  /* a thread is on timer */
	bool shutting_down, draining;
};

static void queue_lock(struct kinf_queue *queue)
{
	CHECK_OBJ(queue, QUEUE_MAGIC);
	(void)pthread_mutex_lock(&queue->lock); /* a plain mutex does not fail */
}

static void queue_unlock(struct kinf_queue **queue)
{
	(void)pthread_mutex_unlock(&(*queue)->lock);
}

/* Until the end of the scope. */
#define LOCKED(queue) \
	CLEANUP(queue_unlock) __attribute__((unused)) struct kinf_queue *locked_ = (queue); \
	queue_lock(locked_)

/* ---- items ---- */

static struct queue_item *item_find(struct kinf_queue *queue, const void *key, size_t size)
{
	return (struct queue_item *)queue_keys_find(&queue->keys, key, size);
}

static struct queue_item *item_make(struct kinf_queue *queue, const void *key, size_t size)
{
	struct queue_item *item = item_find(queue, key, size);

	return item ? item
		    : (struct queue_item *)queue_keys_add(&queue->keys, key, size, sizeof(*item));
}

static struct queue_item *item_of(struct queue_timer *timer)
{
	return (struct queue_item *)(void *)((char *)timer - offsetof(struct queue_item, timer));
}

static void item_drop_idle(struct kinf_queue *queue, struct queue_item *item)
{
	if (!item->dirty && !item->work_at && !item->timer.place)
		queue_keys_remove(&queue->keys, &item->key);
}

/* ---- the line ---- */

static int line_push(struct kinf_queue *queue, struct queue_item *item)
{
	if (queue->order.size) {
		int r = queue->order.push(queue->order.arg, item->key.text, item->key.size);

		if (r < 0)
			return r;
	} else {
		item->next = NULL;
		*queue->last = item;
		queue->last = &item->next;
	}
	queue->in_line++;
	return 0;
}

/* The text that was pushed lies behind its item (queue_keys_add). */
static struct queue_item *line_pop(struct kinf_queue *queue)
{
	struct queue_item *item = queue->first;

	queue->in_line--;
	if (queue->order.size)
		return (struct queue_item *)(void *)((char *)(uintptr_t)queue->order.pop(
							     queue->order.arg) -
						     sizeof(*item));
	queue->first = item->next;
	if (!queue->first)
		queue->last = &queue->first;
	return item;
}

/* ---- waking ---- */

static void wake_one(struct kinf_queue *queue)
{
	(void)pthread_cond_signal(queue->waiting ? &queue->ready : &queue->timer);
}

/* By a thread that stops looking: there may be a key for another one, or the time to be kept. */
static void pass_on(struct kinf_queue *queue)
{
	if (queue->in_line || (queue->delayed.n && !queue->timekeeper))
		wake_one(queue);
}

static void wake_all(struct kinf_queue *queue)
{
	(void)pthread_cond_broadcast(&queue->ready);
	(void)pthread_cond_broadcast(&queue->timer);
}

/* A stepped clock calls. */
static void clock_stepped(void *arg)
{
	LOCKED(arg);
	wake_all(locked_);
}

/* ---- metrics ---- */

static void observe(struct kinf_histogram *histogram, uint64_t ns)
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

/* ---- adding ---- */

/* The queue wants the item: what client-go's Add does. */
static int item_want(struct kinf_queue *queue, struct queue_item *item)
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
		wake_one(queue);
	return 0;
}

/* Takes into the line what was for later until now. */
static int queue_ripen(struct kinf_queue *queue)
{
	struct queue_timer *timer;

	while ((timer = queue_delayed_first(&queue->delayed)) &&
		timer->ready_at <= clock_read(queue->clock)) {
		int r = item_want(queue, item_of(timer));

		if (r < 0)
			return r;
		queue_delayed_remove(&queue->delayed, timer);
	}
	return 0;
}

static int add_now(struct kinf_queue *queue, const void *key, size_t size)
{
	if (queue->shutting_down)
		return END;
	struct queue_item *item = item_make(queue, key, size);
	if (!item)
		return err_set(-ENOMEM, "queue of %zu keys", queue->keys.n);
	int r = item_want(queue, item);
	item_drop_idle(queue, item);
	return r;
}

static int add_later(struct kinf_queue *queue, const void *key, size_t size, uint64_t delay_ns)
{
	uint64_t now = clock_read(queue->clock);
	struct queue_item *item = item_make(queue, key, size);

	if (!item)
		return err_set(-ENOMEM, "queue of %zu keys", queue->keys.n);
	int r = queue_delayed_add(
		&queue->delayed, &item->timer, delay_ns < NEVER - now ? now + delay_ns : NEVER);
	item_drop_idle(queue, item);
	if (r == 0 && queue_delayed_first(&queue->delayed) == &item->timer)
		(void)pthread_cond_signal(queue->timekeeper ? &queue->timer : &queue->ready);
	return r;
}

int kinf_queue_add(struct kinf_queue *queue, const void *key, size_t size)
{
	LOCKED(queue);
	return add_now(queue, key, size);
}

int kinf_queue_add_after(struct kinf_queue *queue, const void *key, size_t size, int64_t delay_ns)
{
	LOCKED(queue);
	if (queue->shutting_down)
		return END;
	queue->counts.retries++;
	if (delay_ns <= 0)
		return add_now(queue, key, size);
	return add_later(queue, key, size, (uint64_t)delay_ns);
}

/* ---- rate limits ---- */

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

/* ---- handing out ---- */

static void take_first(struct kinf_queue *queue, const char **ret_key, size_t *ret_size)
{
	struct queue_item *item = line_pop(queue);

	item->dirty = false;
	item->began_at = clock_read(queue->clock);
	item->work_next = queue->work;
	item->work_at = &queue->work;
	if (queue->work)
		queue->work->work_at = &item->work_next;
	queue->work = item;
	queue->counts.depth--;
	queue->counts.processing++;
	observe(&queue->counts.queue_duration, item->began_at - item->added_at);
	*ret_key = item->key.text;
	*ret_size = item->key.size;
}

/* Times of CLOCK_MONOTONIC. */
static void sleep_until(struct kinf_queue *queue, pthread_cond_t *condition, uint64_t deadline)
{
	struct timespec until = {.tv_sec = (time_t)(deadline / 1000000000),
		.tv_nsec = (long)(deadline % 1000000000)};

	if (deadline == NEVER)
		(void)pthread_cond_wait(condition, &queue->lock);
	else /* that the time is over is found by looking at the clock */
		(void)pthread_cond_timedwait(condition, &queue->lock, &until);
}

static void queue_wait(struct kinf_queue *queue, uint64_t deadline)
{
	const struct queue_timer *next = queue_delayed_first(&queue->delayed);

	if (!next || queue->timekeeper) {
		queue->waiting++;
		sleep_until(queue, &queue->ready, deadline);
		queue->waiting--;
		return;
	}
	/* The time of a stepped clock comes with clock_stepped(). */
	uint64_t ready_at = queue->clock ? NEVER : next->ready_at;
	queue->timekeeper = true;
	sleep_until(queue, &queue->timer, ready_at < deadline ? ready_at : deadline);
	queue->timekeeper = false;
}

static int get_one(
	struct kinf_queue *queue, uint64_t deadline, const char **ret_key, size_t *ret_size)
{
	for (;;) {
		int r = queue_ripen(queue);

		if (r < 0)
			return r;
		if (queue->in_line) {
			take_first(queue, ret_key, ret_size);
			return FOUND;
		}
		if (queue->shutting_down)
			return END;
		if (deadline != NEVER && proc_monotonic_ns() >= deadline)
			return AGAIN;
		queue_wait(queue, deadline);
	}
}

int kinf_queue_get(struct kinf_queue *queue, int timeout_ms, const char **ret_key, size_t *ret_size)
{
	uint64_t deadline =
		timeout_ms < 0 ? NEVER : proc_monotonic_ns() + (uint64_t)timeout_ms * 1000000;

	LOCKED(queue);
	int r = get_one(queue, deadline, ret_key, ret_size);
	pass_on(queue);
	return r;
}

int kinf_queue_done(struct kinf_queue *queue, const void *key, size_t size)
{
	LOCKED(queue);
	struct queue_item *item = item_find(queue, key, size);

	if (!item || !item->work_at)
		return NOT_FOUND;
	int r = item->dirty ? line_push(queue, item) : 0;
	if (r < 0)
		return r;
	observe(&queue->counts.work_duration, clock_read(queue->clock) - item->began_at);
	*item->work_at = item->work_next;
	if (item->work_next)
		item->work_next->work_at = item->work_at;
	item->work_at = NULL;
	queue->counts.processing--;
	if (item->dirty)
		wake_one(queue);
	if (!queue->work)
		(void)pthread_cond_broadcast(&queue->drained);
	item_drop_idle(queue, item);
	return 0;
}

int64_t kinf_queue_next_ms(struct kinf_queue *queue)
{
	LOCKED(queue);
	int r = queue_ripen(queue);
	const struct queue_timer *next = queue_delayed_first(&queue->delayed);

	/* An error, or the end, is had at once too. */
	if (r < 0 || queue->in_line || queue->shutting_down)
		return 0;
	if (!next)
		return -1;
	uint64_t now = clock_read(queue->clock); /* later than when it was not yet due */
	return next->ready_at > now ? (int64_t)((next->ready_at - now) / 1000000 + 1) : 0;
}

/* ---- what is there ---- */

/* What could not be taken into the line is said by kinf_queue_get. */
size_t kinf_queue_len(struct kinf_queue *queue)
{
	LOCKED(queue);
	(void)queue_ripen(queue);
	return queue->in_line;
}

/* Sums up the ages of the items that are worked on only now: client-go needs a ticker for that. */
int kinf_queue_metrics(struct kinf_queue *queue, struct kinf_queue_counts *ret_metrics)
{
	LOCKED(queue);
	if (ret_metrics->size != sizeof(*ret_metrics))
		return err_set(ERR_UNSUPPORTED,
			"kinf_queue_counts of %u bytes, this library knows %zu", ret_metrics->size,
			sizeof(*ret_metrics));
	(void)queue_ripen(queue);
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
		.delayed = queue->delayed.n,
	};
	for (const struct queue_item *item = queue->work; item; item = item->work_next) {
		double age = (double)(now - item->began_at) / 1e9;

		ret_metrics->unfinished_work_seconds += age;
		if (age > ret_metrics->longest_running_processor_seconds)
			ret_metrics->longest_running_processor_seconds = age;
	}
	return 0;
}

/* ---- the end ---- */

static void shut_down(struct kinf_queue *queue, bool drain)
{
	struct queue_timer *timer;

	(void)queue_ripen(queue); /* what was due before the end is handed out */
	queue->draining = drain;
	queue->shutting_down = true;
	while ((timer = queue_delayed_first(&queue->delayed))) {
		queue_delayed_remove(&queue->delayed, timer);
		item_drop_idle(queue, item_of(timer));
	}
	wake_all(queue);
	(void)pthread_cond_broadcast(&queue->drained);
}

void kinf_queue_shut_down(struct kinf_queue *queue)
{
	LOCKED(queue);
	shut_down(queue, false);
}

void kinf_queue_shut_down_with_drain(struct kinf_queue *queue)
{
	LOCKED(queue);
	shut_down(queue, true);
	while (queue->work && queue->draining)
		(void)pthread_cond_wait(&queue->drained, &queue->lock);
}

int kinf_queue_shutting_down(struct kinf_queue *queue)
{
	LOCKED(queue);
	return queue->shutting_down;
}

/* ---- making and freeing ---- */

static int check_options(const struct kinf_queue_options *options)
{
	if (options->size != sizeof(*options))
		return err_set(ERR_UNSUPPORTED,
			"kinf_queue_options of %u bytes, this library knows %zu", options->size,
			sizeof(*options));
	const struct kinf_queue_order *order = options->order;
	if (order && order->size != sizeof(*order))
		return err_set(ERR_UNSUPPORTED,
			"kinf_queue_order of %u bytes, this library knows %zu", order->size,
			sizeof(*order));
	if (order && (!order->push || !order->pop))
		return err_say(-EINVAL, "a kinf_queue_order without push or pop");
	return 0;
}

static void init_conditions(struct kinf_queue *queue)
{
	pthread_condattr_t monotonic;

	(void)pthread_condattr_init(&monotonic); /* none of these fails on Linux */
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_mutex_init(&queue->lock, NULL);
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
	int r = check_options(options);
	if (r < 0)
		return r;
	struct kinf_queue *queue = calloc(1, sizeof(*queue));
	if (!queue)
		return err_set(-ENOMEM, "queue");
	if (!options->limiter) {
		r = kinf_limiter_default_controller(options->clock, &queue->limiter);
		if (r < 0) {
			free(queue);
			return r;
		}
	} else {
		queue->limiter = options->limiter;
	}
	queue->magic = QUEUE_MAGIC;
	queue->clock = options->clock;
	if (options->order)
		queue->order = *options->order;
	queue->last = &queue->first;
	init_conditions(queue);
	queue->user = (struct clock_user){.wake = clock_stepped, .arg = queue};
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
	queue_keys_release(&q->keys);
	queue_delayed_release(&q->delayed);
	kinf_limiter_free(&q->limiter);
	(void)pthread_cond_destroy(&q->ready);
	(void)pthread_cond_destroy(&q->timer);
	(void)pthread_cond_destroy(&q->drained);
	(void)pthread_mutex_destroy(&q->lock);
	q->magic = 0;
	free(q);
}
