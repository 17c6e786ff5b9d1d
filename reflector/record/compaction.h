/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces the journal by a copy of itself without what was deleted
 * (store/journal/journal_copy.h), because 'kinf compact' asks for it, or because the file is
 * much longer than what it holds (store/env/env_copy.h). A slice of the copy is made in each turn
 * of the loop. Nothing is trimmed meanwhile. A client that goes away cancels it.
 */
#ifndef REFLECTOR_RECORD_COMPACTION_H
#define REFLECTOR_RECORD_COMPACTION_H

#include "common/daemon/control.h"
#include "reflector/record/retention.h"
#include "store/env/env_copy.h"
#include "store/journal/journal_copy.h"

struct compaction {
	struct journal *journal;
	struct journal_copy *copy; /* NULL: none runs */
	struct control_call *call; /* the command that asks for it; NULL: none does */
	struct surplus surplus;
	uint64_t begun_ns;
};

/* Returns whether the file of JOURNAL is so long that a copy should begin. To be called every
 * few seconds. */
bool compaction_is_due(struct compaction *compaction, struct journal *journal);

/* Begins a copy of JOURNAL, which is borrowed, and takes CALL over, which may be NULL. A failure
 * is the call's. A copy for which nobody has asked ends for one for which somebody does. */
void compaction_begin(struct compaction *compaction, struct home *home, struct journal *journal,
	const struct journal_options *options, struct retention *retention,
	struct control_call **call);
/* Makes a slice, and puts the copy in the journal's place when it is complete and MAY_END: then
 * no transaction of the journal may be open. Does nothing when none runs. */
void compaction_slice(struct compaction *compaction, bool may_end);
/* Ends it without a result; WHY is for the client. */
void compaction_cancel(struct compaction *compaction, const char *why);

#endif
