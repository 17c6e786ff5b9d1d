/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers checked and sound copies of stores, so that no command checks them again:
 * $XDG_CACHE_HOME/kinf/checked (else ~/.cache), a line for each store. A line has device, inode,
 * size and times of each checked file, as one hash: a write to a file changes its times. A lost
 * line costs a check.
 */
#ifndef READER_CHECKED_H
#define READER_CHECKED_H

#include <stdbool.h>

#include "store/env/home.h"

struct checked {
	char line[33]; /* "": the store can't be identified */
};

/* Identifies the store as it is now; take it before the check. */
void checked_identify(const struct home *home, struct checked *ret_checked);
bool checked_is_known(const struct checked *checked);
/* Remembers the store, unless a file has changed since CHECKED was taken. If it can't, it will
 * be checked again. */
void checked_remember(const struct home *home, const struct checked *checked);

#endif
