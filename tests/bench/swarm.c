/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures an HTTP server of the API server's dialect, kinf-serve or kube-apiserver, by thousands
 * of clients in this one process. usage: swarm SERVER COMMAND ...
 *
 *	SERVER is PID PROTOCOL ADDRESS AUTHORIZATION
 *		PID: of the measured server (CPU time, memory)
 *		PROTOCOL: plain (ADDRESS is a Unix socket); tls, tickets (tls, with resumed
 *		sessions), http2 (ADDRESS is IPV4:PORT)
 *		AUTHORIZATION: the header's value, "" for none
 *	watch PATH N STALLED CHANGES store STORE RUNTIME PODS
 *	watch PATH N STALLED CHANGES patch ADDRESS AUTHORIZATION POD-PATH
 *		N watches, STALLED of them without reads; CHANGES changes one after the other,
 *		each seen by all. Changes are made in the journal of STORE, as kinf-reflector
 *		does, or by patches at an API server. The time of a change begins just before
 *		its commit, for a patch just before it is sent (`sent`) and when its answer
 *		comes (`answered`).
 *	list PATH ROUNDS
 *		whole lists, one after the other on one connection
 *	get FILE CLIENTS SECONDS
 *		objects at random; their paths are the lines of FILE
 *	stay PATH N SECONDS
 *		N watches, opened again when lost. Prints "ready" when all run, and "back" when
 *		all were lost and opened again; ends some seconds later.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/proc.h"
#include "tests/bench/measure.h"
#include "tests/bench/swarm_watch.h"

static struct swarm_run run;

/* ---- list --------------------------------------------------------------- */

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
	struct swarm_connection *c = swarm_run_connect(&run);
	swarm_get(c, &request, argv[0]);
	while (list.done < 1)
		swarm_turn(&run.swarm, 100);
	struct swarm_usage before = swarm_run_usage(&run);
	uint64_t peak = 0, private = 0;
	list.bytes = 0;
	measure_begin(&measure);
	for (uint64_t i = 0, turns = 0; i < rounds; i++) {
		swarm_get(c, &request, argv[0]);
		while (list.done < i + 2) {
			swarm_turn(&run.swarm, 100);
			if (++turns % 256)
				continue;
			struct swarm_usage now = swarm_run_usage(&run);
			peak = now.peak > peak ? now.peak : peak;
			private = now.private > private ? now.private : private;
		}
	}
	double wall = measure_wall(&measure);
	struct swarm_usage after = swarm_run_usage(&run);
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

/* ---- get ---------------------------------------------------------------- */

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
		if (!swarm_run_is_http2(&run) || i % SWARM_PER_HTTP2 == 0)
			c = swarm_run_connect(&run);
		requests[i].user = c;
		get_next(c, &requests[i]);
	}
	swarm_run_for(&run, SWARM_SECOND_NS);
	struct swarm_usage before = swarm_run_usage(&run);
	get.done = 0;
	measure_begin(&measure);
	swarm_run_for(&run, seconds * SWARM_SECOND_NS);
	double wall = measure_wall(&measure);
	struct swarm_usage after = swarm_run_usage(&run);
	result_begin();
	result_number("gets_per_s", (double)get.done / wall);
	result_number("gets_per_core_s", (double)get.done / (after.cpu_s - before.cpu_s));
	result_end();
}

/* ---- stay --------------------------------------------------------------- */

#define STAY_LINGER_NS (5 * SWARM_SECOND_NS) /* the caller measures the server meanwhile */

static struct {
	struct stayer {
		struct swarm_request request;
		struct swarm_connection *connection;
		uint64_t retry_ns; /* 0: it runs or waits for its answer */
		bool runs;
	} * all;
	uint64_t n, running, lost, lost_ns, first_ns, half_ns, back_ns, random;
	/* Since all were ready: attempts, those without an answer, and other answers than a
	 * watch. */
	uint64_t tries, cut, refused, gone;
	const char *path;
} stay;

static void stay_data(struct swarm_request *request, const uint8_t *bytes, size_t size)
{
	(void)request;
	if (memmem(bytes, size, "\"code\":410", 10))
		stay.gone++;
}

/* A watch runs when its head has come: its first bookmark comes half a minute later. */
static void stay_begun(struct swarm_request *request)
{
	struct stayer *s = request->user;

	if (request->status != 200)
		return;
	s->runs = true;
	stay.running++;
	if (stay.lost && !stay.first_ns)
		stay.first_ns = proc_monotonic_ns();
	if (stay.running == stay.n / 2 && stay.lost >= stay.n)
		stay.half_ns = proc_monotonic_ns();
	if (stay.running == stay.n && stay.lost >= stay.n)
		stay.back_ns = proc_monotonic_ns();
}

/* As client-go: after 0.8 s and a random part of as much again. */
static void stay_later(struct stayer *s)
{
	s->retry_ns = proc_monotonic_ns() + SWARM_SECOND_NS * 8 / 10 +
		      measure_random(&stay.random) % (SWARM_SECOND_NS * 8 / 10);
}

static void stay_ended(struct swarm_request *request, bool complete)
{
	struct stayer *s = request->user;

	if (s->runs) {
		s->runs = false;
		stay.running--;
		if (!stay.lost++)
			stay.lost_ns = proc_monotonic_ns();
	} else if (complete) {
		stay.refused++;
	} else {
		stay.cut++;
	}
	if (complete)
		swarm_close(s->connection);
	stay_later(s);
}

