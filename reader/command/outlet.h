/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standard output of a command that goes on until it is told to end. What is printed is collected
 * in `text` and written by outlet_flush(); only then may a position be stored that says it was. A
 * consumer that has stopped reading can't keep us from ending: writing waits for it and for
 * signals.
 */
#ifndef READER_COMMAND_OUTLET_H
#define READER_COMMAND_OUTLET_H

#include <stdbool.h>

#include "common/buf.h"

struct outlet {
	int signals; /* signals_open() */
	bool ended;  /* SIGTERM, SIGINT or SIGHUP came */
	struct buf text;
};

/* 0 or a negative errno. */
int outlet_init(struct outlet *outlet);
void outlet_release(struct outlet *outlet);

/* Has a signal come that asks us to end? */
bool outlet_ended(struct outlet *outlet);

/* Writes all text. 0; -EPIPE (nobody reads any more), -ENOSPC and the like; -EINTR: told to end and
 * the consumer took nothing for a second. What was not written is lost then. */
int outlet_flush(struct outlet *outlet);

#endif
