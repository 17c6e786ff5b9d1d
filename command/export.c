/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf export [FEED...]: objects as one List for kubectl apply. Fields that the API server chose
 * are left out, and owners: another cluster does not know their uids, and its garbage collector
 * would remove the objects.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command/command.h"
#include "command/manage/ticker.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/output.h"
#include "common/value/json.h"
#include "common/value/value.h"
#include "print/status/status.h"
#include "reader/handle.h"
#include "store/read/snapshot.h"

struct export_args {
	bool full;
	const char *at;
};

static const struct option_spec export_options[] = {
	{0, "full", OPTION_FLAG, offsetof(struct export_args, full), NULL,
		"objects as they are stored, with uid, resourceVersion, owners and managed fields: "
		"for kinf import"},
	COMMAND_AT(offsetof(struct export_args, at)),
};

struct export
{
	struct command_view view;
	bool full, named;
	bool lacks_feed;    /* its state is no longer kept, and the status is 1 */
	const char **feeds; /* names, of the snapshot */
	size_t n_feeds, feeds_room;
	uint64_t objects;
	struct buf out;
	struct ticker ticker;
	bool on_terminal;
};

static void export_release(struct export *export)
{
	ticker_clear(&export->ticker);
	free(export->feeds);
	buf_release(&export->out);
	command_view_release(&export->view);
}

/* ---- one object --------------------------------------------------------- */

/* The walk over an object. */
struct export_walk {
	struct buf *out, path; /* the path ends with a dot */
	const char *kind;      /* with fields of this cluster; "": none */
};

/* Fields that an API server sets or computes; of KIND NULL in each object. */
static const struct export_field {
	const char *kind, *path;
} export_fields[] = {
	{NULL, "status."},
	{NULL, "metadata.uid."},
	{NULL, "metadata.resourceVersion."},
	{NULL, "metadata.generation."},
	{NULL, "metadata.creationTimestamp."},
	{NULL, "metadata.selfLink."},
	{NULL, "metadata.managedFields."},
	{NULL, "metadata.ownerReferences."},
	{NULL, "metadata.deletionTimestamp."},
	{NULL, "metadata.deletionGracePeriodSeconds."},
	{"Service", "spec.clusterIP."},
	{"Service", "spec.clusterIPs."},
	{"Job", "spec.selector."},
	{"Job", "spec.template.metadata.labels.controller-uid."},
	{"Job", "spec.template.metadata.labels.batch.kubernetes.io/controller-uid."},
};

static bool export_is(const struct kinf_object *object, const char *path, const char *wanted)
{
	const char *text;
	size_t size;

	return kinf_object_path(object, path, &text, &size) == KINF_FOUND &&
	       bytes_equal(BYTES(text, size), bytes_str(wanted));
}

/* Returns "Service" for one whose addresses the API server chose, "Job" for one whose selector it
 * chose, else "". */
static const char *export_kind(const struct kinf_object *object)
{
	static const struct {
		const char *kind, *version, *path, *own;
	} kinds[] = {{"Service", "v1", "spec.clusterIP", "None"},
		{"Job", "batch/v1", "spec.manualSelector", "true"}};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (export_is(object, "kind", kinds[i].kind) &&
			export_is(object, "apiVersion", kinds[i].version) &&
			!export_is(object, kinds[i].path, kinds[i].own))
			return kinds[i].kind;
	return "";
}

/* Sets *RET_INSIDE to whether a field within the path is left out. Returns whether all of it is. */
static bool export_leaves_out(struct export_walk *walk, bool *ret_inside)
{
	const char *path = buf_cstr(&walk->path);

	*ret_inside = false;
	for (size_t i = 0; i < ARRAY_SIZE(export_fields); i++) {
		const struct export_field *field = &export_fields[i];

		if (field->kind && strcmp(field->kind, walk->kind) != 0)
			continue;
		if (strcmp(field->path, path) == 0)
			return true;
		*ret_inside |= strncmp(field->path, path, walk->path.size) == 0;
	}
	return false;
}

