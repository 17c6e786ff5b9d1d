/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rate limiters, with client-go's names and rules (docs/informer.md 7.3). Every one is a set of the
 * public operations, so one of the caller's can stand wherever one of ours can.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "reader/handle.h"
#include "reader/queue/queue_internal.h"

#define LIMITER_MAGIC 0x6b6c696du
#define MILLISECOND   INT64_C(1000000)
#define SECOND        (1000 * MILLISECOND)

struct kinf_limiter {
	uint32_t magic;
	struct kinf_limiter_operations operations;
	void *arg;
	bool is_callers; /* its errors have no sentence of the library */
};

static int limiter_create(const struct kinf_limiter_operations *operations, void *arg,
	struct kinf_limiter **ret_limiter)
{
	struct kinf_limiter *limiter = malloc(sizeof(*limiter));

	if (!limiter)
		return err_set(-ENOMEM, "limiter");
	*limiter = (struct kinf_limiter){
		.magic = LIMITER_MAGIC, .operations = *operations, .arg = arg};
	*ret_limiter = limiter;
	return 0;
}

int kinf_limiter_new(const struct kinf_limiter_operations *operations, void *arg,
	struct kinf_limiter **ret_limiter)
{
	int r = kinf_check_size("kinf_limiter_operations", operations->size, sizeof(*operations));

	if (r == 0 && !operations->when)
		r = err_say(-EINVAL, "a limiter without when()");
	if (r == 0)
		r = limiter_create(operations, arg, ret_limiter);
	if (r == 0)
		(*ret_limiter)->is_callers = true;
	return kinf_result(NULL, r);
}

void kinf_limiter_free(struct kinf_limiter **limiter)
{
	if (!limiter || !*limiter)
		return;
	struct kinf_limiter *l = TAKE(*limiter);

	CHECK_OBJ(l, LIMITER_MAGIC);
	if (l->operations.release)
		l->operations.release(l->arg);
	l->magic = 0;
	free(l);
}

int kinf_limiter_when(struct kinf_limiter *limiter, const void *key, size_t size, int64_t *ret_ns)
{
	CHECK_OBJ(limiter, LIMITER_MAGIC);
	int r = limiter->operations.when(limiter->arg, key, size, ret_ns);

	if (r < 0 && limiter->is_callers)
		r = err_set(r, "when() of the limiter");
	return r < 0 ? kinf_result(NULL, r) : r;
}

void kinf_limiter_forget(struct kinf_limiter *limiter, const void *key, size_t size)
{
	CHECK_OBJ(limiter, LIMITER_MAGIC);
	if (limiter->operations.forget)
		limiter->operations.forget(limiter->arg, key, size);
}

uint64_t kinf_limiter_num_requeues(struct kinf_limiter *limiter, const void *key, size_t size)
{
	CHECK_OBJ(limiter, LIMITER_MAGIC);
	if (!limiter->operations.num_requeues)
		return 0;
	return limiter->operations.num_requeues(limiter->arg, key, size);
}

/* Makes a limiter of the library. On failure RELEASE frees ARG. */
static int limiter_make(const struct kinf_limiter_operations *operations, void *arg,
	struct kinf_limiter **ret_limiter)
{
	int r = limiter_create(operations, arg, ret_limiter);

	if (r < 0)
		operations->release(arg);
	return kinf_result(NULL, r);
}

/* ---- limiters with a count of failures for each key ------------------------ */

struct failures {
	struct queue_key key;
	uint64_t n;
};

struct per_key {
	pthread_mutex_t lock;
	struct queue_keys keys;    /* of struct failures */
	int64_t first_ns, last_ns; /* exponential: base and cap; fast-slow: fast and slow */
	uint64_t n_fast;
};

static int per_key_count(
	struct per_key *limiter, const void *key, size_t size, uint64_t *ret_before)
{
	struct queue_key *found;

	(void)pthread_mutex_lock(&limiter->lock);
	int r = queue_keys_get(&limiter->keys, key, size, sizeof(struct failures), &found);
	if (r == 0)
		*ret_before = ((struct failures *)found)->n++;
	(void)pthread_mutex_unlock(&limiter->lock);
	return r;
}

static void per_key_forget(void *arg, const void *key, size_t size)
{
	struct per_key *limiter = arg;

	(void)pthread_mutex_lock(&limiter->lock);
	struct queue_key *found = queue_keys_find(&limiter->keys, key, size);
	if (found)
		queue_keys_remove(&limiter->keys, found);
	(void)pthread_mutex_unlock(&limiter->lock);
}

