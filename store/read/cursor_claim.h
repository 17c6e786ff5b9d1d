/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A follower's claim on its named cursor: two followers of one name would overwrite each other's
 * position, and each miss the other's objects. The claim is a lock on cursors/.NAME.lock. The
 * kernel ends it with the process, and a forked child gives its copy up at once. A follower removes
 * the file at its end; the reflector removes the file of a killed one (cursor_clean()).
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

/* Returns: 0; ERR_LOCKED, with the pid of the cursor's follower, perhaps of this process;
 * ERR_SYNTAX; -errno. */
int cursor_claim(struct home *home, const char *name, struct cursor_claim *claim);
void cursor_unclaim(struct cursor_claim *claim);

#endif
