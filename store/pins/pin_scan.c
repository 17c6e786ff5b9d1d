/* SPDX-License-Identifier: Apache-2.0 */
#include "store/pins/pin_scan.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/pins/pin_file.h"

#define PIN_SCAN_MAGIC 0x70736361u
#define FILES_MAX      4096
/* before a process holding back the floor is checked again */
#define ALIVE_NS  50000000u
#define IDLE_NS   1000000000u /* before another one is checked again */
#define CLEAN_MAX 1024        /* entries of a directory, in one call */

struct pin_scan_file {
	char name[PIN_NAME_LENGTH + 1];
	int fd;
	uid_t uid;
	bool is_dead;
	uint64_t asked_ns; /* when it was last found locked */
};

struct pin_scan {
	uint32_t magic;
	char prefix[20]; /* of the environment's files */
	DIR *places[PIN_PLACES];
	struct pin_scan_file *files;
	size_t n_files, files_room, most_files;
	size_t cleaned; /* entries of the places before the next one that pin_scan_clean() tries */
	uint8_t bytes[PIN_CHUNKS_MAX * PIN_CHUNK_BYTES];
};

int pin_scan_open(uint64_t inode, const struct pin_places *places, struct pin_scan **ret_scan)
{
	struct pin_scan *scan = calloc(1, sizeof(*scan));
	struct rlimit limit;

	if (!scan)
		return err_set(-ENOMEM, "looking for pin files");
	scan->magic = PIN_SCAN_MAGIC;
	/* Others make the files, and the process needs descriptors for itself. */
	bool is_small = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / 2 < FILES_MAX;
	scan->most_files = is_small ? limit.rlim_cur / 2 : FILES_MAX;
	(void)snprintf(scan->prefix, sizeof(scan->prefix), "%016" PRIx64 "-", inode);
	for (int i = 0; i < PIN_PLACES; i++)
		scan->places[i] = proc_list(AT_FDCWD, places->path[i]);
	*ret_scan = scan;
	return 0;
}

void pin_scan_close(struct pin_scan **scan)
{
	struct pin_scan *s = TAKE(*scan);

	if (!s)
		return;
	CHECK_OBJ(s, PIN_SCAN_MAGIC);
	for (size_t i = 0; i < s->n_files; i++)
		cleanup_fd(&s->files[i].fd);
	for (int i = 0; i < PIN_PLACES; i++)
		proc_end_list(&s->places[i]);
	free(s->files);
	s->magic = 0;
	free(s);
}

void pin_scan_identify(const struct pin_scan *scan, struct pin_place_id *ret_ids)
{
	struct stat st;

	CHECK_OBJ(scan, PIN_SCAN_MAGIC);
	for (int i = 0; i < PIN_PLACES; i++) {
		bool is_open = scan->places[i] && fstat(dirfd(scan->places[i]), &st) == 0;
		ret_ids[i] =
			is_open ? (struct pin_place_id){.device = st.st_dev, .inode = st.st_ino}
				: (struct pin_place_id){0};
	}
}

/* Returns whether a process holds a write lock on the file; only its owner can. */
static bool pin_scan_is_locked(int fd)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	return fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

static bool pin_scan_is_alive(struct pin_scan_file *file, uint64_t now, uint64_t believed_ns)
{
	if (now - file->asked_ns < believed_ns)
		return true;
	if (!pin_scan_is_locked(file->fd)) {
		file->is_dead = true;
		return false;
	}
	file->asked_ns = now;
	return true;
}

/* ---- the files ---------------------------------------------------------- */

static bool pin_scan_is_name(const struct pin_scan *scan, const char *name)
{
	return strncmp(name, scan->prefix, 17) == 0 && strlen(name) == PIN_NAME_LENGTH;
}

/* Opens a file. Returns: FOUND: the descriptor is the caller's; NOT_FOUND: nothing to read yet, or
 * no more; errors. */
