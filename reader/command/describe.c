/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf describe FEED NAME: one object with its names, the history that the store keeps of it, and
 * its body. An object that was deleted is described as long as its history is retained.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/timestamp.h"
#include "common/value/value.h"
#include "common/value/yaml.h"
#include "reader/command/command.h"
#include "reader/command/print.h"
#include "reader/command/secret.h"
#include "reader/table/age.h"
#include "reader/table/display.h"

#define LABEL_WIDTH 18

struct describe_args {
	const char *namespace_;
};

static const struct option_spec describe_options[] = {
	{'n', "namespace", OPTION_TEXT, offsetof(struct describe_args, namespace_), "NS",
		"the object's namespace; NS/NAME names it also"},
};

struct describe {
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
	struct kinf_feed_info info; /* of the first feed that the name stands for */
	const char *feed;
	struct buf out;
	size_t found;
	bool failed; /* an error was printed */
};

/* ---- lines ----------------------------------------------------------------------------------- */

/* Appends LABEL, or as many blanks, so that the values of one label stand below each other. */
static void describe_label(struct buf *out, const char *label)
{
	buf_printf(out, "%s%s%*s", label, *label ? ":" : "",
		(int)(LABEL_WIDTH - strlen(label) - (*label != '\0')), "");
}

static void describe_text(struct buf *out, const char *label, struct bytes text)
{
	describe_label(out, label);
	display_bytes(text, out);
	buf_byte(out, '\n');
}

static void describe_time(struct buf *out, uint64_t time_ns)
{
	char text[TIMESTAMP_SIZE], age[AGE_SIZE];

	timestamp_seconds(time_ns, text);
	age_since(time_ns, age);
	buf_printf(out, "%s (%s ago)", text, age);
}

/* Appends the labels or annotations at PATH, KEY=VALUE, one a line. */
static int describe_map(struct buf *out, const char *label, const struct kinf_object *object,
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
		describe_label(out, n++ ? "" : label);
		display_bytes(key, out);
		buf_byte(out, '=');
		r = display_line(&item, out);
		buf_byte(out, '\n');
	}
	if (!n)
		describe_text(out, label, BYTES_LIT("<none>"));
	return r < 0 ? r : buf_error(out);
}

static int describe_owner(void *arg, const struct kinf_object *owner)
{
	struct buf *out = arg;
	const char *kind = "", *name = "";
	size_t kind_size = 0, name_size = 0;

	/* A missing member stays empty. */
	int r = kinf_object_path(owner, "kind", &kind, &kind_size);
	if (r >= 0)
		r = kinf_object_path(owner, "name", &name, &name_size);
	if (r < 0)
		return r;
	describe_label(out, "Owner");
	display_bytes(BYTES(kind, kind_size), out);
	buf_byte(out, '/');
	display_bytes(BYTES(name, name_size), out);
	buf_byte(out, '\n');
	return buf_error(out);
}

/* ---- history --------------------------------------------------------------------------------- */

struct object_history {
	struct table table;
	struct buf rows;
	struct kinf_object *deleted; /* the last state, if the newest change is a deletion */
	uint64_t deleted_ns;
	size_t changes;
};

static void describe_history_release(struct object_history *history)
{
	table_release(&history->table);
	buf_release(&history->rows);
	free(history->deleted);
}

static int describe_history_add(void *arg, const struct kinf_change *change)
{
	struct object_history *history = arg;
	char event[24], type[48], version[80];
	CLEANUP(buf_release) struct buf when = BUF_INIT;
	const struct kinf_object *object = &change->object;

	history->changes++;
	free(TAKE(history->deleted));
	if (strcmp(change->type, "DELETED") == 0) {
		history->deleted_ns = change->time_ns;
		int copied = kinf_object_copy(object, &history->deleted);
		if (copied < 0)
			return copied;
	}
	describe_time(&when, change->time_ns);
	(void)snprintf(event, sizeof(event), "%" PRIu64, change->event);
	(void)snprintf(type, sizeof(type), "%s%s", change->type,
		change->final_state_unknown ? " (found missing)" : "");
	(void)snprintf(version, sizeof(version), "%.*s", (int)object->resource_version_size,
		object->resource_version);
	int r = buf_error(&when);
	return r < 0 ? r : table_row(&history->table,
		(const char *const[]){event, type, version, buf_cstr(&when)}, &history->rows);
}

/* ---- secrets --------------------------------------------------------------------------------- */

