/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces the journal by a copy without its deleted entries (store/journal/journal_copy.h), on
 * 'kinf compact', or when the file is much longer than its content (store/env/env_copy.h). A slice
 * of the copy is made in each turn of the loop. Nothing is trimmed meanwhile. A client cancels it
 * by going away.
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
	struct control_call *call; /* the command; NULL: none */
	bool is_complete;          /* the copy has every entry, and waits until it may end */
	struct bloat bloat;
	uint64_t begun_ns;
};

/* Returns true if JOURNAL's file is long enough for a copy. To be called every few seconds. */
bool compaction_is_due(struct compaction *compaction, struct journal *journal);

/* Begins a copy of JOURNAL (borrowed), and takes over CALL (may be NULL). A failure is the call's.
 * A requested copy ends an automatic one. */
void compaction_begin(struct compaction *compaction, struct home *home, struct journal *journal,
	const struct journal_options *options, struct retention *retention,
	struct control_call **call);
/* Makes a slice, and puts the copy in the journal's place when it is complete and MAY_END: then
 * no transaction of the journal may be open. Does nothing when none runs. */
void compaction_slice(struct compaction *compaction, bool may_end);
/* Ends it without a result; WHY is for the client. */
void compaction_cancel(struct compaction *compaction, const char *why);

#endif
