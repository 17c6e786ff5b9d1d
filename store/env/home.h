/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's directory and its runtime directory: paths, access rights, and the locks against a
 * second process in a role. Nothing here opens a database.
 *
 *	<store>/id  runtime  journal/  index/  cursors/  pins/  serve/  reflector.lock
 *	        processor.lock  discovery.api  discovery.apis
 *	<runtime parent>/kinf-<id>/  delta.ring  index.taken  stats.reflector  stats.processor
 *	        stats.serve  serve.sock  upstream  doorbell.sock  wish.reflector
 *	        control.reflector  control.processor  control.serve
 *	        reflector.lock  processor.lock  pins/
 *
 * The first daemon makes the store (0700; with a reader group 2750, cursors/ and pins/ 3770) in a
 * directory without other files (home_place.c), and writes the runtime directory's path into
 * <store>/runtime: readers need the store's path only. Owner and mode of the runtime directory are
 * checked before use; each daemon makes it at its start if it is missing.
 */
#ifndef STORE_ENV_HOME_H
#define STORE_ENV_HOME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "store/env/replaced.h"
#include "store/pins/pin_page.h"

struct home;

#define HOME_DOORBELL  "doorbell.sock" /* in the runtime directory; store/ring/doorbell.h */
#define HOME_RING      "delta.ring"    /* likewise; store/ring/ring.h */
#define HOME_USER_SIZE 64

struct home_options {
	bool create;             /* daemons: make the missing parts */
	const char *runtime_dir; /* parent of kinf-<id>; NULL: the one in <store>/runtime */
	const char *group;       /* reader group, NULL: owner only */
	bool unchecked;          /* readers: open generations without trust; the caller checks */
};

/* Returns: 0; ERR_NO_STORE, with the command to make one; ERR_FORMAT; -EACCES, ... */
int home_open(const char *store, const struct home_options *options, struct home **ret_home);
void home_close(struct home **home);

/* Checks that NAME is a group of this machine. Returns: 0, ERR_CONFIG. */
int home_check_group(const char *name);
/* Checks that this process may use or make the directory PATH, an absolute path. Returns: 0,
 * ERR_CONFIG. */
int home_check_writable(const char *path);
/* Checks that the directory STORE is a store or may become one: no other files but RUNTIME_DIR
 * (NULL: none), and no directory of all programs. Changes nothing. Returns: 0, also without a
 * directory or the right to read it; ERR_CONFIG. */
int home_check_place(const char *store, const char *runtime_dir);

/* Checks that the directory STORE with its parts is this user's; a part of home_open() with
 * `create`. Returns: 0, also without a directory or the right to read it; ERR_CONFIG, with the
 * remedy. */
int home_check_owner(const char *store);

/* Writes the name of a user, else the number. Returns NAME. */
const char *home_name_user(uid_t number, char name[HOME_USER_SIZE]);

/* Adds the owner of STORE to -EACCES, the error of a reader. Returns R. */
int home_explain_denied(int r, const char *store);

const char *home_path(const struct home *home);
const char *home_id(const struct home *home);      /* 16 hex digits */
const char *home_runtime(const struct home *home); /* path, "" without one */

/* Returns true if the store's runtime directory is not there. */
bool home_runtime_is_missing(const struct home *home);
/* Returns a sentence: why a reader has no runtime directory. */
const char *home_lacks_runtime(const struct home *home);

/* Directory descriptors, owned by HOME; -1: missing (runtime of a copy). */
int home_fd(const struct home *home);
int home_journal_fd(const struct home *home);
int home_index_fd(const struct home *home);
int home_cursors_fd(const struct home *home);
int home_runtime_fd(const struct home *home);

/*
 * Checks that every open part is still in place; a daemon calls it once a second. Compares the
 * store's directory, the files `id` and `runtime`, the directories, the runtime directory, the lock
 * files of the caller's role, and the guarded files. Returns: 0; ERR_MOVED, with the name of the
 * changed part. The daemon then ends with status 75 (PROC_TEMPORARY), and its next start makes the
 * missing parts.
 */
int home_check(const struct home *home);
/* Adds the runtime directory's file NAME, as it is now, to home_check(). The caller calls this each
 * time it has made the file. NAME is borrowed for the life of HOME. */
void home_guard_file(struct home *home, const char *name);

/*
 * For readers, because they outlive daemons. If home_check() would fail, opens the store at the
 * same path again and replaces the open descriptors in place (dup3): other threads use them all the
 * time. Costs some twenty system calls without a change. Returns: 0; errors of home_open(), and
 * everything is as before.
 */
int home_reopen(struct home *home);
/* Reopens for a follower without a cursors directory, and makes it if it is still missing. */
int home_make_cursors(struct home *home);

/* Returns true if the disk of the store or of its runtime directory is so full that a daemon may
 * wait for room. */
bool home_lacks_room(const struct home *home);

/* Returns the directories of pin files: in the runtime directory, else in the store's. */
void home_pin_places(const struct home *home, struct pin_places *ret_places);
enum home_database { HOME_JOURNAL, HOME_INDEX };

/* Checks that this process can pin its reads in the current generation of DATABASE: it may make a
 * pin file, and the pin page is data.mdb's, unlike in a copy. If not, the environment must be
 * opened without pins, and only without daemons (docs/architecture.md, Store layout). Returns: 0;
 * ERR_LOCKED, with the sentence to report if a daemon runs. */
int home_check_pins(const struct home *home, enum home_database database);
/* Does the same for both databases. */
int home_check_all_pins(const struct home *home);
/* Returns the files of removed generations, for a daemon's writing thread (replaced.h). */
struct replaced_files *home_replaced_files(struct home *home);
/* Calls replaced_files_maintain(); a daemon calls it once a second. */
bool home_maintain_replaced(struct home *home, struct replaced_loss *ret_loss);
/* Returns home_options.unchecked. */
bool home_is_unchecked(const struct home *home);
/* Returns true if the store has an index and no journal: a part was removed, or not copied. */
bool home_lacks_journal(const struct home *home);

/* Returns the mode of databases and rings: 0600, or 0640 with a reader group. */
unsigned home_file_mode(const struct home *home);

/* Releases the locks of a daemon at its end, and removes the runtime directory unless another
 * daemon or kinf-serve uses it. */
void home_remove_runtime(struct home *home);

/* Removes the store with its runtime directory. The caller has taken all roles.
 * Returns: 0; NOT_FOUND: all files of the store are removed, and its directory stays, because it
 * holds others, is a link, or may not be removed; errors: it can be tried again. */
int home_remove(struct home *home);

enum home_role { HOME_REFLECTOR, HOME_PROCESSOR, HOME_ROLE_MAX };

/* Takes the role for the life of HOME, in the store and in its runtime directory, shared by copies
 * of the store; ERR_LOCKED names the holder. */
int home_take_role(struct home *home, enum home_role role);
/* Returns the pid of the role's holder; 0: none; -1: not known. */
int home_role_holder(const struct home *home, enum home_role role);

#endif
