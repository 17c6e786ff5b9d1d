/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LMDB environments: opening, transactions with a sticky error, cursors, file offsets of values.
 * The env group (env_internal.h) alone knows LMDB, and converts its codes to those of
 * common/err.def.
 *
 *	r = txn_begin_write(env, &txn);
 *	... txn_put(), txn_del(), cursor_put(): results may be left unchecked ...
 *	r = txn_commit(&txn);
 *
 * A write transaction keeps its first error: later calls do nothing and return it, txn_commit()
 * aborts and returns it. A series of writes needs one check, at its end. Values point into the map:
 * unaligned, valid until the transaction is reset or ended, in a write transaction until its next
 * write.
 *
 * A process has one LMDB environment a file: opening the file again for reading gives another
 * handle on it, unless it is outdated. Closing a second environment would drop the writer's file
 * locks. In a child of fork(2) every call returns ERR_FORKED. One thread at a time uses a
 * transaction.
 */
#ifndef STORE_ENV_ENV_H
#define STORE_ENV_ENV_H

#include "common/bytes.h"
#include "store/pins/pin_scan.h"

#define ENV_DATABASES_MAX 8
#define ENV_KEY_MAX       511

struct env;
struct txn;
struct cursor;

enum env_mode {
	ENV_READ,  /* each transaction under a pin (pin_page.h) */
	ENV_WRITE, /* the one writer; creates the files */
	ENV_COPY,  /* without pins: a copy without a writer, or without room for pins */
};

struct env_options {
	enum env_mode mode;
	const char *const *databases; /* names; a database is its place in this list */
	size_t n_databases;
	uint64_t map_bytes; /* writers; readers use the size in the file */
	bool writemap;      /* write in place, if the file system keeps reserved blocks */
	bool durable;   /* fdatasync at each commit; else commits survive process crashes only */
	bool unchecked; /* open without env_check() */
	unsigned file_mode; /* of new files */
	/* of pin files; NULL: a writer without readers */
	const struct pin_places *places;
};

/* ERR_CORRUPT, ERR_FORMAT (the file of another LMDB version), -EACCES, ... */
int env_open(const char *directory, const struct env_options *options, struct env **ret_env);
void env_close(struct env **env);
/* Tells the kernel that reads will be all over the file: it then reads a missing page alone,
 * without neighbours (read_ahead_kb), which would evict needed pages from limited memory. Not for
 * writers. */
void env_expect_random(struct env *env, bool random);
/* Returns true if no transaction can begin any more: the daemons have made the map larger, or the
 * pin page again, so the file must be opened again. The opened one is read on. */
bool env_is_outdated(const struct env *env);
/* Returns true if the next transactions will be pinned. */
bool env_is_pinned(const struct env *env);

struct env_info {
	uint64_t map_bytes;
	uint64_t used_bytes; /* pages of the newest state, without free ones */
	uint64_t file_bytes; /* up to the highest page ever used */
	uint64_t last_txn;
};
int env_info(struct env *env, struct env_info *ret_info);
/* The same for the state of TXN, also after a copy has replaced the file. */
int txn_info(struct txn *txn, struct env_info *ret_info);

/* For the writer's thread, between transactions. Returns: 0; ERR_MOVED: another program, such as
 * cp, has written over data.mdb. */
int env_check_written(const struct env *env);
/* For the writer's thread, between transactions. Returns true if DIRECTORY_FD, the environment's
 * directory, still has the mapped pin page, in good order. */
bool env_check_pin_page(const struct env *env, int directory_fd);

/* Returns the page size of the machine of the file's origin, 4 to 32 KiB. */
size_t env_page_size(const struct env *env);

/* Moves the writer's floor forward to the oldest pin, to free earlier pages for reuse, and removes
 * dead processes' pin files. For the writer's thread, once a second, between transactions. Returns:
 * the number of removed files; an error: pin files can't be read, and no page is reused. */
int env_clean_pins(struct env *env);

/* Touches the pages after the newest state for the next transactions. For an idle writer, between
 * transactions. Only saves time; does nothing without WRITEMAP or before Linux 5.14. */
