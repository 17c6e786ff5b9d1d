/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standard output of a program that prints a result and ends. Everything goes through stdio;
 * main() flushes it at its end, and any failed write is a failure with a sentence. Commands without
 * an end of their own write by the watch_writer of command/watch.h.
 */
#ifndef COMMON_OUTPUT_H
#define COMMON_OUTPUT_H

#include "common/buf.h"

/* Writes OUT to stdout and empties it. Returns: 0, -ENOSPC and the like. */
int output_write(struct buf *out);

/* Flushes stdout. Returns: 0; -EPIPE, -ENOSPC and the like, also of an unreported earlier write.
 * Each failure is returned once. */
int output_flush(void);

/* Does both, for a complete result. */
int output_text(struct buf *out);

#endif
