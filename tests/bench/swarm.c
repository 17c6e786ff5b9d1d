/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures an HTTP server that speaks the API server's dialect, kinf-serve or kube-apiserver, by
 * thousands of clients in this one process. usage: swarm SERVER COMMAND ...
 *
 *	SERVER is PID PROTOCOL ADDRESS AUTHORIZATION
 *		PID: of the server, whose CPU time and memory are measured
 *		PROTOCOL: plain (ADDRESS is a Unix socket), tls, http2 (ADDRESS is IPV4:PORT)
 *		AUTHORIZATION: the value of that header, "" for none
 *	watch PATH N STALLED CHANGES store STORE RUNTIME PODS
 *	watch PATH N STALLED CHANGES patch ADDRESS AUTHORIZATION POD-PATH
 *		N watches, of which STALLED do not read; CHANGES changes one after the other, each
 *of which all must see. Changes are made in the journal of STORE, as kinf-reflector does, or by
 *patches at an API server. The time of a change begins just before it is committed, for a patch
 *just before it is sent (`sent`) and when its answer comes (`answered`). list PATH ROUNDS whole
 *lists, one after the other on one connection get FILE CLIENTS SECONDS objects whose paths are the
 *lines of FILE, at random stay PATH N SECONDS N watches that come back when they are lost. Prints
 *"ready" on stderr when all run, and ends when all were lost and have come back.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/proc.h"
#include "tests/bench/measure.h"
#include "tests/bench/source.h"
#include "tests/bench/swarm_client.h"

#define SECOND_NS   UINT64_C(1000000000)
#define PER_HTTP2   100 /* streams of a connection: as many as the API server allows */
#define PATIENCE_NS (60 * SECOND_NS)
#define MARK        "\"bench/mark\":\""
#define PAUSE_NS    (20 * UINT64_C(1000000)) /* between two changes */

/* ---- the server's process ---- */

struct swarm_usage {
	double cpu_s;
	uint64_t private, peak; /* bytes */
};

static struct swarm_usage usage_of(pid_t pid)
{
	struct swarm_usage usage = {0};
	char path[64], line[512];
	uint64_t value, user, kernel;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *file = fopen(path, "re");
	must_true(file != NULL, "the server's process has ended");
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "RssAnon: %" SCNu64, &value) == 1)
			usage.private = value * 1024;
		if (sscanf(line, "VmRSS: %" SCNu64, &value) == 1)
			usage.peak = value * 1024;
	}
	(void)fclose(file); /* only read */
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	must_true(file && fgets(line, sizeof(line), file), "the server's process has ended");
	(void)fclose(file);
	const char *rest = strrchr(line, ')');
	must_true(rest && sscanf(rest,
				  ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64
				  " %" SCNu64,
				  &user, &kernel) == 2,
		"/proc/PID/stat");
	usage.cpu_s = (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
	return usage;
}

/* ---- all commands ---- */

static struct swarm swarm;
static pid_t server;

static struct swarm_connection *connect_or_end(void)
{
	struct swarm_connection *c = swarm_connect(&swarm);

	must_true(c != NULL, "the server does not take connections");
	return c;
}

static void turn_for(uint64_t ns)
{
	for (uint64_t end = proc_monotonic_ns() + ns; proc_monotonic_ns() < end;)
		swarm_turn(&swarm, 10);
}

