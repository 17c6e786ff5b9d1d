/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf watch FEED: the items of a follower (store/read/follow.h), filtered and printed, one line
 * each.
 *
 * A cursor never covers a line that the consumer has not got: it is written only after SYNC and a
 * flush of the output, when idle or after enough lines. A position that moved without a line (all
 * filtered out) is also written now and then: the journal need not keep history for this watch.
 */
#include "command/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command/command.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "reader/filter.h"
#include "reader/handle.h"
#include "store/read/cursor_claim.h"
#include "store/read/follow.h"

#define WAIT_MS       200 /* between two checks for signals while nothing happens */
#define SIGNALS_EVERY 64  /* items between two checks for signals */
#define FLUSH_BYTES   (64 << 10)
#define SAVE_ITEMS    1000                     /* the cursor is written after so many lines, or: */
#define SAVE_NS       (50 * UINT64_C(1000000)) /* after a line, when nothing follows */
/* after a line, while more lines follow */
#define SAVE_BUSY_NS   (1000 * UINT64_C(1000000))
#define SAVE_SILENT_NS (5000 * UINT64_C(1000000)) /* when only the position has moved */
/* without any move: an old cursor expires */
#define SAVE_AGAIN_NS (60000 * UINT64_C(1000000))
#define FEEDS_NS      (1000 * UINT64_C(1000000)) /* between two checks for more feeds */

struct watch_args {
	struct query_args query;
	const char *output, *cursor;
	uint64_t count;
	bool old, no_initial, types, watch;
};

#define AT(field) offsetof(struct watch_args, field)

static const struct option_spec watch_options[] = {
	{'o', "output", OPTION_TEXT, AT(output), "FORMAT", WATCH_FORMATS_TEXT, WATCH_FORMATS_WORDS},
	{0, "output-watch-events", OPTION_FLAG, AT(types), NULL,
		"print the type of each event also; yaml, jsonpath and custom columns are then of "
		"{type, object}"},
	{0, "no-initial", OPTION_FLAG, AT(no_initial), NULL, "begin with the changes from now on"},
	{0, "watch-only", OPTION_FLAG, AT(no_initial), NULL, "the same, as kubectl calls it"},
	{'w', "watch", OPTION_FLAG, AT(watch), NULL,
		"does nothing here: 'kinf get -w' is this command"},
	{0, "old", OPTION_FLAG, AT(old), NULL, "json: print the state before a change also"},
	{0, "cursor", OPTION_TEXT, AT(cursor), "CURSOR",
		"go on after the last line that a watch with this cursor printed, once one has "
		"printed all objects that existed; after kill -9 its last lines may come again, "
		"with the same event numbers; a cursor has one follower at a time"},
	{0, "count", OPTION_NUMBER, AT(count), "N", "end after N objects were printed"},
};

struct watching {
	struct watch_args args;
	const char *feed;
	struct kinf *kinf;
	struct store *store; /* KINF's */
	struct filter filter;
	struct buf fields; /* the field selector, with the wanted name */
	struct watch_print print;
	struct watch_writer out;
	bool described;            /* PRINT knows the form of the feed */
	bool waiting_noted;        /* noted that there is nothing to read yet */
	struct cursor_claim claim; /* on the cursor */
	struct follow *follow;
	uint32_t *feeds; /* the ids followed by FOLLOW */
	size_t n_feeds;
	uint8_t journal[16]; /* the uuid of their journal */
	uint64_t feeds_ns;   /* time of their reading */
	uint64_t printed;    /* objects, ever */
	unsigned turns;      /* of the loop */
	/* Since the cursor was written: */
	struct follow_position *saved;
	size_t n_saved;
	uint64_t saved_ns;   /* last decision on writing it */
	uint64_t written_ns; /* last write */
	uint64_t items;
};

/* ---- the feeds of the name ---------------------------------------------- */

