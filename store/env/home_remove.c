/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Removes stores, and runtime directories without daemons, which take some 4 MiB of memory each.
 */
#include "store/env/home_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/env/generation.h"
#include "store/pins/pin_scan.h"

/* Removes the files in the directory FD, but the one named KEEP; directories in it stay. Returns an
 * errno: of the first file that can't be removed. */
static int remove_files(int fd, const char *keep)
{
	CLEANUP(proc_end_list) DIR *directory = proc_list(fd, ".");
	int error = 0;

	if (!directory)
		return errno;
	for (const struct dirent *entry; (entry = readdir(directory));)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
			strcmp(entry->d_name, keep) != 0 && unlinkat(fd, entry->d_name, 0) < 0 &&
			errno != EISDIR && !error)
			error = errno;
	return error;
}

/* Removes the runtime directory PATH, open as FD, unless a daemon uses it. Takes the locks in one
 * order: of two daemons that end at once, one removes it. A daemon that starts meanwhile finds its
 * lock taken or, within a second, its directory gone, and its supervisor starts it again. */
static void home_remove_directory(int fd, const char *path)
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
		pin_scan_remove_place(fd, HOME_PINS);
		/* Living readers keep the directory and the ring: it tells the next reflector of an
		 * older copy in the journal's place. */
		bool keeps_ring = faccessat(fd, HOME_PINS, F_OK, 0) == 0;
		(void)remove_files(fd, keeps_ring ? HOME_RING : ""); /* the rest stays */
		(void)rmdir(path); /* other programs' files keep it */
	}
	for (int i = 0; i < HOME_ROLE_MAX; i++)
		cleanup_fd(&locks[i]);
}

void home_remove_runtime(struct home *home)
{
	if (home->runtime_fd < 0)
		return;
	for (int i = 0; i < HOME_ROLE_MAX; i++)
		cleanup_fd(&home->runtime_lock[i]);
	/* Looked at without a lock in hand: kinf-serve may be ending, and takes them next. */
	if (!proc_is_locked(home->fd, HOME_SERVE_LOCK))
		home_remove_directory(home->runtime_fd, home->runtime);
}

/* ---- the store ---------------------------------------------------------- */

/* Removes the directory NAME with its files; directories in it stay. */
static int remove_directory(int parent_fd, const char *name)
{
	AUTO_FD int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return 0;
	int error = fd < 0 ? errno : remove_files(fd, "");

	if (error)
		return err_set(-error, "removing the files in '%s'", name);
	if (unlinkat(parent_fd, name, AT_REMOVEDIR) < 0 && errno != ENOTEMPTY)
		return err_set(-errno, "removing '%s'", name);
	return 0;
}

static int remove_database(const struct home *home, const char *name, int fd)
{
	int r = fd < 0 ? 0 : generation_remove_except(fd, NULL, 0, NULL);

	return r < 0 ? err_add(r, "%s", name) : remove_directory(home->fd, name);
}

/* Removes the file `id` last: it makes a directory a store, so an interrupted removal can be
 * repeated. */
int home_remove(struct home *home)
{
	static const char *const files[] = {"runtime", ".runtime.new", "reflector.lock",
		"processor.lock", ".reflector.lock.new", ".processor.lock.new", HOME_MAKING_LOCK,
		".id.new", "reflector.owner", "processor.owner", "discovery.api", "discovery.apis",
		".discovery.api.new", ".discovery.apis.new", "id"};

	for (int role = 0; role < HOME_ROLE_MAX; role++)
		if (home->role_owner[role] < 0)
			return err_say(ERR_LOCKED, "the store '%s' may be in use", home->path);
	home_remove_runtime(home);
	int r = remove_database(home, "index", home->index_fd);

	if (r == 0)
		r = remove_database(home, "journal", home->journal_fd);
	if (r == 0)
		r = remove_directory(home->fd, "cursors");
	if (r == 0)
		r = remove_directory(home->fd, "serve");
	if (r == 0)
		r = remove_directory(home->fd, HOME_PINS);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(files); i++)
		if (unlinkat(home->fd, files[i], 0) < 0 && errno != ENOENT)
			r = err_set(-errno, "removing '%s'", files[i]);
	if (r < 0)
		return err_add(r, "store '%s'", home->path);
	return rmdir(home->path) == 0 ? 0 : NOT_FOUND;
}
