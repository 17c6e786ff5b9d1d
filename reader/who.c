/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf_who: the pods behind an address, a container, a uid or a process of this machine.
 *
 * Each of them is a field of pods. Present pods are found by the index of the field if there is one
 * (`resolve` in kinf.yaml makes them), else all are read. Former pods are found by a walk over the
 * retained changes.
 */
#include "reader/who.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/path.h"
#include "reader/handle.h"
#include "reader/plan.h"

#define WHO_PODS     "pods"
#define UID_SIZE     36 /* 8-4-4-4-12 hexadecimal digits */
#define ID_SIZE      64 /* hexadecimal digits of a whole container id */
#define ID_SHORT_MIN 8  /* of a cut one: crictl prints 13, docker 12 */
#define VALUE_SIZE   200
#define PATHS_MAX    3
#define VALUES       2

/* A value of pods, and the fields it may be in; they end with NULL. */
struct who_value {
	const char *const *paths;
	char text[VALUE_SIZE];
	bool any_runtime; /* a container's id without RUNTIME:// */
	bool is_cut;      /* only the beginning of an id */
};

struct who {
	struct kinf_snapshot *snapshot;
	struct who_value values[VALUES]; /* of a process: its container, else its pod */
	const struct who_value *value;
	const struct who_value *parsed_for; /* its paths are in PARSED; NULL: none */
	struct path *parsed[PATHS_MAX];
	char node[256]; /* of NODE/PID; "": this machine's */
	kinf_who_fn *fn;
	void *arg;
	bool given;
	bool is_former; /* those that had it are searched for, from the event FROM on */
	uint64_t from;
};

static const char *const who_ips[] = {"status.podIPs[*].ip", NULL};
static const char *const who_uids[] = {"metadata.uid", NULL};
static const char *const who_containers[] = {"status.containerStatuses[*].containerID",
	"status.initContainerStatuses[*].containerID",
	"status.ephemeralContainerStatuses[*].containerID", NULL};
static const char *const who_runtimes[] = {"containerd://", "cri-o://", "docker://"};

/* ---- what is asked for ---------------------------------------------------- */

static size_t who_hex_digits(const char *text)
{
	return strspn(text, "0123456789abcdef");
}

/* Returns true if TEXT begins with a uid; systemd's slices have underscores in it. */
static bool who_is_uid(const char *text)
{
	for (size_t i = 0; i < UID_SIZE; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? text[i] != '-' && text[i] != '_' : !isxdigit((unsigned char)text[i]))
			return false;
	}
	return true;
}

static void who_set_uid(const char *text, struct who_value *value)
{
	value->paths = who_uids;
	for (size_t i = 0; i < UID_SIZE; i++)
		value->text[i] = (char)(text[i] == '_' ? '-' : tolower((unsigned char)text[i]));
	value->text[UID_SIZE] = '\0';
}

static void who_set_container(const char *text, size_t size, struct who_value *value)
{
	const char *scheme = strstr(text, "://");

	value->paths = who_containers;
	value->any_runtime = !scheme;
	value->is_cut = who_hex_digits(scheme ? scheme + 3 : text) < ID_SIZE;
	(void)snprintf(value->text, sizeof(value->text), "%.*s", (int)size, text);
}

/* Finds the container and the pod in a line of a cgroup file: .../kubepods-podUID.slice/
 * cri-containerd-ID.scope, or .../kubepods/podUID/ID. */
static void who_read_line(const char *line, struct who *who)
{
	for (const char *p = line; (p = strstr(p, "pod")); p++)
		if (who_is_uid(p + 3))
			who_set_uid(p + 3, &who->values[1]);
	for (const char *p = line; *p;) {
		size_t n = who_hex_digits(p);

		if (n == ID_SIZE)
			who_set_container(p, ID_SIZE, &who->values[0]);
		p += n ? n : 1;
	}
}

/* Reads the owner of process PID of this machine. $HOST_PROC: the machine's /proc in a container,
 * as other agents name it. Returns: 0; NOT_FOUND; ERR_SYNTAX. */
static int who_read_process(struct who *who, const char *pid)
{
	const char *proc = getenv("HOST_PROC");
	char path[300], line[4096], text[160];

	(void)snprintf(
		path, sizeof(path), "%.240s/%.20s/cgroup", proc && *proc ? proc : "/proc", pid);
	FILE *file = fopen(path, "re");
	if (!file) {
		(void)snprintf(
			text, sizeof(text), "there is no process %.20s on this machine", pid);
		return kinf_outcome(who->snapshot->kinf, NOT_FOUND, text);
	}
	while (fgets(line, sizeof(line), file))
		who_read_line(line, who);
	(void)fclose(file);
	if (who->values[0].paths || who->values[1].paths)
		return 0;
	(void)snprintf(text, sizeof(text),
		"process %.20s of this machine is in no pod: its cgroup names none", pid);
	return kinf_outcome(who->snapshot->kinf, NOT_FOUND, text);
}

