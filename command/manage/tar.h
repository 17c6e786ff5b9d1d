/* SPDX-License-Identifier: Apache-2.0 */
/* Backups as tar files (ustar) of a store's directory, readable by tar(1). */
#ifndef COMMAND_MANAGE_TAR_H
#define COMMAND_MANAGE_TAR_H

#include <stdint.h>

typedef int tar_progress_fn(void *arg, uint64_t bytes);

/* Writes the store in DIRECTORY_FD to FD. */
int tar_write(int directory_fd, int fd, tar_progress_fn *progress, void *arg);
/* Reads such a file from FD into the empty DIRECTORY_FD. Checks names, kinds and sizes; refuses any
 * other content. */
int tar_read(int fd, int directory_fd, tar_progress_fn *progress, void *arg);

#endif
