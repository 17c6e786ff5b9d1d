/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the time from the API server's bytes to the event at a follower, for the patches of
 * `baseline latency`: their annotation is "RUN NUMBER SENT", SENT in nanoseconds of the wall clock.
 * There are three figures: the times since the last bytes came into kinf-reflector and since they
 * were decrypted (stamp.h), and the time since the patch was sent. Follows until it has seen COUNT
 * patches; prints "ready" on stderr when it begins. With "handler" the event is the call of
 * on_update of an informer. usage: watchlag STORE STAMP-FILE COUNT [handler]
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/value/path.h"
#include "reader/kinf.h"
#include "store/read/follow.h"
#include "tests/bench/measure.h"
#include "tests/bench/stamp.h"

#define FEED       "pods"
#define ANNOTATION "metadata.annotations['baseline.example/ts']"
#define QUIET_S    60 /* fails after this time without a patch */

struct lag {
	struct path *annotation;
	const struct stamp *stamp;
	uint64_t *since_read, *since_decrypted, *since_sent;
	uint64_t n, count;
	uint64_t run, number; /* of the last patch seen */
};

static const struct stamp *map_stamp(const char *path)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

	must_true(fd >= 0, path);
	void *page = mmap(NULL, sizeof(struct stamp), PROT_READ, MAP_SHARED, fd, 0);
	must_true(page != MAP_FAILED, path);
	return page;
}

/* Handles a change of a pod. */
static void take(struct lag *lag, struct bytes body)
{
	uint64_t read = lag->stamp->read_ns, decrypted = lag->stamp->decrypted_ns;
	uint64_t now = proc_monotonic_ns(), wall = proc_realtime_ns();
	char text[96] = "", scratch[VALUE_SCRATCH];
	unsigned long long run, number, sent;
	struct bytes found;
	struct value value;

	if (lag->n == lag->count ||
		must(path_first(lag->annotation, body, &value), "body") != FOUND ||
		value_scalar_text(&value, scratch, &found) != FOUND)
		return;
	(void)snprintf(text, sizeof(text), "%.*s", BYTES_ARG(found));
	if (sscanf(text, "%llu %llu %llu", &run, &number, &sent) != 3)
		return; /* a warm-up patch */
	if (lag->n && (run != lag->run || number <= lag->number))
		return; /* an older annotation, still in the object */
	lag->run = run;
	lag->number = number;
	must_true(read > 0 && decrypted > 0 && read <= now && decrypted <= now,
		"no bytes were read: is preload.so in the reflector?");
	lag->since_read[lag->n] = now - read;
	lag->since_decrypted[lag->n] = now - decrypted;
	lag->since_sent[lag->n++] = wall - sent;
}

static void take_item(struct lag *lag, const struct follow_item *item)
{
	if (item->kind == FOLLOW_CHANGE && item->record.body.size)
		take(lag, item->record.body);
}

static uint32_t find_feed(struct store *store)
{
	struct snapshot_feed *feeds;
	struct snapshot *snapshot;
	size_t n;

	must_true(must(snapshot_open(store, &snapshot), "snapshot") == 0, "there is no index yet");
	must(snapshot_feeds(snapshot, FEED, &feeds, &n), "feeds");
	must_true(n == 1, "one feed of pods is needed");
	uint32_t feed = feeds[0].definition.id;
	free(feeds);
	snapshot_close(&snapshot);
	return feed;
}

static void follow_patches(struct lag *lag, struct store *store)
{
	struct follow_options from_now = {.no_initial = true};
	uint64_t last = proc_monotonic_ns();
	uint32_t feed = find_feed(store);
	struct follow_item item;
	struct follow *follow;

	must(follow_new(store, &feed, 1, &from_now, &follow), "follower");
	while (lag->n < lag->count) {
		int r = must(follow_next(follow, &item), "follower");
		uint64_t now = proc_monotonic_ns(), before = lag->n;

		must_true(now - last < QUIET_S * 1000000000ull, "no patches come");
		if (r == FOUND && item.kind == FOLLOW_SYNC)
			(void)fputs("ready\n", stderr);
		else if (r == FOUND)
			take_item(lag, &item);
		else if (r == AGAIN)
			must(follow_wait(follow, 1000), "follower");
		else
			must_true(false, "the feed is gone");
		if (lag->n != before)
			last = now;
	}
	follow_free(&follow);
}

/* ---- the informer ------------------------------------------------------- */

struct program {
	struct lag *lag;
	struct kinf_informer *informer;
};

static void on_sync(void *arg)
{
	(void)arg;
	(void)fputs("ready\n", stderr);
}

static void on_update(void *arg, const struct kinf_object *old, const struct kinf_object *object)
{
	struct program *program = arg;

	(void)old;
	take(program->lag, BYTES(object->body, object->body_size));
	if (program->lag->n == program->lag->count)
		kinf_informer_stop(program->informer);
}

static void handle_patches(struct lag *lag, const char *directory)
{
	struct program program = {.lag = lag};
	struct kinf_handler_options options = {.size = sizeof(options),
		.arg = &program,
		.on_sync = on_sync,
		.on_update = on_update};
	struct kinf *kinf;

	(void)alarm(QUIET_S + 30); /* ends the program if no patches come */
	must_true(kinf_open(directory, &kinf) == 0, kinf_error(kinf));
	must_true(kinf_informer_new(kinf, FEED, NULL, &program.informer) == 0, kinf_error(kinf));
	must_true(
		kinf_informer_add_handler(program.informer, &options, NULL) == 0, kinf_error(kinf));
	must_true(kinf_informer_run(program.informer, -1) == 0, kinf_error(kinf));
	kinf_informer_free(&program.informer);
	kinf_close(&kinf);
}

static void follow_in(struct lag *lag, const char *directory)
{
	struct store_options options = {0};
	struct store *store;

	must(store_open(directory, &options, &store), directory);
	follow_patches(lag, store);
	store_close(&store);
}

int main(int argc, char **argv)
{
	struct lag lag = {0};

	if (argc < 4) {
		(void)fputs("usage: watchlag STORE STAMP-FILE COUNT [handler]\n", stderr);
		return 2;
	}
	lag.count = must_number(argv[3], 1, "COUNT");
	lag.stamp = map_stamp(argv[2]);
	lag.since_read = calloc(lag.count, sizeof(*lag.since_read));
	lag.since_decrypted = calloc(lag.count, sizeof(*lag.since_decrypted));
	lag.since_sent = calloc(lag.count, sizeof(*lag.since_sent));
	must_true(lag.since_read && lag.since_decrypted && lag.since_sent, "no memory");
	must(path_parse(ANNOTATION, &lag.annotation), ANNOTATION);
	bool handler = argc > 4 && !strcmp(argv[4], "handler");
	(handler ? handle_patches : follow_in)(&lag, argv[1]);

	result_begin();
	result_samples(handler ? "read_to_handler" : "read_to_follower", lag.since_read, lag.n);
	result_samples(handler ? "decrypted_to_handler" : "decrypted_to_follower",
		lag.since_decrypted, lag.n);
	result_samples(handler ? "send_to_handler" : "send_to_follower", lag.since_sent, lag.n);
	result_end();
	path_free(&lag.annotation);
	free(lag.since_read);
	free(lag.since_decrypted);
	free(lag.since_sent);
	return 0;
}
