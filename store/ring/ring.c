/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ring/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/proc.h"
#include "store/ring/ring_layout.h"

#define RING_WRITER_MAGIC 0x52574e47u
#define BATCH_MAX         (4u << 20)

struct ring {
	uint32_t magic;
	bool overrun; /* the batch is too large, or memory was short: readers are sent to the log */
	struct ring_header *header;
	size_t mapped; /* bytes of the file; 0: the memory is the caller's */
	uint8_t *data;
	uint64_t capacity;
	struct buf batch; /* records as they will lie in the ring, without position and crc */
};

size_t ring_bytes(size_t capacity)
{
	return RING_HEADER_SIZE + capacity;
}

static bool ring_capacity_is_valid(uint64_t capacity)
{
	return capacity >= 4096 && !(capacity & (capacity - 1)) && capacity <= UINT64_C(1) << 32;
}

int ring_header_check(const struct ring_header *header, uint64_t size)
{
	if (size < RING_HEADER_SIZE)
		return err_set(ERR_CORRUPT, "ring of %llu bytes", (unsigned long long)size);
	/* pairs with release in ring_header_fill() */
	uint32_t layout = atomic_load_explicit(&header->layout, memory_order_acquire);
	if (header->magic != RING_MAGIC || layout != RING_LAYOUT ||
		header->header_size != RING_HEADER_SIZE || header->align != RING_ALIGN)
		return err_set(ERR_FORMAT, "ring header");
	if (header->crc != ring_header_crc(header) || !ring_capacity_is_valid(header->capacity) ||
		size != ring_bytes(header->capacity))
		return err_set(ERR_CORRUPT, "ring header");

	char boot_id[33];
	int r = proc_boot_id(boot_id);
	if (r < 0)
		return r;
	if (memcmp(boot_id, header->boot_id, sizeof(header->boot_id)) != 0)
		return err_set(-ENOENT, "ring of an earlier boot");
	return 0;
}

static int ring_header_fill(struct ring_header *header, uint64_t capacity, const uint8_t uuid[16])
{
	char boot_id[33];
	int r = proc_boot_id(boot_id);
	if (r < 0)
		return r;
	memset((void *)header, 0, sizeof(*header));
	header->magic = RING_MAGIC;
	header->header_size = RING_HEADER_SIZE;
	header->align = RING_ALIGN;
	header->capacity = capacity;
	header->created_ns = proc_realtime_ns();
	memcpy(header->boot_id, boot_id, sizeof(header->boot_id));
	memcpy(header->uuid, uuid, sizeof(header->uuid));
	header->crc = ring_header_crc(header);
	/* pairs with acquire in ring_header_check() */
	atomic_store_explicit(&header->layout, RING_LAYOUT, memory_order_release);
	return 0;
}

static void ring_wake_word(_Atomic uint32_t *word, int most)
{
	/* pairs with acquire in ring_next(): a reader of this word sees the tail */
	atomic_fetch_add_explicit(word, 1, memory_order_release);
	(void)syscall(SYS_futex, (void *)word, FUTEX_WAKE, most, NULL, NULL, 0);
}

static void ring_wake_readers(struct ring_header *header)
{
	ring_wake_word(&header->wake, INT_MAX);
	ring_wake_word(&header->wake_last, INT_MAX);
}

/* Moves claim and tail beyond everything claimed, by more than the whole ring: this laps every
 * reader at or before the old claim. */
static void ring_jump(struct ring_header *header, uint64_t capacity)
{
	uint64_t claim = atomic_load_explicit(&header->claim, memory_order_relaxed);
	uint64_t position = ring_align(claim + 1) + capacity;

	atomic_store_explicit(&header->claim, position, memory_order_relaxed);
	/* pairs with acquire in ring_reader.c: the new claim (and epoch) come before the new
	 * tail */
	atomic_store_explicit(&header->tail, position, memory_order_release);
}

