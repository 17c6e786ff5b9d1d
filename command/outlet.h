/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standard output of a command that runs until it is told to end. The command collects text in
 * `text` and outlet_flush() writes it; only then may it store a position that covers this text. A
 * consumer that stops reading can't keep the command from ending, because every write waits for
 * signals also.
 */
#ifndef COMMAND_OUTLET_H
#define COMMAND_OUTLET_H

#include <stdbool.h>

#include "common/buf.h"

struct outlet {
	int signals; /* signals_open() */
	bool ended;  /* SIGTERM, SIGINT or SIGHUP came */
	struct buf text;
};

int outlet_init(struct outlet *outlet);
void outlet_release(struct outlet *outlet);

/* Returns whether a signal has asked the command to end. */
bool outlet_ended(struct outlet *outlet);

/* Writes all text; without any, finds out whether the consumer is still there.
 * Returns: 0
 *	-EPIPE (the consumer is gone), -ENOSPC and the like
 *	-EINTR: a signal came, and the consumer took nothing for a second
 * After an error the text that was not written is lost. */
int outlet_flush(struct outlet *outlet);

#endif
