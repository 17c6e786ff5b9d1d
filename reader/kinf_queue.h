/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client-go's work queue: keys are handed out in the order of their addition, each once however
 * often it was added meanwhile, and never to two workers at once. Keys are byte strings; usually
 * "namespace/name" of an object. Workers loop:
 *
 *	while (kinf_queue_get(queue, -1, &key, &size) == KINF_FOUND) {
 *		if (reconcile(key, size) == 0)
 *			kinf_queue_forget(queue, key, size);
 *		else
 *			kinf_queue_add_rate_limited(queue, key, size);
 *		kinf_queue_done(queue, key, size);
 *	}
 *
 * Any number of threads may use one queue, one limiter, one clock. There is no thread inside: a
 * thread waiting in kinf_queue_get also keeps the time for delayed keys. Queues need no store. The
 * child of a fork may free a queue not in use by any thread, nothing else. kinf.h includes this
 * header.
 */
#ifndef KINF_QUEUE_H
#define KINF_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#ifndef KINF_API
#define KINF_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct kinf_queue;
struct kinf_limiter;
struct kinf_clock;

/* A clock for tests: it begins at 0 and stands still until it is stepped. It has to outlive its
 * queues and limiters. NULL instead of a clock is the machine's (CLOCK_MONOTONIC). */
KINF_API int kinf_clock_new(struct kinf_clock **ret_clock);
KINF_API void kinf_clock_step(struct kinf_clock *clock, uint64_t ns);
KINF_API uint64_t kinf_clock_now(const struct kinf_clock *clock);
KINF_API void kinf_clock_free(struct kinf_clock **clock);

/* The order of the keys; without one it is first in, first out. The functions are called under the
 * queue's lock and may call nothing of the queue. Keys belong to the queue and do not move until
 * they are popped. */
struct kinf_queue_order {
	uint32_t size; /* sizeof(struct kinf_queue_order) */
	uint32_t reserved;
	/* A key in line was added again. May be NULL. */
	void (*touch)(void *arg, const char *key, size_t size);
	/* 0, or an error, returned by the call putting the key in line: kinf_queue_add;
	 * kinf_queue_done, and the key is still being worked on; for a delayed key kinf_queue_get,
	 * after the keys in line have been handed out. */
	int (*push)(void *arg, const char *key, size_t size);
	/* Returns one of the pushed pointers. Only called if there is one. */
	const char *(*pop)(void *arg);
	void *arg;
};

struct kinf_queue_options {
	uint32_t size; /* sizeof(struct kinf_queue_options) */
	uint32_t reserved;
	/* of kinf_queue_add_rate_limited; the queue's from now on. NULL: as
	 * kinf_limiter_default_controller */
	struct kinf_limiter *limiter;
	struct kinf_clock *clock;             /* NULL: the machine's */
	const struct kinf_queue_order *order; /* copied; NULL: first in, first out */
};

/* OPTIONS NULL: all as by default. On failure the limiter stays the caller's. */
KINF_API int kinf_queue_new(
	const struct kinf_queue_options *options, struct kinf_queue **ret_queue);
/* Frees the queue and its keys. No other thread may be in a call of it. */
KINF_API void kinf_queue_free(struct kinf_queue **queue);

/* 0, also when KEY waits already (it comes once) or is being worked on (it comes again after
 * kinf_queue_done). KINF_END: the queue is shutting down, KEY is not taken. */
KINF_API int kinf_queue_add(struct kinf_queue *queue, const void *key, size_t size);
/* Adds KEY when DELAY_NS have passed, at once if it is not positive. The earliest one of several
 * delays of a key counts. A shutdown drops delayed keys. Returns the same as kinf_queue_add. */
KINF_API int kinf_queue_add_after(
	struct kinf_queue *queue, const void *key, size_t size, int64_t delay_ns);
/* Adds KEY after the delay of the queue's limiter. */
KINF_API int kinf_queue_add_rate_limited(struct kinf_queue *queue, const void *key, size_t size);
/* Makes the limiter forget the failures of KEY. kinf_queue_done is still necessary. */
KINF_API void kinf_queue_forget(struct kinf_queue *queue, const void *key, size_t size);
/* Returns how often KEY was added rate-limited since it was forgotten. */
KINF_API uint64_t kinf_queue_num_requeues(struct kinf_queue *queue, const void *key, size_t size);

/* Waits for a key up to TIMEOUT_MS (0: does not wait, negative: without end). KINF_FOUND;
 * KINF_AGAIN: the time is over; KINF_END: shut down, and all was handed out. *ret_key is
 * NUL-terminated (the NUL is not part of it) and borrowed until its kinf_queue_done. */
KINF_API int kinf_queue_get(
	struct kinf_queue *queue, int timeout_ms, const char **ret_key, size_t *ret_size);
/* Ends the work on KEY; if it was added meanwhile it stands in line again. KINF_NOT_FOUND: it is
 * not being worked on, nothing has changed. */
KINF_API int kinf_queue_done(struct kinf_queue *queue, const void *key, size_t size);
/* Returns the milliseconds, rounded up, until kinf_queue_get has something to return: 0: now,
 * -1: no key is delayed. For programs waiting in poll() and then calling kinf_queue_get with
 * timeout 0. */
KINF_API int64_t kinf_queue_next_ms(struct kinf_queue *queue);

