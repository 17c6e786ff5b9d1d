/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/hints.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/crc.h"
#include "common/err.h"
#include "common/hash.h"
#include "common/proc.h"

#define HINTS_MAGIC  0x6b68696eu
#define FILE_MAGIC   UINT64_C(0x31544e4948464e4b) /* "KNFHINT1" */
#define FILE_LAYOUT  4u
#define HEADER_BYTES 4096u

/* A slot: tag, one bit (the value is a place), value, check; 0: empty. A bucket is a cache line. */
#define CHECK_BITS 8
#define VALUE_BITS 30
#define TAG_BITS   25
#define IS_PLACE   (UINT64_C(1) << VALUE_BITS)
#define VALUE_MAX  (IS_PLACE - 1)
#define SEQS       VALUE_MAX /* range of one table */
#define TAG_SHIFT  (CHECK_BITS + VALUE_BITS + 1)
#define CHECK      UINT8_C(0x5a) /* exclusive or of a slot's bytes */
#define BUCKET     8             /* slots */

/* A bijection mixes the bits of an object id: bucket and tag together are the id. */
#define OBJECT_BITS  35
#define OBJECT_MAX   ((UINT64_C(1) << OBJECT_BITS) - 1)
#define BUCKETS_BITS (OBJECT_BITS - TAG_BITS) /* the least */
#define BUCKETS_MOST 28
#define MIX          UINT64_C(0x9e3779b97f4a7c15)

/* A place is 16 bytes after the beginning of a page (FORMAT.md, Journal). */
#define PLACE_UNIT   12
#define PLACE_OFFSET 16u

struct hints_header {
	uint64_t magic;
	uint32_t layout;
	uint32_t header_bytes;
	uint8_t boot[32];
	uint8_t journal[16];
	uint32_t index_generation;
	uint32_t buckets_bits;
	uint64_t seq_base; /* slots hold seqs as their distance from it */
	uint32_t crc;      /* of all before it */
	uint8_t pad[44];
	/* These change while readers read them: loaded and stored whole. */
	uint64_t taken;
	uint64_t txn;
	uint32_t journal_generation; /* of places; 0: there is none yet */
};

#define AT(member, offset) \
	_Static_assert(offsetof(struct hints_header, member) == (offset), "FORMAT.md, Hints")
AT(layout, 8);
AT(boot, 16);
AT(journal, 48);
AT(index_generation, 64);
AT(buckets_bits, 68);
AT(seq_base, 72);
AT(crc, 80);
AT(taken, 128);
AT(txn, 136);
AT(journal_generation, 144);

struct hints {
	uint32_t magic;
	bool writable;
	unsigned bits; /* 1 << bits buckets, of names and again of objects */
	struct hints_header *header;
	uint64_t *names, *objects;
	size_t bytes; /* of the map */
};

static size_t hints_table_bytes(unsigned bits)
{
	return ((size_t)BUCKET * sizeof(uint64_t)) << bits;
}

/* ---- slots -------------------------------------------------------------- */

/* Equal hashes of two names cost no more than a lookup in the index. */
static struct hints_key hints_name_key(const struct hints *hints, uint32_t feed, struct bytes key)
{
	uint64_t h = hash_bytes(key, feed);

	return (struct hints_key){h >> (64 - hints->bits), h & ((UINT64_C(1) << TAG_BITS) - 1)};
}

static struct hints_key hints_object_key(const struct hints *hints, uint64_t object)
{
	uint64_t mixed = (object * MIX) & OBJECT_MAX;
	unsigned rest = OBJECT_BITS - hints->bits;

	return (struct hints_key){mixed >> rest, mixed & ((UINT64_C(1) << rest) - 1)};
}

/* Returns the exclusive or of SLOT's bytes. It detects one changed byte: a damaged slot of an
 * object would be trusted, and lead to another object or an older version. */
static uint8_t hints_fold(uint64_t slot)
{
	slot ^= slot >> 32;
	slot ^= slot >> 16;
	return (uint8_t)(slot ^ slot >> 8);
}

