/* SPDX-License-Identifier: Apache-2.0 */
#include "store/pins/pin_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/proc.h"
#include "store/env/datafile.h"
#include "store/env/forks.h"

#define PINS_MAGIC 0x6b70696eu
#define MAKE_TRIES 8 /* a writer may remove a file before it is locked */

struct pin_file {
	struct pin_file *next; /* of the process, for pins_in_child() */
	enum pin_kind kind;
	int fd;      /* -1: PIN_MARK */
	int mark_fd; /* of the pin page */
	int lock_fd; /* another open file than the map's: a forked child keeps the map */
	/* the process has closed its descriptors: no more slots from it. Atomic, relaxed */
	bool is_lost;
	unsigned pins; /* slots in use */
	struct pin_place_id place;
	struct pin_place_id own, page; /* the files behind fd and lock_fd, and behind mark_fd */
	char path[4096 + PIN_NAME_LENGTH + 2];
	/* of the file's full size; unless PIN_MAPPED, memory of this process */
	uint8_t *map;
	uint32_t chunks;               /* of the file: beyond them is nothing to touch */
	uint64_t used[PIN_CHUNKS_MAX]; /* bit i of word c: slot i of chunk c */
};

struct pins {
	uint32_t magic;
	uint64_t inode;
	char page[4096];
	struct pin_places places;
	struct pin_file *file; /* for new slots; NULL: none yet */
	uint64_t epoch;        /* when FILE was last found in place */
};

/* All pin files of this process. The lock is held only for short system calls, to keep forks out
 * between the opening of a file and its entry here. */
