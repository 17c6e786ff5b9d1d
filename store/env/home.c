/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/home.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "common/text/decimal.h"
#include "common/text/shell_word.h"
#include "store/env/datafile.h"
#include "store/env/home_internal.h"
#include "store/env/text_file.h"

#define ID_HEAD      HOME_ID_WORD "1 "
#define MAKING_TRIES 10
#define MAKING_NS    (10 * UINT64_C(1000000000))

const char *home_role_lock(enum home_role role)
{
	static const char *const names[HOME_ROLE_MAX] = {
		[HOME_REFLECTOR] = "reflector.lock",
		[HOME_PROCESSOR] = "processor.lock",
	};

	return names[role];
}

const char *home_role_owner(enum home_role role)
{
	return role == HOME_REFLECTOR ? "reflector.owner" : "processor.owner";
}

/* ---- directories -------------------------------------------------------- */

static int home_open_directory(int directory_fd, const char *name, int *ret_fd)
{
	int fd = openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? NOT_FOUND : err_set(-errno, "'%s'", name);
	*ret_fd = fd;
	return FOUND;
}

int home_make_directory(int directory_fd, const char *name, unsigned mode, gid_t group, int *ret_fd)
{
	AUTO_FD int fd = -1;
	struct stat st;

	if (mkdirat(directory_fd, name, 0700) < 0 && errno != EEXIST)
		return err_set(-errno, "making '%s'", name);
	int r = home_open_directory(directory_fd, name, &fd);
	if (r)
		return r < 0 ? r : err_set(-ENOENT, "'%s'", name);
	if (fstat(fd, &st) < 0)
		return err_set(-errno, "'%s'", name);
	if (group != HOME_NO_GROUP && st.st_gid != group && fchown(fd, (uid_t)-1, group) < 0)
		return err_set(-errno, "giving '%s' to its group", name);
	if ((st.st_mode & 07777) != mode && fchmod(fd, mode) < 0)
		return err_set(-errno, "setting the mode of '%s'", name);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int home_make_parents(const char *name)
{
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s", name) >= sizeof(path))
		return err_set(-ENAMETOOLONG, "'%s'", name);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return err_set(-errno, "making '%s'", path);
		*slash = '/';
	}
	return 0;
}

/* ---- the store ---------------------------------------------------------- */

static bool home_is_id(const char *text)
{
	return strspn(text, "0123456789abcdef") == HOME_ID_DIGITS && !text[HOME_ID_DIGITS];
}

const char *home_runtime_id(const char *name)
{
	return strncmp(name, "kinf-", 5) == 0 && home_is_id(name + 5) ? name + 5 : NULL;
}

static int home_read_id(struct home *home)
{
	char line[128];
	const char *digits = line + strlen(ID_HEAD);
	int fd = -1;
	int r = text_file_read_line(home->fd, "id", line, sizeof(line), &fd);

	home->id_fd = fd;
	if (r != FOUND)
		return r;
	unsigned version;
	bool is_head = strncmp(line, ID_HEAD, strlen(ID_HEAD)) == 0;
	/* Any directory may have a file of this name; beside the store's other files it is our own,
	 * damaged. */
	if (!is_head && (sscanf(line, "kinf-store %u ", &version) == 1 ||
				(faccessat(home->fd, "journal/CURRENT", F_OK, 0) < 0 &&
					faccessat(home->fd, "runtime", F_OK, 0) < 0)))
		return err_say(ERR_FORMAT,
			"'%s' is no store of this version: its id file says '%.40s'; name another "
			"directory, or use the version that made it",
			home->path, line);
	if (!is_head || !home_is_id(digits))
		return err_say(ERR_CORRUPT,
			"'%s': the id file is damaged: 'kinf run' writes it again", home->path);
	memcpy(home->id, digits, HOME_ID_DIGITS + 1);
	return 0;
}

