/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cross-checks a whole store: the journal by itself, the index by itself and against the journal.
 * It works on a live store (in one snapshot), on one with stopped daemons, and on a
 * copy. It writes nothing and trusts no byte: whatever the files contain, it ends with a list of
 * faults. LMDB itself may touch pages beyond the end of a truncated file, so callers need
 * faults_catch().
 */
#ifndef STORE_VERIFY_VERIFY_H
#define STORE_VERIFY_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

/* Gets each fault as a sentence without full stop; borrowed for the call. */
typedef void verify_fault_fn(void *arg, const char *sentence);

struct verify_options {
	bool deep;
	const char *feed; /* compare only the objects of this one (snapshot_feeds); NULL: all */
	/* read a journal that can't be opened from end to end, and report its records
	 * (journal/salvage.h) */
	bool salvage;
	verify_fault_fn *fault; /* may be NULL: faults are only counted */
	void *arg;
	int (*tick)(
		/* called now and then; a negative result ends the check with it; may be NULL */
		void *arg);
	void *tick_arg;
	/* Gets how many records, then how many objects were examined, again and again; may be
	 * NULL. */
	void (*progress)(void *arg, uint64_t done, const char *unit);
};

struct verify_report {
	uint64_t faults;
	uint64_t records; /* in the journal's log */
	uint64_t heads;
	uint64_t objects; /* in the index */
	uint64_t terms;
	uint64_t postings;
	uint64_t bodies; /* checked (deep) */
	bool has_index;
};

/* Returns: 0: the report has all faults; errors if there is nothing to check: ERR_NO_STORE,
 * ERR_NO_FEED, -ENOMEM, ... */
int verify_store(const char *directory, const struct verify_options *options,
	struct verify_report *ret_report);

#endif
