/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/catalog/since.h"

void since_init(struct since *since)
{
	(void)pthread_mutex_init(&since->lock, NULL);
}

void since_release(struct since *since)
{
	as_of_free(&since->as_of);
	(void)pthread_mutex_destroy(&since->lock);
}

int since_give(struct since *since, struct snapshot *snapshot, uint32_t feed, struct as_of *as_of)
{
	uint64_t seq = as_of_asked(as_of);
	int r = 0;

	(void)pthread_mutex_lock(&since->lock);
	if (since->as_of && as_of_asked(since->as_of) != seq)
		as_of_free(&since->as_of);
	if (!since->as_of)
		r = as_of_new(feed, seq, &since->as_of);
	if (r == 0) {
		r = as_of_renew(since->as_of, snapshot, SINCE_SLICE);
		as_of_rest(since->as_of);
	}
	if (r == 0)
		r = as_of_take(as_of, since->as_of);
	(void)pthread_mutex_unlock(&since->lock);
	return r;
}
