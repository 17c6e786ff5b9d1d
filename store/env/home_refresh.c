/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/home_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"

/* ---- is it still there? ---------------------------------------------------------------------- */

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Only what is certain counts: a path that can't be looked at just now is not gone. */
static bool is_elsewhere(const struct home *home)
{
	struct stat ours, there;

	if (fstat(home->fd, &ours) < 0)
		return false;
	if (stat(home->path, &there) < 0)
		return errno == ENOENT || errno == ENOTDIR;
	return !is_same(&ours, &there);
}

static bool has_other_id(const struct home *home)
{
	struct home now = {.fd = home->fd};
	int r = home_read_id(&now);

	if (r < 0)
		err_clear();
	return r == NOT_FOUND || (r == FOUND && strcmp(now.id, home->id) != 0);
}

/* Another could take the role with a lock file of its own. */
static bool lost_a_lock(const struct home *home)
{
	struct stat st;

	for (int i = 0; i < HOME_ROLE_MAX; i++)
		if (home->role_fd[i] >= 0 && fstat(home->role_fd[i], &st) == 0 && !st.st_nlink)
			return true;
	return false;
}

/* The reflector's alone: the processor follows to the next one. */
static bool lost_the_journal(const struct home *home)
{
	struct stat ours, there;

	if (home->role_fd[HOME_REFLECTOR] < 0 || fstat(home->journal_fd, &ours) < 0)
		return false;
	if (fstatat(home->fd, "journal", &there, 0) < 0)
		return errno == ENOENT;
	return !is_same(&ours, &there);
}

int home_check(const struct home *home)
{
	CHECK_OBJ(home, HOME_MAGIC);
	const char *what = is_elsewhere(home) ? "its folder was removed or replaced"
		: has_other_id(home)          ? "its file 'id' was removed or replaced"
		: lost_a_lock(home)           ? "its lock file was removed"
		: lost_the_journal(home)      ? "its folder 'journal' was removed or replaced"
					      : NULL;
	if (!what)
		return 0;
	return err_say(ERR_MOVED,
		"the store '%s' was taken away while in use (%s): ending, because nobody would find what "
		"is written there; the next start makes it anew",
		home->path, what);
}

/* ---- what was made anew ---------------------------------------------------------------------- */

/* Folders that were taken away from under a daemon: it makes those again that it writes, but not into
 * a store that is being removed. Where that fails they are missed by whoever needs them, who has a
 * sentence for it. */
static void make_again(const struct home *home, enum home_role role, const char *name, bool shared)
{
	AUTO_FD int fd = -1;
	unsigned mode = 0700;
	struct stat st;

	if (home->role_fd[role] < 0 || fstat(home->fd, &st) < 0)
		return;
	if (home_check(home) < 0) {
		err_clear();
		return;
	}
	if (home->has_group)
		mode = shared ? 03770 : 02750;
	if (home_make_folder(home->fd, name, mode, home->has_group ? st.st_gid : HOME_NO_GROUP, &fd) < 0)
		err_clear();
}

void home_put_fd(_Atomic int *fd, int now)
{
	if (*fd < 0) {
		*fd = now;
		return;
	}
	(void)dup3(now, *fd, O_CLOEXEC);
	cleanup_fd(&now);
}

/* FD becomes the folder at NAME when that is another one: it was not there to be opened, was removed, or
 * moved aside, and one was made in its place. */
static void refresh_folder(int directory_fd, const char *name, _Atomic int *fd)
{
	struct stat ours, there;

	if (fstatat(directory_fd, name, &there, 0) < 0)
		return; /* it stays as it is: looked at again later */
	if (*fd >= 0 && fstat(*fd, &ours) == 0 && is_same(&ours, &there))
		return;
	int now = openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (now >= 0)
		home_put_fd(fd, now);
}

static bool has_role(const struct home *home)
{
	for (int i = 0; i < HOME_ROLE_MAX; i++)
		if (home->role_fd[i] >= 0)
			return true;
	return false;
}

/* The whole store was removed or moved aside and made anew: another id, another runtime folder. Not for
 * its daemons, whose locks are in the old one. */
static void refresh_store(struct home *home)
{
	struct stat ours, there;

	if (has_role(home) || fstat(home->fd, &ours) < 0 || stat(home->path, &there) < 0 ||
		is_same(&ours, &there))
		return;
	struct home now = {.fd = open(home->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	/* The id comes last, so its folders are there too. */
	if (now.fd >= 0 && home_read_id(&now) == FOUND && dup3(now.fd, home->fd, O_CLOEXEC) >= 0) {
		memcpy(home->id, now.id, sizeof(home->id));
		home->runtime[0] = '\0';
	}
	err_clear();
	cleanup_fd(&now.fd);
}

/* A daemon makes it again: whoever comes looks there for rings and status pages. */
static int remake_runtime(struct home *home)
{
	struct stat st;
	int r = fstat(home->fd, &st) < 0 ? -errno
		: home_make_runtime(home, NULL, home->has_group ? st.st_gid : HOME_NO_GROUP);

	for (int i = 0; i < HOME_ROLE_MAX && r >= 0; i++)
		if (home->role_fd[i] >= 0)
			r = home_hold_runtime(home, (enum home_role)i);
	return r;
}

static void refresh_runtime(struct home *home)
{
	if (!home_lost_runtime(home))
		return;
	int r = has_role(home) ? remake_runtime(home) : home_find_runtime(home);
	if (r < 0)
		err_clear(); /* not to be used: as if it were not there */
}

void home_refresh(struct home *home)
{
	CHECK_OBJ(home, HOME_MAGIC);
	(void)pthread_mutex_lock(&home->refreshing); /* the threads of a reader have one */
	refresh_store(home);
	make_again(home, HOME_PROCESSOR, "index", false);
	make_again(home, HOME_PROCESSOR, "cursors", true);
	if (home->role_fd[HOME_REFLECTOR] < 0) /* it has one open, and ends when that is lost: home_check */
		refresh_folder(home->fd, "journal", &home->journal_fd);
	refresh_folder(home->fd, "index", &home->index_fd);
	refresh_folder(home->fd, "cursors", &home->cursors_fd);
	refresh_runtime(home);
	(void)pthread_mutex_unlock(&home->refreshing);
}

static int make_cursors(struct home *home)
{
	gid_t group = HOME_NO_GROUP;
	struct stat st;
	int fd = -1;

	if (home->has_group && fstat(home->fd, &st) == 0)
		group = st.st_gid;
	int r = home_make_folder(home->fd, "cursors", home->has_group ? 03770 : 0700, group, &fd);
	if (r == 0)
		home_put_fd(&home->cursors_fd, fd);
	return r;
}

int home_require_cursors(struct home *home)
{
	CHECK_OBJ(home, HOME_MAGIC);
	(void)pthread_mutex_lock(&home->refreshing);
	refresh_folder(home->fd, "cursors", &home->cursors_fd);
	int r = faccessat(home->fd, "cursors", F_OK, 0) < 0 ? make_cursors(home) : 0;
	(void)pthread_mutex_unlock(&home->refreshing);
	return r;
}
