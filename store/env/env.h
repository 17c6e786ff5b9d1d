/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LMDB, and the only file that includes its header: environments, transactions with a sticky error,
 * cursors. Codes of LMDB become codes of common/err.def here and nowhere else.
 *
 * A write transaction remembers its first error: later calls on it return it and do nothing, and
 * txn_commit turns into an abort that returns it. So a long apply has one check, at the end.
 * Values returned by get and by cursors point into the map: they are unaligned and live until the
 * transaction is reset or ended, and in a write transaction until its next write.
 *
 * One environment per process and directory: opening the same one again for reading gives the same
 * handle, counted (LMDB's locks would break otherwise, docs/architecture.md, LMDB). A reader opens
 * read-only. After fork every call returns ERR_FORKED. Transactions are used by one thread at a time.
 */
#ifndef STORE_ENV_ENV_H
#define STORE_ENV_ENV_H

#include "common/bytes.h"

#define ENV_DATABASES_MAX 8
#define ENV_READERS_MAX   1022
#define ENV_KEY_MAX       511

struct env;
struct txn;
struct cursor;

enum env_mode {
	ENV_READ,  /* with a slot in the reader table */
	ENV_WRITE, /* the one writer; creates what is missing */
	ENV_COPY,  /* no lock at all: a store that is not writable and has no writer */
};

struct env_options {
	enum env_mode mode;
	const char *const *databases; /* names; a database is its place in this list */
	size_t n_databases;
	uint64_t map_bytes; /* writers; readers take what the file says */
	bool writemap;      /* pages are written in place: the writer asks for blocks first */
	bool durable;       /* fdatasync at each commit; else only process crashes are survived */
	unsigned file_mode; /* of new files */
};

/* The caller holds open.lock (generation.h). ERR_CORRUPT, ERR_FORMAT (another LMDB version's
 * file), -EACCES, ... */
int env_open(const char *directory, const struct env_options *options, struct env **ret_env);
void env_close(struct env **env);

struct env_info {
	uint64_t map_bytes;
	uint64_t used_bytes;  /* pages of the newest state, free ones not counted */
	uint64_t file_bytes;  /* up to the highest page ever used */
	uint64_t last_txn;
	uint32_t readers;     /* slots in use */
};
int env_info(struct env *env, struct env_info *ret_info);

/* Clears slots of dead processes; how many. */
int env_clear_stale_readers(struct env *env);

typedef int env_reader_fn(void *arg, int32_t pid, uint64_t txn); /* txn 0: no snapshot held */
int env_each_reader(struct env *env, env_reader_fn *fn, void *arg);

/* Writeback errors surface here; -EIO means this generation is dead. */
int env_sync(struct env *env);

/* WRITEMAP: makes sure the file has blocks for what a transaction writes beyond its last page, so that
 * a full disk is -ENOSPC here and not a SIGBUS later. COPIED: bytes of pages that exist and may be
 * changed, which are copied, each once: never more than are in use count. ADDED: of new ones. */
int env_allocate(struct env *env, uint64_t copied, uint64_t added);

/* How often this process has been forked off since the first environment was opened in its line:
 * whoever remembers the number from when a handle was made can tell that this is a child, without a
 * system call. */
unsigned env_forks(void);

int txn_begin_write(struct env *env, struct txn **ret_txn);
int txn_begin_read(struct env *env, struct txn **ret_txn);
/* Frees the transaction whatever the result. */
int txn_commit(struct txn **txn);
void txn_abort(struct txn **txn);
/* Read transactions: give the snapshot back and take a new one, keeping the slot. */
void txn_reset(struct txn *txn);
int txn_renew(struct txn *txn);
uint64_t txn_id(const struct txn *txn);

enum txn_put_flags {
	TXN_APPEND = 1u << 0, /* the key is the largest yet; else ERR_CORRUPT */
	TXN_NEW = 1u << 1,    /* the key must not exist; else ERR_CORRUPT */
};

int txn_get(struct txn *txn, unsigned db, struct bytes key, struct bytes *ret_value); /* FOUND, NOT_FOUND */
int txn_put(struct txn *txn, unsigned db, struct bytes key, struct bytes value, unsigned flags);
/* Room of SIZE bytes to write the value into before the next call on TXN. */
int txn_reserve(struct txn *txn, unsigned db, struct bytes key, size_t size, unsigned flags,
	void **ret_place);
int txn_del(struct txn *txn, unsigned db, struct bytes key); /* FOUND, NOT_FOUND */
int txn_count(struct txn *txn, unsigned db, uint64_t *ret_entries);
/* In a write transaction that has written nothing yet: ERR_MAP_FULL, -ENOSPC, -EDQUOT when map or
 * disk have no room for BYTES (at most an eighth of the map) more than are in use. Who asks this
 * before he adds leaves room for who deletes, which needs some too: pages are copied. */
int txn_keep_free(struct txn *txn, uint64_t bytes);
/* WRITEMAP: blocks for BYTES more than this transaction has asked for yet, or -ENOSPC, -EDQUOT, and
 * the transaction can go on without. A touch of a page without a block is a SIGBUS, so who writes
 * asks for the most that it can take. Without WRITEMAP LMDB reports a full disk, and this does
 * nothing. */
int txn_allocate(struct txn *txn, uint64_t bytes);
/* The same for pages that are copied because something in them is deleted or replaced: each once, so
 * never more than there are, and those of large values (overflow pages) never. */
int txn_allocate_copies(struct txn *txn, uint64_t bytes);

int cursor_open(struct txn *txn, unsigned db, struct cursor **ret_cursor);
void cursor_close(struct cursor **cursor);
/* First key >= KEY; FOUND or END. */
int cursor_seek(struct cursor *cursor, struct bytes key, struct bytes *ret_key,
	struct bytes *ret_value);
int cursor_next(struct cursor *cursor, struct bytes *ret_key, struct bytes *ret_value);
int cursor_last(struct cursor *cursor, struct bytes *ret_key, struct bytes *ret_value);
/* At the cursor's place when it stands on KEY, else as txn_put: cheap for sorted runs. */
int cursor_put(struct cursor *cursor, struct bytes key, struct bytes value, unsigned flags);
/* Deletes where it stands; the next cursor_next gives the entry that followed. */
int cursor_del(struct cursor *cursor);

/*
 * Place of a value in the file, for values in overflow pages (larger than about 2 kB), which LMDB
 * never moves while the entry lives: FOUND with the offset, NOT_FOUND for smaller values or in a
 * write transaction. txn_at gives the bytes back: bounds-checked against this transaction's pages,
 * NOT_FOUND when outside. The caller checks that what stands there is what it looks for.
 */
int txn_place(struct txn *txn, struct bytes value, uint64_t *ret_offset);
int txn_at(struct txn *txn, uint64_t offset, size_t size, struct bytes *ret_value);
/* Tells the processor that the beginning of it will be read soon. */
void txn_prefetch(struct txn *txn, uint64_t offset);

/* What is wrong with the LMDB this process runs on, and what to do, for the log; NULL: nothing known. */
const char *env_library_fault(void);
/* The same of a version. */
const char *env_version_fault(int major, int minor, int patch);

#endif
