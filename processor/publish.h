/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports to readers how far the index has come, after each commit: the progress word
 * (store/ring/taken.h). Followers read the journal; they and their handlers wait here when they
 * need the index.
 */
#ifndef PROCESSOR_PUBLISH_H
#define PROCESSOR_PUBLISH_H

#include "processor/processor.h"

struct publish;

/* Makes the word for an index with the seq TAKEN, and wakes readers: another index may be in use.
 * Without the word (the runtime directory is full) the index goes on. */
int publish_open(const struct processor *p, uint64_t taken, struct publish **ret_publish);
void publish_close(struct publish **publish);

/* Reports a commit of the index at the seq TAKEN. A NULL publish does nothing: no reader uses an
 * unfinished index. */
void publish_commit(struct publish *publish, uint64_t taken);
/* Makes the word if it is missing. To be called once a second. */
void publish_check(struct publish *publish);

#endif
