/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `kinf status` knows, gathered once, printed as text or JSON. All of it is a report: pages and
 * reader tables are written by others while we look.
 */
#ifndef READER_COMMAND_STATUS_H
#define READER_COMMAND_STATUS_H

#include <stdbool.h>

#include "common/buf.h"
#include "common/stats.h"
#include "reader/kinf.h"
#include "store/env/env.h"

struct status_process {
	const char *name; /* "kinf-reflector" */
	bool looked_for;  /* else nobody knows whether it runs */
	bool known;       /* it has left a page in this boot */
	bool alive;
	bool responding;  /* alive, and its heartbeat is fresh */
	struct stats_process page;
	uint64_t uptime_seconds; /* 0 when it does not run */
	uint32_t restarts;       /* of the writer of its ring, in this boot */
	uint64_t counters[STAT_MAX]; /* stats.def; of one that died the last ones */
};
#define STATUS_PROCESSES 2

struct status_reader {
	int32_t pid;
	char name[32];
	uint32_t slots, snapshots; /* in the reader tables of both databases */
	uint64_t behind;           /* transactions since its oldest snapshot */
};

struct status_database {
	bool open;
	uint32_t generation;
	struct env_info info;
};

struct status {
	char path[512], id[32], uuid[33];
	bool copy;
	struct status_database journal, index;
	uint64_t last_event, taken, horizon;
	bool disk_known;
	uint64_t disk_free;
	char error[600]; /* what is wrong with the store, in words; "" when nothing is */
	struct status_process processes[STATUS_PROCESSES];
	struct kinf_feed_info *feeds;
	size_t n_feeds;
	struct status_reader *readers;
	size_t n_readers;
};

/* 0, or an error with what could be found out in STATUS all the same (error: why not more). */
int status_gather(struct kinf *kinf, struct status *status);
void status_release(struct status *status);

/* How a process is, in a word or in its own words. */
const char *status_process_state(const struct status_process *process);

int status_json(const struct status *status, struct buf *out);
int status_text(const struct status *status, struct buf *out);

#endif
