/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named cursors: <store>/cursors/NAME, a text file {journal uuid, position per feed}, replaced as a
 * whole by its follower (FORMAT.md, Cursors). The reflector reads them before it trims, and keeps
 * the history they need. A name is [A-Za-z0-9._-]{1,64} and does not begin with a dot.
 */
#ifndef STORE_READ_CURSOR_FILE_H
#define STORE_READ_CURSOR_FILE_H

#include <stddef.h>

#include "store/env/home.h"

/* A follower's position in a feed: examined up to this seq. */
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
/* the rest is ignored: group members may create any number of files */
#define CURSORS_PER_OWNER      1024
#define CURSOR_BYTES_PER_OWNER (4 << 20)
/* Returns: 0; -EINVAL: NAME is no name of a cursor. */
int cursor_check_name(const char *name);

/* Returns: FOUND, NOT_FOUND, ERR_CORRUPT. The caller releases the cursor. OWN: a follower is about
 * to begin there; -EPERM: another user wrote it to a directory of several users. */
int cursor_load(struct home *home, const char *name, bool own, struct cursor_file *ret_cursor);
void cursor_release(struct cursor_file *cursor);

/* Returns whether CURSOR has positions of exactly these N feeds. Otherwise some of their objects
 * may be lost. */
bool cursor_is_of(const struct cursor_file *cursor, const uint32_t *feeds, size_t n);

/* Returns the lowest position; 0: there is none. */
uint64_t cursor_least(const struct cursor_file *cursor);

int cursor_save(struct home *home, const char *name, const uint8_t uuid[16],
	const struct follow_position *positions, size_t n);
int cursor_remove(struct home *home, const char *name);

/* Makes cursors of journal UUID at or after NEXT_SEQ lapse: an older copy was put in the journal's
 * place, and gives the same seqs to other changes. Removes a cursor this process could not begin
 * at. Returns how many, or errors. */
int cursor_lapse_later(struct home *home, const uint8_t uuid[16], uint64_t next_seq);

/* Which cursors keep history. */
struct cursor_keeping {
	const uint8_t *uuid; /* of the journal */
	uint64_t expiry_ns;  /* a cursor not written for so long does not */
	/* the present time if the wall clock had not been set since the caller's start */
	uint64_t steady_ns;
};
/* Finds the least seq needed by a cursor; UINT64_MAX: none. */
int cursor_find_least(struct home *home, const struct cursor_keeping *keeping, uint64_t *ret_least);
/* Removes cursors expired for long, and temporary files of killed followers. */
int cursor_clean(struct home *home, const struct cursor_keeping *keeping, unsigned *ret_removed);

/* Calls FN for each readable cursor within the limit until it returns non-zero, and BAD (or NULL)
 * for each other file, with an error naming the file. */
typedef int cursor_fn(void *arg, const char *name, const struct cursor_file *cursor);
typedef void cursor_bad_fn(void *arg, int error);
int cursor_each(struct home *home, cursor_fn *fn, cursor_bad_fn *bad, void *arg);

#endif
