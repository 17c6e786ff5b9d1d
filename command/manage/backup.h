/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by backup and restore: a copy of a snapshot in a partial directory (partial.h), with
 * progress, ended by a signal. */
#ifndef COMMAND_MANAGE_BACKUP_H
#define COMMAND_MANAGE_BACKUP_H

#include "command/manage/partial.h"
#include "command/manage/ticker.h"
#include "reader/kinf.h"

struct backup {
	struct partial partial;
	struct ticker ticker;
	int signals;
	uint64_t total; /* bytes; 0: unknown */
};

#define BACKUP_INIT(title) \
	{ \
		.partial = PARTIAL_INIT, .ticker = {.what = (title)}, .signals = -1 \
	}

void backup_release(struct backup *backup);

/* Return -EINTR after SIGINT or SIGTERM. backup_report() shows the progress of snapshot_copy(). */
int backup_report(void *backup, uint64_t bytes, uint64_t total);
int backup_wait(void *backup);

/* Prints the needed and the free room at PATH. Returns 0; -ENOSPC: too little. */
int backup_require_room(const char *path, uint64_t bytes);
/* Opens a snapshot of a sound store. Returns: 0; errors. */
int backup_open_snapshot(struct kinf *kinf, struct kinf_snapshot **ret_snapshot);

#endif
