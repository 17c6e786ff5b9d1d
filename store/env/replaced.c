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

static void former_close(struct former *former)
{
	cleanup_fd(&former->data_fd);
	cleanup_fd(&former->page_fd);
	cleanup_fd(&former->hints_fd);
}

void formers_close(struct formers *formers)
{
	for (size_t i = 0; i < formers->n; i++)
		former_close(&formers->files[i]);
	formers->n = 0;
	free(TAKE(formers->files));
}

static void formers_forget(struct formers *formers, size_t i)
{
	former_close(&formers->files[i]);
	formers->n--;
	memmove(&formers->files[i], &formers->files[i + 1],
		(formers->n - i) * sizeof(formers->files[0]));
}

void formers_add(struct formers *formers, int folder_fd, const char *hints)
{
	static const int flags = O_RDWR | O_NOFOLLOW | O_CLOEXEC;
	struct former former = {
		.since_ns = proc_monotonic_ns(), .data_fd = -1, .page_fd = -1, .hints_fd = -1};
	struct pin_page page;
	struct stat st;

	if (!formers->files)
		formers->files = calloc(FORMERS_MAX, sizeof(*formers->files));
	if (!formers->files || formers->n == FORMERS_MAX)
		return;
	former.data_fd = openat(folder_fd, "data.mdb", flags);
	former.page_fd = openat(folder_fd, PIN_PAGE_FILE, flags);
	if (former.data_fd < 0 || former.page_fd < 0 || fstat(former.data_fd, &st) < 0 ||
		pin_page_probe(folder_fd, st.st_ino, &page) != FOUND) {
		former_close(&former);
		return;
	}
	former.hints_fd = openat(folder_fd, hints, flags);
	former.inode = st.st_ino;
	memcpy(former.last_place, page.place, sizeof(former.last_place) - 1);
	formers->files[formers->n++] = former;
}

/* ---- readers ------------------------------------------------------------ */

static void former_note_user(struct former *former, uid_t uid)
{
	for (size_t i = 0; i < former->n_users; i++)
		if (former->users[i] == uid)
			return;
	if (former->n_users < FORMER_USERS_MAX)
		former->users[former->n_users++] = uid;
}

static int former_note_owner(void *arg, const struct pin_owner *owner)
{
	struct former *former = arg;

	if (!owner->snapshots)
		return 0;
	if (!former->snapshots) {
		former->pid = owner->pid;
		memcpy(former->program, owner->program, sizeof(former->program));
	}
	former->snapshots += owner->snapshots;
	former_note_user(former, owner->uid);
	return 0;
}

/* Finds the users with pins. An error: unknown, and so pinned. */
static int former_look(struct former *former, const struct pin_places *places)
{
	CLEANUP(pin_scan_close) struct pin_scan *scan = NULL;
	bool missed = false, all_held = false;
	struct stat st;

	former->n_users = 0;
	former->snapshots = 0;
	if (fstat(former->data_fd, &st) < 0)
		return err_set(-errno, "a former file");
	former->is_own = env_is_written_here(st.st_dev, st.st_ino);
	former->bytes = (uint64_t)st.st_blocks * 512;
	int r = pin_scan_open(former->inode, places, former->last_place, &scan);
	if (r == 0)
		r = pin_scan_all(scan, former_note_owner, former);
	if (r == 0)
		r = pin_scan_misses(scan, former->page_fd, &missed);
	if (r == 0)
		r = pin_scan_is_all_held(former->page_fd, &all_held);
	if (r < 0 || missed || all_held) {
		former->snapshots++;
		former_note_user(former, NOBODY);
	}
	return r;
}

/* ---- taking away -------------------------------------------------------- */

static bool former_write(const struct former *former, size_t offset, uint64_t word)
{
	bool written = pwrite(former->page_fd, &word, sizeof(word), (off_t)offset) ==
		       (ssize_t)sizeof(word);

	__atomic_thread_fence(
		__ATOMIC_SEQ_CST); /* Dekker with mapping_begin_pinned(); and before the pages go */
	return written;
}

enum taken { TAKEN, TAKE_LATER, TAKE_NEVER };

static enum taken former_why_not(void)
{
	return errno == EOPNOTSUPP ? TAKE_NEVER : TAKE_LATER;
}

