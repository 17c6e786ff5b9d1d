/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libkinf's side of the differential test: one informer of a feed whose handlers come and go as stdin
 * says, a JSON line on stdout for each call. README.md has the protocol. The store is $KINF_STORE.
 *
 *	libkinf FEED
 */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "reader/kinf.h"

#define RESYNC_CHECK_MS 1000
#define HANDLERS_MAX    64
#define BATCH           16 /* callbacks between two looks at stdin */

struct listener {
	char name[32];
	struct kinf_handler *handler; /* NULL: none */
	long slow_ms;
};

static struct kinf *kinf;
static struct kinf_informer *informer;
static struct listener listeners[HANDLERS_MAX];

static void need(int result, const char *what)
{
	if (result >= 0)
		return;
	(void)fprintf(stderr, "libkinf: %s: %s\n", what, kinf_error(kinf));
	exit(1);
}

/* ---- calls ---- */

static void print_text(const char *name, const char *text, size_t size)
{
	if (size)
		(void)printf(",\"%s\":\"%.*s\"", name, (int)size, text);
}

static void print_state(const struct kinf_object *object, const char *rv, const char *uid,
	const char *value)
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

/* ---- what is to be done ---- */

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

/* Takes what has come on stdin, line by line. False: its end. */
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
	const char *feed = argv[1];
	need(kinf_wait_synced(kinf, &feed, 1, 60000), feed);
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
	kinf_close(&kinf);
	return 0;
}