/* Finds the numbers of the marks in the bytes of a body; a mark may lie across two calls. */
static void find_marks(struct swarm_request *request, const uint8_t *bytes, size_t size,
	void (*found)(struct swarm_request *request, uint64_t number))
{
	uint8_t joint[sizeof(request->tail) * 2];
	size_t first = size < sizeof(request->tail) ? size : sizeof(request->tail), begin = 0;

	/* First the marks that begin in the tail of the call before, then those in BYTES: only
	 * whole ones, that end with a quote. */
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

/* ---- watch ---- */

struct watcher {
	struct swarm_request request;
	bool stalled, running;
	uint64_t seen, last;
};

static struct {
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

static void watch_data(struct swarm_request *request, const uint8_t *bytes, size_t size)
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

static void watch_ended(struct swarm_request *request, bool complete)
{
	must_true(request == &watch.patch && complete && request->status == 200,
		"a watch or a patch has failed");
	watch.answered_ns = proc_monotonic_ns();
}

static bool http2(void)
{
	return swarm.target.protocol == SWARM_HTTP2;
}

static void watch_open(const char *path)
{
	struct swarm_connection *c = NULL;

	watch.all = calloc(watch.n, sizeof(*watch.all));
	must_true(watch.all != NULL, "no memory");
	for (uint64_t i = 0; i < watch.n; i++) {
		struct watcher *w = &watch.all[i];

		w->request.user = w;
		if (!http2() || i % PER_HTTP2 == 0)
			c = connect_or_end();
		swarm_get(c, &w->request, path);
		if (i % 10 == 9)
			swarm_turn(&swarm, 0);
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
			swarm_turn(&swarm, 0);
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
	uint64_t until = proc_monotonic_ns() + PATIENCE_NS;

	while (watch.arrived < n) {
		swarm_turn(&swarm, 100);
		must_true(proc_monotonic_ns() < until, "not all watches have seen a change");
	}
}

static void watch_check_stalled(uint64_t changes)
{
	uint64_t until = proc_monotonic_ns() + PATIENCE_NS;

	for (uint64_t i = 0; i < watch.stalled; i++)
		swarm_pause(watch.all[i].request.connection, false);
	for (uint64_t i = 0; i < watch.stalled; i++)
		while (watch.all[i].last < changes) {
			swarm_turn(&swarm, 100);
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

	swarm_init(&changer->swarm, &target, (struct swarm_calls){watch_data, watch_ended});
	changer->connection = swarm_connect(&changer->swarm);
	must_true(changer->connection != NULL, "the API server does not take connections");
	changer->path = argv[3];
}

static void command_watch(int argc, char **argv)
{
	struct changer changer = {0};

	must_true(argc == 8, "watch PATH N STALLED CHANGES store|patch ...");
	watch.n = must_number(argv[1], 1, "N");
	watch.stalled = must_number(argv[2], 0, "STALLED");
	uint64_t changes = must_number(argv[3], 1, "CHANGES"), reading = watch.n - watch.stalled;
	uint64_t *sent = calloc(changes * 2, sizeof(*sent)), *answered = sent + changes;
	must_true(sent != NULL, "no memory");
	watch_open_changer(&changer, argv + 4);
	struct swarm_usage before = usage_of(server);
	watch_open(argv[0]);
	/* The first change reaches all: then each watch runs. */
	turn_for(3 * SECOND_NS);
	struct swarm_usage idle = usage_of(server);
	watch.wanted = 1;
	(void)change(&changer, 1);
	watch_wait_all(watch.n);
	for (uint64_t i = 0; i < watch.stalled; i++) {
		watch.all[i].stalled = true;
		swarm_pause(watch.all[i].request.connection, true);
	}
	turn_for(SECOND_NS);
	struct swarm_usage begin = usage_of(server);
	for (uint64_t i = 0; i < changes; i++) {
		watch.arrived = 0;
		watch.wanted = i + 2;
		uint64_t began = change(&changer, i + 2);
		watch_wait_all(reading);
		sent[i] = watch.last_ns - began;
		answered[i] =
			watch.last_ns > watch.answered_ns ? watch.last_ns - watch.answered_ns : 0;
		turn_for(PAUSE_NS);
	}
	struct swarm_usage end = usage_of(server);
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

/* ---- list ---- */

static struct {
	uint64_t bytes;
	unsigned done;
} list;

static void list_data(struct swarm_request *request, const uint8_t *bytes, size_t size)
{
	(void)bytes;
	must_true(request->status == 200, "a list was refused");
	list.bytes += size;
}

static void list_ended(struct swarm_request *request, bool complete)
{
	(void)request;
	must_true(complete, "a list was cut");
	list.done++;
}

static void command_list(int argc, char **argv)
{
	struct swarm_request request = {0};
	struct measure measure;

	must_true(argc == 2, "list PATH ROUNDS");
	uint64_t rounds = must_number(argv[1], 1, "ROUNDS");
	struct swarm_connection *c = connect_or_end();
	swarm_get(c, &request, argv[0]);
	while (list.done < 1)
		swarm_turn(&swarm, 100);
	struct swarm_usage before = usage_of(server);
	uint64_t peak = 0, private = 0;
	list.bytes = 0;
	measure_begin(&measure);
	for (uint64_t i = 0, turns = 0; i < rounds; i++) {
		swarm_get(c, &request, argv[0]);
		while (list.done < i + 2) {
			swarm_turn(&swarm, 100);
			if (++turns % 256)
				continue;
			struct swarm_usage now = usage_of(server);
			peak = now.peak > peak ? now.peak : peak;
			private = now.private > private ? now.private : private;
		}
	}
	double wall = measure_wall(&measure);
	struct swarm_usage after = usage_of(server);
	result_begin();
	result_number("bytes", (double)list.bytes / (double)rounds);
	result_number("mb_per_s", (double)list.bytes / 1e6 / wall);
	result_number("mb_per_core_s", (double)list.bytes / 1e6 / (after.cpu_s - before.cpu_s));
	result_number(
		"resident_growth_bytes", peak > before.peak ? (double)(peak - before.peak) : 0);
	result_number("private_growth_bytes",
		private > before.private ? (double)(private - before.private) : 0);
	result_end();
}

/* ---- get ---- */

static struct {
	char **paths;
	size_t n, room;
	uint64_t random, done;
	bool stop;
} get;

static void get_next(struct swarm_connection *c, struct swarm_request *request)
{
	swarm_get(c, request, get.paths[measure_random(&get.random) % get.n]);
}

static void get_data(struct swarm_request *request, const uint8_t *bytes, size_t size)
{
	(void)bytes;
	(void)size;
	must_true(request->status == 200, "a get was refused");
}

static void get_ended(struct swarm_request *request, bool complete)
{
	must_true(complete, "a get was cut");
	get.done++;
	if (!get.stop)
		get_next(request->user, request);
}

static void get_read_paths(const char *name)
{
	FILE *file = fopen(name, "re");
	char line[512];

	must_true(file != NULL, name);
	while (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		if (get.n == get.room) {
			get.room = get.room ? 2 * get.room : 1024;
			get.paths = reallocarray(get.paths, get.room, sizeof(*get.paths));
		}
		must_true(get.paths && (get.paths[get.n++] = strdup(line)), "no memory");
	}
	(void)fclose(file);
	must_true(get.n > 0, "no paths");
}

static void command_get(int argc, char **argv)
{
	struct measure measure;

	must_true(argc == 3, "get FILE CLIENTS SECONDS");
	get_read_paths(argv[0]);
	get.random = 88172645463325252u;
	uint64_t clients = must_number(argv[1], 1, "CLIENTS");
	uint64_t seconds = must_number(argv[2], 1, "SECONDS");
	struct swarm_request *requests = calloc(clients, sizeof(*requests));
	struct swarm_connection *c = NULL;

	must_true(requests != NULL, "no memory");
	for (uint64_t i = 0; i < clients; i++) {
		if (!http2() || i % PER_HTTP2 == 0)
			c = connect_or_end();
		requests[i].user = c;
		get_next(c, &requests[i]);
	}
	turn_for(SECOND_NS);
	struct swarm_usage before = usage_of(server);
	get.done = 0;
	measure_begin(&measure);
	turn_for(seconds * SECOND_NS);
	double wall = measure_wall(&measure);
	struct swarm_usage after = usage_of(server);
	result_begin();
	result_number("gets_per_s", (double)get.done / wall);
	result_number("gets_per_core_s", (double)get.done / (after.cpu_s - before.cpu_s));
	result_end();
}

/* ---- stay ---- */

static struct {
	struct stayer {
		struct swarm_request request;
		uint64_t retry_ns; /* 0: it runs or waits for its answer */
		bool runs;
	} * all;
	uint64_t n, running, lost, lost_ns, back_ns, gone, refused, random, tries;
	const char *path;
} stay;

static void stay_data(struct swarm_request *request, const uint8_t *bytes, size_t size)
{
	struct stayer *s = request->user;

	if (memmem(bytes, size, "\"code\":410", 10))
		stay.gone++;
	if (request->status != 200)
		stay.refused++;
	else if (!s->runs) {
		s->runs = true;
		if (++stay.running == stay.n && stay.lost >= stay.n)
			stay.back_ns = proc_monotonic_ns();
	}
}

static void stay_ended(struct swarm_request *request, bool complete)
{
	struct stayer *s = request->user;

	(void)complete;
	if (s->runs) {
		s->runs = false;
		stay.running--;
		if (!stay.lost++)
			stay.lost_ns = proc_monotonic_ns();
	}
	/* As client-go: after 0.8 s and a random part of as much again. */
	s->retry_ns = proc_monotonic_ns() + SECOND_NS * 8 / 10 +
		      measure_random(&stay.random) % (SECOND_NS * 8 / 10);
}

static void stay_try(struct stayer *s)
{
	struct swarm_connection *c = swarm_connect(&swarm);

	stay.tries++;
	s->retry_ns = 0;
	if (c)
		swarm_get(c, &s->request, stay.path);
	else
		s->retry_ns = proc_monotonic_ns() + SECOND_NS * 8 / 10 +
			      measure_random(&stay.random) % (SECOND_NS * 8 / 10);
}

static void command_stay(int argc, char **argv)
{
	must_true(argc == 3 && !http2(), "stay PATH N SECONDS, without http2");
	stay.path = argv[0];
	stay.n = must_number(argv[1], 1, "N");
	stay.random = 88172645463325252u;
	stay.all = calloc(stay.n, sizeof(*stay.all));
	must_true(stay.all != NULL, "no memory");
	struct swarm_usage before = usage_of(server);
	for (uint64_t i = 0; i < stay.n; i++) {
		stay.all[i].request.user = &stay.all[i];
		stay_try(&stay.all[i]);
		swarm_turn(&swarm, 0);
	}
	uint64_t until = proc_monotonic_ns() + PATIENCE_NS;
	while (stay.running < stay.n) {
		swarm_turn(&swarm, 100);
		must_true(proc_monotonic_ns() < until && stay.lost == 0, "not all watches run");
	}
	turn_for(2 * SECOND_NS);
	struct swarm_usage idle = usage_of(server);
	(void)fputs("ready\n", stderr);
	stay.tries = 0;
	until = proc_monotonic_ns() + must_number(argv[2], 1, "SECONDS") * SECOND_NS;
	while (!stay.back_ns) {
		swarm_turn(&swarm, 10);
		uint64_t now = proc_monotonic_ns();
		for (uint64_t i = 0, at_once = 0; i < stay.n && at_once < 64; i++)
			if (stay.all[i].retry_ns && now >= stay.all[i].retry_ns) {
				stay_try(&stay.all[i]);
				at_once++;
			}
		must_true(now < until, "not all watches have come back");
	}
	result_begin();
	result_number("idle_watch_bytes",
		((double)idle.private - (double)before.private) / (double)stay.n);
	result_number("idle_all_bytes", (double)idle.private);
	result_number("back_s", (double)(stay.back_ns - stay.lost_ns) / 1e9);
	result_number("gone", (double)stay.gone);
	result_number("refused", (double)stay.refused);
	result_number("tries", (double)stay.tries);
	result_end();
}

/* ---- */

static enum swarm_protocol protocol_of(const char *name)
{
	static const char *const names[] = {"plain", "tls", "http2"};

	for (unsigned i = 0; i < 3; i++)
		if (!strcmp(name, names[i]))
			return (enum swarm_protocol)i;
	must_true(false, "PROTOCOL is plain, tls or http2");
	return SWARM_PLAIN;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(int argc, char **argv);
		struct swarm_calls calls;
	} commands[] = {{"watch", command_watch, {watch_data, watch_ended}},
		{"list", command_list, {list_data, list_ended}},
		{"get", command_get, {get_data, get_ended}},
		{"stay", command_stay, {stay_data, stay_ended}}};
	struct rlimit limit;

	if (argc < 6) {
		(void)fputs(
			"usage: swarm PID PROTOCOL ADDRESS AUTHORIZATION COMMAND ...\n", stderr);
		return 2;
	}
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(
			RLIMIT_NOFILE, &limit); /* else a connection fails, with a sentence */
	}
	server = (pid_t)must_number(argv[1], 1, "PID");
	const struct swarm_target target = {
		protocol_of(argv[2]), argv[3], *argv[4] ? argv[4] : NULL};

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(argv[5], commands[i].name)) {
			swarm_init(&swarm, &target, commands[i].calls);
			commands[i].run(argc - 6, argv + 6);
			return 0;
		}
	must_true(false, "no such command");
	return 1;
}