static int pin_scan_open_file(int directory_fd, const char *name, struct pin_scan_file *ret_file)
{
	struct stat st;

	AUTO_FD int fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && (err_is_shortage(-errno) || errno == EIO))
		return err_set(-errno, "opening pin file '%s'", name);
	/* Its maker locks it, lets others read it, and pins only then. Files of dead processes take
	 * no room in the table. */
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !pin_scan_is_locked(fd))
		return NOT_FOUND;
	*ret_file = (struct pin_scan_file){.uid = st.st_uid, .fd = TAKE_FD(fd)};
	memcpy(ret_file->name, name, PIN_NAME_LENGTH);
	return FOUND;
}

/* Opens a new one. Returns: 0; NOT_FOUND: as above; errors. */
static int pin_scan_add(struct pin_scan *scan, int directory_fd, const char *name)
{
	struct pin_scan_file file;
	int r = pin_scan_open_file(directory_fd, name, &file);

	if (r != FOUND)
		return r;
	r = scan->n_files < scan->most_files
		    ? ARRAY_ADD(scan->files, scan->n_files, scan->files_room, file,
			      "the table of pin files")
		    : err_say(ERR_READERS_FULL,
			      "more than %zu processes read a database, or a program makes as many "
			      "pin files: 'ls -l' in pins/ of the runtime directory shows whose "
			      "they are%s",
			      scan->most_files,
			      scan->most_files < FILES_MAX ? "; for more readers raise the limit "
							     "of open files (LimitNOFILE=)"
							   : "");
	if (r < 0)
		(void)close(file.fd);
	return r;
}

/* Adds new files to the table. A file leaves it at its process's death. */
static int pin_scan_list(struct pin_scan *scan)
{
	size_t next = 0, known = scan->n_files;

	for (int i = 0; i < PIN_PLACES; i++) {
		if (!scan->places[i])
			continue;
		rewinddir(scan->places[i]);
		for (struct dirent *entry; (errno = 0, entry = readdir(scan->places[i]));) {
			if (!pin_scan_is_name(scan, entry->d_name))
				continue;
			size_t tried = 0; /* the order of a directory seldom changes */
			while (tried < known &&
				strcmp(scan->files[next % known].name, entry->d_name) != 0)
				tried++, next++;
			if (tried < known) {
				next++;
				continue;
			}
			int r = pin_scan_add(scan, dirfd(scan->places[i]), entry->d_name);
			if (r < 0)
				return r;
		}
		if (errno)
			return err_set(-errno, "reading the directory of pin files");
	}
	return 0;
}

/* Reads a file. Returns the number of its slots without the head; 0: it is not whole yet, or was
 * cut by its owner, who pins nothing then; errors. */
static int pin_scan_read(struct pin_scan *scan, const struct pin_scan_file *file)
{
	ssize_t n = pread(file->fd, scan->bytes, PIN_CHUNK_BYTES, 0);
	struct pin_head head;

	if (n < 0)
		return err_set(-errno, "reading a pin file");
	if (n < (ssize_t)sizeof(head))
		return 0;
	memcpy(&head, scan->bytes, sizeof(head));
	if (head.magic != PIN_FILE_MAGIC)
		return 0;
	if (head.slots > PIN_CHUNK_SLOTS && n == PIN_CHUNK_BYTES) {
		ssize_t more = pread(file->fd, scan->bytes + n, sizeof(scan->bytes) - (size_t)n, n);
		if (more < 0)
			return err_set(-errno, "reading a pin file");
		n += more;
	}
	uint32_t slots = (uint32_t)((size_t)n / PIN_SLOT_BYTES);
	slots = slots < head.slots ? slots : head.slots;
	return slots ? (int)slots - 1 : 0;
}

static uint64_t pin_scan_word(const struct pin_scan *scan, int slot)
{
	uint64_t word;

	memcpy(&word, scan->bytes + (size_t)(slot + 1) * PIN_SLOT_BYTES, sizeof(word));
	return word;
}

/* ---- the interface ------------------------------------------------------ */

