/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forks while other threads are inside of every call of libkinf:
 *
 *	forks FEED COUNT        COUNT children; the store is $KINF_STORE
 *
 * In each child the parent's handles give KINF_FORKED, closing them does nothing bad, and a handle
 * of the child's own reads the feed. A child waiting for another thread's lock is ended by SIGALRM.
 * Prints the number of children, and of failed ones; exit 1 if one did.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "reader/kinf.h"

#define THREADS    4
#define PATIENCE_S 20

static const char *feed;
static struct kinf *shared;
static atomic_bool over;

static void must(bool good, const char *what)
{
	if (good)
		return;
	(void)fprintf(stderr, "forks: %s\n", what);
	_exit(1);
}

/* Lists the feed by a new snapshot. Returns the number of objects. */
static size_t read_feed(struct kinf *kinf)
{
	struct kinf_query query = {.size = sizeof(query), .feed = feed};
	struct kinf_snapshot *snapshot = NULL;
	struct kinf_listing *list = NULL;
	struct kinf_object object;
	size_t n = 0;

	must(kinf_snapshot_open(kinf, &snapshot) == 0, "a snapshot");
	must(kinf_list(snapshot, &query, &list) == 0, "a list");
	while (kinf_list_next(list, &object) == KINF_FOUND)
		n++;
	kinf_list_close(&list);
	kinf_snapshot_close(&snapshot);
	return n;
}

/* Calls everything again and again: on the shared handle, and on one opened and closed each
 * time. */
static void *busy(void *arg)
{
	const char *feeds[] = {feed};

	for (size_t turn = (size_t)arg; !over; turn++) {
		struct kinf_informer_options options = {.size = sizeof(options)};
		struct kinf_handler_options none = {.size = sizeof(none)};
		struct kinf_informer *informer = NULL;
		struct kinf_handler *handler;
		struct kinf *own = NULL;

		(void)read_feed(shared);
		if (turn % 4 == 0) {
			must(kinf_open(NULL, &own) == 0, "opening");
			(void)read_feed(own);
			kinf_close(&own);
		}
		if (turn % 4 == 1)
			must(kinf_wait_synced(shared, feeds, 1, 100) == 0, "waiting");
		if (turn % 4 == 2 && kinf_informer_new(shared, feed, &options, &informer) == 0) {
			must(kinf_informer_add_handler(informer, &none, &handler) == 0,
				"a handler");
			for (int i = 0; i < 20; i++)
				(void)kinf_informer_dispatch(informer, 16);
			kinf_informer_free(&informer);
		}
	}
	return NULL;
}

static void child(void)
{
	struct kinf_snapshot *snapshot = NULL;
	struct kinf *own = NULL;

	(void)alarm(PATIENCE_S);
	must(kinf_snapshot_open(shared, &snapshot) == KINF_FORKED,
		"the parent's handle is not refused");
	must(strlen(kinf_error(shared)) > 0, "refused without a sentence");
	kinf_close(&shared);
	must(kinf_open(NULL, &own) == 0, "the child can't open the store");
	must(read_feed(own) > 0, "the child reads nothing");
	kinf_close(&own);
	_exit(0);
}

int main(int argc, char **argv)
{
	unsigned long count = argc == 3 ? strtoul(argv[2], NULL, 10) : 0, failed = 0;
	pthread_t threads[THREADS];

	if (!count) {
		(void)fprintf(stderr, "usage: forks FEED COUNT\n");
		return 2;
	}
	feed = argv[1];
	must(kinf_open(NULL, &shared) == 0, "opening");
	for (size_t i = 0; i < THREADS; i++)
		must(pthread_create(&threads[i], NULL, busy, (void *)i) == 0, "a thread");
	for (unsigned long i = 0; i < count; i++) {
		int status = 0;

		(void)nanosleep(&(struct timespec){.tv_nsec = (long)(i % 50) * 40000}, NULL);
		pid_t pid = fork();
		if (pid == 0)
			child();
		must(pid > 0 && waitpid(pid, &status, 0) == pid, "forking");
		if (status) {
			failed++;
			(void)printf("FAULT child %lu: %s %d\n", i,
				WIFSIGNALED(status) ? "signal" : "exit",
				WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		}
	}
	over = true;
	for (size_t i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	kinf_close(&shared);
	(void)printf("%lu children, %lu failed\n", count, failed);
	return failed ? 1 : 0;
}
