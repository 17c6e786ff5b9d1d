/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libkinf's side of the differential test: one informer of a feed. stdin adds and removes its
 * handlers; each call is a JSON line on stdout. README.md has the protocol. The store is
 * $KINF_STORE. Each call, and a worker with the call's key from a work queue, reads the cache by
 * index and ends the program if the change is missing.
 *
 *	libkinf FEED
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "reader/kinf.h"
#include "reader/kinf_queue.h"

#define RESYNC_CHECK_MS 1000
#define HANDLERS_MAX    64
#define BATCH           16 /* callbacks between two looks at stdin */
#define KEYS_MAX        64

struct listener {
	char name[32];
	struct kinf_handler *handler; /* NULL: none */
	long slow_ms;
};

static struct kinf *kinf;
static struct kinf_informer *informer;
static const char *feed;
static struct listener listeners[HANDLERS_MAX];

static void need(int result, const char *what)
{
	if (result >= 0)
		return;
	(void)fprintf(stderr, "libkinf: %s: %s\n", what, kinf_error(kinf));
	exit(1);
}

/* ---- what a handler or a worker reads ----------------------------------- */

static struct kinf_snapshot *handler_reads, *worker_reads;
static struct kinf_queue *queue;
static struct kinf *worker_kinf;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct queued {
	char key[64];
	uint64_t event; /* the key's newest */
} queued[KEYS_MAX];
static unsigned long worked;

_Noreturn static void stale(const char *who, const char *key, uint64_t event, const char *what)
{
	(void)fprintf(stderr, "libkinf: %s was given event %llu of '%s': %s\n", who,
		(unsigned long long)event, key, what);
	exit(1);
}

/* Checks that the objects of GROUP have KEY exactly if WANT, and then with its EVENT. */
static void check_group(struct kinf_snapshot *snapshot, const char *who, const char *key,
	const struct kinf_object *want, const char *group)
{
	struct kinf_listing *list;
	struct kinf_object object;
	bool listed = false;
	int r = kinf_by_index(snapshot, feed, "label", group, &list);

	if (r != 0)
		stale(who, key, 0, "it can't list by index");
	while ((r = kinf_list_next(list, &object)) == KINF_FOUND) {
		if (strncmp(object.key, key, object.key_size) != 0 || key[object.key_size])
			continue;
		listed = true;
		if (!want || want->event != object.event)
			stale(who, key, object.event, "the index lists another version");
	}
	kinf_list_close(&list);
	if (r != KINF_END || (want && !listed))
		stale(who, key, want ? want->event : 0, "the index does not list it");
}

/* Checks the cache for EVENT of KEY. DELETED: it may lack the object. Returns false if no processor
 * runs to apply it. */
static bool check_cache(struct kinf_snapshot **snapshot, struct kinf *reader, const char *who,
	const char *key, uint64_t event, bool deleted)
{
	int r = *snapshot ? kinf_snapshot_renew(*snapshot) : kinf_snapshot_open(reader, snapshot);
	struct kinf_object now;
	const char *text;
	size_t size;

	if (r == KINF_AGAIN)
		return false;
	if (r != 0)
		stale(who, key, event, kinf_error(reader));
	if (kinf_snapshot_event(*snapshot) < event)
		stale(who, key, event, "the snapshot is older");
	r = kinf_get(*snapshot, feed, NULL, key, &now);
	if (r != KINF_FOUND && r != KINF_NOT_FOUND)
		stale(who, key, event, kinf_error(reader));
	if (r == KINF_FOUND && now.event < event)
		stale(who, key, event, "the cache has an older version");
	if (r == KINF_NOT_FOUND && !deleted && kinf_snapshot_event(*snapshot) == event)
		stale(who, key, event, "the cache lacks it");
	bool found = r == KINF_FOUND;
	bool a = found &&
		 kinf_object_path(&now, "metadata.labels.group", &text, &size) == KINF_FOUND &&
		 size == 1 && *text == 'a';
	check_group(*snapshot, who, key, found && a ? &now : NULL, "group=a");
	check_group(*snapshot, who, key, found && !a ? &now : NULL, "group=b");
	(void)kinf_snapshot_reset(*snapshot);
	return true;
}