int pin_scan_least(struct pin_scan *scan, uint64_t floor, uint64_t most, uint64_t *ret_least)
{
	uint64_t now = proc_monotonic_ns(), least = most;

	CHECK_OBJ(scan, PIN_SCAN_MAGIC);
	int r = pin_scan_list(scan);
	for (size_t i = 0; r == 0 && i < scan->n_files; i++) {
		struct pin_scan_file *file = &scan->files[i];
		uint64_t lowest = UINT64_MAX;
		int slots = pin_scan_read(scan, file);

		if (slots < 0)
			r = slots;
		/* A pin below the floor holds nothing: its state may be gone, as its reader
		 * sees. */
		for (int j = 0; j < slots; j++) {
			uint64_t pin = pin_scan_word(scan, j);
			if (pin >= floor && pin && pin < lowest)
				lowest = pin;
		}
		bool holds = lowest < least;
		if (pin_scan_is_alive(file, now, holds ? ALIVE_NS : IDLE_NS) && holds)
			least = lowest;
	}
	size_t kept = 0;
	for (size_t i = 0; i < scan->n_files; i++)
		if (scan->files[i].is_dead)
			cleanup_fd(&scan->files[i].fd);
		else
			scan->files[kept++] = scan->files[i];
	scan->n_files = kept;
	if (r < 0)
		return r;
	*ret_least = least;
	return 0;
}

