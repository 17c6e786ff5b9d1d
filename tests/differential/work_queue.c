/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libkinf's side of the comparison of work queues: reads one operation a line from stdin, and
 * prints a line for each. README.md has the protocol.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reader/kinf.h"

#define PATIENCE_MS 30000
#define KEY_SIZE    64

static struct kinf_queue *queue;
static unsigned working;
static struct {
	bool begun;
	atomic_bool ended;
	pthread_t thread;
} drain;

static void need(bool good, const char *what)
{
	if (good)
		return;
	(void)fprintf(stderr, "work_queue: %s\n", what);
	exit(1);
}

static void pause_ms(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Waits for the drain if it MUST have ended, and says how it is. */
static const char *settled(bool must)
{
	if (!drain.begun)
		return "no drain";
	for (int i = 0; must && !drain.ended && i < PATIENCE_MS; i++)
		pause_ms();
	return drain.ended ? "drained" : must ? "hangs" : "draining";
}

static void *run_drain(void *arg)
{
	(void)arg;
	kinf_queue_shut_down_with_drain(queue);
	drain.ended = true;
	return NULL;
}

static const char *begin_drain(void)
{
	if (drain.begun || (kinf_queue_shutting_down(queue) && working))
		return "skipped"; /* nobody could tell when it has begun */
	drain.begun = true;
	drain.ended = false;
	need(pthread_create(&drain.thread, NULL, run_drain, NULL) == 0, "thread");
	while (!kinf_queue_shutting_down(queue))
		pause_ms();
	return settled(!working);
}

static const char *get(void)
{
	static char key[KEY_SIZE];
	const char *text;
	size_t size;
	int r = kinf_queue_get(queue, 0, &text, &size);

	need(r >= 0, "get");
	if (r != KINF_FOUND)
		return r == KINF_END ? "end" : "empty";
	working++;
	(void)snprintf(key, sizeof(key), "%.*s", (int)size, text);
	return key;
}

static void renew(void)
{
	if (queue) {
		kinf_queue_shut_down(queue);
		if (drain.begun)
			need(pthread_join(drain.thread, NULL) == 0, "join");
		kinf_queue_free(&queue);
	}
	drain.begun = false;
	working = 0;
	need(kinf_queue_new(NULL, &queue) == 0, "new");
}

int main(void)
{
	char line[128], word[16], key[KEY_SIZE];

	while (fgets(line, sizeof(line), stdin)) {
		*key = '\0';
		need(sscanf(line, "%15s %63s", word, key) >= 1, "an empty line");
		line[strcspn(line, "\n")] = '\0';
		size_t size = strlen(key);
		if (strcmp(word, "new") == 0) {
			renew();
			(void)printf("new\n");
			continue;
		}
		(void)printf("%s: ", line);
		if (strcmp(word, "add") == 0) {
			need(kinf_queue_add(queue, key, size) >= 0, "add");
			(void)printf("%zu\n", kinf_queue_len(queue));
		} else if (strcmp(word, "get") == 0) {
			(void)printf("%s\n", get());
		} else if (strcmp(word, "done") == 0) {
			int r = kinf_queue_done(queue, key, size);

			need(r >= 0, "done");
			if (r == KINF_NOT_FOUND) {
				(void)printf("not in work\n");
				continue;
			}
			working--;
			(void)printf("%zu %s\n", kinf_queue_len(queue), settled(!working));
		} else if (strcmp(word, "shutdown") == 0) {
			kinf_queue_shut_down(queue);
			(void)printf("%s\n", settled(true));
		} else if (strcmp(word, "drain") == 0) {
			(void)printf("%s\n", begin_drain());
		} else {
			(void)printf("%zu %s\n", kinf_queue_len(queue),
				kinf_queue_shutting_down(queue) ? "true" : "false");
		}
	}
	kinf_queue_free(&queue);
	return 0;
}
