/* SPDX-License-Identifier: Apache-2.0 */
#include "command/manage/partial.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"

#define LOCK      "lock"
#define WALK_OPEN 16 /* descriptors of a walk over directories */

/* Removes a file of the partial directory, for nftw(3), but for its lock. */
static int partial_remove(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st;
	(void)type;
	if (walk->level == 0 || (walk->level == 1 && strcmp(path + walk->base, LOCK) == 0))
		return 0;
	return remove(path) < 0 && errno != ENOENT ? err_set(-errno, "removing '%s'", path) : 0;
}

static int partial_empty(const struct partial *partial)
{
	int r = nftw(partial->directory, partial_remove, WALK_OPEN, FTW_DEPTH | FTW_PHYS);

	return r == -1 ? err_set(-errno, "reading '%s'", partial->directory) : r;
}

/* Resolves TARGET: a link stays, and its target is replaced. */
static int partial_find(struct partial *partial, const char *target)
{
	char resolved[PATH_MAX];
	size_t size = strlen(target);
	struct stat st;

	while (size > 1 && target[size - 1] == '/')
		size--;
	int n = snprintf(partial->target, sizeof(partial->target), "%.*s", (int)size, target);
	if (n >= 0 && (size_t)n < sizeof(partial->target) && lstat(partial->target, &st) == 0 &&
		S_ISLNK(st.st_mode)) {
		if (!realpath(partial->target, resolved))
			return err_say(-errno,
				"'%s' is a link that leads nowhere: remove it, or name another "
				"place",
				partial->target);
		n = snprintf(partial->target, sizeof(partial->target), "%s", resolved);
	}
	const char *slash = strrchr(partial->target, '/');
	const char *name = slash ? slash + 1 : partial->target;
	if (n < 0 || (size_t)n + 32 >= sizeof(partial->target) || !*name ||
		strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return err_say(-EINVAL, "'%s' can't be the name of a file or directory", target);
	(void)snprintf(partial->directory, sizeof(partial->directory), "%.*s.%s.kinf-partial",
		(int)(name - partial->target), partial->target, name);
	return 0;
}

/* Checks the existing file. Renaming would replace /dev/null for all programs. */
static int partial_check(const struct partial *partial, enum partial_kind kind)
{
	struct stat st;

	if (stat(partial->target, &st) < 0)
		return 0;
	if (kind == PARTIAL_DIRECTORY && !S_ISDIR(st.st_mode))
		return err_say(-ENOTDIR, "'%s' exists and is no directory", partial->target);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return err_say(-EINVAL,
			"'%s' is a device, a pipe or a socket: name a file, or write - for "
			"standard output",
			partial->target);
	if (kind == PARTIAL_FILE || rmdir(partial->target) == 0 || errno == ENOENT)
		return 0;
	return err_say(-errno,
		errno == ENOTEMPTY
			? "'%s' is a directory with files in it: name a new one, and move that"
		: errno == EBUSY ? "'%s' is the root of a file system: name a directory in it"
				 : "'%s' can't be replaced: name another one",
		partial->target);
}

/* Returns true if this user made the directory of FD, with the stat(2) ST. Some file systems give
 * all files to one user: NFS with root squash, vfat. */
static bool partial_is_own(int fd, const struct stat *st)
{
	static const char probe[] = "owner";
	struct stat made;

	if (st->st_mode & 0022)
		return false;
	if (st->st_uid == geteuid())
		return true;
	AUTO_FD int file = openat(fd, probe, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (file < 0 || fstat(file, &made) < 0)
		return false;
	(void)unlinkat(fd, probe, 0);
	return made.st_uid == st->st_uid;
}

int partial_begin(struct partial *partial, const char *target, enum partial_kind kind)
{
	struct stat st;
	int r = partial_find(partial, target);

	if (r == 0)
		r = partial_check(partial, kind);
	if (r < 0)
		return r;
	if (mkdir(partial->directory, 0700) < 0 && errno != EEXIST)
		return err_set(-errno, "making '%s'", partial->directory);
	partial->fd = open(partial->directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (partial->fd < 0 || fstat(partial->fd, &st) < 0)
		return err_set(-errno, "'%s'", partial->directory);
	if (!partial_is_own(partial->fd, &st))
		return err_say(-EPERM,
			"'%s' belongs to another user: remove it, or choose another place",
			partial->directory);
	partial->lock = proc_lock(partial->fd, LOCK);
	if (partial->lock == ERR_LOCKED)
		return err_add(ERR_LOCKED, "another kinf makes '%s' just now", partial->target);
	return partial->lock < 0 ? partial->lock : partial_empty(partial);
}

int partial_path(const struct partial *partial, const char *name, char path[PATH_MAX])
{
	int n = snprintf(path, PATH_MAX, "%s/%s", partial->directory, name);

	return n < 0 || n >= PATH_MAX ? err_set(-ENAMETOOLONG, "'%s'", partial->directory) : 0;
}

int partial_end(struct partial *partial, const char *name)
{
	char parent[PATH_MAX];

	if (renameat(partial->fd, name, AT_FDCWD, partial->target) < 0)
		return errno == ENOTEMPTY || errno == EEXIST
			       ? err_say(-errno, "'%s' is a directory with files in it",
					 partial->target)
			       : err_set(-errno, "moving the result to '%s'", partial->target);
	(void)snprintf(parent, sizeof(parent), "%s", partial->target);
	char *slash = strrchr(parent, '/');
	if (slash)
		*(slash == parent ? slash + 1 : slash) = '\0';
	AUTO_FD int fd = open(slash ? parent : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		(void)fsync(fd); /* the result is there; a failure matters only to a power cut */
	return 0;
}

void partial_release(struct partial *partial)
{
	if (partial->lock >= 0) {
		err_ignore(partial_empty(partial), "the next one for this place removes the rest");
		(void)unlinkat(partial->fd, LOCK, 0);
		(void)rmdir(partial->directory);
	}
	cleanup_fd(&partial->lock);
	cleanup_fd(&partial->fd);
}
