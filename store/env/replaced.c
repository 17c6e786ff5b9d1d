/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/replaced.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/env/env.h"
#include "store/pins/pin_scan.h"

#define NOBODY ((uid_t)-1) /* a reader without a pin file */

static void replaced_close(struct replaced_file *file)
{
	cleanup_fd(&file->data_fd);
	cleanup_fd(&file->page_fd);
	cleanup_fd(&file->hints_fd);
}

void replaced_files_close(struct replaced_files *files)
{
	for (size_t i = 0; i < files->n; i++)
		replaced_close(&files->files[i]);
	files->n = 0;
	free(TAKE(files->files));
}

static void replaced_files_forget(struct replaced_files *files, size_t i)
{
	replaced_close(&files->files[i]);
	files->n--;
	memmove(&files->files[i], &files->files[i + 1], (files->n - i) * sizeof(files->files[0]));
}

void replaced_files_add(struct replaced_files *files, int folder_fd, const char *hints)
{
	static const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC;
	struct replaced_file file = {
		.since_ns = proc_monotonic_ns(), .data_fd = -1, .page_fd = -1, .hints_fd = -1};
	struct pin_page page;
	struct stat st;

	if (!files->files)
		files->files = calloc(REPLACED_FILES_MAX, sizeof(*files->files));
	if (!files->files || files->n == REPLACED_FILES_MAX)
		return;
	file.data_fd = openat(folder_fd, "data.mdb", flags);
	file.page_fd = openat(folder_fd, PIN_PAGE_FILE, flags);
	if (file.data_fd < 0 || file.page_fd < 0 || fstat(file.data_fd, &st) < 0 ||
		pin_page_probe(folder_fd, st.st_ino, &page) != FOUND) {
		replaced_close(&file);
		return;
	}
	file.hints_fd = openat(folder_fd, hints, flags);
	file.inode = st.st_ino;
	files->files[files->n++] = file;
}

/* ---- readers ------------------------------------------------------------ */

static void replaced_note_user(struct replaced_file *file, uid_t uid)
{
	for (size_t i = 0; i < file->n_users; i++)
		if (file->users[i] == uid)
			return;
	if (file->n_users < REPLACED_USERS_MAX)
		file->users[file->n_users++] = uid;
}

static int replaced_note_owner(void *arg, const struct pin_owner *owner)
{
	struct replaced_file *file = arg;

	if (!owner->snapshots)
		return 0;
	if (!file->snapshots) {
		file->pid = owner->pid;
		memcpy(file->program, owner->program, sizeof(file->program));
	}
	file->snapshots += owner->snapshots;
	replaced_note_user(file, owner->uid);
	return 0;
}

/* Finds the users with pins. An error: unknown, and so pinned. */
static int replaced_find_users(struct replaced_file *file, const struct pin_places *places)
{
	CLEANUP(pin_scan_close) struct pin_scan *scan = NULL;
	bool missed = false, all_held = false;
	struct stat st;

	file->n_users = 0;
	file->snapshots = 0;
	if (fstat(file->data_fd, &st) < 0)
		return err_set(-errno, "a replaced file");
	file->is_own = env_is_written_here(st.st_dev, st.st_ino);
	file->bytes = (uint64_t)st.st_blocks * 512;
	int r = pin_scan_open(file->inode, places, &scan);
	if (r == 0)
		r = pin_scan_each(
			scan, &(struct pin_choice){.must_be_all = true}, replaced_note_owner, file);
	if (r == 0)
		r = pin_scan_misses(scan, file->page_fd, &missed);
	if (r == 0)
		r = pin_scan_is_all_held(file->page_fd, &all_held);
	if (r < 0 || missed || all_held) {
		file->snapshots++;
		replaced_note_user(file, NOBODY);
	}
	return r;
}

/* ---- taking away -------------------------------------------------------- */

static bool replaced_write(const struct replaced_file *file, size_t offset, uint64_t word)
{
	bool written =
		pwrite(file->page_fd, &word, sizeof(word), (off_t)offset) == (ssize_t)sizeof(word);

	__atomic_thread_fence(
		__ATOMIC_SEQ_CST); /* Dekker with mapping_begin_pinned(); and before the pages go */
	return written;
}

enum taken { TAKEN, TAKE_LATER, TAKE_NEVER };

static enum taken replaced_explain_failure(void)
{
	return errno == EOPNOTSUPP ? TAKE_NEVER : TAKE_LATER;
}