/* Returns true if FEED can hold objects of the wanted namespace. */
static bool watch_matches(const struct watching *w, const struct snapshot_feed *feed)
{
	const char *only = feed->definition.namespace_;
	const char *wanted = w->filter.query.namespace_;

	return !*only || !wanted || strcmp(only, wanted) == 0;
}

/* Reads ids and indexes of the feeds from one snapshot, and at first the form of the output.
 * Returns 0; AGAIN: there is nothing to follow yet. */
static int watch_find_feeds(struct watching *w)
{
	CLEANUP(kinf_snapshot_close) struct kinf_snapshot *snapshot = NULL;
	AUTO_FREE struct snapshot_feed *feeds = NULL;
	struct kinf_feed_info info;
	size_t n, kept = 0;
	int r = kinf_snapshot_open(w->kinf, &snapshot);

	if (r == 0)
		r = snapshot_feeds(snapshot->snapshot, w->feed, &feeds, &n);
	if (r != 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (watch_matches(w, &feeds[i]))
			feeds[kept++] = feeds[i];
	r = filter_find_indexes(&w->filter, snapshot->snapshot, feeds, kept);
	if (r == AGAIN)
		return kinf_outcome(w->kinf, r, "the index has not taken this feed yet");
	if (r != 0)
		return r;
	free(w->feeds);
	w->n_feeds = 0;
	w->feeds = calloc(kept + 1, sizeof(*w->feeds));
	if (!w->feeds)
		return err_set(-ENOMEM, "allocating the ids of the feeds");
	for (size_t i = 0; i < kept; i++)
		w->feeds[w->n_feeds++] = feeds[i].definition.id;
	memcpy(w->journal, snapshot_uuid(snapshot->snapshot), sizeof(w->journal));
	w->feeds_ns = proc_monotonic_ns();
	if (w->described)
		return 0;
	r = command_first_feed(snapshot, w->feed, &info);
	if (r < 0)
		return r;
	(void)command_note_state(&(struct command_view){.kinf = w->kinf, .snapshot = snapshot},
		w->feed, w->args.query.namespace_, 0);
	r = watch_print_begin(&w->print, snapshot, &info, !w->args.query.namespace_);
	w->described = r == 0;
	return r;
}

/* Returns GONE if a listed feed of the name is not followed: the configuration may add a namespace.
 * The follower itself reports a removed feed. */
static int watch_check_feeds(struct watching *w)
{
	CLEANUP(kinf_snapshot_close) struct kinf_snapshot *snapshot = NULL;
	const struct feed_set *set;
	uint64_t now = proc_monotonic_ns();

	if (now - w->feeds_ns < FEEDS_NS)
		return 0;
	w->feeds_ns = now;
	int r = kinf_snapshot_open(w->kinf, &snapshot);
	if (r == 0)
		r = feed_set_get(snapshot, w->feed, &set);
	err_ignore(r, "following meets the same failure and reports it");
	for (size_t i = 0; r == 0 && i < set->n; i++) {
		bool followed = !set->feeds[i].visible || !watch_matches(w, &set->feeds[i]);

		for (size_t k = 0; k < w->n_feeds; k++)
			followed |= w->feeds[k] == set->feeds[i].definition.id;
		if (!followed)
			return GONE;
	}
	return 0;
}

/* ---- the cursor --------------------------------------------------------- */

/* Flushes the output, then writes the cursor. */
static int watch_save(struct watching *w)
{
	const struct follow_position *positions;
	int r = watch_print_settle(&w->print, &w->out.text);

	if (r == 0)
		r = watch_writer_flush(&w->out);
	w->items = 0;
	w->saved_ns = proc_monotonic_ns();
	if (r < 0 || !w->args.cursor || !follow_synced(w->follow))
		return r;
	size_t n = follow_positions(w->follow, &positions);
	bool moved =
		n != w->n_saved || (n && memcmp(positions, w->saved, n * sizeof(*positions)) != 0);
	if (!moved && w->saved_ns - w->written_ns < SAVE_AGAIN_NS)
		return 0;
	r = cursor_save(store_home(w->store), w->args.cursor, follow_uuid(w->follow), positions, n);
	if (r < 0)
		return r;
	w->written_ns = w->saved_ns;
	if (w->n_saved != n) {
		free(w->saved);
		w->saved = calloc(n + 1, sizeof(*w->saved));
		w->n_saved = w->saved ? n : 0; /* without memory the cursor is written more often */
	}
	if (w->n_saved)
		memcpy(w->saved, positions, n * sizeof(*positions));
	return 0;
}

/* ---- items -------------------------------------------------------------- */

static int watch_event(struct watching *w, const struct watch_print_event *event)
{
	w->items++;
	if (event->object)
		w->printed++;
	return watch_print(&w->print, event, &w->out.text);
}

/* Prints a change as seen through the filter: WAS and IS tell if the states before and after
 * pass. */
static int watch_change(struct watching *w, const struct follow_item *item)
{
	bool deleted = item->record.type == RECORD_DELETED;
	int was = item->old.seq ? filter_accepts(&w->filter, &item->old) : NOT_FOUND;
	int is = deleted ? NOT_FOUND : filter_accepts(&w->filter, &item->record);

	if (was < 0 || is < 0)
		return was < 0 ? was : is;
	if (was != FOUND && is != FOUND)
		return 0;
	struct watch_print_event event = {
		.type = was != FOUND  ? "ADDED"
			: is == FOUND ? "MODIFIED"
				      : "DELETED",
		.event = item->seq,
		.object = &item->record,
		.old = was == FOUND && w->args.old ? &item->old : NULL,
		.final_state_unknown = (item->record.flags & RECORD_FINAL_STATE_UNKNOWN) != 0,
	};
	/* An object that left the filter, or with an unknown last state, is shown as before. */
	if (is != FOUND && (!deleted || !item->record.body.size))
		event.object = &item->old;
	return watch_event(w, &event);
}

/* Returns 0, LAPPED, or an error. */
static int watch_item(struct watching *w, const struct follow_item *item)
{
	struct watch_print_event event = {
		.type = "ADDED", .event = item->seq, .initial = true, .object = &item->record};
	const struct follow_position *positions;
	int r;

	switch (item->kind) {
	case FOLLOW_INITIAL:
		r = filter_accepts(&w->filter, &item->record);
		return r == FOUND ? watch_event(w, &event) : r < 0 ? r : 0;
	case FOLLOW_CHANGE:
		return watch_change(w, item);
	case FOLLOW_SYNC:
		/* Its event number is that of the last change in the initial state. */
		event = (struct watch_print_event){.type = "SYNC"};
		for (size_t i = follow_positions(w->follow, &positions); i-- > 0;)
			if (positions[i].seq > event.event)
				event.event = positions[i].seq;
		return watch_event(w, &event);
	default:
		return LAPPED;
	}
}

/* As watch_item(). Drops the text of an item with bytes taken away meanwhile. */
static int watch_take(struct watching *w, const struct follow_item *item)
{
	size_t size = w->out.text.size;
	uint64_t printed = w->printed;
	int r = follow_checked(w->follow, watch_item(w, item));

	if (r == ERR_SNAPSHOT_EXPIRED && w->out.text.size > size) {
		w->out.text.size = size;
		w->printed = printed;
	}
	return r;
}

/* ---- following ---------------------------------------------------------- */

/* Takes the rest of the initial state if all its objects are printed: only then a cursor is valid.
 * The next watch gets any other object again. */
static int watch_complete(struct watching *w)
{
	struct follow_item item;
	int r = 0;

	while (r == 0 && !follow_synced(w->follow) && !watch_writer_ended(&w->out)) {
		r = follow_next(w->follow, &item);
		if (r != FOUND)
			break;
		if (item.kind == FOLLOW_INITIAL) {
			r = filter_accepts(&w->filter, &item.record);
			r = r == FOUND ? END : r == NOT_FOUND ? 0 : r;
		} else {
			r = watch_take(w, &item);
		}
	}
	return r < 0 ? r : 0;
}

/* Returns END after a signal or the last line; GONE, LAPPED: start again with a new follower;
 * errors. */
static int watch_follow(struct watching *w)
{
	struct follow_item item;
	bool idle = false;

	while (w->printed < w->args.count) {
		/* Checking for signals costs a system call. */
		if (idle || w->turns++ % SIGNALS_EVERY == 0 ? watch_writer_ended(&w->out)
							    : w->out.ended)
			break;
		int r = follow_next(w->follow, &item);
		idle = r == AGAIN;
		if (r == FOUND)
			r = watch_take(w, &item);
		else if (!idle)
			return r;
		if (r != 0 && !idle)
			return r;
		uint64_t limit = !w->items ? SAVE_SILENT_NS : idle ? SAVE_NS : SAVE_BUSY_NS;
		r = 0;
		if (proc_monotonic_ns() - w->saved_ns >= limit || w->items >= SAVE_ITEMS) {
			r = watch_save(w);
		} else if (idle || w->out.text.size >= FLUSH_BYTES) {
			r = idle ? watch_print_settle(&w->print, &w->out.text) : 0;
			if (r == 0)
				r = watch_writer_flush(&w->out);
		}
		if (r == 0 && idle)
			r = watch_check_feeds(w);
		if (r != 0)
			return r;
		if (idle)
			(void)follow_wait(w->follow, WAIT_MS);
	}
	int r = w->args.cursor && w->args.count > 0 && w->printed >= w->args.count
			? watch_complete(w)
			: 0;
	if (r == 0)
		r = watch_save(w);
	return r < 0 ? r : END;
}

/* Makes the follower; after a lapse, one that begins with all objects. Returns LAPPED if the
 * cursor is of other feeds. */
static int watch_begin(struct watching *w, bool lapsed)
{
	CLEANUP(cursor_release) struct cursor_file cursor = {.n = 0};
	struct follow_options options = {
		.no_initial = w->args.no_initial && !lapsed, .journal = w->journal};

	if (w->args.cursor && !lapsed) {
		int r = cursor_load(store_home(w->store), w->args.cursor, true, &cursor);

		if (r < 0)
			return r;
		if (r == FOUND) {
			if (!cursor_is_of(&cursor, w->feeds, w->n_feeds))
				return LAPPED;
			options.from = cursor.positions;
			options.n_from = cursor.n;
			options.from_uuid = cursor.uuid;
		}
	}
	w->saved_ns = proc_monotonic_ns();
	return follow_new(w->store, w->feeds, w->n_feeds, &options, &w->follow);
}

/* After a lapse of one feed all feeds of the name are repeated, with one LAPPED: "an object not
 * repeated does not exist" holds for the whole output. */
static int watch_loop(struct watching *w)
{
	bool lapsed = false;

	while (!watch_writer_ended(&w->out)) {
		int r = watch_find_feeds(w);

		if (r == AGAIN) {
			if (!w->waiting_noted)
				(void)fprintf(stderr,
					"note: %s: nothing to read yet, waiting: %s\n", w->feed,
					kinf_error(w->kinf));
			w->waiting_noted = true;
			struct timespec pause = {.tv_nsec = WAIT_MS / 4 * 1000000L};
			(void)nanosleep(&pause, NULL); /* a signal ends it early */
			continue;
		}
		if (r == 0)
			r = failpoint_pass(FAILPOINT_WATCH_FEEDS);
		if (r == 0)
			r = watch_begin(w, lapsed);
		if (r == 0)
			r = watch_follow(w);
		/* It was stopped for minutes in the middle of a pass. */
		if (r == ERR_SNAPSHOT_EXPIRED && w->follow && !store_is_copy(w->store)) {
			err_ignore(r, "all objects are given again");
			r = LAPPED;
		}
		if (r != GONE && r != LAPPED)
			return r;
		lapsed = true;
		follow_free(&w->follow);
		if (w->print.print.format != PRINT_JSON)
			(void)fprintf(stderr,
				"note: %s: the store no longer has the needed history; a new "
				"initial state follows\n",
				w->feed);
		r = watch_event(w, &(struct watch_print_event){.type = "LAPPED"});
		if (r < 0)
			return r;
	}
	return END;
}

static void watch_release(struct watching *w)
{
	cursor_unclaim(&w->claim);
	follow_free(&w->follow);
	watch_print_release(&w->print);
	buf_release(&w->fields);
	filter_release(&w->filter);
	watch_writer_release(&w->out);
	kinf_close(&w->kinf);
	free(w->feeds);
	free(w->saved);
	query_args_release(&w->args.query);
}

/* Reads FEED [NAME] or FEED/NAME; NAME may begin with a namespace. */
static int watch_operands(struct watching *w, char *feed, char *name)
{
	char *slash = strchr(feed, '/');
	const char *p;

	w->feed = feed;
	if (strchr(feed, ','))
		return err_say(ERR_SYNTAX, "'%s': watch one feed at a time, as kubectl does", feed);
	if (slash && name)
		return err_say(
			ERR_SYNTAX, "'%s' and '%s': write FEED NAME or FEED/NAME", feed, name);
	if (slash) {
		*slash = '\0';
		name = slash + 1;
	}
	if (!name)
		return 0;
	int r = command_cut_name(&name, &w->args.query.namespace_);
	if (r < 0)
		return r;
	if (!*name)
		return err_say(ERR_SYNTAX, "a name is empty");
	buf_str(&w->fields, "metadata.name=");
	for (p = name; *p; p++) {
		buf_str(&w->fields, strchr("\\,=", *p) ? "\\" : "");
		buf_byte(&w->fields, (uint8_t)*p);
	}
	if (w->args.query.fields)
		buf_printf(&w->fields, ",%s", w->args.query.fields);
	w->args.query.fields = buf_cstr(&w->fields);
	return buf_error(&w->fields);
}

int command_watch(int argc, char **argv)
{
	CLEANUP(watch_release)
	struct watching w = {.args = {.count = UINT64_MAX}, .out = {.signals = -1}};
	struct kinf_query query;
	struct command_line line = {
		.options = {"kinf watch", "FEED [NAME] | FEED/NAME",
			"Prints the objects that exist, then every change. With -o json one object "
			"a line: SYNC marks the end of the initial state, LAPPED the beginning of "
			"a new one."},
		.groups = {query_options(&w.args.query),
			{"Options", watch_options, ARRAY_SIZE(watch_options), &w.args},
			object_table_options(&w.print.print.object_table_args)},
		.takes = {1, 2, "write one feed; 'kinf status' lists them"},
	};
	int r = command_parse(&line, argc, argv);

	if (r == 0)
		r = watch_operands(&w, line.operands[0], line.n == 2 ? line.operands[1] : NULL);
	if (r == 0)
		r = query_from_args(&w.args.query, &query);
	if (r == 0)
		r = watch_print_choose(&w.print, w.args.output);
	if (r == 0)
		query.feed = w.feed;
	if (r == 0)
		r = filter_init(&w.filter, &query);
	if (r == 0 && w.args.cursor)
		r = cursor_check_name(w.args.cursor);
	w.print.types = w.args.types;
	if (r != 0)
		return command_usage(&line, r);
	if (command_open(&line.flags, &w.kinf) < 0)
		return PROC_FAILED;
	w.store = w.kinf->store;
	r = watch_writer_init(&w.out);
	if (r == 0 && w.args.cursor)
		r = cursor_claim(store_home(w.store), w.args.cursor, &w.claim);
	if (r == 0)
		r = watch_loop(&w);
	if (r == END)
		return PROC_OK;
	if (r == -EPIPE || r == -EINTR) /* the consumer is gone: nothing to say */
		return PROC_FAILED;
	(void)kinf_result(w.kinf, r);
	return command_fail_read(w.kinf, w.feed, r);
}
