/* SPDX-License-Identifier: Apache-2.0 */
/* Cursor files are text, for operators to read (FORMAT.md, Cursors). */
#include "store/read/cursor_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/array.h"
#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "common/hashtable.h"
#include "common/proc.h"
#include "common/text/utf8.h"
#include "store/env/text_file.h"

#define FILE_MAX_BYTES (256 << 10) /* a line of 37 bytes for each of 4096 feeds is 152 KB */
#define FIRST_LINE     "kinf-cursor 1"
/* much longer than a file is written for */
#define TEMPORARY_NS (UINT64_C(1800) * 1000000000)

int cursor_check_name(const char *name)
{
	size_t n = strlen(name);
	bool good = n > 0 && n <= CURSOR_NAME_MAX && name[0] != '.';

	for (size_t i = 0; good && i < n; i++)
		good = ascii_is_alnum(name[i]) || strchr("._-", name[i]);
	if (good)
		return 0;
	return err_say(-EINVAL,
		"cursor name '%.80s': 1 to %d letters, digits, '.', '_', '-', not beginning with "
		"'.'",
		name, CURSOR_NAME_MAX);
}

/* ---- writing ------------------------------------------------------------ */

/* Writes a new temporary file with an unpredictable name and renames it: the group's members can
 * write to the directory, and none of their links or files may be opened. Returns: 0; -ENOENT:
 * there is no directory, and the caller makes it; errors. */
static int cursor_write_file(struct home *home, const char *name, struct bytes text)
{
	int directory = home_cursors_fd(home);
	char temporary[CURSOR_NAME_MAX + 40];
	uint64_t chance;

	int r = proc_random(&chance, sizeof(chance));
	if (r < 0)
		return r;
	(void)snprintf(temporary, sizeof(temporary), ".%s.%016" PRIx64, name, chance);
	AUTO_FD int fd = proc_above_standard(openat(
		directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640));
	if (fd < 0) {
		int error = errno == EBADF ? ENOENT : errno; /* EBADF: never had one */

		return err_set(-error, "creating '%s'", temporary);
	}
	/* The reflector must be able to read it whatever the umask: it may be another user. */
	r = fchmod(fd, 0640) < 0 ? err_set(-errno, "setting the mode of '%s'", temporary)
				 : text_file_write(fd, text);
	if (r == 0)
		r = failpoint_pass(FAILPOINT_CURSOR_WRITE);
	if (r == 0 && renameat(directory, temporary, directory, name) < 0)
		r = err_set(-errno, "renaming '%s'", temporary);
	if (r < 0)
		(void)unlinkat(directory, temporary, 0); /* the old cursor stays */
	return r;
}

int cursor_save(struct home *home, const char *name, const uint8_t uuid[16],
	const struct follow_position *positions, size_t n)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	int r = cursor_check_name(name);

	if (r < 0)
		return r;
	buf_str(&text, FIRST_LINE "\njournal ");
	for (unsigned i = 0; i < 16; i++)
		buf_printf(&text, "%02x", uuid[i]);
	buf_printf(&text, "\nwritten %" PRIu64 "\n", proc_realtime_ns());
	for (size_t i = 0; i < n; i++)
		buf_printf(&text, "feed %" PRIu32 " %" PRIu64 "\n", positions[i].feed,
			positions[i].seq);
	buf_str(&text, "end\n");
	r = buf_error(&text);
	if (r < 0)
		return r;
	r = cursor_write_file(home, name, buf_bytes(&text));
	if (r == -ENOENT) {
		err_ignore(r, "the directory was removed, and is made again");
		r = home_make_cursors(home);
		if (r < 0)
			return err_add(r, "writing cursor '%s'", name);
		r = cursor_write_file(home, name, buf_bytes(&text));
	}
	return r < 0 ? err_add(r, "writing cursor '%s' in '%s/cursors'", name, home_path(home)) : 0;
}

