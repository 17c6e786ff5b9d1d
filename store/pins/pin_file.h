/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pin file of a reading process: one for each environment that it reads, in the first of the
 * environment's places that is there and writable. The process makes it (O_EXCL), locks it for
 * as long as it lives (an open file description lock, so neither pids nor PID namespaces
 * matter), and only then lets others read it. Its slots hold the pins of the process's
 * snapshots. The kernel lets the lock go when the process ends; the writer then removes the
 * file.
 *
 * On tmpfs and ext4 a file's blocks are there once they are reserved, so its process writes the
 * slots through a map. On all other file systems a store into a map can find the disk full
 * (mapped_file.h), which would be a SIGBUS in a program that only reads: there each pin is a
 * pwrite(2).
 *
 * Without room for a file the process holds a read lock on PIN_MARK_ALL of the pin page while a
 * snapshot of it is open. It takes no room, and the writer then reuses nothing at all. Only on a
 * full disk, because it costs the writer more than a pin.
 *
 * For each pin file its process also holds a read lock on one byte of the pin page: that of the
 * file's number. So a writer that starts notices a reader whose file it does not find, because
 * the runtime directory was removed or moved, or the file was, and reuses nothing until that
 * reader has ended or made another file.
 *
 * A child of fork(2) shares the open file that has the lock, so it closes it at once (forks.h):
 * the lock must not outlive the parent. The map is of another open file, because the child keeps
 * that. FORMAT.md has the bytes.
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
/* the byte of the page that says: all states are pinned */
#define PIN_MARK_ALL (PIN_NUMBER_MAX + 1)
/* the byte that a writer locks which has checked the file */
#define PIN_MARK_CHECKED (PIN_NUMBER_MAX + 2)
#define PIN_NAME_LENGTH  33 /* "0123456789abcdef-0123456789abcdef" */

/* The first slot of a pin file. */
struct pin_head {
	uint64_t magic;
	uint32_t slots;         /* that were ever used, this one included. Atomic */
	int32_t pid;            /* as the process itself knows it; for people */
	uint64_t pid_namespace; /* the inode's number of /proc/self/ns/pid */
	char program[16];
};

struct pin_file;
struct pins;

enum pin_kind {
	PIN_MAPPED,
	PIN_WRITTEN, /* the word is written into the file */
	PIN_MARK,    /* there is no file: the word is of no interest to anybody */
};

/* A slot. All zeros: none. */
struct pin {
	struct pin_file *file;
	enum pin_kind kind;
	uint64_t *word;
	uint32_t number;
	uint64_t epoch; /* of the page when the file was last known to be in place */
};

/* DIRECTORY has the pin page; INODE: of data.mdb. Makes no file yet. */
int pins_open(const char *directory, uint64_t inode, const struct pin_places *places,
	struct pins **ret_pins);
/* All slots were given back. */
void pins_close(struct pins **pins);
/* Gives a slot that pins nothing, in a file that is in a place where the writer of PAGE looks,
 * unless PIN is one. On a full disk it may be of the kind PIN_MARK.
 * ERR_READERS_FULL: the process has all the slots that a file can have; -EROFS, -EACCES, ...:
 * there is no place for a file, with a sentence that names it; ERR_LOCKED: the writer looks in
 * none of the places of this process. */
int pins_take(struct pins *pins, const struct pin_page *page, struct pin *ret_pin);
void pins_give(struct pins *pins, struct pin *pin);
/* As pins_give(), when a pin could not be written: no slot of that file is given any more. */
void pins_drop(struct pins *pins, struct pin *pin);
/* Returns false if the process has closed the descriptors of the file that PIN is in, as
 * closefrom(3) does: the kernel then has let its lock go, and the writer may have reused what
 * was pinned. The next pins_take() takes another file. A system call. */
bool pins_check(struct pin *pin);

/* Writes the word into the file. Returns an errno. */
int pin_write(const struct pin *pin) __attribute__((cold));

/* Pins the state VALUE; 0: none. Returns: 0; an errno, only for PIN_WRITTEN: what the file says
 * is not known then. */
static inline int pin_set(const struct pin *pin, uint64_t value)
{
	__atomic_store_n(pin->word, value, __ATOMIC_RELEASE);
	return __builtin_expect(pin->kind == PIN_WRITTEN, 0) ? pin_write(pin) : 0;
}

#endif
