/* SPDX-License-Identifier: Apache-2.0 */
/* A folder for one test, removed when the test's process ends. */
#ifndef UNIT_SCRATCH_H
#define UNIT_SCRATCH_H

/* Its path, made at the first call. */
const char *scratch(void);

/* Puts a small test's files into memory (/dev/shm). Comes before the first scratch(). */
void scratch_in_memory(void);

/* "<scratch>/NAME", in one of eight buffers used in turn. */
const char *scratch_path(const char *name);

/* Writes TEXT into the file PATH, new or emptied first. */
void scratch_write(const char *path, const char *text);

/* Copies the tree FROM to TO (new inodes), as cp -a does. */
void scratch_copy(const char *from, const char *to);

/* rm -r PATH. */
void scratch_remove(const char *path);

/* chmod -R MODE PATH. */
void scratch_chmod(const char *mode, const char *path);

#endif
