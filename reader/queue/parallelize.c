/* SPDX-License-Identifier: Apache-2.0 */
/* client-go's ParallelizeUntil: threads take chunks of pieces until there are none. */
#include <pthread.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "reader/kinf.h"

struct parallel {
	kinf_piece_fn *fn;
	void *arg;
	size_t pieces, chunk;
	pthread_mutex_t lock;
	size_t next; /* the first free piece; under lock */
	int result;  /* the first non-zero one; under lock */
};

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

	for (;;) {
		(void)pthread_mutex_lock(&parallel->lock);
		size_t first = parallel->next, left = parallel->pieces - first;
		if (parallel->result == 0)
			parallel->next += left < parallel->chunk ? left : parallel->chunk;
		size_t end = parallel->next;
		(void)pthread_mutex_unlock(&parallel->lock);
		if (first == end)
			return NULL;
		for (size_t piece = first; piece < end && !parallel_ended(parallel, 0); piece++) {
			int r = parallel->fn(parallel->arg, piece);

			if (r != 0)
				(void)parallel_ended(parallel, r);
		}
	}
}

int kinf_parallelize(unsigned workers, size_t pieces, size_t chunk, kinf_piece_fn *fn, void *arg)
{
	struct parallel parallel = {.fn = fn,
		.arg = arg,
		.pieces = pieces,
		.chunk = chunk ? chunk : 1,
		.lock = PTHREAD_MUTEX_INITIALIZER};
	size_t chunks = pieces / parallel.chunk + (pieces % parallel.chunk != 0);
	/* Threads beside the calling one, at most one less than there are chunks. */
	size_t wanted = workers < chunks ? workers : chunks, n = 0;
	wanted -= wanted != 0;
	AUTO_FREE pthread_t *threads = wanted ? calloc(wanted, sizeof(*threads)) : NULL;

	while (threads && n < wanted &&
		pthread_create(&threads[n], NULL, parallel_work, &parallel) == 0)
		n++;
	(void)parallel_work(&parallel); /* all of it, if no thread could be made */
	while (n-- > 0)
		(void)pthread_join(threads[n], NULL);
	(void)pthread_mutex_destroy(&parallel.lock);
	return parallel.result;
}
