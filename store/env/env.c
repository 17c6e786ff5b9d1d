/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/env.h"

#include <errno.h>
#include <inttypes.h>
#include <lmdb.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "store/env/datafile.h"

#define ENV_MAGIC    0x6b1e0e01u
#define TXN_MAGIC    0x6b1e0e02u
#define CURSOR_MAGIC 0x6b1e0e03u

/* A page begins with its number (u64); values in overflow pages begin 16 bytes into their first
 * page, values in leaves never do, because a leaf's pointers stand there. */
#define PAGE_HEADER 16u

/* LMDB does not write pages that were taken and given back in one transaction, so the file may end
 * a few pages before the last one that is counted. More missing than this: it was cut. */
#define MISSING_MAX        16u
#define MISSING_MAX_WRITER 1024u

#define OPEN_TRIES     10
#define OPEN_PAUSE_NS  20000000L
#define OPEN_BYTES     ((uint64_t)256 << 10) /* opening writes a few pages */

/* LMDB's environment, one for each file and process, however many handles there are: a second one
 * would drop the locks of the first when it is closed (docs/architecture.md, LMDB). */
struct mapping {
	struct mapping *next;
	dev_t device;
	ino_t inode;
	unsigned handles;
	enum env_mode mode;
	bool has_writer;
	bool writemap; /* pages are written in place: without a block a touch is a SIGBUS */
	unsigned forks; /* value of forks when it was opened */
	MDB_env *mdb;
	MDB_dbi databases[ENV_DATABASES_MAX];
	size_t n_databases;
	const uint8_t *address; /* NULL: not known, there are no places */
	uint64_t map_bytes;
	uint32_t page_size;
	uint64_t file_bytes; /* that much of the file was written; it never gets less. Atomic, relaxed */
	struct datafile_blocks blocks; /* writer */
	int active;          /* running transactions; with resizing see mapping_enter */
	int resizing;
	char path[];
};

struct env {
	uint32_t magic;
	enum env_mode mode;
	struct mapping *map;
};

struct txn {
	uint32_t magic;
	int error; /* of a write transaction: the first */
	bool is_write;
	bool is_running;
	struct mapping *map;
	MDB_txn *mdb;
	struct cursor *cursors; /* of a write transaction: LMDB frees them with it */
	uint64_t room; /* WRITEMAP: blocks that were asked for behind the last page it began with */
};

struct cursor {
	uint32_t magic;
	unsigned db;
	struct txn *txn;
	MDB_cursor *mdb;
	struct cursor *next, **link; /* write transactions only */
};

static struct {
	pthread_mutex_t lock;
	struct mapping *mappings;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Counted in each child: getpid() would be a system call in every transaction. */
static unsigned forks;

static void count_fork(void)
{
	forks++;
	/* Another thread of the parent may have held it. */
	(void)pthread_mutex_init(&registry.lock, NULL);
}

static void watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, count_fork);
}

unsigned env_forks(void)
{
	return forks;
}

/* ---- codes ---------------------------------------------------------------------------------- */

static int code_of(int rc)
{
	switch (rc) {
	case MDB_KEYEXIST:
	case MDB_NOTFOUND:
	case MDB_PAGE_NOTFOUND:
	case MDB_CORRUPTED:
	case MDB_PANIC:
	case MDB_INVALID:
	case MDB_BAD_TXN:
	case MDB_BAD_DBI:
	case MDB_INCOMPATIBLE:
	case MDB_CURSOR_FULL:
	case MDB_PAGE_FULL:
	case MDB_BAD_RSLOT:
		return ERR_CORRUPT;
	case MDB_VERSION_MISMATCH:
		return ERR_FORMAT;
	case MDB_MAP_FULL:
		return ERR_MAP_FULL;
	case MDB_READERS_FULL:
		return ERR_READERS_FULL;
	case MDB_BAD_VALSIZE:
	case MDB_TXN_FULL:
	case MDB_DBS_FULL:
		return ERR_TOO_LARGE;
	default:
		return rc > 0 ? -rc : ERR_CORRUPT;
	}
}

/* The sentence and our code for what LMDB returned. */
static int __attribute__((cold)) failed(const struct mapping *map, int rc, const char *what)
{
	/* A short write is reported as EIO. */
	if ((rc == EIO || rc == ENOSPC) && datafile_disk_is_full(map->path))
		return datafile_disk_full(map->path);
	if (rc == EAGAIN)
		return err_say(ERR_UNSUPPORTED,
			"%s '%s': another process has the same pid: all that use a store must share "
			"one PID namespace",
			what, map->path);
	if (rc == MDB_MAP_FULL)
		return err_say(ERR_MAP_FULL,
			"%s '%s': the database map (%" PRIu64 " bytes) is full: raise mapSize in kinf.yaml "
			"and restart kinf", what, map->path, map->map_bytes);
	if (rc == MDB_READERS_FULL)
		return err_say(ERR_READERS_FULL, "%s '%s': all %d reader slots are taken: end some readers",
			what, map->path, ENV_READERS_MAX);
	int code = code_of(rc);
	return err_say(code, "%s '%s': %s (%s)", what, map->path, err_name(code), mdb_strerror(rc));
}