/* Writes a new id. A copy without its id becomes a store of its own. */
static int home_write_id(const struct home *home)
{
	char line[sizeof(ID_HEAD) + HOME_ID_DIGITS + 1];
	uint64_t chance;
	int r = proc_random(&chance, sizeof(chance));

	if (r < 0)
		return r;
	(void)snprintf(line, sizeof(line), ID_HEAD "%016" PRIx64 "\n", chance);
	return text_file_replace(home->fd, "id", line, home_file_mode(home));
}

/* Gives the readers' files to the group, perhaps newer than the store. */
static int home_give_files(const struct home *home, gid_t group)
{
	const struct {
		int directory;
		const char *name;
	} files[] = {{home->fd, "id"}, {home->fd, "runtime"}, {home->journal_fd, "CURRENT"},
		{home->index_fd, "CURRENT"}};
	struct stat st;

	for (size_t i = 0; group != HOME_NO_GROUP && i < ARRAY_SIZE(files); i++) {
		if (fstatat(files[i].directory, files[i].name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			!S_ISREG(st.st_mode) ||
			(st.st_gid == group && (st.st_mode & 0777) == home_file_mode(home)))
			continue;
		if (fchownat(files[i].directory, files[i].name, (uid_t)-1, group,
			    AT_SYMLINK_NOFOLLOW) < 0 ||
			fchmodat(files[i].directory, files[i].name, home_file_mode(home), 0) < 0)
			return err_set(-errno, "giving '%s' to the store's group", files[i].name);
	}
	return 0;
}

/* Leaves the store locked by *RET_LOCK: both daemons may start at the same time. */
static int home_create(
	struct home *home, const char *store, const char *runtime_dir, gid_t group, int *ret_lock)
{
	unsigned mode = group == HOME_NO_GROUP ? 0700 : 02750;
	unsigned shared = group == HOME_NO_GROUP ? 0700 : 03770;
	int journal = -1, index = -1, cursors = -1;
	AUTO_FD int pins = -1;

	int r = home_check_place(store, runtime_dir);
	if (r == 0)
		r = home_check_owner(store);
	if (r == 0)
		r = home_make_parents(store);
	if (r < 0)
		return r;
	r = home_make_directory(AT_FDCWD, store, mode, group, &home->fd);
	if (r < 0)
		return r;
	/* A file of the owner (0600): every reader could lock the directory. */
	*ret_lock = proc_lock_within(home->fd, HOME_MAKING_LOCK, MAKING_NS);
	if (*ret_lock == ERR_LOCKED)
		return err_say(-EBUSY,
			"another process is starting there and does not get on (%s): if it is "
			"stopped, continue it or end it",
			err_text(ERR_LOCKED));
	if (*ret_lock < 0)
		return *ret_lock;
	home->has_group = group != HOME_NO_GROUP;
	r = home_make_directory(home->fd, "journal", mode, group, &journal);
	if (r == 0)
		r = home_make_directory(home->fd, "index", mode, group, &index);
	if (r == 0)
		r = home_make_directory(home->fd, "cursors", shared, group, &cursors);
	if (r == 0)
		r = home_make_directory(home->fd, HOME_PINS, shared, group, &pins);
	home->journal_fd = journal;
	home->index_fd = index;
	home->cursors_fd = cursors;
	if (r == 0)
		r = home_give_files(home, group);
	if (r == 0)
		r = home_read_id(home);
	if (r != NOT_FOUND && r != ERR_CORRUPT)
		return r;
	err_ignore(r, "the id is written again: nothing else depends on it");
	if (home->id_fd >= 0)
		(void)close(home->id_fd);
	home->id_fd = -1;
	/* The last part: it makes the directory a store. */
	r = home_write_id(home);
	return r < 0 ? r : home_read_id(home);
}

int home_explain_denied(int r, const char *store)
{
	char memory[1024], owner[HOME_USER_SIZE], group[64];
	struct group other, *found = NULL;
	struct stat st;

	if (r != -EACCES || stat(store, &st) < 0)
		return r;
	if (st.st_uid == geteuid())
		return err_add(r,
			"a part of the store '%s' does not belong to user %u, the store's owner "
			"('kinf run' says how to mend it)",
			store, (unsigned)geteuid());
	(void)home_name_user(st.st_uid, owner);
	(void)getgrgid_r(st.st_gid, &other, memory, sizeof(memory), &found);
	(void)snprintf(group, sizeof(group), "%u", st.st_gid);
	if (found)
		(void)snprintf(group, sizeof(group), "%s", found->gr_name);
	if (st.st_mode & 0050)
		return err_say(r,
			"user %u may not read the store '%s', which belongs to user %s and group "
			"%s: become a member of that group, or run as that user",
			(unsigned)geteuid(), store, owner, group);
	return err_say(r,
		"user %u may not read the store '%s', which belongs to user %s alone: run as that "
		"user, or set 'group' in its kinf.yaml, restart 'kinf run', and become a member of "
		"that group",
		(unsigned)geteuid(), store, owner);
}

static int home_find(struct home *home, const char *store)
{
	int journal = -1, index = -1, cursors = -1;
	char word[SHELL_WORD_SIZE];
	struct stat st;

	int r = home_open_directory(AT_FDCWD, store, &home->fd);
	if (r != FOUND &&
		(r == -ELOOP || (lstat(store, &st) == 0 && S_ISLNK(st.st_mode) && r == NOT_FOUND)))
		return err_say(ERR_NO_STORE,
			"no store at '%s', which is a link that leads nowhere: name another with "
			"--store",
			store);
	if (r == FOUND)
		r = home_read_id(home);
	if (r == -ENOTDIR)
		return err_say(ERR_NO_STORE,
			"no store at '%s', which is no directory: name another with --store",
			store);
	if (r == NOT_FOUND) {
		int place = home_check_place(store, NULL);

		err_ignore(place, "daemons make none there, so that is not proposed");
		if (place < 0)
			return err_say(ERR_NO_STORE,
				"no store at '%s': name the right directory with --store", store);
		return err_say(ERR_NO_STORE,
			"no store at '%s': start one with 'kinf run --store %s', or name another "
			"with --store",
			store, shell_word(store, word));
	}
	if (r == 0 && fstat(home->fd, &st) < 0)
		r = err_set(-errno, "'%s'", store);
	if (r < 0)
		return home_explain_denied(r, store);
	home->has_group = (st.st_mode & 02040) == 02040;
	r = home_open_directory(home->fd, "journal", &journal);
	if (r >= 0)
		r = home_open_directory(home->fd, "index", &index);
	if (r >= 0)
		r = home_open_directory(home->fd, "cursors", &cursors);
	home->journal_fd = journal;
	home->index_fd = index;
	home->cursors_fd = cursors;
	return r < 0 ? home_explain_denied(r, store) : 0;
}

/* ---- public ------------------------------------------------------------- */

/* Finds a group by its name or, as chown(1), by its number: containers have no names. */
static int home_find_group(const char *name, gid_t *ret_group)
{
	char memory[4096];
	struct group entry, *found;
	uint64_t number;
	int rc = getgrnam_r(name, &entry, memory, sizeof(memory), &found);

	if (rc == 0 && found)
		*ret_group = entry.gr_gid;
	else if (decimal_parse(bytes_str(name), UINT32_MAX - 1, &number) == 0)
		*ret_group = (gid_t)number;
	else
		return err_say(ERR_CONFIG, "no group '%s' on this machine", name);
	return 0;
}

int home_check_group(const char *name)
{
	gid_t group;

	return home_find_group(name, &group);
}

static int home_open_parts(struct home *home, const char *store, const struct home_options *options)
{
	char resolved[PATH_MAX];
	gid_t group = HOME_NO_GROUP;
	AUTO_FD int lock = -1;

	if (options->group) {
		int r = home_find_group(options->group, &group);
		if (r < 0)
			return r;
	}
	(void)snprintf(home->path, sizeof(home->path), "%s", store);
	home->unchecked = options->unchecked;
	int r = options->create ? home_create(home, store, options->runtime_dir, group, &lock)
				: home_find(home, store);
	if (r < 0)
		return options->create ? home_explain_rights(r, "store", store, "store", "--store")
				       : r;
	/* An absolute path keeps its links, for people to turn them to another store. */
	if (*store != '/' && realpath(store, resolved))
		memcpy(home->path, resolved, strlen(resolved) + 1);
	if (!options->create)
		return home_find_runtime(home);
	r = home_make_runtime(home, options->runtime_dir, group);
	if (r < 0 && !*home->runtime) /* the record can't be read */
		return home_explain_rights(r, "store", store, "store", "--store");
	return r < 0 ? home_explain_rights(
			       r, "runtime directory", home->runtime, "runtimeDir", "--runtime-dir")
		     : 0;
}

static int home_open_once(
	const char *store, const struct home_options *options, struct home **ret_home)
{
	CLEANUP(home_close) struct home *home = calloc(1, sizeof(*home));

	if (!home)
		return err_set(-ENOMEM, "opening store '%s'", store);
	home->magic = HOME_MAGIC;
	(void)pthread_mutex_init(&home->reopening, NULL); /* a default one cannot fail on Linux */
	home->fd = -1;
	/* One by one, because clang 14 accepts no chained assignment of atomics. */
	home->id_fd = -1;
	home->journal_fd = -1;
	home->index_fd = -1;
	home->cursors_fd = -1;
	home->record_fd = -1;
	home->runtime_fd = -1;
	for (int i = 0; i < HOME_ROLE_MAX; i++)
		home->role_fd[i] = home->role_owner[i] = home->runtime_lock[i] = -1;
	int r = home_open_parts(home, store, options);
	if (r == ERR_NO_STORE)
		return r;
	if (r < 0) /* sentences for people name it */
		return strstr(err_text(r), store) ? r : err_add(r, "opening store '%s'", store);
	_Atomic int *const parts[] = {&home->id_fd, &home->journal_fd, &home->index_fd,
		&home->cursors_fd, &home->record_fd, &home->runtime_fd};
	home->fd = proc_apart(home->fd); /* before another thread knows it */
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		*parts[i] = proc_apart(*parts[i]);
	*ret_home = TAKE(home);
	return 0;
}

int home_open(const char *store, const struct home_options *options, struct home **ret_home)
{
	int r = home_open_once(store, options, ret_home);

	/* Another daemon may have removed the runtime directory (home_remove_runtime()). */
	for (int tries = 1; r == -ENOENT && options->create && tries < MAKING_TRIES; tries++)
		r = home_open_once(store, options, ret_home);
	return r;
}

void home_close(struct home **home)
{
	struct home *h = *home;

	if (!h)
		return;
	CHECK_OBJ(h, HOME_MAGIC);
	for (int i = 0; i < HOME_ROLE_MAX; i++) {
		cleanup_fd(&h->runtime_lock[i]);
		cleanup_fd(&h->role_fd[i]);
		cleanup_fd(&h->role_owner[i]);
	}
	int parts[] = {
		h->runtime_fd, h->record_fd, h->cursors_fd, h->index_fd, h->journal_fd, h->id_fd};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		cleanup_fd(&parts[i]);
	cleanup_fd(&h->fd);
	replaced_files_close(&h->replaced);
	(void)pthread_mutex_destroy(&h->reopening);
	h->magic = 0;
	free(h);
	*home = NULL;
}

const char *home_path(const struct home *home)
{
	CHECK_OBJ(home, HOME_MAGIC);
	return home->path;
}

const char *home_id(const struct home *home)
{
	CHECK_OBJ(home, HOME_MAGIC);
	return home->id;
}

const char *home_runtime(const struct home *home)
{
	CHECK_OBJ(home, HOME_MAGIC);
	return home->runtime_fd < 0 ? "" : home->runtime;
}

int home_fd(const struct home *home)
{
	CHECK_OBJ(home, HOME_MAGIC);
	return home->fd;
}

int home_journal_fd(const struct home *home)
{
	CHECK_OBJ(home, HOME_MAGIC);
	return home->journal_fd;
}

int home_index_fd(const struct home *home)
{
	CHECK_OBJ(home, HOME_MAGIC);
	return home->index_fd;
}

int home_cursors_fd(const struct home *home)
{
	CHECK_OBJ(home, HOME_MAGIC);
	return home->cursors_fd;
}

int home_runtime_fd(const struct home *home)
{
	CHECK_OBJ(home, HOME_MAGIC);
	return home->runtime_fd;
}

bool home_lacks_room(const struct home *home)
{
	char above[PATH_MAX];

	CHECK_OBJ(home, HOME_MAGIC);
	if (datafile_disk_is_full(home->path) ||
		(home->runtime[0] && datafile_disk_is_full(home->runtime)))
		return true;
	/* Removed by the last daemon, and the next one can't make it. */
	memcpy(above, home->runtime, sizeof(above));
	char *slash = strrchr(above, '/');
	if (!slash || slash == above)
		return false;
	*slash = '\0';
	return datafile_disk_is_full(above);
}

bool home_lacks_journal(const struct home *home)
{
	CHECK_OBJ(home, HOME_MAGIC);
	return home->index_fd >= 0 && faccessat(home->index_fd, "CURRENT", F_OK, 0) == 0 &&
	       (home->journal_fd < 0 ||
		       (faccessat(home->journal_fd, "CURRENT", F_OK, 0) < 0 && errno == ENOENT));
}

bool home_is_unchecked(const struct home *home)
{
	CHECK_OBJ(home, HOME_MAGIC);
	return home->unchecked;
}

unsigned home_file_mode(const struct home *home)
{
	CHECK_OBJ(home, HOME_MAGIC);
	return home->has_group ? 0640 : 0600;
}

/*
 * Takes the role by a lock on ROLE.owner, closed to other users. Then shows the role to readers by
 * a lock on ROLE.lock, a new file each time, locked before readers can open it: a member of the
 * group can have a read lock on older files only.
 */
int home_take_role(struct home *home, enum home_role role)
{
	CHECK_OBJ(home, HOME_MAGIC);
	REQUIRE(role < HOME_ROLE_MAX && home->role_fd[role] < 0);
	AUTO_FD int owner_fd = proc_lock(home->fd, home_role_owner(role));
	if (owner_fd == ERR_LOCKED)
		return err_add(owner_fd,
			"store '%s' is in use: stop the process that runs there, or name another "
			"store with --store",
			home->path);
	if (owner_fd < 0)
		return err_add(owner_fd, "store '%s'", home->path);
	AUTO_FD int shown_fd = proc_show_lock(home->fd, home_role_lock(role), home_file_mode(home));
	if (shown_fd < 0)
		return err_add(shown_fd, "store '%s'", home->path);
	int r = home_lock_runtime(home, role);
	if (r < 0)
		return r;
	home->role_owner[role] = TAKE_FD(owner_fd);
	home->role_fd[role] = TAKE_FD(shown_fd);
	return 0;
}

int home_role_holder(const struct home *home, enum home_role role)
{
	char line[32];
	int pid = 0;

	CHECK_OBJ(home, HOME_MAGIC);
	REQUIRE(role < HOME_ROLE_MAX);
	if (!proc_is_locked(home->fd, home_role_lock(role)))
		return 0;
	if (text_file_read_line(home->fd, home_role_lock(role), line, sizeof(line), NULL) !=
			FOUND ||
		sscanf(line, "%d", &pid) != 1 || pid <= 0)
		pid = -1; /* the holder has not written its pid yet */
	return pid;
}
