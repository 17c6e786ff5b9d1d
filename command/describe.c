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
	struct command_view view;
	struct kinf_feed_info info; /* of the first feed of the name */
	const char *feed;
	struct buf out;
	size_t found;
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
		FIELDS_NAMES, history->resource, NULL, history->before, &change->object, out, &n);
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
	r = buf_error(&when);
	return r < 0 ? r
		     : table_print(&history->table, &history->rows,
			       "%" PRIu64 "\t%s%s\t%.*s\t%s\t%s", change->event, change->type,
			       change->final_state_unknown ? " (found missing)" : "",
			       (int)object->resource_version_size, object->resource_version,
			       buf_cstr(&when), buf_cstr(&changed));
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
			.snapshot = d->view.snapshot,
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
	r = snapshot_made(d->view.snapshot->snapshot, r);
	return r < 0 ? r : output_text(out);
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
	int r = kinf_history(d->view.snapshot, d->feed, in, name, describe_history_count, &history);
	if (r == 0)
		r = kinf_history(
			d->view.snapshot, d->feed, in, name, describe_history_add, &history);
	if (r != 0)
		return r;
	r = table_settle(&history.table, &history.rows);
	if (r >= 0)
		r = kinf_get(d->view.snapshot, d->feed, in, name, &object);
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
	int r = kinf_list(d->view.snapshot, &query, &list);
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
	int r = kinf_list(d->view.snapshot, query, &list);

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
	command_view_release(&d->view);
}

/* Describes the object NAME of TARGET; NULL: those of QUERY. Returns the exit status. */
static int describe_operand(struct describe_command *d, const struct target *target,
	const char *name, struct kinf_query query)
{
	AUTO_FREE char *copy = name ? strdup(name) : NULL;
	const char *in = query.namespace_;
	char *cut = copy;

	d->feed = query.feed = target->feed;
	int r = command_first_feed(d->view.snapshot, d->feed, &d->info);
	if (r < 0)
		return command_fail_read(d->view.kinf, d->feed, r);
	if (name && !copy)
		return command_fail(err_set(-ENOMEM, "copying a name"));
	r = command_note_state(&d->view, d->feed, in, 0);
	if (r != PROC_OK)
		return r;
	if (cut && d->info.namespaced)
		(void)command_cut_name(&cut, &in); /* targets_read() has checked it */
	if (!d->info.namespaced)
		in = NULL;
	query.namespace_ = in;
	r = !cut                        ? describe_list(d, &query)
	    : d->info.namespaced && !in ? describe_in_all(d, cut)
					: describe_key(d, in, cut);
	if (r == KINF_NOT_FOUND) { /* as kubectl: names that begin with it */
		size_t before = d->found;

		query.prefix = cut;
		r = describe_list(d, &query);
		if (r == KINF_FOUND && d->found == before)
			r = KINF_NOT_FOUND;
	}
	if (r == KINF_NOT_FOUND) {
		(void)fprintf(stderr, "Error: %s \"%s%s%s\" not found%s\n", d->info.resource,
			in ? in : "", in ? "/" : "", cut,
			d->info.namespaced && !in
				? "; for a deleted one write -n NAMESPACE, or NAMESPACE/NAME"
				: "");
		return PROC_FAILED;
	}
	if (r != KINF_FOUND)
		return command_fail_read(
			d->view.kinf, d->feed, r < 0 ? kinf_result(d->view.kinf, r) : r);
	if (!name && !d->found)
		(void)fprintf(stderr,
			in ? "No resources found in %s namespace.\n" : "No resources found%s\n",
			in ? in : "");
	return PROC_OK;
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
	CLEANUP(targets_release) struct targets targets = {.n = 0};
	struct describe_args own = {0};
	struct kinf_query query;
	int status = PROC_OK;
	struct command_line line = {
		.options = {"kinf describe", "FEED[,FEED...] [NAME...] | FEED/NAME...",
			"Describes objects as kubectl does, and their history; without a name all "
			"that are selected. If no object has the name, those whose names begin "
			"with it. A deleted object is described also if it is named, as long as "
			"its history is kept."},
		.groups = {query_options(&args),
			{"Options", describe_options, ARRAY_SIZE(describe_options), &own}},
		.takes = {1, SIZE_MAX, "write a feed, and names"},
	};
	int r = command_parse(&line, argc, argv);

	if (r == 0)
		r = targets_read(&targets, line.operands, line.n, &args);
	if (r == 0)
		r = query_from_args(&args, &query);
	if (r == 0)
		r = command_read_at(own.at, &d.view.when);
	if (r != 0)
		return command_usage(&line, r);
	if (command_view_open(&d.view, &line.flags) < 0)
		return PROC_FAILED;
	for (size_t t = 0; t < targets.n; t++) {
		const struct target *target = &targets.items[t];

		for (size_t i = 0; i < target->n_names || (!i && !target->n_names); i++) {
			int one = describe_operand(
				&d, target, target->n_names ? target->names[i] : NULL, query);
			status = one == PROC_OK ? status : one;
		}
	}
	return status;
}
