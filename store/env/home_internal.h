/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The home group's internal header: home.c opens the store's directory, home_place.c says where
 * one may be made, home_runtime.c opens its runtime directory, home_pins.c knows the places of
 * pin files, home_identity.c notices when either directory was removed or replaced,
 * home_remove.c removes runtime directories. No other file includes it.
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
#define HOME_GUARDED_MAX 8

struct home {
	uint32_t magic;
	int fd; /* of the store's directory */
	/* -1 while there is no such file or directory. Atomic because home_reopen() may set one
	 * that other threads are about to use; a number, once set, stays until home_close(). */
	_Atomic int id_fd, journal_fd, index_fd, cursors_fd, record_fd, runtime_fd;
	pthread_mutex_t reopening;
	int role_owner[HOME_ROLE_MAX];   /* locks that keep others out, in the store's directory */
	int role_fd[HOME_ROLE_MAX];      /* locks that readers see, there also */
	int runtime_lock[HOME_ROLE_MAX]; /* locks in its runtime directory */
	struct formers formers;
	bool has_group;
	bool unchecked;
	char id[HOME_ID_DIGITS + 1];
	char path[PATH_MAX];
	char runtime[PATH_MAX]; /* "" while the store names none; it need not exist */
	struct {
		const char *name;
		dev_t device;
		ino_t inode;
	} guarded[HOME_GUARDED_MAX]; /* files in the runtime directory; home_guard_file() */
};

/* ---- home.c ------------------------------------------------------------- */

/* Return the names of the role's lock files: the one that readers see, and the owner's own. */
const char *home_role_lock(enum home_role role);
const char *home_role_owner(enum home_role role);

/* Returns the store's id in NAME, the name of a runtime directory (kinf-ID); NULL: it is no such
 * name. */
const char *home_runtime_id(const char *name);
/* Opens the directory NAME, made if it is missing, with this MODE and GROUP. */
int home_make_directory(
	int directory_fd, const char *name, unsigned mode, gid_t group, int *ret_fd);
/* Makes the directories above PATH (0755: others may use them as well). */
int home_make_parents(const char *path);

/* ---- home_place.c ------------------------------------------------------- */

/* A daemon can't make the store or its runtime directory (WHAT), or lacks a right to write it:
 * says what to do, with the key of kinf.yaml and the option that name another. */
int home_explain_rights(
	int r, const char *what, const char *path, const char *key, const char *option);

/* ---- home_runtime.c ----------------------------------------------------- */

/* Makes PARENT/kinf-ID (NULL: the directory that the store names), and writes its path into the
 * store. */
int home_make_runtime(struct home *home, const char *parent, gid_t group);
/* Opens the directory that the store names; runtime_fd stays -1 when there is none. */
int home_find_runtime(struct home *home);
/* Takes the role's lock in the runtime directory. ERR_LOCKED: a copy of this store uses it. */
int home_lock_runtime(struct home *home, enum home_role role);

/* ---- home_remove.c ------------------------------------------------------ */

/* Removes the runtime directory PATH, which the store named before. */
void home_retire_former(const struct home *home, const char *path);

#endif
