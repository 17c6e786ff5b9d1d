/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the API server's bytes to the event at a follower, for the patches that `baseline latency`
 * makes: their annotation holds "RUN NUMBER SENT", SENT in nanoseconds of the wall clock. Two
 * figures: since the last bytes came into kinf-reflector (stamp.h), and since the patch was sent.
 * Follows until COUNT patches were seen, and says "ready" on stderr when it begins.
 * usage: watchlag STORE STAMP-FILE COUNT
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/path.h"
#include "common/proc.h"
#include "store/follow.h"
#include "tests/bench/measure.h"
#include "tests/bench/stamp.h"

#define FEED       "pods"
#define ANNOTATION "metadata.annotations['baseline.example/ts']"
#define QUIET_S    60 /* without a patch: something is wrong */

struct lag {
	struct path *annotation;
	const struct stamp *stamp;
	uint64_t *since_read, *since_sent;
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

static void take(struct lag *lag, const struct follow_item *item, uint64_t now, uint64_t wall)
{
	char text[96] = "", scratch[VALUE_SCRATCH];
	unsigned long long run, number, sent;
	uint64_t read = lag->stamp->read_ns;
	struct bytes found;
	struct value value;

	if (item->kind != FOLLOW_CHANGE || !item->record.body.size ||
		must(path_first(lag->annotation, item->record.body, &value), "body") != FOUND ||
		value_scalar_text(&value, scratch, &found) != FOUND)
		return;
	(void)snprintf(text, sizeof(text), "%.*s", BYTES_ARG(found));
	if (sscanf(text, "%llu %llu %llu", &run, &number, &sent) != 3)
		return; /* a warming patch */
	if (lag->n && (run != lag->run || number <= lag->number))
		return; /* an older one, still in the object */
	lag->run = run;
	lag->number = number;
	must_true(read > 0 && read <= now, "no bytes were read: is preload.so in the reflector?");
	lag->since_read[lag->n] = now - read;
	lag->since_sent[lag->n++] = wall - sent;
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
			take(lag, &item, now, proc_realtime_ns());
		else if (r == AGAIN)
			must(follow_wait(follow, 1000), "follower");
		else
			must_true(false, "the feed is gone");
		if (lag->n != before)
			last = now;
	}
	follow_free(&follow);
}

int main(int argc, char **argv)
{
	struct store_options options = {0};
	struct lag lag = {0};
	struct store *store;

	if (argc < 4) {
		(void)fputs("usage: watchlag STORE STAMP-FILE COUNT\n", stderr);
		return 2;
	}
	lag.count = must_number(argv[3], 1, "COUNT");
	lag.stamp = map_stamp(argv[2]);
	lag.since_read = calloc(lag.count, sizeof(*lag.since_read));
	lag.since_sent = calloc(lag.count, sizeof(*lag.since_sent));
	must_true(lag.since_read && lag.since_sent, "no memory");
	must(path_parse(ANNOTATION, &lag.annotation), ANNOTATION);
	must(store_open(argv[1], &options, &store), argv[1]);
	follow_patches(&lag, store);

	result_begin();
	result_samples("read_to_follower", lag.since_read, lag.n);
	result_samples("send_to_follower", lag.since_sent, lag.n);
	result_end();
	store_close(&store);
	path_free(&lag.annotation);
	free(lag.since_read);
	free(lag.since_sent);
	return 0;
}