static int forked(const struct mapping *map)
{
	return err_set(ERR_FORKED, "'%s'", map->path);
}

/* LMDB's own asserts: its state is unknown, and it would abort by itself after this returns. */
static void assert_failed(MDB_env *mdb, const char *message)
{
	(void)mdb;
	check_failed("lmdb", 0, message);
}

/* Whoever believes that he is the last to close destroys the mutexes under the others
 * (docs/architecture.md, LMDB). */
const char *env_version_fault(int major, int minor, int patch)
{
	if (major != 0 || minor != 9 || patch < 26 || patch > 31)
		return NULL;
	return "LMDB 0.9.26 to 0.9.31 may destroy the store's locks when a process closes it while "
	       "another opens it (ITS#9278): install liblmdb 0.9.32 or later, or 0.9.24";
}

const char *env_library_fault(void)
{
	int major, minor, patch;

	(void)mdb_version(&major, &minor, &patch);
	return env_version_fault(major, minor, patch);
}

/* ---- opening -------------------------------------------------------------------------------- */

static void mapping_free(struct mapping **map)
{
	if (!*map)
		return;
	/* A child must leave the locks and slots of its parent alone. */
	if ((*map)->mdb && (*map)->forks == forks)
		mdb_env_close((*map)->mdb);
	free(*map);
	*map = NULL;
}

static int fd_of(const struct mapping *map)
{
	int fd = -1;

	(void)mdb_env_get_fd(map->mdb, &fd); /* fails for no environment at all only */
	return fd;
}

