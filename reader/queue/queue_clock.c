/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/queue/queue_internal.h"

#include <errno.h>
#include <pthread.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "reader/handle.h"

#define CLOCK_MAGIC 0x6b636c6bu

struct kinf_clock {
	uint32_t magic;
	uint64_t now; /* atomic: read under locks of others */
	pthread_mutex_t lock;
	struct clock_user *users; /* under lock */
};

int kinf_clock_new(struct kinf_clock **ret_clock)
{
	struct kinf_clock *clock = calloc(1, sizeof(*clock));

	if (!clock)
		return kinf_result(NULL, err_set(-ENOMEM, "clock"));
	clock->magic = CLOCK_MAGIC;
	(void)pthread_mutex_init(&clock->lock, NULL); /* can't fail without attributes */
	*ret_clock = clock;
	return 0;
}

void kinf_clock_free(struct kinf_clock **clock)
{
	if (!clock || !*clock)
		return;
	struct kinf_clock *c = TAKE(*clock);

	CHECK_OBJ(c, CLOCK_MAGIC);
	REQUIRE(!c->users);
	(void)pthread_mutex_destroy(&c->lock);
	c->magic = 0;
	free(c);
}

void kinf_clock_step(struct kinf_clock *clock, uint64_t ns)
{
	CHECK_OBJ(clock, CLOCK_MAGIC);
	(void)__atomic_add_fetch(&clock->now, ns, __ATOMIC_SEQ_CST);
	(void)pthread_mutex_lock(&clock->lock);
	for (struct clock_user *user = clock->users; user; user = user->next)
		user->wake(user->arg);
	(void)pthread_mutex_unlock(&clock->lock);
}

uint64_t kinf_clock_now(const struct kinf_clock *clock)
{
	CHECK_OBJ(clock, CLOCK_MAGIC);
	return __atomic_load_n(&clock->now, __ATOMIC_SEQ_CST);
}

uint64_t clock_read(const struct kinf_clock *clock)
{
	return clock ? kinf_clock_now(clock) : proc_monotonic_ns();
}

void clock_subscribe(struct kinf_clock *clock, struct clock_user *user)
{
	if (!clock)
		return;
	CHECK_OBJ(clock, CLOCK_MAGIC);
	(void)pthread_mutex_lock(&clock->lock);
	user->next = clock->users;
	clock->users = user;
	(void)pthread_mutex_unlock(&clock->lock);
}

void clock_unsubscribe(struct kinf_clock *clock, struct clock_user *user)
{
	if (!clock)
		return;
	CHECK_OBJ(clock, CLOCK_MAGIC);
	(void)pthread_mutex_lock(&clock->lock);
	for (struct clock_user **at = &clock->users; *at; at = &(*at)->next)
		if (*at == user) {
			*at = user->next;
			break;
		}
	(void)pthread_mutex_unlock(&clock->lock);
}
