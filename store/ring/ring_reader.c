/* SPDX-License-Identifier: Apache-2.0 */
#include "store/ring/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/ring/ring_layout.h"

#define RING_READER_MAGIC 0x52524e47u
#define AWAIT_NS          60000
#define SLEEP_MAX_MS      1000

struct ring_reader {
	uint32_t magic;
	uint32_t epoch;
	uint32_t wake;    /* the futex word before the tail was last looked at */
	int directory_fd; /* to see whether the file was replaced; -1: memory of the caller */
	char *name;
	dev_t device;
	ino_t inode;
	const struct ring_header *header;
	const _Atomic uint32_t *word; /* the futex word to sleep on */
	const uint8_t *data;
	uint64_t capacity;
	uint64_t position; /* of the next record */
	uint64_t tail;     /* as last seen */
	uint64_t laps, corrupt;
	_Alignas(8) uint8_t record[RING_RECORD_MAX];
};

static int ring_reader_new(const struct ring_header *header, struct ring_reader **ret_reader)
{
	struct ring_reader *reader = calloc(1, sizeof(*reader));
	if (!reader)
		return err_set(-ENOMEM, "ring reader");
	reader->magic = RING_READER_MAGIC;
	reader->directory_fd = -1;
	reader->word = &header->wake;
	reader->header = header;
	reader->data = (const uint8_t *)header + RING_HEADER_SIZE;
	reader->capacity = header->capacity;
	(void)ring_to_tail(reader);
	*ret_reader = reader;
	return 0;
}

static int ring_check_live(const struct ring_header *header, uint64_t size)
{
	int r = ring_header_check(header, size);

	/* pairs with release in ring_begin() and ring_close() */
	if (!r && atomic_load_explicit(&header->state, memory_order_acquire) != RING_LIVE)
		r = err_set(-ENOENT, "the ring has no writer");
	return r;
}

int ring_attach_memory(const void *memory, size_t size, struct ring_reader **ret_reader)
{
	int r = ring_check_live(memory, size);

	return r < 0 ? r : ring_reader_new(memory, ret_reader);
}

int ring_attach(int directory_fd, const char *name, struct ring_reader **ret_reader)
{
	AUTO_FD int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(-errno, "ring '%s'", name);
	if (st.st_size < RING_HEADER_SIZE)
		return err_set(ERR_CORRUPT, "ring '%s'", name);
	void *memory = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return err_set(-errno, "mapping ring '%s'", name);

	CLEANUP(ring_detach) struct ring_reader *reader = NULL;
	int r = ring_check_live(memory, (uint64_t)st.st_size);
	if (!r)
		r = ring_reader_new(memory, &reader);
	if (r < 0) {
		(void)munmap(memory, (size_t)st.st_size); /* ours, whole: can't fail */
		return err_add(r, "ring '%s'", name);
	}
	reader->device = st.st_dev;
	reader->inode = st.st_ino;
	reader->name = strdup(name);
	reader->directory_fd = proc_apart(fcntl(directory_fd, F_DUPFD_CLOEXEC, 0));
	if (!reader->name || reader->directory_fd < 0) {
		r = err_set(reader->name ? -errno : -ENOMEM, "ring '%s'", name);
		(void)munmap(memory, (size_t)st.st_size); /* ours, whole: can't fail */
		cleanup_fd(&reader->directory_fd);
		return r;
	}
	*ret_reader = TAKE(reader);
	return 0;
}

void ring_detach(struct ring_reader **reader_pointer)
{
	struct ring_reader *reader = TAKE(*reader_pointer);

	if (!reader)
		return;
	CHECK_OBJ(reader, RING_READER_MAGIC);
	if (reader->directory_fd >= 0) {
		(void)munmap((void *)reader->header, ring_bytes(reader->capacity)); /* can't fail */
		(void)close(reader->directory_fd); /* read-only: nothing can be lost */
	}
	free(reader->name);
	reader->magic = 0;
	free(reader);
}

