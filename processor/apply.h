/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of the journal become changes of the index: one transaction per batch. The rules of lists
 * (docs/architecture.md, Lists) are here and nowhere else:
 *
 * - the records of a feed with an open list wait;
 * - its LIST_END applies all since LIST_BEGIN, in the transaction that takes the LIST_END;
 * - an abandoned list is applied in the same way.
 *
 * Old terms come from the version that the index holds, never from the record's previous one: the two
 * differ inside lists and after a rebuild.
 */
#ifndef PROCESSOR_APPLY_H
#define PROCESSOR_APPLY_H

#include "processor/intake.h"
#include "processor/publish.h"
#include "store/index/index.h"
#include "store/index/terms.h"

#define APPLY_RECORDS_MAX 4096
#define APPLY_BYTES_MAX   (8u << 20)
#define APPLY_LIVE_NS     2000000 /* while live: others wait for what is in the batch */

struct apply;

/* Borrows all it is given; PUBLISH NULL: nobody reads this index yet. */
int apply_new(const struct processor *p, struct journal *journal, struct index *index,
	struct apply **ret_apply);
void apply_free(struct apply **apply);
void apply_set_publish(struct apply *apply, struct publish *publish);

/* Takes what is there, up to the limits above; commits, publishes. FOUND, or as intake_begin();
 * after an error the index is as before or as after the batch. */
int apply_batch(struct apply *apply, struct intake *intake);

/* One record, inside a transaction of the index. TXN: of the journal. */
int apply_record(struct apply *apply, struct txn *txn, const struct record *record);

/* ---- for rebuild and definitions; inside a transaction of the index ---- */

/* A feed's row, and its index definitions as the configuration has them for the feed OF. */
int apply_add_feed(struct apply *apply, const struct index_feed *feed,
	const struct feed_definition *of);
/* Enters a version as the current one. */
int apply_enter(struct apply *apply, struct txn *txn, const struct record *record);
/* Tells the counters what was committed. */
void apply_count(struct apply *apply);
/* Terms of RECORD in all definitions of its feed; borrowed until the next call. */
int apply_terms(struct apply *apply, const struct record *record, const struct term_list **ret_list);

/* What it knows of feeds and definitions is read again: after an abort, and after a change of
 * definitions was committed. */
void apply_forget(struct apply *apply);

#endif
