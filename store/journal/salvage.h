/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records left of a journal with broken trees. `cp` or `tar` of a store in use copies the
 * newest state's roots first and its pages later, some of them used again by then, so the copy of a
 * large journal seldom has a whole tree. But its records are in the pages, each with its seq and a
 * checksum. They are found page by page (store/env/pages.h).
 *
 * A found record was in the journal once, perhaps no longer when the copy was made: free pages keep
 * trimmed and compacted records. The newest state is unknown too. So this is for people looking at
 * history (kinf dump, kinf verify), and no object is looked up in it.
 */
#ifndef STORE_JOURNAL_SALVAGE_H
#define STORE_JOURNAL_SALVAGE_H

#include "store/journal/journal.h"

struct salvage;

/* Reads all pages of the current journal, even of one refused by journal_open_read(). The file
 * stays mapped: programs call faults_catch(). Returns: FOUND; NOT_FOUND: there is no journal, or
 * nothing in it; errors. */
int salvage_open(const struct home *home, struct salvage **ret_salvage);
void salvage_close(struct salvage **salvage);

uint32_t salvage_generation(const struct salvage *salvage);
/* Returns the newest meta row found, perhaps with an old horizon. NULL: none. Lives as long as
 * SALVAGE. */
const struct journal_meta *salvage_meta(const struct salvage *salvage);
/* Steps WALK, of zeros at first, to the next feed by id, with its newest checkpoint found. FOUND,
 * END. */
int salvage_next_feed(const struct salvage *salvage, struct feed_walk *walk);

/* Calls FN for each record from FROM to TO, each seq once, until it returns non-zero, and returns
 * the result. RECORD borrows from SALVAGE. */
typedef int salvage_record_fn(void *arg, const struct record *record);
int salvage_each_record(const struct salvage *salvage, uint64_t from, uint64_t to,
	salvage_record_fn *fn, void *arg);
size_t salvage_records(const struct salvage *salvage); /* how many */

/* Writes a sentence without full stop into TEXT: the number of records found, and of those missing
 * in the history. */
#define SALVAGE_TEXT_SIZE 256
void salvage_describe(const struct salvage *salvage, char text[SALVAGE_TEXT_SIZE]);

#endif
