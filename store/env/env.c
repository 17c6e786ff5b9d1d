/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/env.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "store/env/env_internal.h"
#include "store/env/state.h"

/* LMDB does not write pages taken and given back in one transaction, so the file may end a few
 * pages before the last page counted. With more missing than this it was cut. */
#define MISSING_MAX        16u
#define MISSING_MAX_WRITER 1024u

#define OPEN_PAGES 64u /* LMDB writes fewer when it makes the databases */

static struct {
	pthread_mutex_t lock;
	struct mapping *mappings;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void env_in_child(void)
{
	(void)pthread_mutex_init(&registry.lock, NULL);
}

static void env_watch_forks(void)
{
	forks_watch(NULL, NULL, env_in_child);
}

/* ---- the file ----------------------------------------------------------- */

int mapping_fd(const struct mapping *map)
{
	int fd = -1;

	(void)mdb_env_get_fd(map->mdb, &fd); /* fails for no environment at all only */
	return fd;
}

int mapping_file_size(const struct mapping *map, uint64_t *ret_size)
{
	struct stat st;

	if (fstat(mapping_fd(map), &st) < 0)
		return err_set(-errno, "'%s'", map->path);
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

uint64_t mapping_state_end(const struct mapping *map)
{
	MDB_envinfo info;

	(void)mdb_env_info(map->mdb, &info);
	return (uint64_t)(info.me_last_pgno + 1) * map->page_size;
}

int mapping_fit_file(struct mapping *map, uint64_t missing_max)
{
	uint64_t need = mapping_state_end(map), size = map->file_bytes;

	if (map->mode == ENV_WRITE && need <= size)
		return 0;
	int r = 0;
	if (map->blocks.length)
		size = map->blocks.length;
	else
		r = mapping_file_size(map, &size);
	if (r == 0 && size < need && (need - size) / map->page_size > missing_max)
		r = err_say(ERR_CORRUPT,
			"'%s/data.mdb' was cut: %" PRIu64 " of %" PRIu64 " bytes are there",
			map->path, size, need);
	if (r == 0 && size < need && map->mode == ENV_WRITE) {
		int error = map->writemap ? datafile_lengthen(&map->blocks, mapping_fd(map), need,
						    map->map_bytes)
			    : ftruncate(mapping_fd(map), (off_t)need) < 0 ? errno
									  : 0;
		if (error)
			r = err_set(-error, "extending '%s/data.mdb'", map->path);
	}
	if (r < 0)
		return r;
	__atomic_store_n(&map->file_bytes, size < need && map->mode != ENV_WRITE ? size : need,
		__ATOMIC_RELAXED);
	return 0;
}

/* ---- opening ------------------------------------------------------------ */

/* Called by LMDB for an assertion of its own. Its state is unknown then, unless it was reading, and
 * it would abort next. */
static void env_assert_failed(MDB_env *mdb, const char *message)
{
	const struct mapping *map = mdb_env_get_userctx(mdb);
	char sentence[512];

	guard_leave();
	(void)snprintf(
		sentence, sizeof(sentence), "'%s/data.mdb' is damaged (%s)", map->path, message);
	if (map->mode == ENV_WRITE) {
		AUTO_FD int fd = open(map->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		err_ignore(fd < 0 ? err_set(-errno, "'%s'", map->path) : damaged_note(fd, sentence),
			"the next failure may note it");
	}
	check_failed("lmdb", 0, sentence);
}

/* Returns whether data.mdb's descriptor is another file's. */
static bool mapping_has_lost_file(const struct mapping *map)
{
	struct stat st;

	return map->mode != ENV_WRITE && map->inode &&
	       (fstat(mapping_fd(map), &st) < 0 || st.st_dev != map->device ||
		       st.st_ino != map->inode);
}

static void mapping_free(struct mapping **map)
{
	if (!*map)
		return;
	mapping_unwatch_faults(*map);
	/* A forked child leaves the locks and slots of its parent alone. A program may have closed
	 * the descriptor: LMDB would close another file of this number. */
	if ((*map)->mdb && (*map)->forks == forks_count() && !mapping_has_lost_file(*map)) {
		if ((*map)->keeper)
			mdb_txn_abort((*map)->keeper);
		mdb_env_close((*map)->mdb);
	}
	mapping_release_pins(*map);
	free(*map);
	*map = NULL;
}

/* A writer alone opens lock.mdb, so LMDB initialises it each time. If another program had it
 * open, LMDB may have taken an old transaction number from it, and a commit would overwrite a
 * newer one (docs/architecture.md, LMDB). */
static int mapping_first_txn(struct mapping *map, struct pin *pin, MDB_txn **ret_txn)
{
	bool write = map->mode == ENV_WRITE;
	MDB_envinfo info;

	(void)mdb_env_info(map->mdb, &info);
	int rc = write ? mdb_txn_begin(map->mdb, NULL, 0, ret_txn)
		       : mapping_begin_read(map, pin, ret_txn);
	if (rc) {
		if (*ret_txn) /* it could not be pinned */
			mdb_txn_abort(*ret_txn);
		*ret_txn = NULL;
		return mapping_failed(map, rc, "opening");
	}
	if (!write || mdb_txn_id(*ret_txn) > info.me_last_txnid)
		return 0;
	mdb_txn_abort(*ret_txn);
	*ret_txn = NULL;
	return err_say(ERR_LOCKED,
		"'%s': lock.mdb is older than the data, because another program has it open: end "
		"that program",
		map->path);
}

static int mapping_settle_pinned(
	struct mapping *map, const struct env_options *options, struct pin *pin)
{
	MDB_envinfo info;
	MDB_txn *txn = NULL;
	MDB_stat stat;

	(void)mdb_env_stat(map->mdb, &stat);
	map->page_size = stat.ms_psize;
	(void)mdb_env_info(map->mdb, &info);
	map->map_bytes = info.me_mapsize;
	int r = mapping_fit_file(
		map, options->mode == ENV_WRITE ? MISSING_MAX_WRITER : MISSING_MAX);
	/* Until the map's address is known the file has to be long enough. */
	map->open_bytes = OPEN_PAGES * (uint64_t)map->page_size;
	if (r == 0 && map->writemap) {
		int error = datafile_lengthen(&map->blocks, mapping_fd(map),
			mapping_state_end(map) + map->open_bytes, map->map_bytes);
		r = error ? mapping_failed(map, error, "opening") : 0;
		if (r == 0) /* gives back a killed writer's blocks beyond the end */
			datafile_cut(mapping_fd(map), map->blocks.length);
	}
	if (r < 0)
		return r;
	r = mapping_first_txn(map, pin, &txn);
	if (r)
		return r;
	bool is_new = info.me_last_txnid == 0;
	int rc = mdb_dbi_open(txn, NULL, 0, &map->main_db);
	for (size_t i = 0; i < options->n_databases && !rc; i++) {
		const char *name = options->databases[i];
		rc = guarded_open(txn, name, &map->databases[i]);
		/* Later, a missing one means a damaged table of databases, and LMDB would write
		 * into foreign pages. */
		if (rc == MDB_NOTFOUND && is_new && map->mode == ENV_WRITE)
			rc = mdb_dbi_open(txn, name, MDB_CREATE, &map->databases[i]);
	}
	if (rc) {
		r = mapping_failed(map, rc, "opening the databases of");
		mdb_txn_abort(txn);
		return r;
	}
	map->n_databases = options->n_databases;
	map->database_names = options->databases;
	rc = options->mode == ENV_WRITE ? mapping_commit(map, txn, is_new) : mdb_txn_commit(txn);
	txn = NULL;
	if (!rc)
		rc = mapping_begin_read(map, pin, &txn);
	if (rc) {
		if (txn)
			mdb_txn_abort(txn);
		return mapping_failed(map, rc, "opening");
	}
	rc = mapping_find_address(map, txn);
	r = rc ? mapping_failed(map, rc, "opening") : 0;
	if (r == 0 && !options->unchecked)
		r = mapping_check_trees(map, txn, false);
	mdb_txn_abort(txn);
	return r == 0 && map->writemap ? mapping_watch_faults(map) : r;
}

/* Takes the environment into use: its databases, its pins. */
static int mapping_settle(struct mapping *map, const struct env_options *options)
{
	struct pin pin = {0};
	int r = options->mode == ENV_WRITE  ? mapping_keep(map, options->places, options->file_mode)
		: options->mode == ENV_READ ? mapping_watch(map, options->places)
					    : 0;

	if (r == 0)
		r = mapping_pin(map, &pin);
	if (r == 0)
		r = mapping_settle_pinned(map, options, &pin);
	if (r < 0 && mapping_is_given_up(map))
		r = mapping_failed(map, MAPPING_REPLACED, "opening");
	pins_give(map->pins, &pin);
	return r;
}

static int mapping_open(
	const char *directory, const struct env_options *options, struct mapping **ret_map)
{
	int network = options->mode == ENV_COPY ? 0 : datafile_refuse_network(directory);
	if (network < 0)
		return network;
	CLEANUP(mapping_free) struct mapping *map = calloc(1, sizeof(*map) + strlen(directory) + 1);
	unsigned flags = MDB_NOTLS;

	if (!map)
		return err_set(-ENOMEM, "opening '%s'", directory);
	memcpy(map->path, directory, strlen(directory) + 1);
	map->mode = options->mode;
	map->writemap = options->mode == ENV_WRITE && options->writemap;
	map->forks = forks_count();
	map->lock_fd = map->own_page_fd = -1;
	int rc = mdb_env_create(&map->mdb);
	if (rc)
		return mapping_failed(map, rc, "opening");
	(void)mdb_env_set_userctx(map->mdb, map);
	(void)mdb_env_set_assert(map->mdb, env_assert_failed);
	(void)mdb_env_set_maxdbs(map->mdb, ENV_DATABASES_MAX);
	if (options->mode == ENV_WRITE)
		(void)mdb_env_set_mapsize(map->mdb, options->map_bytes);
	int made = mapping_check_metas(map, !options->unchecked);
	if (made == 0 && map->writemap)
		made = datafile_begin(directory, &map->writemap);
	if (made == 0 && options->mode == ENV_WRITE)
		made = datafile_begin_lock(directory, &map->lock_fd);
	if (made == 0 && options->mode == ENV_WRITE && options->map_bytes)
		made = mapping_lower_size(map, options->map_bytes);
	if (made < 0)
		return made;
	/* Pages written in place are touched while the file has a hole there. With readahead the
	 * kernel would fill the pages around them as well, at half the time of recording a list. */
	if (options->mode == ENV_WRITE)
		flags |= (map->writemap ? MDB_WRITEMAP | MDB_NORDAHEAD : 0) |
			 (options->durable ? 0 : MDB_NOSYNC);
	else
		flags |= MDB_RDONLY | MDB_NOLOCK;
	/* 0600: nobody but the writer ever opens lock.mdb. */
	rc = mapping_open_short(map, flags, 0600);
	if (rc)
		return mapping_failed(map, rc, "opening");
	/* LMDB leaves this one open in started programs: they could read all objects, or change
	 * them. */
	if (fcntl(mapping_fd(map), F_SETFD, FD_CLOEXEC) < 0)
		return err_set(-errno, "'%s/data.mdb'", directory);
	int r = mapping_settle(map, options);
	if (r == 0 && options->mode == ENV_WRITE)
		r = datafile_set_modes(directory, options->file_mode);
	if (r < 0)
		return r;
	*ret_map = TAKE(map);
	return 0;
}

/* ---- one mapping for all handles ---------------------------------------- */

static int registry_take(
	const char *directory, const struct env_options *options, struct mapping **ret_map)
{
	char path[4096];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/data.mdb", directory);
	int exists = stat(path, &st) == 0;
	if (!exists && (errno != ENOENT || options->mode != ENV_WRITE))
		return err_set(-errno, "opening '%s'", path);
	struct mapping *map = exists ? registry.mappings : NULL;
	/* One read as a copy until now stays without pins. */
	while (map && (map->device != st.st_dev || map->inode != st.st_ino ||
			      map->forks != forks_count() ||
			      __atomic_load_n(&map->is_outdated, __ATOMIC_RELAXED) ||
			      (options->mode == ENV_READ && map->mode == ENV_COPY)))
		map = map->next;
	if (map) {
		REQUIRE(map->n_databases == options->n_databases);
		if (options->mode == ENV_WRITE && (map->mode != ENV_WRITE || map->has_writer))
			return err_say(
				ERR_LOCKED, "'%s' is open in this process already", map->path);
		if (options->mode == ENV_WRITE)
			(void)mdb_env_set_flags(map->mdb, MDB_NOSYNC, !options->durable);
	} else {
		if (options->mode != ENV_WRITE && st.st_size == 0)
			return err_say(ERR_CORRUPT, "'%s' is empty", path);
		int r = mapping_open(directory, options, &map);
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
	(void)pthread_once(&once, env_watch_forks);
	AUTO_FREE struct env *env = calloc(1, sizeof(*env));
	if (!env)
		return err_set(-ENOMEM, "opening '%s'", directory);
	(void)pthread_mutex_lock(&registry.lock);
	int r = registry_take(directory, options, &env->map);
	(void)pthread_mutex_unlock(&registry.lock);
	if (r < 0)
		return r;
	env->magic = ENV_MAGIC;
	env->mode = options->mode;
	*ret_env = TAKE(env);
	return 0;
}

bool env_is_written_here(uint64_t device, uint64_t inode)
{
	bool found = false;

	(void)pthread_mutex_lock(&registry.lock);
	for (const struct mapping *map = registry.mappings; map; map = map->next)
		found |= map->device == device && map->inode == inode && map->mode == ENV_WRITE;
	(void)pthread_mutex_unlock(&registry.lock);
	return found;
}

bool env_is_outdated(const struct env *env)
{
	CHECK_OBJ(env, ENV_MAGIC);
	return __atomic_load_n(&env->map->is_outdated, __ATOMIC_RELAXED);
}

bool env_is_pinned(const struct env *env)
{
	CHECK_OBJ(env, ENV_MAGIC);
	return env->map->pins || env->map->own_page;
}

void env_close(struct env **env)
{
	if (!*env)
		return;
	CHECK_OBJ(*env, ENV_MAGIC);
	(void)pthread_mutex_lock(&registry.lock);
	struct mapping *map = (*env)->map;
	if ((*env)->mode == ENV_WRITE)
		map->has_writer = false;
	if (--map->handles == 0) {
		struct mapping **link = &registry.mappings;
		while (*link && *link != map)
			link = &(*link)->next;
		REQUIRE(*link);
		*link = map->next;
		/* Gives preallocated blocks back after LMDB has closed the file: by then the path
		 * may name another writer's. */
		bool cut = map->writemap && map->forks == forks_count();
		AUTO_FD int fd = cut ? fcntl(mapping_fd(map), F_DUPFD_CLOEXEC, 0) : -1;
		uint64_t bytes = mapping_state_end(map);
		mapping_free(&map);
		if (fd >= 0)
			datafile_cut(fd, bytes);
	}
	(void)pthread_mutex_unlock(&registry.lock);
	(*env)->magic = 0;
	free(*env);
	*env = NULL;
}

/* ---- content of an environment ------------------------------------------ */

int txn_info(struct txn *txn, struct env_info *ret_info)
{
	const struct mapping *map = txn->map;
	struct env_info result = {0};
	MDB_envinfo info;
	uint64_t pages;

	int r = mapping_count_pages(map, txn->mdb, true, &pages);
	if (r < 0)
		return r;
	(void)mdb_env_info(map->mdb, &info);
	result.map_bytes = info.me_mapsize;
	result.file_bytes = mapping_state_end(map);
	/* Only a writer refuses a file with fewer pages than it counts. */
	if (pages > result.file_bytes / map->page_size)
		pages = result.file_bytes / map->page_size;
	result.used_bytes = pages * map->page_size;
	result.last_txn = info.me_last_txnid;
	*ret_info = result;
	return 0;
}

int env_info(struct env *env, struct env_info *ret_info)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	int r = txn_begin_read(env, &txn);

	return r < 0 ? r : txn_info(txn, ret_info);
}

int env_clean_pins(struct env *env)
{
	CHECK_OBJ(env, ENV_MAGIC);
	REQUIRE(env->mode == ENV_WRITE);
	if (mapping_is_forked(env->map))
		return mapping_forked(env->map);
	int r = mapping_advance(env->map, true);
	int removed = env->map->scan ? pin_scan_clean(env->map->scan) : 0;
	return r < 0 ? r : removed;
}

/* Makes a scan of the environment's pin files; NULL when it has no places. */
static int mapping_open_scan(const struct mapping *map, struct pin_scan **ret_scan)
{
	const struct pin_page *page = map->own_page ? map->own_page : map->page;

	return page && map->places ? pin_scan_open(page->inode, map->places, ret_scan) : 0;
}

int env_each_reader(struct env *env, pin_scan_fn *fn, void *arg)
{
	CLEANUP(pin_scan_close) struct pin_scan *scan = NULL;

	CHECK_OBJ(env, ENV_MAGIC);
	const struct mapping *map = env->map;
	const struct pin_page *page = map->own_page ? map->own_page : map->page;
	int r = mapping_open_scan(map, &scan);
	if (r < 0 || !scan)
		return r;
	/* All states from the floor on are kept. */
	const struct pin_choice choice = {.floor = __atomic_load_n(&page->floor, __ATOMIC_SEQ_CST)};
	return pin_scan_each(scan, &choice, fn, arg);
}

int env_each_replaced_reader(struct env *a, struct env *b, pin_scan_fn *fn, void *arg)
{
	CLEANUP(pin_scan_close) struct pin_scan *scan = NULL;
	const uint64_t inodes[2] = {a->map->inode, b->map->inode};
	const struct pin_choice choice = {.inodes = inodes, .n = 2};

	CHECK_OBJ(a, ENV_MAGIC);
	CHECK_OBJ(b, ENV_MAGIC);
	int r = mapping_open_scan(a->map, &scan);
	return r == 0 && scan ? pin_scan_each(scan, &choice, fn, arg) : r;
}

size_t env_page_size(const struct env *env)
{
	CHECK_OBJ(env, ENV_MAGIC);
	return env->map->page_size;
}

int env_check(struct env *env)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;

	CHECK_OBJ(env, ENV_MAGIC);
	int r = mapping_check_metas(env->map, true);
	if (r == 0)
		r = txn_begin_read(env, &txn);
	return r < 0 ? r : mapping_check_trees(env->map, txn->mdb, true);
}

int env_sync(struct env *env)
{
	CHECK_OBJ(env, ENV_MAGIC);
	REQUIRE(env->mode == ENV_WRITE);
	int rc = mdb_env_sync(env->map->mdb, 1);
	return rc ? mapping_failed(env->map, rc, "syncing") : 0;
}