static int file_size(const struct mapping *map, uint64_t *ret_size)
{
	struct stat st;

	if (fstat(fd_of(map), &st) < 0)
		return err_set(-errno, "'%s'", map->path);
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

/* Where the newest state ends; it never gets less. */
static uint64_t state_end(const struct mapping *map)
{
	MDB_envinfo info;

	(void)mdb_env_info(map->mdb, &info);
	return (uint64_t)(info.me_last_pgno + 1) * map->page_size;
}

static int lengthen(const struct mapping *map, uint64_t bytes)
{
	return ftruncate(fd_of(map), (off_t)bytes) < 0 ? err_set(-errno, "extending '%s/data.mdb'", map->path) : 0;
}

/*
 * Pages behind the end of the file are a SIGBUS for whoever touches them: the writer makes the file
 * as long as its newest state says. With WRITEMAP it is longer than that, and how long it was found
 * (file_bytes) tells whether it was cut.
 */
static int even_file(struct mapping *map, uint64_t missing_max)
{
	uint64_t need = state_end(map), size = map->file_bytes;

	if (map->mode == ENV_WRITE && need <= size)
		return 0;
	int r = map->writemap ? 0 : file_size(map, &size);
	if (r == 0 && size < need && (need - size) / map->page_size > missing_max)
		r = err_say(ERR_CORRUPT, "'%s/data.mdb' was cut: %" PRIu64 " of %" PRIu64 " bytes are there",
			map->path, size, need);
	if (r == 0 && size < need && map->mode == ENV_WRITE && !map->writemap)
		r = lengthen(map, need);
	if (r < 0)
		return r;
	__atomic_store_n(&map->file_bytes, size < need && map->mode != ENV_WRITE ? size : need,
		__ATOMIC_RELAXED);
	return 0;
}

/* LMDB does not tell where its map is. A page begins with its number, so any value tells. */
static void find_address(struct mapping *map, MDB_txn *txn)
{
	MDB_envinfo info;
	MDB_cursor *cursor;
	MDB_val key, value;
	MDB_dbi main_db;

	(void)mdb_env_info(map->mdb, &info);
	map->map_bytes = info.me_mapsize;
	map->address = NULL;
	if (mdb_dbi_open(txn, NULL, 0, &main_db) || mdb_cursor_open(txn, main_db, &cursor))
		return;
	if (mdb_cursor_get(cursor, &key, &value, MDB_FIRST) == 0) {
		uintptr_t page = (uintptr_t)value.mv_data & ~((uintptr_t)map->page_size - 1);
		uint64_t number = le64_get((const void *)page);
		if (number <= info.me_last_pgno)
			map->address = (const uint8_t *)(page - number * map->page_size);
	}
	mdb_cursor_close(cursor);
}

static int begin_read_mdb(struct mapping *map, MDB_txn **txn)
{
	int rc = mdb_txn_begin(map->mdb, NULL, MDB_RDONLY, txn);
	int dead;

	if (rc == MDB_READERS_FULL && mdb_reader_check(map->mdb, &dead) == 0 && dead > 0)
		rc = mdb_txn_begin(map->mdb, NULL, MDB_RDONLY, txn);
	return rc;
}

static int open_databases(struct mapping *map, MDB_txn *txn, const struct env_options *options)
{
	unsigned flags = options->mode == ENV_WRITE ? MDB_CREATE : 0;

	for (size_t i = 0; i < options->n_databases; i++) {
		int rc = mdb_dbi_open(txn, options->databases[i], flags, &map->databases[i]);
		if (rc)
			return failed(map, rc, "opening the databases of");
	}
	map->n_databases = options->n_databases;
	return 0;
}

/*
 * AGAIN when the lock file is behind the data: somebody was killed inside mdb_env_open() while
 * another waited there (docs/architecture.md, LMDB), and a commit now would overwrite a newer one.
 * One behind is no fault for a reader: the writer sets the number after the meta page.
 */
static int open_transaction(struct mapping *map, const struct env_options *options, MDB_txn **ret_txn)
{
	bool write = options->mode == ENV_WRITE;
	MDB_envinfo info;

	(void)mdb_env_info(map->mdb, &info);
	int rc = write ? mdb_txn_begin(map->mdb, NULL, 0, ret_txn) : begin_read_mdb(map, ret_txn);
	if (rc)
		return failed(map, rc, "opening");
	if (options->mode == ENV_COPY || mdb_txn_id(*ret_txn) + (write ? 0 : 2) > info.me_last_txnid)
		return 0;
	mdb_txn_abort(*ret_txn);
	*ret_txn = NULL;
	return AGAIN;
}

/* Where BYTES behind the last page end. */
static uint64_t end_with(const struct mapping *map, uint64_t bytes)
{
	uint64_t end = state_end(map) + bytes;

	return end < map->map_bytes ? end : map->map_bytes;
}

/* Blocks for BYTES behind the last page; the file becomes that long. */
static int allocate(struct mapping *map, uint64_t bytes)
{
	return datafile_extend(&map->blocks, fd_of(map), end_with(map, bytes), map->map_bytes, map->path);
}

static int settle(struct mapping *map, const struct env_options *options)
{
	MDB_envinfo info;
	MDB_txn *txn = NULL;
	MDB_stat stat;

	(void)mdb_env_stat(map->mdb, &stat);
	map->page_size = stat.ms_psize;
	(void)mdb_env_info(map->mdb, &info);
	map->map_bytes = info.me_mapsize;
	int r = even_file(map, options->mode == ENV_WRITE ? MISSING_MAX_WRITER : MISSING_MAX);
	if (r == 0 && map->writemap)
		r = allocate(map, OPEN_BYTES);
	if (r < 0)
		return r;
	r = open_transaction(map, options, &txn);
	if (r)
		return r;
	r = open_databases(map, txn, options);
	if (r < 0) {
		mdb_txn_abort(txn);
		return r;
	}
	int rc = mdb_txn_commit(txn);
	if (!rc)
		rc = begin_read_mdb(map, &txn);
	if (rc)
		return failed(map, rc, "opening");
	find_address(map, txn);
	mdb_txn_abort(txn);
	return 0;
}

static unsigned open_flags(const struct env_options *options)
{
	switch (options->mode) {
	case ENV_COPY:
		return MDB_NOTLS | MDB_RDONLY | MDB_NOLOCK;
	case ENV_READ:
		return MDB_NOTLS | MDB_RDONLY;
	default:
		/*
		 * What is written in place is touched before it holds anything: readahead would have the
		 * kernel fill pages around it from a file that is a hole there (half of the time it took
		 * to record a list).
		 */
		return MDB_NOTLS | (options->writemap ? MDB_WRITEMAP | MDB_NORDAHEAD : 0) |
			(options->durable ? 0 : MDB_NOSYNC);
	}
}

/* 0, AGAIN (worth another try) or an error. */
static int open_once(const char *directory, const struct env_options *options, struct mapping **ret_map)
{
	CLEANUP(mapping_free) struct mapping *map = calloc(1, sizeof(*map) + strlen(directory) + 1);
	unsigned mode = options->file_mode | ((options->file_mode & 0040) >> 1);

	if (!map)
		return err_set(-ENOMEM, "opening '%s'", directory);
	memcpy(map->path, directory, strlen(directory) + 1);
	map->mode = options->mode;
	map->writemap = options->mode == ENV_WRITE && options->writemap;
	map->forks = forks;
	int rc = mdb_env_create(&map->mdb);
	if (rc)
		return failed(map, rc, "opening");
	(void)mdb_env_set_assert(map->mdb, assert_failed);
	(void)mdb_env_set_maxdbs(map->mdb, ENV_DATABASES_MAX);
	(void)mdb_env_set_maxreaders(map->mdb, ENV_READERS_MAX);
	if (options->mode == ENV_WRITE)
		(void)mdb_env_set_mapsize(map->mdb, options->map_bytes);
	if (map->writemap) {
		int r = datafile_begin(directory, OPEN_BYTES, &map->file_bytes);
		if (r < 0)
			return r;
	}
	rc = mdb_env_open(map->mdb, directory, open_flags(options), mode);
	if (rc) {
		int r = failed(map, rc, "opening");
		return rc == ENOENT || rc == EINVAL || rc == EBADF ? AGAIN : r;
	}
	int r = settle(map, options);
	if (r)
		return r;
	*ret_map = TAKE(map);
	return 0;
}

static int open_mapping(const char *directory, const struct env_options *options,
	struct mapping **ret_map)
{
	int r = options->mode == ENV_COPY ? 0 : datafile_refuse_network(directory);
	if (r == 0 && options->mode == ENV_READ)
		r = datafile_require_slot(directory);
	if (r < 0)
		return r;
	for (int i = 0; i < OPEN_TRIES; i++) {
		r = open_once(directory, options, ret_map);
		if (r < 0)
			return r;
		if (r == 0)
			return options->mode == ENV_WRITE ? datafile_set_modes(directory, options->file_mode) : 0;
		(void)nanosleep(&(struct timespec){0, OPEN_PAUSE_NS}, NULL);
	}
	return err_say(ERR_LOCKED,
		"'%s': the lock file is behind the data, because a process was killed while opening it: "
		"end all that have it open",
		directory);
}

static struct mapping *find_mapping(dev_t device, ino_t inode)
{
	for (struct mapping *map = registry.mappings; map; map = map->next)
		if (map->device == device && map->inode == inode && map->forks == forks)
			return map;
	return NULL;
}

static int share_mapping(struct mapping *map, const struct env_options *options)
{
	REQUIRE(map->n_databases == options->n_databases);
	if (options->mode == ENV_READ && map->mode == ENV_COPY)
		return err_say(ERR_UNSUPPORTED, "'%s' is open without lock in this process", map->path);
	if (options->mode != ENV_WRITE)
		return 0;
	if (map->mode != ENV_WRITE || map->has_writer)
		return err_say(ERR_LOCKED, "'%s' is open in this process already", map->path);
	(void)mdb_env_set_flags(map->mdb, MDB_NOSYNC, !options->durable);
	return 0;
}

static int take_mapping(const char *directory, const struct env_options *options,
	struct mapping **ret_map)
{
	char path[4096];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/data.mdb", directory);
	int exists = stat(path, &st) == 0;
	if (!exists && (errno != ENOENT || options->mode != ENV_WRITE))
		return err_set(-errno, "opening '%s'", path);
	struct mapping *map = exists ? find_mapping(st.st_dev, st.st_ino) : NULL;
	if (map) {
		int r = share_mapping(map, options);
		if (r < 0)
			return r;
	} else {
		if (options->mode != ENV_WRITE && st.st_size == 0)
			return err_say(ERR_CORRUPT, "'%s' is empty", path);
		int r = open_mapping(directory, options, &map);
		if (r < 0)
			return r;
		if (stat(path, &st) < 0) {
			r = err_set(-errno, "'%s'", path);
			mapping_free(&map);
			return r;
		}
		map->device = st.st_dev;
		map->inode = st.st_ino;
		map->next = registry.mappings;
		registry.mappings = map;
	}
	map->handles++;
	map->has_writer |= options->mode == ENV_WRITE;
	*ret_map = map;
	return 0;
}

int env_open(const char *directory, const struct env_options *options, struct env **ret_env)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	REQUIRE(options->n_databases > 0 && options->n_databases <= ENV_DATABASES_MAX);
	(void)pthread_once(&once, watch_forks);
	AUTO_FREE struct env *env = calloc(1, sizeof(*env));
	if (!env)
		return err_set(-ENOMEM, "opening '%s'", directory);
	(void)pthread_mutex_lock(&registry.lock);
	int r = take_mapping(directory, options, &env->map);
	(void)pthread_mutex_unlock(&registry.lock);
	if (r < 0)
		return r;
	env->magic = ENV_MAGIC;
	env->mode = options->mode;
	*ret_env = TAKE(env);
	return 0;
}