static int former_punch(int fd, off_t from, off_t size)
{
	return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, size);
}

/* Takes the pages away, also from readers. The file gets longer first; a hole in this part shows
 * whether its file system has holes. */
static enum taken former_take(const struct former *former)
{
	struct stat st, hints;

	if (fstat(former->data_fd, &st) < 0)
		return TAKE_LATER;
	if (st.st_nlink > 0) /* somebody has given it another name */
		return TAKE_NEVER;
	if (ftruncate(former->data_fd, st.st_size + FORMER_MARGIN) < 0 ||
		former_punch(former->data_fd, st.st_size, FORMER_MARGIN) < 0)
		return former_why_not();
	/* In any case: an unseen reader must not take zeros for data. */
	if (!former_write(former, offsetof(struct pin_page, given_up), 1))
		return TAKE_LATER;
	if (former_punch(former->data_fd, 0, st.st_size) < 0)
		return former_why_not();
	if (former->hints_fd >= 0 && fstat(former->hints_fd, &hints) == 0 && hints.st_size > 0)
		(void)former_punch(
			former->hints_fd, 0, hints.st_size); /* they stay until their readers end */
	return TAKEN;
}

/* Returns whether it is not held any more, and was forgotten. */
static bool formers_settle(
	struct formers *formers, size_t i, const struct pin_places *places, uint64_t now)
{
	struct former *former = &formers->files[i];

	if (now - former->since_ns < FORMER_GRACE_NS)
		return false;
	if (!former->closed)
		former->closed =
			former_write(former, offsetof(struct pin_page, oldest), PIN_CLOSED);
	int r = former_look(former, places);
	err_ignore(r, "it counts as held");
	if (r < 0 || !former->closed || former->is_own || former->snapshots)
		return false;
	if (former_take(former) == TAKE_LATER)
		return false;
	formers_forget(formers, i);
	return true;
}

/* Returns how many files the user pins. */
static size_t formers_count(const struct formers *formers, uid_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < formers->n; i++)
		for (size_t j = 0; j < formers->files[i].n_users; j++)
			n += formers->files[i].users[j] == uid;
	return n;
}

/* Returns how many files the most modest of its users pins; 0: it must stay. */
static size_t formers_weight(
	const struct formers *formers, const struct former *former, uint64_t now)
{
	size_t least = SIZE_MAX;

	if (!former->n_users || former->is_own || !former->closed ||
		now - former->since_ns < FORMER_KEPT_NS)
		return 0;
	for (size_t j = 0; j < former->n_users; j++) {
		size_t n = formers_count(formers, former->users[j]);
		least = n < least ? n : least;
	}
	return least;
}

static bool formers_give_up(struct formers *formers, uint64_t now, struct former_loss *ret_loss)
{
	size_t victim = 0, most = 0;

	for (size_t i = 0; i < formers->n; i++) {
		size_t weight = formers_weight(formers, &formers->files[i], now);

		if (weight > most) {
			most = weight;
			victim = i;
		}
	}
	if (!most)
		return false;
	const struct former *former = &formers->files[victim];
	*ret_loss = (struct former_loss){.bytes = former->bytes,
		.snapshots = former->snapshots,
		.uid = former->users[0],
		.pid = former->pid};
	memcpy(ret_loss->program, former->program, sizeof(ret_loss->program));
	enum taken taken = former_take(former);
	if (taken != TAKE_LATER)
		formers_forget(formers, victim);
	return taken == TAKEN;
}

static uint64_t formers_clock(void)
{
	struct timespec used = {0};

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used); /* can't fail */
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

bool formers_tend(struct formers *formers, const struct pin_places *places, uint64_t now,
	struct former_loss *ret_loss)
{
	if (now < formers->due_ns)
		return false;
	uint64_t begun = formers_clock();
	for (size_t i = 0; i < formers->n;)
		i += !formers_settle(formers, i, places, now);
	size_t held = 0;
	for (size_t i = 0; i < formers->n; i++)
		held += formers->files[i].n_users > 0;
	uint64_t took = formers_clock() - begun;
	formers->due_ns = took > FORMERS_CHEAP_NS ? now + FORMERS_SHARE * took : 0;
	return held > FORMERS_KEPT && formers_give_up(formers, now, ret_loss);
}
