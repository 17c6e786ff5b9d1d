/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The env group's internal header, and the only file to include lmdb.h. env.c opens and closes
 * environments, env_txn.c runs transactions on them, env_entry.c reads and writes entries,
 * env_marker.c finds damage of the meta pages, env_tree.c pages of older states in the newest one,
 * env_path.c searches without LMDB, env_place.c finds values by their place in the file,
 * env_fault.c reserves blocks, makes the file longer and survives a full disk, env_pins.c keeps
 * pages in use from reuse, env_error.c converts LMDB's codes and outlives its assertions in reads.
 */
#ifndef STORE_ENV_ENV_INTERNAL_H
#define STORE_ENV_ENV_INTERNAL_H

#include <errno.h>
#include <lmdb.h>
#include <sys/types.h>

#include "common/err.h"
#include "store/env/datafile.h"
#include "store/env/env.h"
#include "store/env/forks.h"
#include "store/pins/pin_file.h"
#include "store/pins/pin_page.h"
#include "store/pins/pin_scan.h"

#define ENV_MAGIC    0x6b1e0e01u
#define TXN_MAGIC    0x6b1e0e02u
#define CURSOR_MAGIC 0x6b1e0e03u

/* LMDB's environment: one for each file and process, whatever the number of handles. Closing a
 * second one would drop the file locks of the first (docs/architecture.md, LMDB). */
struct mapping {
	struct mapping *next;
	dev_t device;
	ino_t inode;
	unsigned handles;
	enum env_mode mode;
	bool has_writer;
	bool writemap; /* pages are written in place */
	/* WRITEMAP, an errno: a part of the write transaction is in memory, for want of blocks.
	 * Atomic, relaxed */
	int lost;
	bool is_committing; /* then nothing may be put into memory */
	unsigned forks; /* forks_count() when it was opened; another number now: this is a child */
	MDB_env *mdb;
	MDB_dbi databases[ENV_DATABASES_MAX], main_db; /* MAIN_DB: the table of them */
	size_t n_databases;
	const char *const *database_names;
	const uint8_t *address;
	uint64_t map_bytes;
	bool random; /* env_expect_random() */
	uint32_t page_size;
	/* the most bytes written by opening, or by the end of a commit, beside the entries */
	uint64_t open_bytes;
	/* bytes of the file written; never gets less. Atomic, relaxed */
	uint64_t file_bytes;
	struct datafile_blocks blocks; /* the writer's */
	uint64_t prepared;             /* pages up to there were touched ahead; WRITEMAP only */
	/* A reader has these (ENV_READ): */
	const struct pin_page *page;
	struct pins *pins;
	/* a writer has made the map larger, or another page: the file must be opened again, and
	 * no transaction begins here any more. Atomic, relaxed */
	bool is_outdated;
	/* a commit left unpublished by its writer for so long that it is visible. Atomic */
	uint64_t unpublished;
	struct pin_places *places;
	/* And the writer these: */
	struct pin_page *own_page;
	struct pin_scan *scan;
	/* readers from before its start may have pin files out of its sight: it reuses nothing */
	bool is_blind;
	MDB_txn *keeper;  /* has the slot in LMDB's table, with FLOOR */
	int lock_fd;      /* of lock.mdb: open as long as LMDB has the file open */
	void *lock_table; /* a map of lock.mdb, with the slot */
	size_t lock_bytes;
	volatile uint64_t *slot;
	int own_page_fd; /* of OWN_PAGE */
	/* the newest transaction after this writer's last commit, or when it opened the
		 * file */
	uint64_t ours;
	uint64_t floor, scan_due_ns, scan_end;
	/* since then a reader without a pin file has held everything; 0: none */
	uint64_t held_ns;
	unsigned scan_commits; /* since the last scan */
	char path[];
};

struct env {
	uint32_t magic;
	enum env_mode mode;
	struct mapping *map;
};

/* The root of a database's tree, and the number of its levels (env_path.c). */
struct tree_root {
	uint64_t page;
	uint16_t depth;
};

#define TREE_DEPTH_MOST 32u /* as LMDB's */

/* The way from the root of a tree to a row. */
struct tree_way {
	unsigned depth; /* the levels of the tree; 0: it is empty */
	bool is_lost;   /* the last step met damage */
	struct tree_step {
		const uint8_t *page;
		uint16_t row, n; /* row, of N rows */
	} steps[TREE_DEPTH_MOST];
};

#define TXN_KNOWN 8u