static int replaced_punch(int fd, off_t from, off_t size)
{
	return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, size);
}

/* Takes the pages away, also from readers. The file gets longer first; a hole in this part shows
 * whether its file system has holes. */
static enum taken replaced_take(const struct replaced_file *file)
{
	struct stat st, hints;

	if (fstat(file->data_fd, &st) < 0)
		return TAKE_LATER;
	if (st.st_nlink > 0) /* it has been given another name */
		return TAKE_NEVER;
	if (ftruncate(file->data_fd, st.st_size + REPLACED_MARGIN) < 0 ||
		replaced_punch(file->data_fd, st.st_size, REPLACED_MARGIN) < 0)
		return replaced_explain_failure();
	/* In any case: an unseen reader must not take zeros for data. */
	if (!replaced_write(file, offsetof(struct pin_page, given_up), 1))
		return TAKE_LATER;
	if (replaced_punch(file->data_fd, 0, st.st_size) < 0)
		return replaced_explain_failure();
	if (file->hints_fd >= 0 && fstat(file->hints_fd, &hints) == 0 && hints.st_size > 0)
		(void)replaced_punch(
			file->hints_fd, 0, hints.st_size); /* they stay until their readers end */
	return TAKEN;
}

/* Returns whether it is not held any more, and was forgotten. */
static bool replaced_files_settle(
	struct replaced_files *files, size_t i, const struct pin_places *places, uint64_t now)
{
	struct replaced_file *file = &files->files[i];

	if (now - file->since_ns < REPLACED_GRACE_NS)
		return false;
	if (!file->closed)
		file->closed = replaced_write(file, offsetof(struct pin_page, oldest), PIN_CLOSED);
	int r = replaced_find_users(file, places);
	err_ignore(r, "it counts as held");
	if (r < 0 || !file->closed || file->is_own || file->snapshots)
		return false;
	if (replaced_take(file) == TAKE_LATER)
		return false;
	replaced_files_forget(files, i);
	return true;
}

/* Returns how many files the user pins. */
static size_t replaced_files_count(const struct replaced_files *files, uid_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < files->n; i++)
		for (size_t j = 0; j < files->files[i].n_users; j++)
			n += files->files[i].users[j] == uid;
	return n;
}

/* Returns how many files the most modest of its users pins; 0: it must stay. */
static size_t replaced_files_weight(
	const struct replaced_files *files, const struct replaced_file *file, uint64_t now)
{
	size_t least = SIZE_MAX;

	if (!file->n_users || file->is_own || !file->closed ||
		now - file->since_ns < REPLACED_KEPT_NS)
		return 0;
	for (size_t j = 0; j < file->n_users; j++) {
		size_t n = replaced_files_count(files, file->users[j]);
		least = n < least ? n : least;
	}
	return least;
}

static bool replaced_files_give_up(
	struct replaced_files *files, uint64_t now, struct replaced_loss *ret_loss)
{
	size_t victim = 0, most = 0;

	for (size_t i = 0; i < files->n; i++) {
		size_t weight = replaced_files_weight(files, &files->files[i], now);

		if (weight > most) {
			most = weight;
			victim = i;
		}
	}
	if (!most)
		return false;
	const struct replaced_file *file = &files->files[victim];
	*ret_loss = (struct replaced_loss){.bytes = file->bytes,
		.snapshots = file->snapshots,
		.uid = file->users[0],
		.pid = file->pid};
	memcpy(ret_loss->program, file->program, sizeof(ret_loss->program));
	enum taken taken = replaced_take(file);
	if (taken != TAKE_LATER)
		replaced_files_forget(files, victim);
	return taken == TAKEN;
}

static uint64_t replaced_files_clock(void)
{
	struct timespec used = {0};

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used); /* can't fail */
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

bool replaced_files_maintain(struct replaced_files *files, const struct pin_places *places,
	uint64_t now, struct replaced_loss *ret_loss)
{
	if (now < files->due_ns)
		return false;
	uint64_t begun = replaced_files_clock();
	for (size_t i = 0; i < files->n;)
		i += !replaced_files_settle(files, i, places, now);
	size_t held = 0;
	for (size_t i = 0; i < files->n; i++)
		held += files->files[i].n_users > 0;
	uint64_t took = replaced_files_clock() - begun;
	files->due_ns = took > REPLACED_CHEAP_NS ? now + REPLACED_SHARE * took : 0;
	return held > REPLACED_FILES_KEPT && replaced_files_give_up(files, now, ret_loss);
}
