/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf history FEED NAME: each retained version of an object, with its changed fields.
 *
 * kinf log [FEED]: the retained changes of all objects, one a line.
 *
 * kinf diff FEED NAME --from EVENT: the differences between two versions of an object.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/output.h"
#include "common/text/timestamp.h"
#include "common/value/path.h"
#include "common/value/json.h"
#include "print/fields.h"
#include "print/table/age.h"
#include "print/table/display.h"
#include "reader/handle.h"
#include "store/read/snapshot.h"

#define LOG_MARGIN_NS (UINT64_C(60) * 1000000000)
#define OUT_FULL      65536

static void history_put_time(struct buf *out, uint64_t time_ns)
{
	char text[TIMESTAMP_SIZE];

	timestamp_milliseconds(time_ns, text);
	buf_str(out, text);
}

/* Appends who made the version, if known: the user that the import of an audit log has put into it,
 * else the managers. On a live cluster anyone may write such an annotation. managedFields of a
 * deleted object are of its last write, so they tell nothing of the deletion. */
static int history_put_author(struct buf *out, struct kinf_snapshot *snapshot,
	const struct kinf_change *change, bool *ret_is_user)
{
	const struct kinf_object *object = &change->object;
	struct snapshot *store = snapshot->snapshot;
	struct journal_meta meta;
	const char *user = "";
	size_t size = 0;
	int r = journal_meta(snapshot_journal(store), snapshot_journal_txn(store), &meta);

	if (r == 0 && object->body_size && journal_is_imported(&meta))
		r = kinf_object_path(
			object, "metadata.annotations['kinformer/audit-user']", &user, &size);
	*ret_is_user = size > 0;
	if (r >= 0 && size)
		display_bytes(BYTES(user, size), out);
	else if (r >= 0 && strcmp(change->type, "DELETED") != 0)
		r = fields_put_managers(object, out);
	return r < 0 ? r : buf_error(out);
}

/* The context of a line about a change. */
struct history_line {
	struct kinf_snapshot *snapshot;
	const char *feed, *resource;      /* FEED NULL: feed and key are not named */
	const struct path *fields;        /* only changes of these and below; NULL: all */
	const struct kinf_object *before; /* to compare it with; NULL: nothing is */
};

/* Appends CHANGE as a line of JSON. *RET_N: its changed fields. */
static int history_put_json(struct buf *out, const struct history_line *line,
	const struct kinf_change *change, size_t *ret_n)
{
	CLEANUP(buf_release) struct buf author = BUF_INIT;
	const struct kinf_object *object = &change->object;
	bool is_user;

	buf_printf(out, "{\"type\":\"%s\",\"event\":%" PRIu64 ",\"time\":\"", change->type,
		change->event);
	history_put_time(out, change->time_ns);
	buf_str(out, "\",\"resourceVersion\":");
	json_write_string(BYTES(object->resource_version, object->resource_version_size), out);
	if (change->final_state_unknown)
		buf_str(out, ",\"finalStateUnknown\":true");
	if (line->feed) {
		buf_str(out, ",\"feed\":");
		json_write_string(bytes_str(line->feed), out);
		buf_str(out, ",\"key\":");
		json_write_string(BYTES(object->key, object->key_size), out);
	}
	int r = history_put_author(&author, line->snapshot, change, &is_user);
	if (r == 0 && author.size) {
		buf_str(out, is_user ? ",\"user\":" : ",\"managers\":");
		json_write_string(buf_bytes(&author), out);
	}
	if (r == 0 && line->before) {
		buf_str(out, ",\"changes\":");
		r = fields_put(FIELDS_JSON, line->resource, line->fields, line->before, object, out,
			ret_n);
	}
	buf_str(out, "}\n");
	return r;
}

/* Ends a line after RESULT; writes the lines out if there are many. */
static int history_end_line(struct buf *out, struct kinf_snapshot *snapshot, int result)
{
	int r = result < 0 ? result : buf_error(out);

	if (r < 0 || out->size <= OUT_FULL)
		return r;
	r = snapshot_made(snapshot->snapshot, 0);
	return r < 0 ? r : output_write(out);
}

/* Returns the CLOCK_REALTIME of AGO_NS before now; 0: there is no limit. */
static uint64_t history_since(uint64_t ago_ns)
{
	uint64_t now_ns = proc_realtime_ns();

	return ago_ns && ago_ns < now_ns ? now_ns - ago_ns : 0;
}

/* ---- one object --------------------------------------------------------- */

struct object_args {
	const char *namespace_, *output, *fields;
	uint64_t since_ns;
};

#define AT(field) offsetof(struct object_args, field)

