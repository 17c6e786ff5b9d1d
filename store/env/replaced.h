/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaced files: data.mdb and hints of generations removed while other processes read them. A file
 * without a name keeps its disk space until the last process closes it, and that process may be
 * frozen, or be a hostile member of the store's group. So the writer holds each such file too,
 * until it has given its space back:
 *
 *	after GRACE	running readers have gone on to the copy; the pin page is closed
 *	nobody pins it	its pages are taken away (punched out), even of open files
 *	too many pinned	one of them loses its pages all the same: its readers get
 *			ERR_SNAPSHOT_EXPIRED
 *
 * REPLACED_FILES_KEPT files may stay pinned without limit, so one frozen reader never loses its
 * snapshot. Only new snapshots of copy after copy pin more. The file to give up is one of the user
 * with the most pinned files; of these the oldest, of at least REPLACED_KEPT_NS. A reader of
 * another user with one pinned file does not lose it for that.
 *
 * Pages taken away read as zeros. There is no SIGBUS: the file keeps its length (and gets
 * REPLACED_MARGIN more: with a page of zeros LMDB may look at bytes after it), and each number
 * read from it is smaller than before. Readers check `given_up` after reading and before giving
 * anything out (txn_is_given_up(), snapshot_check()).
 *
 * A file with another name, of `cp -l` for instance, is left as it is.
 *
 * A writer forgets its replaced files at its end: they keep their space then until their readers
 * end.
 */
#ifndef STORE_ENV_REPLACED_H
#define STORE_ENV_REPLACED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "store/pins/pin_page.h"

#define REPLACED_FILES_KEPT 4
#define REPLACED_FILES_MAX  32 /* watched */
#define REPLACED_GRACE_NS   10000000000ull
#define REPLACED_KEPT_NS    60000000000ull
#define REPLACED_MARGIN     (1u << 20)
#define REPLACED_CHEAP_NS   10000000u /* of looking at all of them */
/* slower work has pauses of this many times its duration */
#define REPLACED_SHARE     20
#define REPLACED_USERS_MAX 8 /* users told apart */

struct replaced_file {
	int data_fd, page_fd, hints_fd; /* hints_fd -1: there are none */
	uint64_t inode, since_ns, bytes;
	bool closed;
	bool is_own; /* this process reads it, without pins */
	/* Its readers when it was looked at last: */
	uid_t users[REPLACED_USERS_MAX];
	size_t n_users;
	unsigned snapshots;
	int32_t pid; /* of one of them; 0: not known here */
	char program[16];
};

/* Zeros: none. One thread uses it. */
struct replaced_files {
	/* REPLACED_FILES_MAX, the oldest first; NULL: there never were any */
	struct replaced_file *files;
	size_t n;
	uint64_t due_ns; /* next look: reading all pin files takes time, and others make them */
};

/* The loss of a given-up file's readers. */
struct replaced_loss {
	uint64_t bytes;
	unsigned snapshots;
	uid_t uid; /* of one of them, as the following */
	int32_t pid;
	char program[16];
};

/* Takes the files of the generation in FOLDER_FD, before their removal. HINTS: the name of its
 * hints. Files that can't be opened are not watched. */
void replaced_files_add(struct replaced_files *files, int folder_fd, const char *hints);
/* Does the work due. PLACES: of pin files. Free without files, and at most a twentieth of the time
 * with any number of pin files; to be called once a second, or less often. Returns whether a pinned
 * file has been given up. */
bool replaced_files_maintain(struct replaced_files *files, const struct pin_places *places,
	uint64_t now_ns, struct replaced_loss *ret_loss);
/* Forgets all. */
void replaced_files_close(struct replaced_files *files);

#endif
