/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins the pins (pin_page.h) with LMDB: the writer keeps a slot in LMDB's own table of readers at
 * the floor, the reader begins LMDB's transactions under a pin.
 */
#include "store/env/env_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/text/shell_word.h"

/* The floor moves after FEW_COMMITS transactions, or when the file has grown by GROWN_BYTES, if
 * SCAN_SHARE times a scan's duration has passed since its last move; after MANY_COMMITS in any
 * case; always when less than half of the map is left; and once a second (env_clean_pins()). Pages
 * freed meanwhile are not reused yet. */
#define FEW_COMMITS  16
#define MANY_COMMITS 64
#define GROWN_BYTES  (64u << 10)
#define SCAN_SHARE   20
/* a writer with a commit unpublished for so long is stopped or dead */
#define STALLED_NS 5000000u
#define SPINS      64
/* a reader without a pin file is reported after holding everything for so long */
#define HELD_NS 60000000000u
/* no order of steps keeps a reader from a snapshot for so long */
#define LOST_NS 5000000000u

static uint64_t mapping_last_txn(const struct mapping *map)
{
	MDB_envinfo info;

	(void)mdb_env_info(map->mdb, &info); /* fails for no environment at all only */
	return info.me_last_txnid;
}

/* ---- the writer: LMDB's slot -------------------------------------------- */

struct keeper_check {
	pthread_t thread;
	uint64_t txn;
	bool found;
};

static int keeper_line(const char *line, void *arg)
{
	struct keeper_check *check = arg;
	uint64_t thread, txn;
	int32_t pid;

	if (sscanf(line, "%" SCNd32 " %" SCNx64 " %" SCNu64, &pid, &thread, &txn) == 3 &&
		pid == getpid() && thread == (uint64_t)check->thread && txn == check->txn)
		check->found = true;
	return 0;
}

/*
 * Finds the keeper's slot in lock.mdb by its content: the number of its transaction, its process,
 * its thread. A starting writer must set it to an older transaction. LMDB's interface only lists
 * slots, and its list must show the change: if not, this LMDB has another table. The file is mapped
 * once more: LMDB does not tell where it has its own map.
 */
static int mapping_find_slot(struct mapping *map, uint64_t txn)
{
	struct keeper_check check = {.thread = pthread_self(), .txn = 1};
	volatile uint64_t *slot = NULL;
	struct stat st;

	if (fstat(map->lock_fd, &st) < 0)
		return err_set(-errno, "'%s/lock.mdb'", map->path);
	void *table =
		mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, map->lock_fd, 0);
	if (table == MAP_FAILED)
		return err_set(-errno, "mapping '%s/lock.mdb'", map->path);
	map->lock_table = table;
	map->lock_bytes = (size_t)st.st_size;
	volatile uint64_t *words = table;
	for (size_t i = 0; i + 2 < map->lock_bytes / sizeof(*words); i++)
		if (words[i] == txn && (pid_t)(uint32_t)words[i + 1] == getpid() &&
			words[i + 2] == (uint64_t)pthread_self())
			slot = &words[i];
	if (slot) {
		*slot = check.txn;
		(void)mdb_reader_list(map->mdb, keeper_line, &check); /* its result is ours: 0 */
		*slot = txn;
	}
	if (!check.found)
		return err_say(ERR_UNSUPPORTED,
			"'%s/lock.mdb': the table of readers of %s is not the one that is known: "
			"use LMDB 0.9",
			map->path, mdb_version(NULL, NULL, NULL));
	map->slot = slot;
	return 0;
}

static int mapping_remember_places(struct mapping *map, const struct pin_places *places)
{
	map->places = malloc(sizeof(*map->places));
	if (!map->places)
		return err_set(-ENOMEM, "opening '%s'", map->path);
	*map->places = *places;
	return 0;
}

/* Opens the places of pin files, and publishes their identities. */
static int mapping_find_places(struct mapping *map, const struct pin_places *places)
{
	struct pin_place_id ids[PIN_PLACES];
	struct pin_page *page = map->own_page;
	int r = mapping_remember_places(map, places);

	map->is_blind = true; /* until it has looked */
	if (r == 0)
		r = pin_scan_open(page->inode, places, &map->scan);
	if (r < 0)
		return r;
	pin_scan_identify(map->scan, ids);
	for (int i = 0; i < PIN_PLACES; i++) {
		__atomic_store_n(&page->scanned[i].inode, 0, __ATOMIC_SEQ_CST);
		__atomic_store_n(&page->scanned[i].device, ids[i].device, __ATOMIC_SEQ_CST);
		__atomic_store_n(&page->scanned[i].inode, ids[i].inode, __ATOMIC_SEQ_CST);
	}
	return 0;
}

