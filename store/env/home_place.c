/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges a path as the place of a store, and explains refusals and failures. A store belongs to one
 * user and closes its directory: all programs would lose `/`, a web server its files. Nothing is
 * changed before the checks.
 */
#include "store/env/home_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/text/shell_word.h"
#include "store/env/text_file.h"

static bool place_has_file(int fd, const char *name)
{
	struct stat st;

	return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

/* Reads the first line of any file. Returns "" if it can't be read. */
static const char *place_read(int fd, const char *name, char line[PATH_MAX])
{
	int r = text_file_read_line(fd, name, line, PATH_MAX, NULL);

	if (r < 0)
		err_ignore(r, "it is not the store's then");
	return r == FOUND ? line : "";
}

/* Returns true if a daemon has made a store of the directory FD, or has begun to. The lock is its
 * first file, `id` its last; a copy may lack either. */
static bool place_is_taken(int fd)
{
	char line[PATH_MAX];
	const char *slash;

	if (place_has_file(fd, HOME_MAKING_LOCK) || place_has_file(fd, "journal/CURRENT") ||
		place_has_file(fd, "index/CURRENT") ||
		strncmp(place_read(fd, "id", line), HOME_ID_WORD, strlen(HOME_ID_WORD)) == 0)
		return true;
	slash = strrchr(place_read(fd, "runtime", line), '/');
	return slash && home_runtime_id(slash + 1);
}

static const char *place_next(DIR *directory)
{
	const struct dirent *entry;

	do
		entry = readdir(directory);
	while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
	return entry ? entry->d_name : NULL;
}

/* Returns true if the directory FD may become a store with NAME in it. One volume may have the
 * store and the runtime directory; remove-store leaves the latter. */
static bool place_allows(int fd, const char *runtime_dir, const char *name)
{
	AUTO_FD int entry_fd = -1;
	struct stat st, runtime;

	/* A service user's home has hidden files, some file systems make one of snapshots. */
	if (strcmp(name, "kinf.yaml") == 0 || *name == '.')
		return true;
	/* O_PATH: root's lost+found can't be read. */
	entry_fd = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (entry_fd < 0 || fstat(entry_fd, &st) < 0)
		return false;
	if (runtime_dir && stat(runtime_dir, &runtime) == 0 && runtime.st_dev == st.st_dev &&
		runtime.st_ino == st.st_ino)
		return true;
	if (strcmp(name, "lost+found") == 0 || place_is_taken(entry_fd))
		return true;
	/* The future store of another cluster, /var/lib/kinf/NAME beside the first one's files. */
	CLEANUP(proc_end_list) DIR *directory = proc_list(entry_fd, ".");
	return directory && (st.st_uid == geteuid() || st.st_uid == 0) && !place_next(directory);
}

/* Returns true for a directory of all programs. */
static bool place_is_everybodys(const struct stat *st)
{
	static const char *const paths[] = {"/", "/tmp", "/var/tmp", "/dev/shm"};
	struct stat known;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (stat(paths[i], &known) == 0 && known.st_dev == st->st_dev &&
			known.st_ino == st->st_ino)
			return true;
	return false;
}

static int place_check_entries(int fd, const char *runtime_dir, const char *store)
{
	CLEANUP(proc_end_list) DIR *directory = proc_list(fd, ".");
	char word[SHELL_WORD_SIZE];

	if (place_is_taken(fd))
		return 0;
	for (const char *name; directory && (name = place_next(directory));)
		/* Another daemon may have begun the store meanwhile. */
		if (!place_allows(fd, runtime_dir, name) && !place_is_taken(fd))
			return err_say(ERR_CONFIG,
				"the directory '%s' is no store, and has something else in it, "
				"such as %s: a store has its directory for itself and closes it to "
				"other users; name a new or an empty one with 'store' in kinf.yaml "
				"or --store",
				store, shell_word(name, word));
	return 0;
}

const char *home_name_user(uid_t number, char name[HOME_USER_SIZE])
{
	char memory[1024];
	struct passwd entry, *user = NULL;

	(void)getpwuid_r(number, &entry, memory, sizeof(memory), &user); /* else the number */
	if (user)
		(void)snprintf(name, HOME_USER_SIZE, "%s", user->pw_name);
	else
		(void)snprintf(name, HOME_USER_SIZE, "%u", (unsigned)number);
	return name;
}

/* Refuses root's daemons in a user's store: the user could not read their files. */
static int place_check_owner(const struct stat *st, const char *store)
{
	char user[HOME_USER_SIZE], account[HOME_USER_SIZE + 1], word[SHELL_WORD_SIZE],
		other[SHELL_WORD_SIZE];
	unsigned own = (unsigned)geteuid();

	(void)home_name_user(st->st_uid, user);
	(void)snprintf(account, sizeof(account), "%s%s", *user >= '0' && *user <= '9' ? "#" : "",
		user); /* as sudo takes a number */
	return err_say(ERR_CONFIG,
		"the directory '%s' belongs to user %s, and a store to the user of its daemons, "
		"which is %u here: start as that user (sudo -u %s), give it to this one (chown -R "
		"%u %s), or name another directory, as one in it, with 'store' in kinf.yaml or "
		"--store",
		store, user, own, shell_word(account, word), own, shell_word(store, other));
}

/* Checks this user's rights to the parts of its store: root or a copy may have left files. Other
 * users' files in cursors/ and pins/ are readers'. */
static int place_check_parts(int fd, const char *store)
{
	static const char *const parts[] = {"journal", "index", "cursors", HOME_PINS,
		HOME_MAKING_LOCK, "reflector.owner", "reflector.lock", "processor.owner",
		"processor.lock", "id", "runtime", "journal/CURRENT", "index/CURRENT"};
	char room[SHELL_WORD_SIZE];
	const char *word = shell_word(store, room);
	unsigned own = (unsigned)geteuid();

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (faccessat(fd, parts[i], R_OK | W_OK, AT_EACCESS) < 0 && errno == EACCES)
			return err_say(ERR_CONFIG,
				"user %u may not use '%s/%s' of its store: sudo chown -R %u %s; "
				"chmod -R u+rwX %s",
				own, store, parts[i], own, word, word);
	return 0;
}

int home_check_owner(const char *store)
{
	AUTO_FD int fd = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 0; /* none yet, or the caller says why it can't use it */
	return st.st_uid == geteuid() ? place_check_parts(fd, store)
				      : place_check_owner(&st, store);
}

int home_check_place(const char *store, const char *runtime_dir)
{
	AUTO_FD int fd = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (strchr(store,
		    '\n')) /* it and its runtime directory name each other in files of one line */
		return err_say(
			ERR_CONFIG, "a store must have a path without a line break: '%s'", store);
	if (fd < 0 || fstat(fd, &st) < 0)
		return 0; /* none yet, or the caller says why it can't use it */
	if (place_is_everybodys(&st))
		return err_say(ERR_CONFIG,
			"the store can't be the directory '%s': all programs use that, and a store "
			"closes its directory to other users; name a directory of its own with "
			"'store' in kinf.yaml or --store",
			store);
	return place_check_entries(fd, runtime_dir, store);
}

/* ---- whether a directory can be made ------------------------------------ */

/* Cuts PATH to its longest existing part. Returns: 0, ERR_CONFIG. */
static int writable_find_existing(char *path, struct stat *ret_stat)
{
	struct stat link;

	while (stat(path, ret_stat) < 0) {
		int error = errno;

		if (error == ENOENT && lstat(path, &link) == 0)
			return err_say(ERR_CONFIG, "the link '%s' leads nowhere", path);
		if (error != ENOENT && error != ENOTDIR)
			return err_say(ERR_CONFIG, "'%s': %s", path, strerror(error));
		char *slash = strrchr(path, '/');
		slash[slash == path] = '\0'; /* the root keeps its slash */
	}
	return 0;
}

int home_check_writable(const char *path)
{
	char there[PATH_MAX];
	struct stat st;

	if ((size_t)snprintf(there, sizeof(there), "%s", path) >= sizeof(there))
		return err_say(ERR_CONFIG,
			"the path '%.60s...' has %zu bytes; a path has at most %d", path,
			strlen(path), PATH_MAX - 1);
	int r = writable_find_existing(there, &st);
	if (r < 0)
		return r;
	if (!S_ISDIR(st.st_mode))
		return err_say(ERR_CONFIG, "'%s' is no directory", there);
	if (faccessat(AT_FDCWD, there, W_OK | X_OK, AT_EACCESS) == 0)
		return 0;
	if (errno == EROFS)
		return err_say(ERR_CONFIG, "'%s' is on a file system mounted read-only", there);
	return err_say(ERR_CONFIG,
		"user %u may not write to '%s': check as the user who is to run kinf, or as root",
		(unsigned)geteuid(), there);
}

/* ---- errors of an attempt ----------------------------------------------- */

int home_explain_rights(
	int r, const char *what, const char *path, const char *key, const char *option)
{
	char word[SHELL_WORD_SIZE];

	/* Another process may have removed a part just then. */
	bool is_made = r == -ENOENT && home_make_parents(path) == 0 &&
		       (mkdir(path, 0700) == 0 || access(path, F_OK) == 0);
	if (!is_made && (r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -ENAMETOOLONG))
		return err_say(ERR_CONFIG,
			"%s: the %s '%s' can't be made: a part of this path is no directory, leads "
			"nowhere, or allows no new directories; correct it, or name another "
			"directory with '%s' in kinf.yaml or %s",
			err_text(r), what, path, key, option);
	if (r == -EROFS)
		return err_say(ERR_CONFIG,
			"%s: the %s '%s' is on a file system mounted read-only: mount it writable, "
			"or name another directory with '%s' in kinf.yaml or %s",
			err_text(r), what, path, key, option);
	if (r != -EACCES) /* -EPERM has a sentence of its own */
		return r;
	if (faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) < 0 && errno == ENOENT)
		return err_say(ERR_CONFIG,
			"%s: user %u may not make the %s '%s' in the directory above it: start as "
			"a user with the right, or make it for this one (install -d -o %u %s), or "
			"name another directory with '%s' in kinf.yaml or %s",
			err_text(r), (unsigned)geteuid(), what, path, (unsigned)geteuid(),
			shell_word(path, word), key, option);
	return err_say(ERR_CONFIG,
		"%s: user %u may not write the %s '%s': start as its owner, give it to this user "
		"(chown -R %u), or name another directory with '%s' in kinf.yaml or %s",
		err_text(r), (unsigned)geteuid(), what, path, (unsigned)geteuid(), key, option);
}
