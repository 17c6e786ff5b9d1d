/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline of a feed: the seq and resourceVersion of each record in the log, in memory. It
 * answers the watch cache's questions: the records after RV N, is the history after N whole, the
 * seq of RV N's state. A watcher is a position in it, a seq.
 *
 *	timeline_begin(t, &checkpoint)         before the first record above the horizon
 *	timeline_add(t, &record) ...           each record of the feed, in the log's order
 *	timeline_break(t)                      records of the log, maybe the feed's, can't be read
 *	timeline_settle(t, &checkpoint, end)   added records are visible, trimmed ones gone
 *	timeline_seek(t, rv, &position)        from where a watch of N goes on
 *	timeline_next(t, position, &entry)     the entry after a position
 *
 * H is the newest visible RV, O the oldest with a whole history after it.
 *
 * A list bracket (a relist) is one entry, with C, the RV before it, and L, the list's: the changes
 * between them are unknown, so no watch can begin there. An abandoned list stays invisible until
 * the next list has ended; both are one entry then. The first list is no entry: nothing was visible
 * before it.
 *
 * RVs are numbers of at most 128 bits. A feed of an extension server may have others: they are only
 * compared for equality, by a hash.
 */
#ifndef SERVE_CATALOG_TIMELINE_H
#define SERVE_CATALOG_TIMELINE_H

#include "store/journal/journal.h"

typedef unsigned __int128 timeline_rv;

#define TIMELINE_RV_SIZE 64 /* of an RV's text, with a NUL; longer ones are not served */

struct timeline_entry {
	uint64_t seq;   /* of the record; of a bracket its LIST_END */
	uint64_t begin; /* of a bracket: its first LIST_BEGIN; else 0 */
	timeline_rv rv; /* never falls */
};

struct timeline_bracket {
	uint64_t seq;     /* of the entry */
	timeline_rv from; /* C */
};

struct timeline {
	struct timeline_entry *entries; /* those before `first` were trimmed */
	size_t first, n, room;
	struct timeline_bracket *brackets;
	size_t n_brackets, brackets_room;
	bool opaque; /* an RV is no number */
	bool broken; /* a record may be missing: all before the next settling is given up then */
	bool listed;
	bool has_oldest;
	timeline_rv oldest;  /* O */
	timeline_rv earlier; /* newer than H, and up to this: RVs of an earlier journal */
	uint64_t gone;       /* positions before this seq are not kept */
	uint64_t pending;    /* LIST_BEGIN of an unfinished list; 0: none */
	timeline_rv pending_from;
	bool pending_known; /* pending_from is known: it is no first list */
	uint64_t visible;   /* the last visible seq; 0: nothing */
	timeline_rv newest; /* H */
	char newest_text[TIMELINE_RV_SIZE];
};

void timeline_release(struct timeline *timeline);

void timeline_begin(struct timeline *timeline, const struct feed_checkpoint *checkpoint);

int timeline_add(struct timeline *timeline, const struct record *record);
void timeline_break(struct timeline *timeline);
/* Everything up to END, the end of the log, was added. After timeline_break() no position before
 * the visible one is kept, and no RV before H. */
void timeline_settle(
	struct timeline *timeline, const struct feed_checkpoint *checkpoint, uint64_t end);

enum timeline_place {
	TIMELINE_FOUND,
	TIMELINE_GONE,   /* the history after N is not whole: 410 */
	TIMELINE_FUTURE, /* N is newer than H */
	TIMELINE_INVALID /* N is no RV of this feed: 400 */
};

/* Finds the position of RV: all newer records come after it, and its state is the state of RV.
 * FUTURE: the position is `visible`. RET_RV: RV's comparable value; may be NULL. */
enum timeline_place timeline_seek(const struct timeline *timeline, struct bytes rv,
	uint64_t *ret_position, timeline_rv *ret_rv);

/* Finds the first entry after POSITION. Returns: FOUND, END: none is visible; LAPPED: the position
 * is not kept. */
int timeline_next(
	const struct timeline *timeline, uint64_t position, struct timeline_entry *ret_entry);

/* Returns the last seq up to SEQ outside of brackets: clients may see its state. */
uint64_t timeline_settled(const struct timeline *timeline, uint64_t seq);
/* Writes the RV of the state as of SEQ, a settled one; "" if unknown. */
void timeline_rv_at(const struct timeline *timeline, uint64_t seq, char text[TIMELINE_RV_SIZE]);
/* Writes the RV of the last record added, trimmed or not; "" if it is not known. */
void timeline_last(const struct timeline *timeline, char text[TIMELINE_RV_SIZE]);
/* Writes O, as it is shown to clients. */
void timeline_oldest(const struct timeline *timeline, char text[TIMELINE_RV_SIZE]);

/* Reads digits, with leading zeros. Returns whether TEXT is a number below 2^128. */
bool timeline_rv_parse(struct bytes text, timeline_rv *ret_rv);
void timeline_rv_format(timeline_rv rv, char text[TIMELINE_RV_SIZE]);

#endif