/* Returns the value of the key's slot, with IS_PLACE; 0: there is none. */
static uint64_t hints_find_value(const uint64_t *table, struct hints_key key)
{
	const uint64_t *bucket = &table[key.bucket * BUCKET];

	for (unsigned i = 0; i < BUCKET; i++) {
		uint64_t slot = __atomic_load_n(&bucket[i], __ATOMIC_RELAXED);

		if (slot >> TAG_SHIFT == key.tag && hints_fold(slot) == CHECK)
			return slot >> CHECK_BITS & (IS_PLACE | VALUE_MAX);
	}
	return 0;
}

/* Sets the key's slot, or empties it (VALUE 0). A key never has two slots: one of them would keep
 * an old version. */
static void hints_set_slot(uint64_t *table, struct hints_key key, uint64_t value)
{
	uint64_t *bucket = &table[key.bucket * BUCKET];
	uint64_t *place = NULL, slot = key.tag << TAG_SHIFT | value << CHECK_BITS;

	for (unsigned i = 0; i < BUCKET; i++) {
		if (bucket[i] && bucket[i] >> TAG_SHIFT == key.tag) {
			place = &bucket[i];
			break;
		}
		if (!bucket[i] && !place)
			place = &bucket[i];
	}
	if (place)
		__atomic_store_n(
			place, value ? slot | (hints_fold(slot) ^ CHECK) : 0, __ATOMIC_RELAXED);
}

/* ---- the file ----------------------------------------------------------- */

static void hints_set_tables(struct hints *hints, unsigned bits)
{
	hints->bits = bits;
	hints->names = (uint64_t *)((uint8_t *)hints->header + HEADER_BYTES);
	hints->objects = hints->names + hints_table_bytes(bits) / sizeof(uint64_t);
}

static int hints_map(int fd, size_t bytes, bool write, struct hints **ret_hints)
{
	struct hints *hints = calloc(1, sizeof(*hints));

	if (!hints)
		return err_set(-ENOMEM, "hints");
	void *map =
		mmap(NULL, bytes, write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		int error = errno;

		free(hints);
		return err_set(-error, "mapping hints");
	}
	hints->magic = HINTS_MAGIC;
	hints->writable = write;
	hints->header = map;
	hints->bytes = bytes;
	*ret_hints = hints;
	return 0;
}

void hints_close(struct hints **hints)
{
	struct hints *h = *hints;

	if (!h)
		return;
	CHECK_OBJ(h, HINTS_MAGIC);
	(void)munmap(h->header, h->bytes);
	h->magic = 0;
	free(h);
	*hints = NULL;
}

static uint32_t hints_header_crc(const struct hints_header *header)
{
	return crc32c(0, header, offsetof(struct hints_header, crc));
}

int hints_create(int directory_fd, const struct hints_of *of, uint64_t objects, uint64_t taken,
	unsigned mode, struct hints **ret_hints)
{
	unsigned bits = BUCKETS_BITS;
	char boot[33];

	while (bits < BUCKETS_MOST && (UINT64_C(1) << bits) * BUCKET < 2 * objects)
		bits++;
	size_t bytes = HEADER_BYTES + 2 * hints_table_bytes(bits);
	int r = proc_boot_id(boot);

	if (r < 0)
		return r;
	(void)unlinkat(directory_fd, HINTS_FILE_NEW, 0); /* a killed writer may have left one */
	AUTO_FD int fd = openat(directory_fd, HINTS_FILE_NEW,
		O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);

	if (fd < 0 || fchmod(fd, mode) < 0)
		r = err_set(-errno, "creating '%s'", HINTS_FILE_NEW);
	/* Makes a full disk an error now, not a SIGBUS at the first touch of a page. */
	int error = r < 0 ? 0 : posix_fallocate(fd, 0, (off_t)bytes);

	if (error)
		r = err_set(-error, "allocating %zu bytes for '%s'", bytes, HINTS_FILE_NEW);
	if (r == 0)
		r = hints_map(fd, bytes, true, ret_hints);
	if (r < 0) {
		(void)unlinkat(
			directory_fd, HINTS_FILE_NEW, 0); /* removed at the next attempt, too */
		return r;
	}
	struct hints_header *header = (*ret_hints)->header;

	header->magic = FILE_MAGIC;
	header->layout = FILE_LAYOUT;
	header->header_bytes = HEADER_BYTES;
	memcpy(header->boot, boot, sizeof(header->boot));
	memcpy(header->journal, of->journal, sizeof(header->journal));
	header->index_generation = of->index_generation;
	header->buckets_bits = bits;
	header->seq_base = taken > SEQS / 2 ? taken - SEQS / 2 : 0;
	header->crc = hints_header_crc(header);
	hints_set_tables(*ret_hints, bits);
	return 0;
}

