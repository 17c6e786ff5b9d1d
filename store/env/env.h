/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LMDB environments: opening, transactions with a sticky error, cursors, places of values in the
 * file. The env group (env_internal.h) is the only code that knows LMDB, and converts its codes
 * to those of common/err.def.
 *
 *	r = txn_begin_write(env, &txn);
 *	... txn_put(), txn_del(), cursor_put(): results may be left unchecked ...
 *	r = txn_commit(&txn);
 *
 * A write transaction remembers its first error: later calls on it return that error and do
 * nothing, and txn_commit() aborts and returns it. So a long series of writes needs one check,
 * at its end. Values that get and cursors return point into the map: they are unaligned, and
 * live until the transaction is reset or ended, in a write transaction until its next write.
 *
 * A process has one LMDB environment for each file: opening the file again for reading gives
 * another handle on the same environment, because closing a second environment would drop the
 * writer's file locks. In the child of a fork(2) every call returns ERR_FORKED. A transaction is
 * used by one thread at a time.
 */
#ifndef STORE_ENV_ENV_H
#define STORE_ENV_ENV_H

#include "common/bytes.h"

#define ENV_DATABASES_MAX 8
#define ENV_KEY_MAX       511

struct env;
struct pin_places;
struct txn;
struct cursor;

enum env_mode {
	ENV_READ,  /* each transaction under a pin (pin_page.h) */
	ENV_WRITE, /* the one writer; creates what is missing */
	ENV_COPY, /* without pins: a store in which none can be made, or a copy, which has no writer
		   */
};

struct env_options {
	enum env_mode mode;
	const char *const *databases; /* names; a database is its place in this list */
	size_t n_databases;
	uint64_t map_bytes; /* writers; readers use the size in the file */
	bool writemap;  /* pages are written in place, where the file system keeps what is reserved
			*/
	bool durable;   /* fdatasync at each commit; else commits survive process crashes only */
	bool unchecked; /* opens it without env_check() */
	unsigned file_mode; /* of new files */
	const struct pin_places
		*places; /* of pin files; NULL: a writer that nobody else reads beside */
};

/* ERR_CORRUPT, ERR_FORMAT (the file of another LMDB version), -EACCES, ... */
int env_open(const char *directory, const struct env_options *options, struct env **ret_env);
void env_close(struct env **env);
/* Tells the kernel whether the next reads of an environment that is no writer will be all over
 * the file. If so, a page that is not in memory is read alone; else with others around it (the
 * disk's read_ahead_kb), which push out what is needed where memory is limited. */
void env_expect_random(struct env *env, bool random);
/* Returns whether its next transactions will be pinned. */
bool env_is_pinned(const struct env *env);

struct env_info {
	uint64_t map_bytes;
	uint64_t used_bytes; /* pages of the newest state, without free ones */
	uint64_t file_bytes; /* up to the highest page ever used */
	uint64_t last_txn;
	uint32_t readers; /* slots in use */
};
int env_info(struct env *env, struct env_info *ret_info);
/* As env_info(), without .readers: in no time. */
int env_sizes(struct env *env, struct env_info *ret_info);
/* The same of the state that TXN shows, also when a copy has taken the file's place meanwhile. */
int txn_sizes(struct txn *txn, struct env_info *ret_info);

/* The writer's thread calls it between two transactions. Returns: 0; ERR_MOVED: another program
 * has written over data.mdb, for instance cp, which puts a copy into the place of a store that
 * is in use. */
int env_check_written(const struct env *env);
/* The writer's thread calls it between two transactions. Returns whether DIRECTORY_FD, the
 * environment's directory, has the pin page that is mapped, and readers can use it. Publishes
 * the newest state again. */
bool env_check_pin_page(struct env *env, int directory_fd);

/* Returns the size of its pages: that of the machine that made it, 4 to 32 KiB. */
size_t env_page_size(const struct env *env);

/* Moves the writer's floor forward, so that pages which no reader holds any more can be reused,
 * and removes the pin files of dead processes. The writer's thread calls it once a second,
 * between two transactions.
 * Returns: how many files it removed; an error when pin files can't be read, so that no page is
 * reused. */
int env_sweep_pins(struct env *env);

/* Touches the pages behind the newest state, where the next transactions write, so that these
 * need not wait for them. For a writer that is idle, between two transactions. Only saves time:
 * it does nothing without WRITEMAP or before Linux 5.14. */
void env_prepare(struct env *env);

