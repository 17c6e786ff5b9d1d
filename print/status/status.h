/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status of a store and its daemons. gather.c collects everything once into a struct
 * store_status; text.c, json.c and metrics.c print it. Status pages and pin files change while they
 * are read, so the numbers need not agree with each other to the last event.
 */
#ifndef PRINT_STATUS_STATUS_H
#define PRINT_STATUS_STATUS_H

#include <limits.h>
#include <stdbool.h>

#include "common/buf.h"
#include "common/proc.h"
#include "common/stats.h"
#include "reader/kinf.h"
#include "store/env/env.h"
#include "store/read/cursor_file.h"

struct status_process {
	const char *name; /* "kinf-reflector" */
	bool searched;    /* false: nothing says whether it runs */
	bool known;       /* it has left a status page in the runtime directory */
	bool alive;
	bool responding; /* alive, and its heartbeat is fresh */
	struct stats_process page;
	uint64_t uptime_seconds; /* 0 if it does not run */
	uint32_t
		/* starts of the writer of its ring since the runtime directory was made, less
		 * one */
		restarts;
	uint64_t counters[STAT_MAX]; /* stats.def; a dead process's last ones */
	bool usage_known;            /* it runs where this process can see it */
	double cpu_seconds;
	struct proc_memory memory;
};
/* The two daemons, and kinf-serve if it is configured, runs, or ended by itself. */
#define STATUS_SERVE     2
#define STATUS_PROCESSES 3

struct status_reader {
	int32_t pid; /* 0: not known here */
	uint32_t uid;
	char name[32];
	uint32_t slots, snapshots; /* in its pin files of both databases */
	uint32_t old_files;        /* pin files of replaced databases: it keeps their space */
	uint64_t behind; /* transactions since its oldest snapshot; of an old file unknown */
	char *pin_file;  /* that of the oldest snapshot; NULL: it holds none */
};

/* A named cursor. More than STATUS_CURSORS_MAX do not count for the daemons either
 * (store/read/cursor_file.c). */
#define STATUS_CURSORS_MAX 16384
struct status_cursor {
	char name[CURSOR_NAME_MAX + 1];
	size_t feeds;
	uint64_t event;      /* its follower has handled all feeds up to here */
	uint64_t written_ns; /* CLOCK_REALTIME */
	bool lapsed;         /* the records after its position are gone */
};

struct status_database {
	bool open;
	bool missing; /* there is none; else an unopened one is unreadable */
	uint32_t generation;
	uint32_t readers; /* slots in use */
	struct env_info info;
};

struct store_status {
	char path[PATH_MAX], id[32], uuid[33];
	bool copy;
	struct status_database journal, index;
	uint64_t last_event, taken, horizon;
	bool disk_known;
	uint64_t disk_free;
	char error[600]; /* the first fault of store or cluster; "" if nothing is */
	/* something is wrong with the store or its configuration, and not with the cluster alone */
	bool faulty;
	/* `error` says that this copy lacks parts, perhaps those that name what is watched */
	bool damaged;
	bool serve_configured;
	struct status_process processes[STATUS_PROCESSES];
	size_t n_processes;
	char addresses[1024]; /* of kinf-serve: "https 127.0.0.1:6445 self, unix /run/..." */
	struct kinf_feed_info *feeds;
	size_t n_feeds, feeds_room;
	struct status_reader *readers;
	size_t n_readers, readers_room;
	struct status_cursor *cursors;
	size_t n_cursors, cursors_room;
};

/* Collects the status; SERVE_CONFIGURED: kinf-serve is to run. On an error STATUS holds the parts
 * found, and the reason in `error`. */
int status_gather(struct kinf *kinf, bool serve_configured, struct store_status *status);
void status_release(struct store_status *status);

/* Returns the state of a process as a word or, if it publishes one, in its own words. */
const char *status_process_state(const struct status_process *process);

/* Calls FN for each entry of the configuration without a feed, as reported by the reflector: name,
 * state, last_error and retries are set. Returns 0, or the first other result of FN. */
int status_each_pending(const struct kinf *kinf, kinf_feed_fn *fn, void *arg);

int status_json(const struct store_status *status, struct buf *out);
int status_text(const struct store_status *status, struct buf *out);
/* Appends a size such as "1.5 MiB". */
void status_put_bytes(uint64_t n, struct buf *out);

/* Appends the status in the text format of Prometheus (metrics.c). WITHOUT_LEVELS: the open
 * connections and watches of kinf-serve are left out, because its own metrics have these names,
 * with labels. */
int metrics_text(const struct store_status *status, bool without_levels, struct buf *out);

#endif