int mapping_keep(struct mapping *map, const struct pin_places *places, unsigned mode)
{
	uint64_t newest = mapping_last_txn(map);
	struct stat st;

	if (fstat(mapping_fd(map), &st) < 0)
		return err_set(-errno, "'%s/data.mdb'", map->path);
	int r = pin_page_open_write(
		map->path, st.st_ino, newest, mode, &map->own_page, &map->own_page_fd);
	if (r < 0)
		return r;
	int rc = mdb_txn_begin(map->mdb, NULL, MDB_RDONLY, &map->keeper);
	if (rc)
		return mapping_failed(map, rc, "opening");
	r = mapping_find_slot(map, mdb_txn_id(map->keeper));
	if (r < 0)
		return r;
	struct pin_page *page = map->own_page;
	uint64_t floor = __atomic_load_n(&page->floor, __ATOMIC_SEQ_CST);
	/* A new page has 0: it keeps everything until the pins have been read. */
	map->ours = newest;
	map->floor = floor < newest ? floor : newest;
	*map->slot = map->floor;
	if (__atomic_load_n(&page->began, __ATOMIC_SEQ_CST) <
		newest) /* never back: a reader may be copying the page begun */
		__atomic_store_n(&page->began, newest, __ATOMIC_SEQ_CST);
	__atomic_store_n(&page->committed, newest, __ATOMIC_SEQ_CST);
	r = places ? mapping_find_places(map, places) : 0;
	/* After the places: readers of the new epoch see them. */
	__atomic_add_fetch(&page->epoch, 1, __ATOMIC_SEQ_CST);
	return r;
}

void mapping_release_pins(struct mapping *map)
{
	const struct pin_page *page = map->own_page;

	pin_page_close(&page);
	map->own_page = NULL;
	cleanup_fd(&map->own_page_fd);
	pin_scan_close(&map->scan);
	if (map->lock_table)
		(void)munmap(map->lock_table, map->lock_bytes); /* fails for no mapping of ours */
	map->lock_table = NULL;
	cleanup_fd(&map->lock_fd);
	pins_close(&map->pins);
	pin_page_close(&map->page);
	free(map->places);
}

static bool mapping_is_advance_due(const struct mapping *map, uint64_t now)
{
	uint64_t end = mapping_state_end(map);

	if (map->scan_commits >= MANY_COMMITS || end > map->map_bytes / 2)
		return true;
	return (map->scan_commits >= FEW_COMMITS || end >= map->scan_end + GROWN_BYTES) &&
	       now >= map->scan_due_ns;
}

/* Checks for a reader without room for a pin file: it holds all states. Lowers *RET_LEAST then. */
static int mapping_scan_mark(struct mapping *map, uint64_t *ret_least)
{
	uint64_t now = proc_monotonic_ns();
	bool held;
	int r = pin_scan_is_all_held(map->own_page_fd, &held);

	if (r < 0)
		return r;
	if (!held) {
		map->held_ns = 0;
		return 0;
	}
	*ret_least = map->floor;
	if (!map->held_ns)
		map->held_ns = now;
	return now - map->held_ns < HELD_NS
		       ? 0
		       : err_say(ERR_LOCKED,
				 "a process has kept all states of '%s' for a minute or more, as a "
				 "reader does that finds no room for a pin file: no page is reused "
				 "until it ends ('fuser -v %s/" PIN_PAGE_FILE "' names it)",
				 map->path, shell_word(map->path, (char[SHELL_WORD_SIZE]){0}));
}

/* Finds the least pin. Fails when it may not know all of them. */
static int mapping_scan(struct mapping *map, uint64_t most, uint64_t *ret_least)
{
	bool missed = false;

	if (!map->scan)
		return 0;
	int r = pin_scan_least(map->scan, map->floor, most, ret_least);
	if (r == 0)
		r = mapping_scan_mark(map, ret_least);
	if (r == 0 && map->is_blind)
		r = pin_scan_misses(map->scan, map->own_page_fd, &missed);
	if (r < 0)
		return r;
	map->is_blind = missed;
	return missed ? err_say(ERR_LOCKED,
				"a reader of '%s' has its pin file in a removed or unused "
				"directory: no page is reused until it takes another snapshot or "
				"ends ('fuser -v %s/" PIN_PAGE_FILE "' names it)",
				map->path, shell_word(map->path, (char[SHELL_WORD_SIZE]){0}))
		      : 0;
}

