/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A member of the crowd of tests/stress/crowd.py. It reads or follows a feed, and ends with status
 * 1 and a sentence as soon as something does not fit.
 *
 *	crowd read FEED SEED
 *	crowd follow FEED STATE PACE_US [--cursor NAME] [--track-keys]
 *
 * read: takes snapshots for ever. Of each it lists the objects or reads them by index, gets each
 * one by key, keeps all for a moment, and compares them with the snapshot once more.
 *
 * follow: keeps {key, resourceVersion} from its handler's calls, checks each against the calls
 * before, and takes PACE_US for each. Twice a second it writes the file STATE: "event NUMBER", "key
 * resourceVersion" sorted, "end". With a cursor it reads STATE at the start and commits the cursor
 * after STATE is written; so a repeated event has a number covered by STATE.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <search.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "reader/kinf.h"

#define KEY_MAX 600
#define SAVE_NS UINT64_C(500000000)
#define BATCH   64 /* callbacks between two looks at the clock */

static struct kinf *kinf;
static const char *feed;
static volatile sig_atomic_t over;

static void end(int number)
{
	(void)number;
	over = 1;
}

static void __attribute__((format(printf, 1, 2), noreturn)) fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)fprintf(stderr, "crowd: ");
	(void)vfprintf(stderr, format, arguments);
	(void)fprintf(stderr, " (%s)\n", kinf ? kinf_error(kinf) : "");
	va_end(arguments);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void pause_us(uint64_t us)
{
	const struct timespec time = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};

	if (us)
		(void)nanosleep(&time, NULL);
}

/* ---- read --------------------------------------------------------------- */

#define HELD_MAX 256

struct held {
	struct kinf_object object;
	uint32_t sum;
};

static struct kinf_snapshot *snapshot;
static struct held held[HELD_MAX];
static unsigned seed;

static unsigned random_below(unsigned n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static uint32_t sum_of(const struct kinf_object *object)
{
	const unsigned char *bytes = object->body;
	uint32_t sum = 2166136261u;

	for (uint32_t i = 0; i < object->body_size; i++)
		sum = (sum ^ bytes[i]) * 16777619u;
	return sum;
}

static void must_say(
	const struct kinf_object *object, const char *path, const char *want, size_t size)
{
	const char *text;
	size_t n;

	if (kinf_object_path(object, path, &text, &n) != KINF_FOUND || n != size ||
		memcmp(text, want, size) != 0)
		fail("%.*s: %s is not '%.*s'", (int)object->key_size, object->key, path, (int)size,
			want);
}

/* Checks that the body has the library's name and resourceVersion. */
static void check_object(const struct kinf_object *object)
{
	const char *slash = memchr(object->key, '/', object->key_size);

	if (!slash)
		fail("key '%.*s'", (int)object->key_size, object->key);
	must_say(object, "metadata.namespace", object->key, (size_t)(slash - object->key));
	must_say(object, "metadata.name", slash + 1,
		object->key_size - (size_t)(slash + 1 - object->key));
	must_say(object, "metadata.resourceVersion", object->resource_version,
		object->resource_version_size);
	if (object->event > kinf_snapshot_event(snapshot))
		fail("%.*s is of event %" PRIu64 ", after the snapshot", (int)object->key_size,
			object->key, object->event);
}

static void check_by_key(const struct kinf_object *object)
{
	struct kinf_object again;
	char key[KEY_MAX];

	(void)snprintf(key, sizeof(key), "%.*s", (int)object->key_size, object->key);
	if (kinf_get(snapshot, feed, NULL, key, &again) != KINF_FOUND ||
		again.event != object->event)
		fail("%s: the list has event %" PRIu64 ", by key it is another", key,
			object->event);
}

/* Returns the number of objects; they are kept. */
static size_t read_some(struct kinf_listing *list)
{
	struct kinf_object object;
	size_t n = 0;
	int r;

	while ((r = kinf_list_next(list, &object)) == KINF_FOUND) {
		if (n < HELD_MAX) {
			check_object(&object);
			held[n] = (struct held){object, sum_of(&object)};
		}
		n++;
	}
	if (r != KINF_END)
		fail("list: %d", r);
	n = n < HELD_MAX ? n : HELD_MAX;
	for (size_t i = 1; i < n; i++) {
		const struct kinf_object *a = &held[i - 1].object, *b = &held[i].object;
		uint32_t size = a->key_size < b->key_size ? a->key_size : b->key_size;
		int order = memcmp(a->key, b->key, size);

		if (order > 0 || (order == 0 && a->key_size >= b->key_size))
			fail("%.*s after %.*s", (int)b->key_size, b->key, (int)a->key_size, a->key);
	}
	return n;
}

static int ask(struct kinf_listing **ret_list)
{
	char text[32];
	struct kinf_term term = {.index = "node", .value = text};
	struct kinf_query query = {.size = sizeof(query), .feed = feed};

	switch (random_below(3)) {
	case 0:
		(void)snprintf(text, sizeof(text), "node-%u", random_below(100));
		query.terms = &term;
		query.n_terms = 1;
		break;
	case 1:
		(void)snprintf(text, sizeof(text), "ns-%u", random_below(10));
		query.namespace_ = text;
		break;
	default:
		query.limit = 100;
	}
	return kinf_list(snapshot, &query, ret_list);
}

/* KINF_NO_INDEX: the index is being filled. */
static void read_once(void)
{
	struct kinf_listing *list;
	int r = ask(&list);

	if (r == KINF_AGAIN || r == KINF_NO_INDEX)
		return;
	if (r != 0)
		fail("kinf_list: %d", r);
	size_t n = read_some(list);
	kinf_list_close(&list);
	for (size_t i = 0; i < n; i += 8)
		check_by_key(&held[i].object);
	pause_us(random_below(20) == 0 ? random_below(500000) : random_below(20000));
	for (size_t i = 0; i < n; i++)
		if (sum_of(&held[i].object) != held[i].sum)
			fail("%.*s has changed while it was held", (int)held[i].object.key_size,
				held[i].object.key);
}

static void read_for_ever(void)
{
	while (!over) {
		int r = snapshot ? kinf_snapshot_renew(snapshot)
				 : kinf_snapshot_open(kinf, &snapshot);

		if (r < 0)
			fail("snapshot: %d", r);
		if (r == 0)
			read_once();
		if (snapshot)
			(void)kinf_snapshot_reset(snapshot);
		pause_us(200000 + random_below(400000));
	}
	kinf_snapshot_close(&snapshot);
}

/* ---- follow ------------------------------------------------------------- */

struct known {
	struct known *next; /* in no order */
	struct known **place;
	bool stale; /* since a lapse: not repeated yet */
	char rv[32];
	char key[]; /* NUL-terminated */
};

static struct kinf_informer *informer;
static void *tree;
static struct known *first;
static bool replaying;                        /* an initial state is being told */
static uint64_t last_event, covered, pace_us; /* COVERED: by STATE as read */

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct known *)a)->key, ((const struct known *)b)->key);
}

