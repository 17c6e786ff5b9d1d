/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/swarm_watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/proc.h"
#include "tests/bench/measure.h"
#include "tests/bench/source.h"

#define MARK     "\"bench/mark\":\""
#define PAUSE_NS (20 * UINT64_C(1000000)) /* between two changes */

/* Finds the numbers of the marks in the bytes of a body; a mark may lie across two calls. */
static void find_marks(struct swarm_request *request, const uint8_t *bytes, size_t size,
	void (*found)(struct swarm_request *request, uint64_t number))
{
	uint8_t joint[sizeof(request->tail) * 2];
	size_t first = size < sizeof(request->tail) ? size : sizeof(request->tail), begin = 0;

	/* First the marks split between the previous call's tail and BYTES, then those in BYTES:
	 * only whole ones, up to the quote. */
	memcpy(joint, request->tail, request->tail_size);
	memcpy(joint + request->tail_size, bytes, first);
	const struct {
		const uint8_t *bytes;
		size_t size, from_max;
	} parts[] = {{joint, request->tail_size + first, request->tail_size}, {bytes, size, size}};
	for (size_t i = 0; i < 2; i++) {
		const uint8_t *p = parts[i].bytes, *end = p + parts[i].size;

		while ((p = memmem(p, (size_t)(end - p), MARK, strlen(MARK))) != NULL &&
			p < parts[i].bytes + parts[i].from_max) {
			const uint8_t *quote =
				memchr(p + strlen(MARK), '"', (size_t)(end - p) - strlen(MARK));

			if (!quote) {
				begin = i ? (size_t)(p - bytes) : begin;
				break;
			}
			found(request, strtoull((const char *)p + strlen(MARK), NULL, 10));
			p = quote;
			begin = i ? (size_t)(p - bytes) : begin;
		}
	}
	size_t keep =
		size - begin < sizeof(request->tail) - 1 ? size - begin : sizeof(request->tail) - 1;
	request->tail_size = keep;
	memcpy(request->tail, bytes + size - keep, keep);
}

struct watcher {
	struct swarm_request request;
	bool stalled, running;
	uint64_t seen, last;
};

static struct {
	struct swarm_run *run;
	struct watcher *all;
	uint64_t n, stalled, running, arrived, wanted, first_ns, last_ns;
	struct swarm_request patch;
	uint64_t answered_ns;
} watch;

static void watch_found(struct swarm_request *request, uint64_t number)
{
	struct watcher *w = request->user;

	must_true(number <= w->last + 1, "a watch has missed a change");
	if (number != w->last + 1)
		return; /* of the initial objects, or of an earlier run */
	w->last = number;
	w->seen++;
	if (w->stalled || number != watch.wanted)
		return;
	watch.last_ns = proc_monotonic_ns();
	if (!watch.arrived++)
		watch.first_ns = watch.last_ns;
}

void swarm_watch_data(struct swarm_request *request, const uint8_t *bytes, size_t size)
{
	struct watcher *w = request->user;

	if (request == &watch.patch)
		return;
	must_true(request->status == 200, "a watch was refused");
	if (!w->running) {
		w->running = true;
		watch.running++;
	}
	find_marks(request, bytes, size, watch_found);
}

void swarm_watch_ended(struct swarm_request *request, bool complete)
{
	must_true(request == &watch.patch && complete && request->status == 200,
		"a watch or a patch has failed");
	watch.answered_ns = proc_monotonic_ns();
}

static void watch_open(struct swarm_run *run, const char *path)
{
	struct swarm_connection *c = NULL;

	watch.all = calloc(watch.n, sizeof(*watch.all));
	must_true(watch.all != NULL, "no memory");
	for (uint64_t i = 0; i < watch.n; i++) {
		struct watcher *w = &watch.all[i];

		w->request.user = w;
		if (!swarm_run_is_http2(run) || i % SWARM_PER_HTTP2 == 0)
			c = swarm_run_connect(run);
		swarm_get(c, &w->request, path);
		if (i % 10 == 9)
			swarm_turn(&watch.run->swarm, 0);
	}
}

/* Makes changes in the store. */
struct changer {
	struct source source;
	struct pods pods;
	uint64_t random, version;
	/* Or at an API server. */
	struct swarm swarm;
	struct swarm_connection *connection;
	const char *path;
};

