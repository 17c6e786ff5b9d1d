/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A controller: keeps a report in a directory for each pod of a node while the pod is not Ready,
 * one file for each.
 *
 *	cc controller.c $(pkg-config --cflags --libs kinf) -o controller
 *	controller node-1 /run/not-ready
 *
 * Like all controllers it works on states, not on events. The handlers only add keys to a work
 * queue. Workers compare the pod in the cache with the file, and create or remove the file. So
 * repeated, merged and missed events do no harm. A failed worker puts the key back into the queue,
 * first for 5 ms, then each time for twice as long.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <kinf.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define WORKERS 2

struct controller {
	struct kinf *kinf;
	struct kinf_queue *queue;
	const char *node, *directory;
};

/* ---- fields of a pod: bytes in the store, valid as long as their snapshot --- */

static int field_is(const struct kinf_object *pod, const char *path, const char *wanted)
{
	const char *text;
	size_t size;

	return kinf_object_path(pod, path, &text, &size) == KINF_FOUND && size == strlen(wanted) &&
	       !memcmp(text, wanted, size);
}

static int is_ready(void *arg, const struct kinf_object *condition)
{
	(void)arg;
	return field_is(condition, "type", "Ready") && field_is(condition, "status", "True");
}

static int is_missed(const struct controller *controller, const struct kinf_object *pod)
{
	return field_is(pod, "spec.nodeName", controller->node) &&
	       !field_is(pod, "status.phase", "Succeeded") &&
	       kinf_object_each(pod, "status.conditions[*]", is_ready, NULL) != 1;
}

/* ---- the files: NAMESPACE_NAME (neither part can contain a '_') --------- */

