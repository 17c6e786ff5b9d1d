/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers that a copy of a store was checked and found sound, so that each command does not
 * check it again: $XDG_CACHE_HOME/kinf/checked (else ~/.cache), a line for each store. A line
 * says nothing but the device, inode, size and times of each file that the check has read, as
 * one hash: whatever writes to a file changes its times. A line that is lost costs a check.
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
