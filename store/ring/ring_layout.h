/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a ring (FORMAT.md, Ring), for ring.c (writer) and ring_reader.c only.
 *
 * A position counts bytes since the ring was made and never wraps; its place in memory is the
 * position modulo the capacity. Before the writer writes a batch it moves `claim` to the batch's
 * end; after it, `tail`. A reader copies the bytes at its position, below `tail`, and then checks
 * position + capacity >= claim. If not, the writer may have begun to overwrite them, and the copy
 * is dropped.
 */
#ifndef STORE_RING_RING_LAYOUT_H
#define STORE_RING_RING_LAYOUT_H

#include <stdatomic.h>

#include "common/crc.h"
#include "store/ring/ring.h"

#define RING_MAGIC       0x31474e4952464e4bull /* "KNFRING1" */
#define RING_LAYOUT      2
#define RING_ALIGN       32
#define RING_HEADER_SIZE 4096
/* header and payload, also at most an eighth of the capacity */
#define RING_RECORD_MAX 1024

enum ring_state {
	RING_INIT,       /* being made */
	RING_LIVE,       /* has a writer, or had one that was killed */
	RING_CLOSED,     /* its writer ended in order */
	RING_SUPERSEDED, /* another file has its name */
};

enum { RING_PAD = 0 }; /* record type: nothing, up to the end of the memory */

/* Constant fields come first; every changing word has a pair of cache lines of its own, because
 * processors fetch lines in pairs. */
struct ring_header {
	uint64_t magic;
	_Atomic uint32_t
		layout; /* stored last with release; pairs with acquire in header_check() */
	uint32_t header_size;
	uint32_t align;
	uint32_t crc; /* CRC32C of this first part, layout and crc taken as 0 */
	uint64_t capacity;
	uint64_t created_ns;
	uint8_t boot_id[32];
	uint8_t uuid[16]; /* of the seqs' journal */
	uint8_t pad0[40];

	_Atomic uint32_t epoch; /* + 1 at each start of a writer, before claim and tail */
	_Atomic uint32_t state; /* enum ring_state */
	_Atomic int32_t writer_pid;
	uint8_t pad1[116];

	_Atomic uint64_t claim; /* bytes before it, less the capacity, may be half-written */
	uint8_t pad2[120];

	_Atomic uint64_t tail; /* bytes before it are published */
	_Atomic uint64_t last_seq;
	uint8_t pad3[112];

	_Atomic uint32_t wake; /* futex word, + 1 at each publish and announcement */
	uint8_t pad4[124];

	_Atomic uint32_t wake_last; /* for readers to be woken after the others */
	uint8_t pad5[124];

	_Atomic uint64_t heartbeat_ns; /* CLOCK_REALTIME */
	uint8_t pad6[3320];
};

struct ring_record {
	uint32_t size; /* of the payload after this header; RING_PAD: 0 */
	uint16_t type; /* RING_PAD or enum record_type */
	uint16_t flags;
	uint64_t position; /* its own */
	uint64_t seq;
	uint32_t feed;
	uint32_t crc; /* CRC32C of header (crc taken as 0) and payload */
};

#define RING_AT(type, field, offset) \
	_Static_assert(offsetof(struct type, field) == (offset), #type "." #field " moved")
RING_AT(ring_header, magic, 0);
RING_AT(ring_header, layout, 8);
RING_AT(ring_header, header_size, 12);
RING_AT(ring_header, align, 16);
RING_AT(ring_header, crc, 20);
RING_AT(ring_header, capacity, 24);
RING_AT(ring_header, created_ns, 32);
RING_AT(ring_header, boot_id, 40);
RING_AT(ring_header, uuid, 72);
RING_AT(ring_header, epoch, 128);
RING_AT(ring_header, state, 132);
RING_AT(ring_header, writer_pid, 136);
RING_AT(ring_header, claim, 256);
RING_AT(ring_header, tail, 384);
RING_AT(ring_header, last_seq, 392);
RING_AT(ring_header, wake, 512);
RING_AT(ring_header, wake_last, 640);
RING_AT(ring_header, heartbeat_ns, 768);
_Static_assert(sizeof(struct ring_header) == RING_HEADER_SIZE, "ring header is one page");
RING_AT(ring_record, size, 0);
RING_AT(ring_record, type, 4);
RING_AT(ring_record, flags, 6);
RING_AT(ring_record, position, 8);
RING_AT(ring_record, seq, 16);
RING_AT(ring_record, feed, 24);
RING_AT(ring_record, crc, 28);
_Static_assert(sizeof(struct ring_record) == RING_ALIGN, "a pad always fits");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2, "shared words");
_Static_assert(sizeof(_Atomic uint64_t) == 8 && sizeof(_Atomic uint32_t) == 4, "shared words");

static inline uint64_t ring_align(uint64_t n)
{
	return (n + RING_ALIGN - 1) & ~(uint64_t)(RING_ALIGN - 1);
}

/* Largest payload: a record is at most an eighth of the ring, so a reader's step is small against a
 * lap. */
static inline size_t ring_payload_max(uint64_t capacity)
{
	uint64_t record = capacity / 8 < RING_RECORD_MAX ? capacity / 8 : RING_RECORD_MAX;

	return record - sizeof(struct ring_record);
}

static inline uint32_t ring_header_crc(const struct ring_header *header)
{
	uint8_t bytes[offsetof(struct ring_header, pad0)];

	memcpy(bytes, header, sizeof(bytes));
	memset(bytes + offsetof(struct ring_header, layout), 0, sizeof(uint32_t));
	memset(bytes + offsetof(struct ring_header, crc), 0, sizeof(uint32_t));
	return crc32c(0, bytes, sizeof(bytes));
}

/* The payload follows RECORD. */
static inline uint32_t ring_record_crc(const void *record, size_t payload)
{
	static const uint32_t zero;
	const uint8_t *at = record;
	uint32_t crc = crc32c(0, at, offsetof(struct ring_record, crc));

	crc = crc32c(crc, &zero, sizeof(zero));
	return crc32c(crc, at + sizeof(struct ring_record), payload);
}

/*
 * The copies in and out race by design: a reader detects a torn copy by the claim and drops it
 * (FORMAT.md, Ring). ThreadSanitizer would report the race, so under it the bytes are copied by
 * relaxed atomic words, at ten times the cost of memcpy. SIZE is a multiple of RING_ALIGN.
 */
#ifdef __SANITIZE_THREAD__
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wtsan" /* no data but atomics here: nothing hangs on the fences */
#endif
static inline void ring_copy_in(void *shared, const void *from, size_t size)
{
	_Atomic uint64_t *to = shared;

	for (size_t i = 0; i < size / 8; i++)
		atomic_store_explicit(
			to + i, le64_get((const uint8_t *)from + i * 8), memory_order_relaxed);
}

static inline void ring_copy_out(void *to, const void *shared, size_t size)
{
	const _Atomic uint64_t *from = shared;

	for (size_t i = 0; i < size / 8; i++)
		le64_put((uint8_t *)to + i * 8,
			atomic_load_explicit(from + i, memory_order_relaxed));
}
#else
static inline void ring_copy_in(void *shared, const void *from, size_t size)
{
	memcpy(shared, from, size);
}

static inline void ring_copy_out(void *to, const void *shared, size_t size)
{
	memcpy(to, shared, size);
}
#endif

/* Checks the header of a file of SIZE bytes. Returns: 0; ERR_FORMAT; ERR_CORRUPT; -ENOENT: the ring
 * is from before the last boot. */
int ring_header_check(const struct ring_header *header, uint64_t size);

#endif
