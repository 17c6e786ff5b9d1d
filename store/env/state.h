/* SPDX-License-Identifier: Apache-2.0 */
/*
 * STATE: the file with the trust in a generation's databases (FORMAT.md, Generations). A writer
 * makes it "dirty" before its first write, and "clean" after it has closed and synced everything. A
 * dirty one of another boot is not trusted, unless the writer synced at each commit. Used inside
 * store/ only.
 */
#ifndef STORE_ENV_STATE_H
#define STORE_ENV_STATE_H

#include <stdbool.h>
#include <stdint.h>

struct state {
	bool clean;
	bool durable; /* its writer synced at each commit */
	char boot[33];
	uint64_t inode;  /* of data.mdb */
	uint64_t device; /* likewise */
	uint32_t format;
	uint8_t uuid[16];
};

/* FD: the generation's directory. -ENOENT, ERR_CORRUPT, ERR_FORMAT. */
int state_read(int fd, struct state *ret_state);
int state_write(int fd, const struct state *state, unsigned mode);
/* Decides whether the generation may be read and written. Returns: 0; ERR_FORMAT, ERR_UNTRUSTED. */
int state_check(int fd, const struct state *state, uint32_t format);
/* Reads the numbers of data.mdb: its inode and its device. */
int state_identify(int fd, uint64_t *ret_inode, uint64_t *ret_device);

/*
 * The file `damaged` of a generation: a daemon met damage in it, as the sentence in the file says.
 * Its writer gives the generation up: each start would end at the same bytes.
 */
#define DAMAGED_FILE "damaged"

/* Makes the file in the generation's directory. Returns: 0; errors. */
int damaged_note(int folder_fd, const char *sentence);
/* Returns: 0; ERR_CORRUPT, with the sentence, if the file is there; errors. */
int damaged_check(int folder_fd);

#endif
