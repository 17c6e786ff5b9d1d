/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal and its index. Opening decides if the index of CURRENT can follow the journal, or
 * builds another one beside it. The pair is reopened after every error, when the reflector begins
 * another journal, and when the journal was trimmed beyond the index.
 */
#ifndef PROCESSOR_PAIR_H
#define PROCESSOR_PAIR_H

#include "processor/processor.h"
#include "store/index/index.h"
#include "store/journal/journal.h"

struct pair;

/* Opens the newest journal and its index. REBUILD unless NULL: the reason to build another index in
 * any case. Returns: 0; NOT_FOUND: there is no usable journal yet; -EINTR: the processor is to
 * stop. */
int pair_open(const struct processor *p, const char *rebuild, struct pair **ret_pair);
void pair_close(struct pair **pair);

/* Applies a batch, and does a slice of filling or dropping an index. Returns: FOUND: there may be
 * more; AGAIN: nothing is new; LAPPED: reopen the pair. */
int pair_step(struct pair *pair);

/* Sleeps until there may be records, at most TIMEOUT_MS. */
void pair_wait(struct pair *pair, int timeout_ms);

/* Checks for outside changes, once a second and after the configuration changed. Returns: 0; GONE:
 * another journal is current; reopen the pair. */
int pair_check(struct pair *pair);

struct env *pair_env(struct pair *pair); /* of the index */
struct env *pair_journal_env(struct pair *pair);
/* Returns: FOUND: the journal was compacted after the index (index_find_old_places());
 * NOT_FOUND; errors. */
int pair_find_old_places(struct pair *pair);
bool pair_is_published(const struct pair *pair); /* readers use its index */
const char *pair_state(const struct pair *pair); /* for the status page */

/* ---- rebuild.c ---------------------------------------------------------- */

/* Builds a whole index from JOURNAL's heads and log (docs/architecture.md, Snapshot and rebuild),
 * in a generation of its own without readers. The caller then applies later records, and publishes
 * the index (index_publish) for readers. -EINTR: the processor is to stop. */
int rebuild(const struct processor *p, struct journal *journal, const struct index_options *options,
	struct index **ret_index);

#endif
