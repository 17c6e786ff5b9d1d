/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf watch FEED: a follower's walk (store/read/follow.h), filtered, one line an event.
 *
 * The cursor says what was printed and no more: it is written from SYNC on, behind a flush, when
 * there is nothing to do or enough has been done since. A position that moved without a line is
 * written now and then, so that the journal need not keep history for us.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "reader/command/command.h"
#include "reader/command/outlet.h"
#include "reader/filter.h"
#include "reader/command/watch_print.h"
#include "reader/handle.h"
#include "store/read/follow.h"

#define WAIT_MS        200 /* signals are looked for this often while nothing happens */
#define LOOK_EVERY     64
#define FLUSH_BYTES    (64 << 10)
#define SAVE_ITEMS     1000
#define SAVE_NS        (50 * UINT64_C(1000000))   /* after a line */
#define SAVE_BUSY_NS   (1000 * UINT64_C(1000000)) /* after a line, while more are coming */
#define FEEDS_NS       (1000 * UINT64_C(1000000)) /* feeds may come behind the name */
#define SAVE_SILENT_NS (5000 * UINT64_C(1000000)) /* the position alone has moved */
#define SAVE_AGAIN_NS  (60000 * UINT64_C(1000000)) /* not even that: an old cursor expires */

struct watch_args {
	struct query_args query;
	const char *output, *cursor;
	uint64_t count;
	bool old, no_initial, types;
};

static const struct option_spec watch_options[] = {
	{'o', "output", OPTION_TEXT, offsetof(struct watch_args, output), "FORMAT",
		"table, name or json"},
	{0, "output-watch-events", OPTION_FLAG, offsetof(struct watch_args, types), NULL,
		"table and name: print the type of each event too"},
	{0, "no-initial", OPTION_FLAG, offsetof(struct watch_args, no_initial), NULL,
		"begin with the changes from now on"},
	{0, "old", OPTION_FLAG, offsetof(struct watch_args, old), NULL,
		"json: print the state before a change too"},
	{0, "cursor", OPTION_TEXT, offsetof(struct watch_args, cursor), "NAME",
		"go on after what a watch with this cursor printed last"},
	{0, "count", OPTION_NUMBER, offsetof(struct watch_args, count), "N",
		"end after N objects were printed"},
};

struct watch {
	struct watch_args args;
	const char *feed;
	struct kinf *kinf;
	struct store *store; /* KINF's */
	struct filter filter;
	struct watch_print print;
	struct outlet out;
	bool described;      /* PRINT knows what the feed looks like */
	bool waiting_told;   /* that there is nothing to read yet */
	struct follow *follow;
	uint32_t *feeds;     /* of FOLLOW, */
	uint8_t journal[16]; /* and the journal they are of */
	size_t n_feeds;
	uint64_t feeds_ns;   /* when they were looked up */
	uint64_t printed;    /* objects, ever */
	unsigned turns;      /* of the loop */
	/* Since the cursor was written. */
	struct follow_position *saved;
	size_t n_saved;
	uint64_t saved_ns, written_ns; /* looked whether the cursor is to be written, did so */
	uint64_t items;
};

/* ---- the feeds behind the name ---- */

static int take_status(void *arg, const struct kinf_feed_info *status)
{
	struct watch *w = arg;

	watch_print_begin(&w->print, status);
	w->described = true;
	return END;
}

static bool can_hold(const struct watch *w, const struct snapshot_feed *feed)
{
	const char *only = feed->definition.namespace_;
	const char *wanted = w->filter.query.namespace_;

	return !*only || !wanted || strcmp(only, wanted) == 0;
}

