/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first sync on a terminal: one line that is written over until every feed has been listed:
 *
 *	listing: 12,500 of 20,000 objects, 8,300/s
 *
 * From the reflector's status page alone. Nothing is shown where stderr is no terminal.
 */
#ifndef READER_COMMAND_PROGRESS_H
#define READER_COMMAND_PROGRESS_H

#include "common/config/config.h"

struct progress;

/* NULL is a progress that shows nothing; so no failure is worth a word. */
void progress_new(const struct config *config, struct progress **ret_progress);
void progress_show(struct progress *progress);
/* Leaves the line alone from now on. */
void progress_end(struct progress *progress);
void progress_free(struct progress **progress);

#endif