static struct queued *find_queued(const char *key)
{
	for (size_t i = 0; i < KEYS_MAX; i++) {
		if (!*queued[i].key)
			(void)snprintf(queued[i].key, sizeof(queued[i].key), "%s", key);
		if (strcmp(queued[i].key, key) == 0)
			return &queued[i];
	}
	stale("the queue", key, 0, "too many keys");
}

static void add_key(const char *key, uint64_t event)
{
	(void)pthread_mutex_lock(&lock);
	struct queued *q = find_queued(key);
	if (q->event < event)
		q->event = event;
	(void)pthread_mutex_unlock(&lock);
	need(kinf_queue_add(queue, key, strlen(key)), "queue");
}

static void *work(void *arg)
{
	const char *key;
	size_t size;

	while (kinf_queue_get(queue, -1, &key, &size) == KINF_FOUND) {
		(void)pthread_mutex_lock(&lock);
		uint64_t event = find_queued(key)->event;
		(void)pthread_mutex_unlock(&lock);
		/* The key may have been added again since it was handed out. */
		if (event > kinf_handled_event())
			event = kinf_handled_event();
		if (check_cache(&worker_reads, worker_kinf, "a worker", key, event, true))
			(void)__atomic_add_fetch(&worked, 1, __ATOMIC_RELAXED);
		else /* After a failed read: later again */
			need(kinf_queue_add(queue, key, size), "queue");
		need(kinf_queue_done(queue, key, size), "queue");
	}
	return arg;
}

/* ---- calls -------------------------------------------------------------- */

static void print_text(const char *name, const char *text, size_t size)
{
	if (size)
		(void)printf(",\"%s\":\"%.*s\"", name, (int)size, text);
}

static void print_state(
	const struct kinf_object *object, const char *rv, const char *uid, const char *value)
{
	const char *text;
	size_t size;

	print_text(rv, object->resource_version, object->resource_version_size);
	print_text(uid, object->uid, object->uid_size);
	if (object->body_size && kinf_object_path(object, "data.n", &text, &size) == KINF_FOUND)
		print_text(value, text, size);
}

static void begin(const struct listener *l, const char *call, const struct kinf_object *object)
{
	const struct timespec pause = {.tv_nsec = l->slow_ms * 1000000};

	(void)nanosleep(&pause, NULL);
	(void)printf("{\"handler\":\"%s\",\"call\":\"%s\"", l->name, call);
	if (!object)
		return;
	print_text("key", object->key, object->key_size);
	print_state(object, "rv", "uid", "value");
	char key[64];
	(void)snprintf(key, sizeof(key), "%.*s", (int)object->key_size, object->key);
	bool read = check_cache(
		&handler_reads, kinf, l->name, key, object->event, strcmp(call, "delete") == 0);
	(void)printf(",\"read\":%s,\"worked\":%lu", read ? "true" : "false",
		__atomic_load_n(&worked, __ATOMIC_RELAXED));
	add_key(key, object->event);
}

static void end(void)
{
	(void)printf("}\n");
	(void)fflush(stdout);
}

static void on_add(void *arg, const struct kinf_object *object, int initial)
{
	begin(arg, "add", object);
	(void)printf("%s", initial ? ",\"initial\":true" : "");
	end();
}

static void on_update(void *arg, const struct kinf_object *old, const struct kinf_object *object)
{
	begin(arg, "update", object);
	print_state(old, "old", "oldUid", "oldValue");
	end();
}

static void on_delete(void *arg, const struct kinf_object *object, int final_state_unknown)
{
	begin(arg, "delete", object);
	(void)printf("%s", final_state_unknown ? ",\"unknown\":true" : "");
	end();
}

