/* SPDX-License-Identifier: Apache-2.0 */
/* kinf describe FEED NAME: one object, what names it, and what the store keeps of its past. Also of one
 * that was deleted, for as long as that is retained. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/value.h"
#include "common/value/yaml.h"
#include "reader/command/command.h"
#include "reader/command/print.h"
#include "reader/table/age.h"
#include "reader/table/display.h"

#define LABEL_WIDTH 18

struct describe_args {
	const char *namespace_;
};

static const struct option_spec describe_options[] = {
	{'n', "namespace", OPTION_TEXT, offsetof(struct describe_args, namespace_), "NS",
		"the object's namespace; it may stand before the name too, as NS/NAME"},
};

struct describe {
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
	struct kinf_feed_info status; /* of the first feed behind the name */
	const char *feed;
	struct buf out;
	size_t found;
	bool said; /* what went wrong */
};

/* ---- lines ---- */

/* LABEL once, then blanks: values of one label stand below each other. */
static void put_label(struct buf *out, const char *label)
{
	buf_printf(out, "%s%s%*s", label, *label ? ":" : "",
		(int)(LABEL_WIDTH - strlen(label) - (*label != '\0')), "");
}

static void put_text(struct buf *out, const char *label, struct bytes text)
{
	put_label(out, label);
	display_bytes(text, out);
	buf_byte(out, '\n');
}

static void put_time(struct buf *out, uint64_t time_ns)
{
	time_t seconds = (time_t)(time_ns / 1000000000);
	struct tm parts;
	char text[32] = "", age[AGE_SIZE];

	if (gmtime_r(&seconds, &parts))
		(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
	age_since(time_ns, age);
	buf_printf(out, "%s (%s ago)", text, age);
}

/* Labels or annotations: KEY=VALUE, one a line. */
static int put_map(struct buf *out, const char *label, const struct kinf_object *object,
	const char *path)
{
	struct kinf_object part;
	struct value map, item;
	struct value_iter pairs;
	struct bytes key;
	size_t n = 0;
	int r = kinf_object_part(object, path, &part);

	if (r == KINF_FOUND)
		r = value_read(BYTES(part.body, part.body_size), &map);
	if (r == 0)
		value_iter_init(&pairs, &map);
	while (r == 0 && (r = value_iter_next(&pairs, &key, &item)) == FOUND) {
		put_label(out, n++ ? "" : label);
		display_bytes(key, out);
		buf_byte(out, '=');
		r = display_line(&item, out);
		buf_byte(out, '\n');
	}
	if (!n)
		put_text(out, label, BYTES_LIT("<none>"));
	return r < 0 ? r : buf_error(out);
}

static int put_owner(void *arg, const struct kinf_object *owner)
{
	struct buf *out = arg;
	const char *kind = "", *name = "";
	size_t kind_size = 0, name_size = 0;

	/* What is missing stays empty. */
	(void)kinf_object_path(owner, "kind", &kind, &kind_size);
	(void)kinf_object_path(owner, "name", &name, &name_size);
	put_label(out, "Owner");
	display_bytes(BYTES(kind, kind_size), out);
	buf_byte(out, '/');
	display_bytes(BYTES(name, name_size), out);
	buf_byte(out, '\n');
	return buf_error(out);
}

/* ---- the past ---- */

struct past {
	struct table table;
	struct buf rows;
	struct kinf_object *deleted; /* the last state, when the newest change is a deletion */
	uint64_t deleted_ns;
	size_t changes;
};

static void past_release(struct past *past)
{
	table_release(&past->table);
	buf_release(&past->rows);
	free(past->deleted);
}

static int take_change(void *arg, const struct kinf_change *change)
{
	struct past *past = arg;
	char event[24], type[48], version[80];
	CLEANUP(buf_release) struct buf when = BUF_INIT;
	const struct kinf_object *object = &change->object;

	past->changes++;
	free(TAKE(past->deleted));
	if (strcmp(change->type, "DELETED") == 0) {
		past->deleted_ns = change->time_ns;
		int r = kinf_object_copy(object, &past->deleted);
		if (r < 0)
			return r;
	}
	put_time(&when, change->time_ns);
	(void)snprintf(event, sizeof(event), "%" PRIu64, change->event);
	(void)snprintf(type, sizeof(type), "%s%s", change->type,
		change->final_state_unknown ? " (found missing)" : "");
	(void)snprintf(version, sizeof(version), "%.*s", (int)object->resource_version_size,
		object->resource_version);
	return table_row(&past->table, (const char *const[]){event, type, version, buf_cstr(&when)},
		&past->rows);
}

/* Oldest first. */
static int read_past(struct describe *d, const char *in, const char *name, struct past *past)
{
	static const char *const heads[] = {"EVENT", "TYPE", "RESOURCEVERSION", "RECORDED"};

	*past = (struct past){.rows = BUF_INIT};
	table_init(&past->table, heads, ARRAY_SIZE(heads));
	int r = kinf_history(d->snapshot, d->feed, in, name, take_change, past);
	if (r == 0)
		r = table_settle(&past->table, &past->rows);
	return r;
}

/* ---- one object ---- */

/* Below its head, moved right. */
static void put_section(struct buf *out, const char *head, struct bytes text)
{
	const char *p = text.data, *end = p + text.size;

	buf_printf(out, "%s:\n", head);
	while (p < end) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		const char *next = newline ? newline + 1 : end;

		buf_str(out, "  ");
		buf_put(out, p, (size_t)(next - p));
		p = next;
	}
}

