/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of damage: a datagram socket of each daemon in the runtime directory. A reader that
 * meets a damaged record sends its seq to the reflector, which can list the object again; a
 * reader that meets a damaged index sends an empty report to the processor, which can build
 * another one. The processor reports damaged records also.
 *
 * A report is only a hint, because every member of the group may send one: the daemon checks for
 * itself before it does anything, reads a bounded number of reports a second, and pauses between
 * checks that cost much. Nobody waits: a report that finds no room is lost, and the next read of
 * the damaged bytes sends another.
 */
#ifndef STORE_RING_DAMAGE_H
#define STORE_RING_DAMAGE_H

#include "store/env/home.h"

#define DAMAGE_REPORTS_MAX 64 /* read in one second */

enum damage_to {
	DAMAGE_REFLECTOR, /* about a record of the journal */
	DAMAGE_PROCESSOR, /* about the index */
	DAMAGE_TO_MAX
};

struct damage_report {
	uint8_t journal[16]; /* uuid */
	uint64_t seq;        /* of the damaged record; 0 in a report about the index */
	uint32_t feed;       /* that it is of, 0: not known */
};

/* Makes and guards the daemon's socket, unless *FD is it already (inbox_keep()). */
void damage_keep(struct home *home, enum damage_to to, int *fd);
/* Receives a report. Returns: FOUND; AGAIN: there is none. */
int damage_receive(int fd, struct damage_report *ret_report);
/* Sends a report, if there is a daemon that can receive it now. */
void damage_send(const struct home *home, enum damage_to to, const struct damage_report *report);

#endif