/* Returns the name of the part of a Secret that hides values, or holds such a part: the member KEY of the part IN, "" of
 * the object itself. NULL: it is shown as it is. */
static const char *describe_hiding_part(const char *in, struct bytes key)
{
	static const char *const parts[][2] = {
		{"", "data"}, {"", "stringData"}, {"", "metadata"}, {"metadata", "annotations"}};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (strcmp(in, parts[i][0]) == 0 && bytes_equal(key, bytes_str(parts[i][1])))
			return parts[i][1];
	return NULL;
}

/* Appends the map FROM, which is the part IN of a Secret, to OUT: the values of data and stringData as their sizes, and
 * without the annotation in which kubectl apply keeps the whole object. */
static int describe_hide_part(const char *in, const struct value *from, struct buf *out)
{
	bool base64 = strcmp(in, "data") == 0, values = base64 || strcmp(in, "stringData") == 0;
	size_t map = value_open_map(out);
	struct value_iter pairs;
	struct bytes key, document;
	struct value item;
	char size[SECRET_TEXT_SIZE];
	uint32_t n = 0;
	int r;

	value_iter_init(&pairs, from);
	while ((r = value_iter_next(&pairs, &key, &item)) == FOUND) {
		const char *part = describe_hiding_part(in, key);

		value_put_string(out, key);
		n++;
		if (values && item.type == VALUE_STRING) {
			secret_size_text(item.text, base64, size);
			value_put_string(out, bytes_str(size));
		} else if (values || (strcmp(in, "annotations") == 0 &&
					   bytes_equal(key, BYTES_LIT(SECRET_LAST_APPLIED)))) {
			value_put_string(out, BYTES_LIT("<hidden>"));
		} else if (part && item.type == VALUE_MAP) {
			r = describe_hide_part(part, &item, out);
		} else if ((r = value_document(&item, &document)) == 0) {
			buf_bytes_put(out, document);
		}
		if (r < 0)
			return r;
	}
	value_close(out, map, n);
	return r == END ? buf_error(out) : r;
}

/* Makes BODY the body of OBJECT, a Secret, without its values. */
static int describe_hide(struct kinf_object *object, struct buf *body)
{
	struct value root;
	int r = value_read(BYTES(object->body, object->body_size), &root);

	if (r == 0)
		r = describe_hide_part("", &root, body);
	if (r == 0)
		r = buf_error(body);
	object->body = body->data;
	object->body_size = (uint32_t)body->size;
	return r;
}

/* ---- one object ------------------------------------------------------------------------------ */

static int describe_object(struct describe *d, const struct kinf_object *found,
	const struct object_history *history)
{
	CLEANUP(buf_release) struct buf yaml = BUF_INIT;
	CLEANUP(buf_release) struct buf hidden = BUF_INIT;
	struct kinf_object copy = *found, *object = &copy;
	const char *text = "", *slash = memchr(object->key, '/', object->key_size);
	struct buf *out = &d->out;
	size_t size = 0;
	int r = 0;

	if (strcmp(d->info.resource, "secrets") == 0 && copy.body_size)
		r = describe_hide(&copy, &hidden);
	buf_str(out, d->found++ ? "\n\n" : "");
	describe_text(out, "Name", print_name(object));
	if (slash)
		describe_text(out, "Namespace", BYTES(object->key, (size_t)(slash - object->key)));
	describe_text(out, "Kind", bytes_str(d->info.kind));
	describe_text(out, "UID", BYTES(object->uid, object->uid_size));
	describe_text(out, "Resource version",
		BYTES(object->resource_version, object->resource_version_size));
	if (r == 0 && object->body_size) { /* metadata alone, of a deletion, has none */
		r = kinf_object_path(object, "metadata.creationTimestamp", &text, &size);
		if (r == KINF_FOUND)
			describe_text(out, "Created", BYTES(text, size));
	}
	if (history->deleted) {
		describe_label(out, "Deleted");
		describe_time(out, history->deleted_ns);
		buf_byte(out, '\n');
	}
	if (r > 0)
		r = 0;
	if (r == 0 && object->body_size) {
		r = describe_map(out, "Labels", object, "metadata.labels");
		if (r == 0)
			r = describe_map(out, "Annotations", object, "metadata.annotations");
		if (r == 0)
			r = kinf_object_each(
				object, "metadata.ownerReferences[*]", describe_owner, out);
	}
	if (r >= 0 && history->changes) {
		buf_str(out, "History:\n  ");
		print_indented(out, buf_bytes(&history->rows), 2);
	}
	if (r >= 0 && object->body_size) {
		r = yaml_write(BYTES(object->body, object->body_size), &yaml);
		buf_str(out, "Object:\n  ");
		print_indented(out, buf_bytes(&yaml), 2);
	}
	if (r == 0)
		r = print_text(out);
	if (r < 0) {
		(void)command_fail(r);
		d->failed = true;
	}
	return r;
}

