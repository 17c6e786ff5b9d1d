/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf diff STORE1 STORE2: the objects with differences, by key. Each store is read from one
 * snapshot. In a damaged copy the readable objects are compared, and the others named on stderr.
 * kinf diff FEED NAME --from EVENT is in history.c.
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
#include "common/text/utf8.h"
#include "reader/handle.h"

enum { FIRST, SECOND, SIDES };

struct diff_side {
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
	char **feeds; /* names, in byte order, each once */
	size_t n_feeds, feeds_room;
	struct kinf_listing *list; /* of the current feed */
	struct kinf_object object;
	bool there;   /* OBJECT is the next object of LIST */
	bool damaged; /* only its key is readable */
	bool broken;  /* LIST ended with an error: the objects after its last one are unknown */
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
	if (command_open_directory(store, 0, &side->kinf) < 0 ||
		command_snapshot(side->kinf, &side->snapshot) < 0)
		return PROC_FAILED;
	int r = kinf_feed_status(side->snapshot, NULL, diff_add_feed, side);
	if (r < 0)
		return command_fail_kinf(side->kinf);
	if (side->n_feeds)
		qsort(side->feeds, side->n_feeds, sizeof(*side->feeds), array_by_text);
	return PROC_OK;
}

/* ---- objects ------------------------------------------------------------ */

static int diff_side_next(struct diff_side *side)
{
	struct bytes key;
	int r = kinf_list_next(side->list, &side->object);

	side->there = r == KINF_FOUND;
	side->damaged = false;
	if (r != KINF_CORRUPT)
		return r < 0 ? command_fail_kinf(side->kinf) : PROC_OK;
	(void)command_fail_kinf(side->kinf);
	command_saw_damage = true;
	side->damaged = list_passed_over(side->list, &key);
	side->there = side->damaged;
	side->broken = !side->damaged;
	if (side->damaged)
		side->object =
			(struct kinf_object){.key = key.data, .key_size = (uint32_t)key.size};
	return PROC_OK;
}

/* Returns true if SIDE has KEY, or may have it, although its list of FEED lacks it: its index is
 * damaged, or its list ended with an error. */
static bool diff_side_may_have(struct diff_side *side, const char *feed, struct bytes key)
{
	struct snapshot *snapshot = side->snapshot->snapshot;
	const struct feed_set *set;
	struct head head;

	if (!side->kinf->is_damaged || side->broken)
		return side->broken;
	int r = feed_set_get(side->snapshot, feed, &set);

	for (size_t i = 0; r == FOUND && i < set->n; i++) {
		r = journal_head(snapshot_journal(snapshot), snapshot_journal_txn(snapshot),
			set->feeds[i].definition.id, key, &head);
		if (r == FOUND)
			return true;
		r = r == NOT_FOUND ? FOUND : r;
	}
	err_ignore(r < 0 ? r : 0, "the object is not known to be missing");
	return r < 0;
}

/* Begins the list of a feed. Returns PROC_FAILED with a printed error, also if the feed was never
 * listed and its objects are unknown. */