uint64_t ring_to_tail(struct ring_reader *reader)
{
	CHECK_OBJ(reader, RING_READER_MAGIC);
	const struct ring_header *header = reader->header;
	uint64_t seq;
	uint32_t epoch;

	do {
		/* pairs with the increment in ring_begin(): no tail of the old epoch counts for the
		 * new one */
		epoch = atomic_load_explicit(&header->epoch, memory_order_acquire);
		reader->wake = atomic_load_explicit(reader->word, memory_order_acquire);
		/* pairs with release in ring_publish() */
		reader->tail = atomic_load_explicit(&header->tail, memory_order_acquire);
		seq = atomic_load_explicit(&header->last_seq, memory_order_acquire);
	} while (epoch != atomic_load_explicit(&header->epoch, memory_order_acquire));
	reader->epoch = epoch;
	reader->position = reader->tail;
	return seq;
}

/* Loads the shared words again. Returns: FOUND, a record lies before the tail; AGAIN; GONE;
 * LAPPED. */
static int ring_reader_refresh(struct ring_reader *reader)
{
	const struct ring_header *header = reader->header;

	/* In the opposite order of their stores: wake before tail, or ring_wait() could sleep
	 * through a later publish; state before tail, to read everything published before the end;
	 * tail before epoch, to follow no tail of a new epoch. Pairs with release in
	 * ring_publish(), ring_close(), ring_begin(). */
	reader->wake = atomic_load_explicit(reader->word, memory_order_acquire);
	uint32_t state = atomic_load_explicit(&header->state, memory_order_acquire);
	reader->tail = atomic_load_explicit(&header->tail, memory_order_acquire);
	uint32_t epoch = atomic_load_explicit(&header->epoch, memory_order_acquire);
	if (epoch != reader->epoch) {
		reader->laps++;
		return LAPPED;
	}
	if (reader->position != reader->tail)
		return FOUND;
	return state == RING_LIVE ? AGAIN : GONE;
}

/*
 * Copies the record at the reader's position; *RET_SIZE is the distance to the next one. The size
 * in a torn header is used only within the ring and the buffer; the check for torn bytes comes
 * once, after all copies.
 */
static int ring_reader_copy(struct ring_reader *reader, size_t *ret_size)
{
	const uint8_t *from = reader->data + (reader->position & (reader->capacity - 1));
	struct ring_record record;

	ring_copy_out(reader->record, from, sizeof(record));
	memcpy(&record, reader->record, sizeof(record));
	uint64_t left = reader->capacity - (reader->position & (reader->capacity - 1));
	size_t size = 0; /* stays 0 when no record can stand there */
	if (record.type == RING_PAD)
		size = record.size == 0 ? left : 0;
	else if (record.size <= ring_payload_max(reader->capacity))
		size = ring_align(sizeof(record) + record.size);
	if (size > left)
		size = 0;
	if (size > sizeof(record) && record.type != RING_PAD)
		ring_copy_out(reader->record + sizeof(record), from + sizeof(record),
			size - sizeof(record));
	/* pairs with the release fence in ring_publish() */
	atomic_thread_fence(memory_order_acquire);
	uint64_t claim = atomic_load_explicit(&reader->header->claim, memory_order_relaxed);
	if (claim - reader->position > reader->capacity) {
		reader->laps++;
		return LAPPED;
	}
	if (!size || record.position != reader->position ||
		size > reader->tail - reader->position ||
		record.crc != ring_record_crc(reader->record, record.size)) {
		reader->corrupt++;
		return LAPPED;
	}
	*ret_size = size;
	return FOUND;
}

int ring_next(struct ring_reader *reader, struct ring_entry *ret_entry)
{
	CHECK_OBJ(reader, RING_READER_MAGIC);
	struct ring_record record;

	do {
		int r = reader->position == reader->tail ? ring_reader_refresh(reader) : FOUND;
		size_t size;
		if (r == FOUND)
			r = ring_reader_copy(reader, &size);
		if (r != FOUND)
			return r;
		reader->position += size;
		memcpy(&record, reader->record, sizeof(record));
	} while (record.type == RING_PAD);
	*ret_entry = (struct ring_entry){
		.seq = record.seq,
		.feed = record.feed,
		.type = (uint8_t)record.type,
		.flags = (uint8_t)record.flags,
		.key = BYTES(reader->record + sizeof(record), record.size),
	};
	return FOUND;
}

