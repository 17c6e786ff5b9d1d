/* SPDX-License-Identifier: Apache-2.0 */
/*
 * STATE: whether a generation may be believed (FORMAT.md, Generations), and the small text files that
 * are replaced as a whole. Inside store/ only.
 */
#ifndef STORE_ENV_STATE_H
#define STORE_ENV_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"

struct state {
	bool clean;
	bool durable; /* the run that wrote it synced at each commit */
	char boot[33];
	uint64_t inode; /* of data.mdb */
	uint32_t format;
	uint8_t uuid[16];
};

/* FD: the generation's folder. -ENOENT, ERR_CORRUPT, ERR_FORMAT. */
int state_read(int fd, struct state *ret_state);
int state_write(int fd, const struct state *state, unsigned mode);
/* 0, ERR_FORMAT or ERR_UNTRUSTED with a sentence that says what to do. */
int state_check(int fd, const struct state *state, uint32_t format);
/* Of data.mdb. */
int state_inode(int fd, uint64_t *ret_inode);

/* All of it, however often it takes, then fsync. 0 or a negative errno, without a sentence. */
int write_whole(int fd, struct bytes text);
/* Small files are replaced as a whole, a reader sees the old one or the new one: temporary file,
 * write_whole, rename, fsync of the folder. */
int replace_file(int directory_fd, const char *name, const char *text, unsigned mode);
/* At most SIZE - 1 bytes, and a NUL. */
int read_file(int directory_fd, const char *name, char *text, size_t size);

#endif
