/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a whole index from the journal's heads and log (docs/architecture.md, Snapshot and
 * rebuild), in a generation of its own without readers.
 */
#ifndef PROCESSOR_REBUILD_H
#define PROCESSOR_REBUILD_H

#include "processor/processor.h"
#include "store/index/index.h"
#include "store/journal/journal.h"

/* Builds the state at the end of JOURNAL's log. The caller then applies later records, and
 * publishes the index (index_publish) for readers. -EINTR: the processor is to stop. */
int rebuild(const struct processor *p, struct journal *journal, const struct index_options *options,
	struct index **ret_index);

#endif
