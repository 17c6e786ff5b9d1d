/* SPDX-License-Identifier: Apache-2.0 */
#include "store/generation.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/proc.h"
#include "store/hints.h"
#include "store/state.h"

#define GENERATION_MAGIC 0x6b1e0e05u
#define LOCK_TRIES       500
#define LOCK_PAUSE_NS    10000000L /* 500 of them are 5 s */

/* In the order of removal: without STATE, what is left after a kill is no generation any more. */
static const char *const file_names[] = {"STATE", ".STATE.new", "data.mdb", "lock.mdb", "open.lock",
	HINTS_FILE, HINTS_FILE_NEW};

struct generation {
	uint32_t magic;
	uint32_t number;
	int fd; /* of its folder */
	bool is_writer;
	const struct generation_kind *kind;
	struct env *env;
	struct state state;
};

/* ---- folders --------------------------------------------------------------------------------- */

static void folder_name(uint32_t number, char name[32])
{
	(void)snprintf(name, 32, "gen-%" PRIu32, number);
}

/* 0 when NAME is no generation's. */
static uint32_t folder_number(const char *name)
{
	char again[32];
	uint32_t number;

	if (sscanf(name, "gen-%" SCNu32, &number) != 1)
		return 0;
	folder_name(number, again);
	return strcmp(name, again) == 0 ? number : 0;
}

static void close_folder(DIR **directory)
{
	if (*directory)
		(void)closedir(*directory);
	*directory = NULL;
}

typedef int folder_fn(void *arg, int directory_fd, uint32_t number);

/* Calls FN for each generation there is, until it returns non-zero. */
static int each_folder(int directory_fd, folder_fn *fn, void *arg)
{
	AUTO_FD int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(close_folder) DIR *directory = fd < 0 ? NULL : fdopendir(fd);

	if (!directory)
		return err_set(-errno, "reading the folder of generations");
	fd = -1; /* it is the DIR's now */
	for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
		uint32_t number = folder_number(entry->d_name);
		int r = number ? fn(arg, directory_fd, number) : 0;
		if (r)
			return r;
	}
	return 0;
}

static int open_folder(int directory_fd, uint32_t number, int *ret_fd)
{
	char name[32];

	folder_name(number, name);
	int fd = openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_set(-errno, "%s", name);
	*ret_fd = fd;
	return 0;
}

/* The path as it is now: a store may have been moved since its folder was opened. */
static int folder_path(int fd, char path[PATH_MAX])
{
	char link[64];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, PATH_MAX - 16);
	if (n < 0)
		return err_set(-errno, "'%s' (is /proc mounted?)", link);
	path[n] = '\0';
	return 0;
}

/* ---- open.lock ------------------------------------------------------------------------------- */

static void unlock(int *lock_fd)
{
	cleanup_fd(lock_fd);
}