/* All of these return 0 or an errno value negated. */
static int write_report(int directory, const char *name, const struct kinf_object *pod)
{
	int fd = openat(directory, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	const char *phase = "Unknown";
	size_t size = strlen(phase);

	if (fd < 0)
		return -errno;
	(void)kinf_object_path(pod, "status.phase", &phase, &size);
	int n = dprintf(
		fd, "%.*s is not ready: %.*s\n", (int)pod->key_size, pod->key, (int)size, phase);
	int r = n < 0 ? -errno : 0;
	close(fd);
	return r;
}

static int remove_report(int directory, const char *name)
{
	return unlinkat(directory, name, 0) == 0 || errno == ENOENT ? 0 : -errno;
}

/* Creates, rewrites or removes the file of one pod. */
static int reconcile(const struct controller *controller, struct kinf_snapshot *snapshot,
	const char *namespace_, const char *name)
{
	char file[512];
	struct kinf_object pod;
	int r = kinf_get(snapshot, "pods", namespace_, name, &pod);

	if (r != KINF_FOUND && r != KINF_NOT_FOUND)
		return r < 0 ? r : -EAGAIN;
	int directory = open(controller->directory, O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		return -errno;
	snprintf(file, sizeof(file), "%s_%s", namespace_, name);
	if (r == KINF_FOUND && is_missed(controller, &pod))
		r = write_report(directory, file, &pod);
	else
		r = remove_report(directory, file);
	close(directory);
	return r;
}

/* ---- workers: each takes a key and handles the newest state of its pod --- */

static int work_on(
	const struct controller *controller, struct kinf_snapshot *snapshot, const char *key)
{
	char namespace_[256];
	const char *slash = strchr(key, '/');

	if (!slash || (size_t)(slash - key) >= sizeof(namespace_))
		return 0; /* not the key of a pod */
	memcpy(namespace_, key, (size_t)(slash - key));
	namespace_[slash - key] = '\0';
	int r = kinf_snapshot_renew(snapshot);
	if (r == 0)
		r = reconcile(controller, snapshot, namespace_, slash + 1);
	(void)kinf_snapshot_reset(snapshot); /* holds no pages while it waits for the next key */
	return r;
}

static void *worker(void *arg)
{
	struct controller *controller = arg;
	struct kinf_queue *queue = controller->queue;
	struct kinf_snapshot *snapshot;
	const char *key;
	size_t size;

	if (kinf_snapshot_open(controller->kinf, &snapshot) != 0)
		errx(1, "%s", kinf_error(controller->kinf));
	while (kinf_queue_get(queue, -1, &key, &size) == KINF_FOUND) {
		int r = work_on(controller, snapshot, key);
		if (r == 0) {
			kinf_queue_forget(queue, key, size);
		} else {
			warnx("%s: %s; trying again", key, kinf_strerror(r));
			(void)kinf_queue_add_rate_limited(queue, key, size);
		}
		(void)kinf_queue_done(queue, key, size);
	}
	kinf_snapshot_close(&snapshot);
	return NULL;
}

/* ---- handlers: each change adds the pod's key to the queue -------------- */

static void enqueue(struct controller *controller, const char *key, size_t size)
{
	if (kinf_queue_add(controller->queue, key, size) < 0)
		errx(1, "out of memory");
}

static void on_add(void *arg, const struct kinf_object *pod, int initial)
{
	(void)initial;
	enqueue(arg, pod->key, pod->key_size);
}

static void on_update(void *arg, const struct kinf_object *old, const struct kinf_object *pod)
{
	(void)old;
	enqueue(arg, pod->key, pod->key_size);
}

static void on_delete(void *arg, const struct kinf_object *pod, int final_state_unknown)
{
	(void)final_state_unknown;
	enqueue(arg, pod->key, pod->key_size);
}

/* Adds the pods of all files to the queue: no event reports a pod deleted while the controller was
 * down. */
static void on_sync(void *arg)
{
	struct controller *controller = arg;
	DIR *directory = opendir(controller->directory);
	struct dirent *entry;

	if (!directory)
		err(1, "%s", controller->directory);
	while ((entry = readdir(directory))) {
		char *separator = strchr(entry->d_name, '_');
		if (!separator)
			continue;
		*separator = '/';
		enqueue(controller, entry->d_name, strlen(entry->d_name));
	}
	closedir(directory);
	puts("synced");
	fflush(stdout);
}

/* ---- main --------------------------------------------------------------- */

/* Returns a descriptor, readable at SIGTERM or SIGINT. Call it before starting threads. */
static int stop_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static int run(struct controller *controller, int stop_fd)
{
	char selector[300];
	struct kinf_query of_node = {.size = sizeof(of_node), .field_selector = selector};
	struct kinf_handler_options handlers = {.size = sizeof(handlers),
		.arg = controller,
		.on_add = on_add,
		.on_update = on_update,
		.on_delete = on_delete,
		.on_sync = on_sync,
		.filter = &of_node};
	struct kinf_informer *informer;
	struct kinf_handler *handler;

	snprintf(selector, sizeof(selector), "spec.nodeName=%s", controller->node);
	int r = kinf_informer_new(controller->kinf, "pods", NULL, &informer);
	if (r < 0)
		return r;
	r = kinf_informer_add_handler(informer, &handlers, &handler);
	if (r == 0)
		r = kinf_informer_run(informer, stop_fd);
	kinf_informer_free(&informer);
	return r;
}

int main(int argc, char **argv)
{
	struct controller controller = {0};
	pthread_t workers[WORKERS];
	const char *pods = "pods";

	if (argc != 3)
		errx(2, "usage: controller NODE DIRECTORY");
	controller.node = argv[1];
	controller.directory = argv[2];
	if (kinf_open(NULL, &controller.kinf) < 0 ||
		kinf_wait_synced(controller.kinf, &pods, 1, 60000) < 0)
		errx(1, "%s", kinf_error(controller.kinf));
	if (kinf_queue_new(NULL, &controller.queue) < 0)
		errx(1, "out of memory");
	int stop_fd = stop_signals();
	for (int i = 0; i < WORKERS; i++)
		if (pthread_create(&workers[i], NULL, worker, &controller))
			errx(1, "no thread");

	int r = run(&controller, stop_fd);
	if (r < 0)
		warnx("%s", kinf_error(controller.kinf));
	kinf_queue_shut_down(controller.queue); /* workers still handle the keys in the queue */
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	kinf_queue_free(&controller.queue);
	kinf_close(&controller.kinf);
	return r < 0;
}