static struct {
	pthread_mutex_t lock;
	pthread_once_t once;
	struct pin_file *files;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static void pins_before_fork(void)
{
	(void)pthread_mutex_lock(&all.lock);
}

static void pins_after_fork(void)
{
	(void)pthread_mutex_unlock(&all.lock);
}

static void pins_in_child(void)
{
	for (struct pin_file *file = all.files; file; file = file->next) {
		cleanup_fd(&file->mark_fd);
		cleanup_fd(&file->lock_fd);
		cleanup_fd(&file->fd);
	}
	all.files = NULL;
	(void)pthread_mutex_init(&all.lock, NULL);
}

static void pins_watch_forks(void)
{
	forks_watch(pins_before_fork, pins_after_fork, pins_in_child);
}

/* ---- the file ----------------------------------------------------------- */

static struct pin_head *pin_file_head(const struct pin_file *file)
{
	return (struct pin_head *)(void *)file->map;
}

static bool pin_place_is(struct pin_place_id a, struct pin_place_id b)
{
	return a.device == b.device && a.inode == b.inode;
}

static struct pin_place_id pin_file_identify(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? (struct pin_place_id){st.st_dev, st.st_ino}
				   : (struct pin_place_id){0};
}

static bool pin_file_has(int fd, struct pin_place_id id)
{
	return pin_place_is(pin_file_identify(fd), id);
}

/* Forgets a descriptor closed by the process: its number may be another file's now. */
static void pin_file_forget(int *fd, struct pin_place_id id)
{
	if (!pin_file_has(*fd, id))
		*fd = -1;
}

static void pin_file_forget_lost(struct pin_file *file)
{
	pin_file_forget(&file->fd, file->own);
	pin_file_forget(&file->lock_fd, file->own);
	pin_file_forget(&file->mark_fd, file->page);
}

/* Frees the memory, removes the file. The caller holds all.lock. */
static void pin_file_free(struct pin_file **file_pointer)
{
	struct pin_file *file = TAKE(*file_pointer);

	if (!file)
		return;
	struct pin_file **link = &all.files;
	while (*link && *link != file)
		link = &(*link)->next;
	if (*link)
		*link = file->next;
	if (file->map)
		(void)munmap(file->map, PIN_CHUNKS_MAX * PIN_CHUNK_BYTES);
	pin_file_forget_lost(file);
	if (file->fd >=
		0) /* else there is none, or this is a forked child, and the file its parent's */
		(void)unlink(file->path);
	cleanup_fd(&file->lock_fd);
	cleanup_fd(&file->mark_fd);
	cleanup_fd(&file->fd);
	free(file);
}

/* Makes the file one chunk longer. It is mapped once and whole, because a chunk can be smaller than
 * a page of the machine. A full file system is an error here, and no SIGBUS later. */
static int pin_file_grow(struct pin_file *file)
{
	if (file->chunks == PIN_CHUNKS_MAX)
		return err_say(ERR_READERS_FULL,
			"this process holds %u snapshots of one database, the most possible: close "
			"unneeded ones",
			PIN_CHUNKS_MAX * PIN_CHUNK_SLOTS - 1);
	int rc = file->kind == PIN_MARK ? 0
		 : !proc_may_write((file->chunks + 1) * (uint64_t)PIN_CHUNK_BYTES)
			 ? EFBIG
			 : posix_fallocate(file->fd, (off_t)file->chunks * (off_t)PIN_CHUNK_BYTES,
				   PIN_CHUNK_BYTES);
	if (rc)
		return err_set(-rc, "making '%s' longer", file->path);
	if (!file->map) {
		int flags = file->kind == PIN_MAPPED ? MAP_SHARED
						     : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
		void *memory = mmap(NULL, PIN_CHUNKS_MAX * PIN_CHUNK_BYTES, PROT_READ | PROT_WRITE,
			flags, file->kind == PIN_MAPPED ? file->fd : -1, 0);
		if (memory == MAP_FAILED)
			return err_set(-errno, "mapping '%s'", file->path);
		file->map = memory;
		file->used[0] = 1; /* the head */
	}
	file->chunks++;
	return 0;
}

/* Writes BYTES of the map from AT on into the file. Returns an errno. */
static int pin_file_write(const struct pin_file *file, size_t at, size_t bytes)
{
	ssize_t n = -1;
	int fails = failpoint_pass(FAILPOINT_PINS_WRITE);

	err_ignore(fails, "the caller reports it");
	if (fails < 0)
		return ENOSPC;
	if (!proc_may_write(at + bytes))
		return EFBIG;
	do
		n = pwrite(file->fd, file->map + at, bytes, (off_t)at);
	while (n < 0 && errno == EINTR);
	return n < 0 ? errno : n == (ssize_t)bytes ? 0 : ENOSPC;
}

int pin_write(const struct pin *pin)
{
	return pin_file_write(pin->file, (size_t)pin->number * PIN_SLOT_BYTES, sizeof(*pin->word));
}

static int pin_file_describe(struct pin_file *file)
{
	struct pin_head *head = pin_file_head(file);
	struct stat st;

	head->slots = 1;
	head->pid = (int32_t)getpid();
	head->pid_namespace = stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
	(void)snprintf(head->program, sizeof(head->program), "%s", program_invocation_short_name);
	__atomic_store_n(&head->magic, PIN_FILE_MAGIC, __ATOMIC_RELEASE);
	int error = file->kind == PIN_WRITTEN ? pin_file_write(file, 0, PIN_CHUNK_BYTES) : 0;
	return error ? err_set(-error, "writing '%s'", file->path) : 0;
}

/* Returns whether a store into a map of the file needs no new block once its blocks are
 * reserved. */
static enum pin_kind pin_file_choose(int fd)
{
	static const uint32_t kept[] = {
		0x01021994 /* tmpfs */, 0x858458f6 /* ramfs */, 0xef53 /* ext2 to ext4 */};
	int fails = failpoint_pass(FAILPOINT_PINS_MAP);
	struct statfs disk;

	err_ignore(fails, "as on btrfs");
	for (size_t i = 0; fails == 0 && fstatfs(fd, &disk) == 0 && i < ARRAY_SIZE(kept); i++)
		if ((uint32_t)disk.f_type == kept[i])
			return PIN_MAPPED;
	return PIN_WRITTEN;
}

/* Holds the byte NUMBER of the pin page PATH. A lock beyond the end of a file is one like
 * others. */
static int pin_file_mark(struct pin_file *file, const char *path, uint64_t number)
{
	struct flock mark = {
		.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t)number, .l_len = 1};