void env_prepare(struct env *env);

/* Calls FN for each other reading process, until it returns non-zero. */
int env_each_reader(struct env *env, pin_scan_fn *fn, void *arg);
/* Calls FN for each process with a replaced file open (`kinf compact`): it holds its space. A and B
 * are the store's two environments now. */
int env_each_replaced_reader(struct env *a, struct env *b, pin_scan_fn *fn, void *arg);

/* Checks the meta pages, and the newest state's trees for foreign pages; LMDB would silently read
 * an older state. Opening does it once. Returns: 0; ERR_CORRUPT. */
int env_check(struct env *env);

/* Returns true if this process is the file's writer: its transactions have no pins. */
bool env_is_written_here(uint64_t device, uint64_t inode);

/* Writes everything to the disk. Reports errors of earlier writes; after -EIO the generation is
 * lost. */
int env_sync(struct env *env);

int txn_begin_write(struct env *env, struct txn **ret_txn);
int txn_begin_read(struct env *env, struct txn **ret_txn);
/* Frees the transaction whatever the result. */
int txn_commit(struct txn **txn);
void txn_abort(struct txn **txn);
/* Read transactions: release the snapshot, take a new one; the slot stays. */
void txn_reset(struct txn *txn);
int txn_renew(struct txn *txn);
uint64_t txn_id(const struct txn *txn);
/* Returns true if the pages of a read transaction are kept from reuse; false for a copy. */
bool txn_is_pinned(const struct txn *txn);
/* Returns false if the program has closed the descriptors of the pin: the values may be wrong.
 * Costs a system call. */
bool txn_keeps_pin(struct txn *txn);
/* Returns true if the file was replaced and then held for too long (replaced.h): the values may be
 * wrong, and later calls return ERR_SNAPSHOT_EXPIRED. */
bool txn_is_given_up(const struct txn *txn);
/* Returns R, the result of a read in TXN; ERR_SNAPSHOT_EXPIRED if R is an error and the file was
 * given up. */
int txn_result(const struct txn *txn, int r);

enum txn_put_flags {
	TXN_APPEND = 1u << 0, /* the key is the largest yet; else ERR_CORRUPT */
};

int txn_get(struct txn *txn, unsigned db, struct bytes key,
	struct bytes *ret_value); /* FOUND, NOT_FOUND */
/* Gets the last row with a key <= KEY. FOUND, END. */
int txn_floor(struct txn *txn, unsigned db, struct bytes key, struct bytes *ret_key,
	struct bytes *ret_value);
/* Gets the row after the last txn_floor()'s, without a cursor. Returns: FOUND; NOT_FOUND: it takes
 * a cursor; ERR_CORRUPT: its rows do not fill the page, so a changed number hides others. */
int txn_after(struct txn *txn, unsigned db, struct bytes *ret_key, struct bytes *ret_value);
int txn_put(struct txn *txn, unsigned db, struct bytes key, struct bytes value, unsigned flags);
/* Reserves SIZE bytes; the caller writes the value there before the next call on TXN. */
int txn_reserve(struct txn *txn, unsigned db, struct bytes key, size_t size, unsigned flags,
	void **ret_place);
int txn_del(struct txn *txn, unsigned db, struct bytes key); /* FOUND, NOT_FOUND */
/* Checks at the beginning of a write transaction that map and disk have room for BYTES more (at
 * most an eighth of the map): ERR_MAP_FULL, -ENOSPC, -EDQUOT. Transactions adding entries begin
 * with it, to leave room for deletions: LMDB copies pages to delete from them. */
int txn_keep_free(struct txn *txn, uint64_t bytes);
/* WRITEMAP: reserves blocks for BYTES more, the most of the caller's next step. After -ENOSPC or
 * -EDQUOT the transaction is still good, and can be committed. A write without a reserved block on
 * a full disk fails all of it. Does nothing without WRITEMAP: LMDB itself reports a full disk. */
int txn_allocate(struct txn *txn, uint64_t bytes);
/* Reserves blocks in the same way for pages to be copied by LMDB for deletions and replacements:
 * each once at most, and never overflow pages. */
