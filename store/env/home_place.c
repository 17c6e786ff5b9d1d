/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a daemon may make its store at a path, and the sentences when it may not or can't. A
 * store's directory is closed to other users, so that a directory that others use must not
 * become one: all programs of the machine would lose `/`, and a user the directory of a web
 * server. A store belongs to one user. Nothing is changed before both are checked.
 */
#include "store/env/home_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/shell_word.h"
#include "store/env/generation.h"
#include "store/env/text_file.h"

static bool place_has_file(int fd, const char *name)
{
	struct stat st;

	return fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

/* Reads the first line of a file that may be anything. Returns "" if it can't be read. */
static const char *place_read(int fd, const char *name, char line[PATH_MAX])
{
	int r = text_file_read_line(fd, name, line, PATH_MAX, NULL);

	if (r < 0)
		err_ignore(r, "it is not the store's then");
	return r == FOUND ? line : "";
}

/* Returns whether a daemon has made a store of the directory FD, or has begun to. The lock is
 * the first file in it, `id` the last one; a copy may have lost either. */
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

static void place_close(DIR **directory)
{
	if (*directory)
		(void)closedir(*directory);
}

static DIR *place_list(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = copy < 0 ? NULL : fdopendir(copy);

	if (!directory && copy >= 0)
		(void)close(copy);
	return directory;
}

static const char *place_next(DIR *directory)
{
	const struct dirent *entry;

	do
		entry = readdir(directory);
	while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
	return entry ? entry->d_name : NULL;
}

/* Returns whether FD is an empty directory of this user or root. /var/lib/kinf/NAME is in the
 * directory of the first cluster's store, and a person or a daemon that starts may have made it
 * just now. */
static bool place_is_free(int fd, const struct stat *st)
{
	CLEANUP(place_close) DIR *directory = place_list(fd);

	return directory && (st->st_uid == geteuid() || st->st_uid == 0) && !place_next(directory);
}

/* Returns whether NAME may be in a directory, open as FD, that becomes a store. The runtime
 * directory may be in it: a volume that has both, and remove-store leaves that one. */
static bool place_allows(int fd, bool for_all, const char *runtime_dir, const char *name)
{
	AUTO_FD int entry_fd = -1;
	struct stat st, runtime;

	/* Programs leave hidden files and directories in the home directory of a service's user,
	 * as a shell its history, and some file systems make one of snapshots. In a directory
	 * like /tmp they belong to programs that use it. */
	if (strcmp(name, "kinf.yaml") == 0 || strcmp(name, HOME_PROBE) == 0 ||
		(*name == '.' && !for_all))
		return true;
	entry_fd = openat(fd, name,
		O_PATH | O_DIRECTORY | O_NOFOLLOW |
			O_CLOEXEC); /* root's lost+found can't be read */
	if (entry_fd < 0 || fstat(entry_fd, &st) < 0)
		return false;
	if (runtime_dir && stat(runtime_dir, &runtime) == 0 && runtime.st_dev == st.st_dev &&
		runtime.st_ino == st.st_ino)
		return true;
	return strcmp(name, "lost+found") == 0 || place_is_taken(entry_fd) ||
	       (!for_all && place_is_free(entry_fd, &st));
}

/* Returns whether the directory is one that all programs of a machine know by this path. */
static bool place_is_everybodys(const struct stat *st)
{
	static const char *const paths[] = {"/", "/tmp", "/var/tmp", "/dev/shm"};
	struct stat known;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (stat(paths[i], &known) == 0 && known.st_dev == st->st_dev &&
			known.st_ino == st->st_ino)
			return true;
	return false;
}

static int place_check_entries(
	int fd, const struct stat *st, const char *runtime_dir, const char *store)
{
	CLEANUP(place_close) DIR *directory = place_list(fd);
	bool for_all = (st->st_mode & 01002) == 01002;
	char word[SHELL_WORD_SIZE];

	if (place_is_taken(fd))
		return 0;
	for (const char *name; directory && (name = place_next(directory));)
		/* Another daemon may have made a store of it meanwhile. */
		if (!place_allows(fd, for_all, runtime_dir, name) && !place_is_taken(fd))
			return err_say(ERR_CONFIG,
				"the directory '%s' is no store, and has something else in it, "
				"such as %s: a store has its "
				"directory for itself and closes it to other users; name a new or "
				"an empty one with 'store' in "
				"kinf.yaml or --store",
				store, shell_word(name, word));
	return 0;
}

int home_find_user(int directory_fd, uid_t *ret_user)
{
	struct stat made;

	(void)unlinkat(directory_fd, HOME_PROBE, 0); /* of a killed process, or there is none */
	AUTO_FD int fd = openat(directory_fd, HOME_PROBE,
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r = fd < 0 || fstat(fd, &made) < 0 ? err_set(-errno, "making a file") : 0;
	if (fd >= 0)
		(void)unlinkat(directory_fd, HOME_PROBE, 0);
	if (r == 0)
		*ret_user = made.st_uid;
	return r;
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

/* Refuses what only makes files that the owner of the directory can't read: root's daemons in
 * the store of a user. */
static int place_check_owner(int fd, const struct stat *st, const char *store)
{
	char user[HOME_USER_SIZE], account[HOME_USER_SIZE + 1], word[SHELL_WORD_SIZE],
		other[SHELL_WORD_SIZE];
	uid_t maker;
	int r = home_find_user(fd, &maker);

	err_ignore(r, "the caller makes files there also, and says why it can't");
	if (r < 0 || maker != geteuid())
		return 0;
	(void)home_name_user(st->st_uid, user);
	(void)snprintf(account, sizeof(account), "%s%s", *user >= '0' && *user <= '9' ? "#" : "",
		user); /* as sudo takes a number */
	return err_say(ERR_CONFIG,
		"the directory '%s' belongs to user %s, and a store to the user of its daemons, "
		"which is %u here: start as that user "
		"(sudo -u %s), give it to this one (chown -R %u %s), or name another directory, as "
		"one in it, with 'store' in kinf.yaml or --store",
		store, user, (unsigned)maker, shell_word(account, word), (unsigned)maker,
		shell_word(store, other));
}

/* Checks that PART, if there is something of that name, is a directory, or a link to one, or a
 * file that can be locked. */
static int place_check_kind(int fd, const char *part, bool directory, const char *store)
{
	struct stat st;

	if (fstatat(fd, part, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (directory && S_ISLNK(st.st_mode) && fstatat(fd, part, &st, 0) < 0 && errno != ENOENT &&
		errno != ELOOP)
		return 0; /* the caller says what is wrong with it */
	if (directory ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode))
		return 0;
	return err_say(ERR_CONFIG,
		"'%s/%s' is something else than the %s of the store: remove it, and it is made "
		"again",
		store, part, directory ? "directory" : "file");
}

/* Checks whether this user may use PART of its store. */
static int place_check_part(int fd, const char *part, const char *store)
{
	char user[HOME_USER_SIZE], word[SHELL_WORD_SIZE];
	struct stat st;

	if (fstatat(fd, part, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		faccessat(fd, part, S_ISDIR(st.st_mode) ? R_OK | W_OK | X_OK : R_OK | W_OK,
			AT_EACCESS) == 0 ||
		errno != EACCES)
		return 0; /* it is made, or the caller says what is wrong with it */
	if (st.st_uid == geteuid())
		return err_say(ERR_CONFIG,
			"user %u may not use '%s/%s', which is its own, because of the mode: chmod "
			"-R u+rwX %s",
			(unsigned)geteuid(), store, part, shell_word(store, word));
	return err_say(ERR_CONFIG,
		"user %u may not use '%s/%s', which belongs to user %s: give this user what root "
		"or a copy left in its store "
		"(sudo chown -R --from=%u %u %s; chmod -R u+rwX for its modes)",
		(unsigned)geteuid(), store, part, home_name_user(st.st_uid, user),
		(unsigned)st.st_uid, (unsigned)geteuid(), shell_word(store, word));
}

static int place_check_parts_of(int fd, const char *directory, const char *store)
{
	AUTO_FD int directory_fd =
		openat(fd, directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CLEANUP(place_close) DIR *entries = directory_fd < 0 ? NULL : place_list(directory_fd);
	char part[2 * NAME_MAX + 2];
	int r = 0;

	for (const char *name; r == 0 && entries && (name = place_next(entries));) {
		(void)snprintf(part, sizeof(part), "%s/%s", directory, name);
		r = place_check_part(fd, part, store);
	}
	return r;
}

/* The files of readers in cursors/ and pins/ may be other users'. */
static int place_check_parts(int fd, const char *store)
{
	/* Writing `id` or `runtime` replaces all that has the name. */
	static const struct {
		const char *name;
		enum { PLACE_DIRECTORY, PLACE_LOCK, PLACE_TEXT } kind;
	} parts[] = {{"journal", PLACE_DIRECTORY}, {"index", PLACE_DIRECTORY},
		{"cursors", PLACE_DIRECTORY}, {HOME_PINS, PLACE_DIRECTORY},
		{HOME_MAKING_LOCK, PLACE_LOCK}, {"reflector.owner", PLACE_LOCK},
		{"reflector.lock", PLACE_LOCK}, {"processor.owner", PLACE_LOCK},
		{"processor.lock", PLACE_LOCK}, {"id", PLACE_TEXT}, {"runtime", PLACE_TEXT}};
	static const char *const databases[] = {"journal", "index"};
	char generation[64];
	uint32_t number;
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (parts[i].kind != PLACE_TEXT)
			r = place_check_kind(
				fd, parts[i].name, parts[i].kind == PLACE_DIRECTORY, store);
		if (r == 0)
			r = place_check_part(fd, parts[i].name, store);
	}
	for (size_t i = 0; r == 0 && i < 2; i++) {
		AUTO_FD int database =
			openat(fd, databases[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		r = place_check_parts_of(fd, databases[i], store);
		if (r < 0 || database < 0)
			continue;
		int found = generation_current(database, &number);
		err_ignore(found, "the daemon reads it also");
		if (found != FOUND)
			continue;
		(void)snprintf(
			generation, sizeof(generation), "%s/gen-%" PRIu32, databases[i], number);
		r = place_check_parts_of(fd, generation, store);
	}
	return r;
}

int home_check_owner(const char *store)
{
	AUTO_FD int fd = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 0; /* there is none yet, or the caller can't use it and says why */
	return st.st_uid == geteuid() ? place_check_parts(fd, store)
				      : place_check_owner(fd, &st, store);
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
		return 0; /* there is none yet, or the caller can't use it and says why */
	if (place_is_everybodys(&st))
		return err_say(ERR_CONFIG,
			"the store can't be the directory '%s': all programs use that, and a store "
			"closes its directory to other "
			"users; name a directory of its own with 'store' in kinf.yaml or --store",
			store);
	return place_check_entries(fd, &st, runtime_dir, store);
}

/* ---- what an attempt said ----------------------------------------------- */

/* Returns whether PATH can't be made, R being the error of an attempt. Another process may have
 * removed a part of it just then, so it is tried once more. */
static bool place_is_impossible(int r, const char *path)
{
	if (r == -ENOENT && home_make_parents(path) == 0 &&
		(mkdir(path, 0700) == 0 || access(path, F_OK) == 0))
		return false;
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -ENAMETOOLONG;
}

int home_explain_rights(
	int r, const char *what, const char *path, const char *key, const char *option)
{
	char word[SHELL_WORD_SIZE];

	if (place_is_impossible(r, path))
		return err_say(ERR_CONFIG,
			"%s: the %s '%s' can't be made: a part of this path is no directory, leads "
			"nowhere, or allows no new "
			"directories; correct it, or name another directory with '%s' in kinf.yaml "
			"or %s",
			err_text(r), what, path, key, option);
	if (r == -EROFS)
		return err_say(ERR_CONFIG,
			"%s: the %s '%s' is on a file system that is mounted read-only: mount it "
			"writable, or name "
			"another directory with '%s' in kinf.yaml or %s",
			err_text(r), what, path, key, option);
	if (r != -EACCES) /* -EPERM has a sentence of its own */
		return r;
	if (faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) < 0 && errno == ENOENT)
		return err_say(ERR_CONFIG,
			"%s: user %u may not make the %s '%s' in the directory above it: start as "
			"a user that may, or make it "
			"for this user (install -d -o %u %s), or name another directory with '%s' "
			"in kinf.yaml or %s",
			err_text(r), (unsigned)geteuid(), what, path, (unsigned)geteuid(),
			shell_word(path, word), key, option);
	return err_say(ERR_CONFIG,
		"%s: user %u may not write the %s '%s': start as the user that it belongs to, give "
		"it to this user "
		"(chown -R %u), or name another directory with '%s' in kinf.yaml or %s",
		err_text(r), (unsigned)geteuid(), what, path, (unsigned)geteuid(), key, option);
}
