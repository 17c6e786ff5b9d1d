/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf-reflector without the network: its recorder writes texts of API objects into the journal and
 * the delta ring, as if they had come over HTTP.
 */
#ifndef TESTS_BENCH_SOURCE_H
#define TESTS_BENCH_SOURCE_H

#include "reflector/record/record.h"
#include "tests/bench/pods.h"

#define SOURCE_FEED "pods"

struct source {
	struct home *home;
	struct journal *journal;
	struct ring *ring;
	struct doorbell *doorbell;
	struct recorder *recorder;
	struct record_feed feed;
	struct buf text;     /* of the present objects */
	uint64_t json_bytes; /* of all objects so far */
	/* The time of source_list for recording, without the making of the texts. */
	double record_wall, record_cpu;
	uint64_t peak_private;
};

/* Opens (or creates) the store in DIRECTORY with its feed, as the only reflector. */
void source_open(struct source *source, const char *directory, const char *runtime);
void source_close(struct source *source);

/* Records all pods in state VERSION as one list, and commits it. */
void source_list(struct source *source, const struct pods *pods, uint64_t version);

/* Records a MODIFIED event; the caller commits it. */
void source_change(struct source *source, const struct pods *pods, uint64_t number,
	uint64_t version, const char *mark);
void source_commit(struct source *source);

/* Returns the seq of the newest committed record. */
uint64_t source_last(struct source *source);
/* Returns a version above any in the journal. */
uint64_t source_next_version(struct source *source);
/* Waits until the index has taken SEQ; returns the seconds. */
double source_wait_taken(struct source *source, uint64_t seq);

/* Trims the journal up to where the index is, keeping KEEP records of history. */
void source_trim(struct source *source, uint64_t keep);

struct source_sizes {
	uint64_t journal_used, journal_file, index_used,
		index_file; /* "used" leaves out free pages */
};
void source_sizes(struct source *source, struct source_sizes *ret_sizes);

#endif
