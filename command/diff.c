/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf diff STORE1 STORE2: the objects with differences, by key. Each store is read from one
 * snapshot. A damaged copy is refused: an object that it lacks may have been there. kinf diff FEED
 * NAME --from EVENT is in history.c.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command/command.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/daemon/faults.h"
#include "common/err.h"
#include "common/output.h"
#include "common/text/decimal.h"
#include "reader/handle.h"

enum { FIRST, SECOND, SIDES };

struct diff_side {
	struct command_view view;
	char **feeds; /* names, in byte order, each once */
	size_t n_feeds, feeds_room;
	struct kinf_listing *list; /* of the current feed */
	struct kinf_object object;
	bool there; /* OBJECT is the next object of LIST */
};

struct diff {
	struct diff_side side[SIDES];
	struct buf out;
	bool differ;
};

static void diff_release(struct diff *diff)
{
	buf_release(&diff->out);
	for (int i = 0; i < SIDES; i++) {
		struct diff_side *side = &diff->side[i];

		kinf_list_close(&side->list);
		command_view_release(&side->view);
		for (size_t f = 0; f < side->n_feeds; f++)
			free(side->feeds[f]);
		free(side->feeds);
	}
}

/* ---- feeds -------------------------------------------------------------- */

/* Keeps each name once: a name may stand for a feed in each of several namespaces. */
static int diff_add_feed(void *arg, const struct kinf_feed_info *status)
{
	struct diff_side *side = arg;

	for (size_t i = 0; i < side->n_feeds; i++)
		if (strcmp(side->feeds[i], status->full_name) == 0)
			return 0;
	char *name = strdup(status->full_name);
	int r = name ? ARRAY_ADD(side->feeds, side->n_feeds, side->feeds_room, name,
			       "the list of feeds")
		     : err_set(-ENOMEM, "copying the name of a feed");
	if (r < 0)
		free(name);
	return r;
}

static int diff_side_open(struct diff_side *side, const char *store)
{
	if (command_open_directory(store, 0, &side->view.kinf) < 0)
		return PROC_FAILED;
	if (side->view.kinf->is_damaged)
		return command_fail(err_say(ERR_CORRUPT,
			"a damaged copy can't be compared: 'kinf export' writes the objects that "
			"can be read"));
	if (command_view_open(&side->view, NULL) < 0)
		return PROC_FAILED;
	int r = kinf_feed_status(side->view.snapshot, NULL, diff_add_feed, side);
	if (r < 0)
		return command_fail_read(side->view.kinf, NULL, r);
	if (side->n_feeds)
		qsort(side->feeds, side->n_feeds, sizeof(*side->feeds), array_by_text);
	return PROC_OK;
}

/* ---- objects ------------------------------------------------------------ */

static int diff_side_next(struct diff_side *side, const char *feed)
{
	int r = kinf_list_next(side->list, &side->object);

	side->there = r == KINF_FOUND;
	return r < 0 ? command_fail_read(side->view.kinf, feed, r) : PROC_OK;
}

/* Begins the list of a feed. Returns PROC_FAILED with a printed error, also if the feed was never
 * listed and its objects are unknown. */
static int diff_side_list(struct diff_side *side, const char *feed)
{
	struct kinf_query query = {.size = sizeof(query), .feed = feed};

	kinf_list_close(&side->list);
	side->there = false;
	int r = kinf_list(side->view.snapshot, &query, &side->list);
	return r != 0 ? command_fail_read(side->view.kinf, feed, r) : diff_side_next(side, feed);
}

/* Prints one line. OBJECTS NULL: the whole feed is in one store only. */
static int diff_print(struct diff *diff, const char *feed, int order,
	const struct kinf_object *const objects[SIDES])
{
	struct buf *out = &diff->out;

	diff->differ = true;
	buf_printf(out, "%c %s", order < 0 ? '<' : order > 0 ? '>' : '!', feed);
	if (objects) {
		const struct kinf_object *named = objects[order > 0 ? SECOND : FIRST];

		buf_printf(out, " %.*s", (int)named->key_size, named->key);
	}
	for (int i = 0; objects && order == 0 && i < SIDES; i++)
		buf_printf(out, " %.*s", (int)objects[i]->resource_version_size,
			objects[i]->resource_version);
	buf_byte(out, '\n');
	int r = output_text(out);
	return r < 0 ? command_fail(r) : PROC_OK;
}