/* Appends MAP, at the path of WALK. */
static int export_map(struct export_walk *walk, const struct value *map)
{
	struct value_iter iter;
	struct bytes key, document;
	struct value item;
	size_t size = walk->path.size;
	bool first = true, inside;
	int r;

	value_iter_init(&iter, map);
	buf_byte(walk->out, '{');
	while ((r = value_iter_next(&iter, &key, &item)) == FOUND) {
		buf_truncate(&walk->path, size);
		buf_bytes_put(&walk->path, key);
		buf_byte(&walk->path, '.');
		if (export_leaves_out(walk, &inside))
			continue;
		buf_str(walk->out, first ? "" : ",");
		first = false;
		json_write_string(key, walk->out);
		buf_byte(walk->out, ':');
		if (inside && item.type == VALUE_MAP) {
			r = export_map(walk, &item);
		} else {
			r = value_document(&item, &document);
			if (r == 0)
				r = json_write(document, 0, walk->out);
		}
		if (r < 0)
			return r;
	}
	buf_byte(walk->out, '}');
	return r == END ? buf_error(&walk->path) : r;
}

static int export_object(struct export *export, const struct kinf_object *object)
{
	struct bytes body = BYTES(object->body, object->body_size);
	struct value value;

	buf_str(&export->out, export->objects++ ? ",\n" : "\n");
	if (export->full)
		return json_write(body, 0, &export->out);
	struct export_walk walk = {
		.out = &export->out, .path = BUF_INIT, .kind = export_kind(object)};
	int r = value_read(body, &value);
	if (r == 0)
		r = export_map(&walk, &value);
	buf_release(&walk.path);
	return r;
}

/* ---- feeds -------------------------------------------------------------- */

/* Returns true if FEED was first listed after the event of --at: it has no objects of then. */
static bool export_is_later(struct export *export, const char *feed)
{
	const struct feed_set *set;
	int r = feed_set_get(export->view.snapshot, feed, &set);

	for (size_t i = 0; r == 0 && i < set->n; i++)
		if (set->feeds[i].index.listed > export->view.when.event)
			return true;
	err_ignore(r < 0 ? r : 0, "the feed is named as one that is not kept");
	return false;
}

/* Writes the objects of FEED. Returns the exit status. */
static int export_feed(struct export *export, const char *feed)
{
	const struct kinf_query query = {.size = sizeof(query), .feed = feed};
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	struct kinf_object object;
	int r = kinf_list(export->view.snapshot, &query, &list);

	while (r == 0 && ((r = kinf_list_next(list, &object)) == FOUND || r == KINF_CORRUPT)) {
		if (r == KINF_CORRUPT) { /* the others are written, and the status is 1 */
			command_saw_damage = true;
			(void)command_fail_read(export->view.kinf, feed, 0);
			r = 0;
			continue;
		}
		r = snapshot_made(export->view.snapshot->snapshot, export_object(export, &object));
		if (r == 0)
			r = output_write(&export->out);
		if (r < 0)
			return command_fail(r);
		if (!export->on_terminal) /* the objects themselves show the progress */
			ticker_show(&export->ticker, export->objects, 0, "objects");
	}
	if (r == KINF_GONE && !export->named) {
		const char *reason = kinf_error(export->view.kinf);
		bool later = export_is_later(export, feed);

		(void)fprintf(stderr, "%s: not exported: %s\n", later ? "note" : "Error", reason);
		export->lacks_feed |= !later;
		return PROC_OK;
	}
	return r == END ? PROC_OK : command_fail_read(export->view.kinf, feed, r);
}

/* Adds the feeds of NAME, or all if NULL; their definitions live as long as the snapshot. */
static int export_add(struct export *export, const char *name)
{
	const struct feed_set *set;
	int r = feed_set_get(export->view.snapshot, name, &set);

	for (size_t i = 0; r >= 0 && i < set->n; i++) {
		const char *feed = set->feeds[i].definition.name;
		bool known = false;

		for (size_t k = 0; k < export->n_feeds; k++)
			known |= strcmp(export->feeds[k], feed) ==
				 0; /* a name may stand for several feeds */
		r = known ? 0
			  : ARRAY_ADD(export->feeds, export->n_feeds, export->feeds_room, feed,
				    "the list of feeds");
	}
	return kinf_result_of(export->view.snapshot, r < 0 ? r : 0);
}

