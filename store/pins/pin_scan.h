/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the pin files of all processes, for the writer of an environment and for `kinf status`. The
 * files belong to other users, so they are trusted for pins only: read (pread), not mapped, because
 * their owner may cut them; at most 256 KiB of each; symbolic links, devices and pipes are no pin
 * files.
 *
 * A file counts while its owner holds a write lock on it. A read lock counts for nothing: all
 * readers of the file can take one.
 */
#ifndef STORE_PINS_PIN_SCAN_H
#define STORE_PINS_PIN_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "store/pins/pin_page.h"

struct pin_scan;

int pin_scan_open(uint64_t inode, const struct pin_places *places, struct pin_scan **ret_scan);
void pin_scan_close(struct pin_scan **scan);
/* Writes the identities of the PIN_PLACES directories. */
void pin_scan_identify(const struct pin_scan *scan, struct pin_place_id *ret_ids);

/* Finds the least pin of a living process from FLOOR on; MOST if there is none below it. On an
 * error a file is unknown: the caller must not reuse anything then. */
int pin_scan_least(struct pin_scan *scan, uint64_t floor, uint64_t most, uint64_t *ret_least);

/* Checks the marks in the pin page, open as PAGE_FD, for a process with a pin file in none of the
 * places. */
int pin_scan_misses(const struct pin_scan *scan, int page_fd, bool *ret_missed);

/* Checks the pin page for a mark on all states (PIN_MARK_ALL). */
int pin_scan_is_all_held(int page_fd, bool *ret_held);

struct pin_owner {
	/* 0: unknown, because it is of another PID namespace, or another user's */
	int32_t pid;
	uid_t uid;
	char program[16]; /* printable characters only */
	const char *path; /* of the pin file, "": unknown; valid during the call */
	uint32_t slots, snapshots;
	uint64_t oldest; /* pin from the floor on; 0: it holds none */
};
/* A result other than 0 ends the listing. */
typedef int pin_scan_fn(void *arg, const struct pin_owner *owner);
/* The files to list. */
struct pin_choice {
	const uint64_t *inodes; /* of N data.mdb, all but their files; NULL: only the scan's own */
	size_t n;
	uint64_t floor;   /* a pin below it counts as none */
	bool must_be_all; /* ERR_READERS_FULL if there are more than 4096; else the rest is left */
};
/* Calls FN once for each file, whatever its slots. A file of a database that is not in use any more
 * is of a process with a replaced one open. */
int pin_scan_each(
	struct pin_scan *scan, const struct pin_choice *choice, pin_scan_fn *fn, void *arg);

/* Removes dead processes' files, of any environment, from the places. A call looks at 1024 entries,
 * and the next one goes on there. Returns the number of files removed. */
int pin_scan_clean(struct pin_scan *scan);
/* Removes the place DIRECTORY_FD/NAME, unless living processes have files in it. */
void pin_scan_remove_place(int directory_fd, const char *name);

#endif