/* Returns the number of keys in line, without those being worked on and the delayed ones. */
KINF_API size_t kinf_queue_len(struct kinf_queue *queue);

/* Refuses further keys. Keys in line are still handed out, then kinf_queue_get returns KINF_END. */
KINF_API void kinf_queue_shut_down(struct kinf_queue *queue);
/* The same, and waits until no key is worked on; not for keys in line, so other threads have to go
 * on calling kinf_queue_get: a key added while in work is handed out again. kinf_queue_shut_down
 * ends the waiting. */
KINF_API void kinf_queue_shut_down_with_drain(struct kinf_queue *queue);
KINF_API int kinf_queue_shutting_down(struct kinf_queue *queue);

#define KINF_HISTOGRAM_BUCKETS 10
/* In seconds. buckets[i] counts durations of up to 10^(i - 8) seconds, as client-go's, not
 * cumulative; longer ones are only in count and sum. */
struct kinf_histogram {
	uint64_t count;
	double sum;
	uint64_t buckets[KINF_HISTOGRAM_BUCKETS];
};

/* The workqueue_* metrics of a controller, at the time of the call. */
struct kinf_queue_counts {
	uint32_t size; /* sizeof(struct kinf_queue_counts) */
	uint32_t reserved;
	uint64_t depth;   /* accepted and not yet handed out */
	uint64_t adds;    /* accepted: new keys */
	uint64_t retries; /* calls adding for later, rate-limited ones included */
	struct kinf_histogram queue_duration; /* first add to get */
	struct kinf_histogram work_duration;  /* get to done */
	double unfinished_work_seconds;       /* ages of the keys in work, added up */
	double longest_running_processor_seconds;
	uint64_t processing; /* keys being worked on */
	uint64_t delayed;    /* keys for later */
};
KINF_API int kinf_queue_metrics(struct kinf_queue *queue, struct kinf_queue_counts *ret_metrics);

/* ---- rate limiters ------------------------------------------------------ */

/* A limiter of the caller. All functions but when() may be NULL. Several threads may call them
 * at once. */
struct kinf_limiter_operations {
	uint32_t size; /* sizeof(struct kinf_limiter_operations) */
	uint32_t reserved;
	/* 0 and how long KEY waits now, or an error. */
	int (*when)(void *arg, const void *key, size_t size, int64_t *ret_ns);
	void (*forget)(void *arg, const void *key, size_t size);
	uint64_t (*num_requeues)(void *arg, const void *key, size_t size);
	void (*release)(void *arg);
};
KINF_API int kinf_limiter_new(const struct kinf_limiter_operations *operations, void *arg,
	struct kinf_limiter **ret_limiter);
KINF_API void kinf_limiter_free(struct kinf_limiter **limiter);

/* BASE_NS, doubled with each failure of the key, up to MAX_NS. */
KINF_API int kinf_limiter_item_exponential_failure(
	int64_t base_ns, int64_t max_ns, struct kinf_limiter **ret_limiter);
/* FAST_NS for a key's first N_FAST times, then SLOW_NS. */
KINF_API int kinf_limiter_item_fast_slow(
	int64_t fast_ns, int64_t slow_ns, uint64_t n_fast, struct kinf_limiter **ret_limiter);
/* A bucket of BURST tokens, filled with QPS a second, for all keys together. -EINVAL when one is
 * not positive. */
KINF_API int kinf_limiter_bucket(
	double qps, uint32_t burst, struct kinf_clock *clock, struct kinf_limiter **ret_limiter);
/* Gives the longest delay and the highest count of N limiters. They belong to the new one; on
 * failure (-EINVAL: one is NULL) they stay the caller's. */
KINF_API int kinf_limiter_max_of(
	struct kinf_limiter *const *limiters, size_t n, struct kinf_limiter **ret_limiter);
/* Gives the delay of LIMITER, at most MAX_NS. LIMITER belongs to the new one, as above. */
KINF_API int kinf_limiter_with_max_wait(
	struct kinf_limiter *limiter, int64_t max_ns, struct kinf_limiter **ret_limiter);
/* Gives the longer delay of 5 ms to 1000 s for each key and of a bucket for all (10 a second,
 * 100 at once). */
KINF_API int kinf_limiter_default_controller(
	struct kinf_clock *clock, struct kinf_limiter **ret_limiter);
/* 1 ms to 1000 s for each key. */
KINF_API int kinf_limiter_default_item_based(struct kinf_limiter **ret_limiter);

KINF_API int kinf_limiter_when(
	struct kinf_limiter *limiter, const void *key, size_t size, int64_t *ret_ns);
KINF_API void kinf_limiter_forget(struct kinf_limiter *limiter, const void *key, size_t size);
KINF_API uint64_t kinf_limiter_num_requeues(
	struct kinf_limiter *limiter, const void *key, size_t size);

/* ---- the same for many -------------------------------------------------- */

typedef int kinf_piece_fn(void *arg, size_t piece);
/* Calls FN once for each of the pieces 0 to PIECES - 1, CHUNK of them at a time (0: 1), in up to
 * WORKERS threads, the calling one among them. The first non-zero result ends it: no further
 * piece is begun, and it is returned when all threads have ended. Without memory for as many
 * threads, fewer do it. */
KINF_API int kinf_parallelize(
	unsigned workers, size_t pieces, size_t chunk, kinf_piece_fn *fn, void *arg);

#ifdef __cplusplus
}
#endif

#endif