static void close_mapping(struct mapping *map)
{
	bool cut = map->writemap && map->forks == forks;
	AUTO_FD int fd = cut ? datafile_hold(fd_of(map)) : -1;
	uint64_t bytes = state_end(map);

	mapping_free(&map);
	if (fd >= 0)
		datafile_cut(fd, bytes);
}

static void drop_mapping(struct mapping *map, enum env_mode mode)
{
	if (mode == ENV_WRITE)
		map->has_writer = false;
	if (--map->handles > 0)
		return;
	struct mapping **link = &registry.mappings;
	while (*link && *link != map)
		link = &(*link)->next;
	REQUIRE(*link);
	*link = map->next;
	close_mapping(map);
}

void env_close(struct env **env)
{
	if (!*env)
		return;
	CHECK_OBJ(*env, ENV_MAGIC);
	(void)pthread_mutex_lock(&registry.lock);
	drop_mapping((*env)->map, (*env)->mode);
	(void)pthread_mutex_unlock(&registry.lock);
	(*env)->magic = 0;
	free(*env);
	*env = NULL;
}

/* ---- beginning and ending -------------------------------------------------------------------- */

/* Counts a transaction in, so that the map is never moved under one. */
static void mapping_enter(struct mapping *map)
{
	for (;;) {
		/* Pairs with adopt_size: one of the two sees the other. */
		(void)__atomic_add_fetch(&map->active, 1, __ATOMIC_SEQ_CST);
		if (!__atomic_load_n(&map->resizing, __ATOMIC_SEQ_CST))
			return;
		(void)__atomic_sub_fetch(&map->active, 1, __ATOMIC_SEQ_CST);
		(void)pthread_mutex_lock(&registry.lock);
		(void)pthread_mutex_unlock(&registry.lock);
	}
}

