/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small file as one text: tokens, certificates. Read at once, since a rotated secret is replaced by
 * renaming: one open sees one version of it.
 */
#ifndef REFLECTOR_SMALL_FILE_H
#define REFLECTOR_SMALL_FILE_H

#include <stddef.h>

/* The caller frees RET_TEXT, which has a NUL behind RET_SIZE bytes. -errno, ERR_TOO_LARGE; the
 * sentence names the file. */
int small_file_read(const char *path, size_t limit, char **ret_text, size_t *ret_size);

/* White space at both ends goes; inside TEXT. */
char *small_file_trim(char *text);

/* Overwrites and frees. */
void small_file_wipe(char **text, size_t size);

#endif