static void on_sync(void *arg)
{
	begin(arg, "sync", NULL);
	end();
}

static void on_lapped(void *arg)
{
	begin(arg, "lapped", NULL);
	end();
}

/* ---- what is to be done ------------------------------------------------- */

static struct listener *find(const char *name)
{
	for (size_t i = 0; i < HANDLERS_MAX; i++)
		if (*name ? listeners[i].handler && strcmp(listeners[i].name, name) == 0
			  : !listeners[i].handler)
			return &listeners[i];
	(void)fprintf(stderr, "libkinf: no handler '%s', or too many\n", name);
	exit(1);
}

static void add(const char *name, long resync_ms, long slow_ms, const char *selector)
{
	struct listener *l = find("");
	struct kinf_query filter = {.size = sizeof(filter), .label_selector = selector};
	struct kinf_handler_options options = {.size = sizeof(options),
		.flags = KINF_OWN_RESYNC,
		.resync_ms = (uint64_t)resync_ms,
		.arg = l,
		.on_add = on_add,
		.on_update = on_update,
		.on_delete = on_delete,
		.on_sync = on_sync,
		.on_lapped = on_lapped,
		.filter = strcmp(selector, "-") == 0 ? NULL : &filter};

	(void)snprintf(l->name, sizeof(l->name), "%s", name);
	l->slow_ms = slow_ms;
	need(kinf_informer_add_handler(informer, &options, &l->handler), name);
}

static void remove_handler(const char *name)
{
	struct listener *l = find(name);

	need(kinf_informer_remove_handler(informer, l->handler), name);
	l->handler = NULL;
	begin(l, "removed", NULL);
	end();
}

static void obey(const char *line)
{
	char verb[16], name[32], selector[64];
	long resync_ms, slow_ms;

	if (sscanf(line, "%15s %31s %ld %ld %63s", verb, name, &resync_ms, &slow_ms, selector) == 5)
		add(name, resync_ms, slow_ms, selector);
	else if (sscanf(line, "%15s %31s", verb, name) == 2 && strcmp(verb, "remove") == 0)
		remove_handler(name);
	else
		need(-EINVAL, line);
}

/* Handles the available input on stdin, line by line. False: its end. */
static bool listen_once(void)
{
	static char text[4096];
	static size_t have;
	ssize_t n = read(STDIN_FILENO, text + have, sizeof(text) - 1 - have);
	char *line = text, *newline;

	if (n <= 0)
		return false;
	have += (size_t)n;
	text[have] = '\0';
	for (; (newline = strchr(line, '\n')) != NULL; line = newline + 1) {
		*newline = '\0';
		obey(line);
	}
	have -= (size_t)(line - text);
	memmove(text, line, have);
	return true;
}

int main(int argc, char **argv)
{
	const struct kinf_informer_options options = {
		.size = sizeof(options), .resync_ms = RESYNC_CHECK_MS};

	if (argc != 2)
		return 2;
	need(kinf_open(NULL, &kinf), "open");
	feed = argv[1];
	need(kinf_wait_synced(kinf, &feed, 1, 60000), feed);
	need(kinf_open(NULL, &worker_kinf), "open");
	need(kinf_queue_new(NULL, &queue), "queue");
	pthread_t worker;
	need(-pthread_create(&worker, NULL, work, NULL), "thread");
	need(kinf_informer_new(kinf, feed, &options, &informer), feed);
	struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
		{.fd = kinf_informer_fd(informer), .events = POLLIN}};
	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			break;
		if (fds[0].revents && !listen_once())
			break;
		need(kinf_informer_dispatch(informer, BATCH), "dispatch");
	}
	kinf_informer_free(&informer);
	kinf_queue_shut_down(queue);
	(void)pthread_join(worker, NULL);
	kinf_queue_free(&queue);
	kinf_snapshot_close(&worker_reads);
	kinf_snapshot_close(&handler_reads);
	kinf_close(&worker_kinf);
	kinf_close(&kinf);
	return 0;
}