struct env_reader {
	int32_t pid; /* 0: not known here (pin_scan.h) */
	uint32_t uid;
	char program[16]; /* as it calls itself; "" for this process's own */
	uint64_t txn;     /* what its oldest snapshot pins; 0: it holds none */
	uint32_t slots, snapshots;
	const char *
		/* its path, by which its process can be found; NULL: it has none. Valid during
		 * the call */
		pin_file;
};
typedef int env_reader_fn(void *arg, const struct env_reader *reader);
/* Calls FN for each process that reads the environment, and for each slot of this one, until it
 * returns non-zero. */
int env_each_reader(struct env *env, env_reader_fn *fn, void *arg);
/* Calls FN for each process that has a file open which a copy has replaced (env_copy.h, `kinf
 * compact`), and which keeps its space for that long. A and B are the store's two environments,
 * as they are now. */
int env_each_former_reader(struct env *a, struct env *b, env_reader_fn *fn, void *arg);

/* Finds out whether the meta pages, which say what the newest state is, are what their
 * transactions wrote, and whether its trees are of pages of that state: else LMDB would read an
 * older one. Opening does it once. Returns: 0; ERR_CORRUPT. */
int env_check(struct env *env);

/* Returns whether this process still has the file INODE of DEVICE open which it opened as its
 * writer: its own transactions have no pins. */
bool env_is_written_here(uint64_t device, uint64_t inode);

/* Writes everything to the disk. Errors of earlier writes appear here; after -EIO the generation
 * is lost. */
int env_sync(struct env *env);

int txn_begin_write(struct env *env, struct txn **ret_txn);
int txn_begin_read(struct env *env, struct txn **ret_txn);
/* Frees the transaction whatever the result. */
int txn_commit(struct txn **txn);
void txn_abort(struct txn **txn);
/* Read transactions: give the snapshot back and take a new one, keeping the slot. */
void txn_reset(struct txn *txn);
int txn_renew(struct txn *txn);
uint64_t txn_id(const struct txn *txn);
/* Returns whether the pages that a read transaction sees are kept from being reused: not of one
 * that reads a copy. */
bool txn_is_pinned(const struct txn *txn);
/* Returns false if it was pinned, and the program has closed the descriptors that libkinf holds
 * for that: what was read may be wrong. A system call. */
bool txn_keeps_pin(struct txn *txn);
/* Returns whether what a read transaction gave out before this call may be wrong, although it is
 * pinned: its file was replaced by a copy and was held for too long (former.h). Calls on it then
 * return ERR_SNAPSHOT_EXPIRED. */
bool txn_is_given_up(const struct txn *txn);
/* Returns R, the result of reading in TXN, or ERR_SNAPSHOT_EXPIRED if it is an error that may
 * come of that. */
int txn_result(const struct txn *txn, int r);

enum txn_put_flags {
	TXN_APPEND = 1u << 0, /* the key is the largest yet; else ERR_CORRUPT */
	TXN_NEW = 1u << 1,    /* the key must not exist; else ERR_CORRUPT */
};

int txn_get(struct txn *txn, unsigned db, struct bytes key,
	struct bytes *ret_value); /* FOUND, NOT_FOUND */
/* Gets the last row whose key is not above KEY. FOUND, END. */
int txn_floor(struct txn *txn, unsigned db, struct bytes key, struct bytes *ret_key,
	struct bytes *ret_value);
/* Returns whether txn_keep_sound() was called for VALUE lately in this read transaction. */
bool txn_is_sound(const struct txn *txn, struct bytes value);
/* Remembers that the row with VALUE has the right checksum. */
void txn_keep_sound(struct txn *txn, struct bytes value);
/* Gets the row after the one that txn_floor() has just given, without a cursor. Returns: FOUND;
 * NOT_FOUND: that takes one;
 * ERR_CORRUPT: the page is not filled by its rows, so a changed number in it hides others. */
int txn_after(struct txn *txn, unsigned db, struct bytes *ret_key, struct bytes *ret_value);
int txn_put(struct txn *txn, unsigned db, struct bytes key, struct bytes value, unsigned flags);
/* Gives SIZE bytes for the caller to write the value into, before the next call on TXN. */
int txn_reserve(struct txn *txn, unsigned db, struct bytes key, size_t size, unsigned flags,
	void **ret_place);
int txn_del(struct txn *txn, unsigned db, struct bytes key); /* FOUND, NOT_FOUND */
int txn_count(struct txn *txn, unsigned db, uint64_t *ret_entries);
/* Checks, in a write transaction that has written nothing yet, that map and disk have room for
 * BYTES more than are in use (at most an eighth of the map): ERR_MAP_FULL, -ENOSPC, -EDQUOT. A
 * transaction that adds entries begins with this check, so that room is left for one that
 * deletes: LMDB copies the pages from which it deletes. */
