/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The past: a snapshot of the state as of an earlier event.
 *
 *	past_parse(text, now_ns, &when)            an event, a time, or how long ago
 *	past_enter(snapshot, &when)                from here on it shows that state
 *	kinf_get(), kinf_list(), kinf_history(), kinf_index_values() ...
 *
 * A feed listed later, or without its history, gives KINF_GONE with a sentence.
 */
#ifndef READER_PAST_H
#define READER_PAST_H

#include "reader/handle.h"
#include "store/read/as_of.h"

struct past {
	uint64_t event;   /* 0: find it by the time */
	uint64_t time_ns; /* CLOCK_REALTIME; 0: the event's time */
};

/* Reads an event number, an RFC 3339 time, or a duration before NOW_NS. Returns 0 or ERR_SYNTAX. */
int past_parse(const char *text, uint64_t now_ns, struct past *ret_past);

/* Makes SNAPSHOT show the state of WHEN, and fills in the rest of it. Returns: 0; KINF_GONE: it is
 * before the history; KINF_AGAIN: the event is not there yet. */
int past_enter(struct kinf_snapshot *snapshot, struct past *when);

/* Opens the state of FEED as of SEQ. Returns: 0; GONE; AGAIN: SEQ is not there yet. For the last
 * two TEXT is the reason. */
int past_open(struct snapshot *snapshot, const struct snapshot_feed *feed, uint64_t seq,
	struct as_of **ret_as_of, char *text, size_t size);

/* Gets the object KEY of FEED as of the snapshot's event. Returns: FOUND, NOT_FOUND, GONE, AGAIN;
 * errors. */
int past_get(struct kinf_snapshot *snapshot, const struct snapshot_feed *feed, struct bytes key,
	struct record *ret_record);

#endif