static struct known *known_new(const char *key, size_t size)
{
	struct known *known = calloc(1, sizeof(*known) + size + 1);

	if (!known)
		fail("out of memory");
	memcpy(known->key, key, size);
	return known;
}

static struct known *find(const char *key, size_t size)
{
	struct known *wanted = known_new(key, size);
	struct known **found = tfind(wanted, &tree, compare);

	free(wanted);
	return found ? *found : NULL;
}

static void set_rv(struct known *known, const char *rv, size_t size)
{
	(void)snprintf(known->rv, sizeof(known->rv), "%.*s", (int)size, rv);
	known->stale = false;
}

static struct known *add(const char *key, size_t size)
{
	struct known *known = known_new(key, size);

	if (!tsearch(known, &tree, compare))
		fail("out of memory");
	known->next = first;
	known->place = &first;
	if (first)
		first->place = &known->next;
	first = known;
	return known;
}

static void forget(struct known *known)
{
	(void)tdelete(known, &tree, compare);
	*known->place = known->next;
	if (known->next)
		known->next->place = known->place;
	free(known);
}

static void examined(uint64_t event)
{
	last_event = event > last_event ? event : last_event;
	pause_us(pace_us);
}

/* Expects every object again: after a lapse, or because there was no cursor beside the state. */
static void on_lapped(void *arg)
{
	(void)arg;
	replaying = true;
	for (struct known *known = first; known; known = known->next)
		known->stale = true;
}

static void on_add(void *arg, const struct kinf_object *object, int initial)
{
	if (initial && !replaying)
		on_lapped(arg);
	struct known *known = find(object->key, object->key_size);
	if (known && !known->stale && object->event > covered)
		fail("%s was added twice, at %" PRIu64, known->key, object->event);
	if (!known)
		known = add(object->key, object->key_size);
	set_rv(known, object->resource_version, object->resource_version_size);
	examined(object->event);
}

static void on_update(void *arg, const struct kinf_object *old, const struct kinf_object *object)
{
	struct known *known = find(object->key, object->key_size);

	(void)arg;
	if (object->event > covered &&
		(!known || (old && (strlen(known->rv) != old->resource_version_size ||
					   memcmp(known->rv, old->resource_version,
						   old->resource_version_size) != 0))))
		fail("%.*s: another old state, at %" PRIu64, (int)object->key_size, object->key,
			object->event);
	if (!known)
		known = add(object->key, object->key_size);
	set_rv(known, object->resource_version, object->resource_version_size);
	examined(object->event);
}