static void mapping_leave(struct mapping *map)
{
	(void)__atomic_sub_fetch(&map->active, 1, __ATOMIC_SEQ_CST);
}

/* The writer has begun to use a larger map: takes its size, when no transaction runs here. */
static int adopt_size(struct mapping *map)
{
	MDB_txn *txn;
	int rc = EBUSY;

	(void)pthread_mutex_lock(&registry.lock);
	__atomic_store_n(&map->resizing, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&map->active, __ATOMIC_SEQ_CST) == 0)
		rc = mdb_env_set_mapsize(map->mdb, 0);
	if (rc == 0)
		rc = begin_read_mdb(map, &txn);
	if (rc == 0) {
		find_address(map, txn);
		mdb_txn_abort(txn);
	}
	__atomic_store_n(&map->resizing, 0, __ATOMIC_SEQ_CST);
	(void)pthread_mutex_unlock(&registry.lock);
	if (rc == EBUSY)
		return err_say(-EBUSY, "the map of '%s' has grown: end all snapshots of this process first",
			map->path);
	return rc ? failed(map, rc, "growing the map of") : 0;
}

static int try_read(struct txn *txn)
{
	return txn->mdb ? mdb_txn_renew(txn->mdb) : begin_read_mdb(txn->map, &txn->mdb);
}

static int start_read(struct txn *txn)
{
	struct mapping *map = txn->map;
	int r;

	mapping_enter(map);
	int rc = try_read(txn);
	if (__builtin_expect(rc == MDB_MAP_RESIZED, 0)) {
		mapping_leave(map);
		r = adopt_size(map);
		if (r < 0)
			return r;
		mapping_enter(map);
		rc = try_read(txn);
	}
	if (rc) {
		mapping_leave(map);
		return failed(map, rc, "reading");
	}
	txn->is_running = true;
	return 0;
}

static int start_write(struct txn *txn)
{
	mapping_enter(txn->map);
	int rc = mdb_txn_begin(txn->map->mdb, NULL, 0, &txn->mdb);
	if (rc) {
		mapping_leave(txn->map);
		return failed(txn->map, rc, "writing");
	}
	txn->is_running = true;
	return 0;
}

static int begin(struct env *env, bool is_write, struct txn **ret_txn)
{
	CHECK_OBJ(env, ENV_MAGIC);
	if (env->map->forks != forks)
		return forked(env->map);
	AUTO_FREE struct txn *txn = calloc(1, sizeof(*txn));
	if (!txn)
		return err_set(-ENOMEM, "beginning a transaction");
	txn->magic = TXN_MAGIC;
	txn->is_write = is_write;
	txn->map = env->map;
	int r = is_write ? start_write(txn) : start_read(txn);
	if (r < 0)
		return r;
	*ret_txn = TAKE(txn);
	return 0;
}

int txn_begin_write(struct env *env, struct txn **ret_txn)
{
	REQUIRE(env && env->mode == ENV_WRITE);
	return begin(env, true, ret_txn);
}

int txn_begin_read(struct env *env, struct txn **ret_txn)
{
	return begin(env, false, ret_txn);
}

/* LMDB frees a write transaction's cursors with it. */
static void forget_cursors(struct txn *txn)
{
	while (txn->cursors) {
		struct cursor *cursor = txn->cursors;
		txn->cursors = cursor->next;
		cursor->mdb = NULL;
		cursor->link = NULL;
	}
}

static void txn_free(struct txn **txn)
{
	forget_cursors(*txn);
	if ((*txn)->is_running)
		mapping_leave((*txn)->map);
	(*txn)->magic = 0;
	free(*txn);
	*txn = NULL;
}

void txn_abort(struct txn **txn)
{
	if (!*txn)
		return;
	CHECK_OBJ(*txn, TXN_MAGIC);
	if ((*txn)->mdb && (*txn)->map->forks == forks)
		mdb_txn_abort((*txn)->mdb);
	txn_free(txn);
}

int txn_commit(struct txn **txn)
{
	CHECK_OBJ(*txn, TXN_MAGIC);
	struct mapping *map = (*txn)->map;
	int r = (*txn)->error;

	if (map->forks != forks)
		r = forked(map);
	if (r < 0) {
		txn_abort(txn);
		return r;
	}
	bool is_write = (*txn)->is_write;
	int rc = mdb_txn_commit((*txn)->mdb); /* frees it even when it fails */
	txn_free(txn);
	if (rc)
		return failed(map, rc, "committing to");
	/* It is committed: whatever is wrong with the file's length, the next open says it. */
	if (is_write)
		(void)even_file(map, UINT64_MAX);
	return 0;
}

