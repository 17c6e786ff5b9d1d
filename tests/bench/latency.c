/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the time from a commit of the journal until a follower has the event, through the
 * running processor. The writer takes the time just before its commit, so the figure contains the
 * commit, the ring and the wake-up. Follower and writer are two processes. With "handler" the
 * follower is an informer of libkinf, and the time ends with the call of its on_update. With "hold"
 * the program prints "ready" when the follower has its initial state, and begins when a line comes
 * on stdin. usage: latency STORE RUNTIME N COUNT RATE [handler [hold]]
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "common/err.h"
#include "common/proc.h"
#include "reader/kinf.h"
#include "store/read/follow.h"
#include "tests/bench/measure.h"
#include "tests/bench/source.h"

#define WAIT_SECONDS 120 /* the initial state of a million objects comes first */

/* Shared by the two processes. */
struct meeting {
	_Atomic uint64_t first; /* seq of the first change; 0: the writer is not ready */
	_Atomic uint32_t feed;
	_Atomic uint64_t
		seen; /* 0: the follower is not ready; else the number of its changes plus 1 */
	uint64_t count;
	uint64_t committed_ns[]; /* time of each change's commit; then for each the time at the
				    follower */
};

static void pause_ns(uint64_t ns)
{
	struct timespec pause = {(time_t)(ns / SECOND_NS), (long)(ns % SECOND_NS)};

	(void)nanosleep(&pause, NULL); /* a shorter pause does no harm */
}

static struct meeting *meet(uint64_t count)
{
	size_t size = sizeof(struct meeting) + 2 * count * sizeof(uint64_t);
	struct meeting *meeting =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	must_true(meeting != MAP_FAILED, "no memory");
	meeting->count = count;
	return meeting;
}

/* ---- the follower ------------------------------------------------------- */

static void take(struct meeting *meeting, uint64_t seq)
{
	uint64_t now = proc_monotonic_ns(), first = meeting->first;

	if (seq < first || seq - first >= meeting->count)
		return;
	meeting->committed_ns[meeting->count + seq - first] = now;
	meeting->seen++;
}

static void take_item(struct meeting *meeting, const struct follow_item *item)
{
	if (item->kind != FOLLOW_CHANGE)
		return;
	must_true(item->record.body.size > 0, "an event without body");
	take(meeting, item->seq);
}

static void wait_writer(const struct meeting *meeting)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* only tidiness */
	while (!meeting->first)
		pause_ns(SECOND_NS / 1000);
}

static void follow(const char *directory, struct meeting *meeting)
{
	struct store_options options = {0};
	struct follow_options from_now = {.no_initial = true};
	struct follow_item item;
	struct store *store;
	struct follow *follow;
	int r;

	wait_writer(meeting);
	must(store_open(directory, &options, &store), directory);
	uint32_t feed = meeting->feed;
	must(follow_new(store, &feed, 1, &from_now, &follow), "follower");
	while (meeting->seen <= meeting->count) {
		r = must(follow_next(follow, &item), "follower");
		if (r == FOUND && item.kind == FOLLOW_SYNC)
			meeting->seen = 1;
		else if (r == FOUND)
			take_item(meeting, &item);
		else if (r == AGAIN)
			must(follow_wait(follow, 1000), "follower");
	}
	follow_free(&follow);
	store_close(&store);
}

/* ---- the handler of an informer ----------------------------------------- */

struct program {
	struct meeting *meeting;
	struct kinf_informer *informer;
};

static void on_sync(void *arg)
{
	struct program *program = arg;

	program->meeting->seen = 1;
}

static void on_update(void *arg, const struct kinf_object *old, const struct kinf_object *object)
{
	struct program *program = arg;

	must_true(old && old->body && object->body_size > 0, "an event without body");
	take(program->meeting, object->event);
	if (program->meeting->seen > program->meeting->count)
		kinf_informer_stop(program->informer);
}

static void handle(const char *directory, struct meeting *meeting)
{
	struct program program = {.meeting = meeting};
	struct kinf_handler_options options = {.size = sizeof(options),
		.arg = &program,
		.on_sync = on_sync,
		.on_update = on_update};
	struct kinf *kinf;

	wait_writer(meeting);
	must_true(kinf_open(directory, &kinf) == 0, kinf_error(kinf));
	must_true(kinf_informer_new(kinf, SOURCE_FEED, NULL, &program.informer) == 0,
		kinf_error(kinf));
	must_true(
		kinf_informer_add_handler(program.informer, &options, NULL) == 0, kinf_error(kinf));
	must_true(kinf_informer_run(program.informer, -1) == 0, kinf_error(kinf));
	kinf_informer_free(&program.informer);
	kinf_close(&kinf);
}

/* ---- the writer --------------------------------------------------------- */

static void sleep_until(uint64_t ns)
{
	uint64_t now = proc_monotonic_ns();

	if (ns > now)
		pause_ns(ns - now);
}

static void write_changes(
	struct source *source, const struct pods *pods, struct meeting *meeting, uint64_t rate)
{
	uint64_t random = 99, version = source_next_version(source);
	uint64_t begin = proc_monotonic_ns();

	for (uint64_t i = 0; i < meeting->count; i++) {
		sleep_until(begin + i * SECOND_NS / rate);
		source_change(source, pods, measure_random(&random) % pods->n, version + i, NULL);
		meeting->committed_ns[i] = proc_monotonic_ns();
		source_commit(source);
	}
}

static void wait_seen(const struct meeting *meeting, uint64_t seen, const char *what)
{
	struct measure measure;

	measure_begin(&measure);
	while (meeting->seen < seen) {
		must_true(measure_wall(&measure) < WAIT_SECONDS, what);
		pause_ns(SECOND_NS / 1000);
	}
}

static void print(struct meeting *meeting, bool handler)
{
	uint64_t *seen = meeting->committed_ns + meeting->count;

	for (uint64_t i = 0; i < meeting->count; i++)
		seen[i] -= meeting->committed_ns[i];
	result_begin();
	result_samples(handler ? "commit_to_handler" : "commit_to_reader", seen, meeting->count);
	result_end();
}

int main(int argc, char **argv)
{
	struct source source;

	if (argc < 6) {
		(void)fputs("usage: latency STORE RUNTIME N COUNT RATE [handler [hold]]\n", stderr);
		return 2;
	}
	struct pods pods = {.n = must_number(argv[3], 1, "N")};
	struct meeting *meeting = meet(must_number(argv[4], 1, "COUNT"));
	uint64_t rate = must_number(argv[5], 1, "RATE");
	bool handler = argc > 6 && !strcmp(argv[6], "handler");

	/* Forks before it opens anything: LMDB's handles must not be used after a fork. */
	pid_t follower = fork();
	must_true(follower >= 0, "fork");
	if (follower == 0) {
		(handler ? handle : follow)(argv[1], meeting);
		return 0;
	}
	source_open(&source, argv[1], argv[2]);
	meeting->feed = source.feed.id;
	meeting->first = source_last(&source) + 1;
	wait_seen(meeting, 1, "the follower does not come up");
	if (argc > 7 && !strcmp(argv[7], "hold")) {
		(void)puts("ready");
		must_true(fflush(stdout) == 0 && getchar() != EOF, "stdin");
	}
	write_changes(&source, &pods, meeting, rate);
	wait_seen(meeting, meeting->count + 1, "the follower missed changes");
	source_close(&source);
	must_true(waitpid(follower, NULL, 0) == follower, "the follower");
	print(meeting, handler);
	return 0;
}
