/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal and the index made of it. Opening decides whether CURRENT's index can go on with the
 * journal, or another one is built beside it. The pair is closed and opened again after every
 * error, when the reflector begins another journal, and when the journal was trimmed beyond the
 * index.
 */
#ifndef PROCESSOR_PAIR_H
#define PROCESSOR_PAIR_H

#include "processor/processor.h"

struct pair;

/* Opens the newest journal and its index. REBUILD, the reason, unless it is NULL: builds another
 * index in any case. Returns: 0; NOT_FOUND: there is no journal yet, or none for the reflector to
 * go on with; -EINTR: the processor is to stop. */
int pair_open(const struct processor *p, const char *rebuild, struct pair **ret_pair);
void pair_close(struct pair **pair);

/* Applies a batch, and does a slice of filling or dropping an index.
 * Returns: FOUND: there may be more; AGAIN: there is nothing new; LAPPED: open the pair again. */
int pair_step(struct pair *pair);

/* Sleeps until there may be records, at most for TIMEOUT_MS. */
void pair_wait(struct pair *pair, int timeout_ms);

/* Checks for changes from outside: to be called once a second, and after the configuration changed.
 * Returns: 0; GONE: another journal is current; open the pair again. */
int pair_check(struct pair *pair);

struct env *pair_env(struct pair *pair); /* of the index */
struct env *pair_journal_env(struct pair *pair);
/* Returns: FOUND: the journal was compacted after the index (index_find_old_places());
 * NOT_FOUND; errors. */
int pair_find_old_places(struct pair *pair);
bool pair_is_published(const struct pair *pair); /* readers use its index */
const char *pair_state(const struct pair *pair); /* for the status page */

#endif
