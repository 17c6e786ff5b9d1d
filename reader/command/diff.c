/* SPDX-License-Identifier: Apache-2.0 */
/* kinf diff STORE1 STORE2: the objects that differ, by key. Each store is read from one
 * snapshot. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/daemon/faults.h"
#include "common/err.h"
#include "reader/command/command.h"
#include "reader/command/print.h"

enum { FIRST, SECOND, SIDES };

struct diff_side {
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
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
		kinf_snapshot_close(&side->snapshot);
		kinf_close(&side->kinf);
		for (size_t f = 0; f < side->n_feeds; f++)
			free(side->feeds[f]);
		free(side->feeds);
	}
}

/* ---- feeds
 * ---------------------------------------------------------------------------------------- */

static int diff_compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Keeps each name once: a name may stand for a feed in each of several namespaces. */
static int diff_add_feed(void *arg, const struct kinf_feed_info *status)
{
	struct diff_side *side = arg;

	for (size_t i = 0; i < side->n_feeds; i++)
		if (strcmp(side->feeds[i], status->name) == 0)
			return 0;
	char *name = strdup(status->name);
	int r = name ? ARRAY_ADD(side->feeds, side->n_feeds, side->feeds_room, name,
			       "the list of feeds")
		     : err_set(-ENOMEM, "copying the name of a feed");
	if (r < 0)
		free(name);
	return r;
}

static int side_open(struct diff_side *side, const char *store)
{
	int r = kinf_open(store, &side->kinf);

	if (r == 0)
		r = kinf_set_check(side->kinf, 1);
	if (r < 0)
		return command_fail_kinf(side->kinf);
	if (command_snapshot(side->kinf, &side->snapshot) < 0)
		return PROC_FAILED;
	r = kinf_feed_status(side->snapshot, NULL, diff_add_feed, side);
	if (r < 0)
		return command_fail_kinf(side->kinf);
	if (side->n_feeds)
		qsort(side->feeds, side->n_feeds, sizeof(*side->feeds), diff_compare_names);
	return PROC_OK;
}

/* ---- objects
 * -------------------------------------------------------------------------------------- */

static int side_next(struct diff_side *side)
{
	int r = kinf_list_next(side->list, &side->object);

	side->there = r == KINF_FOUND;
	return r < 0 ? command_fail_kinf(side->kinf) : PROC_OK;
}

/* Begins the list of a feed. A feed that was never listed has no objects. */
static int side_list(struct diff_side *side, const char *feed)
{
	struct kinf_query query = {.size = sizeof(query), .feed = feed};

	kinf_list_close(&side->list);
	side->there = false;
	int r = kinf_list(side->snapshot, &query, &side->list);
	if (r < 0)
		return command_fail_kinf(side->kinf);
	return r == 0 ? side_next(side) : PROC_OK;
}

static struct bytes diff_key(const struct diff_side *side)
{
	return BYTES(side->object.key, side->object.key_size);
}

static bool diff_is_same(const struct kinf_object *a, const struct kinf_object *b)
{
	return bytes_equal(BYTES(a->uid, a->uid_size), BYTES(b->uid, b->uid_size)) &&
		bytes_equal(BYTES(a->body, a->body_size), BYTES(b->body, b->body_size));
}

/* Returns below 0 if the first store's object has no counterpart, above 0 if the second's has none,
 * 0 if both have the same key. */
static int diff_compare_sides(const struct diff *diff)
{
	const struct diff_side *a = &diff->side[FIRST], *b = &diff->side[SECOND];

	if (!a->there || !b->there)
		return a->there ? -1 : 1;
	return bytes_compare(diff_key(a), diff_key(b));
}

static int diff_print(struct diff *diff, const char *feed, int order)
{
	const struct kinf_object *a = &diff->side[FIRST].object, *b = &diff->side[SECOND].object;
	const struct kinf_object *named = order > 0 ? b : a;

	diff->differ = true;
	buf_printf(&diff->out, "%c %s %.*s", order < 0 ? '<' : order > 0 ? '>' : '!', feed,
		(int)named->key_size, named->key);
	if (order == 0)
		buf_printf(&diff->out, " %.*s %.*s", (int)a->resource_version_size,
			a->resource_version, (int)b->resource_version_size, b->resource_version);
	buf_byte(&diff->out, '\n');
	int r = print_text(&diff->out);
	return r < 0 ? command_fail(r) : PROC_OK;
}

static int diff_feed(struct diff *diff, const char *feed)
{
	struct diff_side *a = &diff->side[FIRST], *b = &diff->side[SECOND];
	int status = side_list(a, feed);

	if (status == PROC_OK)
		status = side_list(b, feed);
	while (status == PROC_OK && (a->there || b->there)) {
		int order = diff_compare_sides(diff);

		if (order || !diff_is_same(&a->object, &b->object))
			status = diff_print(diff, feed, order);
		if (status == PROC_OK && order <= 0)
			status = side_next(a);
		if (status == PROC_OK && order >= 0)
			status = side_next(b);
	}
	return status;
}

static int diff_print_lone_feed(struct diff *diff, const char *feed, int order)
{
	diff->differ = true;
	buf_printf(&diff->out, "%c %s\n", order < 0 ? '<' : '>', feed);
	int r = print_text(&diff->out);
	return r < 0 ? command_fail(r) : PROC_OK;
}

/* Compares the feeds, which both stores have in order. */
static int diff_feeds(struct diff *diff)
{
	const struct diff_side *a = &diff->side[FIRST], *b = &diff->side[SECOND];
	size_t i = 0, j = 0;
	int status = PROC_OK;

	while (status == PROC_OK && (i < a->n_feeds || j < b->n_feeds)) {
		int order = i == a->n_feeds ? 1
			: j == b->n_feeds   ? -1
					    : strcmp(a->feeds[i], b->feeds[j]);

		if (order)
			status = diff_print_lone_feed(
				diff, order < 0 ? a->feeds[i] : b->feeds[j], order);
		else
			status = diff_feed(diff, a->feeds[i]);
		i += order <= 0;
		j += order >= 0;
	}
	return status;
}

/* ---- the command
 * ---------------------------------------------------------------------------------- */

/* Names both stores: the handler of memory faults does not know which one the bytes were of. */
static void diff_catch_faults(const char *first, const char *second)
{
	static char stores[2 * PATH_MAX + 8];

	(void)snprintf(stores, sizeof(stores), "%s' or '%s", first, second);
	faults_catch("kinf", stores);
}

int command_diff(int argc, char **argv)
{
	CLEANUP(diff_release) struct diff diff = {.out = BUF_INIT};
	struct config_flags flags = {0};
	int first;
	const struct options_group groups[] = {config_common_options(&flags)};
	const struct options options = {"kinf diff", "STORE1 STORE2",
		"Prints the objects that differ between two stores: '<' only in the first, '>' "
		"only in the "
		"second, '!' in both but different, with both resourceVersions. Exits with 1 if "
		"there are any.",
		groups, ARRAY_SIZE(groups), false};
	int r = options_parse(&options, argc, argv, &first);

	if (r == 0 && argc - first != SIDES)
		r = options_bad(&options, "write two stores");
	if (r != 0)
		return command_usage(&options, r);
	diff_catch_faults(argv[first], argv[first + 1]);
	for (int i = 0; i < SIDES; i++)
		if (side_open(&diff.side[i], argv[first + i]) != PROC_OK)
			return PROC_FAILED;
	int status = diff_feeds(&diff);
	return status == PROC_OK && diff.differ ? PROC_FAILED : status;
}
