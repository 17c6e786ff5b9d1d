/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The home group's internal header, for its files alone: home.c opens the store's directory,
 * home_place.c judges a place for one, home_runtime.c opens the runtime directory, home_pins.c
 * knows the places of pin files, home_identity.c notices a removed or replaced part, home_remove.c
 * removes runtime directories and stores.
 */
#ifndef STORE_ENV_HOME_INTERNAL_H
#define STORE_ENV_HOME_INTERNAL_H

#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/types.h>

#include "store/env/home.h"

#define HOME_MAGIC       0x6b1e0e04u
#define HOME_ID_DIGITS   16
#define HOME_NO_GROUP    ((gid_t)-1)
#define HOME_PINS        "pins"
#define HOME_ID_WORD     "kinf-store " /* begins the file id */
#define HOME_MAKING_LOCK "making.lock"
#define HOME_SERVE_LOCK  "serve/serve.lock" /* kinf-serve has it while it runs */
#define HOME_GUARDED_MAX 8

struct home {
	uint32_t magic;
	int fd; /* of the store's directory */
	/* -1: no such file or directory. Atomic: home_reopen() may set one while other threads look
	 * at it. A number, once set, stays until home_close(). */
	_Atomic int id_fd, journal_fd, index_fd, cursors_fd, record_fd, runtime_fd;
	pthread_mutex_t reopening;
	int role_owner[HOME_ROLE_MAX];   /* locks that keep others out, in the store's directory */
	int role_fd[HOME_ROLE_MAX];      /* locks visible to readers, there also */
	int runtime_lock[HOME_ROLE_MAX]; /* locks in its runtime directory */
	struct replaced_files replaced;
	bool has_group;
	bool unchecked;
	char id[HOME_ID_DIGITS + 1];
	char path[PATH_MAX];
	char runtime[PATH_MAX]; /* "" without a record in the store; it need not exist */
	struct {
		const char *name;
		dev_t device;
		ino_t inode;
	} guarded[HOME_GUARDED_MAX]; /* files in the runtime directory; home_guard_file() */
};

/* ---- home.c ------------------------------------------------------------- */

/* Return the names of the role's lock files: the readers' one, and the owner's own. */
const char *home_role_lock(enum home_role role);
const char *home_role_owner(enum home_role role);

/* Returns the id in NAME, the name of a runtime directory (kinf-ID); NULL: another name. */
const char *home_runtime_id(const char *name);
/* Opens the directory NAME, made if it is missing, with this MODE and GROUP. */
int home_make_directory(
	int directory_fd, const char *name, unsigned mode, gid_t group, int *ret_fd);
/* Makes the directories above PATH (0755: others may use them as well). */
int home_make_parents(const char *path);

/* ---- home_place.c ------------------------------------------------------- */

/* Replaces the sentence of R, a daemon's error in making or writing the store or its runtime
 * directory (WHAT), by one with the remedy: KEY of kinf.yaml and OPTION name another. */
int home_explain_rights(
	int r, const char *what, const char *path, const char *key, const char *option);

/* ---- home_runtime.c ----------------------------------------------------- */

/* Makes PARENT/kinf-ID (NULL: the recorded directory), and records its path in the store. */
int home_make_runtime(struct home *home, const char *parent, gid_t group);
/* Opens the recorded directory; runtime_fd stays -1 without one. */
int home_find_runtime(struct home *home);
/* Takes the role's lock in the runtime directory. ERR_LOCKED: a copy of this store uses it. */
int home_lock_runtime(struct home *home, enum home_role role);

#endif
