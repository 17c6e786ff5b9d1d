/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf describe FEED [NAME...] | FEED/NAME...: objects as kubectl describes them (print/describe),
 * with their history in the store, also of deleted objects while it is retained.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/output.h"
#include "common/text/timestamp.h"
#include "print/describe/describe.h"
#include "print/fields.h"
#include "print/print.h"
#include "print/table/age.h"
#include "reader/handle.h"
#include "store/read/snapshot.h"

struct describe_command {
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
	struct kinf_feed_info info; /* of the first feed of the name */
	const char *feed;
	struct buf out;
	size_t found;
	bool failed;      /* an error was printed */
	struct past when; /* all zeroes: now */
};

/* ---- history ------------------------------------------------------------ */

static void describe_time(struct buf *out, uint64_t time_ns)
{
	char text[TIMESTAMP_SIZE], age[AGE_SIZE];

	timestamp_seconds(time_ns, text);
	age_since(time_ns, age);
	buf_printf(out, "%s (%s ago)", text, age);
}

#define HISTORY_ROWS 10
#define CHANGED_MAX  100 /* bytes of the names of changed fields */

struct object_history {
	struct table table;
	struct buf rows;
	const char *resource;
	struct kinf_object *before;  /* of the next row; NULL: there is none */
	struct kinf_object *deleted; /* the last state, if the newest change is a deletion */
	uint64_t deleted_ns;
	size_t changes, seen;
};

static void describe_history_release(struct object_history *history)
{
	table_release(&history->table);
	buf_release(&history->rows);
	free(history->before);
	free(history->deleted);
}

static int describe_history_count(void *arg, const struct kinf_change *change)
{
	struct object_history *history = arg;

	(void)change;
	history->changes++;
	return 0;
}

/* Appends the names of the changed fields of CHANGE, as many as fit into a line. */
static int describe_put_changed(
	const struct object_history *history, const struct kinf_change *change, struct buf *out)
{
	size_t n;

	if (!history->before || strcmp(change->type, "MODIFIED") != 0)
		return 0;
	int r = fields_put(
		FIELDS_NAMES, history->resource, history->before, &change->object, out, &n);
	if (r < 0 || out->size <= CHANGED_MAX)
		return r;
	size_t end = CHANGED_MAX;
	while (end && out->data[end] != ',')
		end--;
	buf_truncate(out, end);
	buf_str(out, end ? ", ..." : "...");
	return buf_error(out);
}

/* Adds a row for each of the last changes. */
static int describe_history_add(void *arg, const struct kinf_change *change)
{
	struct object_history *history = arg;
	char event[24], type[48], version[80];
	CLEANUP(buf_release) struct buf when = BUF_INIT, changed = BUF_INIT;
	const struct kinf_object *object = &change->object;
	size_t left = history->changes - ++history->seen;

	if (left > HISTORY_ROWS)
		return 0;
	int r = left < HISTORY_ROWS ? describe_put_changed(history, change, &changed) : 0;
	free(TAKE(history->before));
	if (r == 0 && left)
		r = kinf_object_copy(object, &history->before);
	if (r < 0 || left == HISTORY_ROWS)
		return r;
	free(TAKE(history->deleted));
	if (strcmp(change->type, "DELETED") == 0) {
		history->deleted_ns = change->time_ns;
		r = kinf_object_copy(object, &history->deleted);
		if (r < 0)
			return r;
	}
	describe_time(&when, change->time_ns);
	(void)snprintf(event, sizeof(event), "%" PRIu64, change->event);
	(void)snprintf(type, sizeof(type), "%s%s", change->type,
		change->final_state_unknown ? " (found missing)" : "");
	(void)snprintf(version, sizeof(version), "%.*s", (int)object->resource_version_size,
		object->resource_version);
	r = buf_error(&when);
	return r < 0 ? r
		     : table_row(&history->table,
			       (const char *const[]){
				       event, type, version, buf_cstr(&when), buf_cstr(&changed)},
			       &history->rows);
}

/* ---- one object --------------------------------------------------------- */