static void stay_try(struct stayer *s)
{
	stay.tries++;
	s->retry_ns = 0;
	s->connection = swarm_connect(&run.swarm);
	if (s->connection)
		swarm_get(s->connection, &s->request, stay.path);
	else
		stay_later(s);
}

/* Ends the program, and says how far the watches have come. */
static void stay_fail(const char *what)
{
	(void)fprintf(stderr,
		"bench: %s: %" PRIu64 " of %" PRIu64 " run; %" PRIu64 " were lost, %" PRIu64
		" attempts, %" PRIu64 " without an answer, %" PRIu64 " refused\n",
		what, stay.running, stay.n, stay.lost, stay.tries, stay.cut, stay.refused);
	exit(1);
}

static void stay_say(const char *word)
{
	must_true(puts(word) >= 0 && fflush(stdout) == 0, "stdout");
}

static void command_stay(int argc, char **argv)
{
	struct measure measure;

	must_true(argc == 3 && !swarm_run_is_http2(&run), "stay PATH N SECONDS, without http2");
	stay.path = argv[0];
	stay.n = must_number(argv[1], 1, "N");
	stay.random = 88172645463325252u;
	stay.all = calloc(stay.n, sizeof(*stay.all));
	must_true(stay.all != NULL, "no memory");
	struct swarm_usage before = swarm_run_usage(&run);
	for (uint64_t i = 0; i < stay.n; i++) {
		stay.all[i].request.user = &stay.all[i];
		stay_try(&stay.all[i]);
		swarm_turn(&run.swarm, 0);
	}
	uint64_t until = proc_monotonic_ns() + SWARM_PATIENCE_NS;
	while (stay.running < stay.n) {
		swarm_turn(&run.swarm, 100);
		if (proc_monotonic_ns() >= until || stay.lost || stay.refused)
			stay_fail("not all watches run");
	}
	swarm_run_for(&run, 3 * SWARM_SECOND_NS);
	struct swarm_usage idle = swarm_run_usage(&run);
	stay_say("ready");
	stay.tries = stay.cut = stay.refused = stay.gone = 0;
	run.swarm.connected = run.swarm.resumed = 0;
	measure_begin(&measure);
	until = proc_monotonic_ns() + must_number(argv[2], 1, "SECONDS") * SWARM_SECOND_NS;
	while (!stay.back_ns) {
		swarm_turn(&run.swarm, 10);
		uint64_t now = proc_monotonic_ns();
		for (uint64_t i = 0, at_once = 0; i < stay.n && at_once < 64; i++)
			if (stay.all[i].retry_ns && now >= stay.all[i].retry_ns) {
				stay_try(&stay.all[i]);
				at_once++;
			}
		if (now >= until)
			stay_fail("not all watches have come back");
	}
	double client_cpu_s = measure_cpu(&measure);
	stay_say("back");
	swarm_run_for(&run, STAY_LINGER_NS);
	result_begin();
	result_number("idle_watch_bytes",
		((double)idle.private - (double)before.private) / (double)stay.n);
	result_number("idle_all_bytes", (double)idle.private);
	result_number("first_back_s", (double)(stay.first_ns - stay.lost_ns) / 1e9);
	result_number("half_back_s", (double)(stay.half_ns - stay.lost_ns) / 1e9);
	result_number("back_s", (double)(stay.back_ns - stay.lost_ns) / 1e9);
	result_number("tries", (double)stay.tries);
	result_number("unanswered", (double)stay.cut);
	result_number("refused", (double)stay.refused);
	result_number("gone", (double)stay.gone);
	result_number("handshakes", run.swarm.connected);
	result_number("resumed", run.swarm.resumed);
	result_number("client_cpu_s", client_cpu_s);
	result_end();
}

/* ---- */

static void command_watch(int argc, char **argv)
{
	swarm_watch(&run, argc, argv);
}

static enum swarm_protocol protocol_of(const char *name)
{
	static const char *const names[] = {[SWARM_PLAIN] = "plain",
		[SWARM_TLS] = "tls",
		[SWARM_TICKETS] = "tickets",
		[SWARM_HTTP2] = "http2"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return (enum swarm_protocol)i;
	must_true(false, "PROTOCOL is plain, tls, tickets or http2");
	return SWARM_PLAIN;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*command)(int argc, char **argv);
		struct swarm_calls calls;
	} commands[] = {{"watch", command_watch, {NULL, swarm_watch_data, swarm_watch_ended}},
		{"list", command_list, {NULL, list_data, list_ended}},
		{"get", command_get, {NULL, get_data, get_ended}},
		{"stay", command_stay, {stay_begun, stay_data, stay_ended}}};
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
	/* OpenSSL writes without MSG_NOSIGNAL: a killed server must not end this process. */
	(void)sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	run.server = (pid_t)must_number(argv[1], 1, "PID");
	const struct swarm_target target = {
		protocol_of(argv[2]), argv[3], *argv[4] ? argv[4] : NULL};

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(argv[5], commands[i].name)) {
			swarm_init(&run.swarm, &target, commands[i].calls);
			commands[i].command(argc - 6, argv + 6);
			return 0;
		}
	must_true(false, "no such command");
	return 1;
}
