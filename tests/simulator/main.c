/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf-simulator: a Kubernetes API server with its cluster in memory, and faults at a test's
 * request. Prints its addresses, then serves until SIGTERM or SIGINT.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "tests/simulator/control.h"
#include "tests/simulator/memory.h"

static const char usage[] =
	"usage: kinf-simulator [--port N] [--control-port N] [--pods N] [--churn RATE]\n"
	"                      [--tls-cert FILE --tls-key FILE] [--token TEXT] [--seed N]\n"
	"                      [--die-with-parent]\n";

struct options {
	unsigned port, control_port, seed;
	unsigned long pods;
	double churn;
	const char *certificate, *key, *token;
	bool die_with_parent;
};

static int simulator_read_options(int argc, char **argv, struct options *ret_options)
{
	static const struct option table[] = {
		{"port", required_argument, NULL, 'p'},
		{"control-port", required_argument, NULL, 'c'},
		{"pods", required_argument, NULL, 'n'},
		{"churn", required_argument, NULL, 'r'},
		{"tls-cert", required_argument, NULL, 'C'},
		{"tls-key", required_argument, NULL, 'K'},
		{"token", required_argument, NULL, 't'},
		{"seed", required_argument, NULL, 's'},
		{"die-with-parent", no_argument, NULL, 'd'},
		{NULL, 0, NULL, 0},
	};
	struct options options = {.seed = 1};
	int option, good = 1;

	while (good == 1 && (option = getopt_long(argc, argv, "", table, NULL)) >= 0) {
		switch (option) {
		case 'p':
			good = sscanf(optarg, "%5u", &options.port);
			break;
		case 'c':
			good = sscanf(optarg, "%5u", &options.control_port);
			break;
		case 'n':
			good = sscanf(optarg, "%lu", &options.pods);
			break;
		case 'r':
			good = sscanf(optarg, "%lf", &options.churn);
			break;
		case 's':
			good = sscanf(optarg, "%u", &options.seed);
			break;
		case 'C':
			options.certificate = optarg;
			break;
		case 'K':
			options.key = optarg;
			break;
		case 't':
			options.token = optarg;
			break;
		case 'd':
			options.die_with_parent = true;
			break;
		default:
			good = 0;
		}
	}
	*ret_options = options;
	return good == 1 && optind == argc && !options.certificate == !options.key ? 0 : -EINVAL;
}

/* Reads a file's text, to be freed by the caller; NULL if PATH is NULL. */
static int simulator_read_file(const char *path, char **ret_text)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	FILE *file;
	char block[4096];
	size_t n;

	*ret_text = NULL;
	if (!path)
		return 0;
	file = fopen(path, "re");
	if (!file)
		return err_set(-errno, "opening '%s'", path);
	while ((n = fread(block, 1, sizeof(block), file)) > 0)
		buf_put(&text, block, n);
	(void)fclose(file); /* only read */
	*ret_text = memory_text(buf_bytes(&text));
	return 0;
}

static void simulator_wake(void *arg)
{
	struct api *api = arg;

	world_wake(api->world);
}

static void simulator_fill(struct control *control, const struct options *options)
{
	const struct generate_options pods = {
		.namespaces = 10, .prefix = "pod-", .seed = options->seed, .short_names = true};
	const struct generate_options others = {
		.namespaces = 10, .prefix = "node-", .seed = options->seed, .short_names = true};
	struct world *world = control->api->world;
	struct collection *collection = world_named(world, "pods");

	pthread_mutex_lock(&world->lock);
	world->short_names = options->pods > 0;
	if (options->pods)
		churn_create(world, world_named(world, "nodes"), 0, 100, &others);
	churn_create(world, collection, 0, options->pods, &pods);
	pthread_mutex_unlock(&world->lock);
	churn_set(control->churn, collection, options->churn, 20);
}

/* A simulator. */
struct simulator {
	char *certificate, *key;
	struct world *world;
	struct api api;
	struct control control;
	struct http_server *control_server;
};

static int simulator_open_servers(struct simulator *simulator, const struct options *options)
{
	struct http_config api = {.port = (uint16_t)options->port,
		.certificate = simulator->certificate,
		.key = simulator->key,
		.handler = api_handle,
		.dropped = simulator_wake,
		.arg = &simulator->api};
	struct http_config control = {.port = (uint16_t)options->control_port,
		.handler = control_handle,
		.arg = &simulator->control};
	int r = http_server_open(&api, &simulator->control.server);

	if (r < 0)
		return err_add(r, "API");
	r = http_server_open(&control, &simulator->control_server);
	return r < 0 ? err_add(r, "control port") : 0;
}

static int simulator_open(struct simulator *simulator, const struct options *options)
{
	int r = simulator_read_file(options->certificate, &simulator->certificate);

	if (r == 0)
		r = simulator_read_file(options->key, &simulator->key);
	if (r < 0)
		return r;
	simulator->world = world_new();
	simulator->world->seed = options->seed;
	simulator->api = (struct api){.world = simulator->world,
		.faults = faults_new(simulator->world),
		.log = requestlog_new(),
		.token = options->token};
	control_init(&simulator->control, &simulator->api, churn_new(simulator->world));
	simulator_fill(&simulator->control, options);
	return simulator_open_servers(simulator, options);
}

/* Closes the servers first: their threads use the parts freed after them. */
static void simulator_close(struct simulator *simulator)
{
	http_server_close(&simulator->control_server);
	if (simulator->control.api)
		control_release(&simulator->control);
	http_server_close(&simulator->control.server);
	churn_free(&simulator->control.churn);
	requestlog_free(&simulator->api.log);
	faults_free(&simulator->api.faults);
	world_free(&simulator->world);
	free(simulator->certificate);
	free(simulator->key);
}

static int simulator_serve(const struct options *options, const sigset_t *signals)
{
	CLEANUP(simulator_close) struct simulator simulator = {0};
	int signal_number, r = simulator_open(&simulator, options);

	if (r < 0)
		return r;
	printf("listening on 127.0.0.1:%u\ncontrol on 127.0.0.1:%u\n",
		http_server_port(simulator.control.server),
		http_server_port(simulator.control_server));
	(void)fflush(stdout);                   /* the reader may have closed the pipe */
	(void)sigwait(signals, &signal_number); /* cannot fail: the set is valid */
	return 0;
}

int main(int argc, char **argv)
{
	struct options options;
	sigset_t signals;

	if (simulator_read_options(argc, argv, &options) < 0) {
		fputs(usage, stderr);
		return 2;
	}
	srandom(options.seed);
	if (options.die_with_parent)
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* ends the simulator when pytest crashes */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);

	struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(SIGPIPE, &ignore, NULL);

	int r = simulator_serve(&options, &signals);

	if (r < 0)
		fprintf(stderr, "kinf-simulator: %s\n", err_text(r));
	return r < 0;
}
