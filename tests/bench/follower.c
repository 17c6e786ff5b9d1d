/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs COUNT informers of one store, each with a handler of all N pods. Then prints "ready" with
 * its anonymous memory before the first informer and now, and keeps the informers until stdin ends.
 * The caller measures the rest of its memory meanwhile. usage: follower STORE N COUNT
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "reader/kinf.h"
#include "tests/bench/measure.h"

#define FEED      "pods"
#define COUNT_MAX 256

struct follower {
	struct kinf_informer *informer;
	struct kinf_handler *handler;
	uint64_t told;
};

static void on_add(void *arg, const struct kinf_object *object, int initial)
{
	struct follower *follower = arg;

	(void)initial;
	follower->told += *(const uint8_t *)object->body != 0;
}

static void begin(struct kinf *kinf, struct follower *follower)
{
	struct kinf_handler_options options = {
		.size = sizeof(options), .arg = follower, .on_add = on_add};

	must_true(kinf_informer_new(kinf, FEED, NULL, &follower->informer) == 0, kinf_error(kinf));
	must_true(kinf_informer_add_handler(follower->informer, &options, &follower->handler) == 0,
		kinf_error(kinf));
	while (!kinf_handler_synced(follower->handler)) {
		struct pollfd fd = {.fd = kinf_informer_fd(follower->informer), .events = POLLIN};

		must_true(kinf_informer_dispatch(follower->informer, 0) >= 0, kinf_error(kinf));
		if (!kinf_handler_synced(follower->handler))
			must_true(
				poll(&fd, 1, 60000) == 1, "the handler is not synced in a minute");
	}
}

int main(int argc, char **argv)
{
	static struct follower followers[COUNT_MAX];
	struct kinf *kinf;

	if (argc < 4) {
		(void)fputs("usage: follower STORE N COUNT\n", stderr);
		return 2;
	}
	uint64_t n = must_number(argv[2], 1, "N"), count = must_number(argv[3], 1, "COUNT");
	must_true(count <= COUNT_MAX, "too many followers");
	uint64_t before = measure_private();
	must_true(kinf_open(argv[1], &kinf) == 0, kinf_error(kinf));
	for (uint64_t i = 0; i < count; i++) {
		begin(kinf, &followers[i]);
		must_true(followers[i].told == n, "a handler has not got all pods");
	}
	(void)printf("ready %" PRIu64 " %" PRIu64 "\n", before, measure_private());
	must_true(fflush(stdout) == 0, "stdout");
	while (getchar() != EOF)
		continue;
	for (uint64_t i = 0; i < count; i++)
		kinf_informer_free(&followers[i].informer);
	kinf_close(&kinf);
	return 0;
}
