/* SPDX-License-Identifier: Apache-2.0 */
/* kinf diff STORE1 STORE2: the objects that differ, by key; both stores are read as of one instant
 * each. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/daemon/faults.h"
#include "common/err.h"
#include "reader/command/command.h"
#include "reader/command/print.h"

enum { FIRST, SECOND, SIDES };

struct side {
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
	char **feeds; /* names, in byte order, each once */
	size_t n_feeds;
	struct kinf_listing *list; /* of the feed in question */
	struct kinf_object object;
	bool there; /* OBJECT is the next one */
};

struct diff {
	struct side side[SIDES];
	struct buf out;
	bool differ;
};

static void diff_release(struct diff *diff)
{
	buf_release(&diff->out);
	for (int i = 0; i < SIDES; i++) {
		struct side *side = &diff->side[i];

		kinf_list_close(&side->list);
		kinf_snapshot_close(&side->snapshot);
		kinf_close(&side->kinf);
		for (size_t f = 0; f < side->n_feeds; f++)
			free(side->feeds[f]);
		free(side->feeds);
	}
}

/* ---- feeds ---- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A name stands for the feeds of several namespaces, which come one after the other. */
static int take_feed(void *arg, const struct kinf_feed_info *status)
{
	struct side *side = arg;

	for (size_t i = 0; i < side->n_feeds; i++)
		if (strcmp(side->feeds[i], status->name) == 0)
			return 0;
	char **feeds = realloc(side->feeds, (side->n_feeds + 1) * sizeof(*feeds));
	if (!feeds)
		return PROC_FAILED;
	side->feeds = feeds;
	feeds[side->n_feeds] = strdup(status->name);
	return feeds[side->n_feeds] ? (side->n_feeds++, 0) : PROC_FAILED;
}

static int side_open(struct side *side, const char *store)
{
	int r = kinf_open(store, &side->kinf);

	if (r == 0)
		r = kinf_set_check(side->kinf, 1);
	if (r < 0)
		return command_fail_kinf(side->kinf);
	if (command_snapshot(side->kinf, &side->snapshot) < 0)
		return PROC_FAILED;
	r = kinf_feed_status(side->snapshot, NULL, take_feed, side);
	if (r < 0)
		return command_fail_kinf(side->kinf);
	if (side->n_feeds)
		qsort(side->feeds, side->n_feeds, sizeof(*side->feeds), compare_names);
	return r ? command_fail(err_set(-ENOMEM, "names of feeds")) : PROC_OK;
}

/* ---- objects ---- */

static int side_next(struct side *side)
{
	int r = kinf_list_next(side->list, &side->object);

	side->there = r == KINF_FOUND;
	return r < 0 ? command_fail_kinf(side->kinf) : PROC_OK;
}

/* A feed that has not been listed yet has no objects. */
static int side_list(struct side *side, const char *feed)
{
	struct kinf_query query = {.size = sizeof(query), .feed = feed};

	kinf_list_close(&side->list);
	side->there = false;
	int r = kinf_list(side->snapshot, &query, &side->list);
	if (r < 0)
		return command_fail_kinf(side->kinf);
	return r == 0 ? side_next(side) : PROC_OK;
}

static struct bytes key_of(const struct side *side)
{
	return BYTES(side->object.key, side->object.key_size);
}

static bool is_same(const struct kinf_object *a, const struct kinf_object *b)
{
	return bytes_equal(BYTES(a->uid, a->uid_size), BYTES(b->uid, b->uid_size)) &&
		bytes_equal(BYTES(a->body, a->body_size), BYTES(b->body, b->body_size));
}

/* Below 0: the first side's object has no counterpart; above: the second's; 0: same key. */
static int compare_sides(const struct diff *diff)
{
	const struct side *a = &diff->side[FIRST], *b = &diff->side[SECOND];

	if (!a->there || !b->there)
		return a->there ? -1 : 1;
	return bytes_compare(key_of(a), key_of(b));
}

static int say(struct diff *diff, const char *feed, int order)
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
	struct side *a = &diff->side[FIRST], *b = &diff->side[SECOND];
	int status = side_list(a, feed);

	if (status == PROC_OK)
		status = side_list(b, feed);
	while (status == PROC_OK && (a->there || b->there)) {
		int order = compare_sides(diff);

		if (order || !is_same(&a->object, &b->object))
			status = say(diff, feed, order);
		if (status == PROC_OK && order <= 0)
			status = side_next(a);
		if (status == PROC_OK && order >= 0)
			status = side_next(b);
	}
	return status;
}

static int say_lone_feed(struct diff *diff, const char *feed, int order)
{
	diff->differ = true;
	buf_printf(&diff->out, "%c %s\n", order < 0 ? '<' : '>', feed);
	int r = print_text(&diff->out);
	return r < 0 ? command_fail(r) : PROC_OK;
}

/* Both lists of feeds are in order. */
static int diff_feeds(struct diff *diff)
{
	const struct side *a = &diff->side[FIRST], *b = &diff->side[SECOND];
	size_t i = 0, j = 0;
	int status = PROC_OK;

	while (status == PROC_OK && (i < a->n_feeds || j < b->n_feeds)) {
		int order = i == a->n_feeds ? 1
			: j == b->n_feeds   ? -1
					    : strcmp(a->feeds[i], b->feeds[j]);

		if (order)
			status = say_lone_feed(diff, order < 0 ? a->feeds[i] : b->feeds[j], order);
		else
			status = diff_feed(diff, a->feeds[i]);
		i += order <= 0;
		j += order >= 0;
	}
	return status;
}

/* ---- the command ---- */

/* Whose bytes a fault was in can't be told there. */
static void catch_faults(const char *first, const char *second)
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
		"Prints what differs between two stores: '<' is in the first only, '>' in the "
		"second; '!' in both, "
		"and not the same, with both resourceVersions. Exit 1 when anything does.",
		groups, ARRAY_SIZE(groups), false};
	int r = options_parse(&options, argc, argv, &first);

	if (r == 0 && argc - first != SIDES)
		r = options_bad(&options, "two stores are wanted");
	if (r != 0)
		return command_usage(&options, r);
	catch_faults(argv[first], argv[first + 1]);
	for (int i = 0; i < SIDES; i++)
		if (side_open(&diff.side[i], argv[first + i]) != PROC_OK)
			return PROC_FAILED;
	int status = diff_feeds(&diff);
	return status == PROC_OK && diff.differ ? PROC_FAILED : status;
}