	file->mark_fd = proc_apart(open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
	if (file->mark_fd < 0)
		return err_set(-errno, "marking '%s'", path);
	file->page = pin_file_identify(file->mark_fd);
	return fcntl(file->mark_fd, F_OFD_SETLK, &mark) == 0
		       ? 0
		       : err_set(-errno, "marking '%s'", path);
}

/* Makes a file in the directory PLACE. Returns: 0; AGAIN: a writer removed it before it was
 * locked; errors. */
static int pin_file_make_in(const struct pins *pins, const char *place, struct pin_place_id id,
	struct pin_file **ret_file)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	CLEANUP(pin_file_free) struct pin_file *file = calloc(1, sizeof(*file));
	struct stat st;
	uint64_t word;

	if (!file)
		return err_set(-ENOMEM, "making a pin file");
	file->fd = file->lock_fd = file->mark_fd = -1;
	int r = proc_random(&word, sizeof(word));
	if (r < 0)
		return r;
	word &= PIN_NUMBER_MAX;
	(void)snprintf(file->path, sizeof(file->path), "%s/%016" PRIx64 "-%016" PRIx64, place,
		pins->inode, word);
	file->place = id;
	r = failpoint_pass(FAILPOINT_PINS_MAKE);
	if (r < 0)
		return r;
	file->fd = proc_apart(
		open(file->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
	if (file->fd < 0)
		return err_set(-errno, "making a file in '%s'", place);
	file->own = pin_file_identify(file->fd);
	file->kind = pin_file_choose(file->fd);
	if (!pin_place_is(pin_place_identify(place), id))
		return AGAIN; /* the directory was replaced */
	file->lock_fd = proc_apart(open(file->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC));
	if (file->lock_fd < 0 || fcntl(file->lock_fd, F_OFD_SETLK, &lock) < 0)
		return errno == EAGAIN || errno == ENOENT
			       ? AGAIN
			       : err_set(-errno, "locking '%s'", file->path);
	r = pin_file_mark(file, pins->page, word);
	if (r == 0)
		r = pin_file_grow(file);
	if (r == 0)
		r = pin_file_describe(file);
	if (r < 0)
		return r;
	/* Only now may others open it, so none of them can hold a lock on it. Others are all with
	 * access to the directory: its owner may be another user, also without a group (root reads
	 * a user's store). */
	if (fchmod(file->fd, 0644) < 0)
		return err_set(-errno, "'%s'", file->path);
	if (fstat(file->fd, &st) < 0 || st.st_nlink == 0)
		return AGAIN;
	file->next = all.files;
	all.files = file;
	*ret_file = TAKE(file);
	return 0;
}

static int pin_file_make(
	const struct pins *pins, const struct pin_page *page, struct pin_file **ret_file)
{
	int r = err_say(
		ERR_UNSUPPORTED, "a store with neither a directory 'pins' nor a runtime directory");

	for (int i = 0; i < PIN_PLACES; i++) {
		struct pin_place_id id = pin_place_identify(pins->places.path[i]);
		if (!pins->places.path[i][0])
			continue;
		if (id.inode && !pin_page_scans(page, id)) {
			r = err_say(ERR_LOCKED,
				"'%s' is another directory here than for the store's daemons",
				pins->places.path[i]);
			continue;
		}
		int tries = MAKE_TRIES;
		do
			r = pin_file_make_in(pins, pins->places.path[i], id, ret_file);
		while (r == AGAIN && --tries);
		if (r == 0)
			return 0;
		if (r == AGAIN)
			r = err_say(ERR_LOCKED,
				"files in '%s' are removed as soon as they are made",
				pins->places.path[i]);
	}
	if (err_is_shortage(r) || r == -EFBIG) /* another directory would not help */
		return err_add(r, "making a reader's pin file");
	return err_say(r,
		"a reader needs a directory for its pin file: %s. Mount the daemons' runtime "
		"directory at the same path, writable (the store itself may be read-only), and "
		"join its group",
		err_text(r));
}

/* Makes a mark, in place of a file without room. */
static int pin_file_make_mark(const struct pins *pins, struct pin_file **ret_file)
{
	CLEANUP(pin_file_free) struct pin_file *file = calloc(1, sizeof(*file));

	if (!file)
		return err_set(-ENOMEM, "opening a database");
	file->kind = PIN_MARK;
	file->fd = file->lock_fd = file->mark_fd = -1;
	int r = pin_file_mark(file, pins->page, PIN_MARK_ALL);
	if (r == 0)
		r = pin_file_grow(file);
	if (r < 0)
		return r;
	file->next = all.files;
	all.files = file;
	*ret_file = TAKE(file);
	return 0;
}

/* Returns whether the file is where it was made, and the writer looks there. */
static bool pin_file_in_place(const struct pin_file *file, const struct pin_page *page)
{
	struct stat there;

	return file->kind != PIN_MARK && !__atomic_load_n(&file->is_lost, __ATOMIC_RELAXED) &&
	       pin_page_scans(page, file->place) && stat(file->path, &there) == 0 &&
	       pin_file_has(file->fd, (struct pin_place_id){there.st_dev, there.st_ino});
}

/* ---- slots -------------------------------------------------------------- */

int pins_open(const char *directory, uint64_t inode, const struct pin_places *places,
	struct pins **ret_pins)
{
	struct pins *pins = calloc(1, sizeof(*pins));

	if (!pins)
		return err_set(-ENOMEM, "opening a database");
	(void)pthread_once(&all.once, pins_watch_forks);
	pins->magic = PINS_MAGIC;
	pins->inode = inode;
	(void)snprintf(pins->page, sizeof(pins->page), "%s/" PIN_PAGE_FILE, directory);
	pins->places = *places;
	*ret_pins = pins;
	return 0;
}

void pins_close(struct pins **pins)
{
	struct pins *p = TAKE(*pins);

	if (!p)
		return;
	CHECK_OBJ(p, PINS_MAGIC);
	(void)pthread_mutex_lock(&all.lock);
	pin_file_free(&p->file);
	(void)pthread_mutex_unlock(&all.lock);
	p->magic = 0;
	free(p);
}

/* Makes the writer read the slot NUMBER. */
static int pins_count_slot(struct pin_file *file, uint32_t number)
{
	struct pin_head *head = pin_file_head(file);

	if (number < head->slots)
		return 0;
	uint32_t before = head->slots;
	__atomic_store_n(&head->slots, number + 1, __ATOMIC_SEQ_CST);
	int error = file->kind == PIN_WRITTEN ? pin_file_write(file, 0, sizeof(*head)) : 0;
	if (error)
		head->slots = before;
	return error ? err_set(-error, "writing '%s'", file->path) : 0;
}

static int pins_take_slot(struct pin_file *file, uint64_t epoch, struct pin *ret_pin)
{
	int r = 0;

	for (uint32_t i = 0; i < PIN_CHUNKS_MAX; i++) {
		if (i == file->chunks) {
			r = pin_file_grow(file);
			if (r < 0)
				return r;
		}
		if (file->used[i] == UINT64_MAX)
			continue;
		uint32_t bit = (uint32_t)__builtin_ctzll(~file->used[i]),
			 number = i * PIN_CHUNK_SLOTS + bit;
		r = pins_count_slot(file, number);
		if (r < 0)
			return r;
		file->used[i] |= 1ull << bit;
		file->pins++;
		*ret_pin = (struct pin){.file = file,
			.kind = file->kind,
			.number = number,
			.epoch = epoch,
			.word = (uint64_t *)(void *)(file->map + (size_t)number * PIN_SLOT_BYTES)};
		return 0;
	}
	return pin_file_grow(file); /* reports a full file */
}

/* Returns true if a file can't be made, with the error R, because the store's disk is full. */
static bool pins_lack_room(const struct pins *pins, int r)
{
	return r == -ENOSPC || r == -EDQUOT || datafile_disk_is_full(pins->page);
}

/* Takes FILE, NULL for none, for new slots. */
static void pins_use(struct pins *pins, struct pin_file *file)
{
	struct pin_file *before = TAKE(pins->file);

	if (before && before->pins == 0) /* else the last pins_give() frees it */
		pin_file_free(&before);
	pins->file = file;
}

/* Holds a mark in place of a file, after the error R. */
static int pins_use_mark(struct pins *pins, int r)
{
	struct pin_file *mark = NULL;

	if (!pins_lack_room(pins, r))
		return r;
	err_ignore(r, "a mark takes no room");
	r = pin_file_make_mark(pins, &mark);
	if (r == 0)
		pins_use(pins, mark);
	return r;
}

/* Finds a file scanned by the writer for new slots, or a mark. A file replaces a mark as soon as
 * one can be made. */
static int pins_find_file(struct pins *pins, const struct pin_page *page, uint64_t epoch)
{
	struct pin_file *made = NULL;

	if (pins->file && __atomic_load_n(&pins->file->is_lost, __ATOMIC_RELAXED))
		pins_use(pins, NULL);
	bool is_mark = pins->file && pins->file->kind == PIN_MARK;
	if (pins->file && !is_mark && (epoch == pins->epoch || pin_file_in_place(pins->file, page)))
		return 0;
	if (!is_mark)
		pins_use(pins, NULL);
	int r = pin_file_make(pins, page, &made);
	if (r == 0)
		pins_use(pins, made);
	else if (!is_mark)
		r = pins_use_mark(pins, r);
	else if (pins_lack_room(pins, r)) {
		err_ignore(r, "the mark is held on");
		r = 0;
	}
	return r;
}

static int pins_take_locked(
	struct pins *pins, const struct pin_page *page, uint64_t epoch, struct pin *ret_pin)
{
	int r = pins_find_file(pins, page, epoch);

	if (r < 0)
		return r;
	pins->epoch = epoch;
	r = pins_take_slot(pins->file, epoch, ret_pin);
	if (r == -ENOSPC || r == -EDQUOT) {
		r = pins_use_mark(pins, r);
		if (r == 0)
			r = pins_take_slot(pins->file, epoch, ret_pin);
	}
	return r;
}

/* Gives the slot back; no more slots come from a file that IS_LOST, or from a mark without pins. */
static void pins_give_or_drop(struct pins *pins, struct pin *pin, bool is_lost)
{
	struct pin_file *file = pin->file;

	(void)pthread_mutex_lock(&all.lock);
	file->used[pin->number / PIN_CHUNK_SLOTS] &= ~(1ull << pin->number % PIN_CHUNK_SLOTS);
	file->pins--;
	if (file == pins->file && (is_lost || (file->kind == PIN_MARK && file->pins == 0)))
		pins->file = NULL;
	if (file->pins == 0 && file != pins->file)
		pin_file_free(&file);
	(void)pthread_mutex_unlock(&all.lock);
	*pin = (struct pin){0};
}

void pins_give(struct pins *pins, struct pin *pin)
{
	if (!pin->file)
		return;
	CHECK_OBJ(pins, PINS_MAGIC);
	pins_give_or_drop(pins, pin, pin_set(pin, 0) != 0);
}

void pins_drop(struct pins *pins, struct pin *pin)
{
	if (!pin->file)
		return;
	CHECK_OBJ(pins, PINS_MAGIC);
	pins_give_or_drop(pins, pin, true);
}

bool pins_check(struct pin *pin)
{
	struct pin_file *file = pin->file;

	if (file->kind == PIN_MARK ? pin_file_has(file->mark_fd, file->page)
				   : pin_file_has(file->lock_fd, file->own))
		return true;
	(void)pthread_mutex_lock(&all.lock);
	pin_file_forget_lost(file);
	__atomic_store_n(&file->is_lost, true, __ATOMIC_RELAXED);
	(void)pthread_mutex_unlock(&all.lock);
	pin->epoch = ~pin->epoch; /* the next snapshot takes another */
	return false;
}

int pins_take(struct pins *pins, const struct pin_page *page, struct pin *ret_pin)
{
	uint64_t epoch;
	int r = 0;

	CHECK_OBJ(pins, PINS_MAGIC);
	/* A starting writer changes the places, then the epoch, and then scans the old places. */
	do {
		epoch = __atomic_load_n(&page->epoch, __ATOMIC_SEQ_CST);
		if (ret_pin->file && pin_file_in_place(ret_pin->file, page)) {
			ret_pin->epoch = epoch;
			continue;
		}
		pins_give(pins, ret_pin);
		(void)pthread_mutex_lock(&all.lock);
		r = pins_take_locked(pins, page, epoch, ret_pin);
		(void)pthread_mutex_unlock(&all.lock);
	} while (r == 0 && __atomic_load_n(&page->epoch, __ATOMIC_SEQ_CST) != epoch);
	return r;
}