int mapping_advance(struct mapping *map, bool must)
{
	struct pin_page *page = map->own_page;

	uint64_t most = __atomic_load_n(&page->committed, __ATOMIC_SEQ_CST), least = most,
		 now = proc_monotonic_ns();
	map->scan_commits++;
	if (must && most <= map->floor) /* opens new files: others may remove them later */
		return mapping_scan(map, most, &least);
	if (most <= map->floor || (!must && !mapping_is_advance_due(map, now)))
		return 0;
	/* Dekker with the readers: first the new value, then a fence, then the pins
	 * (pin_page.h). */
	__atomic_store_n(&page->oldest, most, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	int r = mapping_scan(map, most, &least);
	if (r < 0) /* nothing is reused until the pins can be read */
		least = map->floor;
	if (least < most)
		__atomic_store_n(&page->oldest, least, __ATOMIC_SEQ_CST);
	__atomic_store_n(&page->floor, least, __ATOMIC_SEQ_CST);
	map->floor = least;
	__atomic_store_n(map->slot, least, __ATOMIC_SEQ_CST);
	uint64_t end = proc_monotonic_ns();
	map->scan_due_ns = end + (end - now) * SCAN_SHARE;
	map->scan_end = mapping_state_end(map);
	map->scan_commits = 0;
	return r;
}

int mapping_check_ours(const struct mapping *map)
{
	if (!map->own_page || mapping_last_txn(map) == map->ours)
		return 0;
	return err_say(ERR_MOVED,
		"another program has written to '%s/data.mdb' while it was in use", map->path);
}

int env_check_written(const struct env *env)
{
	CHECK_OBJ(env, ENV_MAGIC);
	return mapping_check_ours(env->map);
}

bool env_check_pin_page(const struct env *env, int directory_fd)
{
	CHECK_OBJ(env, ENV_MAGIC);
	const struct mapping *map = env->map;
	struct pin_place_id ids[PIN_PLACES] = {{0}};
	struct stat ours, there;

	if (fstat(map->own_page_fd, &ours) < 0 ||
		fstatat(directory_fd, PIN_PAGE_FILE, &there, AT_SYMLINK_NOFOLLOW) < 0 ||
		ours.st_dev != there.st_dev || ours.st_ino != there.st_ino ||
		ours.st_size < (off_t)PIN_PAGE_BYTES ||
		!pin_page_is_usable(map->own_page, map->inode, map->ours))
		return false;
	if (map->scan)
		pin_scan_identify(map->scan, ids);
	for (int i = 0; i < PIN_PLACES; i++)
		if (ids[i].inode && !pin_page_scans(map->own_page, ids[i]))
			return false;
	return true;
}

int mapping_commit(struct mapping *map, MDB_txn *txn, bool has_written)
{
	struct pin_page *page = map->own_page;

	errno = 0;
	int rc = has_written ? mapping_write_error(mapping_mark_commit(map, txn)) : 0;
	rc = rc ? rc : map->lost;
	if (rc) {
		mdb_txn_abort(txn);
		return rc;
	}
	uint64_t id = mdb_txn_id(txn);
	__atomic_store_n(&page->began, id, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST); /* before all stores to the meta page */
	map->is_committing = true;
	rc = mapping_write_error(mdb_txn_commit(txn));
	map->is_committing = false;
	map->ours = mapping_last_txn(map); /* an empty transaction gets no txn id */
	__atomic_store_n(&page->committed, map->ours, __ATOMIC_RELEASE);
	return rc;
}

/* ---- the reader --------------------------------------------------------- */

int mapping_watch(struct mapping *map, const struct pin_places *places)
{
	struct stat st;

	if (fstat(mapping_fd(map), &st) < 0)
		return err_set(-errno, "'%s/data.mdb'", map->path);
	int r = pin_page_open_read(map->path, st.st_ino, &map->page);
	if (r < 0)
		return r;
	if (r == NOT_FOUND || !places)
		return err_say(ERR_LOCKED,
			"'%s' can't be read while its file '" PIN_PAGE_FILE
			"' is missing or is that of another copy: start its daemons, which make it",
			map->path);
	r = mapping_remember_places(map, places);
	return r < 0 ? r : pins_open(map->path, st.st_ino, places, &map->pins);
}

/* Says that the file must be opened again. LMDB's code. */
static int __attribute__((cold)) mapping_outdate(struct mapping *map)
{
	__atomic_store_n(&map->is_outdated, true, __ATOMIC_RELAXED);
	return MAPPING_REPLACED;
}

/* Returns whether another writer has made another page, because this one was removed. Each page
 * begins at a random epoch. */
static bool mapping_has_other_page(const struct mapping *map)
{
	const struct pin_page *page = NULL;
	int r = pin_page_open_read(map->path, map->page->inode, &page);
	bool other = r == FOUND && __atomic_load_n(&page->epoch, __ATOMIC_SEQ_CST) !=
					   __atomic_load_n(&map->page->epoch, __ATOMIC_SEQ_CST);

	err_ignore(r < 0 ? r : 0, "the page in use is read on");
	pin_page_close(&page);
	return other;
}

/* After many tries in vain, the first one at SINCE: waits. Returns: 0; MAPPING_REPLACED; EBUSY: it
 * takes so long that page and data can't belong together. */
static int __attribute__((cold)) mapping_wait_turn(struct mapping *map, uint64_t *since)
{
	const struct timespec pause = {0, 1000000};
	uint64_t now = proc_monotonic_ns();

	*since = *since ? *since : now;
	if (mapping_has_other_page(map))
		return mapping_outdate(map);
	if (now - *since > STALLED_NS) /* no writer is so late: only another page can help */
		(void)nanosleep(&pause, NULL);
	else
		(void)sched_yield(); /* has no error */
	return now - *since > LOST_NS ? EBUSY : 0;
}

/* Waits for the writer to publish its commit TXN, or until it must be stopped or dead: its stores
 * are visible then. Returns: 0; MAPPING_REPLACED. */
static int __attribute__((cold)) mapping_wait_published(struct mapping *map, uint64_t txn)
{
	uint64_t began = proc_monotonic_ns();

	while (__atomic_load_n(&map->page->committed, __ATOMIC_SEQ_CST) < txn) {
		if (proc_monotonic_ns() - began > STALLED_NS) {
			if (mapping_has_other_page(map))
				return mapping_outdate(map);
			__atomic_store_n(&map->unpublished, txn, __ATOMIC_RELAXED);
			return 0;
		}
		(void)sched_yield(); /* has no error */
	}
	return 0;
}

static int mapping_begin_pinned(struct mapping *map, struct pin *pin, MDB_txn **txn)
{
	const struct pin_page *page = map->page;
	uint64_t since = 0;

	for (unsigned spins = 0;; spins++) {
		int lost = spins > SPINS ? mapping_wait_turn(map, &since) : 0;
		if (lost)
			return lost;
		uint64_t committed = __atomic_load_n(&page->committed, __ATOMIC_ACQUIRE);
		if (__builtin_expect(pin_set(pin, committed ? committed : 1), 0)) {
			pins_drop(map->pins, pin); /* another one instead */
			int r = mapping_pin(map, pin);
			err_ignore(r, "the caller reports the full disk");
			if (r < 0)
				return ENOSPC;
			continue;
		}
		__atomic_thread_fence(__ATOMIC_SEQ_CST); /* Dekker with mapping_advance() */
		uint64_t oldest = __atomic_load_n(&page->oldest, __ATOMIC_RELAXED);
		if (__builtin_expect(oldest > committed, 0)) {
			if (oldest == PIN_CLOSED)
				return MAPPING_REPLACED;
			continue;
		}
		int rc =
			*txn ? mdb_txn_renew(*txn) : mdb_txn_begin(map->mdb, NULL, MDB_RDONLY, txn);
		__atomic_thread_fence(
			__ATOMIC_ACQUIRE); /* LMDB's reads of the meta page come before */
		uint64_t began = __atomic_load_n(&page->began, __ATOMIC_RELAXED);
		if (__builtin_expect(rc != 0, 0)) {
			if (rc == MDB_MAP_RESIZED && began != committed && spins < SPINS)
				continue; /* perhaps of a half-written meta page */
			return rc == MDB_MAP_RESIZED ? mapping_outdate(map) : rc;
		}
		uint64_t id = mdb_txn_id(*txn);
		if (__builtin_expect(began <= id + 1 && id <= committed, 1))
			return 0;
		bool published = id <= __atomic_load_n(&page->committed, __ATOMIC_ACQUIRE);
		if (began <= id + 1 &&
			(published || __atomic_load_n(&map->unpublished, __ATOMIC_RELAXED) == id))
			return 0;
		mdb_txn_reset(*txn);
		lost = published ? 0 : mapping_wait_published(map, id);
		if (lost)
			return lost;
	}
}

int mapping_begin_read(struct mapping *map, struct pin *pin, MDB_txn **txn)
{
	if (!pin->file)
		return *txn ? mdb_txn_renew(*txn) : mdb_txn_begin(map->mdb, NULL, MDB_RDONLY, txn);
	return mapping_begin_pinned(map, pin, txn);
}

int mapping_pin(struct mapping *map, struct pin *pin)
{
	if (!map->pins)
		return 0;
	uint64_t epoch = __atomic_load_n(&map->page->epoch, __ATOMIC_RELAXED);
	return __builtin_expect(pin->file && pin->epoch == epoch, 1)
		       ? 0
		       : pins_take(map->pins, map->page, pin);
}