/* Describes the object with the history of its changes, oldest first. IN: NULL for cluster-scoped
 * kinds. */
static int describe_key(struct describe *d, const char *in, const char *name)
{
	static const char *const heads[] = {"EVENT", "TYPE", "RESOURCEVERSION", "RECORDED"};
	CLEANUP(describe_history_release) struct object_history history = {.rows = BUF_INIT};
	struct kinf_object object;

	table_init(&history.table, heads, ARRAY_SIZE(heads));
	int r = kinf_history(d->snapshot, d->feed, in, name, describe_history_add, &history);
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
		r = describe_object(d, &object, &history);
	else if (r == KINF_NOT_FOUND && history.deleted)
		r = describe_object(d, history.deleted, &history);
	return r;
}

/* Describes NS/NAME, or the object NAME of each namespace, those that exist now. */
static int describe_in_all(struct describe *d, char *name)
{
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	struct kinf_query query = {.size = sizeof(query), .feed = d->feed, .prefix = name};
	struct kinf_object object;
	char *slash = strchr(name, '/');
	size_t size = strlen(name);
	int r;

	if (slash) {
		*slash = '\0';
		r = describe_key(d, name, slash + 1);
		*slash = '/';
		return r;
	}
	r = kinf_list(d->snapshot, &query, &list);
	while (r == KINF_FOUND && (r = kinf_list_next(list, &object)) == KINF_FOUND) {
		if (print_name(&object).size != size)
			continue;
		AUTO_FREE char *in = strndup(object.key, object.key_size - size - 1);
		r = in ? describe_key(d, in, name) : err_set(-ENOMEM, "copying a namespace");
		if (r != KINF_FOUND)
			return r;
	}
	return r != KINF_END ? r : d->found ? KINF_FOUND : KINF_NOT_FOUND;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void describe_release(struct describe *d)
{
	buf_release(&d->out);
	kinf_snapshot_close(&d->snapshot);
	kinf_close(&d->kinf);
}

int command_describe(int argc, char **argv)
{
	CLEANUP(describe_release) struct describe d = {.out = BUF_INIT};
	struct describe_args args = {0};
	struct config_flags flags = {0};
	char *name = NULL;
	int first;
	const struct options_group groups[] = {
		{"Options", describe_options, ARRAY_SIZE(describe_options), &args},
		config_common_options(&flags),
	};
	const struct options options = {"kinf describe", "FEED NAME | FEED/NAME",
		"Prints one object: its names, its history and its whole body. A deleted object is printed "
		"also, as long as its history is kept.",
		groups, ARRAY_SIZE(groups), false};
	int r = options_parse(&options, argc, argv, &first);

	if (r == 0 && argc - first == 2) {
		name = argv[first + 1];
	} else if (r == 0 && argc - first == 1) { /* as -o name prints it */
		name = strchr(argv[first], '/');
		if (name)
			*name++ = '\0';
	}
	if (r == 0 && (!name || !*name))
		r = options_bad(&options, "write a feed and a name");
	if (r != 0)
		return command_usage(&options, r);
	const char *in = args.namespace_;
	d.feed = argv[first];
	if (command_open(&flags, &d.kinf) < 0 || command_snapshot(d.kinf, &d.snapshot) < 0)
		return PROC_FAILED;
	r = command_first_feed(d.snapshot, d.feed, &d.info);
	if (r == 0)
		r = command_note_state(d.snapshot, d.feed, 0);
	if (r >= 0)
		r = d.info.namespaced && !in ? describe_in_all(&d, name)
					     : describe_key(&d, d.info.namespaced ? in : NULL, name);
	if (r == KINF_AGAIN)
		return command_fail_again(d.kinf, d.snapshot, d.feed, in);
	if (r == KINF_NOT_FOUND)
		(void)fprintf(stderr, "Error: %s \"%s%s%s\" not found\n", d.info.resource,
			in ? in : "", in ? "/" : "", name);
	else if (r < 0 && !d.failed)
		(void)command_fail_feed(d.kinf, d.feed, r);
	return r == 0 ? PROC_OK : PROC_FAILED;
}
