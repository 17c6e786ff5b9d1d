/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that the store is still in its place. Operators remove, move or replace directories in
 * use: the daemon would write files without readers, and a reader would see no more changes. A
 * descriptor and a path with one device and inode are one file, because the kernel does not reuse
 * the inode of an open file.
 */
#include "store/env/home_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/bytes.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"

/* Compares an open file with DIRECTORY_FD/NAME. FD -1: any file there is a change. A path counts as
 * unchanged if it can't be examined. */
static bool home_is_changed(int fd, int directory_fd, const char *name, int flags)
{
	struct stat ours, there;

	if (fd >= 0 && fstat(fd, &ours) < 0)
		return false;
	if (fstatat(directory_fd, name, &there, flags) < 0)
		return fd >= 0 && (errno == ENOENT || errno == ENOTDIR);
	return fd < 0 || ours.st_dev != there.st_dev || ours.st_ino != there.st_ino;
}

/* Returns the name of the first removed or replaced part; NULL: none. */
static const char *home_find_change(const struct home *home)
{
	struct stat there;

	/* A link in the store's path may lead to another store now. */
	if (home_is_changed(home->fd, AT_FDCWD, home->path, 0))
		return home->path;
	const struct {
		int fd;
		const char *name;
	} parts[] = {{home->id_fd, "id"}, {home->journal_fd, "journal"}, {home->index_fd, "index"},
		{home->cursors_fd, "cursors"}, {home->record_fd, "runtime"}};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (home_is_changed(parts[i].fd, home->fd, parts[i].name, 0))
			return parts[i].name;
	if (*home->runtime &&
		home_is_changed(home->runtime_fd, AT_FDCWD, home->runtime, AT_SYMLINK_NOFOLLOW))
		return home->runtime;
	for (int i = 0; i < HOME_ROLE_MAX; i++) {
		const char *lock = home_role_lock((enum home_role)i);
		const char *owner = home_role_owner((enum home_role)i);

		if (home->role_owner[i] >= 0 &&
			home_is_changed(home->role_owner[i], home->fd, owner, 0))
			return owner;
		if ((home->role_fd[i] >= 0 &&
			    home_is_changed(home->role_fd[i], home->fd, lock, 0)) ||
			(home->runtime_lock[i] >= 0 &&
				home_is_changed(home->runtime_lock[i], home->runtime_fd, lock, 0)))
			return lock;
	}
	for (size_t i = 0; i < HOME_GUARDED_MAX && home->guarded[i].name; i++)
		if (fstatat(home->runtime_fd, home->guarded[i].name, &there, AT_SYMLINK_NOFOLLOW) <
				0 ||
			there.st_dev != home->guarded[i].device ||
			there.st_ino != home->guarded[i].inode)
			return home->guarded[i].name;
	return NULL;
}

int home_check(const struct home *home)
{
	CHECK_OBJ(home, HOME_MAGIC);
	const char *changed = home_find_change(home);

	if (!changed)
		return 0;
	return err_say(ERR_MOVED,
		"the store '%s' was changed while in use ('%s' was removed or replaced): this "
		"daemon ends, and makes the missing part when it is started again",
		home->path, changed);
}

void home_guard_file(struct home *home, const char *name)
{
	struct stat st;
	size_t i = 0;

	CHECK_OBJ(home, HOME_MAGIC);
	while (i < HOME_GUARDED_MAX && home->guarded[i].name &&
		strcmp(home->guarded[i].name, name) != 0)
		i++;
	REQUIRE(i < HOME_GUARDED_MAX);
	if (fstatat(home->runtime_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		st = (struct stat){0}; /* removed already: home_check() says so */
	home->guarded[i].name = name;
	home->guarded[i].device = st.st_dev;
	home->guarded[i].inode = st.st_ino;
}

/* Moves NEW_FD to the number FD, used by other threads; -1: FD stays. */
static void home_replace_fd(_Atomic int *fd, int new_fd)
{
	if (*fd < 0) {
		*fd = proc_apart(new_fd);
	} else if (new_fd >= 0) {
		(void)dup3(new_fd, *fd, O_CLOEXEC); /* both are valid descriptors */
		cleanup_fd(&new_fd);
	}
}

int home_reopen(struct home *home)
{
	CLEANUP(home_close) struct home *now = NULL;
	int r = 0;

	CHECK_OBJ(home, HOME_MAGIC);
	REQUIRE(home->role_fd[HOME_REFLECTOR] < 0 && home->role_fd[HOME_PROCESSOR] < 0);
	(void)pthread_mutex_lock(&home->reopening);
	if (home_find_change(home))
		r = home_open(home->path, &(struct home_options){0}, &now);
	if (now) {
		(void)dup3(now->fd, home->fd, O_CLOEXEC); /* both are valid descriptors */
		home_replace_fd(&home->id_fd, TAKE_FD(now->id_fd));
		home_replace_fd(&home->journal_fd, TAKE_FD(now->journal_fd));
		home_replace_fd(&home->index_fd, TAKE_FD(now->index_fd));
		home_replace_fd(&home->cursors_fd, TAKE_FD(now->cursors_fd));
		home_replace_fd(&home->record_fd, TAKE_FD(now->record_fd));
		home_replace_fd(&home->runtime_fd, TAKE_FD(now->runtime_fd));
		home->has_group = now->has_group;
		memcpy(home->id, now->id, sizeof(home->id));
		memcpy(home->runtime, now->runtime, sizeof(home->runtime));
	}
	(void)pthread_mutex_unlock(&home->reopening);
	return r;
}

int home_make_cursors(struct home *home)
{
	gid_t group = HOME_NO_GROUP;
	struct stat st;
	int fd = -1;
	int r = home_reopen(home);

	if (r < 0)
		return r;
	if (home->has_group && fstat(home->fd, &st) == 0)
		group = st.st_gid;
	r = home_make_directory(home->fd, "cursors", home->has_group ? 03770 : 0700, group, &fd);
	if (r < 0)
		return err_say(r,
			"the directory '%s/cursors' is missing and can't be made (%s): the daemons "
			"make it when they are started",
			home->path, err_text(r));
	(void)pthread_mutex_lock(&home->reopening);
	home_replace_fd(&home->cursors_fd, fd);
	(void)pthread_mutex_unlock(&home->reopening);
	return 0;
}
