/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns records of the journal into changes of the index, one transaction a batch. The rules of
 * lists (docs/architecture.md, Lists) are in this module only:
 *
 * - the records of a feed with an open list wait;
 * - its LIST_END applies all records since LIST_BEGIN, in the transaction of the LIST_END;
 * - an abandoned list is applied in the same way.
 *
 * Old terms come from the index's version, not from the record's previous one: the two differ
 * inside lists and after a rebuild.
 */
#ifndef PROCESSOR_APPLY_H
#define PROCESSOR_APPLY_H

#include "processor/intake.h"
#include "store/index/index.h"
#include "store/index/terms.h"

#define APPLY_RECORDS_MAX 4096
#define APPLY_BYTES_MAX   (8u << 20)
/* longest live batch: readers wait for the index */
#define APPLY_LIVE_NS 2000000

struct apply;

/* Borrows its arguments. */
int apply_new(const struct processor *p, struct journal *journal, struct index *index,
	struct apply **ret_apply);
void apply_free(struct apply **apply);
/* Applies the available records up to the limits above, and commits them. Returns: FOUND,
 * or as intake_begin(). After an error the index is in the state before or after the batch. */
int apply_batch(struct apply *apply, struct intake *intake);

/* ---- for rebuild and definitions; inside a transaction of the index ----- */

/* Adds a feed's row, and the configured index definitions of the feed OF. */
int apply_add_feed(
	struct apply *apply, const struct index_feed *feed, const struct feed_definition *of);
/* Enters a version into the index as its object's current one. */
int apply_enter(struct apply *apply, struct txn *txn, const struct record *record);
/* Adds the committed work to the counters of the status page. */
void apply_count(struct apply *apply);
/* Returns the terms of RECORD in all definitions of its feed; borrowed until the next call. */
int apply_terms(
	struct apply *apply, const struct record *record, const struct term_list **ret_list);

/* Forgets the definitions, and reads them from the index again: after an abort, and after a
 * committed change of definitions. */
void apply_forget(struct apply *apply);

/* Returns the number of feeds added and removed. */
uint32_t apply_feed_changes(const struct apply *apply);

#endif