static int diff_side_list(struct diff_side *side, const char *feed)
{
	struct kinf_query query = {.size = sizeof(query), .feed = feed};

	kinf_list_close(&side->list);
	side->there = side->broken = false;
	int r = kinf_list(side->snapshot, &query, &side->list);
	if (r < 0)
		return command_fail_kinf(side->kinf);
	if (r == KINF_AGAIN)
		return command_fail_again(side->kinf, side->snapshot, feed, NULL);
	return diff_side_next(side);
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

/* Prints the difference of an object of FEED if it is known in both stores. ORDER below 0: only the
 * first store's list has it; above 0: only the second's. */
static int diff_object(struct diff *diff, const char *feed, int order)
{
	struct diff_side *a = &diff->side[FIRST], *b = &diff->side[SECOND];
	const struct kinf_object *x = &a->object, *y = &b->object;
	const struct kinf_object *const objects[SIDES] = {x, y};
	const struct kinf_object *named = order > 0 ? y : x;

	if ((order <= 0 && a->damaged) || (order >= 0 && b->damaged))
		return PROC_OK; /* it was named */
	if (order &&
		diff_side_may_have(order < 0 ? b : a, feed, BYTES(named->key, named->key_size))) {
		char note[ERR_TEXT_MAX];

		command_saw_damage = true;
		(void)snprintf(note, sizeof(note), "%s %.*s is not compared: '%s' is damaged there",
			feed, (int)named->key_size, named->key,
			(order < 0 ? b : a)->kinf->directory);
		utf8_make_printable(note);
		(void)fprintf(stderr, "note: %s\n", note);
		return PROC_OK;
	}
	if (order == 0 && bytes_equal(BYTES(x->uid, x->uid_size), BYTES(y->uid, y->uid_size)) &&
		bytes_equal(BYTES(x->body, x->body_size), BYTES(y->body, y->body_size)))
		return PROC_OK;
	return diff_print(diff, feed, order, objects);
}

/* Compares the objects of a feed, in the order of keys in both lists. */
static int diff_feed(struct diff *diff, const char *feed)
{
	struct diff_side *a = &diff->side[FIRST], *b = &diff->side[SECOND];
	const struct kinf_object *x = &a->object, *y = &b->object;
	int status = diff_side_list(a, feed);

	if (status == PROC_OK)
		status = diff_side_list(b, feed);
	while (status == PROC_OK && (a->there || b->there)) {
		/* Below 0: only the first store has the object; above 0: only the second. */
		int order = !a->there   ? 1
			    : !b->there ? -1
					: bytes_compare(BYTES(x->key, x->key_size),
						  BYTES(y->key, y->key_size));

		status = diff_object(diff, feed, order);
		if (status == PROC_OK && order <= 0)
			status = diff_side_next(a);
		if (status == PROC_OK && order >= 0)
			status = diff_side_next(b);
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
	struct config_flags flags = {0};
	struct diff_args args = {0};
	uint64_t from;
	int first;
	const struct options_group groups[] = {
		{"Options", diff_options, ARRAY_SIZE(diff_options), &args},
		config_common_options(&flags),
	};
	const struct options options = {"kinf diff", "STORE1 STORE2 | FEED NAME --from N",
		"Prints the objects that differ between two stores: '<' only in the first, '>' "
		"only in the second, '!' in both but different, with both resourceVersions. With "
		"--from prints the fields in which an object differs from its retained state of "
		"then. Exits with 1 if there are differences.",
		groups, ARRAY_SIZE(groups), false};
	int r = options_parse(&options, argc, argv, &first);

	if (r == 0 && args.from) {
		if (decimal_parse(bytes_str(args.from), UINT64_MAX, &from) == 0)
			return history_diff(&options, &flags, argv + first, (size_t)(argc - first),
				args.namespace_, from);
		r = options_bad(&options,
			"--from '%s' is no event number; 'kinf history' prints them", args.from);
	}
	if (r == 0 && args.namespace_)
		r = options_bad(&options, "-n is for one object, with --from");
	if (r == 0 && argc - first != SIDES)
		r = options_bad(&options, "write two stores");
	if (r != 0)
		return command_usage(&options, r);
	if (!strchr(argv[first], '/') && access(argv[first], F_OK) < 0) {
		(void)fprintf(stderr,
			"Error: there is no store '%s' here; to see what has changed in an object "
			"of the feed '%s', add --from and an event, as 'kinf history' prints "
			"them\n",
			argv[first], argv[first]);
		return PROC_FAILED;
	}
	(void)snprintf(stores, sizeof(stores), "%s' or '%s", argv[first], argv[first + 1]);
	faults_catch("kinf", stores);
	for (int i = 0; i < SIDES; i++)
		if (diff_side_open(&diff.side[i], argv[first + i]) != PROC_OK)
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
