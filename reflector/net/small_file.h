/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a small file, a token or a certificate, as one text. A rotated secret is replaced by a
 * rename, so one open sees one version of it.
 */
#ifndef REFLECTOR_NET_SMALL_FILE_H
#define REFLECTOR_NET_SMALL_FILE_H

#include "common/buf.h"

/* Reads at most LIMIT bytes into TEXT, empty so far. Returns: 0, -errno, ERR_TOO_LARGE; the
 * sentence names the file. */
int small_file_read(const char *path, size_t limit, struct buf *text);

/* Cuts white space off both ends. Returns: a place in TEXT. */
const char *small_file_trim(struct buf *text);

/* Overwrites SIZE bytes, or the whole of a NUL-terminated text, and frees. Accept NULL. */
void small_file_wipe(char **text, size_t size);
void small_file_wipe_text(char **text);

#endif
