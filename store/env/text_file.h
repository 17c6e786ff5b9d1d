/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small text files, replaced as a whole: id, runtime, STATE, CURRENT, cursors. A reader sees the
 * old file or the new one, never a part. Names are relative to a directory; links are not followed.
 * ERR_CORRUPT: the name is not a file's.
 */
#ifndef STORE_ENV_TEXT_FILE_H
#define STORE_ENV_TEXT_FILE_H

#include <stddef.h>

#include "common/buf.h"

/* Writes all of TEXT, however many calls it takes, then fsyncs. */
int text_file_write(int fd, struct bytes text);
/* Makes NAME hold TEXT: writes a temporary file, renames it, fsyncs the directory. Removes an empty
 * directory of this name. */
int text_file_replace(int directory_fd, const char *name, const char *text, unsigned mode);
/* Reads at most SIZE - 1 bytes, and puts a NUL after them. -ENOENT: there is no such file. RET_FD,
 * unless NULL, receives the file's descriptor for the caller to close. */
int text_file_read(int directory_fd, const char *name, char *text, size_t size, int *ret_fd);
/* Reads the whole file into OUT, emptied first; LIMIT becomes OUT's. Returns: 0; -ENOENT;
 * ERR_TOO_LARGE; -errno. */
int text_file_load(int directory_fd, const char *name, size_t limit, struct buf *out);
/* Reads the first line without its newline; else as text_file_read(). Returns: FOUND; NOT_FOUND;
 * -errno. */
int text_file_read_line(int directory_fd, const char *name, char *text, size_t size, int *ret_fd);

#endif
