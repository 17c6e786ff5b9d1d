/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reader for the scenarios. It holds a snapshot until a signal comes:
 *
 *	reader FEED
 *
 *	{"objects":40,"listed":"9f..","kept":"9f..","copy":false}   at the start, and after SIGUSR1
 *	{"result":0,"error":""}   after SIGUSR2 (a new snapshot); a line as above follows
 *
 * "listed" is a checksum of the objects in the snapshot now, "kept" one of the bytes returned at
 * first. SIGTERM ends the program. The store is $KINF_STORE.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "reader/kinf.h"

static struct kinf *kinf;
static struct kinf_snapshot *snapshot;
static struct kinf_object *kept;
static size_t n_kept;

static void must(bool ok)
{
	if (ok)
		return;
	(void)fprintf(stderr, "reader: %s\n", kinf_error(kinf));
	exit(1);
}

/* FNV-1a. */
static uint64_t sum(uint64_t before, const void *bytes, size_t size)
{
	const unsigned char *p = bytes;

	for (size_t i = 0; i < size; i++)
		before = (before ^ p[i]) * UINT64_C(1099511628211);
	return before;
}

static uint64_t sum_object(uint64_t before, const struct kinf_object *object)
{
	before = sum(before, object->key, object->key_size);
	before = sum(before, object->resource_version, object->resource_version_size);
	return sum(before, object->body, object->body_size);
}

static void keep(const struct kinf_object *object)
{
	kept = realloc(kept, (n_kept + 1) * sizeof(*kept));
	must(kept != NULL);
	kept[n_kept++] = *object;
}

/* KEEP: keeps the returned bytes. */
static void read_all(const char *feed, bool keep_it)
{
	const struct kinf_query query = {.size = sizeof(query), .feed = feed};
	uint64_t listed = 0, again = 0, n = 0;
	struct kinf_object object;
	struct kinf_listing *list;
	int r = kinf_list(snapshot, &query, &list);

	must(r == 0);
	while ((r = kinf_list_next(list, &object)) == KINF_FOUND) {
		if (keep_it)
			keep(&object);
		listed = sum_object(listed, &object);
		n++;
	}
	must(r == KINF_END);
	kinf_list_close(&list);
	for (size_t i = 0; i < n_kept; i++)
		again = sum_object(again, &kept[i]);
	(void)printf("{\"objects\":%" PRIu64 ",\"listed\":\"%" PRIx64 "\",\"kept\":\"%" PRIx64
		     "\",\"copy\":%s}\n",
		n, listed, again, kinf_is_copy(kinf) ? "true" : "false");
	(void)fflush(stdout);
}

static void begin_anew(const char *feed)
{
	int r = kinf_snapshot_reset(snapshot);

	(void)printf("{\"result\":%d,\"error\":\"%s\"}\n", r, r < 0 ? kinf_error(kinf) : "");
	(void)fflush(stdout);
	must(kinf_snapshot_renew(snapshot) == 0);
	n_kept = 0;
	read_all(feed, true);
}

int main(int argc, char **argv)
{
	sigset_t signals;
	int number = 0;

	if (argc != 2 || sigemptyset(&signals) < 0)
		return 2;
	(void)sigaddset(&signals, SIGUSR1);
	(void)sigaddset(&signals, SIGUSR2);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	must(kinf_open(NULL, &kinf) == 0 && kinf_snapshot_open(kinf, &snapshot) == 0);
	read_all(argv[1], true);
	while (sigwait(&signals, &number) == 0 && number != SIGTERM) {
		if (number == SIGUSR1)
			read_all(argv[1], false);
		else
			begin_anew(argv[1]);
	}
	kinf_snapshot_close(&snapshot);
	kinf_close(&kinf);
	free(kept);
	return 0;
}