void ring_wake_last(struct ring_reader *reader)
{
	CHECK_OBJ(reader, RING_READER_MAGIC);
	reader->word = &reader->header->wake_last;
	(void)ring_to_tail(reader);
}

bool ring_is_replaced(const struct ring_reader *reader)
{
	struct stat st;

	CHECK_OBJ(reader, RING_READER_MAGIC);
	if (reader->directory_fd < 0)
		return false;
	return fstatat(reader->directory_fd, reader->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	       st.st_dev != reader->device || st.st_ino != reader->inode;
}

int ring_wait(struct ring_reader *reader, int timeout_ms)
{
	CHECK_OBJ(reader, RING_READER_MAGIC);
	const struct ring_header *header = reader->header;

	do {
		/* A replaced file is only detected between two sleeps, and the futex refuses
		 * negative times. */
		int ms = timeout_ms < 0 || timeout_ms > SLEEP_MAX_MS ? SLEEP_MAX_MS : timeout_ms;
		struct timespec timeout = {ms / 1000, ms % 1000 * 1000000L};
		/* Not FUTEX_PRIVATE: processes share the file. The kernel compares the word with
		 * the one seen, so no publish is slept through. */
		long r = syscall(SYS_futex, (const void *)reader->word, FUTEX_WAIT, reader->wake,
			&timeout, NULL, 0);
		if (r == 0 || errno != ETIMEDOUT) {
			/* An announcement (ring_announce) comes a moment before its records: wait
			 * awake, unless on a single CPU. */
			uint32_t wake = atomic_load_explicit(reader->word, memory_order_relaxed);
			uint64_t until = proc_cpus() < 2 ? 0 : proc_monotonic_ns() + AWAIT_NS;
			while (atomic_load_explicit(&header->tail, memory_order_relaxed) ==
					reader->tail &&
				atomic_load_explicit(reader->word, memory_order_relaxed) == wake &&
				proc_monotonic_ns() < until)
				proc_pause();
			return 0;
		}
		if (ring_is_replaced(reader))
			return GONE;
		timeout_ms -= timeout_ms < 0 ? 0 : ms;
	} while (timeout_ms);
	return AGAIN;
}

uint64_t ring_last_seq(const struct ring_reader *reader)
{
	CHECK_OBJ(reader, RING_READER_MAGIC);
	return atomic_load_explicit(&reader->header->last_seq, memory_order_relaxed);
}

const uint8_t *ring_uuid(const struct ring_reader *reader)
{
	CHECK_OBJ(reader, RING_READER_MAGIC);
	return reader->header->uuid;
}

/* A report: the words need not belong to one instant. */
void ring_status(const struct ring_reader *reader, struct ring_status *ret_status)
{
	CHECK_OBJ(reader, RING_READER_MAGIC);
	const struct ring_header *header = reader->header;

	*ret_status = (struct ring_status){
		.capacity = reader->capacity,
		.claim = atomic_load_explicit(&header->claim, memory_order_relaxed),
		.tail = atomic_load_explicit(&header->tail, memory_order_relaxed),
		.last_seq = atomic_load_explicit(&header->last_seq, memory_order_relaxed),
		.heartbeat_ns = atomic_load_explicit(&header->heartbeat_ns, memory_order_relaxed),
		.epoch = atomic_load_explicit(&header->epoch, memory_order_relaxed),
		.state = atomic_load_explicit(&header->state, memory_order_relaxed),
		.writer_pid = atomic_load_explicit(&header->writer_pid, memory_order_relaxed),
		.laps = reader->laps,
		.corrupt = reader->corrupt,
	};
}

uint64_t ring_newest(int directory_fd, const char *name, const uint8_t uuid[16])
{
	AUTO_FD int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct ring_header header;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 ||
		pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header))
		return 0;
	int r = ring_header_check(&header, (uint64_t)st.st_size);
	err_ignore(r, "its next writer makes another one");
	return r < 0 || memcmp(header.uuid, uuid, 16) != 0
		       ? 0
		       : atomic_load_explicit(&header.last_seq, memory_order_relaxed);
}
