/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The standard output of a program that prints a result and ends. Everything goes through stdio,
 * and a program's main() flushes it at its end: a result that could not be written is a failure
 * with a sentence, whatever printed it. Commands that run until they are told to end have an
 * outlet instead (command/watch.h).
 */
#ifndef COMMON_OUTPUT_H
#define COMMON_OUTPUT_H

#include "common/buf.h"

/* Writes OUT to stdout and empties it. Returns: 0, -ENOSPC and the like. */
int output_write(struct buf *out);

/* Flushes stdout. Returns: 0; -EPIPE, -ENOSPC and the like, also of an earlier write of which
 * nobody was told. Each failure is returned once. */
int output_flush(void);

/* Does both, for a complete result. */
int output_text(struct buf *out);

#endif