struct txn {
	uint32_t magic;
	int error; /* the first one of a write transaction, returned by all later calls */
	bool is_write;
	bool has_written;
	bool is_running;
	struct mapping *map;
	MDB_txn *mdb;
	struct pin pin;
	unsigned roots_known; /* a bit for each database; in a read transaction */
	struct tree_root roots[ENV_DATABASES_MAX];
	struct tree_way found; /* by txn_find(), in database found_db; UINT_MAX: nothing */
	unsigned found_db;
	uint64_t pages;               /* of its state, and perhaps some more */
	const void *whole[TXN_KNOWN]; /* leaves found whole lately */
	struct cursor *cursors; /* of a write transaction: LMDB frees its side of them at the end */
	uint64_t kept;          /* WRITEMAP: bytes to keep free (txn_keep_free()) */
	/* WRITEMAP: bytes of blocks reserved beyond the last page of its beginning */
	uint64_t room;
	struct err_kept why; /* the sentence of error */
};

/* ---- env.c -------------------------------------------------------------- */

int mapping_fd(const struct mapping *map);
int mapping_file_size(const struct mapping *map, uint64_t *ret_size);
/* Returns where the newest state ends in the file, in bytes; it never gets less. */
uint64_t mapping_state_end(const struct mapping *map);
/* Makes the writer's file as long as its newest state: a shorter one would count as cut.
 * ERR_CORRUPT: more than MISSING_MAX pages are missing: the file was cut. */
int mapping_fit_file(struct mapping *map, uint64_t missing_max);

/* ---- env_txn.c ---------------------------------------------------------- */

/* Reports LMDB's RC, and remembers it if it is a write transaction's first error. Returns our
 * code. */
int txn_failed(struct txn *txn, int rc, const char *what) __attribute__((cold));
/* LMDB reports a short write on a full disk as EIO. A call that failed with EIO has set errno. */
static inline int mapping_write_error(int rc)
{
	return rc == EIO && errno != EIO ? ENOSPC : rc;
}
/* Reports the result of an LMDB write; a write into memory in place of a full disk failed. 0 or our
 * code. */
static inline int txn_wrote(struct txn *txn, int rc, const char *what)
{
	int lost = __atomic_load_n(&txn->map->lost, __ATOMIC_RELAXED);

	return __builtin_expect(rc || lost, 0)
		       ? txn_failed(txn, rc ? mapping_write_error(rc) : lost, what)
		       : 0;
}
/* Returns a write transaction's first error, with its sentence. */
int txn_first_error(const struct txn *txn) __attribute__((cold));
void txn_require_write(const struct txn *txn);

/* ---- env_pins.c --------------------------------------------------------- */

/* The writer's side. Takes the slot and the page, before the first write; PLACES NULL: nobody else
 * reads. */
int mapping_keep(struct mapping *map, const struct pin_places *places, unsigned mode);
/* Releases what mapping_keep() and mapping_watch() took, after LMDB has closed the environment. */
void mapping_release_pins(struct mapping *map);
/* Moves the floor forward if due, before a write transaction, or if it MUST. For the writer's
 * thread. Returns: 0; an error: not all pins could be read, so the floor stays. */
int mapping_advance(struct mapping *map, bool must);
/* Commits and publishes. HAS_WRITTEN: TXN becomes a state and gets a marker. LMDB's code. */
int mapping_commit(struct mapping *map, MDB_txn *txn, bool has_written);

/* The reader's side. */
int mapping_watch(struct mapping *map, const struct pin_places *places);
/* Makes PIN a slot scanned by the writer. Our code. */
int mapping_pin(struct mapping *map, struct pin *pin);
/* beside LMDB's codes: a copy has taken the file's place, or it must be opened again */
#define MAPPING_REPLACED ESTALE

/* Begins a read transaction, or renews *TXN, under PIN. LMDB's code, or MAPPING_REPLACED. */
int mapping_begin_read(struct mapping *map, struct pin *pin, MDB_txn **txn);

/* ---- env_marker.c --------------------------------------------------------- */

/* Writes the marker of TXN, after everything else. LMDB's code. */
int mapping_mark_commit(const struct mapping *map, MDB_txn *txn);
/* The tree of the list of free pages. */
struct free_list {
	uint64_t root;
	unsigned depth; /* 0: the list is empty */
};

/* Returns the list of free pages of state TXN; false: a writer has made a newer state. The map's
 * address is known. */
bool mapping_free_list(const struct mapping *map, uint64_t txn, struct free_list *ret_list);
/* Checks the meta pages' sizes before LMDB opens the file, and WITH_MARKERS their markers. Returns:
 * 0, also without a file; ERR_CORRUPT; errors of reading. */
int mapping_check_metas(const struct mapping *map, bool with_markers);
/* For a writer, before LMDB opens the file: lowers the size of the map in both meta pages to BYTES,
 * or to the file's content. Readers take this size as theirs, and LMDB itself only raises it. */
int mapping_lower_size(const struct mapping *map, uint64_t bytes);

/* ---- env_tree.c --------------------------------------------------------- */