static const struct option_spec history_options[] = {
	{'n', "namespace", OPTION_NAME, AT(namespace_), "NS",
		"the object's namespace; NS/NAME names it also"},
	{'o', "output", OPTION_WORD, AT(output), "FORMAT",
		"text, or json (one version a line, with the old and new values of its fields)",
		"text|json"},
	{0, "since", OPTION_DURATION, AT(since_ns), "D",
		"only versions of the last D, such as 10m"},
	{0, "fields", OPTION_TEXT, AT(fields), "PATH",
		"only changes of this field and of those below it, such as spec or "
		"status.conditions"},
};
#undef AT

/* A walk over the versions of one object. */
struct object_walk {
	struct command_view view;
	struct kinf_feed_info info;
	const char *feed, *namespace_, *name;
	bool json;
	uint64_t since_ns;          /* CLOCK_REALTIME */
	const struct path *fields;  /* only changes of these and below; NULL: all */
	struct kinf_object *before; /* the previous version; NULL: none */
	struct kinf_object *from;   /* of diff: the state as of FROM_EVENT */
	uint64_t from_event, first_event;
	struct buf out;
};

static void history_release(struct object_walk *walk)
{
	free(walk->before);
	free(walk->from);
	buf_release(&walk->out);
	command_view_release(&walk->view);
}

static int history_print_version(struct object_walk *walk, const struct kinf_change *change)
{
	struct buf *out = &walk->out;
	const struct kinf_object *object = &change->object;
	bool compare = walk->before && strcmp(change->type, "MODIFIED") == 0;
	char age[AGE_SIZE];
	size_t n = 0, begin = out->size;
	bool is_user;
	int r;

	if (change->time_ns < walk->since_ns)
		return 0;
	if (walk->json) {
		const struct history_line line = {.snapshot = walk->view.snapshot,
			.resource = walk->info.resource,
			.fields = walk->fields,
			.before = compare ? walk->before : NULL};

		r = history_put_json(out, &line, change, &n);
		if (walk->fields && compare && !n)
			out->size = begin;
		return r;
	}
	age_since(change->time_ns, age);
	buf_printf(out, "%" PRIu64 "  %s%s  ", change->event, change->type,
		change->final_state_unknown ? " (found missing)" : "");
	history_put_time(out, change->time_ns);
	buf_printf(out, " (%s ago)  rv %.*s", age, (int)object->resource_version_size,
		object->resource_version);
	size_t size = out->size;
	buf_str(out, "  by ");
	size_t named = out->size;
	r = history_put_author(out, walk->view.snapshot, change, &is_user);
	if (out->size == named)
		out->size = size;
	buf_byte(out, '\n');
	if (r == 0 && compare)
		r = fields_put(FIELDS_LINES, walk->info.resource, walk->fields, walk->before,
			object, out, &n);
	if (walk->fields && compare && !n)
		out->size = begin;
	else if (r == 0 && compare && !n)
		buf_str(out, "    (only metadata.resourceVersion or metadata.managedFields)\n");
	return r;
}

static int history_version(void *arg, const struct kinf_change *change)
{
	struct object_walk *walk = arg;
	int r = history_end_line(
		&walk->out, walk->view.snapshot, history_print_version(walk, change));

	free(TAKE(walk->before));
	if (r == 0 && strcmp(change->type, "DELETED") != 0)
		r = kinf_object_copy(&change->object, &walk->before);
	return r;
}

/* Opens the store for the object of LINE: FEED NAME, FEED NS/NAME or FEED/NAME, cut in place.
 * Returns PROC_OK, or the exit status after a printed error. */
static int history_open(struct object_walk *walk, struct command_line *line, const char *namespace_)
{
	char *name = line->n == 2 ? line->operands[1] : strchr(line->operands[0], '/');

	if (line->n == 1 && name)
		*name++ = '\0';
	if (!name || !*name)
		return command_usage(line, options_bad(&line->options, "write a feed and a name"));
	walk->feed = line->operands[0];
	if (command_view_open(&walk->view, &line->flags) < 0)
		return PROC_FAILED;
	int r = command_first_feed(walk->view.snapshot, walk->feed, &walk->info);
	if (r < 0)
		return command_fail_read(walk->view.kinf, walk->feed, r);
	r = command_note_state(&walk->view, walk->feed, namespace_, 0);
	if (r != PROC_OK)
		return r;
	r = walk->info.namespaced ? command_cut_name(&name, &namespace_) : 0;
	if (r == 0 && walk->info.namespaced && !namespace_)
		r = options_bad(&line->options,
			"%s have namespaces: write -n NAMESPACE, or NAMESPACE/%s",
			walk->info.resource, name);
	if (r < 0)
		return command_usage(line, r);
	walk->namespace_ = walk->info.namespaced ? namespace_ : NULL;
	walk->name = name;
	return PROC_OK;
}