void txn_reset(struct txn *txn)
{
	CHECK_OBJ(txn, TXN_MAGIC);
	REQUIRE(!txn->is_write);
	if (!txn->is_running || txn->map->forks != forks)
		return;
	mdb_txn_reset(txn->mdb);
	txn->is_running = false;
	mapping_leave(txn->map);
}

int txn_renew(struct txn *txn)
{
	CHECK_OBJ(txn, TXN_MAGIC);
	if (txn->map->forks != forks)
		return forked(txn->map);
	txn_reset(txn);
	return start_read(txn);
}

uint64_t txn_id(const struct txn *txn)
{
	CHECK_OBJ(txn, TXN_MAGIC);
	return mdb_txn_id(txn->mdb);
}

/* ---- entries --------------------------------------------------------------------------------- */

#define VAL(b)   ((MDB_val){(b).size, (void *)(uintptr_t)(b).data})
#define UNVAL(v) BYTES((v).mv_data, (v).mv_size)

static int __attribute__((cold)) txn_failed(struct txn *txn, int rc, const char *what)
{
	int r = failed(txn->map, rc, what);

	if (txn->is_write && !txn->error)
		txn->error = r;
	return r;
}

static MDB_dbi database(const struct txn *txn, unsigned db)
{
	REQUIRE(db < txn->map->n_databases);
	return txn->map->databases[db];
}

static unsigned put_flags(unsigned flags)
{
	return (flags & TXN_APPEND ? MDB_APPEND : 0) | (flags & TXN_NEW ? MDB_NOOVERWRITE : 0);
}

static void require_write(const struct txn *txn)
{
	CHECK_OBJ(txn, TXN_MAGIC);
	REQUIRE(txn->is_write && txn->is_running);
}

int txn_get(struct txn *txn, unsigned db, struct bytes key, struct bytes *ret_value)
{
	MDB_val k = VAL(key), v;

	CHECK_OBJ(txn, TXN_MAGIC);
	if (txn->error)
		return txn->error;
	int rc = mdb_get(txn->mdb, database(txn, db), &k, &v);
	if (rc == MDB_NOTFOUND)
		return NOT_FOUND;
	if (rc)
		return txn_failed(txn, rc, "reading");
	*ret_value = UNVAL(v);
	return FOUND;
}

int txn_put(struct txn *txn, unsigned db, struct bytes key, struct bytes value, unsigned flags)
{
	MDB_val k = VAL(key), v = VAL(value);

	require_write(txn);
	if (txn->error)
		return txn->error;
	int rc = mdb_put(txn->mdb, database(txn, db), &k, &v, put_flags(flags));
	return rc ? txn_failed(txn, rc, "writing") : 0;
}

int txn_reserve(struct txn *txn, unsigned db, struct bytes key, size_t size, unsigned flags,
	void **ret_place)
{
	MDB_val k = VAL(key), v = {size, NULL};

	require_write(txn);
	if (txn->error)
		return txn->error;
	int rc = mdb_put(txn->mdb, database(txn, db), &k, &v, MDB_RESERVE | put_flags(flags));
	if (rc)
		return txn_failed(txn, rc, "writing");
	*ret_place = v.mv_data;
	return 0;
}

int txn_del(struct txn *txn, unsigned db, struct bytes key)
{
	MDB_val k = VAL(key);

	require_write(txn);
	if (txn->error)
		return txn->error;
	int rc = mdb_del(txn->mdb, database(txn, db), &k, NULL);
	if (rc == MDB_NOTFOUND)
		return NOT_FOUND;
	return rc ? txn_failed(txn, rc, "deleting in") : FOUND;
}

int txn_count(struct txn *txn, unsigned db, uint64_t *ret_entries)
{
	MDB_stat stat;

	CHECK_OBJ(txn, TXN_MAGIC);
	int rc = mdb_stat(txn->mdb, database(txn, db), &stat);
	if (rc)
		return txn_failed(txn, rc, "reading");
	*ret_entries = stat.ms_entries;
	return 0;
}

/* ---- cursors --------------------------------------------------------------------------------- */

int cursor_open(struct txn *txn, unsigned db, struct cursor **ret_cursor)
{
	CHECK_OBJ(txn, TXN_MAGIC);
	if (txn->error)
		return txn->error;
	AUTO_FREE struct cursor *cursor = calloc(1, sizeof(*cursor));
	if (!cursor)
		return err_set(-ENOMEM, "opening a cursor");
	int rc = mdb_cursor_open(txn->mdb, database(txn, db), &cursor->mdb);
	if (rc)
		return txn_failed(txn, rc, "reading");
	cursor->magic = CURSOR_MAGIC;
	cursor->db = db;
	cursor->txn = txn;
	if (txn->is_write) {
		cursor->next = txn->cursors;
		cursor->link = &txn->cursors;
		if (cursor->next)
			cursor->next->link = &cursor->next;
		txn->cursors = cursor;
	}
	*ret_cursor = TAKE(cursor);
	return 0;
}

