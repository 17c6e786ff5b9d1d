/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/past.h"

#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/config/units.h"
#include "common/err.h"
#include "common/text/decimal.h"
#include "common/text/timestamp.h"

/* RFC 3339; the seconds may be left out. */
static bool past_parse_time(const char *text, int64_t *ret_ns)
{
	static const size_t minutes = sizeof("2026-01-31T15:00") - 1;
	char whole[TIMESTAMP_SIZE];

	if (timestamp_parse(bytes_str(text), ret_ns))
		return true;
	if (strlen(text) <= minutes || text[minutes] == ':' || strlen(text) + 4 > sizeof(whole))
		return false;
	(void)snprintf(whole, sizeof(whole), "%.*s:00%s", (int)minutes, text, text + minutes);
	return timestamp_parse(bytes_str(whole), ret_ns);
}

int past_parse(const char *text, uint64_t now_ns, struct past *ret_past)
{
	char now[TIMESTAMP_SIZE];
	uint64_t number;
	int64_t time;

	*ret_past = (struct past){0};
	if (*text && !text[strspn(text, "0123456789")]) {
		if (decimal_parse(bytes_str(text), UINT64_MAX, &number) < 0 || !number)
			return err_say(ERR_SYNTAX, "'%.40s': the first event is 1", text);
		ret_past->event = number;
		return 0;
	}
	timestamp_seconds(now_ns, now);
	if (past_parse_time(text, &time)) {
		if (time > 0 && (uint64_t)time > now_ns)
			return err_say(
				ERR_SYNTAX, "'%s' is in the future: it is %s now", text, now);
		ret_past->time_ns = time > 0 ? (uint64_t)time : 1;
		return 0;
	}
	if (units_duration(text, &number) < 0)
		return err_say(ERR_SYNTAX,
			"'%.40s' is no time: write one such as %s, how long ago (10m, 2h), or the "
			"number of an event ('kinf log' lists them)",
			text, now);
	ret_past->time_ns = number < now_ns ? now_ns - number : 1;
	return 0;
}

/* ---- times --------------------------------------------------------------- */

/* Reads the first record of the log from SEQ on. Returns: FOUND, END; errors. */
static int past_record(struct snapshot *snapshot, uint64_t seq, struct record *ret_record)
{
	CLEANUP(journal_walk_close) struct journal_walk *log = NULL;
	int r = journal_walk_open(snapshot_journal_txn(snapshot), seq, &log);

	return r < 0 ? r : journal_walk_next(log, ret_record);
}

/* Writes the time of the first record from SEQ on; "" if it is not known. */
static void past_time_text(struct snapshot *snapshot, uint64_t seq, char text[TIMESTAMP_SIZE])
{
	struct record record;

	*text = '\0';
	if (past_record(snapshot, seq, &record) == FOUND)
		timestamp_seconds(record.time_ns, text);
}

/*
 * Finds the last event up to TIME_NS: the log is searched by halves, for its times rise with its
 * seqs. Below the horizon it has gaps, and there a feed without a trimmed record after the found
 * one still has its state; as_of refuses the others.
 */
static int past_find(struct kinf_snapshot *snapshot, uint64_t time_ns, uint64_t *ret_event)
{
	uint64_t begin = 1, end = snapshot_taken(snapshot->snapshot) + 1;
	char asked[TIMESTAMP_SIZE], first[TIMESTAMP_SIZE], text[160];

	while (begin < end) {
		uint64_t middle = begin + (end - begin) / 2;
		struct record record;
		int r = past_record(snapshot->snapshot, middle, &record);

		if (r < 0)
			return r;
		if (r == END || record.seq >= end || record.time_ns > time_ns)
			end = middle;
		else
			begin = record.seq + 1;
	}
	*ret_event = begin - 1;
	if (*ret_event)
		return 0;
	timestamp_seconds(time_ns, asked);
	past_time_text(snapshot->snapshot, 1, first);
	(void)snprintf(text, sizeof(text), "nothing is known of %s: the history begins at %s",
		asked, first);
	return kinf_outcome(snapshot->kinf, GONE, text);
}

int past_enter(struct kinf_snapshot *snapshot, struct past *when)
{
	uint64_t newest = snapshot_taken(snapshot->snapshot);
	struct record record;
	char text[120];
	int r = 0;

	if (!when->event)
		r = past_find(snapshot, when->time_ns, &when->event);
	if (r != 0)
		return r < 0 ? kinf_result_of(snapshot, r) : r;
	if (when->event > newest) {
		(void)snprintf(text, sizeof(text),
			"event %llu is not there yet; the newest is %llu",
			(unsigned long long)when->event, (unsigned long long)newest);
		return kinf_outcome(snapshot->kinf, AGAIN, text);
	}
	if (!when->time_ns) {
		r = past_record(snapshot->snapshot, when->event, &record);
		if (r < 0)
			return kinf_result_of(snapshot, r);
		when->time_ns = r == FOUND ? record.time_ns : 0;
	}
	snapshot->at_event = when->event;
	return 0;
}

/* ---- states -------------------------------------------------------------- */

static int past_explain(struct snapshot *snapshot, const struct snapshot_feed *feed,
	const struct as_of *as_of, uint64_t seq, char *text, size_t size)
{
	unsigned long long asked = seq, oldest = as_of_oldest(as_of),
			   newest = snapshot_taken(snapshot);
	const char *name = feed->definition.name;
	char since[TIMESTAMP_SIZE];

	past_time_text(snapshot, oldest, since);
	if (asked > newest)
		(void)snprintf(text, size, "event %llu is not there yet; the newest is %llu", asked,
			newest);
	else if (oldest == feed->index.listed)
		(void)snprintf(text, size,
			"the state of '%s' as of event %llu is not known: its first list ended "
			"with event %llu, %s",
			name, asked, oldest, since);
	else
		(void)snprintf(text, size,
			"the state of '%s' as of event %llu is not kept, but those from event %llu "
			"to %llu are, since %s (a larger 'retention' in kinf.yaml keeps more)",
			name, asked, oldest, newest, since);
	return asked > newest ? AGAIN : GONE;
}

int past_open(struct snapshot *snapshot, const struct snapshot_feed *feed, uint64_t seq,
	struct as_of **ret_as_of, char *text, size_t size)
{
	CLEANUP(as_of_free) struct as_of *as_of = NULL;
	int r = as_of_new(feed->definition.id, seq, &as_of);

	if (r == 0)
		r = as_of_renew(as_of, snapshot, SIZE_MAX);
	if (r == LAPPED)
		return past_explain(snapshot, feed, as_of, seq, text, size);
	if (r == 0)
		*ret_as_of = TAKE(as_of);
	return r;
}

int past_get(struct kinf_snapshot *snapshot, const struct snapshot_feed *feed, struct bytes key,
	struct record *ret_record)
{
	int r = 0;

	if (!snapshot->past || snapshot->past_feed != feed->definition.id) {
		as_of_free(&snapshot->past);
		snapshot->past_feed = feed->definition.id;
		r = past_open(snapshot->snapshot, feed, snapshot->at_event, &snapshot->past,
			snapshot->past_reason, sizeof(snapshot->past_reason));
	}
	return r == 0 ? as_of_get(snapshot->past, key, ret_record) : r;
}