static int put_body(struct buf *out, const struct kinf_object *object)
{
	CLEANUP(buf_release) struct buf yaml = BUF_INIT;
	int r = yaml_write(BYTES(object->body, object->body_size), &yaml);

	if (r == 0)
		put_section(out, "Object", buf_bytes(&yaml));
	return r < 0 ? r : buf_error(out);
}

static int put_object(struct describe *d, const struct kinf_object *object, const struct past *past)
{
	const char *text = "", *slash = memchr(object->key, '/', object->key_size);
	struct buf *out = &d->out;
	size_t size = 0;

	buf_str(out, d->found++ ? "\n\n" : "");
	put_text(out, "Name", print_name(object));
	if (slash)
		put_text(out, "Namespace", BYTES(object->key, (size_t)(slash - object->key)));
	put_text(out, "Kind", bytes_str(d->status.kind));
	put_text(out, "UID", BYTES(object->uid, object->uid_size));
	put_text(out, "Resource version",
		BYTES(object->resource_version, object->resource_version_size));
	if (kinf_object_path(object, "metadata.creationTimestamp", &text, &size) == KINF_FOUND)
		put_text(out, "Created", BYTES(text, size));
	if (past->deleted) {
		put_label(out, "Deleted");
		put_time(out, past->deleted_ns);
		buf_byte(out, '\n');
	}
	int r = object->body_size ? put_map(out, "Labels", object, "metadata.labels") : 0;
	if (r == 0 && object->body_size)
		r = put_map(out, "Annotations", object, "metadata.annotations");
	if (r == 0 && object->body_size)
		r = kinf_object_each(object, "metadata.ownerReferences[*]", put_owner, out);
	if (past->changes)
		put_section(out, "History", buf_bytes(&past->rows));
	if (r == 0 && object->body_size)
		r = put_body(out, object);
	if (r == 0)
		r = print_text(out);
	if (r < 0) {
		(void)command_fail(r);
		d->said = true;
	}
	return r;
}

/* IN: NULL for cluster-scoped kinds. */
static int describe_key(struct describe *d, const char *in, const char *name)
{
	CLEANUP(past_release) struct past past;
	struct kinf_object object;
	int past_r = read_past(d, in, name, &past);
	int r = past_r < 0 ? past_r : kinf_get(d->snapshot, d->feed, in, name, &object);

	if (r == KINF_FOUND)
		r = put_object(d, &object, &past);
	else if (r == KINF_NOT_FOUND && past.deleted)
		r = put_object(d, past.deleted, &past);
	return r;
}

