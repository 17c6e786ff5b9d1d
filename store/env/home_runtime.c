/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/home_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"

/* It lies where others may write: it must be the owner's, and nobody else's to write. */
static int check_runtime(const struct home *home, int fd)
{
	struct stat store, runtime;

	if (fstat(home->fd, &store) < 0 || fstat(fd, &runtime) < 0)
		return err_set(-errno, "'%s'", home->runtime);
	if (runtime.st_uid != store.st_uid && runtime.st_uid != 0)
		return err_say(-EPERM, "'%s' belongs to user %u, the store to %u: remove it, or use another "
				       "--runtime-dir",
			home->runtime, runtime.st_uid, store.st_uid);
	if (runtime.st_mode & 0022)
		return err_say(-EPERM, "'%s' can be written by others: remove it, or use another --runtime-dir",
			home->runtime);
	return 0;
}

static int open_runtime(struct home *home)
{
	AUTO_FD int fd = open(home->runtime, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && (errno == ENOENT || errno == EACCES))
		return NOT_FOUND;
	if (fd < 0)
		return err_set(-errno, "'%s'", home->runtime);
	int r = check_runtime(home, fd);
	if (r < 0)
		return r;
	home_put_fd(&home->runtime_fd, TAKE_FD(fd));
	return 0;
}

static struct timespec recorded_at(const struct home *home)
{
	struct stat st;

	if (fstatat(home->fd, "runtime", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return (struct timespec){0};
	return st.st_mtim;
}

bool home_lost_runtime(const struct home *home)
{
	struct timespec now = recorded_at(home);
	struct stat ours, there;

	return home->runtime_fd < 0 || !*home->runtime || fstat(home->runtime_fd, &ours) < 0 ||
		lstat(home->runtime, &there) < 0 || ours.st_dev != there.st_dev ||
		ours.st_ino != there.st_ino || now.tv_sec != home->recorded.tv_sec ||
		now.tv_nsec != home->recorded.tv_nsec;
}

/* Both daemons may come at once, and the temporary file has one name. */
static int record_runtime(struct home *home, const char *path)
{
	if (flock(home->fd, LOCK_EX) < 0)
		return err_set(-errno, "'%s'", home->path);
	int r = home_write_line(home->fd, "runtime", path, home_file_mode(home));
	home->recorded = recorded_at(home);
	(void)flock(home->fd, LOCK_UN); /* and close() would do it too */
	return r;
}

int home_make_runtime(struct home *home, const char *parent, gid_t group)
{
	unsigned mode = group == HOME_NO_GROUP ? 0700 : 02750;
	char recorded[PATH_MAX] = "", wanted[PATH_MAX + 32];

	home->recorded = recorded_at(home);
	int r = home_read_line(home->fd, "runtime", recorded, sizeof(recorded));
	if (r < 0)
		return r;
	if (!parent && r == NOT_FOUND)
		return 0;
	if (parent)
		(void)snprintf(wanted, sizeof(wanted), "%s/kinf-%s", parent, home->id);
	else
		(void)snprintf(wanted, sizeof(wanted), "%s", recorded);
	if (strlen(wanted) >= sizeof(home->runtime))
		return err_set(-ENAMETOOLONG, "'%s'", wanted);
	memcpy(home->runtime, wanted, strlen(wanted) + 1);
	r = home_make_parents(home->runtime);
	if (r < 0)
		return r;
	if (mkdir(home->runtime, 0700) < 0 && errno != EEXIST)
		return err_set(-errno, "making '%s'", home->runtime);
	r = open_runtime(home);
	if (r)
		return r < 0 ? r : err_set(-EACCES, "'%s'", home->runtime);
	if (group != HOME_NO_GROUP && fchown(home->runtime_fd, (uid_t)-1, group) < 0)
		return err_set(-errno, "giving '%s' to its group", home->runtime);
	if (fchmod(home->runtime_fd, mode) < 0)
		return err_set(-errno, "setting the mode of '%s'", home->runtime);
	if (strcmp(recorded, wanted) == 0)
		return 0;
	return record_runtime(home, wanted);
}

int home_find_runtime(struct home *home)
{
	home->recorded = recorded_at(home); /* before it is read: written after this it is looked at again */
	int r = home_read_line(home->fd, "runtime", home->runtime, sizeof(home->runtime));

	if (r == FOUND)
		r = open_runtime(home);
	if (r == NOT_FOUND)
		home->runtime[0] = '\0';
	return r < 0 ? r : 0;
}

int home_hold_runtime(struct home *home, enum home_role role)
{
	if (home->runtime_fd < 0)
		return 0;
	cleanup_fd(&home->runtime_lock[role]); /* of a folder that was lost */
	int fd = proc_lock(home->runtime_fd, home_role_lock(role));
	if (fd == ERR_LOCKED)
		return err_say(fd,
			"the runtime folder '%s' is in use by another store of the same id: %s. The store "
			"'%s' is a copy, or that one is: stop the other one's daemons, or remove the file "
			"'id' in the copy, which makes it a store of its own",
			home->runtime, err_text(fd), home->path);
	if (fd < 0)
		err_clear(); /* a folder that is just being lost: it is made again, and the lock with it */
	home->runtime_lock[role] = fd < 0 ? -1 : fd;
	return 0;
}
