/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/env_internal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/check.h"
#include "common/err.h"
#include "store/env/env_page.h"

/* A value in overflow pages begins PAGE_HEADER bytes into its first page; a value in a leaf
 * never does, because the leaf's pointers stand there. */
#define CACHE_LINE     64
#define PREFETCH_LINES 3 /* a record's header and texts, and where its body begins */

/* Returns the leaf with VALUE, or NULL. The map begins at a page of this machine; pages of a file
 * from a machine with larger ones begin at any of them. */
static const uint8_t *mapping_find_leaf(const struct mapping *map, const uint8_t *value)
{
	size_t machine = (size_t)sysconf(_SC_PAGESIZE),
	       step = machine < map->page_size ? machine : map->page_size;
	const uint8_t *page = value - ((uintptr_t)value & (step - 1)), *row;

	for (size_t n = map->page_size / step; n > 0; n--, page -= step)
		for (size_t i = page_kind(page) == PAGE_IS_LEAF ? page_rows(page) : 0; i-- > 0;) {
			row = page_row(page, map->page_size, PAGE_HEADER + 2 * i);
			if (row && row + NODE_HEADER + node_key(row).size == value)
				return page;
		}
	return NULL;
}

/* LMDB does not report its map's address (me_mapaddr is set for fixed maps only). The number at the
 * beginning of any page gives it: the page's distance from the beginning of the map, in pages. */
int mapping_find_address(struct mapping *map, MDB_txn *txn)
{
	MDB_envinfo info;
	MDB_val value;

	(void)mdb_env_info(map->mdb, &info);
	map->map_bytes = info.me_mapsize;
	int rc = guarded_get(map, txn, map->database_names[0], &value);
	const uint8_t *page = rc ? NULL : mapping_find_leaf(map, value.mv_data);
	uint64_t number = page ? le64_get(page) : UINT64_MAX;
	if (number > info.me_last_pgno)
		return rc ? rc : MDB_CORRUPTED;
	map->address = page - number * map->page_size;
	return 0;
}

void env_expect_random(struct env *env, bool random)
{
	CHECK_OBJ(env, ENV_MAGIC);
	struct mapping *map = env->map;

	REQUIRE(env->mode != ENV_WRITE);
	if (map->random == random)
		return;
	map->random = random;
	(void)madvise((void *)(uintptr_t)map->address, map->map_bytes,
		random ? MADV_RANDOM : MADV_NORMAL); /* only saves time and memory */
}

int txn_place(struct txn *txn, struct bytes value, uint64_t *ret_offset)
{
	CHECK_OBJ(txn, TXN_MAGIC);
	const struct mapping *map = txn->map;
	uint64_t offset = (uint64_t)((uintptr_t)value.data - (uintptr_t)map->address);

	if (txn->is_write || offset >= map->map_bytes ||
		(offset & (map->page_size - 1)) != PAGE_HEADER)
		return NOT_FOUND;
	*ret_offset = offset;
	return FOUND;
}

/* Returns whether SIZE bytes from OFFSET on lie in the file, as far as the newest state reaches. */
static bool mapping_has(struct mapping *map, uint64_t offset, uint64_t size)
{
	if (offset >= map->map_bytes || size > map->map_bytes - offset)
		return false;
	if (offset + size <= __atomic_load_n(&map->file_bytes, __ATOMIC_RELAXED))
		return true;
	/* The file has grown since the last look, or the offset is nonsense. Beyond the newest
	 * state there may be a hole, cut off by the writer at its end. */
	uint64_t in_file, written = mapping_state_end(map);
	int r = mapping_file_size(map, &in_file);
	err_ignore(r, "what may not be in the file is not read");
	if (r < 0)
		return false;
	in_file = in_file < written ? in_file : written;
	__atomic_store_n(&map->file_bytes, in_file, __ATOMIC_RELAXED);
	return offset + size <= in_file;
}

int txn_at(struct txn *txn, uint64_t offset, size_t size, struct bytes *ret_value)
{
	CHECK_OBJ(txn, TXN_MAGIC);
	struct mapping *map = txn->map;

	if ((offset & (map->page_size - 1)) != PAGE_HEADER || !mapping_has(map, offset, size))
		return NOT_FOUND;
	*ret_value = BYTES(map->address + offset, size);
	return FOUND;
}

void txn_prefetch(struct txn *txn, uint64_t offset)
{
	const struct mapping *map = txn->map;

	if (offset >= map->map_bytes)
		return;
	for (unsigned i = 0; i < PREFETCH_LINES; i++)
		__builtin_prefetch(map->address + offset + i * CACHE_LINE); /* never faults */
}

bool txn_reads_by_page(const struct txn *txn)
{
	CHECK_OBJ(txn, TXN_MAGIC);
	return txn->map->random;
}

/* ---- reading ahead ------------------------------------------------------- */

/* announced pages cause no fault, so a cold store looks warm for a while */
#define COLD_ANSWERS 64
/* then only each WARM_EACHth call counts faults: a system call takes as long as four objects */
#define WARM_ANSWERS 8
#define WARM_EACH    4
#define GAP_MAX      16384u /* bytes between two values read as one piece */

bool ahead_is_cold(struct ahead *ahead)
{
	bool is_asked = ahead->warm < WARM_ANSWERS || ahead->warm % WARM_EACH == 0;
	struct rusage usage;

	ahead->warm++;
	if (!is_asked)
		return false;
	if (getrusage(RUSAGE_THREAD, &usage) < 0)
		return false;
	if (ahead->faults && usage.ru_majflt + 1 != ahead->faults)
		ahead->cold = COLD_ANSWERS;
	else if (ahead->cold)
		ahead->cold--;
	ahead->faults = usage.ru_majflt + 1;
	if (ahead->cold)
		ahead->warm = 0;
	return ahead->cold;
}

void ahead_send(struct ahead *ahead, struct txn *txn)
{
	CHECK_OBJ(txn, TXN_MAGIC);
	if (ahead->end) /* only saves time, whatever its result */
		(void)posix_fadvise(mapping_fd(txn->map), (off_t)ahead->begin,
			(off_t)(ahead->end - ahead->begin), POSIX_FADV_WILLNEED);
	ahead->end = 0;
}

void ahead_add(struct ahead *ahead, struct txn *txn, uint64_t offset, uint64_t size)
{
	if (ahead->end && offset >= ahead->begin && offset <= ahead->end + GAP_MAX) {
		if (offset + size > ahead->end)
			ahead->end = offset + size;
		return;
	}
	ahead_send(ahead, txn);
	ahead->begin = offset;
	ahead->end = offset + size;
}
