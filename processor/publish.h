/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishes the applied seq after each commit: the progress word
 * (store/ring/taken.h). It has no news of its own. Followers read the journal; they and the
 * handlers they call wait here for the index when they need it.
 */
#ifndef PROCESSOR_PUBLISH_H
#define PROCESSOR_PUBLISH_H

#include "processor/processor.h"

struct publish;

/* Makes the word, for an index with the applied seq TAKEN, and wakes readers: another index may
 * have come into use. Without the word (the runtime directory is full) the index goes on. */
int publish_open(const struct processor *p, uint64_t taken, struct publish **ret_publish);
void publish_close(struct publish **publish);

/* Reports a commit of the index with `taken` = TAKEN. With a NULL publish it does nothing: the
 * index is being built, and no reader uses it yet. */
void publish_commit(struct publish *publish, uint64_t taken);
/* Makes the word if it is missing. To be called once a second. */
void publish_check(struct publish *publish);

#endif