int cursor_remove(struct home *home, const char *name)
{
	struct stat st;
	int r = cursor_check_name(name);

	if (r < 0)
		return r;
	if (unlinkat(home_cursors_fd(home), name, 0) == 0)
		return FOUND;
	/* A member can take a name with a directory. */
	if (errno == EISDIR && unlinkat(home_cursors_fd(home), name, AT_REMOVEDIR) == 0)
		return FOUND;
	if (errno == ENOTEMPTY)
		return err_say(-ENOTEMPTY,
			"'%s/cursors/%s' is a directory with something in it: remove it with 'rm "
			"-r'",
			home_path(home), name);
	if (errno == ENOENT)
		return NOT_FOUND;
	int error = errno;
	if (error == EPERM && fstatat(home_cursors_fd(home), name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return err_say(-EPERM,
			"cursor '%s' belongs to user %u: that user, the store's owner and root may "
			"remove it",
			name, (unsigned)st.st_uid);
	return err_set(-error, "removing cursor '%s'", name);
}

/* ---- reading ------------------------------------------------------------ */

/* Checks the owner of a file like ST before a follower of this process begins at its position. In a
 * directory writable by others it must be this user's; the directory's owner and root also accept
 * each other's. Returns: 0, -EPERM. */
static int cursor_check_owner(int directory, const struct stat *st)
{
	uid_t self = geteuid();
	struct stat above;

	if (fstat(directory, &above) < 0)
		return err_set(-errno, "the directory of cursors");
	bool trusted = self == 0 || self == above.st_uid,
	     theirs = st->st_uid == 0 || st->st_uid == above.st_uid;

	if (!(above.st_mode & S_ISVTX))
		return 0; /* nobody else can write to it */
	if (st->st_uid != self && !(trusted && theirs))
		return err_say(-EPERM,
			"it belongs to user %u: run as that user, or name another cursor%s",
			(unsigned)st->st_uid,
			trusted ? ", or remove it with 'kinf cursor rm'" : "");
	if (st->st_nlink > 1) /* another's file by this name */
		return err_say(-EPERM, "its file has other names: remove it with 'kinf cursor rm', "
				       "or name another cursor");
	return 0;
}

/* Also checks the owner if OWN: the cursor will be this user's. */
static int cursor_read_file(int directory, const char *name, bool own, struct buf *text)
{
	if (directory < 0)
		return NOT_FOUND; /* a copy without cursors */
	/* A FIFO of a group member must not stop a reader of all cursors. */
	AUTO_FD int fd = openat(directory, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? NOT_FOUND : err_set(-errno, "cursor '%s'", name);
	if (fstat(fd, &st) < 0)
		return err_set(-errno, "cursor '%s'", name);
	int r = own ? cursor_check_owner(directory, &st) : 0;
	if (r < 0)
		return r;
	if (!S_ISREG(st.st_mode))
		return err_set(ERR_CORRUPT, "cursor '%s' is no file", name);
	text->limit = FILE_MAX_BYTES;
	r = buf_read_file(text, fd, name);
	return r < 0 ? err_add(r, "cursor '%s'", name) : FOUND;
}

static bool cursor_read_uuid(const char *text, uint8_t uuid[16])
{
	if (strlen(text) != 32)
		return false;
	for (unsigned i = 0; i < 16; i++) {
		unsigned byte;

		if (sscanf(text + 2 * i, "%2x", &byte) != 1)
			return false;
		uuid[i] = (uint8_t)byte;
	}
	return true;
}

static int cursor_parse(char *text, struct cursor_file *cursor)
{
	char *rest = NULL, *line = strtok_r(text, "\n", &rest);
	size_t room = 0;

	if (!line || strcmp(line, FIRST_LINE) != 0)
		return err_set(ERR_FORMAT, "its first line is not '%s'", FIRST_LINE);
	while ((line = strtok_r(NULL, "\n", &rest))) {
		struct follow_position position;
		int end = 0, r = 0;

		if (strcmp(line, "end") == 0)
			return 0;
		if (strncmp(line, "journal ", 8) == 0 && cursor_read_uuid(line + 8, cursor->uuid))
			continue;
		if (sscanf(line, "written %" SCNu64 "%n", &cursor->written_ns, &end) == 1 &&
			!line[end])
			continue;
		if (sscanf(line, "feed %" SCNu32 " %" SCNu64 "%n", &position.feed, &position.seq,
			    &end) != 2 ||
			line[end])
			return err_set(ERR_CORRUPT, "line '%.80s'", line);
		r = ARRAY_ADD(cursor->positions, cursor->n, room, position, "its positions");
		if (r < 0)
			return r;
	}
	return err_set(ERR_CORRUPT, "its last line is missing");
}

int cursor_load(struct home *home, const char *name, bool own, struct cursor_file *ret_cursor)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	struct cursor_file cursor = {{0}, NULL, 0, 0};
	int r = cursor_check_name(name);

	if (r == 0)
		r = cursor_read_file(home_cursors_fd(home), name, own, &text);
	if (r == -EPERM)
		return err_add(r, "cursor '%s'", name);
	if (r != FOUND)
		return r;
	(void)buf_cstr(&text);
	r = buf_error(&text);
	if (r == 0)
		r = cursor_parse((char *)text.data, &cursor);
	if (r < 0) {
		cursor_release(&cursor);
		return err_add(r, "cursor '%s' (remove it with 'kinf cursor rm %s')", name, name);
	}
	*ret_cursor = cursor;
	return FOUND;
}

void cursor_release(struct cursor_file *cursor)
{
	free(cursor->positions);
	*cursor = (struct cursor_file){{0}, NULL, 0, 0};
}

bool cursor_is_of(const struct cursor_file *cursor, const uint32_t *feeds, size_t n)
{
	size_t found = 0;

	for (size_t i = 0; i < cursor->n; i++)
		for (size_t k = 0; k < n; k++)
			found += cursor->positions[i].feed == feeds[k];
	return found == n && cursor->n == n;
}

uint64_t cursor_least(const struct cursor_file *cursor)
{
	uint64_t least = cursor->n ? UINT64_MAX : 0;

	for (size_t i = 0; i < cursor->n; i++)
		if (cursor->positions[i].seq < least)
			least = cursor->positions[i].seq;
	return least;
}

/* ---- all of them -------------------------------------------------------- */

/* Counts a file of OWNER in a walk; OWNERS is empty at the start. RET_COUNTS: it is within
 * CURSORS_PER_OWNER and CURSOR_BYTES_PER_OWNER. */
static int cursor_count_owner(struct hashtable *owners, const struct stat *st, bool *ret_counts)
{
	struct hashtable_number *n = hashtable_find_number(owners, st->st_uid);
	uint32_t weight = CURSOR_BYTES_PER_OWNER / CURSORS_PER_OWNER;

	if (st->st_size > weight)
		weight = st->st_size < CURSOR_BYTES_PER_OWNER ? (uint32_t)st->st_size
							      : CURSOR_BYTES_PER_OWNER;
	*ret_counts = !n || n->value + weight <= CURSOR_BYTES_PER_OWNER;
	if (n) {
		n->value += *ret_counts ? weight : 0;
		return 0;
	}
	return hashtable_put_number(owners, st->st_uid, weight, "the owners of cursors");
}

/* Loads the walk's cursor NAME. Returns as cursor_load(); ERR_TOO_LARGE: its owner has too many
 * files. */
static int cursor_load_counted(struct home *home, DIR *directory, struct hashtable *owners,
	const char *name, struct cursor_file *ret_cursor)
{
	struct stat st;
	bool counts;

	if (fstatat(dirfd(directory), name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return NOT_FOUND;
	int r = cursor_count_owner(owners, &st, &counts);
	if (r < 0)
		return r;
	return counts ? cursor_load(home, name, false, ret_cursor)
		      : err_say(ERR_TOO_LARGE,
				"cursor '%s': %d files of user %u count, of %d MiB in all, and "
				"there are more",
				name, CURSORS_PER_OWNER, (unsigned)st.st_uid,
				CURSOR_BYTES_PER_OWNER >> 20);
}

int cursor_each(struct home *home, cursor_fn *fn, cursor_bad_fn *bad, void *arg)
{
	CLEANUP(hashtable_release)
	struct hashtable owners =
		HASHTABLE_INIT(struct hashtable_number, hashtable_number_is, NULL);
	int r = 0;

	if (home_cursors_fd(home) < 0)
		return 0; /* a copy without cursors */
	CLEANUP(proc_end_list) DIR *directory = proc_list(home_cursors_fd(home), ".");
	if (!directory)
		return err_set(-errno, "'%s/cursors'", home_path(home));
	for (struct dirent *entry; r == 0 && (entry = readdir(directory));) {
		struct cursor_file cursor;

		if (entry->d_name[0] == '.')
			continue;
		r = cursor_load_counted(home, directory, &owners, entry->d_name, &cursor);
		if (r == FOUND) {
			r = fn(arg, entry->d_name, &cursor);
			cursor_release(&cursor);
		} else if (r != -ENOMEM) {
			if (bad && r != NOT_FOUND)
				bad(arg, r);
			err_ignore(r, "a file that is no cursor must not hide the others");
			r = 0;
		}
	}
	return r;
}

struct cursor_later {
	struct home *home;
	const uint8_t *uuid;
	uint64_t next_seq;
	int lapsed;
};

static int cursor_lapse_one(void *arg, const char *name, const struct cursor_file *cursor)
{
	static const uint8_t no_journal[16];
	struct cursor_later *later = arg;
	struct cursor_file own;
	bool is_later = false;

	for (size_t i = 0; i < cursor->n; i++)
		is_later |= cursor->positions[i].seq >= later->next_seq;
	if (!is_later || memcmp(cursor->uuid, later->uuid, sizeof(cursor->uuid)) != 0)
		return 0;
	int r = cursor_load(later->home, name, true, &own);

	if (r == FOUND) {
		r = cursor_save(later->home, name, no_journal, own.positions, own.n);
		cursor_release(&own);
	} else {
		r = cursor_remove(later->home, name);
	}
	err_ignore(r < 0 ? r : 0,
		"its follower lapses unless the journal has grown beyond it by then");
	later->lapsed += r >= 0;
	return 0;
}

int cursor_lapse_later(struct home *home, const uint8_t uuid[16], uint64_t next_seq)
{
	struct cursor_later later = {home, uuid, next_seq, 0};
	int r = cursor_each(home, cursor_lapse_one, NULL, &later);

	return r < 0 ? r : later.lapsed;
}

/* ---- for trimming ------------------------------------------------------- */

struct cursor_search {
	const struct cursor_keeping *keeping;
	uint64_t least;
};

static int cursor_compare_least(void *arg, const char *name, const struct cursor_file *cursor)
{
	struct cursor_search *search = arg;
	const struct cursor_keeping *keeping = search->keeping;

	(void)name;
	if (cursor->n && cursor_least(cursor) < search->least &&
		memcmp(cursor->uuid, keeping->uuid, sizeof(cursor->uuid)) == 0 &&
		!proc_is_aged(cursor->written_ns, keeping->expiry_ns, keeping->steady_ns))
		search->least = cursor_least(cursor);
	return 0;
}

int cursor_find_least(struct home *home, const struct cursor_keeping *keeping, uint64_t *ret_least)
{
	struct cursor_search search = {.keeping = keeping, .least = UINT64_MAX};
	int r = cursor_each(home, cursor_compare_least, NULL, &search);

	*ret_least = search.least;
	return r;
}

/* Removes the file if it is a cursor expired for the time of expiry again (until then its follower
 * gets LAPPED), or a killed follower's temporary file. The file's time counts: unreadable files
 * have one, too. A cursor written between this check and its removal is lost until the next
 * writing. */
static bool cursor_clean_file(int directory, const char *name, const struct cursor_keeping *keeping)
{
	bool temporary = name[0] == '.';
	struct stat st;

	if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return false;
	uint64_t limit = temporary ? TEMPORARY_NS : keeping->expiry_ns, now = proc_realtime_ns();
	uint64_t changed = (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
	/* A claim (cursor_claim.h) is as old as its follower. */
	return now > changed && (now - changed) / 2 > limit &&
	       proc_is_aged(changed, limit, keeping->steady_ns) &&
	       !(temporary && proc_is_locked(directory, name)) && unlinkat(directory, name, 0) == 0;
}

int cursor_clean(struct home *home, const struct cursor_keeping *keeping, unsigned *ret_removed)
{
	CLEANUP(proc_end_list) DIR *directory = proc_list(home_cursors_fd(home), ".");

	*ret_removed = 0;
	if (!directory)
		return err_set(-errno, "'%s/cursors'", home_path(home));
	for (struct dirent *entry; (entry = readdir(directory));)
		*ret_removed += cursor_clean_file(dirfd(directory), entry->d_name, keeping);
	return 0;
}
