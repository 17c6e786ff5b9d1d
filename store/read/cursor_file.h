/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named cursors: <store>/cursors/NAME, a text file {journal uuid, position per feed} that a
 * follower replaces as a whole (FORMAT.md, Cursors). The reflector reads them before it trims:
 * history that a cursor needs is kept. A name is [A-Za-z0-9._-]{1,64} and does not begin with a
 * dot.
 */
#ifndef STORE_READ_CURSOR_FILE_H
#define STORE_READ_CURSOR_FILE_H

#include <dirent.h>
#include <stddef.h>
#include <sys/stat.h>

#include "common/hashtable.h"
#include "store/env/home.h"

/* The seq up to which a follower has examined a feed. */
struct follow_position {
	uint32_t feed;
	uint64_t seq;
};

struct cursor_file {
	uint8_t uuid[16];
	struct follow_position *positions;
	size_t n;
	uint64_t written_ns; /* CLOCK_REALTIME of its last writing */
};

#define CURSOR_NAME_MAX 64
/* that count: members of the store's group may put any number of files into the directory */
#define CURSORS_PER_OWNER    1024
#define CURSOR_RANDOM_DIGITS 16 /* in the name of a temporary file */
/* Returns: 0; -EINVAL: NAME is no name of a cursor. */
int cursor_check_name(const char *name);

/* Returns: FOUND, NOT_FOUND, ERR_CORRUPT. The caller releases the cursor. */
int cursor_load(struct home *home, const char *name, struct cursor_file *ret_cursor);
/* Does the same for the follower that begins there. Returns also -EPERM: another member of the
 * group wrote it. */
int cursor_load_own(struct home *home, const char *name, struct cursor_file *ret_cursor);
/* Checks that a follower of this process may begin at the position in a file like ST: in a
 * directory into which others may write, one of this user, or for the directory's owner and root
 * one of either. Returns: 0, -EPERM. */
int cursor_check_owner(int directory, const struct stat *st);
void cursor_release(struct cursor_file *cursor);

/* Returns whether CURSOR has positions of exactly these N feeds. One of other feeds has missed
 * or lost some of their objects. */
bool cursor_is_of(const struct cursor_file *cursor, const uint32_t *feeds, size_t n);

/* Returns the seq up to which the follower has examined all its feeds; 0 if it has none. */
uint64_t cursor_least(const struct cursor_file *cursor);

int cursor_save(struct home *home, const char *name, const uint8_t uuid[16],
	const struct follow_position *positions, size_t n);
int cursor_remove(struct home *home, const char *name);

/* Makes each cursor lapse that is of the journal UUID and after its end, before NEXT_SEQ: an
 * older copy was put in the journal's place, and gives the same seqs to other changes. A cursor
 * that its follower would not accept from this process is removed. Returns how many, or errors. */
int cursor_lapse_later(struct home *home, const uint8_t uuid[16], uint64_t next_seq);

/* Checks whether a cursor last written at WRITTEN_NS no longer keeps history. A time in the future
 * came from a wrong clock and counts by its distance from now. */
bool cursor_is_expired(uint64_t written_ns, uint64_t expiry_ns);

/* Removes the file NAME, whose stat(2) is ST, if it is a cursor that expired EXPIRY_NS ago
 * (until then its follower gets LAPPED) or a temporary file of a killed follower. Returns
 * whether it did. */
bool cursor_sweep(int directory_fd, const char *name, const struct stat *st, uint64_t expiry_ns);

/* Opens the cursors' directory. The caller closes it. */
int cursor_open_directory(struct home *home, DIR **ret_directory);

/* Counts a file of OWNER in a walk, which begins with an empty OWNERS (hashtable_number). Gives
 * whether it is one of the CURSORS_PER_OWNER that count. */
int cursor_count_owner(struct hashtable *owners, uid_t owner, bool *ret_counts);

/* Calls FN for each readable cursor that counts until it returns non-zero, and BAD, unless it is
 * NULL, for each other file, with the error, whose sentence names the file. */
typedef int cursor_fn(void *arg, const char *name, const struct cursor_file *cursor);
typedef void cursor_bad_fn(void *arg, int error);
int cursor_each_file(struct home *home, cursor_fn *fn, cursor_bad_fn *bad, void *arg);
int cursor_each(struct home *home, cursor_fn *fn, void *arg);

#endif
