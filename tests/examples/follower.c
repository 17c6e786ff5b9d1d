/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A follower that loses nothing, even if it is killed: prints a line for every change of a feed.
 *
 *	cc follower.c $(pkg-config --cflags --libs kinf) -o follower
 *	follower pods archive >>pods.log
 *
 *	EVENT TYPE KEY RESOURCEVERSION
 *
 * Its position is a named cursor in the store, written after the lines are printed. If it is killed
 * in between, the next run prints the same lines again. So each change comes at least once, and a
 * duplicate line is a repetition. The first run begins with all present objects (INITIAL, then
 * SYNC). So does a run after the store has trimmed the cursor's history: it prints LAPPED, and
 * objects missing between LAPPED and SYNC were deleted.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <kinf.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#define AT_ONCE 100 /* lines printed before the cursor is written and signals are checked */

static void put(const char *type, const struct kinf_object *object)
{
	printf("%" PRIu64 " %s %.*s %.*s\n", object->event, type, (int)object->key_size,
		object->key, (int)object->resource_version_size, object->resource_version);
}

static void on_add(void *arg, const struct kinf_object *object, int initial)
{
	(void)arg;
	put(initial ? "INITIAL" : "ADDED", object);
}

static void on_update(void *arg, const struct kinf_object *old, const struct kinf_object *object)
{
	(void)arg, (void)old;
	put("MODIFIED", object);
}

static void on_delete(void *arg, const struct kinf_object *object, int final_state_unknown)
{
	(void)arg, (void)final_state_unknown;
	put("DELETED", object);
}

static void on_sync(void *arg)
{
	(void)arg;
	puts("0 SYNC - -");
}

static void on_lapped(void *arg)
{
	(void)arg;
	puts("0 LAPPED - -");
}

/* Prints the available events and commits the cursor. */
static int take(struct kinf_informer *informer)
{
	int n = kinf_informer_dispatch(informer, AT_ONCE);

	if (n < 0)
		return n;
	if (fflush(stdout) != 0)
		err(1, "stdout"); /* not committed: these lines come again */
	int r = kinf_informer_commit(informer);
	return r < 0 ? r : n; /* KINF_AGAIN: no cursor before the initial state is complete */
}

static int follow(struct kinf_informer *informer)
{
	struct pollfd news = {.fd = kinf_informer_fd(informer), .events = POLLIN};

	if (news.fd < 0)
		return news.fd;
	for (;;) {
		int n = take(informer);
		if (n < 0)
			return n;
		if (n == 0 && poll(&news, 1, -1) < 0 && errno != EINTR)
			return -errno;
	}
}

int main(int argc, char **argv)
{
	struct kinf_informer_options options = {
		.size = sizeof(options), .flags = KINF_COMMIT_BY_HAND};
	struct kinf_handler_options handlers = {.size = sizeof(handlers),
		.on_add = on_add,
		.on_update = on_update,
		.on_delete = on_delete,
		.on_sync = on_sync,
		.on_lapped = on_lapped};
	struct kinf *kinf;
	struct kinf_informer *informer;
	struct kinf_handler *handler;

	if (argc != 3)
		errx(2, "usage: follower FEED CURSOR");
	options.cursor = argv[2];
	setvbuf(stdout, NULL, _IOLBF, 0); /* each line in one write, so a kill tears none */
	if (kinf_open(NULL, &kinf) < 0 || kinf_informer_new(kinf, argv[1], &options, &informer) < 0)
		errx(1, "%s", kinf_error(kinf));
	if (kinf_informer_add_handler(informer, &handlers, &handler) < 0 || follow(informer) < 0)
		errx(1, "%s", kinf_error(kinf));
	return 0;
}