static bool pin_scan_has(const struct pin_scan *scan, uint64_t number)
{
	char name[64];
	struct stat st;

	(void)snprintf(name, sizeof(name), "%s%016" PRIx64, scan->prefix, number);
	for (int i = 0; i < PIN_PLACES; i++)
		if (scan->places[i] &&
			fstatat(dirfd(scan->places[i]), name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return true;
	return false;
}

/* As pin_scan_misses(), of the bytes from FROM to before END. The kernel reports one lock of a
 * range. */
static int pin_scan_misses_in(
	const struct pin_scan *scan, int page_fd, off_t from, off_t end, bool *ret_missed)
{
	while (from < end && !*ret_missed) {
		struct flock lock = {.l_type = F_WRLCK,
			.l_whence = SEEK_SET,
			.l_start = from,
			.l_len = end - from};

		if (fcntl(page_fd, F_OFD_GETLK, &lock) < 0)
			return err_set(-errno, "looking for readers");
		if (lock.l_type == F_UNLCK)
			return 0;
		*ret_missed = lock.l_len != 1 || !pin_scan_has(scan, (uint64_t)lock.l_start);
		int r = *ret_missed
				? 0
				: pin_scan_misses_in(scan, page_fd, from, lock.l_start, ret_missed);
		if (r < 0)
			return r;
		from = lock.l_start + 1;
	}
	return 0;
}

int pin_scan_misses(const struct pin_scan *scan, int page_fd, bool *ret_missed)
{
	CHECK_OBJ(scan, PIN_SCAN_MAGIC);
	*ret_missed = false;
	return pin_scan_misses_in(scan, page_fd, 0, (off_t)PIN_NUMBER_MAX + 1, ret_missed);
}

int pin_scan_is_all_held(int page_fd, bool *ret_held)
{
	struct flock lock = {.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = (off_t)PIN_MARK_ALL,
		.l_len = 1};

	if (fcntl(page_fd, F_OFD_GETLK, &lock) < 0)
		return err_set(-errno, "looking for readers");
	*ret_held = lock.l_type != F_UNLCK;
	return 0;
}

/* Returns the pid in FILE; 0: it is of another namespace, or is that of another user's process. */
static int32_t pin_scan_pid(
	const struct pin_scan_file *file, const struct pin_head *head, uint64_t namespace)
{
	char path[32];
	struct stat st;

	if (head->pid_namespace != namespace)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/%" PRId32, head->pid);
	return stat(path, &st) == 0 && st.st_uid != file->uid ? 0 : head->pid;
}

/* Gives FILE's content to FN. Returns its result; an error. */
static int pin_scan_give(struct pin_scan *scan, struct pin_scan_file *file, uint64_t namespace,
	uint64_t floor, pin_scan_fn *fn, void *arg)
{
	struct pin_owner owner = {.uid = file->uid};
	char path[4096], link[32];
	struct pin_head head;
	int slots = pin_scan_read(scan, file);

	if (slots <= 0)
		return slots;
	memcpy(&head, scan->bytes, sizeof(head));
	owner.pid = pin_scan_pid(file, &head, namespace);
	owner.slots = (uint32_t)slots;
	for (int i = 0; i < slots; i++) {
		uint64_t pin = pin_scan_word(scan, i);

		if (!pin || pin < floor)
			continue;
		owner.snapshots++;
		if (!owner.oldest || pin < owner.oldest)
			owner.oldest = pin;
	}
	memcpy(owner.program, head.program, sizeof(owner.program) - 1);
	for (char *c = owner.program; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", file->fd);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	owner.path = path;
	return fn(arg, &owner);
}

static bool pin_scan_chooses(
	const struct pin_scan *scan, const struct pin_choice *choice, const char *name)
{
	uint64_t inode;
	int size = 0;

	if (!choice->inodes)
		return pin_scan_is_name(scan, name);
	if (strlen(name) != PIN_NAME_LENGTH ||
		sscanf(name, "%16" SCNx64 "-%n", &inode, &size) != 1 || size != 17)
		return false;
	for (size_t i = 0; i < choice->n; i++)
		if (choice->inodes[i] == inode)
			return false;
	return true;
}

/* One file after the other, and none stays open: a program with few descriptors can list all. */
int pin_scan_each(
	struct pin_scan *scan, const struct pin_choice *choice, pin_scan_fn *fn, void *arg)
{
	struct stat ours;
	uint64_t namespace = stat("/proc/self/ns/pid", &ours) == 0 ? ours.st_ino : 0;
	int r = 0, given = 0;

	CHECK_OBJ(scan, PIN_SCAN_MAGIC);
	for (int i = 0; i < PIN_PLACES; i++) {
		if (!scan->places[i])
			continue;
		rewinddir(scan->places[i]);
		for (struct dirent *entry; r == 0 && (given < FILES_MAX || choice->must_be_all) &&
					   (entry = readdir(scan->places[i]));) {
			struct pin_scan_file file;

			if (!pin_scan_chooses(scan, choice, entry->d_name))
				continue;
			if (given == FILES_MAX)
				return err_say(ERR_READERS_FULL,
					"more than %d pin files of a database", FILES_MAX);
			r = pin_scan_open_file(dirfd(scan->places[i]), entry->d_name, &file);
			if (r == FOUND) {
				given++;
				r = pin_scan_give(scan, &file, namespace, choice->floor, fn, arg);
				(void)close(file.fd);
			} else if (r == NOT_FOUND) {
				r = 0;
			}
		}
	}
	return r;
}

/* Removes a file of a place unless a living process holds it. Returns whether it did. */
static bool pin_scan_clean_entry(int directory_fd, const char *name)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
	struct stat st;

	AUTO_FD int fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	/* Locked, not only found unlocked: the file's creator then fails to lock it, and makes
	 * another. */
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       fcntl(fd, F_OFD_SETLK, &lock) == 0 && unlinkat(directory_fd, name, 0) == 0;
}

int pin_scan_clean(struct pin_scan *scan)
{
	size_t n = 0, end = scan->cleaned + CLEAN_MAX;
	int removed = 0;

	CHECK_OBJ(scan, PIN_SCAN_MAGIC);
	for (int i = 0; i < PIN_PLACES; i++) {
		if (!scan->places[i])
			continue;
		rewinddir(scan->places[i]);
		for (struct dirent *entry; n < end && (entry = readdir(scan->places[i])); n++)
			if (n >= scan->cleaned)
				removed +=
					pin_scan_clean_entry(dirfd(scan->places[i]), entry->d_name);
	}
	scan->cleaned = n < end ? 0 : end - (size_t)removed;
	return removed;
}

void pin_scan_remove_place(int directory_fd, const char *name)
{
	CLEANUP(proc_end_list) DIR *place = proc_list(directory_fd, name);

	for (struct dirent *entry; place && (entry = readdir(place));)
		(void)pin_scan_clean_entry(dirfd(place), entry->d_name);
	(void)unlinkat(directory_fd, name, AT_REMOVEDIR); /* a remaining entry keeps the place */
}