/* Returns the exit status after the walk ended with RESULT. */
static int history_end(struct object_walk *walk, int result)
{
	if (result == KINF_NOT_FOUND)
		return command_not_found(&walk->info, walk->namespace_, walk->name);
	if (result != 0)
		return command_fail_read(walk->view.kinf, walk->feed, result);
	result = snapshot_made(walk->view.snapshot->snapshot, 0);
	if (result == 0)
		result = output_text(&walk->out);
	return result < 0 ? command_fail(result) : PROC_OK;
}

int command_history(int argc, char **argv)
{
	CLEANUP(history_release) struct object_walk walk = {.out = BUF_INIT};
	CLEANUP(path_free) struct path *path = NULL;
	struct object_args args = {0};
	struct command_line line = {
		.options = {"kinf history", "FEED NAME | FEED/NAME",
			"Prints the retained versions of an object, oldest first: when each was "
			"recorded, and the fields that it changed. 'retention' in kinf.yaml says "
			"how long they are kept."},
		.groups = {{"Options", history_options, ARRAY_SIZE(history_options), &args}},
		.takes = {1, 2, "write a feed and a name"},
	};
	int r = command_parse(&line, argc, argv);

	if (r == 0 && args.fields)
		r = path_parse(args.fields, &path);
	if (r != 0)
		return command_usage(&line, r);
	walk.json = command_is_json(args.output);
	walk.since_ns = history_since(args.since_ns);
	walk.fields = path;
	r = history_open(&walk, &line, args.namespace_);
	if (r != PROC_OK)
		return r;
	return history_end(&walk, kinf_history(walk.view.snapshot, walk.feed, walk.namespace_,
					  walk.name, history_version, &walk));
}

/* ---- two versions ------------------------------------------------------- */

static int history_keep_two(void *arg, const struct kinf_change *change)
{
	struct object_walk *walk = arg;
	struct kinf_object **to = change->event <= walk->from_event ? &walk->from : &walk->before;

	if (!walk->first_event)
		walk->first_event = change->event;
	free(TAKE(*to));
	/* A deleted object is kept without a body. */
	int r = kinf_object_copy(&change->object, to);
	if (r == 0 && strcmp(change->type, "DELETED") == 0)
		(*to)->body_size = 0;
	return r;
}

int history_diff(struct command_line *line, const char *namespace_, uint64_t from)
{
	CLEANUP(history_release) struct object_walk walk = {.out = BUF_INIT, .from_event = from};
	size_t differences = 0;
	int r = history_open(&walk, line, namespace_);

	if (r != PROC_OK)
		return r;
	if (from > kinf_snapshot_event(walk.view.snapshot)) {
		(void)fprintf(stderr,
			"Error: event %" PRIu64 " is not there yet; the newest is %" PRIu64 "\n",
			from, kinf_snapshot_event(walk.view.snapshot));
		return PROC_FAILED;
	}
	r = kinf_history(
		walk.view.snapshot, walk.feed, walk.namespace_, walk.name, history_keep_two, &walk);
	if (r == 0 && !walk.from) {
		(void)fprintf(stderr,
			"Error: the first retained version of the object is event %" PRIu64
			"; 'kinf history' lists them\n",
			walk.first_event);
		return PROC_FAILED;
	}
	if (r == 0 && walk.before && !walk.from->body_size != !walk.before->body_size) {
		differences = 1;
		buf_str(&walk.out, walk.before->body_size ? "created since\n" : "deleted since\n");
	} else if (r == 0 && walk.before) {
		r = fields_put(FIELDS_LINES, walk.info.resource, NULL, walk.from, walk.before,
			&walk.out, &differences);
		r = snapshot_made(walk.view.snapshot->snapshot, r);
		if (r < 0)
			return command_fail(r);
	}
	r = history_end(&walk, r);
	return r == PROC_OK && differences ? PROC_FAILED : r;
}

/* ---- the log ------------------------------------------------------------ */

struct log_args {
	const char *namespace_, *output, *fields;
	uint64_t since_ns, from;
};

#define AT(field) offsetof(struct log_args, field)

static const struct option_spec log_options[] = {
	{'n', "namespace", OPTION_NAME, AT(namespace_), "NS", "only objects of this namespace"},
	{0, "since", OPTION_DURATION, AT(since_ns), "D", "only changes of the last D, such as 10m"},
	{0, "from", OPTION_NUMBER, AT(from), "N", "from this event on"},
	{0, "fields", OPTION_TEXT, AT(fields), "PATH",
		"only changes of this field and of those below it, with their values"},
	{'o', "output", OPTION_WORD, AT(output), "FORMAT",
		"text, or json (one change a line, with the old and new values of its fields)",
		"text|json"},
};
#undef AT

struct log {
	struct command_view view;
	struct log_args args;
	uint64_t since_ns;   /* CLOCK_REALTIME */
	struct path *fields; /* NULL: all */
	bool json;
	struct buf out;
};

