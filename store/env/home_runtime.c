/* SPDX-License-Identifier: Apache-2.0 */
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
#include "store/env/text_file.h"

/* How long an ending daemon of this store may hold a lock in the runtime directory: it removes the
 * directory under it (home_remove_runtime()). */
#define RETIRING_NS (2 * UINT64_C(1000000000))

/* Returns: FOUND; NOT_FOUND: errno says why; errors. */
static int runtime_open(struct home *home)
{
	AUTO_FD int fd = open(home->runtime, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat store, runtime;

	if (fd < 0 && (errno == ENOENT || errno == EACCES))
		return NOT_FOUND;
	if (fd < 0)
		return err_set(-errno, "'%s'", home->runtime);
	if (fstat(home->fd, &store) < 0 || fstat(fd, &runtime) < 0)
		return err_set(-errno, "'%s'", home->runtime);
	/* Others may write to the directory above: this one must belong to the store's owner, to
	 * root or to this user, and be closed to other writers. */
	if (runtime.st_uid != store.st_uid && runtime.st_uid != 0 && runtime.st_uid != geteuid())
		return err_say(-EPERM,
			"'%s' belongs to user %u, the store to %u: if the store is a copy of that "
			"user's, remove the file 'id' in the copy, which makes it a store of its "
			"own; else remove that directory, or use another --runtime-dir",
			home->runtime, runtime.st_uid, store.st_uid);
	if (runtime.st_mode & 0022)
		return err_say(-EPERM,
			"'%s' can be written by others: remove it, or use another --runtime-dir",
			home->runtime);
	home->runtime_fd = TAKE_FD(fd);
	return FOUND;
}

/* Reads the recorded path of the runtime directory. FOUND, NOT_FOUND. */
static int runtime_read_record(struct home *home)
{
	int fd = -1;
	int r = text_file_read_line(home->fd, "runtime", home->runtime, sizeof(home->runtime), &fd);

	home->record_fd = fd;
	return r;
}

/* Returns true if a process is known to have a role in the runtime directory. */
static bool runtime_is_used(const struct home *home)
{
	bool used = false;

	for (int i = 0; i < HOME_ROLE_MAX; i++) {
		const char *lock = home_role_lock((enum home_role)i);

		/* Members of the group can't open the file. */
		used |= faccessat(home->runtime_fd, lock, R_OK, AT_EACCESS) == 0 &&
			proc_is_locked(home->runtime_fd, lock);
	}
	return used;
}

/* Returns true if the runtime directory names another store of the same id, the copy or the
 * original of this one. False if it can't be seen here, as in a container. */
static bool runtime_names_another(const struct home *home)
{
	char path[PATH_MAX], line[64];
	struct stat ours, there;

	if (text_file_read_line(home->runtime_fd, "store", path, sizeof(path), NULL) != FOUND ||
		*path != '/')
		return false;
	AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &there) < 0 || fstat(home->fd, &ours) < 0 ||
		(ours.st_dev == there.st_dev && ours.st_ino == there.st_ino))
		return false;
	return text_file_read_line(fd, "id", line, sizeof(line), NULL) == FOUND &&
	       strstr(line, home->id);
}

