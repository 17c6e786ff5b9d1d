/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small text files that are replaced as a whole: id, runtime, STATE, CURRENT, cursors. A reader
 * sees the old file or the new one, never a part. Names are relative to a directory; links are
 * not followed. ERR_CORRUPT: something that is no file has the name.
 */
#ifndef STORE_ENV_TEXT_FILE_H
#define STORE_ENV_TEXT_FILE_H

#include <stddef.h>

#include "common/buf.h"

/* Writes all of TEXT, however many calls it takes, then fsyncs. */
int text_file_write(int fd, struct bytes text);
/* Makes NAME hold TEXT: writes a temporary file, renames it, fsyncs the directory. An empty
 * directory of that name goes. */
int text_file_replace(int directory_fd, const char *name, const char *text, unsigned mode);
/* Reads at most SIZE - 1 bytes, and puts a NUL after them. -ENOENT when there is no such file.
 * RET_FD, unless NULL, receives the file's descriptor, which the caller owns. */
int text_file_read(int directory_fd, const char *name, char *text, size_t size, int *ret_fd);
/* Reads the whole file into OUT, which is emptied first; it may not have more than LIMIT bytes.
 * Returns: 0; -ENOENT; ERR_TOO_LARGE; -errno. */
int text_file_load(int directory_fd, const char *name, size_t limit, struct buf *out);
/* Reads the first line without its newline; else as text_file_read(). Returns: FOUND; NOT_FOUND;
 * -errno. */
int text_file_read_line(int directory_fd, const char *name, char *text, size_t size, int *ret_fd);

#endif
