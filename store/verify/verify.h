/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cross-checks a whole store: the journal in itself, the index in itself and against the journal,
 *the rings. Works on a live store (in one snapshot), on one whose daemons are down and on a copy,
 *writes nothing and believes nothing: whatever the bytes are, it ends with a list of faults. LMDB
 *itself may touch pages that a truncated file does not have; programs that call this have
 *faults_catch().
 *
 * What is checked (the rules are docs/architecture.md's):
 *	journal	seqs ascend and end at next_seq; checksums; each version has exactly one successor,
 *which is a later record or the head, so that nothing but the state as of the horizon is left at or
 *below it; list brackets and checkpoints index	names and objects are the same set; each feed is
 *what the journal says as of visible(feed), neither more nor less; values count their postings; all
 *counts rings	header, positions, journal, and that nothing was published which is not committed
 *	deep	also: bodies are well-formed and are those of the object the record names; the terms
 *of each body are exactly its postings
 */
#ifndef STORE_VERIFY_VERIFY_H
#define STORE_VERIFY_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

/* One fault, as a sentence without full stop; borrowed for the call. */
typedef void verify_fault_fn(void *arg, const char *sentence);

struct verify_options {
	bool deep;
	const char *feed;       /* compare only this one's objects (as snapshot_feeds); NULL: all */
	verify_fault_fn *fault; /* may be NULL: faults are only counted */
	void *arg;
};

struct verify_report {
	uint64_t faults;
	uint64_t records; /* in the journal's log */
	uint64_t heads;
	uint64_t objects; /* in the index */
	uint64_t terms;
	uint64_t postings;
	uint64_t bodies; /* looked into (deep) */
	bool has_index;  /* there was one to check */
};

/* 0 when everything could be looked at or is counted as a fault; negative when there is nothing to
 * check: ERR_NO_STORE, ERR_NO_FEED, -ENOMEM, ... */
int verify_store(const char *directory, const struct verify_options *options,
	struct verify_report *ret_report);

#endif
