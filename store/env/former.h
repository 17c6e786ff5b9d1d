/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Former files: data.mdb and hints of generations that were removed while other processes read
 * them. A file without a name keeps its disk space until the last process that has it open lets
 * it go, and that process may be frozen, or be a hostile member of the store's group. So the
 * writer holds each such file too, until it has given its space back:
 *
 *	after GRACE	running readers have gone on to the copy; the pin page is closed (pin_page.h): no more snapshots
 *	nobody pins it	its pages are taken away (punched out), whoever has it open
 *	too many pinned	those of one of them are taken away although they are pinned: its readers get ERR_SNAPSHOT_EXPIRED
 *
 * FORMERS_KEPT files may stay pinned for as long as their readers like, so one frozen reader
 * never loses its snapshot. Only who takes new snapshots of copy after copy has more. The file
 * to give up is one of the user who pins the most files; of these the oldest, of at least
 * FORMER_KEPT_NS. A reader of another user that pins one file is not given up for it.
 *
 * Pages that are taken away read as zeros. There is no SIGBUS, because the file keeps its length
 * (and gets FORMER_MARGIN more: with a page of zeros LMDB may look at bytes behind it), and each
 * number that is read from it is smaller than before. Readers look at `given_up` after they have
 * read and before they give anything out (txn_is_given_up(), snapshot_check()).
 *
 * A file that has another name, of `cp -l` for instance, is left as it is.
 *
 * A writer that ends, or is killed, forgets its former files: they keep their space then until
 * their readers end.
 */
#ifndef STORE_ENV_FORMER_H
#define STORE_ENV_FORMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "store/pins/pin_page.h"

#define FORMERS_KEPT     4
#define FORMERS_MAX      32 /* that are watched */
#define FORMER_GRACE_NS  10000000000ull
#define FORMER_KEPT_NS   60000000000ull
#define FORMER_MARGIN    (1u << 20)
#define FORMERS_CHEAP_NS 10000000u /* of looking at all of them */
/* what takes longer is done after so many times as long */
#define FORMERS_SHARE    20
#define FORMER_USERS_MAX 8 /* whose pins are told apart */

struct former {
	int data_fd, page_fd, hints_fd; /* hints_fd -1: there are none */
	uint64_t inode, since_ns, bytes;
	char last_place[2048];
	bool closed;
	bool is_own; /* this process reads it, without pins */
	/* Its readers when it was looked at last: */
	uid_t users[FORMER_USERS_MAX];
	size_t n_users;
	unsigned snapshots;
	int32_t pid; /* of one of them; 0: not known here */
	char program[16];
};

/* Zeros: none. One thread uses it. */
struct formers {
	struct former *files; /* FORMERS_MAX, the oldest first; NULL: there never were any */
	size_t n;
	uint64_t due_ns; /* others make pin files, and each is read: not more often than that */
};

/* The loss of those readers. */
struct former_loss {
	uint64_t bytes;
	unsigned snapshots;
	uid_t uid; /* of one of them, as the following */
	int32_t pid;
	char program[16];
};

/* Takes the files of the generation in FOLDER_FD, before they are removed. HINTS: the name of
 * its hints. A generation whose files can't be opened is not watched. */
void formers_add(struct formers *formers, int folder_fd, const char *hints);
/* Does what is due. PLACES: of pin files. Costs nothing when there are none, and at most a
 * twentieth of the time however many pin files there are; to be called once a second, or less
 * often. Returns whether a file that was pinned has been given up. */
bool formers_tend(struct formers *formers, const struct pin_places *places, uint64_t now_ns,
	struct former_loss *ret_loss);
/* Forgets all. */
void formers_close(struct formers *formers);

#endif