/* Makes change NUMBER. Returns when it began. */
static uint64_t change(struct changer *changer, uint64_t number)
{
	char mark[64];

	(void)snprintf(mark, sizeof(mark), "%" PRIu64, number);
	if (changer->path) {
		char body[128];

		(void)snprintf(body, sizeof(body),
			"{\"metadata\":{\"annotations\":{\"bench/mark\":"
			"\"%s\"}}}",
			mark);
		watch.answered_ns = 0;
		uint64_t now = proc_monotonic_ns();
		swarm_patch(changer->connection, &watch.patch, changer->path, body);
		while (!watch.answered_ns) {
			swarm_turn(&changer->swarm, 0);
			swarm_turn(&watch.run->swarm, 0);
		}
		return now;
	}
	source_change(&changer->source, &changer->pods,
		measure_random(&changer->random) % changer->pods.n, changer->version++, mark);
	uint64_t now = proc_monotonic_ns();
	source_commit(&changer->source);
	return now;
}

static void watch_wait_all(uint64_t n)
{
	uint64_t until = proc_monotonic_ns() + SWARM_PATIENCE_NS;

	while (watch.arrived < n) {
		swarm_turn(&watch.run->swarm, 100);
		must_true(proc_monotonic_ns() < until, "not all watches have seen a change");
	}
}

static void watch_check_stalled(uint64_t changes)
{
	uint64_t until = proc_monotonic_ns() + SWARM_PATIENCE_NS;

	for (uint64_t i = 0; i < watch.stalled; i++)
		swarm_pause(watch.all[i].request.connection, false);
	for (uint64_t i = 0; i < watch.stalled; i++)
		while (watch.all[i].last < changes) {
			swarm_turn(&watch.run->swarm, 100);
			must_true(proc_monotonic_ns() < until,
				"a stalled watch has not got everything");
		}
}

static void watch_open_changer(struct changer *changer, char **argv)
{
	changer->random = 88172645463325252u;
	if (!strcmp(argv[0], "store")) {
		changer->pods.n = must_number(argv[3], 1, "PODS");
		source_open(&changer->source, argv[1], argv[2]);
		changer->version = source_next_version(&changer->source);
		return;
	}
	const struct swarm_target target = {SWARM_TLS, argv[1], argv[2]};

	swarm_init(&changer->swarm, &target,
		(struct swarm_calls){NULL, swarm_watch_data, swarm_watch_ended});
	changer->connection = swarm_connect(&changer->swarm);
	must_true(changer->connection != NULL, "the API server does not take connections");
	changer->path = argv[3];
}

void swarm_watch(struct swarm_run *run, int argc, char **argv)
{
	struct changer changer = {0};

	watch.run = run;
	must_true(argc == 8, "watch PATH N STALLED CHANGES store|patch ...");
	watch.n = must_number(argv[1], 1, "N");
	watch.stalled = must_number(argv[2], 0, "STALLED");
	uint64_t changes = must_number(argv[3], 1, "CHANGES"), reading = watch.n - watch.stalled;
	uint64_t *sent = calloc(changes * 2, sizeof(*sent)), *answered = sent + changes;
	must_true(sent != NULL, "no memory");
	watch_open_changer(&changer, argv + 4);
	struct swarm_usage before = swarm_run_usage(run);
	watch_open(run, argv[0]);
	/* The first change reaches all: then each watch runs. */
	swarm_run_for(run, 3 * SWARM_SECOND_NS);
	struct swarm_usage idle = swarm_run_usage(run);
	watch.wanted = 1;
	(void)change(&changer, 1);
	watch_wait_all(watch.n);
	for (uint64_t i = 0; i < watch.stalled; i++) {
		watch.all[i].stalled = true;
		swarm_pause(watch.all[i].request.connection, true);
	}
	swarm_run_for(run, SWARM_SECOND_NS);
	struct swarm_usage begin = swarm_run_usage(run);
	for (uint64_t i = 0; i < changes; i++) {
		watch.arrived = 0;
		watch.wanted = i + 2;
		uint64_t began = change(&changer, i + 2);
		watch_wait_all(reading);
		sent[i] = watch.last_ns - began;
		answered[i] =
			watch.last_ns > watch.answered_ns ? watch.last_ns - watch.answered_ns : 0;
		swarm_run_for(run, PAUSE_NS);
	}
	struct swarm_usage end = swarm_run_usage(run);
	watch_check_stalled(changes + 1);

	result_begin();
	result_number("idle_watch_bytes",
		((double)idle.private - (double)before.private) / (double)watch.n);
	result_number("used_watch_bytes",
		((double)begin.private - (double)before.private) / (double)watch.n);
	result_number("grown_bytes", (double)end.private - (double)begin.private);
	result_number("cpu_us_per_event_and_watch",
		(end.cpu_s - begin.cpu_s) * 1e6 / (double)(changes * reading));
	if (changer.path)
		result_samples("answered_to_last", answered, changes);
	result_samples(changer.path ? "sent_to_last" : "commit_to_last", sent, changes);
	result_end();
}