/* Of one snapshot: ids, indexes, how a name looks. */
static int look_up_in(struct watch *w, struct kinf_snapshot *snapshot)
{
	AUTO_FREE struct snapshot_feed *feeds = NULL;
	size_t n, kept = 0;
	int r = snapshot_feeds(snapshot->snapshot, w->feed, &feeds, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (can_hold(w, &feeds[i]))
			feeds[kept++] = feeds[i];
	r = filter_learn(&w->filter, snapshot->snapshot, feeds, kept);
	if (r != 0)
		return r;
	free(w->feeds);
	w->n_feeds = 0;
	w->feeds = calloc(kept + 1, sizeof(*w->feeds));
	if (!w->feeds)
		return err_set(-ENOMEM, "watch");
	for (size_t i = 0; i < kept; i++)
		w->feeds[w->n_feeds++] = feeds[i].definition.id;
	memcpy(w->journal, snapshot_uuid(snapshot->snapshot), sizeof(w->journal));
	w->feeds_ns = proc_monotonic_ns();
	if (w->described)
		return 0;
	(void)command_note_state(snapshot, w->feed, 0); /* a courtesy */
	r = kinf_feed_status(snapshot, w->feed, take_status, w);
	return r < 0 ? r : 0;
}

/* 0; AGAIN: there is nothing to follow yet. */
static int look_up(struct watch *w)
{
	struct kinf_snapshot *snapshot = NULL;
	int r = kinf_snapshot_open(w->kinf, &snapshot);

	if (r == 0)
		r = look_up_in(w, snapshot);
	kinf_snapshot_close(&snapshot);
	if (r == AGAIN && !w->waiting_told) {
		(void)fprintf(stderr, "note: %s: nothing to read yet, waiting\n", w->feed);
		w->waiting_told = true;
	}
	return r;
}

static bool is_followed(const struct watch *w, uint32_t feed)
{
	for (size_t i = 0; i < w->n_feeds; i++)
		if (w->feeds[i] == feed)
			return true;
	return false;
}

/* The configuration may give a name another namespace while we run. GONE: there is a listed feed
 * that is not followed. One that goes is the follower's to tell. */
static int feeds_are_all(struct watch *w)
{
	struct kinf_snapshot *snapshot = NULL;
	const struct feed_set *set;
	uint64_t now = proc_monotonic_ns();

	if (now - w->feeds_ns < FEEDS_NS)
		return 0;
	w->feeds_ns = now;
	int r = kinf_snapshot_open(w->kinf, &snapshot);
	if (r == 0)
		r = feed_set_get(snapshot, w->feed, &set);
	for (size_t i = 0; r == 0 && i < set->n; i++)
		if (set->feeds[i].visible && can_hold(w, &set->feeds[i]) &&
			!is_followed(w, set->feeds[i].definition.id))
			r = GONE;
	kinf_snapshot_close(&snapshot);
	return r == GONE ? GONE : 0; /* what else went wrong, following meets too */
}

/* ---- the cursor ---- */

static void note_saved(struct watch *w)
{
	const struct follow_position *positions;
	size_t n = follow_positions(w->follow, &positions);

	if (w->n_saved != n) {
		free(w->saved);
		w->saved = calloc(n + 1, sizeof(*w->saved));
		w->n_saved = w->saved ? n : 0; /* without memory: written once more than needed */
	}
	if (w->n_saved)
		memcpy(w->saved, positions, n * sizeof(*positions));
}

static bool has_moved(struct watch *w)
{
	const struct follow_position *positions;
	size_t n = follow_positions(w->follow, &positions);

	return n != w->n_saved || (n && memcmp(positions, w->saved, n * sizeof(*positions)) != 0);
}

/* Everything handed out is printed first. */
static int save(struct watch *w)
{
	const struct follow_position *positions;
	int r = watch_print_settle(&w->print, &w->out.text);

	if (r == 0)
		r = outlet_flush(&w->out);
	w->items = 0;
	w->saved_ns = proc_monotonic_ns();
	if (r < 0 || !w->args.cursor || !follow_synced(w->follow) ||
		(!has_moved(w) && w->saved_ns - w->written_ns < SAVE_AGAIN_NS))
		return r;
	size_t n = follow_positions(w->follow, &positions);
	r = cursor_save(store_home(w->store), w->args.cursor, follow_uuid(w->follow), positions, n);
	if (r == 0) {
		note_saved(w);
		w->written_ns = w->saved_ns;
	}
	return r;
}

/* After an item, or when there is none (IDLE). */
static int save_when_due(struct watch *w, bool idle)
{
	uint64_t since = proc_monotonic_ns() - w->saved_ns;
	bool due = w->items ? idle ? since >= SAVE_NS : since >= SAVE_BUSY_NS
			    : since >= SAVE_SILENT_NS;

	if (due || w->items >= SAVE_ITEMS)
		return save(w);
	if (!idle && w->out.text.size < FLUSH_BYTES)
		return 0;
	int r = idle ? watch_print_settle(&w->print, &w->out.text) : 0;
	return r < 0 ? r : outlet_flush(&w->out);
}

/* ---- items ---- */

static int print_event(struct watch *w, const struct watch_event *event)
{
	w->items++;
	if (event->object)
		w->printed++;
	return watch_print(&w->print, event, &w->out.text);
}

static int print_initial(struct watch *w, const struct follow_item *item)
{
	int r = filter_takes(&w->filter, &item->record);

	if (r != FOUND)
		return r < 0 ? r : 0;
	return print_event(w, &(struct watch_event){
		.type = "ADDED", .event = item->seq, .initial = true, .object = &item->record});
}

/* What a change is to somebody who sees only what the filter takes: WAS and IS say whether it took
 * the state before and takes the one after. */
static int print_change(struct watch *w, const struct follow_item *item, bool was, bool is)
{
	bool deleted = item->record.type == RECORD_DELETED;
	struct watch_event event = {
		.type = !was ? "ADDED" : is ? "MODIFIED" : "DELETED",
		.event = item->seq,
		.object = &item->record,
		.old = was && w->args.old ? &item->old : NULL,
		.final_state_unknown = (item->record.flags & RECORD_FINAL_STATE_UNKNOWN) != 0,
	};

	if (!was && !is)
		return 0;
	/* Out of the filter, or deleted unseen: the last state that is known to it. */
	if (!is && (!deleted || !item->record.body.size))
		event.object = &item->old;
	return print_event(w, &event);
}

static int take_change(struct watch *w, const struct follow_item *item)
{
	int was = item->old.seq ? filter_takes(&w->filter, &item->old) : NOT_FOUND;
	int is = item->record.type == RECORD_DELETED
		? NOT_FOUND
		: filter_takes(&w->filter, &item->record);

	if (was < 0 || is < 0)
		return was < 0 ? was : is;
	return print_change(w, item, was == FOUND, is == FOUND);
}

/* Its event number is that of the last change the initial state holds. */
static int print_sync(struct watch *w)
{
	const struct follow_position *positions;
	size_t n = follow_positions(w->follow, &positions);
	struct watch_event event = {.type = "SYNC"};

	for (size_t i = 0; i < n; i++)
		if (positions[i].seq > event.event)
			event.event = positions[i].seq;
	return print_event(w, &event);
}

/* 0, LAPPED, or an error. */
static int take_item(struct watch *w, const struct follow_item *item)
{
	switch (item->kind) {
	case FOLLOW_INITIAL:
		return print_initial(w, item);
	case FOLLOW_CHANGE:
		return take_change(w, item);
	case FOLLOW_SYNC:
		return print_sync(w);
	default:
		return LAPPED;
	}
}

/* ---- following ---- */

/* Looking for signals costs a system call: not at every item. */
static bool is_over(struct watch *w, bool idle)
{
	if (w->args.count && w->printed >= w->args.count)
		return true;
	return idle || w->turns++ % LOOK_EVERY == 0 ? outlet_ended(&w->out) : w->out.ended;
}

/* END: told to, or all is printed; GONE, LAPPED: with a new follower, from the start; errors. */
static int follow_on(struct watch *w)
{
	struct follow_item item;
	bool idle = false;

	while (!is_over(w, idle)) {
		int r = follow_next(w->follow, &item);

		idle = r == AGAIN;
		if (r == FOUND)
			r = take_item(w, &item);
		else if (!idle)
			return r;
		if (r == 0 || idle)
			r = save_when_due(w, idle);
		if (r != 0)
			return r;
		if (!idle)
			continue;
		r = feeds_are_all(w);
		if (r != 0)
			return r;
		(void)follow_wait(w->follow, WAIT_MS); /* 0 and AGAIN both mean: look again */
	}
	int r = save(w);
	return r < 0 ? r : END;
}

/* Does the cursor go on where these feeds are? One that is of others has missed or lost some. */
static bool is_of_feeds(const struct watch *w, const struct cursor_file *cursor)
{
	size_t found = 0;

	for (size_t i = 0; i < cursor->n; i++)
		for (size_t k = 0; k < w->n_feeds; k++)
			found += cursor->positions[i].feed == w->feeds[k];
	return found == w->n_feeds && cursor->n == w->n_feeds;
}

/* Makes the follower; after a lapse one that begins with all objects. LAPPED when the cursor's
 * feeds are not these. */
static int begin(struct watch *w, bool lapsed)
{
	CLEANUP(cursor_release) struct cursor_file cursor = {.n = 0};
	struct follow_options options = {
		.no_initial = w->args.no_initial && !lapsed, .journal = w->journal};

	if (w->args.cursor && !lapsed) {
		int r = cursor_load(store_home(w->store), w->args.cursor, &cursor);

		if (r < 0)
			return r;
		if (r == FOUND && !is_of_feeds(w, &cursor))
			return LAPPED;
		if (r == FOUND) {
			options.from = cursor.positions;
			options.n_from = cursor.n;
			options.from_uuid = cursor.uuid;
		}
	}
	return follow_new(w->store, w->feeds, w->n_feeds, &options, &w->follow);
}

/* A new initial state follows: said once, and whole, also when only one of several feeds made it
 * necessary, so that "what is not in it is gone" holds for all of them. */
static int begin_again(struct watch *w)
{
	follow_free(&w->follow);
	if (w->print.format != WATCH_JSON)
		(void)fprintf(stderr, "note: %s: the history needed is not kept any more; a new "
			"initial state follows\n", w->feed);
	return print_event(w, &(struct watch_event){.type = "LAPPED"});
}

static int watch_loop(struct watch *w)
{
	bool lapsed = false;

	while (!outlet_ended(&w->out)) {
		int r = look_up(w);

		if (r == AGAIN) {
			struct timespec pause = {.tv_nsec = WAIT_MS / 4 * 1000000L};
			(void)nanosleep(&pause, NULL); /* woken early: looks early */
			continue;
		}
		if (r == 0)
			r = failpoint_pass(FAILPOINT_WATCH_FEEDS);
		if (r == 0)
			r = begin(w, lapsed);
		if (r == 0) {
			w->saved_ns = proc_monotonic_ns();
			r = follow_on(w);
		}
		if (r != GONE && r != LAPPED)
			return r;
		lapsed = true;
		r = begin_again(w);
		if (r < 0)
			return r;
	}
	return END;
}

static int watch_run(struct watch *w, const struct config_flags *flags)
{
	if (command_open(flags, &w->kinf) < 0)
		return PROC_FAILED;
	w->store = w->kinf->store;
	int r = outlet_init(&w->out);
	if (r == 0)
		r = watch_loop(w);
	if (r == END)
		return PROC_OK;
	if (r == -EPIPE || r == -EINTR) /* nobody reads any more: nothing to say */
		return PROC_FAILED;
	return command_fail(r);
}

static void watch_release(struct watch *w)
{
	follow_free(&w->follow);
	watch_print_release(&w->print);
	filter_release(&w->filter);
	outlet_release(&w->out);
	kinf_close(&w->kinf);
	free(w->feeds);
	free(w->saved);
	query_args_release(&w->args.query);
}

int command_watch(int argc, char **argv)
{
	CLEANUP(watch_release) struct watch w = {.out = {.signals = -1}};
	struct config_flags flags = {0};
	struct kinf_query query;
	int first;
	const struct options_group groups[] = {
		query_options(&w.args.query),
		{"Options", watch_options, ARRAY_SIZE(watch_options), &w.args},
		config_common_options(&flags),
	};
	const struct options options = {"kinf watch", "FEED",
		"Prints the objects there are, then every change as it comes. With -o json one "
		"object a line; SYNC marks the end of the initial state, LAPPED a new one.",
		groups, ARRAY_SIZE(groups), false};
	int r = options_parse(&options, argc, argv, &first);

	if (r == 0 && argc - first != 1)
		r = options_bad(&options, "one feed is wanted; 'kinf status' lists them");
	if (r != 0)
		return command_usage(&options, r);
	w.feed = argv[first];
	AUTO_FREE struct kinf_term *terms = calloc(w.args.query.index.n + 1, sizeof(*terms));
	r = terms ? query_from_args(&w.args.query, w.feed, terms, &query) : -ENOMEM;
	if (r == 0)
		r = watch_format(w.args.output, &w.print.format);
	if (r == 0)
		r = filter_init(&w.filter, &query);
	w.print.types = w.args.types;
	return r < 0 ? command_usage(&options, r) : watch_run(&w, &flags);
}
