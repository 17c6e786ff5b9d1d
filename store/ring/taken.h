/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The taken word: a page in the runtime directory with the index's applied seq, and a futex to wake
 * readers when it moves. The processor writes it after each commit of the index; readers map it
 * read-only. Layout: FORMAT.md, Taken word.
 *
 * The word only shortens waiting. The index itself holds `taken` (store/index); a reader waiting
 * for a seq checks it there:
 *
 *	do {
 *		taken_look(reader);
 *		renew the snapshot; stop if its `taken` is far enough
 *	} while (taken_wait(reader, timeout) == 0);
 *
 * Looking comes first, to miss no commit between the check and the sleep. Without the page (the
 * runtime directory is full, no processor has run) readers poll.
 */
#ifndef STORE_RING_TAKEN_H
#define STORE_RING_TAKEN_H

#include <stdbool.h>

#include "common/bytes.h"

#define TAKEN_FILE "index.taken" /* in the runtime directory */

struct taken;
struct taken_reader;

/* Makes the page DIRECTORY_FD/TAKEN_FILE, or takes over an earlier processor's, for an index
 * applied up to SEQ. IS_START: counts a start of a processor. Wakes all readers. */
int taken_create(
	int directory_fd, unsigned mode, uint64_t seq, bool is_start, struct taken **ret_taken);
/* The page stays: the next processor takes it over. */
void taken_close(struct taken **taken);
/* Publishes the index's applied seq after its commit, and wakes all readers. */
void taken_publish(struct taken *taken, uint64_t seq);

/* Returns: 0; -ENOENT: there is no page. */
int taken_attach(int directory_fd, struct taken_reader **ret_reader);
void taken_detach(struct taken_reader **reader);

/* Remembers the state of the word for taken_wait(). */
void taken_look(struct taken_reader *reader);
/* Returns the last published seq. */
uint64_t taken_seq(const struct taken_reader *reader);
/* Returns how many processors have opened the page since it was made. */
uint32_t taken_starts(const struct taken_reader *reader);
/* Waits until the word has changed since taken_look(), awake at first, for at most TIMEOUT_MS.
 * Returns: 0: it has changed, or a signal came; AGAIN: the time is over; GONE: another file has the
 * page's name, or none. */
int taken_wait(struct taken_reader *reader, int timeout_ms);

#endif