static int ring_new(struct ring **ret_ring)
{
	struct ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return err_set(-ENOMEM, "ring");
	ring->magic = RING_WRITER_MAGIC;
	*ret_ring = ring;
	return 0;
}

static void ring_unmap(struct ring *ring)
{
	if (ring->mapped)
		(void)munmap(ring->header, ring->mapped); /* ours, whole: can't fail */
	ring->mapped = 0;
	ring->header = NULL;
}

static void ring_free(struct ring **ring_pointer)
{
	struct ring *ring = TAKE(*ring_pointer);

	if (!ring)
		return;
	ring_unmap(ring);
	buf_release(&ring->batch);
	ring->magic = 0;
	free(ring);
}

/* Begins to write, by the header. */
static void ring_begin(struct ring *ring)
{
	struct ring_header *header = ring->header;
	bool is_new = atomic_load_explicit(&header->epoch, memory_order_relaxed) == 0;

	ring->data = (uint8_t *)header + RING_HEADER_SIZE;
	ring->capacity = header->capacity;
	/* A batch of half a ring laps most readers anyway; the log serves them better, and
	 * private memory stays small. */
	buf_init(&ring->batch, ring->capacity / 2 < BATCH_MAX ? ring->capacity / 2 : BATCH_MAX);
	/* The epoch first: no reader trusts the old writer's rest any more. */
	atomic_fetch_add_explicit(&header->epoch, 1, memory_order_seq_cst);
	if (!is_new)
		ring_jump(header, ring->capacity);
	atomic_store_explicit(&header->writer_pid, getpid(), memory_order_relaxed);
	atomic_store_explicit(&header->heartbeat_ns, proc_realtime_ns(), memory_order_relaxed);
	/* pairs with acquire in ring_next() and ring_attach() */
	atomic_store_explicit(&header->state, RING_LIVE, memory_order_release);
	ring_wake_readers(header);
}

/* Returns whether a new writer may take the ring over: it is whole, and of this boot, size and
 * journal. */
static bool ring_is_usable(
	const struct ring_header *header, uint64_t size, uint64_t capacity, const uint8_t uuid[16])
{
	int r = ring_header_check(header, size);

	err_ignore(r, "a new ring takes its place");
	return r == 0 && header->capacity == capacity &&
	       !memcmp(header->uuid, uuid, sizeof(header->uuid)) &&
	       atomic_load_explicit(&header->state, memory_order_relaxed) != RING_SUPERSEDED;
}

int ring_init(void *memory, size_t size, const uint8_t uuid[16], struct ring **ret_ring)
{
	REQUIRE(memory && (uintptr_t)memory % 128 == 0 && size > RING_HEADER_SIZE);
	struct ring_header *header = memory;
	uint64_t capacity = size - RING_HEADER_SIZE;

	if (!ring_capacity_is_valid(capacity))
		return err_set(-EINVAL, "ring of %zu bytes", size);
	if (!ring_is_usable(header, size, capacity, uuid)) {
		int r = ring_header_fill(header, capacity, uuid);
		if (r < 0)
			return r;
	}
	int r = ring_new(ret_ring);
	if (r < 0)
		return r;
	(*ret_ring)->header = header;
	ring_begin(*ret_ring);
	return 0;
}

static int ring_map(struct ring *ring, int fd, size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);

	if (p == MAP_FAILED)
		return err_set(-errno, "mapping a ring");
	ring->header = p;
	ring->mapped = size;
	return 0;
}

/* Maps the file NAME if a new writer may take it over (FOUND). Else, if it is a ring, marks it
 * superseded and wakes its readers: they attach to the next one (NOT_FOUND). */