/* Orders feeds: namespaces come first, then definitions of resources. */
static int export_rank(const char *feed)
{
	return strncmp(feed, "namespaces", 10) == 0                  ? 0
	       : strncmp(feed, "customresourcedefinitions", 25) == 0 ? 1
								     : 2;
}

static int export_by_rank(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	int r = export_rank(x) - export_rank(y);

	return r ? r : strcmp(x, y);
}

static int export_note_pending(void *arg, const struct kinf_feed_info *pending)
{
	(void)arg;
	(void)fprintf(stderr, "note: %s: not exported, it is no feed yet: %s\n", pending->full_name,
		pending->last_error);
	return 0;
}

/* Chooses the feeds: those of LINE, or all, and notes those that are not live. Nothing is written
 * if one is unreadable. Returns the exit status. */
static int export_choose(struct export *export, const struct command_line *line)
{
	size_t n = line->n;
	int r = n ? 0 : export_add(export, NULL);

	for (size_t i = 0; r == 0 && i < n; i++) {
		r = export_add(export, line->operands[i]);
		if (r < 0)
			return command_fail_read(export->view.kinf, line->operands[i], r);
	}
	if (r == 0 && !export->n_feeds)
		return command_fail_read(export->view.kinf, NULL, KINF_NO_FEED);
	if (r == 0 && !n)
		r = status_each_pending(export->view.kinf, export_note_pending, NULL);
	if (r < 0)
		return command_fail(r);
	qsort(export->feeds, export->n_feeds, sizeof(*export->feeds), export_by_rank);
	for (size_t i = 0; i < export->n_feeds; i++) {
		const struct feed_set *set;

		r = feed_set_get(export->view.snapshot, export->feeds[i], &set);
		for (size_t f = 0; r >= 0 && f < set->n; f++) /* a name may stand for several */
			if (!set->feeds[f].visible) {
				feed_explain_unlisted(export->view.snapshot, &set->feeds[f]);
				return command_fail_read(
					export->view.kinf, export->feeds[i], KINF_AGAIN);
			}
		if (r < 0)
			return command_fail(r);
	}
	r = n ? PROC_OK : command_note_state(&export->view, NULL, NULL, 0);
	for (size_t i = 0; n && r == PROC_OK && i < export->n_feeds; i++)
		r = command_note_state(&export->view, export->feeds[i], NULL, 0);
	return r;
}

int command_export(int argc, char **argv)
{
	CLEANUP(export_release)
	struct export export = {.out = BUF_INIT, .ticker = {.what = "writing"}};
	struct export_args args = {0};
	struct command_line line = {
		.options = {"kinf export", "[FEED...]",
			"Prints the objects of feeds (default: all) as one List that kubectl can "
			"apply to another cluster: without status, uids, resourceVersions, owners, "
			"managed fields, chosen addresses of Services and selectors of Jobs. One "
			"line for each object, in the order of the keys. Values of Secrets are "
			"printed as they are stored."},
		.groups = {{"Options", export_options, ARRAY_SIZE(export_options), &args}},
		.takes = {0, SIZE_MAX, NULL},
	};
	int r = command_parse(&line, argc, argv);

	if (r == 0)
		r = command_read_at(args.at, &export.view.when);
	if (r != 0)
		return command_usage(&line, r);
	export.named = line.n;
	export.full = args.full;
	export.on_terminal = isatty(STDOUT_FILENO) == 1;
	if (command_view_open(&export.view, &line.flags) < 0)
		return PROC_FAILED;
	int status = export_choose(&export, &line);
	if (status != PROC_OK)
		return status;
	buf_str(&export.out, "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"metadata\":{"
			     "\"resourceVersion\":\"\"},\"items\":[");
	for (size_t i = 0; status == PROC_OK && i < export.n_feeds; i++)
		status = export_feed(&export, export.feeds[i]);
	if (status != PROC_OK)
		return status;
	buf_str(&export.out, "\n]}\n");
	r = output_text(&export.out);
	if (r < 0)
		return command_fail(r);
	return export.lacks_feed ? PROC_FAILED : PROC_OK;
}