int hints_publish(struct hints *hints, int directory_fd)
{
	CHECK_OBJ(hints, HINTS_MAGIC);
	if (renameat(directory_fd, HINTS_FILE_NEW, directory_fd, HINTS_FILE) < 0)
		return err_set(-errno, "renaming '%s'", HINTS_FILE_NEW);
	return 0;
}

static bool hints_is_usable(
	const struct hints_header *header, const struct hints_of *of, size_t bytes)
{
	char boot[33];

	if (header->magic != FILE_MAGIC || header->layout != FILE_LAYOUT ||
		header->header_bytes != HEADER_BYTES || header->crc != hints_header_crc(header))
		return false;
	if (header->buckets_bits < BUCKETS_BITS || header->buckets_bits > BUCKETS_MOST ||
		bytes < HEADER_BYTES + 2 * hints_table_bytes(header->buckets_bits))
		return false;
	/* The file is never synced: after a power cut any page may be an old one. */
	int r = proc_boot_id(boot);
	if (r < 0) {
		err_ignore(r, "the index is asked instead of hints");
		return false;
	}
	return memcmp(boot, header->boot, sizeof(header->boot)) == 0 &&
	       memcmp(of->journal, header->journal, sizeof(header->journal)) == 0 &&
	       of->index_generation == header->index_generation;
}

int hints_open(int directory_fd, const struct hints_of *of, bool write, struct hints **ret_hints)
{
	AUTO_FD int fd = openat(
		directory_fd, HINTS_FILE, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW);
	CLEANUP(hints_close) struct hints *hints = NULL;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < (off_t)HEADER_BYTES)
		return NOT_FOUND;
	int r = hints_map(fd, (size_t)st.st_size, write, &hints);
	if (r < 0) {
		err_ignore(r, "the index is asked instead of hints");
		return NOT_FOUND;
	}
	if (!hints_is_usable(hints->header, of, (size_t)st.st_size))
		return NOT_FOUND;
	hints_set_tables(hints, hints->header->buckets_bits);
	*ret_hints = TAKE(hints);
	return FOUND;
}

/* ---- writing ------------------------------------------------------------ */

void hints_put(
	struct hints *hints, uint32_t feed, struct bytes key, const struct index_entry *entry)
{
	CHECK_OBJ(hints, HINTS_MAGIC);
	REQUIRE(hints->writable);
	struct hints_header *header = hints->header;
	uint64_t page = entry->place >> PLACE_UNIT, value;

	if (entry->place && !header->journal_generation)
		__atomic_store_n(&header->journal_generation, entry->generation, __ATOMIC_RELEASE);
	/* The slot holds the place if it is in the table's one journal generation, else the seq; 0:
	 * the seq is outside of the table's range. */
	if (page && page <= VALUE_MAX && entry->generation == header->journal_generation &&
		entry->place == (page << PLACE_UNIT) + PLACE_OFFSET)
		value = IS_PLACE | page;
	else if (entry->seq > header->seq_base && entry->seq - header->seq_base <= SEQS)
		value = entry->seq - header->seq_base;
	else
		value = 0;
	hints_set_slot(hints->names, hints_name_key(hints, feed, key), value);
	if (entry->object <= OBJECT_MAX)
		hints_set_slot(hints->objects, hints_object_key(hints, entry->object), value);
}