static int describe_one(struct describe_command *d, const struct kinf_object *object,
	const struct object_history *history)
{
	const char *slash = memchr(object->key, '/', object->key_size);
	struct bytes name = print_name(object);
	struct buf *out = &d->out;
	int r = 0;

	buf_str(out, d->found++ ? "\n\n" : "");
	if (history->deleted) {
		buf_str(out, "Deleted:  ");
		describe_time(out, history->deleted_ns);
		buf_byte(out, '\n');
	}
	if (object->body_size) {
		const struct describe_object described = {.resource = d->info.resource,
			.body = BYTES(object->body, object->body_size),
			.snapshot = d->snapshot,
			.now_ns = age_now_ns()};

		r = describe_put(&described, out);
	} else { /* metadata alone, of a deletion */
		buf_printf(out, "Name:       %.*s\n", BYTES_ARG(name));
		if (slash)
			buf_printf(
				out, "Namespace:  %.*s\n", (int)(slash - object->key), object->key);
		buf_printf(out, "UID:        %.*s\n", (int)object->uid_size, object->uid);
	}
	if (r == 0 && history->seen) {
		if (history->changes > HISTORY_ROWS)
			buf_printf(out,
				"History: the last %d of %zu versions; 'kinf history %s %.*s' "
				"shows all\n  ",
				HISTORY_ROWS, history->changes, d->feed, (int)object->key_size,
				object->key);
		else
			buf_str(out, "History:\n  ");
		print_indented(out, buf_bytes(&history->rows));
	}
	r = snapshot_made(d->snapshot->snapshot, r);
	if (r == 0)
		r = output_text(out);
	if (r < 0) {
		(void)command_fail(r);
		d->failed = true;
	}
	return r;
}

/* Describes the object with the history of its changes, oldest first. IN: NULL for cluster-scoped
 * kinds. */
static int describe_key(struct describe_command *d, const char *in, const char *name)
{
	static const char *const heads[] = {
		"EVENT", "TYPE", "RESOURCEVERSION", "RECORDED", "CHANGED"};
	CLEANUP(describe_history_release)
	struct object_history history = {.rows = BUF_INIT, .resource = d->info.resource};
	struct kinf_object object;

	table_init(&history.table, heads, ARRAY_SIZE(heads));
	int r = kinf_history(d->snapshot, d->feed, in, name, describe_history_count, &history);
	if (r == 0)
		r = kinf_history(d->snapshot, d->feed, in, name, describe_history_add, &history);
	if (r != 0)
		return r;
	r = table_settle(&history.table, &history.rows);
	if (r < 0) {
		(void)command_fail(r);
		d->failed = true;
	}
	if (r >= 0)
		r = kinf_get(d->snapshot, d->feed, in, name, &object);
	if (r == KINF_FOUND)
		r = describe_one(d, &object, &history);
	else if (r == KINF_NOT_FOUND && history.deleted)
		r = describe_one(d, history.deleted, &history);
	return r;
}

/* Describes the existing objects NAME of each namespace. */
static int describe_in_all(struct describe_command *d, const char *name)
{
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	struct kinf_query query = {.size = sizeof(query), .feed = d->feed, .prefix = name};
	struct kinf_object object;
	size_t size = strlen(name), before = d->found;
	int r = kinf_list(d->snapshot, &query, &list);
	while (r == KINF_FOUND && (r = kinf_list_next(list, &object)) == KINF_FOUND) {
		if (print_name(&object).size != size)
			continue;
		AUTO_FREE char *in = strndup(object.key, object.key_size - size - 1);
		r = in ? describe_key(d, in, name) : err_set(-ENOMEM, "copying a namespace");
		if (r != KINF_FOUND)
			return r;
	}
	return r != KINF_END ? r : d->found > before ? KINF_FOUND : KINF_NOT_FOUND;
}

/* Describes the objects of QUERY. */
static int describe_list(struct describe_command *d, const struct kinf_query *query)
{
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	struct kinf_object object;
	int r = kinf_list(d->snapshot, query, &list);

	while (r == KINF_FOUND && (r = kinf_list_next(list, &object)) == KINF_FOUND) {
		struct bytes name = print_name(&object);
		AUTO_FREE char *key = strndup(object.key, object.key_size);

		if (!key)
			return err_set(-ENOMEM, "copying a name");
		char *slash =
			name.size < object.key_size ? key + object.key_size - name.size - 1 : NULL;
		if (slash)
			*slash = '\0';
		r = describe_key(d, slash ? key : NULL, slash ? slash + 1 : key);
		if (r != KINF_FOUND)
			return r;
	}
	return r == KINF_END ? KINF_FOUND : r;
}

/* ---- the command -------------------------------------------------------- */

static void describe_release(struct describe_command *d)
{
	buf_release(&d->out);
	kinf_snapshot_close(&d->snapshot);
	kinf_close(&d->kinf);
}

