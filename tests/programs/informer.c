/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An informer for the scenarios: prints a JSON line for each callback.
 *
 *	informer FEED [--cursor NAME] [--track-keys] [--objects] [--cache] [--filter LABELS]
 *		[--spoil] [--no-resync]
 *
 *	{"call":"add","key":"ns/name","rv":"7","event":9,"at":9,"initial":true}
 *	{"call":"sync"}   {"call":"lapped"}
 *	{"call":"update","key":..,"old":"7","rv":"9"}  (old null: not known)
 *	{"call":"delete","key":..,"rv":..,"unknown":false}   {"call":"state","state":"live"}
 *
 * "event" is the version's number, "at" the handler's position after the call. --objects adds
 * "object" and "oldObject" in full. --cache adds "cache", the resourceVersion in a snapshot taken
 * in the callback (null: the object is not there). --filter adds a second handler, for objects with
 * these labels; its lines have "filtered":true. --spoil writes into the first object. SIGTERM ends
 * the program. The store is $KINF_STORE.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reader/kinf.h"

static bool objects, cache, spoil;
static struct kinf *kinf;
static struct kinf_snapshot *snapshot; /* of --cache */
static struct kinf_informer *informer;
static struct kinf_handler *handler; /* of all objects */
static const char *feed;

static void stop(int number)
{
	(void)number;
	if (!informer)
		_exit(0); /* there is nothing yet to end in order */
	kinf_informer_stop(informer);
}

static void print_object(const char *name, const struct kinf_object *object)
{
	char *json;
	size_t size;

	if (!objects || !object || !object->body_size ||
		kinf_object_json(object, 0, &json, &size) != 0)
		return;
	(void)printf(",\"%s\":%s", name, json);
	free(json);
}

/* KINF_AGAIN, without a processor: "again". Ends the program when it can't be told. */
static void print_cache(const struct kinf_object *object)
{
	char key[600];
	struct kinf_object now;
	int r = snapshot ? kinf_snapshot_renew(snapshot) : kinf_snapshot_open(kinf, &snapshot);

	(void)snprintf(key, sizeof(key), "%.*s", (int)object->key_size, object->key);
	if (r == 0)
		r = kinf_get(snapshot, feed, NULL, key, &now);
	if (r == KINF_FOUND)
		(void)printf(",\"cache\":\"%.*s\"", (int)now.resource_version_size,
			now.resource_version);
	else if (r == KINF_NOT_FOUND)
		(void)printf(",\"cache\":null");
	else if (r == KINF_AGAIN)
		(void)printf(",\"cache\":\"again\"");
	else
		(void)fprintf(stderr, "informer: cache: %s\n", kinf_error(kinf)), exit(1);
	if (snapshot)
		(void)kinf_snapshot_reset(snapshot);
}

static void print_call(const char *call, const struct kinf_object *object)
{
	(void)printf("{\"call\":\"%s\",\"key\":\"%.*s\",\"rv\":\"%.*s\",\"event\":%" PRIu64
		     ",\"at\":%" PRIu64,
		call, (int)object->key_size, object->key, (int)object->resource_version_size,
		object->resource_version ? object->resource_version : "", object->event,
		kinf_handler_event(handler));
	print_object("object", object);
	if (cache)
		print_cache(object);
}

/* ARG of the handler with a filter is not NULL. */
static void end_line(const void *arg)
{
	(void)printf(arg ? ",\"filtered\":true}\n" : "}\n");
	(void)fflush(stdout);
}

static void on_add(void *arg, const struct kinf_object *object, int initial)
{
	if (spoil)
		*(volatile char *)(uintptr_t)object->body = 0;
	print_call("add", object);
	(void)printf(",\"initial\":%s", initial ? "true" : "false");
	end_line(arg);
}

static void on_update(void *arg, const struct kinf_object *old, const struct kinf_object *object)
{
	print_call("update", object);
	if (old)
		(void)printf(",\"old\":\"%.*s\"", (int)old->resource_version_size,
			old->resource_version);
	else
		(void)printf(",\"old\":null");
	print_object("oldObject", old);
	end_line(arg);
}

static void on_delete(void *arg, const struct kinf_object *object, int final_state_unknown)
{
	print_call("delete", object);
	(void)printf(",\"unknown\":%s", final_state_unknown ? "true" : "false");
	end_line(arg);
}

static void on_sync(void *arg)
{
	(void)printf("{\"call\":\"sync\"");
	end_line(arg);
}

static void on_lapped(void *arg)
{
	(void)printf("{\"call\":\"lapped\"");
	end_line(arg);
}

static void on_state(void *arg, const struct kinf_feed_info *status)
{
	(void)printf("{\"call\":\"state\",\"state\":\"%s\",\"error\":%s", status->state,
		status->last_error[0] ? "true" : "false");
	end_line(arg);
}

static int fail(int code)
{
	(void)fprintf(stderr, "informer: %s\n",
		*kinf_error(kinf) ? kinf_error(kinf) : kinf_strerror(code));
	return 1;
}

static int add_handlers(const char *labels)
{
	struct kinf_query filter = {.size = sizeof(filter), .label_selector = labels};
	struct kinf_handler_options options = {.size = sizeof(options),
		.on_add = on_add,
		.on_update = on_update,
		.on_delete = on_delete,
		.on_sync = on_sync,
		.on_lapped = on_lapped};
	int r = kinf_informer_add_handler(informer, &options, &handler);

	if (r < 0 || !labels)
		return r;
	options.filter = &filter;
	options.arg = informer; /* so its lines can be told from the other's */
	return kinf_informer_add_handler(informer, &options, NULL);
}

/* Waits for missing feeds. */
static int follow(const struct kinf_informer_options *options, const char *labels)
{
	const struct sigaction ending = {.sa_handler = stop};
	int r = sigaction(SIGTERM, &ending, NULL) < 0 ? -errno : 0;

	if (r == 0)
		r = kinf_wait_synced(kinf, &feed, 1, 60000);
	if (r == 0)
		r = kinf_informer_new(kinf, feed, options, &informer);
	if (r == 0)
		r = add_handlers(labels);
	if (r == 0)
		r = kinf_informer_run(informer, -1);
	kinf_informer_free(&informer);
	kinf_snapshot_close(&snapshot);
	return r;
}

int main(int argc, char **argv)
{
	struct kinf_informer_options options = {.size = sizeof(options), .on_state = on_state};
	const char *labels = NULL;

	/* A fault is the kernel's to tell, also under a sanitizer. */
	if (argc < 2 || sigaction(SIGSEGV, &(struct sigaction){.sa_handler = SIG_DFL}, NULL) < 0)
		return 2;
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--track-keys") == 0)
			options.flags |= KINF_TRACK_KEYS;
		else if (strcmp(argv[i], "--no-resync") == 0)
			options.flags |= KINF_OWN_DEFAULT_RESYNC;
		else if (strcmp(argv[i], "--objects") == 0)
			objects = true;
		else if (strcmp(argv[i], "--cache") == 0)
			cache = true;
		else if (strcmp(argv[i], "--spoil") == 0)
			spoil = true;
		else if (strcmp(argv[i], "--cursor") == 0 && i + 1 < argc)
			options.cursor = argv[++i];
		else if (strcmp(argv[i], "--filter") == 0 && i + 1 < argc)
			labels = argv[++i];
		else
			return 2;
	}
	feed = argv[1];
	int r = kinf_open(NULL, &kinf);
	if (r == 0)
		r = follow(&options, labels);
	if (r != 0)
		r = fail(r);
	kinf_close(&kinf);
	return r;
}
