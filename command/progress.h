/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The progress of the first lists on a terminal: one line, rewritten until every feed has been
 * listed:
 *
 *	listing: 12500 of 20000 objects, 8300/s
 *
 * The numbers come from the reflector's status page. Nothing is shown if stderr is not a terminal.
 */
#ifndef COMMAND_PROGRESS_H
#define COMMAND_PROGRESS_H

#include "common/config/config.h"

struct progress;

/* Sets *RET_PROGRESS to NULL if there is nothing to show, or no memory; all functions accept
 * NULL. */
void progress_new(const struct config *config, struct progress **ret_progress);
void progress_show(struct progress *progress);
/* Removes the line and shows nothing more. */
void progress_end(struct progress *progress);
void progress_free(struct progress **progress);

#endif
