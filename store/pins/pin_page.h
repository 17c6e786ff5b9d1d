/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pins group: how readers keep the writer from reusing their pages, without writing to anything
 * trusted by another process. LMDB's own way, a table of readers in lock.mdb, needs every reader to
 * write to that file, and any writer to it can destroy the database. So readers open an environment
 * without LMDB's lock (MDB_NOLOCK), and lock.mdb is the writer's alone.
 *
 * The parts: the pin page (this file), written by the writer and mapped by readers; a pin file of
 * each reading process (pin_file.h), read by the writer; the writer's scan of all pin files
 * (pin_scan.h). env_pins.c joins them with LMDB. tests/unit/test_pins_model.c runs the protocol
 * below in all orders, with kills.
 *
 * A pin is the number of a transaction. LMDB reuses pages freed by transactions before the oldest
 * reader in its table, so a reader in the table with the number F keeps every state from F on. The
 * writer holds one slot in its own table, with the number `floor`, and moves it forward:
 *
 *	writer, before a transaction             reader, for a snapshot
 *	1 oldest = committed                     1 P = committed            (acquire)
 *	2 fence                                  2 pin = P
 *	3 reads all pins of live processes       3 fence
 *	4 oldest = floor = the least of them     4 again from 1 if oldest > P
 *	  and of 1                               5 LMDB's transaction begins: state T >= P
 *	5 LMDB's slot = floor                    6 fence (acquire); again from 5 if began > T + 1
 *	6 the transaction W                      7 again from 5 if T > committed
 *	7 began = W, fence, commit               8 reads
 *	8 committed = W           (release)      9 pin = 0                  (release)
 *
 * Steps 2 and 3 on both sides are Dekker's: either the writer sees the pin, or the reader sees the
 * new `oldest` and begins again. A pin read by the writer during a change, even a torn one, belongs
 * to a reader about to see the new `oldest`. `began` makes the meta page a seqlock: transaction T +
 * 2 overwrites T's meta page. Step 7 of the reader orders its reads of pages after the writer's
 * writes to them; it waits only a moment for a writer stopped or killed between its commit and its
 * step 8: its stores are visible by then.
 *
 * When a copy has replaced the file, its writer closes the page: `oldest` = PIN_CLOSED, fence, and
 * reads all pins. By the same two steps of Dekker each reader is either seen or goes to the copy. A
 * reader seen keeps its state, unless too many such files are held: then `given_up` is set before
 * the pages are taken away, and readers check it after reading (replaced.h).
 *
 * A starting writer takes `floor` from the page into its slot before its first write, so its
 * predecessor's pins go on to hold. Not `oldest`: a killed writer may have left it at step 1.
 */
#ifndef STORE_PINS_PIN_PAGE_H
#define STORE_PINS_PIN_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#define PIN_PAGE_FILE  "pins" /* in the directory of a generation */
#define PIN_PAGE_BYTES 4096u
#define PIN_PLACES     2
#define PIN_CLOSED     UINT64_MAX /* `oldest`, when no more snapshots may be taken */

/* The directories of pin files: the first one existing and writable is used. "": none. */
struct pin_places {
	char path[PIN_PLACES][4096];
};

/* A directory's identity: in another mount namespace one path may lead to two. */
struct pin_place_id {
	uint64_t device, inode; /* 0, 0: none */
};

/* FORMAT.md, Pins. The words are written by the writer only, and atomic. */
struct pin_page {
	uint64_t magic;
	uint64_t inode; /* of data.mdb; a copy of the files has another one */
	_Alignas(128) uint64_t committed;
	uint64_t began;
	_Alignas(128) uint64_t oldest;
	uint64_t floor;
	uint64_t epoch; /* changes at a writer's start: readers check the place of their pin file */
	_Alignas(128) uint64_t given_up; /* not 0: pages are taken away even if pinned */
	_Alignas(512) struct pin_place_id scanned[PIN_PLACES]; /* by the writer for pin files */
	char rest[PIN_PAGE_BYTES - 512 - PIN_PLACES * sizeof(struct pin_place_id)]; /* zeros */
};

/* Returns true if PAGE is of the file INODE and knows no state after NEWEST: else it is damaged, or
 * older content was copied into the file. */
bool pin_page_is_usable(const struct pin_page *page, uint64_t inode, uint64_t newest);
/* Opens the page of the environment in DIRECTORY (INODE: of data.mdb) for its writer; makes it if
 * it is missing or not usable. */
int pin_page_open_write(const char *directory, uint64_t inode, uint64_t newest, unsigned mode,
	struct pin_page **ret_page, int *ret_fd);
/* Returns: FOUND; NOT_FOUND: none, or another file's, as in a copy; errors. */
int pin_page_open_read(const char *directory, uint64_t inode, const struct pin_page **ret_page);
/* Reads it without mapping it. Returns: FOUND; NOT_FOUND. */
int pin_page_probe(int directory_fd, uint64_t inode, struct pin_page *ret_page);
/* Returns the identity of directory PATH; none if there is none. */
struct pin_place_id pin_place_identify(const char *path);
/* Returns whether the writer of PAGE looks for pin files in the directory ID. */
bool pin_page_scans(const struct pin_page *page, struct pin_place_id id);
void pin_page_close(const struct pin_page **page);

#endif
