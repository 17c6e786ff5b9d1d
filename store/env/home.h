/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's directory and its runtime directory: the paths of everything, the access rights,
 * and the locks by which no role runs twice. Nothing here opens a database.
 *
 *	<store>/id  runtime  journal/  index/  cursors/  pins/  serve/  reflector.lock  processor.lock
 *	        discovery.api  discovery.apis
 *	<runtime parent>/kinf-<id>/  delta.ring  index.taken  stats.reflector  stats.processor  doorbell.sock
 *	                             stats.serve  serve.sock  upstream
 *	                             wish.reflector
 *	                             control.reflector  control.processor  control.serve
 *	                             reflector.lock  processor.lock  pins/
 *
 * The first daemon creates the store (0700; with a reader group 2750, cursors/ and pins/ 3770),
 * in a directory without other files (home_place.c), and writes the path of the runtime
 * directory into <store>/runtime, so readers need only the store's path. The owner and mode of
 * the runtime directory are checked before it is used; a daemon that starts makes it if it is
 * missing.
 */
#ifndef STORE_ENV_HOME_H
#define STORE_ENV_HOME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "store/env/former.h"
#include "store/pins/pin_page.h"

struct home;

#define HOME_DOORBELL  "doorbell.sock" /* in the runtime directory; store/ring/doorbell.h */
#define HOME_USER_SIZE 64

struct home_options {
	bool create;             /* daemons: make what is missing */
	const char *runtime_dir; /* parent of kinf-<id>; NULL: what <store>/runtime says */
	const char *group;       /* reader group, NULL: owner only */
	bool unchecked; /* readers: generations that are not trusted can be opened; the caller
			   checks them */
};

/* ERR_NO_STORE when there is none and create is off (the sentence says how one comes to be),
 * ERR_FORMAT, -EACCES, ... */
int home_open(const char *store, const struct home_options *options, struct home **ret_home);
void home_close(struct home **home);

/* Checks that NAME is a group of this machine. Returns: 0, ERR_CONFIG. */
int home_check_group(const char *name);
/* Checks that the directory PATH, which is absolute, is there or can be made by this process.
 * Returns: 0, ERR_CONFIG. */
int home_check_writable(const char *path);
/* Checks, before anything is made or changed, that the directory STORE may become a store, or is
 * one: not if other files are in it, and not one that all programs use. RUNTIME_DIR, NULL if
 * there is none, may be in it. Returns: 0, also if there is none, or it can't be read;
 * ERR_CONFIG. */
int home_check_place(const char *store, const char *runtime_dir);

/* Checks, before a daemon changes anything, that the directory STORE is this user's, with all
 * that daemons use in it; home_open() does so when it creates. Returns: 0, also if there is
 * none, or it can't be read; ERR_CONFIG, with what to do. */
int home_check_owner(const char *store);

/* Writes the name of a user, or the number of one that has none. Returns NAME. */
const char *home_name_user(uid_t number, char name[HOME_USER_SIZE]);

/* R is the error of a reader; if it may not enter STORE, says whose that is. Returns R. */
int home_explain_denied(int r, const char *store);

const char *home_path(const struct home *home);
const char *home_id(const struct home *home);      /* 16 hex digits */
const char *home_runtime(const struct home *home); /* path, "" when there is none */

/* Returns why a reader has no runtime directory: a sentence. */
const char *home_lacks_runtime(const struct home *home);

/* Directory descriptors, owned by HOME; -1 where it does not exist (runtime of a copy). */
int home_fd(const struct home *home);
int home_journal_fd(const struct home *home);
int home_index_fd(const struct home *home);
int home_cursors_fd(const struct home *home);
int home_runtime_fd(const struct home *home);

/*
 * Checks that everything the daemon has open is still in its place; a daemon calls it once a
 * second. Compared are the store's directory, the files `id` and `runtime` and the directories
 * in it, the runtime directory, the lock files of the caller's role, and the guarded files.
 * Returns: 0; ERR_MOVED, with a sentence that names what was removed, moved or replaced. The
 * daemon then ends with status 75 (PROC_TEMPORARY), and its supervisor starts it again, which
 * makes what is missing.
 */
int home_check(const struct home *home);
/* Makes home_check() also check that the runtime directory's file NAME is the one that is there
 * now. The caller calls this each time it has made the file. NAME is borrowed for the life of
 * HOME. */
void home_guard_file(struct home *home, const char *name);

/*
 * For readers, which live on while daemons end and start again. When home_check() would fail,
 * opens the store at the same path again and replaces the open descriptors in place (dup3), so
 * that other threads can use them all the time. Costs some twenty system calls when nothing has
 * changed.
 * Returns: 0; errors of home_open(), after which everything is as it was.
 */
int home_reopen(struct home *home);
/* For a follower that finds no cursors directory: home_reopen(), then makes it if it is missing
 * still. */
int home_make_cursors(struct home *home);

/* Returns whether the disk of the store or of its runtime directory is so full that a daemon may
 * be waiting for room. */
bool home_lacks_room(const struct home *home);

/* Returns where readers make their pin files: in the runtime directory, else in the store's. */
void home_pin_places(const struct home *home, struct pin_places *ret_places);
enum home_database { HOME_JOURNAL, HOME_INDEX };

/* Checks that this process can pin what it reads in the generation of DATABASE in use: it may
 * make a file in one of the places, and the pin page is that of data.mdb, which it is not in a
 * copy. If not, the environment is opened without pins, which is right only while no daemon runs
 * (docs/architecture.md, Store layout).
 * Returns: 0; ERR_LOCKED, with the sentence to report if a daemon runs. */
int home_check_pins(const struct home *home, enum home_database database);
/* Does the same for both databases. */
int home_check_all_pins(const struct home *home);
/* The files of removed generations that this process watches, for a daemon's thread that writes
 * (former.h). */
struct formers *home_formers(struct home *home);
/* formers_tend(); a daemon calls it once a second. */
bool home_tend_formers(struct home *home, struct former_loss *ret_loss);
/* Returns whether generations that are not trusted can be opened for reading (struct
 * home_options). */
bool home_is_unchecked(const struct home *home);
/* Returns whether the store has an index and no journal: a part of it was not copied, or was
 * removed. */
bool home_lacks_journal(const struct home *home);

/* File mode for databases and rings: 0600, or 0640 with a reader group. */
unsigned home_file_mode(const struct home *home);

/* For a daemon that ends in order: gives up its lock in the runtime directory, and removes that
 * with all that is in it unless another daemon uses it. */
void home_retire(struct home *home);

/* Removes the store with its runtime directory. The caller has taken all roles.
 * Returns: 0; NOT_FOUND: all files of the store are removed, and its directory stays because it
 * holds others, is a link, or may not be removed; errors, after which it can be tried again. */
int home_remove(struct home *home);

enum home_role { HOME_REFLECTOR, HOME_PROCESSOR, HOME_ROLE_MAX };

/* Takes the role for the life of HOME, in the store and in its runtime directory, which a copy
 * of the store would share; ERR_LOCKED names the holder. */
int home_take_role(struct home *home, enum home_role role);
/* Returns the pid of the process that has the role, 0 when none has. */
int home_role_holder(const struct home *home, enum home_role role);

#endif