/* Describes the object NAME of FEED; NULL: those of QUERY. Returns the exit status. */
static int describe_operand(struct describe_command *d, const struct options *options,
	const char *feed, char *name, struct kinf_query query)
{
	const char *in = query.namespace_;

	d->feed = feed;
	int r = command_first_feed(d->snapshot, feed, &d->info);
	if (r == 0 && !d->when.event) /* the past is never stale */
		r = command_note_state(d->snapshot, feed, in, 0);
	if (r >= 0 && name && d->info.namespaced && command_cut_name(&name, &in) < 0)
		return command_usage(options, ERR_SYNTAX);
	if (!d->info.namespaced)
		query.namespace_ = in = NULL;
	query.feed = feed;
	if (r >= 0)
		r = !name                       ? describe_list(d, &query)
		    : d->info.namespaced && !in ? describe_in_all(d, name)
						: describe_key(d, in, name);
	if (r == KINF_NOT_FOUND) { /* as kubectl: names that begin with it */
		size_t before = d->found;

		query.prefix = name;
		query.namespace_ = in;
		r = describe_list(d, &query);
		if (r == KINF_FOUND && d->found == before)
			r = KINF_NOT_FOUND;
	}
	if (r == KINF_AGAIN)
		return command_fail_again(d->kinf, d->snapshot, feed, in);
	if (r == KINF_NOT_FOUND)
		(void)fprintf(stderr, "Error: %s \"%s%s%s\" not found%s\n", d->info.resource,
			in ? in : "", in ? "/" : "", name,
			d->info.namespaced && !in
				? "; for a deleted one write -n NAMESPACE, or NAMESPACE/NAME"
				: "");
	else if (r == KINF_GONE)
		(void)command_fail_kinf(d->kinf);
	else if (r < 0 && !d->failed)
		(void)command_fail_feed(d->kinf, feed, r);
	else if (!name && !d->found)
		(void)fprintf(stderr,
			in ? "No resources found in %s namespace.\n" : "No resources found%s\n",
			in ? in : "");
	return r == 0 ? PROC_OK : PROC_FAILED;
}

/* Describes the objects of N operands: FEED[,FEED...] NAME..., FEED/NAME... or FEED[,FEED...].
 * Returns the exit status. */
static int describe_operands(struct describe_command *d, const struct options *options,
	char **operands, size_t n, const struct kinf_query *query)
{
	bool slashed = strchr(operands[0], '/') != NULL;
	int status = PROC_OK, one;

	for (size_t i = 0; slashed && i < n; i++) {
		char *name = strchr(operands[i], '/');

		*name++ = '\0';
		one = describe_operand(d, options, operands[i], name, *query);
		status = one == PROC_OK ? status : one;
	}
	for (char *feed = operands[0], *end; !slashed && feed; feed = end) {
		end = strchr(feed, ',');
		if (end)
			*end++ = '\0';
		for (size_t i = n > 1; i < n; i++) {
			one = describe_operand(d, options, feed, i ? operands[i] : NULL, *query);
			status = one == PROC_OK ? status : one;
		}
	}
	return status;
}

/* Checks the operands, at least one. Returns 0 or ERR_SYNTAX. */
static int describe_check(char **operands, size_t n, const struct query_args *args)
{
	bool slashed = strchr(operands[0], '/') != NULL;

	for (size_t i = !slashed; i < n; i++) {
		const char *slash = strchr(operands[i], '/');

		if (slashed && !slash)
			return err_say(ERR_SYNTAX,
				"'%s': write each as FEED/NAME, or 'FEED NAME...'", operands[i]);
		if (!*operands[i] || (slashed && !slash[1]))
			return err_say(ERR_SYNTAX, "a name is empty");
	}
	if ((slashed || n > 1) && (args->labels || args->fields || args->index.n || args->prefix))
		return err_say(ERR_SYNTAX, "names are given: -l, --field-selector, --index and "
					   "--prefix can't be used with them");
	return 0;
}

struct describe_args {
	const char *at;
};

static const struct option_spec describe_options[] = {
	COMMAND_AT(offsetof(struct describe_args, at))};

int command_describe(int argc, char **argv)
{
	CLEANUP(describe_release) struct describe_command d = {.out = BUF_INIT};
	CLEANUP(query_args_release) struct query_args args = {0};
	struct describe_args own = {0};
	struct config_flags flags = {0};
	struct kinf_query query;
	int first;
	const struct options_group groups[] = {
		query_options(&args),
		{"Options", describe_options, ARRAY_SIZE(describe_options), &own},
		config_common_options(&flags),
	};
	const struct options options = {"kinf describe", "FEED[,FEED...] [NAME...] | FEED/NAME...",
		"Describes objects as kubectl does, and their history; without a name all that are "
		"selected. If no object has the name, those whose names begin with it. A deleted "
		"object is described also if it is named, as long as its "
		"history is kept.",
		groups, ARRAY_SIZE(groups), false};
	int r = options_parse(&options, argc, argv, &first);

	if (r == 0 && first == argc)
		r = options_bad(&options, "write a feed, and names");
	if (r != 0)
		return command_usage(&options, r);
	r = describe_check(argv + first, (size_t)(argc - first), &args);
	if (r == 0)
		r = query_from_args(&args, argv[first], &query);
	if (r == 0)
		r = command_read_at(own.at, &d.when);
	if (r < 0)
		return command_usage(&options, r);
	if (command_open(&flags, &d.kinf) < 0 || command_snapshot(d.kinf, &d.snapshot) < 0 ||
		command_go_to(d.kinf, d.snapshot, &d.when) < 0)
		return PROC_FAILED;
	return describe_operands(&d, &options, argv + first, (size_t)(argc - first), &query);
}