/* A deletion has the number of its record; one found without a state has none. */
static void on_delete(void *arg, const struct kinf_object *object, int final_state_unknown)
{
	struct known *known = find(object->key, object->key_size);

	(void)arg;
	(void)final_state_unknown;
	if (known)
		forget(known);
	else if (object->event > covered)
		fail("%.*s was deleted and is unknown, at %" PRIu64, (int)object->key_size,
			object->key, object->event);
	examined(object->event);
}

/* Drops the objects missing in the new initial state: they were deleted meanwhile. */
static void on_sync(void *arg)
{
	(void)arg;
	replaying = false;
	for (struct known *known = first, *next; known; known = next) {
		next = known->next;
		if (known->stale)
			forget(known);
	}
}

/* ---- its state ---------------------------------------------------------- */

static FILE *state_file;

static void write_known(const void *node, VISIT visit, int depth)
{
	const struct known *known = *(const struct known *const *)node;

	(void)depth;
	if (visit == postorder || visit == leaf)
		(void)fprintf(state_file, "%s %s\n", known->key, known->rv);
}

static void save(const char *path)
{
	char temporary[4096];

	(void)snprintf(temporary, sizeof(temporary), "%s.new", path);
	state_file = fopen(temporary, "w");
	if (!state_file)
		fail("%s: %s", temporary, strerror(errno));
	(void)fprintf(state_file, "event %" PRIu64 "\n", last_event);
	twalk(tree, write_known);
	(void)fprintf(state_file, "end\n");
	if (fclose(state_file) != 0 || rename(temporary, path) < 0)
		fail("%s: %s", path, strerror(errno));
}

static void load(const char *path)
{
	char key[KEY_MAX], rv[32];
	FILE *file = fopen(path, "r");

	if (!file)
		return;
	if (fscanf(file, "event %" SCNu64 "\n", &covered) != 1)
		fail("%s: no state", path);
	last_event = covered;
	while (fscanf(file, "%599s %31s\n", key, rv) == 2)
		set_rv(add(key, strlen(key)), rv, strlen(rv));
	(void)fclose(file);
}

static void follow_for_ever(const char *path, const struct kinf_informer_options *options)
{
	struct kinf_handler_options handler = {.size = sizeof(handler),
		.on_add = on_add,
		.on_update = on_update,
		.on_delete = on_delete,
		.on_sync = on_sync,
		.on_lapped = on_lapped};
	struct kinf_handler *handle;
	struct pollfd ready = {.events = POLLIN};
	uint64_t saved = 0;

	if (options->cursor)
		load(path);
	if (kinf_informer_new(kinf, feed, options, &informer) != 0 ||
		kinf_informer_add_handler(informer, &handler, &handle) != 0)
		fail("informer");
	ready.fd = kinf_informer_fd(informer);
	while (!over) {
		int n = kinf_informer_dispatch(informer, BATCH);

		if (n < 0)
			fail("dispatch: %d", n);
		if (n == 0) /* woken now and then, to save */
			(void)poll(&ready, 1, 200);
		if (now_ns() - saved < SAVE_NS || !kinf_handler_synced(handle))
			continue;
		save(path);
		if (options->cursor && kinf_informer_commit(informer) < 0)
			fail("commit");
		saved = now_ns();
	}
	kinf_informer_free(&informer);
}

/* ---- */

static int usage(void)
{
	(void)fprintf(stderr,
		"usage: crowd read FEED SEED | crowd follow FEED STATE PACE_US [--cursor NAME] "
		"[--track-keys]\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct kinf_informer_options options = {
		.size = sizeof(options), .flags = KINF_COMMIT_BY_HAND};
	const struct sigaction ending = {.sa_handler = end};
	bool follows = argc >= 5 && strcmp(argv[1], "follow") == 0;

	if (!follows && (argc != 4 || strcmp(argv[1], "read") != 0))
		return usage();
	for (int i = 5; follows && i < argc; i++) {
		if (strcmp(argv[i], "--track-keys") == 0)
			options.flags |= KINF_TRACK_KEYS;
		else if (strcmp(argv[i], "--cursor") == 0 && i + 1 < argc)
			options.cursor = argv[++i];
		else
			return usage();
	}
	feed = argv[2];
	if (sigaction(SIGTERM, &ending, NULL) < 0 || kinf_open(NULL, &kinf) < 0)
		fail("open");
	if (follows) {
		pace_us = strtoull(argv[4], NULL, 10);
		follow_for_ever(argv[3], &options);
	} else {
		seed = (unsigned)strtoull(argv[3], NULL, 10);
		read_for_ever();
	}
	kinf_close(&kinf);
	return 0;
}