void cursor_close(struct cursor **cursor)
{
	struct cursor *c = *cursor;

	if (!c)
		return;
	CHECK_OBJ(c, CURSOR_MAGIC);
	if (c->mdb)
		mdb_cursor_close(c->mdb);
	if (c->link) {
		*c->link = c->next;
		if (c->next)
			c->next->link = c->link;
	}
	c->magic = 0;
	free(c);
	*cursor = NULL;
}

static int move(struct cursor *cursor, MDB_val *key, MDB_cursor_op op, struct bytes *ret_key,
	struct bytes *ret_value)
{
	MDB_val value;

	CHECK_OBJ(cursor, CURSOR_MAGIC);
	REQUIRE(cursor->mdb);
	if (cursor->txn->error)
		return cursor->txn->error;
	int rc = mdb_cursor_get(cursor->mdb, key, &value, op);
	if (rc == MDB_NOTFOUND)
		return END;
	if (rc)
		return txn_failed(cursor->txn, rc, "reading");
	*ret_key = UNVAL(*key);
	*ret_value = UNVAL(value);
	return FOUND;
}

int cursor_seek(struct cursor *cursor, struct bytes key, struct bytes *ret_key,
	struct bytes *ret_value)
{
	MDB_val k = VAL(key);

	return move(cursor, &k, key.size ? MDB_SET_RANGE : MDB_FIRST, ret_key, ret_value);
}

int cursor_next(struct cursor *cursor, struct bytes *ret_key, struct bytes *ret_value)
{
	return move(cursor, &(MDB_val){0}, MDB_NEXT, ret_key, ret_value);
}

int cursor_last(struct cursor *cursor, struct bytes *ret_key, struct bytes *ret_value)
{
	return move(cursor, &(MDB_val){0}, MDB_LAST, ret_key, ret_value);
}

int cursor_put(struct cursor *cursor, struct bytes key, struct bytes value, unsigned flags)
{
	MDB_val k = VAL(key), v = VAL(value);

	CHECK_OBJ(cursor, CURSOR_MAGIC);
	require_write(cursor->txn);
	if (cursor->txn->error)
		return cursor->txn->error;
	int rc = mdb_cursor_put(cursor->mdb, &k, &v, put_flags(flags));
	return rc ? txn_failed(cursor->txn, rc, "writing") : 0;
}

int cursor_del(struct cursor *cursor)
{
	CHECK_OBJ(cursor, CURSOR_MAGIC);
	require_write(cursor->txn);
	if (cursor->txn->error)
		return cursor->txn->error;
	int rc = mdb_cursor_del(cursor->mdb, 0);
	return rc ? txn_failed(cursor->txn, rc, "deleting in") : 0;
}

/* ---- places ---------------------------------------------------------------------------------- */

int txn_place(struct txn *txn, struct bytes value, uint64_t *ret_offset)
{
	CHECK_OBJ(txn, TXN_MAGIC);
	const struct mapping *map = txn->map;
	uint64_t offset = (uint64_t)((uintptr_t)value.data - (uintptr_t)map->address);

	if (txn->is_write || !map->address || offset >= map->map_bytes ||
		(offset & (map->page_size - 1)) != PAGE_HEADER)
		return NOT_FOUND;
	*ret_offset = offset;
	return FOUND;
}

/* The file has grown since it was last looked at, or OFFSET is nonsense. What is behind the newest
 * state may be a hole that the writer cuts off when it ends. */
static bool file_covers(struct mapping *map, uint64_t end)
{
	uint64_t size, written = state_end(map);

	if (file_size(map, &size) < 0)
		return false;
	size = size < written ? size : written;
	__atomic_store_n(&map->file_bytes, size, __ATOMIC_RELAXED);
	return end <= size;
}

int txn_at(struct txn *txn, uint64_t offset, size_t size, struct bytes *ret_value)
{
	CHECK_OBJ(txn, TXN_MAGIC);
	struct mapping *map = txn->map;

	if (!map->address || (offset & (map->page_size - 1)) != PAGE_HEADER ||
		offset >= map->map_bytes || size > map->map_bytes - offset)
		return NOT_FOUND;
	if (offset + size > __atomic_load_n(&map->file_bytes, __ATOMIC_RELAXED) &&
		!file_covers(map, offset + size))
		return NOT_FOUND;
	*ret_value = BYTES(map->address + offset, size);
	return FOUND;
}

#define CACHE_LINE     64
#define PREFETCH_LINES 3 /* a record's header and texts, and where its body begins */

void txn_prefetch(struct txn *txn, uint64_t offset)
{
	const struct mapping *map = txn->map;

	if (!map->address || offset >= map->map_bytes)
		return;
	for (unsigned i = 0; i < PREFETCH_LINES; i++)
		__builtin_prefetch(map->address + offset + i * CACHE_LINE); /* never faults */
}

/* ---- the environment ------------------------------------------------------------------------- */

