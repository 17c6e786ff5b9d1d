/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf_who() in parts, for a server with other clients:
 *
 *	who_new(&who);
 *	who_ask(who, snapshot, what);
 *	while ((r = who_go_on(who, snapshot, when, LIMIT, fn, arg)) == AGAIN)
 *		...				each with a new snapshot, if it likes
 *	who_free(&who);
 */
#ifndef READER_WHO_H
#define READER_WHO_H

#include "reader/kinf.h"

struct who;

int who_new(struct who **ret_who);
void who_free(struct who **who);

/* Reads WHAT. Returns: 0; NOT_FOUND: a process that is not there or in no pod; errors. */
int who_ask(struct who *who, struct kinf_snapshot *snapshot, const char *what);

/* Gives the pods, and after LIMIT records of the history returns AGAIN. Returns else: as
 * kinf_who(). */
int who_go_on(struct who *who, struct kinf_snapshot *snapshot, int when, size_t limit,
	kinf_who_fn *fn, void *arg);

#endif
