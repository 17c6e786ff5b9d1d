/* SPDX-License-Identifier: Apache-2.0 */
/* Backups as tar files of a store's directory, by tar(1). */
#ifndef COMMAND_MANAGE_TAR_H
#define COMMAND_MANAGE_TAR_H

/* Is called again and again while tar works; a negative result ends it, and is the caller's. */
typedef int tar_wait_fn(void *arg);

/* Writes the store in DIRECTORY to FD. */
int tar_write(const char *directory, int fd, tar_wait_fn *wait, void *arg);
/* Reads such a file from FD into the empty DIRECTORY. Refuses names and kinds of files that no
 * backup has; they are there then. */
int tar_read(int fd, const char *directory, tar_wait_fn *wait, void *arg);

#endif