static int count_pages(struct mapping *map, MDB_txn *txn, bool with_overflow, uint64_t *ret_pages)
{
	uint64_t pages = 2; /* meta pages */
	MDB_stat stat;

	/* 0 is LMDB's list of free pages, 1 its table of databases. */
	for (MDB_dbi i = 0; i < map->n_databases + 2; i++) {
		int rc = mdb_stat(txn, i < 2 ? i : map->databases[i - 2], &stat);
		if (rc)
			return failed(map, rc, "reading");
		pages += stat.ms_branch_pages + stat.ms_leaf_pages;
		pages += with_overflow ? stat.ms_overflow_pages : 0;
	}
	*ret_pages = pages;
	return 0;
}

/* Blocks behind the last page; none where USED leaves free pages before it. */
static int keep_blocks(struct mapping *map, uint64_t used, uint64_t bytes)
{
	if (end_with(map, 0) > used + 2 * bytes)
		return 0;
	return datafile_keep(&map->blocks, fd_of(map), end_with(map, bytes), end_with(map, 2 * bytes),
		map->path); /* twice: not each time */
}

int txn_keep_free(struct txn *txn, uint64_t bytes)
{
	struct mapping *map = txn->map;
	uint64_t pages;

	require_write(txn);
	if (bytes > map->map_bytes / 8)
		bytes = map->map_bytes / 8;
	int r = count_pages(map, txn->mdb, true, &pages);
	if (r < 0)
		return r;
	uint64_t used = pages * map->page_size;
	if (used + bytes > map->map_bytes)
		return failed(map, MDB_MAP_FULL, "writing");
	return map->writemap ? txn_allocate(txn, bytes) : keep_blocks(map, used, bytes);
}

int txn_allocate_copies(struct txn *txn, uint64_t bytes)
{
	struct mapping *map = txn->map;
	uint64_t pages;

	require_write(txn);
	int r = count_pages(map, txn->mdb, false, &pages);
	if (r < 0)
		return r;
	uint64_t most = pages * map->page_size + OPEN_BYTES;
	return txn_allocate(txn, bytes < most ? bytes : most);
}

int txn_allocate(struct txn *txn, uint64_t bytes)
{
	require_write(txn);
	if (!txn->map->writemap)
		return 0;
	int r = allocate(txn->map, txn->room + bytes);
	if (r == 0)
		txn->room += bytes;
	return r;
}

static int count_reader(void *arg, int32_t pid, uint64_t txn)
{
	(void)pid;
	(void)txn;
	(*(uint32_t *)arg)++;
	return 0;
}

int env_info(struct env *env, struct env_info *ret_info)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct env_info result = {0};
	MDB_envinfo info;
	uint64_t pages;

	int r = txn_begin_read(env, &txn);
	if (r == 0)
		r = count_pages(env->map, txn->mdb, true, &pages);
	if (r == 0)
		r = env_each_reader(env, count_reader, &result.readers);
	if (r < 0)
		return r;
	(void)mdb_env_info(env->map->mdb, &info);
	result.map_bytes = info.me_mapsize;
	result.used_bytes = pages * env->map->page_size;
	result.file_bytes = state_end(env->map);
	result.last_txn = info.me_last_txnid;
	*ret_info = result;
	return 0;
}

int env_clear_stale_readers(struct env *env)
{
	int dead = 0;

	CHECK_OBJ(env, ENV_MAGIC);
	if (env->map->forks != forks)
		return forked(env->map);
	int rc = mdb_reader_check(env->map->mdb, &dead);
	return rc ? failed(env->map, rc, "clearing reader slots of") : dead;
}

struct each_reader {
	env_reader_fn *fn;
	void *arg;
};

/* LMDB hands out lines: a heading, then "pid thread txn", txn "-" for a slot without snapshot. */
static int reader_line(const char *line, void *arg)
{
	const struct each_reader *each = arg;
	uint64_t txn = 0;
	int32_t pid;

	if (sscanf(line, "%" SCNd32 " %*x %" SCNu64, &pid, &txn) < 1)
		return 0;
	/* Negative ends the listing; what the caller returned must not be lost as 0. */
	int r = each->fn(each->arg, pid, txn);
	return r > 0 ? -r : r;
}

int env_each_reader(struct env *env, env_reader_fn *fn, void *arg)
{
	CHECK_OBJ(env, ENV_MAGIC);
	int r = mdb_reader_list(env->map->mdb, reader_line, &(struct each_reader){fn, arg});
	return r < 0 ? r : 0;
}

int env_sync(struct env *env)
{
	CHECK_OBJ(env, ENV_MAGIC);
	REQUIRE(env->mode == ENV_WRITE);
	int rc = mdb_env_sync(env->map->mdb, 1);
	return rc ? failed(env->map, rc, "syncing") : 0;
}

int env_allocate(struct env *env, uint64_t copied, uint64_t added)
{
	struct env_info info;

	CHECK_OBJ(env, ENV_MAGIC);
	REQUIRE(env->mode == ENV_WRITE);
	if (end_with(env->map, copied + added) <= env->map->blocks.end)
		return 0;
	int r = env_info(env, &info);
	if (r < 0)
		return r;
	/* Each page once, and LMDB's list of those that this frees. */
	uint64_t most = info.used_bytes + info.used_bytes / 256 + OPEN_BYTES;
	return allocate(env->map, (copied < most ? copied : most) + added);
}
