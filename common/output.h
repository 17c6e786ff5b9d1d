/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standard output of a program with one result. Everything goes through stdio, and a program's
 * main() flushes it at its end: an unwritten result is a failure with a sentence, whoever printed
 * it. Commands without an end use an outlet instead (command/watch.h).
 */
#ifndef COMMON_OUTPUT_H
#define COMMON_OUTPUT_H

#include "common/buf.h"

/* Writes OUT to stdout and empties it. Returns: 0, -ENOSPC and the like. */
int output_write(struct buf *out);

/* Flushes stdout. Returns: 0; -EPIPE, -ENOSPC and the like, also of an earlier unreported write.
 * Each failure is returned once. */
int output_flush(void);

/* Does both, for a complete result. */
int output_text(struct buf *out);

#endif