/* Checks the pages of the databases' trees, as of TXN: none is free or in use elsewhere; beside a
 * writer with a checked file only if it MUST. Returns: 0; ERR_CORRUPT; errors of reading. */
int mapping_check_trees(struct mapping *map, MDB_txn *txn, bool must);

/* ---- env_path.c --------------------------------------------------------- */

/* Prepares the searches of a read transaction, after LMDB's has begun. */
void txn_begin_paths(struct txn *txn);
/* Finds the last row not above KEY, or only KEY's own if EXACT. FOUND; END; ERR_CORRUPT. In a read
 * transaction, as the following. */
int txn_find(struct txn *txn, unsigned db, struct bytes key, bool exact, struct bytes *ret_key,
	struct bytes *ret_value);
/* Returns whether its rows fill LEAF, a page in the map (mapping_leaf_is_whole()); it remembers
 * some leaves. */
bool txn_leaf_is_whole(struct txn *txn, const uint8_t *leaf);
/* Goes to the first row of database DB not below KEY; NULL: to the last one. FOUND; END;
 * ERR_CORRUPT. */
int txn_way_seek(struct txn *txn, unsigned db, struct tree_way *way, const struct bytes *key,
	struct bytes *ret_key, struct bytes *ret_value);
/* Goes to the next row of a way begun by txn_way_seek(), or BACK to the one before. FOUND; END:
 * there is none, the way is as before; ERR_CORRUPT, also each time after one. */
int txn_way_step(struct txn *txn, struct tree_way *way, bool back, struct bytes *ret_key,
	struct bytes *ret_value);

/* ---- env_entry.c -------------------------------------------------------- */

/* Makes cursors harmless after their write transaction: LMDB frees its side of them with it. */
void txn_forget_cursors(struct txn *txn);

/* ---- env_place.c -------------------------------------------------------- */

/* Finds LMDB's map of the file in TXN. LMDB's code. */
int mapping_find_address(struct mapping *map, MDB_txn *txn);
/* Returns whether the rows of the leaf fill its page, as LMDB keeps them: one after the other up
 * to its end. The page may hold anything. */
bool mapping_leaf_is_whole(const uint8_t *page, size_t size);

/* ---- env_fault.c -------------------------------------------------------- */

/* Reserves blocks for the pages of a commit. */
int mapping_allocate_commit(struct mapping *map, const struct txn *txn);
/* Counts the pages in use. OVERFLOW: those of large values as well. */
int mapping_count_pages(
	const struct mapping *map, MDB_txn *txn, bool with_overflow, uint64_t *ret_pages);
/* Opens LMDB's environment, without making the file as long as the map. LMDB's code. */
int mapping_open_short(struct mapping *map, unsigned flags, unsigned mode);
/* Lets the handler of SIGBUS make the file of MAP longer; the map's address is known.
 * ERR_TOO_LARGE. */
int mapping_watch_faults(struct mapping *map);
void mapping_unwatch_faults(const struct mapping *map);
/* Returns: 0; ERR_MOVED: another program has written over the file since the last commit of this
 * process, its writer. */
int mapping_check_ours(const struct mapping *map);
/* Gives back blocks unused by the last write transaction, and after a full disk the map's
 * memory. */
void mapping_end_write(struct mapping *map);

/* ---- env_error.c -------------------------------------------------------- */

/* Sets the sentence for LMDB's RC, while doing WHAT ("reading"). Returns our code: -ENOSPC or
 * -EDQUOT for a full disk, ERR_MAP_FULL for a full map, -ENOMEM for no memory. */
int mapping_failed(const struct mapping *map, int rc, const char *what) __attribute__((cold));
/* As mapping_failed() in a process forked after MAP was opened. */
int mapping_forked(const struct mapping *map) __attribute__((cold));

/* Reads the row NAME of the table of databases in a read transaction. LMDB's code; MDB_CORRUPTED
 * instead of a failed assertion. */
int guarded_get(const struct mapping *map, MDB_txn *txn, const char *name, MDB_val *ret_value);
/* Opens an existing database; also in a write transaction without changes, to be aborted then. */
int guarded_open(MDB_txn *txn, const char *name, MDB_dbi *ret_db);
/* Does not return if one of them is running in this thread. */
void guard_leave(void);

/* Returns whether pages of the file are taken away: earlier reads may be zeros. */
static inline bool mapping_is_given_up(const struct mapping *map)
{
	const struct pin_page *page = __atomic_load_n(&map->page, __ATOMIC_RELAXED);

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return page && __builtin_expect(__atomic_load_n(&page->given_up, __ATOMIC_RELAXED) != 0, 0);
}

static inline bool mapping_is_forked(const struct mapping *map)
{
	return map->forks != forks_count();
}

#endif