static uint64_t per_key_requeues(void *arg, const void *key, size_t size)
{
	struct per_key *limiter = arg;

	(void)pthread_mutex_lock(&limiter->lock);
	const struct failures *failures =
		(const struct failures *)queue_keys_find(&limiter->keys, key, size);
	uint64_t n = failures ? failures->n : 0;
	(void)pthread_mutex_unlock(&limiter->lock);
	return n;
}

static void per_key_release(void *arg)
{
	struct per_key *limiter = arg;

	queue_keys_release(&limiter->keys);
	(void)pthread_mutex_destroy(&limiter->lock);
	free(limiter);
}

static int per_key_new(int (*when)(void *, const void *, size_t, int64_t *), struct per_key from,
	struct kinf_limiter **ret_limiter)
{
	const struct kinf_limiter_operations operations = {
		.size = sizeof(operations),
		.when = when,
		.forget = per_key_forget,
		.num_requeues = per_key_requeues,
		.release = per_key_release,
	};
	struct per_key *limiter = malloc(sizeof(*limiter));

	if (!limiter)
		return kinf_result(NULL, err_set(-ENOMEM, "limiter"));
	*limiter = from;
	int r = queue_keys_init(&limiter->keys);
	if (r < 0) {
		free(limiter);
		return kinf_result(NULL, r);
	}
	(void)pthread_mutex_init(&limiter->lock, NULL);
	return limiter_make(&operations, limiter, ret_limiter);
}

/* In floating point, as client-go's: the doubling can't overflow. */
static int exponential_when(void *arg, const void *key, size_t size, int64_t *ret_ns)
{
	struct per_key *limiter = arg;
	uint64_t before = 0;
	int r = per_key_count(limiter, key, size, &before);

	if (r < 0)
		return r;
	double delay = ldexp((double)limiter->first_ns, before < 2000 ? (int)before : 2000);
	*ret_ns = delay < (double)limiter->last_ns ? (int64_t)delay : limiter->last_ns;
	return 0;
}

int kinf_limiter_item_exponential_failure(
	int64_t base_ns, int64_t max_ns, struct kinf_limiter **ret_limiter)
{
	return per_key_new(exponential_when,
		(struct per_key){.first_ns = base_ns, .last_ns = max_ns}, ret_limiter);
}

static int fast_slow_when(void *arg, const void *key, size_t size, int64_t *ret_ns)
{
	struct per_key *limiter = arg;
	uint64_t before = 0;
	int r = per_key_count(limiter, key, size, &before);

	if (r == 0)
		*ret_ns = before < limiter->n_fast ? limiter->first_ns : limiter->last_ns;
	return r;
}

int kinf_limiter_item_fast_slow(
	int64_t fast_ns, int64_t slow_ns, uint64_t n_fast, struct kinf_limiter **ret_limiter)
{
	return per_key_new(fast_slow_when,
		(struct per_key){.first_ns = fast_ns, .last_ns = slow_ns, .n_fast = n_fast},
		ret_limiter);
}

int kinf_limiter_default_item_based(struct kinf_limiter **ret_limiter)
{
	return kinf_limiter_item_exponential_failure(MILLISECOND, 1000 * SECOND, ret_limiter);
}

/* ---- the bucket --------------------------------------------------------- */

struct token_bucket {
	pthread_mutex_t lock;
	struct kinf_clock *clock;
	double qps, burst;
	double tokens; /* below 0: promised to waiting keys */
	uint64_t filled_at;
};

/* Takes a token. If it is still to come, the key waits until then. */
static int token_bucket_when(void *arg, const void *key, size_t size, int64_t *ret_ns)
{
	struct token_bucket *bucket = arg;

	(void)key; /* the bucket is for all keys together */
	(void)size;
	(void)pthread_mutex_lock(&bucket->lock);
	uint64_t now = clock_read(bucket->clock);
	bucket->tokens += (double)(now - bucket->filled_at) / (double)SECOND * bucket->qps;
	if (bucket->tokens > bucket->burst)
		bucket->tokens = bucket->burst;
	bucket->filled_at = now;
	bucket->tokens -= 1;
	double delay = bucket->tokens < 0 ? -bucket->tokens / bucket->qps * (double)SECOND : 0;
	*ret_ns = delay < (double)INT64_MAX ? (int64_t)delay : INT64_MAX;
	(void)pthread_mutex_unlock(&bucket->lock);
	return 0;
}

static void token_bucket_release(void *arg)
{
	struct token_bucket *bucket = arg;

	(void)pthread_mutex_destroy(&bucket->lock);
	free(bucket);
}