static int who_read(struct who *who, const char *text)
{
	struct in6_addr address;
	struct who_value *value = &who->values[0];
	size_t size = strlen(text);
	const char *slash = strrchr(text, '/'), *scheme = strstr(text, "://");
	const char *pid = slash ? slash + 1 : text, *id = scheme ? scheme + 3 : text;
	int family = strchr(text, ':') ? AF_INET6 : AF_INET;

	if (inet_pton(family, text, &address) == 1) { /* as the API server writes it */
		value->paths = who_ips;
		(void)inet_ntop(family, &address, value->text, sizeof(value->text));
		return 0;
	}
	if (size == UID_SIZE && who_is_uid(text)) {
		who_set_uid(text, value);
		return 0;
	}
	if (*pid && size - (size_t)(pid - text) < ID_SHORT_MIN && !scheme &&
		!pid[strspn(pid, "0123456789")] && size < sizeof(who->node)) {
		if (slash)
			(void)snprintf(
				who->node, sizeof(who->node), "%.*s", (int)(slash - text), text);
		return who_read_process(who, pid);
	}
	if (who_hex_digits(id) >= ID_SHORT_MIN && !id[who_hex_digits(id)] && size < VALUE_SIZE &&
		(!scheme ||
			text + strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789.-") == scheme)) {
		who_set_container(text, size, value);
		return 0;
	}
	return err_say(ERR_SYNTAX,
		"'%.80s' is neither an IP address, a container's id, a pod's uid nor [NODE/]PID",
		text);
}

/* ---- those that have it --------------------------------------------------- */

static int who_give(struct who *who, const struct kinf_object *pod, uint64_t until_ns)
{
	const char *node;
	size_t size;

	who->given = true;
	if (*who->node && (kinf_object_path(pod, "spec.nodeName", &node, &size) != FOUND ||
				  !bytes_equal(BYTES(node, size), bytes_str(who->node))))
		return err_say(ERR_SYNTAX,
			"'%.80s' is not this machine: its processes are known there only",
			who->node);
	return who->fn(who->arg, pod, until_ns);
}

static int who_match(void *arg, const struct value *value)
{
	const struct who_value *wanted = arg;
	struct bytes text = value->text;

	if (value->type != VALUE_STRING)
		return false;
	const char *scheme = wanted->any_runtime ? memmem(text.data, text.size, "://", 3) : NULL;
	size_t skip = scheme ? (size_t)(scheme + 3 - (const char *)text.data) : 0;
	struct bytes rest = BYTES((const char *)text.data + skip, text.size - skip);
	return wanted->is_cut ? bytes_starts(rest, bytes_str(wanted->text))
			      : bytes_equal(rest, bytes_str(wanted->text));
}

/* Returns 1 if OBJECT has the value, 0, or an error. */
static int who_has(struct who *who, const struct kinf_object *object)
{
	const struct bytes body = BYTES(object->body, object->body_size);
	int r = 0;

	if (who->parsed_for != who->value) {
		for (size_t i = 0; i < PATHS_MAX; i++)
			path_free(&who->parsed[i]);
		for (size_t i = 0; r == 0 && who->value->paths[i]; i++)
			r = path_parse(who->value->paths[i], &who->parsed[i]);
		who->parsed_for = who->value;
	}
	for (size_t i = 0; r == 0 && body.size && i < PATHS_MAX && who->parsed[i]; i++)
		r = path_eval(who->parsed[i], body, who_match, (void *)(uintptr_t)who->value);
	return r;
}

/* Finds an index of PATH. Returns: FOUND; NOT_FOUND; errors. */
static int who_find_index(
	struct who *who, const char *path, struct index_definition *ret_definition)
{
	const struct feed_set *set;
	int r = feed_set_get(who->snapshot, WHO_PODS, &set);

	if (r != 0 || !set->n)
		return r < 0 ? r : NOT_FOUND;
	return plan_find_index(who->snapshot->snapshot, &set->feeds[0], path, ret_definition);
}

/* Gives the pods with the value; TERM: its index, NULL: all are read. */
static int who_list(struct who *who, const struct kinf_term *term)
{
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	const struct kinf_query query = {
		.size = sizeof(query), .feed = WHO_PODS, .terms = term, .n_terms = term != NULL};
	struct kinf_object pod;
	int r = kinf_list(who->snapshot, &query, &list);

	while (r == 0 && (r = kinf_list_next(list, &pod)) == FOUND) {
		int has = term ? 1 : who_has(who, &pod);
		int given = has == 1 ? who_give(who, &pod, 0) : has;

		if (given != 0)
			return given;
	}
	return r == END ? 0 : r;
}

static int who_now(struct who *who)
{
	const struct who_value *value = who->value;
	size_t n = value->any_runtime ? ARRAY_SIZE(who_runtimes) : 1;
	char text[VALUE_SIZE + 20];
	int r = 0;

	for (size_t i = 0; r == 0 && !who->given && value->paths[i]; i++) {
		struct index_definition index;

		r = value->is_cut ? NOT_FOUND : who_find_index(who, value->paths[i], &index);
		if (r == NOT_FOUND) /* for all paths */
			return who_list(who, NULL);
		for (size_t k = 0; r >= 0 && !who->given && k < n; k++) {
			(void)snprintf(text, sizeof(text), "%s%s",
				value->any_runtime ? who_runtimes[k] : "", value->text);
			r = who_list(who, &(struct kinf_term){index.name, text});
			if (r != 0)
				break;
		}
	}
	return r;
}

/* ---- those that had it ---------------------------------------------------- */

static int who_had(void *arg, const struct snapshot_feed *feed, const struct kinf_change *change,
	const struct kinf_object *before)
{
	struct who *who = arg;
	bool deleted = strcmp(change->type, "DELETED") == 0;
	const struct kinf_object *had = before || !deleted ? before : &change->object;
	int r = had ? who_has(who, had) : 0;

	(void)feed;
	if (r == 1 && !deleted)
		r = who_has(who, &change->object) == 0;
	return r == 1 ? who_give(who, had, change->time_ns) : r;
}

static int who_present(struct who *who)
{
	int r = 0;

	for (who->value = who->values; r == 0; who->value++) {
		r = who->value->paths ? who_now(who) : 0;
		if (who->given || who->value == &who->values[VALUES - 1])
			break;
	}
	return r;
}

/* Searches for the value that was given, else for each until one is. */
static int who_former(struct who *who, size_t limit)
{
	int r = 0;

	for (;; who->value++) {
		if (who->value->paths)
			r = history_log(who->snapshot, WHO_PODS, &who->from, limit, who_had, who);
		if (r != 0 || who->given || who->value == &who->values[VALUES - 1])
			return r;
		who->from = 0;
	}
}

int who_new(struct who **ret_who)
{
	*ret_who = calloc(1, sizeof(**ret_who));
	return *ret_who ? 0 : err_set(-ENOMEM, "kinf_who");
}

void who_free(struct who **who)
{
	for (size_t i = 0; *who && i < PATHS_MAX; i++)
		path_free(&(*who)->parsed[i]);
	free(TAKE(*who));
}

int who_ask(struct who *who, struct kinf_snapshot *snapshot, const char *what)
{
	CHECK_OBJ(snapshot, KINF_SNAPSHOT_MAGIC);
	who->snapshot = snapshot;
	int r = kinf_held(snapshot);

	if (r == 0 && !what)
		r = err_say(-EINVAL, "what is asked for is NULL");
	if (r == 0)
		r = who_read(who, what);
	return r < 0 ? kinf_result(snapshot->kinf, r) : r;
}

int who_go_on(struct who *who, struct kinf_snapshot *snapshot, int when, size_t limit,
	kinf_who_fn *fn, void *arg)
{
	who->snapshot = snapshot;
	who->fn = fn;
	who->arg = arg;
	int r = who->is_former ? 0 : who_present(who);
	if (r == 0 && when != KINF_WHO_NOW && (when != KINF_WHO_LAST || !who->given)) {
		if (!who->is_former && !who->given)
			who->value = who->values;
		who->is_former = true;
		r = who_former(who, limit);
	}
	if (r != 0 || who->given)
		return r < 0 ? kinf_result(snapshot->kinf, r) : r;
	return kinf_outcome(snapshot->kinf, NOT_FOUND,
		when == KINF_WHO_NOW ? "no pod has it now"
				     : "no pod has it, and none had it within the retained "
				       "history");
}

int kinf_who(struct kinf_snapshot *snapshot, const char *what, int when, kinf_who_fn *fn, void *arg)
{
	CLEANUP(who_free) struct who *who = NULL;
	int r = who_new(&who);

	if (r < 0)
		return kinf_result(snapshot->kinf, r);
	r = who_ask(who, snapshot, what);
	return r == 0 ? who_go_on(who, snapshot, when, SIZE_MAX, fn, arg) : r;
}