static int ring_take_over(struct ring *ring, int directory_fd, const char *name, size_t capacity,
	const uint8_t uuid[16])
{
	AUTO_FD int fd = openat(directory_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < RING_HEADER_SIZE)
		return NOT_FOUND;
	int r = ring_map(ring, fd, (size_t)st.st_size);
	err_ignore(r, "a new ring takes its place");
	if (r < 0)
		return NOT_FOUND;
	struct ring_header *header = ring->header;
	if (ring_is_usable(header, (uint64_t)st.st_size, capacity, uuid))
		return FOUND;
	if (header->magic == RING_MAGIC && header->header_size == RING_HEADER_SIZE) {
		/* pairs with acquire in ring_next() */
		atomic_store_explicit(&header->state, RING_SUPERSEDED, memory_order_release);
		ring_wake_readers(header);
	}
	ring_unmap(ring);
	return NOT_FOUND;
}

static int ring_make_file(int directory_fd, const char *temporary, size_t size, unsigned mode)
{
	(void)unlinkat(directory_fd, temporary, 0); /* of a writer killed here */
	AUTO_FD int fd = openat(
		directory_fd, temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return err_set(-errno, "creating '%s'", temporary);
	if (fchmod(fd, mode) < 0)
		return err_set(-errno, "mode of '%s'", temporary);
	/* All of it now: a full tmpfs is an error here and not a SIGBUS later. */
	int r = posix_fallocate(fd, 0, (off_t)size);
	if (r)
		return err_set(-r, "allocating %zu bytes for '%s'", size, temporary);
	return TAKE_FD(fd);
}

static int ring_create_new(struct ring *ring, int directory_fd, const char *name, size_t capacity,
	const uint8_t uuid[16], unsigned mode)
{
	char temporary[NAME_MAX + 1];

	if (snprintf(temporary, sizeof(temporary), ".%s.new", name) >= (int)sizeof(temporary))
		return err_set(-ENAMETOOLONG, "ring '%s'", name);
	AUTO_FD int fd = ring_make_file(directory_fd, temporary, ring_bytes(capacity), mode);
	int r = fd < 0 ? fd : ring_map(ring, fd, ring_bytes(capacity));
	if (r == 0)
		r = ring_header_fill(ring->header, capacity, uuid);
	if (!r && renameat(directory_fd, temporary, directory_fd, name) < 0)
		r = err_set(-errno, "renaming '%s'", temporary);
	if (r < 0)
		(void)unlinkat(directory_fd, temporary, 0); /* the next writer does it again */
	return r;
}

int ring_create(int directory_fd, const char *name, size_t capacity, const uint8_t uuid[16],
	unsigned mode, struct ring **ret_ring)
{
	if (!ring_capacity_is_valid(capacity))
		return err_set(-EINVAL, "ring '%s': capacity %zu", name, capacity);
	CLEANUP(ring_free) struct ring *ring = NULL;
	int r = ring_new(&ring);
	if (r < 0)
		return r;
	r = ring_take_over(ring, directory_fd, name, capacity, uuid);
	if (r == NOT_FOUND)
		r = ring_create_new(ring, directory_fd, name, capacity, uuid, mode);
	if (r < 0)
		return r;
	ring_begin(ring);
	*ret_ring = TAKE(ring);
	return 0;
}

void ring_close(struct ring **ring_pointer)
{
	struct ring *ring = TAKE(*ring_pointer);

	if (!ring)
		return;
	CHECK_OBJ(ring, RING_WRITER_MAGIC);
	/* pairs with acquire in ring_next() */
	atomic_store_explicit(&ring->header->state, RING_CLOSED, memory_order_release);
	ring_wake_readers(ring->header);
	ring_free(&ring);
}

void ring_put(struct ring *ring, const struct ring_entry *entry)
{
	CHECK_OBJ(ring, RING_WRITER_MAGIC);
	REQUIRE(entry->type != RING_PAD);
	struct bytes payload = entry->key;

	if (payload.size > ring_payload_max(ring->capacity))
		payload = BYTES_NONE; /* by reference: the seq says where to read */
	size_t size = ring_align(sizeof(struct ring_record) + payload.size);
	uint8_t *place = buf_grow(&ring->batch, size);
	if (!place) {
		ring->overrun = true;
		return; /* not lost: ring_publish() sends the readers to the log */
	}
	struct ring_record record = {
		.size = (uint32_t)payload.size,
		.type = entry->type,
		.flags = entry->flags,
		.seq = entry->seq,
		.feed = entry->feed,
	};
	memset(place, 0, size);
	memcpy(place, &record, sizeof(record));
	if (payload.size)
		memcpy(place + sizeof(record), payload.data, payload.size);
}

static void ring_copy_record(struct ring *ring, uint8_t *record, uint64_t position, size_t size)
{
	uint32_t payload = le32_get(record + offsetof(struct ring_record, size));

	le64_put(record + offsetof(struct ring_record, position), position);
	le32_put(record + offsetof(struct ring_record, crc), ring_record_crc(record, payload));
	ring_copy_in(ring->data + (position & (ring->capacity - 1)), record, size);
}

/* Returns the position after the whole batch when it begins at POSITION: no record crosses the
 * end of the memory, a pad stands for the rest there. COPY: also writes the records and pads
 * into the ring. */
static uint64_t ring_lay_batch(struct ring *ring, uint64_t position, bool copy)
{
	for (size_t at = 0; at < ring->batch.size;) {
		uint8_t *record = ring->batch.data + at;
		size_t size = ring_align(sizeof(struct ring_record) + le32_get(record));
		uint64_t left = ring->capacity - (position & (ring->capacity - 1));

		if (size > left) {
			struct ring_record pad = {.type = RING_PAD};
			if (copy)
				ring_copy_record(ring, (uint8_t *)&pad, position, sizeof(pad));
			position += left;
		}
		if (copy)
			ring_copy_record(ring, record, position, size);
		position += size;
		at += size;
	}
	return position;
}

void ring_store(struct ring *ring, uint64_t last_seq)
{
	CHECK_OBJ(ring, RING_WRITER_MAGIC);
	struct ring_header *header = ring->header;
	uint64_t tail = atomic_load_explicit(&header->tail, memory_order_relaxed);
	uint64_t end = ring_lay_batch(ring, tail, false);

	atomic_store_explicit(&header->last_seq, last_seq, memory_order_relaxed);
	if (ring->overrun || end - tail > ring->capacity) {
		ring_jump(header, ring->capacity);
	} else if (end != tail) {
		atomic_store_explicit(&header->claim, end, memory_order_relaxed);
		/* pairs with the acquire fence in ring_reader.c: a reader of a byte of this batch
		 * sees this claim */
		atomic_thread_fence(memory_order_release);
		/* Failpoints here only pause or kill: publishing has no error. */
		(void)failpoint_pass(FAILPOINT_RING_CLAIMED);
		(void)ring_lay_batch(ring, tail, true);
		(void)failpoint_pass(FAILPOINT_RING_COPIED);
		/* pairs with acquire in ring_reader.c: the records come before the tail */
		atomic_store_explicit(&header->tail, end, memory_order_release);
	}
	(void)failpoint_pass(FAILPOINT_RING_PUBLISHED);
	buf_reset(&ring->batch);
	ring->overrun = false;
}

void ring_show(struct ring *ring, uint64_t last_seq)
{
	ring_store(ring, last_seq);
	ring_wake_word(&ring->header->wake, INT_MAX);
}

void ring_wake_rest(struct ring *ring)
{
	CHECK_OBJ(ring, RING_WRITER_MAGIC);
	ring_wake_word(&ring->header->wake_last, INT_MAX);
}

void ring_publish(struct ring *ring, uint64_t last_seq)
{
	ring_show(ring, last_seq);
	ring_wake_rest(ring);
}

void ring_announce(struct ring *ring)
{
	CHECK_OBJ(ring, RING_WRITER_MAGIC);
	ring_wake_word(&ring->header->wake, 1);
}

void ring_heartbeat(struct ring *ring)
{
	CHECK_OBJ(ring, RING_WRITER_MAGIC);
	atomic_store_explicit(
		&ring->header->heartbeat_ns, proc_realtime_ns(), memory_order_relaxed);
}
