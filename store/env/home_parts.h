/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the home share: the handle, its small files, folders. Nobody else includes this. */
#ifndef STORE_ENV_HOME_PARTS_H
#define STORE_ENV_HOME_PARTS_H

#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/types.h>

#include "store/env/home.h"

#define HOME_MAGIC     0x6b1e0e04u
#define HOME_ID_DIGITS 16
#define HOME_NO_GROUP  ((gid_t)-1)

struct home {
	uint32_t magic;
	int fd;
	/* -1 until there is one; other threads may look meanwhile */
	_Atomic int journal_fd, index_fd, cursors_fd, runtime_fd;
	pthread_mutex_t refreshing;
	int role_fd[HOME_ROLE_MAX];    /* locks in the store, */
	int runtime_lock[HOME_ROLE_MAX]; /* and in its runtime folder */
	bool has_group;
	char id[HOME_ID_DIGITS + 1];
	char path[PATH_MAX];
	char runtime[PATH_MAX];
	struct timespec recorded; /* the file that said so was written */
};

/* ---- home.c ---- */

/* Name of its lock file. */
const char *home_role_lock(enum home_role role);

/* One line of a file without its newline. NOT_FOUND. */
int home_read_line(int directory_fd, const char *name, char *text, size_t size);
/* The file becomes TEXT and a newline. */
int home_write_line(int directory_fd, const char *name, const char *text, unsigned mode);
/* What the store's folder says, into HOME. FOUND, NOT_FOUND. */
int home_read_id(struct home *home);
/* Makes it, or gives the one that is there the mode and group it should have. */
int home_make_folder(int directory_fd, const char *name, unsigned mode, gid_t group, int *ret_fd);
/* The folders above the store or the runtime folder; those belong to nobody in particular. */
int home_make_parents(const char *folder);

/* ---- the runtime folder; home_runtime.c ---- */

/* Says where it is, before anything is in it, so that readers need only the store. */
int home_make_runtime(struct home *home, const char *parent, gid_t group);
/* What the store says; runtime_fd stays as it is when there is none. */
int home_find_runtime(struct home *home);
/* The folder was removed or moved aside, or is another one by what the store says now. */
/* Takes a role's lock there too. ERR_LOCKED: a copy of this store, which names the same folder, has its
 * daemons. */
int home_hold_runtime(struct home *home, enum home_role role);
bool home_lost_runtime(const struct home *home);
/* FD becomes what NOW is, under the number that others know; NOW is closed. */
void home_put_fd(_Atomic int *fd, int now);

#endif
