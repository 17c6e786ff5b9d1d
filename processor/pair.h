/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A journal, the index made of it, and the work on both. Opening decides whether the index that
 * CURRENT names can go on being used or another is built beside it; closing and opening again is the
 * answer to every error, to a replaced journal and to a journal that was trimmed beyond us.
 */
#ifndef PROCESSOR_PAIR_H
#define PROCESSOR_PAIR_H

#include "processor/processor.h"

struct pair;

/* ANEW: build an index whatever is there. NOT_FOUND: there is no journal yet. -EINTR: was told to
 * stop. */
int pair_open(const struct processor *p, bool anew, struct pair **ret_pair);
void pair_close(struct pair **pair);

/* A batch, and a slice of what is to be done on definitions. FOUND: there may be more; AGAIN: nothing
 * new; LAPPED: open anew. */
int pair_step(struct pair *pair);

/* Sleeps until there may be something. */
void pair_wait(struct pair *pair, int timeout_ms);

/* Once a second, and after the configuration changed. GONE: another journal is current: open anew. */
int pair_check(struct pair *pair);

struct env *pair_env(struct pair *pair); /* of the index */
bool pair_is_published(const struct pair *pair);

#endif
