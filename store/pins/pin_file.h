/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pin file of a reading process: one for each environment it reads, in the first usable one of
 * the environment's places. The process makes it (O_EXCL), locks it for its whole life (an open
 * file description lock: independent of pids and PID namespaces), and only then lets others read
 * it. Its slots hold the pins of the process's snapshots. The kernel drops the lock at the
 * process's end; the writer then removes the file.
 *
 * On tmpfs and ext4 a file's blocks are there once reserved, so the process writes the slots
 * through a map. On other file systems a store into a map can find the disk full, a
 * SIGBUS in a program that only reads: there each pin is a pwrite(2).
 *
 * Without room for a file the process holds a read lock on PIN_MARK_ALL of the pin page while a
 * snapshot of it is open. It takes no room, and the writer then reuses nothing at all. Only on a
 * full disk, because it costs the writer more than a pin.
 *
 * For each pin file its process also holds a read lock on one byte of the pin page: the one of the
 * file's number. So a starting writer detects a reader without a visible file, because the runtime
 * directory or the file was removed or moved, and reuses nothing until the reader has ended or made
 * another file.
 *
 * A child of fork(2) shares the locked open file, so it closes it at once (forks.h): the lock must
 * not outlive the parent. The map is of another open file, because the child keeps it. FORMAT.md
 * has the bytes.
 */
#ifndef STORE_PINS_PIN_FILE_H
#define STORE_PINS_PIN_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "store/pins/pin_page.h"

#define PIN_FILE_MAGIC  0x31656c69666e6970u /* "pinfile1" */
#define PIN_SLOT_BYTES  64u
#define PIN_CHUNK_BYTES 4096u /* the file grows by this much */
#define PIN_CHUNK_SLOTS (PIN_CHUNK_BYTES / PIN_SLOT_BYTES)
#define PIN_CHUNKS_MAX  64u
/* of a pin file; a place in a file as well */
#define PIN_NUMBER_MAX ((uint64_t)INT64_MAX >> 1)
/* the byte for: all states are pinned */
#define PIN_MARK_ALL (PIN_NUMBER_MAX + 1)
/* the byte locked by a writer after checking the file */
#define PIN_MARK_CHECKED (PIN_NUMBER_MAX + 2)
#define PIN_NAME_LENGTH  33 /* "0123456789abcdef-0123456789abcdef" */

/* The first slot of a pin file. */
struct pin_head {
	uint64_t magic;
	uint32_t slots;         /* used so far, this one included. Atomic */
	int32_t pid;            /* in the process's own namespace; for people */
	uint64_t pid_namespace; /* the inode's number of /proc/self/ns/pid */
	char program[16];
};

struct pin_file;
struct pins;

enum pin_kind {
	PIN_MAPPED,
	PIN_WRITTEN, /* the word is written into the file */
	PIN_MARK,    /* there is no file: nobody reads the word */
};

/* A slot. All zeros: none. */
struct pin {
	struct pin_file *file;
	enum pin_kind kind;
	uint64_t *word;
	uint32_t number;
	uint64_t epoch; /* epoch of the page at the last check of the file's place */
};

/* DIRECTORY has the pin page; INODE: of data.mdb. Makes no file yet. */
int pins_open(const char *directory, uint64_t inode, const struct pin_places *places,
	struct pins **ret_pins);
/* All slots were given back. */
void pins_close(struct pins **pins);
/* Gives a slot without a pin, in a file scanned by the writer of PAGE, unless PIN is one. On a full
 * disk it may be of the kind PIN_MARK. ERR_READERS_FULL: the process has all slots of a file;
 * -EROFS, -EACCES, ...: there is no place for a file, with its name in the sentence; ERR_LOCKED:
 * the writer scans none of this process's places. */
int pins_take(struct pins *pins, const struct pin_page *page, struct pin *ret_pin);
void pins_give(struct pins *pins, struct pin *pin);
/* As pins_give(), after a failed write of a pin: no more slots come from the file. */
void pins_drop(struct pins *pins, struct pin *pin);
/* Returns false if the process has closed the descriptors of PIN's file, as closefrom(3) does: the
 * kernel has dropped its lock, and the writer may have reused pinned pages. The next pins_take()
 * takes another file. A system call. */
bool pins_check(struct pin *pin);

/* Writes the word into the file. Returns an errno. */
int pin_write(const struct pin *pin) __attribute__((cold));

/* Pins the state VALUE; 0: none. Returns: 0; an errno, only for PIN_WRITTEN: the file's word is
 * unknown then. */
static inline int pin_set(const struct pin *pin, uint64_t value)
{
	__atomic_store_n(pin->word, value, __ATOMIC_RELEASE);
	return __builtin_expect(pin->kind == PIN_WRITTEN, 0) ? pin_write(pin) : 0;
}

#endif