int home_make_runtime(struct home *home, const char *parent, gid_t group)
{
	unsigned mode = group == HOME_NO_GROUP ? 0700 : 02750;
	char recorded[PATH_MAX], path[PATH_MAX + 32];

	/* Each names the other in a file of one line. */
	if (strchr(home->path, '\n') || (parent && strchr(parent, '\n')))
		return err_say(ERR_CONFIG,
			"a store and its runtime directory must have paths without a line break: "
			"'%s', '%s'",
			home->path, parent ? parent : "");
	int r = runtime_read_record(home);
	if (r < 0 || (!parent && r == NOT_FOUND))
		return r < 0 ? r : 0;
	memcpy(recorded, home->runtime, sizeof(recorded));
	(void)snprintf(path, sizeof(path), "%s/kinf-%s", parent ? parent : "", home->id);
	if (parent && strlen(path) >= sizeof(home->runtime))
		return err_set(-ENAMETOOLONG, "'%s'", path);
	if (parent)
		memcpy(home->runtime, path, strlen(path) + 1);
	r = home_make_parents(home->runtime);
	if (r < 0)
		return r;
	if (mkdir(home->runtime, 0700) < 0 && errno != EEXIST)
		return err_set(-errno, "making '%s'", home->runtime);
	r = runtime_open(home);
	if (r) /* -EACCES; or -ENOENT: an ending daemon has just removed it */
		return r < 0 ? r : err_set(-errno, "'%s'", home->runtime);
	if (group != HOME_NO_GROUP && fchown(home->runtime_fd, (uid_t)-1, group) < 0)
		return err_set(-errno, "giving '%s' to its group", home->runtime);
	if (fchmod(home->runtime_fd, mode) < 0)
		return err_set(-errno, "setting the mode of '%s'", home->runtime);
	AUTO_FD int pins = -1;
	r = home_make_directory(
		home->runtime_fd, HOME_PINS, group == HOME_NO_GROUP ? 0700 : 03770, group, &pins);
	if (r < 0)
		return r;
	home_guard_file(home, HOME_PINS);
	(void)snprintf(path, sizeof(path), "%s\n", home->path);
	/* A daemon that uses it has written its own store's path: this one's, or one of another
	 * store, and this daemon is about to be refused. */
	r = runtime_is_used(home)
		    ? 0
		    : text_file_replace(home->runtime_fd, "store", path, home_file_mode(home));
	if (r < 0)
		return err_add(r, "the runtime directory '%s'", home->runtime);
	if (strcmp(recorded, home->runtime) == 0)
		return 0;
	(void)snprintf(path, sizeof(path), "%s\n",
		home->runtime); /* the caller has locked the store's directory */
	r = text_file_replace(home->fd, "runtime", path, home_file_mode(home));
	if (r < 0)
		return r;
	if (home->record_fd >= 0)
		(void)close(home->record_fd);
	r = runtime_read_record(home);
	return r < 0 ? r : 0;
}

int home_find_runtime(struct home *home)
{
	int r = runtime_read_record(home);

	if (r == FOUND)
		r = runtime_open(home);
	if (r == NOT_FOUND)
		return 0;
	/* A copy records the directory of its original, perhaps another user's and in use. */
	bool runs =
		home_role_holder(home, HOME_REFLECTOR) || home_role_holder(home, HOME_PROCESSOR);
	if (r < 0 ? err_is_shortage(r) || runs : !runtime_names_another(home))
		return r < 0 ? r : 0;
	err_ignore(
		r < 0 ? r : 0, "no daemon runs on this store: nothing in that directory is needed");
	if (home->runtime_fd >= 0)
		(void)close(home->runtime_fd);
	home->runtime_fd = -1;
	return 0;
}

bool home_runtime_is_missing(const struct home *home)
{
	return !*home->runtime || access(home->runtime, F_OK) < 0;
}

const char *home_lacks_runtime(const struct home *home)
{
	return home_runtime_is_missing(home)
		       ? "the runtime directory is missing"
		       : "the runtime directory is that of another store of the same id, of which "
			 "this one is a copy: remove the file 'id' in the copy, which makes it a "
			 "store of its own, and start 'kinf run' there";
}

int home_lock_runtime(struct home *home, enum home_role role)
{
	if (home->runtime_fd < 0)
		return 0;
	int fd = proc_lock_within(home->runtime_fd, home_role_lock(role), RETIRING_NS);
	if (fd == -ENOENT)
		return err_say(ERR_MOVED,
			"the runtime directory '%s' was removed by a daemon that ended: this "
			"daemon ends, and makes it again when it is started again",
			home->runtime);
	if (fd == ERR_LOCKED)
		return err_say(fd,
			"the runtime directory '%s' is in use by another store of the same id: %s. "
			"One of them, perhaps '%s', is a copy: stop the other one's daemons, or "
			"remove the file 'id' in the copy to make it a store of its own",
			home->runtime, err_text(fd), home->path);
	if (fd < 0)
		return err_add(fd, "the runtime directory '%s'", home->runtime);
	home->runtime_lock[role] = fd;
	return 0;
}