int txn_keep_free(struct txn *txn, uint64_t bytes);
/* WRITEMAP: reserves blocks for BYTES more than this transaction has reserved: the most that the
 * caller's next step can take. After -ENOSPC or -EDQUOT the transaction is still good, for
 * instance to be committed as it is. If the disk is found full by a write without a block, all
 * of the transaction has failed. Without WRITEMAP this does nothing: LMDB itself reports a full
 * disk. */
int txn_allocate(struct txn *txn, uint64_t bytes);
/* Reserves blocks in the same way for pages that LMDB copies because an entry in them is deleted
 * or replaced. LMDB copies a page at most once, and never the pages of large values (overflow
 * pages). */
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
/* Returns whether the page of KEY, which the cursor has just given, is filled by its rows. If
 * not, a changed number in it hides others, and a search or a walk does not notice. Each page is
 * examined once in a walk. True also where that can't be
 * said: in a page that a transaction without WRITEMAP has changed. */
bool cursor_page_is_whole(struct cursor *cursor, struct bytes key);
/* Moves to the row before the one that cursor_seek() finds: the last key < KEY. FOUND, END. */
int cursor_before(
	struct cursor *cursor, struct bytes key, struct bytes *ret_key, struct bytes *ret_value);
/* Writes at the cursor's place when it stands on KEY, else as txn_put(): cheap for sorted runs. */
int cursor_put(struct cursor *cursor, struct bytes key, struct bytes value, unsigned flags);
/* Deletes the entry at the cursor; the next cursor_next() gives the entry that followed. */
int cursor_del(struct cursor *cursor);

/*
 * The place of a value is its offset in the file. Only values in overflow pages (larger than
 * about 2 kB) have one, because LMDB never moves those while the entry lives: NOT_FOUND for
 * smaller ones, and in a write transaction. txn_at() returns the bytes at a place, NOT_FOUND
 * when they are outside of this transaction's pages; the caller checks that they are what it
 * expects.
 */
int txn_place(struct txn *txn, struct bytes value, uint64_t *ret_offset);
int txn_at(struct txn *txn, uint64_t offset, size_t size, struct bytes *ret_value);
/* Makes the CPU fetch the beginning of the value at OFFSET, which will be read soon. */
void txn_prefetch(struct txn *txn, uint64_t offset);
/* Lets the kernel begin to read the pages of the SIZE bytes at OFFSET that are not in memory */
void txn_announce(struct txn *txn, uint64_t offset, uint64_t size);
/* Returns whether the kernel reads each page alone (env_expect_random()). */
bool txn_reads_by_page(const struct txn *txn);

/* Returns a sentence for the log on a known fault of the LMDB that this process runs on, and
 * what to do; NULL: none. */
const char *env_library_fault(void);
/* Returns the same for the LMDB of that version. */
const char *env_version_fault(int major, int minor, int patch);

/* ---- reading ahead ------------------------------------------------------- */

/*
 * Lets the disk read what a walk will come to. After env_expect_random() the kernel reads each
 * missing page alone, so a walk over a store that is not in memory waits for the disk at each
 * value. A walk that knows the values which follow announces them, and the disk reads many at
 * once. It asks first whether it is of use: with the store in memory it only costs time.
 *
 *	if (ahead_is_cold(&ahead)) {               now and then
 *		ahead_add(&ahead, txn, offset, size);  each value, in the order of the walk
 *		ahead_send(&ahead, txn);
 *	}
 */

/* The distance between a walk and what it announces grows from the first to the most, in values:
 * a walk that ends soon announces little. */
#define AHEAD_FIRST 2
#define AHEAD_MOST  32

static inline unsigned ahead_grow(unsigned step)
{
	return step < AHEAD_MOST ? 2 * step : AHEAD_MOST;
}

/* Zeros are a good beginning. */
struct ahead {
	/* of this thread that read from the disk, as they were counted last, and 1; 0: not yet */
	long faults;
	unsigned cold;       /* questions that are still answered with yes */
	unsigned warm;       /* that were answered with no, one after the other */
	uint64_t begin, end; /* the piece that is being collected; END 0: none */
};

/* Returns whether this thread has waited for the disk since the question before, or not long
 * before that. While it has not for a while, most questions are answered without looking. */
bool ahead_is_cold(struct ahead *ahead);
/* Adds the value at OFFSET (txn_place()). Values that lie close to each other become one piece. */
void ahead_add(struct ahead *ahead, struct txn *txn, uint64_t offset, uint64_t size);
/* Lets the kernel begin to read the last piece. */
void ahead_send(struct ahead *ahead, struct txn *txn);

#endif
