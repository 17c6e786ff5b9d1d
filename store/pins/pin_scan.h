/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the pin files of all processes, for the writer of an environment and for `kinf status`.
 * The files belong to other users, so nothing in them is believed further than a pin goes: they
 * are read (pread), not mapped, because their owner may cut them; at most 256 KiB of each;
 * symbolic links, devices and pipes are no pin files.
 *
 * A file counts while its owner holds a write lock on it. A read lock, which all can take that
 * may read the file, counts for nothing.
 */
#ifndef STORE_PINS_PIN_SCAN_H
#define STORE_PINS_PIN_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "store/pins/pin_page.h"

#define PIN_SCAN_PLACES (PIN_PLACES + 1)

struct pin_scan;

/* LAST_PLACE: the place of an earlier writer, "" or NULL if there is none. */
int pin_scan_open(uint64_t inode, const struct pin_places *places, const char *last_place,
	struct pin_scan **ret_scan);
void pin_scan_close(struct pin_scan **scan);
/* Writes which directories it looks into: PIN_SCAN_PLACES of them. */
void pin_scan_identify(const struct pin_scan *scan, struct pin_place_id *ret_ids);

/* Finds the least pin from FLOOR on that a living process holds; MOST if there is none below it.
 * An error means that a file could not be examined: the caller must not reuse anything then. */
int pin_scan_least(struct pin_scan *scan, uint64_t floor, uint64_t most, uint64_t *ret_least);

/* Finds out whether a process has marked in the pin page, open as PAGE_FD, that it has a pin
 * file which is in none of the places. */
int pin_scan_misses(const struct pin_scan *scan, int page_fd, bool *ret_missed);

/* Finds out whether a process holds all states by a mark in the pin page (PIN_MARK_ALL). */
int pin_scan_is_all_held(int page_fd, bool *ret_held);

struct pin_owner {
	/* 0: not known here, because the process is in another PID namespace, or names that of
	 * another user's */
	int32_t pid;
	uid_t uid;
	char program[16]; /* printable characters only */
	const char
		*path; /* of the pin file, "" if that can't be found out; valid during the call */
	uint32_t slots, snapshots;
	uint64_t oldest; /* pin from the floor on; 0: it holds none */
};
/* A result other than 0 ends the listing. */
typedef int pin_scan_fn(void *arg, const struct pin_owner *owner);
/* Calls FN once for each file, 4096 at most, whatever they say of their slots. A pin below FLOOR
 * counts as none. */
int pin_scan_each(struct pin_scan *scan, uint64_t floor, pin_scan_fn *fn, void *arg);
/* As that with a floor of 0, or ERR_READERS_FULL if there are more files than it reads. */
int pin_scan_all(struct pin_scan *scan, pin_scan_fn *fn, void *arg);

/* Does the same with the files of other databases than the N of which INODES are the data.mdb:
 * their processes have one open that was replaced since. All pins count. */
int pin_scan_each_other(
	struct pin_scan *scan, const uint64_t *inodes, size_t n, pin_scan_fn *fn, void *arg);

/* Removes the files of dead processes, of any environment, and what is no pin file, from the
 * places. Returns how many pin files it removed. */
int pin_scan_sweep(struct pin_scan *scan);
/* Removes the place DIRECTORY_FD/NAME, unless living processes have files in it. */
void pin_scan_remove_place(int directory_fd, const char *name);

#endif