/* 5 s at most: somebody who is stopped inside an open must not stop a daemon for ever. */
static int lock(int fd, int *ret_lock)
{
	AUTO_FD int lock_fd = openat(fd, "open.lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (lock_fd < 0)
		return err_set(-errno, "open.lock");
	for (int i = 0; flock(lock_fd, LOCK_EX | LOCK_NB) < 0; i++) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_set(-errno, "open.lock");
		if (i == LOCK_TRIES)
			return err_say(ERR_LOCKED,
				"another process has held open.lock for 5 s: it is stopped while opening "
				"the store, end it");
		(void)nanosleep(&(struct timespec){0, LOCK_PAUSE_NS}, NULL);
	}
	if (fstat(lock_fd, &st) < 0 || st.st_nlink == 0)
		return err_set(-ENOENT, "it was removed meanwhile");
	*ret_lock = TAKE_FD(lock_fd);
	return 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void generation_free(struct generation **gen)
{
	if (!*gen)
		return;
	env_close(&(*gen)->env);
	cleanup_fd(&(*gen)->fd);
	(*gen)->magic = 0;
	free(*gen);
	*gen = NULL;
}

static struct generation *generation_new(const struct generation_kind *kind, uint32_t number)
{
	struct generation *gen = calloc(1, sizeof(*gen));

	if (!gen)
		return NULL;
	gen->magic = GENERATION_MAGIC;
	gen->kind = kind;
	gen->number = number;
	gen->fd = -1;
	return gen;
}

static int pass_failpoint(const struct generation_kind *kind)
{
	return failpoint_pass(strcmp(kind->what, "index") == 0 ? FAILPOINT_INDEX_OPEN
							      : FAILPOINT_JOURNAL_OPEN);
}

static int open_env(struct generation *gen, enum env_mode mode,
	const struct generation_options *options)
{
	char path[PATH_MAX];

	int r = folder_path(gen->fd, path);
	if (r == 0)
		r = pass_failpoint(gen->kind);
	if (r < 0)
		return r;
	struct env_options env_options = {
		.mode = mode,
		.databases = gen->kind->databases,
		.n_databases = gen->kind->n_databases,
		.map_bytes = options ? options->map_bytes : 0,
		.writemap = gen->kind->writemap && !(options && options->durable),
		.durable = options && options->durable,
		.file_mode = options ? options->file_mode : 0600,
	};
	return env_open(path, &env_options, &gen->env);
}

/*
 * STATE says dirty before the first write. It promises durability only from where it holds: what an
 * earlier run left unsynced is synced first.
 */
static int start_writing(struct generation *gen, const struct generation_options *options)
{
	bool synced = gen->state.clean || gen->state.durable;

	gen->is_writer = true;
	gen->state.clean = false;
	gen->state.durable = options->durable && synced;
	if (proc_boot_id(gen->state.boot) < 0)
		memcpy(gen->state.boot, "unknown", sizeof("unknown"));
	int r = state_inode(gen->fd, &gen->state.inode);
	if (r == 0)
		r = state_write(gen->fd, &gen->state, options->file_mode);
	if (r == 0)
		r = open_env(gen, ENV_WRITE, options);
	if (r < 0 || !options->durable || synced)
		return r;
	r = env_sync(gen->env);
	gen->state.durable = true;
	return r < 0 ? r : state_write(gen->fd, &gen->state, options->file_mode);
}

static int open_existing(struct generation *gen, int directory_fd,
	const struct generation_options *options)
{
	CLEANUP(unlock) int lock_fd = -1;

	int r = open_folder(directory_fd, gen->number, &gen->fd);
	if (r == 0)
		r = lock(gen->fd, &lock_fd);
	if (r == 0)
		r = state_read(gen->fd, &gen->state);
	if (r == 0)
		r = state_check(gen->fd, &gen->state, gen->kind->format);
	return r < 0 ? r : start_writing(gen, options);
}

int generation_open_write(int directory_fd, const struct generation_kind *kind,
	const struct generation_options *options, uint32_t number, struct generation **ret_gen)
{
	CLEANUP(generation_free) struct generation *gen = generation_new(kind, number);

	if (!gen)
		return err_set(-ENOMEM, "opening the %s", kind->what);
	int r = open_existing(gen, directory_fd, options);
	if (r < 0)
		return err_add(r, "%s generation %" PRIu32, kind->what, number);
	*ret_gen = TAKE(gen);
	return 0;
}

static int highest(void *arg, int directory_fd, uint32_t number)
{
	uint32_t *max = arg;

	(void)directory_fd;
	if (number > *max)
		*max = number;
	return 0;
}

static int make_file(int fd, const char *name, unsigned mode)
{
	AUTO_FD int file = openat(fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode);

	if (file < 0 || fchmod(file, mode) < 0)
		return err_set(-errno, "making %s", name);
	return 0;
}

/* The folder with open.lock and an empty data.mdb, so that STATE can name its inode. */
static int make_folder(struct generation *gen, int directory_fd, unsigned file_mode)
{
	unsigned mode = file_mode & 0040 ? 02750 : 0700;
	char name[32];

	folder_name(gen->number, name);
	if (mkdirat(directory_fd, name, 0700) < 0)
		return err_set(-errno, "making %s", name);
	int r = open_folder(directory_fd, gen->number, &gen->fd);
	if (r == 0 && fchmod(gen->fd, mode) < 0)
		r = err_set(-errno, "making %s", name);
	if (r == 0)
		r = make_file(gen->fd, "open.lock", file_mode);
	if (r == 0)
		r = make_file(gen->fd, "data.mdb", file_mode);
	if (r == 0 && fsync(directory_fd) < 0)
		r = err_set(-errno, "syncing the folder");
	return r;
}

static int fill_folder(struct generation *gen, int directory_fd,
	const struct generation_options *options)
{
	CLEANUP(unlock) int lock_fd = -1;

	int r = make_folder(gen, directory_fd, options->file_mode);
	if (r == 0)
		r = lock(gen->fd, &lock_fd);
	return r < 0 ? r : start_writing(gen, options);
}

/* A full disk must not leave a folder at each attempt. Keeps the sentence. */
static void remove_failed(int directory_fd, uint32_t number)
{
	AUTO_FD int fd = -1;
	char name[32];

	folder_name(number, name);
	fd = openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	for (size_t i = 0; i < sizeof(file_names) / sizeof(file_names[0]); i++)
		(void)unlinkat(fd, file_names[i], 0); /* what stays is removed at the next start */
	(void)unlinkat(directory_fd, name, AT_REMOVEDIR);
}

int generation_create(int directory_fd, const struct generation_kind *kind,
	const struct generation_options *options, const uint8_t uuid[16],
	struct generation **ret_gen)
{
	CLEANUP(generation_free) struct generation *gen = generation_new(kind, 0);

	if (!gen)
		return err_set(-ENOMEM, "making a new %s", kind->what);
	/* Above what CURRENT names, too: nobody must take a new one for an old one. */
	(void)generation_current(directory_fd, &gen->number);
	int r = each_folder(directory_fd, highest, &gen->number);
	if (r < 0)
		return r;
	uint32_t number = ++gen->number;
	memcpy(gen->state.uuid, uuid, 16);
	gen->state.format = kind->format;
	gen->state.clean = true; /* nothing is there that could be unsynced */
	r = fill_folder(gen, directory_fd, options);
	if (r < 0) {
		generation_free(&gen);
		remove_failed(directory_fd, number);
		return err_add(r, "new %s generation %" PRIu32, kind->what, number);
	}
	*ret_gen = TAKE(gen);
	return 0;
}

static int open_for_reading(struct generation *gen, int directory_fd, bool copy)
{
	CLEANUP(unlock) int lock_fd = -1;

	int r = open_folder(directory_fd, gen->number, &gen->fd);
	if (r == 0 && !copy)
		r = lock(gen->fd, &lock_fd);
	if (r == 0)
		r = state_read(gen->fd, &gen->state);
	if (r == 0)
		r = state_check(gen->fd, &gen->state, gen->kind->format);
	return r < 0 ? r : open_env(gen, copy ? ENV_COPY : ENV_READ, NULL);
}

int generation_open_read(int directory_fd, const struct generation_kind *kind, uint32_t number,
	bool copy, struct generation **ret_gen)
{
	CLEANUP(generation_free) struct generation *gen = generation_new(kind, number);

	if (!gen)
		return err_set(-ENOMEM, "opening the %s", kind->what);
	int r = open_for_reading(gen, directory_fd, copy);
	if (r == ERR_CORRUPT)
		r = err_say(r, "%s; its daemons make it anew when they are started again", err_text(r));
	if (r < 0)
		return err_add(r, "%s generation %" PRIu32, kind->what, number);
	*ret_gen = TAKE(gen);
	return 0;
}

void generation_close(struct generation **gen)
{
	struct generation *g = *gen;
	struct err_kept kept;
	struct stat st;

	if (!g)
		return;
	CHECK_OBJ(g, GENERATION_MAGIC);
	err_keep(&kept);
	/* What cannot be synced or written down stays dirty, which is the truth. */
	if (g->is_writer && env_sync(g->env) == 0 && fstatat(g->fd, "STATE", &st, 0) == 0) {
		env_close(&g->env);
		g->state.clean = true;
		(void)state_write(g->fd, &g->state, st.st_mode & 0777);
	}
	err_restore(&kept);
	generation_free(gen);
}

struct env *generation_env(struct generation *gen)
{
	CHECK_OBJ(gen, GENERATION_MAGIC);
	return gen->env;
}

int generation_folder_fd(const struct generation *gen)
{
	CHECK_OBJ(gen, GENERATION_MAGIC);
	return gen->fd;
}

uint32_t generation_number(const struct generation *gen)
{
	CHECK_OBJ(gen, GENERATION_MAGIC);
	return gen->number;
}

bool generation_is_there(const struct generation *gen, int directory_fd)
{
	struct stat ours, there;
	char name[32];

	CHECK_OBJ(gen, GENERATION_MAGIC);
	folder_name(gen->number, name);
	return fstat(gen->fd, &ours) == 0 &&
		fstatat(directory_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
		ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

const uint8_t *generation_uuid(const struct generation *gen)
{
	CHECK_OBJ(gen, GENERATION_MAGIC);
	return gen->state.uuid;
}

/* ---- room ------------------------------------------------------------------------------------ */

int generation_require_room(int directory_fd, const char *what, uint64_t live)
{
	uint64_t wanted = live + live / 5;
	struct statvfs disk;

	if (fstatvfs(directory_fd, &disk) < 0)
		return err_set(-errno, "the disk of the %s", what);
	uint64_t free_bytes = (uint64_t)(geteuid() ? disk.f_bavail : disk.f_bfree) * disk.f_frsize;
	if (free_bytes >= wanted)
		return 0;
	return err_say(-ENOSPC,
		"a second %s needs %" PRIu64 " MiB of disk space, and %" PRIu64 " MiB are free: make "
		"room there, it is built then by itself",
		what, (wanted >> 20) + 1, free_bytes >> 20);
}

uint64_t generation_bytes_on_disk(int directory_fd, uint32_t number)
{
	char name[32], path[64];
	struct stat st;

	folder_name(number, name);
	(void)snprintf(path, sizeof(path), "%s/data.mdb", name);
	if (fstatat(directory_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return (uint64_t)st.st_blocks * 512;
}

/* ---- which one ------------------------------------------------------------------------------- */

int generation_current(int directory_fd, uint32_t *ret_number)
{
	char text[64];

	int r = read_file(directory_fd, "CURRENT", text, sizeof(text));
	if (r == -ENOENT) {
		err_clear();
		return NOT_FOUND;
	}
	if (r < 0)
		return r;
	text[strcspn(text, "\n")] = '\0';
	uint32_t number = folder_number(text);
	if (!number)
		return err_set(ERR_CORRUPT, "CURRENT");
	*ret_number = number;
	return FOUND;
}

int generation_publish(int directory_fd, uint32_t number)
{
	char name[32], text[40];
	struct stat st;

	folder_name(number, name);
	(void)snprintf(text, sizeof(text), "%s\n", name);
	if (fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(-errno, "%s", name);
	return replace_file(directory_fd, "CURRENT", text, st.st_mode & 0040 ? 0640 : 0600);
}

int generation_read_uuid(int directory_fd, uint32_t number, uint8_t ret_uuid[16])
{
	AUTO_FD int fd = -1;
	struct state state;

	int r = open_folder(directory_fd, number, &fd);
	if (r == 0)
		r = state_read(fd, &state);
	if (r < 0)
		return r;
	memcpy(ret_uuid, state.uuid, 16);
	return 0;
}

struct search {
	const uint8_t *uuid;
	uint32_t number;
};

/* One that cannot be read is not the one. */
static int match(void *arg, int directory_fd, uint32_t number)
{
	struct search *search = arg;
	uint8_t uuid[16];

	if (generation_read_uuid(directory_fd, number, uuid) == 0 &&
		memcmp(uuid, search->uuid, 16) == 0 && number > search->number)
		search->number = number;
	return 0;
}

int generation_find(int directory_fd, const uint8_t uuid[16], uint32_t *ret_number)
{
	struct search search = {.uuid = uuid};
	uint32_t current;

	if (generation_current(directory_fd, &current) == FOUND) {
		(void)match(&search, directory_fd, current);
		if (search.number) {
			*ret_number = current;
			return FOUND;
		}
	}
	int r = each_folder(directory_fd, match, &search);
	if (r < 0)
		return r;
	err_clear();
	if (!search.number)
		return NOT_FOUND;
	*ret_number = search.number;
	return FOUND;
}

/* ---- removing -------------------------------------------------------------------------------- */

struct removal {
	const uint32_t *keep;
	size_t n_keep;
	int removed;
};

static int remove_files(int fd)
{
	for (size_t i = 0; i < sizeof(file_names) / sizeof(file_names[0]); i++)
		if (unlinkat(fd, file_names[i], 0) < 0 && errno != ENOENT)
			return err_set(-errno, "removing %s", file_names[i]);
	return 0;
}

/* One whose open.lock is held is being opened: it stays until the next time. */
static int remove_folder(void *arg, int directory_fd, uint32_t number)
{
	struct removal *removal = arg;
	AUTO_FD int fd = -1;
	AUTO_FD int lock_fd = -1;
	char name[32];

	for (size_t i = 0; i < removal->n_keep; i++)
		if (removal->keep[i] == number)
			return 0;
	folder_name(number, name);
	int r = open_folder(directory_fd, number, &fd);
	if (r < 0)
		return r;
	lock_fd = openat(fd, "open.lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (lock_fd >= 0 && flock(lock_fd, LOCK_EX | LOCK_NB) < 0)
		return 0;
	r = remove_files(fd);
	if (r < 0)
		return err_add(r, "%s", name);
	if (unlinkat(directory_fd, name, AT_REMOVEDIR) < 0)
		return err_set(-errno, "removing %s", name);
	removal->removed++;
	return 0;
}

int generation_remove_except(int directory_fd, const uint32_t *keep, size_t n_keep)
{
	struct removal removal = {.keep = keep, .n_keep = n_keep};
	int r = each_folder(directory_fd, remove_folder, &removal);

	return r < 0 ? r : removal.removed;
}

int generation_remove_others(int directory_fd, uint32_t keep)
{
	return generation_remove_except(directory_fd, &keep, 1);
}