int kinf_limiter_bucket(
	double qps, uint32_t burst, struct kinf_clock *clock, struct kinf_limiter **ret_limiter)
{
	const struct kinf_limiter_operations operations = {.size = sizeof(operations),
		.when = token_bucket_when,
		.release = token_bucket_release};

	if (!(qps > 0) || burst == 0)
		return kinf_result(NULL, err_say(-EINVAL,
						 "a bucket of %u tokens filled with %g a second: "
						 "both have to be more than 0",
						 burst, qps));
	struct token_bucket *bucket = malloc(sizeof(*bucket));
	if (!bucket)
		return kinf_result(NULL, err_set(-ENOMEM, "limiter"));
	*bucket = (struct token_bucket){.clock = clock,
		.qps = qps,
		.burst = burst,
		.tokens = burst,
		.filled_at = clock_read(clock)};
	(void)pthread_mutex_init(&bucket->lock, NULL);
	return limiter_make(&operations, bucket, ret_limiter);
}

/* ---- limiters made of others ------------------------------------------------- */

struct composite {
	int64_t max_ns;
	size_t n;
	struct kinf_limiter *of[];
};

static int max_of_when(void *arg, const void *key, size_t size, int64_t *ret_ns)
{
	struct composite *composite = arg;
	int64_t longest = 0;

	/* Each one is asked, because each one counts. */
	for (size_t i = 0; i < composite->n; i++) {
		int64_t delay = 0;
		int r = kinf_limiter_when(composite->of[i], key, size, &delay);

		if (r < 0)
			return r;
		if (delay > longest)
			longest = delay;
	}
	*ret_ns = longest;
	return 0;
}

static int with_max_wait_when(void *arg, const void *key, size_t size, int64_t *ret_ns)
{
	struct composite *composite = arg;
	int r = max_of_when(arg, key, size, ret_ns);

	if (r == 0 && *ret_ns > composite->max_ns)
		*ret_ns = composite->max_ns;
	return r;
}

static void composite_forget(void *arg, const void *key, size_t size)
{
	struct composite *composite = arg;

	for (size_t i = 0; i < composite->n; i++)
		kinf_limiter_forget(composite->of[i], key, size);
}

static uint64_t composite_requeues(void *arg, const void *key, size_t size)
{
	struct composite *composite = arg;
	uint64_t most = 0;

	for (size_t i = 0; i < composite->n; i++) {
		uint64_t n = kinf_limiter_num_requeues(composite->of[i], key, size);

		if (n > most)
			most = n;
	}
	return most;
}

static void composite_release(void *arg)
{
	struct composite *composite = arg;

	for (size_t i = 0; i < composite->n; i++)
		kinf_limiter_free(&composite->of[i]);
	free(composite);
}

static int composite_new(struct kinf_limiter *const *limiters, size_t n, const int64_t *max_ns,
	struct kinf_limiter **ret_limiter)
{
	const struct kinf_limiter_operations operations = {
		.size = sizeof(operations),
		.when = max_ns ? with_max_wait_when : max_of_when,
		.forget = composite_forget,
		.num_requeues = composite_requeues,
		.release = composite_release,
	};
	for (size_t i = 0; i < n; i++)
		if (!limiters[i])
			return kinf_result(
				NULL, err_say(-EINVAL,
					      "a limiter that asks others, one of which is NULL"));
	struct composite *composite =
		malloc(sizeof(*composite) + n * sizeof(struct kinf_limiter *));
	if (!composite)
		return kinf_result(NULL, err_set(-ENOMEM, "limiter"));
	*composite = (struct composite){.max_ns = max_ns ? *max_ns : 0};
	int r = limiter_make(&operations, composite, ret_limiter);
	for (size_t i = 0; r == 0 && i < n; i++)
		composite->of[composite->n++] = limiters[i];
	return r;
}

int kinf_limiter_max_of(
	struct kinf_limiter *const *limiters, size_t n, struct kinf_limiter **ret_limiter)
{
	return composite_new(limiters, n, NULL, ret_limiter);
}

int kinf_limiter_with_max_wait(
	struct kinf_limiter *limiter, int64_t max_ns, struct kinf_limiter **ret_limiter)
{
	return composite_new(&limiter, 1, &max_ns, ret_limiter);
}

int kinf_limiter_default_controller(struct kinf_clock *clock, struct kinf_limiter **ret_limiter)
{
	struct kinf_limiter *both[2] = {NULL, NULL};
	int r = kinf_limiter_item_exponential_failure(5 * MILLISECOND, 1000 * SECOND, &both[0]);

	if (r == 0)
		r = kinf_limiter_bucket(10, 100, clock, &both[1]);
	if (r == 0)
		r = kinf_limiter_max_of(both, 2, ret_limiter);
	if (r < 0) {
		kinf_limiter_free(&both[0]);
		kinf_limiter_free(&both[1]);
	}
	return r;
}
