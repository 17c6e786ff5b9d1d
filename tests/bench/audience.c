/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures many followers of one feed: FOLLOWERS processes, each with an informer of libkinf, while
 * a writer commits COUNT changes, RATE a second. Two figures of each change: the time from just
 * before its commit until the last handler had it, and the same for the first; and the CPU time of
 * all followers by events and followers, with the writer's beside it. usage: audience STORE RUNTIME
 * N COUNT RATE FOLLOWERS
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/proc.h"
#include "reader/kinf.h"
#include "tests/bench/measure.h"
#include "tests/bench/source.h"

#define UP_S 120 /* until all followers have their initial state */
/* uncounted changes: a follower without a doorbell tries again after 1 and 2 s */
#define WARM_S   4
#define PAUSE_NS (20 * SECOND_NS / 1000)

struct change {
	uint64_t committed_ns;
	_Atomic uint64_t first_ns, last_ns; /* at the first and the last handler */
};

/* Shared by all processes. */
struct audience {
	_Atomic uint64_t ready, done, cpu_ns;
	_Atomic uint64_t first; /* seq of the first change; 0: it is not known yet */
	uint64_t count, followers;
	struct change changes[];
};

struct program {
	struct audience *audience;
	struct kinf_informer *informer;
	struct measure measure;
	uint64_t seen;
};

static void pause_until(uint64_t ns)
{
	uint64_t now = proc_monotonic_ns();

	if (ns <= now)
		return;
	struct timespec pause = {(time_t)((ns - now) / SECOND_NS), (long)((ns - now) % SECOND_NS)};
	(void)nanosleep(&pause, NULL); /* a shorter pause does no harm */
}

/* ---- a follower --------------------------------------------------------- */

static void on_sync(void *arg)
{
	struct program *program = arg;

	program->audience->ready++;
}

static void pause_until_done(const struct audience *audience)
{
	while (audience->done < audience->followers)
		pause_until(proc_monotonic_ns() + PAUSE_NS);
}

static void on_update(void *arg, const struct kinf_object *old, const struct kinf_object *object)
{
	struct program *program = arg;
	struct audience *audience = program->audience;
	uint64_t now = proc_monotonic_ns(), first = audience->first, none = 0;

	must_true(old && old->body && object->body_size > 0, "an event without body");
	if (!first || object->event < first || object->event - first >= audience->count)
		return;
	if (!program->seen)
		measure_begin(&program->measure);
	struct change *change = &audience->changes[object->event - first];
	uint64_t last = change->last_ns;
	(void)atomic_compare_exchange_strong(&change->first_ns, &none, now);
	while (last < now && !atomic_compare_exchange_weak(&change->last_ns, &last, now))
		;
	if (++program->seen < audience->count)
		return;
	audience->cpu_ns += (uint64_t)(measure_cpu(&program->measure) * 1e9);
	audience->done++;
	pause_until_done(audience); /* ending takes CPU from the others' last event */
	kinf_informer_stop(program->informer);
}

static void follow(const char *directory, struct audience *audience)
{
	struct program program = {.audience = audience};
	struct kinf_handler_options options = {.size = sizeof(options),
		.arg = &program,
		.on_sync = on_sync,
		.on_update = on_update};
	struct kinf *kinf;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* only tidiness */
	must_true(kinf_open(directory, &kinf) == 0, "opening the store");
	must_true(kinf_informer_new(kinf, SOURCE_FEED, NULL, &program.informer) == 0,
		kinf_error(kinf));
	must_true(
		kinf_informer_add_handler(program.informer, &options, NULL) == 0, kinf_error(kinf));
	must_true(kinf_informer_run(program.informer, -1) == 0, kinf_error(kinf));
	kinf_informer_free(&program.informer);
	kinf_close(&kinf);
}

/* ---- the writer --------------------------------------------------------- */

static void wait_for(const _Atomic uint64_t *number, uint64_t most, const char *what)
{
	uint64_t until = proc_monotonic_ns() + UP_S * SECOND_NS;

	while (*number < most) {
		must_true(proc_monotonic_ns() < until, what);
		pause_until(proc_monotonic_ns() + SECOND_NS / 1000);
	}
}

/* AUDIENCE: NULL for uncounted changes. */
static void write_changes(struct source *source, const struct pods *pods, struct audience *audience,
	uint64_t count, uint64_t rate)
{
	uint64_t random = 99, version = source_next_version(source);
	uint64_t begin = proc_monotonic_ns();

	for (uint64_t i = 0; i < count; i++) {
		pause_until(begin + i * SECOND_NS / rate);
		source_change(source, pods, measure_random(&random) % pods->n, version + i, NULL);
		if (audience)
			audience->changes[i].committed_ns = proc_monotonic_ns();
		source_commit(source);
	}
}

static void print(struct audience *audience, uint64_t followers, double writer_cpu)
{
	uint64_t *first = calloc(audience->count, sizeof(*first));
	uint64_t *last = calloc(audience->count, sizeof(*last));

	must_true(first && last, "no memory");
	for (uint64_t i = 0; i < audience->count; i++) {
		const struct change *change = &audience->changes[i];

		first[i] = change->first_ns - change->committed_ns;
		last[i] = change->last_ns - change->committed_ns;
	}
	result_begin();
	result_samples("commit_to_first", first, audience->count);
	result_samples("commit_to_last", last, audience->count);
	result_number("follower_cpu_us_per_event",
		(double)audience->cpu_ns / 1e3 / (double)followers / (double)audience->count);
	result_number("writer_cpu_us_per_event", writer_cpu * 1e6 / (double)audience->count);
	result_end();
	free(first);
	free(last);
}

int main(int argc, char **argv)
{
	struct measure measure;
	struct source source;

	if (argc < 7) {
		(void)fputs("usage: audience STORE RUNTIME N COUNT RATE FOLLOWERS\n", stderr);
		return 2;
	}
	struct pods pods = {.n = must_number(argv[3], 1, "N")};
	uint64_t count = must_number(argv[4], 1, "COUNT"), rate = must_number(argv[5], 1, "RATE");
	uint64_t followers = must_number(argv[6], 1, "FOLLOWERS");
	size_t size = sizeof(struct audience) + count * sizeof(struct change);
	struct audience *audience =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	must_true(audience != MAP_FAILED, "no memory");
	audience->count = count;
	audience->followers = followers;
	/* Forks before it opens anything: LMDB's handles must not be used after a fork. */
	for (uint64_t i = 0; i < followers; i++) {
		pid_t pid = fork();

		must_true(pid >= 0, "fork");
		if (pid == 0) {
			follow(argv[1], audience);
			return 0;
		}
	}
	source_open(&source, argv[1], argv[2]);
	wait_for(&audience->ready, followers, "the followers do not come up");
	write_changes(&source, &pods, NULL, WARM_S * rate, rate);
	audience->first = source_last(&source) + 1;
	measure_begin(&measure);
	write_changes(&source, &pods, audience, count, rate);
	double writer_cpu = measure_cpu(&measure);
	wait_for(&audience->done, followers, "followers missed changes");
	source_close(&source);
	for (uint64_t i = 0; i < followers; i++)
		(void)waitpid(-1, NULL, 0);
	print(audience, followers, writer_cpu);
	return 0;
}