static void log_release(struct log *log)
{
	buf_release(&log->out);
	path_free(&log->fields);
	command_view_release(&log->view);
}

static int log_change(void *arg, const struct snapshot_feed *feed, const struct kinf_change *change,
	const struct kinf_object *before)
{
	struct log *log = arg;
	struct buf *out = &log->out;
	const struct kinf_object *object = &change->object;
	const char *name = feed->definition.name, *resource = feed->definition.resource;
	const char *in = log->args.namespace_;
	const struct path *under = log->fields;
	bool compare = before && strcmp(change->type, "MODIFIED") == 0;
	size_t n = 0, begin = out->size;
	int r = 0;

	if (change->time_ns < log->since_ns || (under && !compare) ||
		(in && (strlen(in) >= object->key_size || object->key[strlen(in)] != '/' ||
			       memcmp(object->key, in, strlen(in)) != 0)))
		return 0;
	if (log->json) {
		const struct history_line line = {.snapshot = log->view.snapshot,
			.feed = name,
			.resource = resource,
			.fields = under,
			.before = compare ? before : NULL};

		r = history_put_json(out, &line, change, &n);
	} else {
		history_put_time(out, change->time_ns);
		buf_printf(out, " %" PRIu64 " %s %s ", change->event, change->type, name);
		display_bytes(BYTES(object->key, object->key_size), out);
		if (change->final_state_unknown)
			buf_str(out, " (found missing)");
		buf_byte(out, ' ');
		if (compare && !under)
			r = fields_put(FIELDS_NAMES, resource, NULL, before, object, out, &n);
		if (out->size > begin && out->data[out->size - 1] == ' ')
			out->size--;
		buf_byte(out, '\n');
		if (under)
			r = fields_put(FIELDS_LINES, resource, under, before, object, out, &n);
	}
	if (under && !n)
		buf_truncate(out, begin);
	return history_end_line(out, log->view.snapshot, r);
}

/* Returns an event before the time SINCE_NS, from which the log is read; 0: its beginning. */
static uint64_t log_begin(const struct log *log)
{
	CLEANUP(kinf_snapshot_close) struct kinf_snapshot *snapshot = NULL;
	/* Events may be recorded a little out of the order of their times. */
	struct past then = {
		.time_ns = log->since_ns > LOG_MARGIN_NS ? log->since_ns - LOG_MARGIN_NS : 0};
	int r = then.time_ns ? kinf_snapshot_open(log->view.kinf, &snapshot) : NOT_FOUND;

	if (r == 0)
		r = past_enter(snapshot, &then);
	return r == 0 ? then.event : 0;
}

int command_log(int argc, char **argv)
{
	CLEANUP(log_release) struct log log = {.out = BUF_INIT};
	struct command_line line = {
		.options = {"kinf log", "[FEED]",
			"Prints the retained changes of a feed, or of all, one a line: when each "
			"was recorded, its event number, and the fields that it changed. 'kinf "
			"watch' prints those to come."},
		.groups = {{"Options", log_options, ARRAY_SIZE(log_options), &log.args}},
		.takes = {0, 1, "write one feed, or none for all"},
	};
	int r = command_parse(&line, argc, argv);

	if (r == 0 && log.args.fields)
		r = path_parse(log.args.fields, &log.fields);
	if (r != 0)
		return command_usage(&line, r);
	const char *feed = line.n ? line.operands[0] : NULL;
	log.json = command_is_json(log.args.output);
	log.since_ns = history_since(log.args.since_ns);
	if (command_view_open(&log.view, &line.flags) < 0)
		return PROC_FAILED;
	struct kinf_feed_info info = {.size = sizeof(info)};
	if (!feed && command_first_feed(log.view.snapshot, NULL, &info) == 0 && !*info.full_name)
		return command_fail_read(log.view.kinf, NULL, KINF_NO_FEED);
	r = command_note_state(&log.view, feed, log.args.namespace_, 0);
	if (r != PROC_OK)
		return r;
	uint64_t from = log_begin(&log);
	if (from < log.args.from)
		from = log.args.from;
	r = history_log(log.view.snapshot, feed, &from, SIZE_MAX, log_change, &log);
	if (r != 0)
		return command_fail_read(log.view.kinf, feed, r);
	uint64_t begin = snapshot_horizon(log.view.snapshot->snapshot) + 1;
	if (log.args.from && log.args.from < begin)
		(void)fprintf(stderr,
			"note: the changes before event %llu are no longer kept (a larger "
			"'retention' in kinf.yaml keeps more)\n",
			(unsigned long long)begin);
	r = snapshot_made(log.view.snapshot->snapshot, 0);
	if (r == 0)
		r = output_text(&log.out);
	return r < 0 ? command_fail(r) : PROC_OK;
}