/* Without a namespace: every namespace's object of this name that is there now. */
static int describe_in_all(struct describe *d, const char *name)
{
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	struct kinf_query query = {.size = sizeof(query), .feed = d->feed, .prefix = name};
	struct kinf_object object;
	size_t size = strlen(name);
	int r = kinf_list(d->snapshot, &query, &list);

	while (r == KINF_FOUND && (r = kinf_list_next(list, &object)) == KINF_FOUND) {
		struct bytes is = print_name(&object);

		if (is.size != size)
			continue;
		AUTO_FREE char *in = strndup(object.key, object.key_size - size - 1);
		r = in ? describe_key(d, in, name) : -ENOMEM;
		if (r != KINF_FOUND)
			return r;
	}
	return r == KINF_END ? (d->found ? 0 : KINF_NOT_FOUND) : r;
}

/* ---- the command ---- */

static int take_status(void *arg, const struct kinf_feed_info *status)
{
	struct describe *d = arg;

	d->status = *status;
	return 1; /* the first will do */
}

static int describe_name(struct describe *d, const char *in, char *name)
{
	char *slash = strchr(name, '/');

	if (!d->status.namespaced)
		return describe_key(d, NULL, name);
	if (slash && !in) {
		*slash = '\0';
		int r = describe_key(d, name, slash + 1);
		*slash = '/';
		return r;
	}
	return in ? describe_key(d, in, name) : describe_in_all(d, name);
}

static int run(struct describe *d, const struct config_flags *flags, const char *in, char *name)
{
	if (command_open(flags, &d->kinf) < 0 || command_snapshot(d->kinf, &d->snapshot) < 0)
		return PROC_FAILED;
	int r = kinf_feed_status(d->snapshot, d->feed, take_status, d);
	if (r >= 0)
		r = command_note_state(d->snapshot, d->feed, 0);
	if (r >= 0)
		r = describe_name(d, in, name);
	if (r == KINF_NOT_FOUND)
		(void)fprintf(stderr, "Error: %s \"%s%s%s\" not found\n", d->status.resource,
			in ? in : "", in ? "/" : "", name);
	else if (r == KINF_AGAIN)
		(void)fprintf(stderr, "Error: %s is still being listed; wait with 'kinf wait %s'\n",
			d->feed, d->feed);
	else if (r < 0 && !d->said)
		(void)command_fail_kinf(d->kinf);
	return r == 0 ? PROC_OK : PROC_FAILED;
}

static void describe_release(struct describe *d)
{
	buf_release(&d->out);
	kinf_snapshot_close(&d->snapshot);
	kinf_close(&d->kinf);
}

/* FEED NAME or, as -o name prints them, FEED/NAME. NULL: neither. */
static char *take_operands(struct describe *d, char **operands, int n)
{
	char *slash = n > 0 ? strchr(operands[0], '/') : NULL;

	if (n == 0 || n > 2 || (n == 1 && !slash))
		return NULL;
	d->feed = operands[0];
	if (n == 2)
		return *operands[1] ? operands[1] : NULL;
	*slash = '\0';
	return slash[1] ? slash + 1 : NULL;
}

int command_describe(int argc, char **argv)
{
	CLEANUP(describe_release) struct describe describe = {.out = BUF_INIT};
	struct describe_args args = {0};
	struct config_flags flags = {0};
	int first;
	const struct options_group groups[] = {
		{"Options", describe_options, ARRAY_SIZE(describe_options), &args},
		config_common_options(&flags),
	};
	const struct options options = {"kinf describe", "FEED NAME | FEED/NAME",
		"Prints one object: what names it, what the store keeps of its past, and all that is in it. "
		"Also one that was deleted, for as long as that is kept.",
		groups, ARRAY_SIZE(groups), false};
	int r = options_parse(&options, argc, argv, &first);

	char *name = r == 0 ? take_operands(&describe, argv + first, argc - first) : NULL;
	if (r == 0 && !name)
		r = options_bad(&options, "a feed and a name are wanted");
	if (r != 0)
		return command_usage(&options, r);
	return run(&describe, &flags, args.namespace_, name);
}
