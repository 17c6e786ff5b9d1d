/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures many readers at once: COUNT processes open the store and get pods by key and by index
 * for SECONDS of wall time. The figure is the sum of their objects; on C cores it should be C times
 * one reader's. usage: crowd STORE N COUNT [SECONDS, default 2]
 */
#include <inttypes.h>
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
#include "tests/bench/pods.h"

#define FEED   "pods"
#define GETS   900 /* gets by key from one snapshot, and then */
#define VALUES 1   /* lists of a value of the node index */

/* Shared by all processes. */
struct crowd {
	_Atomic uint64_t ready, objects;
	_Atomic uint64_t begin_ns, end_ns; /* 0: not yet */
};

static void must_read(struct kinf *kinf, bool ok, const char *what)
{
	if (ok)
		return;
	(void)fprintf(stderr, "bench: %s: %s\n", what, kinf_error(kinf));
	exit(1);
}

static void get_one(
	struct kinf *kinf, struct kinf_snapshot *snapshot, const struct pods *pods, uint64_t number)
{
	char namespace_[POD_NAME_MAX], name[POD_NAME_MAX];
	struct kinf_object object;

	pod_namespace(pods, number, namespace_);
	pod_name(pods, number, name);
	must_read(kinf, kinf_get(snapshot, FEED, namespace_, name, &object) == KINF_FOUND, "get");
}

static uint64_t get_node(struct kinf *kinf, struct kinf_snapshot *snapshot, uint64_t number)
{
	struct kinf_object object;
	struct kinf_listing *list;
	uint64_t n = 0;
	char value[32];
	int r;

	(void)snprintf(value, sizeof(value), "node-%05" PRIu64, number);
	must_read(kinf, kinf_by_index(snapshot, FEED, "node", value, &list) == 0, "by index");
	while ((r = kinf_list_next(list, &object)) == KINF_FOUND)
		n++;
	must_read(kinf, r == KINF_END, "by index");
	kinf_list_close(&list);
	return n;
}

static uint64_t read_some(struct kinf *kinf, struct kinf_snapshot *snapshot,
	const struct pods *pods, uint64_t *random)
{
	uint64_t n = GETS;

	must_read(kinf, kinf_snapshot_renew(snapshot) == 0, "snapshot");
	for (unsigned i = 0; i < GETS; i++)
		get_one(kinf, snapshot, pods, measure_random(random) % pods->n);
	for (unsigned i = 0; i < VALUES; i++)
		n += get_node(kinf, snapshot, measure_random(random) % pods_nodes(pods));
	return n;
}

static void run_reader(
	const char *store, const struct pods *pods, struct crowd *crowd, uint64_t seed)
{
	struct kinf_snapshot *snapshot;
	uint64_t random = seed + 1, n = 0;
	struct kinf *kinf;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* only tidiness */
	must_read(kinf, kinf_open(store, &kinf) == 0, store);
	must_read(kinf, kinf_snapshot_open(kinf, &snapshot) == 0, "snapshot");
	(void)read_some(kinf, snapshot, pods, &random);
	crowd->ready++;
	while (!crowd->begin_ns)
		(void)nanosleep(
			&(struct timespec){0, 1000000}, NULL); /* a shorter pause does no harm */
	while (proc_monotonic_ns() < crowd->end_ns)
		n += read_some(kinf, snapshot, pods, &random);
	crowd->objects += n;
	kinf_snapshot_close(&snapshot);
	kinf_close(&kinf);
}

static void start(struct crowd *crowd, uint64_t count, uint64_t seconds)
{
	struct measure measure;

	measure_begin(&measure);
	while (crowd->ready < count) {
		must_true(measure_wall(&measure) < 60, "the readers do not come up");
		(void)nanosleep(&(struct timespec){0, 1000000}, NULL);
	}
	uint64_t now = proc_monotonic_ns();
	crowd->end_ns = now + seconds * 1000000000u;
	crowd->begin_ns = now;
}

int main(int argc, char **argv)
{
	if (argc < 4) {
		(void)fputs("usage: crowd STORE N COUNT [SECONDS]\n", stderr);
		return 2;
	}
	struct pods pods = {.n = must_number(argv[2], 2, "N")};
	uint64_t count = must_number(argv[3], 1, "COUNT");
	uint64_t seconds = argc > 4 ? must_number(argv[4], 1, "SECONDS") : 2;
	struct crowd *crowd = mmap(
		NULL, sizeof(*crowd), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	must_true(crowd != MAP_FAILED, "no memory");
	for (uint64_t i = 0; i < count; i++) {
		pid_t pid = fork();

		must_true(pid >= 0, "fork");
		if (pid == 0) {
			run_reader(argv[1], &pods, crowd, i);
			return 0;
		}
	}
	start(crowd, count, seconds);
	for (uint64_t i = 0; i < count; i++) {
		int status;

		must_true(wait(&status) > 0 && status == 0, "a reader has failed");
	}
	result_begin();
	result_number("readers", (double)count);
	result_number("objects_per_s", (double)crowd->objects / (double)seconds);
	result_end();
	return 0;
}