int txn_allocate_copies(struct txn *txn, uint64_t bytes);

int cursor_open(struct txn *txn, unsigned db, struct cursor **ret_cursor);
void cursor_close(struct cursor **cursor);
/* Moves to the first key >= KEY. FOUND, END. */
int cursor_seek(
	struct cursor *cursor, struct bytes key, struct bytes *ret_key, struct bytes *ret_value);
/* Moves to the next row, the first time to the first one. FOUND, END. */
int cursor_next(struct cursor *cursor, struct bytes *ret_key, struct bytes *ret_value);
/* Moves to the row before the one of a search that found one. FOUND, END. */
int cursor_prev(struct cursor *cursor, struct bytes *ret_key, struct bytes *ret_value);
int cursor_last(struct cursor *cursor, struct bytes *ret_key, struct bytes *ret_value);
/* Moves to the last key <= KEY. FOUND, END. */
int cursor_floor(
	struct cursor *cursor, struct bytes key, struct bytes *ret_key, struct bytes *ret_value);
/* Returns false if the rows of KEY's page, the cursor's last one, do not fill it: a changed number
 * hides others. Examines each page once in a walk. Always true for a page changed by a transaction
 * without WRITEMAP. */
bool cursor_page_is_whole(struct cursor *cursor, struct bytes key);
/* Moves to the last key < KEY. FOUND, END. */
int cursor_before(
	struct cursor *cursor, struct bytes key, struct bytes *ret_key, struct bytes *ret_value);
/* Writes at the cursor if it stands on KEY, else as txn_put(): cheap for sorted runs. */
int cursor_put(struct cursor *cursor, struct bytes key, struct bytes value, unsigned flags);
/* Deletes the entry at the cursor; the next cursor_next() gives the entry after it. */
int cursor_del(struct cursor *cursor);

/*
 * File offsets of values. Only values in overflow pages (over about 2 kB) have one, because LMDB
 * never moves them while the entry lives: NOT_FOUND for smaller ones, and in a write transaction.
 * txn_at() returns the bytes at an offset, unchecked; NOT_FOUND outside of this transaction's
 * pages.
 */
int txn_place(struct txn *txn, struct bytes value, uint64_t *ret_offset);
int txn_at(struct txn *txn, uint64_t offset, size_t size, struct bytes *ret_value);
/* Lets the CPU prefetch the beginning of the value at OFFSET. */
void txn_prefetch(struct txn *txn, uint64_t offset);
/* Returns true after env_expect_random(). */
bool txn_reads_by_page(const struct txn *txn);

/* ---- reading ahead ------------------------------------------------------- */

/*
 * Announces the next values of a walk to the kernel. After env_expect_random() a walk over a store
 * outside memory waits for the disk at each value; announced ones are read at once. With the store
 * in memory it only costs time, so a walk asks first.
 *
 *	if (ahead_is_cold(&ahead)) {               now and then
 *		ahead_add(&ahead, txn, offset, size);  each value, in the order of the walk
 *		ahead_send(&ahead, txn);
 *	}
 */

/* The distance of announcements grows from the first to the most, in values: a short walk announces
 * little. */
#define AHEAD_FIRST 2
#define AHEAD_MOST  32

static inline unsigned ahead_grow(unsigned step)
{
	return step < AHEAD_MOST ? 2 * step : AHEAD_MOST;
}

/* Zeros are a good beginning. */
struct ahead {
	long faults;   /* major faults of this thread at the last count, and 1; 0: not counted */
	unsigned cold; /* further answers with yes */
	unsigned warm; /* answers with no in a row */
	uint64_t begin, end; /* the open piece; END 0: none */
};

/* Returns true if this thread has waited for the disk lately. After a while without waits most
 * calls answer without a count. */
bool ahead_is_cold(struct ahead *ahead);
/* Adds the value at OFFSET (txn_place()); neighbours become one piece. */
void ahead_add(struct ahead *ahead, struct txn *txn, uint64_t offset, uint64_t size);
/* Announces the last piece. */
void ahead_send(struct ahead *ahead, struct txn *txn);

#endif
