/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lossy broadcast ring in shared memory: one writer, any number of readers. They map it read-only
 * and can never delay the writer. There is one, the delta ring: the reflector reports its commits
 * to the processor and to followers. Layout and the rules of reading: FORMAT.md, Ring.
 *
 * An entry points at journal records and carries no body. A ring only makes things faster: a reader
 * lapped by the writer, or meeting another epoch or bad bytes, reads the journal instead.
 *
 * Writer: ring_put() collects entries of a batch, ring_publish() makes them visible and wakes.
 * Reader: ring_next() until AGAIN, then ring_wait().
 */
#ifndef STORE_RING_RING_H
#define STORE_RING_RING_H

#include "common/bytes.h"

struct ring;
struct ring_reader;

#define DELTA_RING HOME_RING

struct ring_entry {
	uint64_t seq; /* of the record */
	uint32_t feed;
	uint8_t type; /* enum record_type */
	uint8_t flags;
	/* object key; borrowed from the reader until its next call. Empty if larger than an eighth
	 * of the ring */
	struct bytes key;
};

/* Returns the memory of a ring of this capacity (a power of two, at least 4096). */
size_t ring_bytes(size_t capacity);

/* Makes a writer on the caller's memory, for tests: ring_bytes() long, 128-byte aligned, and zeroed
 * or left by an earlier writer (taken over as by ring_create()). -EINVAL. */
int ring_init(void *memory, size_t size, const uint8_t uuid[16], struct ring **ret_ring);

/* Makes a writer on the file DIRECTORY_FD/NAME. Takes over a valid file of this size and boot: a
 * new epoch keeps readers from half-written entries. Otherwise makes a new file, allocates its
 * blocks in full, and renames it to NAME. */
int ring_create(int directory_fd, const char *name, size_t capacity, const uint8_t uuid[16],
	unsigned mode, struct ring **ret_ring);
/* Marks the ring closed, to tell readers of the writer's end, and closes it. (A killed writer
 * leaves it unmarked.) */
void ring_close(struct ring **ring);

/* Adds to the batch. If it gets too large for the ring, or there is no memory, readers get
 * LAPPED. */
void ring_put(struct ring *ring, const struct ring_entry *entry);
/* Announces a publish: wakes one reader to poll the tail for at most 60 us. An idle CPU takes about
 * as long to wake from sleep; now it does so while the writer still works on the batch. */
void ring_announce(struct ring *ring);
/* Publishes the batch, and LAST_SEQ, the newest committed record, even when the batch is empty. */
void ring_publish(struct ring *ring, uint64_t last_seq);
/* The two halves of ring_publish(), for a writer with others to wake between them: the first wakes
 * the readers asleep on this ring, the second those of ring_wake_last(). */
void ring_show(struct ring *ring, uint64_t last_seq);
/* Makes the batch visible and wakes nobody: no reader can use it yet. A sleeping one sees it at its
 * timeout, or at the next publish. */
void ring_store(struct ring *ring, uint64_t last_seq);
void ring_wake_rest(struct ring *ring);
/* Also shows readers again the changes lost to a full disk. */
void ring_heartbeat(struct ring *ring);

/* Makes a reader at the tail. Returns: 0; -ENOENT: there is no ring, or no writer has opened it
 * since the last boot; ERR_FORMAT; ERR_CORRUPT. */
int ring_attach(int directory_fd, const char *name, struct ring_reader **ret_reader);
int ring_attach_memory(const void *memory, size_t size, struct ring_reader **ret_reader);
void ring_detach(struct ring_reader **reader);

/* Moves the reader to the tail. Returns the newest seq published before it. The caller then reads
 * the journal; records not there yet will come through the ring. */
uint64_t ring_to_tail(struct ring_reader *reader);

/* Returns the newest published seq. If the entries end before it, the batch had more records than
 * entries: the log has the others. */
uint64_t ring_last_seq(const struct ring_reader *reader);

/* Reads the next entry. Returns: FOUND; AGAIN: nothing is new; LAPPED, also for another epoch or
 * bad bytes (ring_status() counts those apart): call ring_to_tail(); GONE: the file was replaced,
 * or was closed and all of it was read: detach and attach again. */
int ring_next(struct ring_reader *reader, struct ring_entry *ret_entry);

/* Returns the newest seq published for the journal UUID by earlier writers of this boot; 0:
 * none. */
uint64_t ring_newest(int directory_fd, const char *name, const uint8_t uuid[16]);

/* Sleeps until something is published after the last AGAIN, for at most TIMEOUT_MS (negative: no
 * limit). Returns: 0: there may be something, or a spurious wake-up; AGAIN: the time is over; GONE
 * as above, within a second. */
int ring_wait(struct ring_reader *reader, int timeout_ms);

/* Makes a publish wake this reader after the others, and an announcement never. Moves it to the
 * tail, as ring_to_tail() does. */
void ring_wake_last(struct ring_reader *reader);

/* Returns whether another file has the ring's name, or none: a writer may be writing another one
 * now. A system call. */
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
