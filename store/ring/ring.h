/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lossy broadcast ring in shared memory: one writer, any number of readers that map it read-only
 * and can never delay the writer. Used twice: the delta ring (reflector to processor) and the event
 * ring (processor to followers). Layout and the rules of reading: FORMAT.md, Rings.
 *
 * An entry points at journal records, it carries no body: the journal holds every version once. A
 * ring is an accelerator and never the truth: a reader that is lapped, or finds another epoch or bad bytes,
 * reads the journal instead, which holds the same and more.
 *
 * Writer: ring_put() collects entries of a batch, ring_publish() makes them visible and wakes.
 * Reader: ring_next() until AGAIN, then ring_wait().
 */
#ifndef STORE_RING_RING_H
#define STORE_RING_RING_H

#include "common/bytes.h"

struct ring;
struct ring_reader;

enum { RING_LIST = 100 }; /* entry type beside enum record_type: a whole list was applied */

struct ring_entry {
	uint64_t seq;   /* of the record; RING_LIST: of its LIST_END */
	uint64_t begin; /* RING_LIST: seq of its LIST_BEGIN; else 0 */
	uint32_t feed;
	uint8_t type;   /* enum record_type, or RING_LIST */
	uint8_t flags;
	struct bytes key; /* object key; borrowed from the reader until its next call. Empty where it
			   * is larger than an eighth of the ring: the record has it */
};

/* Memory a ring of this capacity (a power of two, at least 4096) takes. */
size_t ring_bytes(size_t capacity);

/* Writer on memory of the caller (tests, threads): zeroed or left by an earlier writer, which is
 * taken over as by ring_create(); ring_bytes() long, 128-byte aligned. -EINVAL. */
int ring_init(void *memory, size_t size, const uint8_t uuid[16], struct ring **ret_ring);

/* Writer on DIRECTORY_FD/NAME: takes over a valid file of that size and boot (epoch + 1, nothing
 * half-written is ever taken for whole), else makes a new one: allocated in full, then renamed. */
int ring_create(int directory_fd, const char *name, size_t capacity, const uint8_t uuid[16],
	unsigned mode, struct ring **ret_ring);
/* Tells readers that the writer has ended, which a process that dies does not. */
void ring_close(struct ring **ring);

/* Adds to the batch. If it gets too large for the ring, or there is no memory, readers get LAPPED. */
void ring_put(struct ring *ring, const struct ring_entry *entry);
/* Announces that something will be published in a moment: wakes one reader, which waits for it awake for up to 60 us.
 * An idle CPU takes that long to come back from sleep, and so does it while the batch is written. */
void ring_announce(struct ring *ring);
/* Forgets the batch (its transaction failed). */
void ring_discard(struct ring *ring);
/* Publishes the batch, and LAST_SEQ, the newest committed record, even when the batch is empty. */
void ring_publish(struct ring *ring, uint64_t last_seq);
void ring_heartbeat(struct ring *ring);

/* Reader. -ENOENT when there is none, or none of this boot with a writer yet; ERR_FORMAT,
 * ERR_CORRUPT. Begins at the tail. */
int ring_attach(int directory_fd, const char *name, struct ring_reader **ret_reader);
int ring_attach_memory(const void *memory, size_t size, struct ring_reader **ret_reader);
void ring_detach(struct ring_reader **reader);

/* Stands at the tail again; returns with *RET_SEQ the newest seq published before that point. Read
 * the journal after this call: whatever it does not hold yet will come through the ring. */
int ring_to_tail(struct ring_reader *reader, uint64_t *ret_seq);

/* Moves to the oldest entry that is still whole, to the tail when there is none: for a dump. */
void ring_to_oldest(struct ring_reader *reader);

/* FOUND, AGAIN (nothing new), LAPPED (also: another epoch, bad bytes, counted apart), GONE (the file
 * was replaced, or closed and all in it was read: detach and attach again). After LAPPED call
 * ring_to_tail. */
int ring_next(struct ring_reader *reader, struct ring_entry *ret_entry);

/* Sleeps until something is published after the last AGAIN, at most TIMEOUT_MS; negative: without limit. 0 woken or
 * changed, AGAIN on timeout, GONE as above (within a second). Spurious wake-ups are possible. */
int ring_wait(struct ring_reader *reader, int timeout_ms);

/* Returns whether another file has the ring's name, or none: a writer may be writing another one now. A system call. */
bool ring_is_replaced(const struct ring_reader *reader);

const uint8_t *ring_uuid(const struct ring_reader *reader);

struct ring_status {
	uint64_t capacity, claim, tail, last_seq, heartbeat_ns;
	uint32_t epoch, state;
	int32_t writer_pid;
	uint64_t laps, corrupt; /* seen by this reader */
};
void ring_status(const struct ring_reader *reader, struct ring_status *ret_status);

#endif
