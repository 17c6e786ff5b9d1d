/* SPDX-License-Identifier: Apache-2.0 */
/* client-go's ParallelizeUntil: threads that take chunks of pieces until there are none. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "reader/kinf.h"

struct parallel {
	kinf_piece_fn *fn;
	void *arg;
	size_t pieces, chunk;
	pthread_mutex_t lock;
	size_t next; /* the first piece that no thread has taken; under lock */
	int result;  /* the first non-zero one; under lock */
};

/* Takes the next chunk. Returns 0 when there is none, or the work was ended. */
static int parallel_next_chunk(struct parallel *parallel, size_t *ret_first, size_t *ret_end)
{
	(void)pthread_mutex_lock(&parallel->lock);
	size_t left = parallel->pieces - parallel->next;
	int taken = left && parallel->result == 0;
	*ret_first = parallel->next;
	if (taken)
		parallel->next += left < parallel->chunk ? left : parallel->chunk;
	*ret_end = parallel->next;
	(void)pthread_mutex_unlock(&parallel->lock);
	return taken;
}

/* Ends the work if RESULT is not 0. Returns whether it is ended. */
static int parallel_ended(struct parallel *parallel, int result)
{
	(void)pthread_mutex_lock(&parallel->lock);
	if (parallel->result == 0)
		parallel->result = result;
	int is = parallel->result != 0;
	(void)pthread_mutex_unlock(&parallel->lock);
	return is;
}

static void *parallel_work(void *arg)
{
	struct parallel *parallel = arg;
	size_t first, end;

	while (parallel_next_chunk(parallel, &first, &end))
		for (size_t piece = first; piece < end && !parallel_ended(parallel, 0); piece++) {
			int r = parallel->fn(parallel->arg, piece);

			if (r != 0)
				(void)parallel_ended(parallel, r);
		}
	return NULL;
}

/* Returns the number of threads beside the calling one, at most one less than there are chunks. */
static size_t parallel_threads(unsigned workers, const struct parallel *parallel)
{
	size_t chunks =
		parallel->pieces / parallel->chunk + (parallel->pieces % parallel->chunk != 0);
	size_t wanted = workers < chunks ? workers : chunks;

	return wanted ? wanted - 1 : 0;
}

int kinf_parallelize(unsigned workers, size_t pieces, size_t chunk, kinf_piece_fn *fn, void *arg)
{
	struct parallel parallel = {.fn = fn,
		.arg = arg,
		.pieces = pieces,
		.chunk = chunk ? chunk : 1,
		.lock = PTHREAD_MUTEX_INITIALIZER};
	size_t wanted = parallel_threads(workers, &parallel), n = 0;
	AUTO_FREE pthread_t *threads = wanted ? calloc(wanted, sizeof(*threads)) : NULL;

	while (threads && n < wanted && pthread_create(&threads[n], NULL, parallel_work, &parallel) == 0)
		n++;
	(void)parallel_work(&parallel); /* all of it, if no thread could be made */
	while (n-- > 0)
		(void)pthread_join(threads[n], NULL);
	(void)pthread_mutex_destroy(&parallel.lock);
	return parallel.result;
}
