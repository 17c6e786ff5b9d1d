/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes runtime directories, which take some 18 MiB of memory each, when no daemon uses them:
 * the store's own when its last daemon ends, that of a store that now names another, and those
 * of stores that are gone. A directory in which a daemon holds a role's lock stays.
 */
#include "store/env/home_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/env/pin_scan.h"
#include "store/env/text_file.h"

/* Opens PATH if it is a directory of this user. */
static int retire_open(const char *path)
{
	AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() ? TAKE_FD(fd) : -1;
}

static void retire_files(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	DIR *directory = copy >= 0 ? fdopendir(copy) : NULL;

	if (!directory && copy >= 0)
		(void)close(copy);
	for (const struct dirent *entry; directory && (entry = readdir(directory));)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			(void)unlinkat(fd, entry->d_name, 0); /* what can't be removed stays */
	if (directory)
		(void)closedir(directory);
	pin_scan_remove_place(
		fd, HOME_PINS); /* readers that live on keep it, and with it the directory */
}

/* Removes the runtime directory PATH, open as FD, unless a daemon uses it. The locks are taken
 * in one order, so that of two daemons that end at the same time one removes it. A daemon that
 * starts meanwhile finds its lock taken, or finds within a second that its directory is gone: in
 * both cases its supervisor starts it again. */
static void retire_directory(int fd, const char *path)
{
	int locks[HOME_ROLE_MAX] = {-1, -1};
	struct stat ours, there;
	bool used = false;

	for (int i = 0; i < HOME_ROLE_MAX && !used; i++) {
		locks[i] = proc_lock(fd, home_role_lock((enum home_role)i));
		used = locks[i] < 0;
		err_ignore(used ? locks[i] : 0,
			"a daemon uses the directory, and removes it when it ends");
	}
	if (!used && fstat(fd, &ours) == 0 && lstat(path, &there) == 0 &&
		ours.st_dev == there.st_dev && ours.st_ino == there.st_ino) {
		retire_files(fd);
		(void)rmdir(path); /* it stays if it holds what is not ours */
	}
	for (int i = 0; i < HOME_ROLE_MAX; i++)
		cleanup_fd(&locks[i]);
}

void home_retire(struct home *home)
{
	if (home->runtime_fd < 0)
		return;
	for (int i = 0; i < HOME_ROLE_MAX; i++)
		cleanup_fd(&home->runtime_lock[i]);
	retire_directory(home->runtime_fd, home->runtime);
}

void home_retire_former(const struct home *home, const char *path)
{
	const char *name = strrchr(path, '/'), *id = name ? home_runtime_id(name + 1) : NULL;

	if (!id || strcmp(id, home->id) != 0)
		return;
	AUTO_FD int fd = retire_open(path);
	if (fd >= 0)
		retire_directory(fd, path);
}

/* Returns whether the store of the runtime directory FD, named kinf-ID, is gone: not if the
 * directory names no store. */
static bool retire_is_orphan(int fd, const char *id)
{
	char store[PATH_MAX], line[64];

	if (text_file_read_line(fd, "store", store, sizeof(store), NULL) != FOUND || *store != '/')
		return false;
	AUTO_FD int store_fd = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store_fd < 0)
		return errno == ENOENT || errno == ENOTDIR;
	int r = text_file_read_line(store_fd, "id", line, sizeof(line), NULL);

	if (r < 0)
		err_ignore(r, "what can't be read is not known to be gone");
	return r == NOT_FOUND || (r == FOUND && !strstr(line, id));
}

void home_retire_orphans(const struct home *home)
{
	char parent[PATH_MAX], path[PATH_MAX + 300];

	(void)snprintf(parent, sizeof(parent), "%s", home->runtime);
	char *slash = strrchr(parent, '/');
	if (!slash || slash == parent)
		return;
	*slash = '\0';
	DIR *directory = opendir(parent);
	for (const struct dirent *entry; directory && (entry = readdir(directory));) {
		const char *id = home_runtime_id(entry->d_name);

		if (!id || strcmp(id, home->id) == 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name);
		AUTO_FD int fd = retire_open(path);
		if (fd >= 0 && retire_is_orphan(fd, id))
			retire_directory(fd, path);
	}
	if (directory)
		(void)closedir(directory);
}