/* Compares the objects of a feed, in the order of keys in both lists. */
static int diff_feed(struct diff *diff, const char *feed)
{
	struct diff_side *a = &diff->side[FIRST], *b = &diff->side[SECOND];
	const struct kinf_object *x = &a->object, *y = &b->object;
	const struct kinf_object *const objects[SIDES] = {x, y};
	int status = diff_side_list(a, feed);

	if (status == PROC_OK)
		status = diff_side_list(b, feed);
	while (status == PROC_OK && (a->there || b->there)) {
		/* Below 0: only the first store has the object; above 0: only the second. */
		int order = !a->there   ? 1
			    : !b->there ? -1
					: bytes_compare(BYTES(x->key, x->key_size),
						  BYTES(y->key, y->key_size));
		bool same = order == 0 &&
			    bytes_equal(BYTES(x->uid, x->uid_size), BYTES(y->uid, y->uid_size)) &&
			    bytes_equal(BYTES(x->body, x->body_size), BYTES(y->body, y->body_size));

		if (!same)
			status = diff_print(diff, feed, order, objects);
		if (status == PROC_OK && order <= 0)
			status = diff_side_next(a, feed);
		if (status == PROC_OK && order >= 0)
			status = diff_side_next(b, feed);
	}
	return status;
}

/* ---- the command -------------------------------------------------------- */

struct diff_args {
	const char *namespace_, *from; /* an event number */
};

static const struct option_spec diff_options[] = {
	{0, "from", OPTION_TEXT, offsetof(struct diff_args, from), "N",
		"compare an object with its state as of this event"},
	{'n', "namespace", OPTION_NAME, offsetof(struct diff_args, namespace_), "NS",
		"the namespace of that object"},
};

int command_diff(int argc, char **argv)
{
	/* both: the handler of memory faults knows no store */
	static char stores[2 * PATH_MAX + 8];
	CLEANUP(diff_release) struct diff diff = {.out = BUF_INIT};
	struct diff_args args = {0};
	uint64_t from;
	struct command_line line = {
		.options = {"kinf diff", "STORE1 STORE2 | FEED NAME --from N",
			"Prints the objects that differ between two stores: '<' only in the first, "
			"'>' only in the second, '!' in both but different, with both "
			"resourceVersions. With --from prints the fields in which an object "
			"differs from its retained state of then. Exits with 1 if there are "
			"differences."},
		.groups = {{"Options", diff_options, ARRAY_SIZE(diff_options), &args}},
		.takes = {1, 2, "write two stores, or with --from a feed and a name"},
	};
	int r = command_parse(&line, argc, argv);

	if (r == 0 && args.from) {
		if (decimal_parse(bytes_str(args.from), UINT64_MAX, &from) == 0)
			return history_diff(&line, args.namespace_, from);
		r = options_bad(&line.options,
			"--from '%s' is no event number; 'kinf history' prints them", args.from);
	}
	if (r == 0 && args.namespace_)
		r = options_bad(&line.options, "-n is for one object, with --from");
	if (r == 0 && line.n != SIDES)
		r = options_bad(&line.options, "%s", line.takes.rule);
	if (r != 0)
		return command_usage(&line, r);
	char **stored = line.operands;
	if (!strchr(stored[0], '/') && access(stored[0], F_OK) < 0) {
		(void)fprintf(stderr,
			"Error: there is no store '%s' here; to see what has changed in an object "
			"of the feed '%s', add --from and an event, as 'kinf history' prints "
			"them\n",
			stored[0], stored[0]);
		return PROC_FAILED;
	}
	(void)snprintf(stores, sizeof(stores), "%s' or '%s", stored[0], stored[1]);
	faults_catch("kinf", stores);
	for (int i = 0; i < SIDES; i++)
		if (diff_side_open(&diff.side[i], stored[i]) != PROC_OK)
			return PROC_FAILED;
	const struct diff_side *a = &diff.side[FIRST], *b = &diff.side[SECOND];
	int status = PROC_OK;
	/* Both stores have their feeds in order. */
	for (size_t i = 0, j = 0; status == PROC_OK && (i < a->n_feeds || j < b->n_feeds);) {
		int order = i == a->n_feeds   ? 1
			    : j == b->n_feeds ? -1
					      : strcmp(a->feeds[i], b->feeds[j]);

		status = order ? diff_print(
					 &diff, order < 0 ? a->feeds[i] : b->feeds[j], order, NULL)
			       : diff_feed(&diff, a->feeds[i]);
		i += order <= 0;
		j += order >= 0;
	}
	return status == PROC_OK && diff.differ ? PROC_FAILED : status;
}
