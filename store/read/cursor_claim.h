/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The claim of a follower on its named cursor: two followers under one name would write each
 * other's position, and each would miss what the other had handled. The claim is a lock on
 * cursors/.NAME.lock. The kernel ends it with the process, and a forked child gives its copy up
 * at once. A follower that ends in order removes the file; the reflector removes that of a
 * follower that was killed (cursor_sweep()). The next follower also removes the temporary files
 * that a follower before it left in the middle of writing the cursor.
 */
#ifndef STORE_READ_CURSOR_CLAIM_H
#define STORE_READ_CURSOR_CLAIM_H

#include "store/env/home.h"
#include "store/read/cursor_file.h"

/* Zeroed before cursor_claim(). Must not move while it is held. */
struct cursor_claim {
	int fd, directory;
	bool held;
	char name[CURSOR_NAME_MAX + 1];
	struct cursor_claim *next;
};

/* Returns: 0; ERR_LOCKED, with the pid of the follower that has the cursor, which may be in this
 * process; ERR_SYNTAX; -errno. */
int cursor_claim(struct home *home, const char *name, struct cursor_claim *claim);
void cursor_unclaim(struct cursor_claim *claim);

#endif