void hints_remove(struct hints *hints, uint32_t feed, struct bytes key, uint64_t object)
{
	CHECK_OBJ(hints, HINTS_MAGIC);
	REQUIRE(hints->writable);
	hints_set_slot(hints->names, hints_name_key(hints, feed, key), 0);
	if (object <= OBJECT_MAX)
		hints_set_slot(hints->objects, hints_object_key(hints, object), 0);
}

void hints_cover(struct hints *hints, uint64_t taken, uint64_t txn)
{
	CHECK_OBJ(hints, HINTS_MAGIC);
	REQUIRE(hints->writable);
	__atomic_store_n(&hints->header->txn, txn, __ATOMIC_RELAXED);
	/* Pairs with acquire in hints_taken: readers of this value see the slots. */
	__atomic_store_n(&hints->header->taken, taken, __ATOMIC_RELEASE);
}

uint64_t hints_txn(const struct hints *hints)
{
	CHECK_OBJ(hints, HINTS_MAGIC);
	return hints->header->txn;
}

bool hints_is_worn(const struct hints *hints, uint64_t objects, uint64_t taken)
{
	uint64_t slots = (UINT64_C(1) << hints->bits) * BUCKET;

	CHECK_OBJ(hints, HINTS_MAGIC);
	if (taken > hints->header->seq_base && taken - hints->header->seq_base > SEQS / 4 * 3)
		return true;
	/* With 7 of 10 slots in use, the bucket of about 1 of 25 objects is full. */
	return hints->bits < BUCKETS_MOST && objects > slots / 10 * 7;
}

/* ---- reading ------------------------------------------------------------ */

uint64_t hints_taken(const struct hints *hints)
{
	CHECK_OBJ(hints, HINTS_MAGIC);
	/* Pairs with release in hints_cover. */
	return __atomic_load_n(&hints->header->taken, __ATOMIC_ACQUIRE);
}

static struct hint hints_of_value(const struct hints *hints, uint64_t value)
{
	uint64_t number = value & VALUE_MAX;

	if (!number)
		return (struct hint){0};
	if (!(value & IS_PLACE))
		return (struct hint){.seq = hints->header->seq_base + number};
	return (struct hint){
		.place = (number << PLACE_UNIT) + PLACE_OFFSET,
		.generation = __atomic_load_n(&hints->header->journal_generation, __ATOMIC_ACQUIRE),
	};
}

struct hints_key hints_prefetch_name(const struct hints *hints, uint32_t feed, struct bytes key)
{
	CHECK_OBJ(hints, HINTS_MAGIC);
	struct hints_key name = hints_name_key(hints, feed, key);

	__builtin_prefetch(&hints->names[name.bucket * BUCKET]);
	return name;
}

struct hint hints_prefetched(const struct hints *hints, struct hints_key name)
{
	return hints_of_value(hints, hints_find_value(hints->names, name));
}

struct hint hints_name(const struct hints *hints, uint32_t feed, struct bytes key)
{
	CHECK_OBJ(hints, HINTS_MAGIC);
	return hints_prefetched(hints, hints_name_key(hints, feed, key));
}

struct hint hints_object(const struct hints *hints, uint64_t object)
{
	CHECK_OBJ(hints, HINTS_MAGIC);
	if (object > OBJECT_MAX)
		return (struct hint){0};
	return hints_of_value(
		hints, hints_find_value(hints->objects, hints_object_key(hints, object)));
}

void hints_prefetch_object(const struct hints *hints, uint64_t object)
{
	if (object <= OBJECT_MAX)
		__builtin_prefetch(
			&hints->objects[hints_object_key(hints, object).bucket * BUCKET]);
}
