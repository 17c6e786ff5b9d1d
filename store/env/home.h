/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's directory and its runtime folder: where everything is, who may read it, and that no
 * role runs twice. Nothing here looks into a database.
 *
 *	<store>/id  runtime  journal/  index/  cursors/  reflector.lock  processor.lock
 *	<runtime parent>/kinf-<id>/  delta.ring  event.ring  stats.reflector  stats.processor  doorbell.sock
 *	                             reflector.lock  processor.lock
 *
 * The first daemon creates the store (0700; with a reader group 2750, cursors/ 3770) and writes the
 * runtime folder's path into <store>/runtime, so readers need only the store. The runtime folder's
 * owner and mode are checked before it is used; it is made again when the machine has lost it.
 */
#ifndef STORE_ENV_HOME_H
#define STORE_ENV_HOME_H

#include <stdbool.h>
#include <stdint.h>

struct home;

#define HOME_DOORBELL "doorbell.sock" /* in the runtime folder; processor/doorbell.h */

struct home_options {
	bool create;             /* daemons: make what is missing */
	const char *runtime_dir; /* parent of kinf-<id>; NULL: what <store>/runtime says */
	const char *group;       /* reader group, NULL: owner only */
};

/* ERR_NO_STORE when there is none and create is off (the sentence says how one comes to be),
 * ERR_FORMAT, -EACCES, ... */
int home_open(const char *store, const struct home_options *options, struct home **ret_home);
void home_close(struct home **home);

const char *home_path(const struct home *home);
const char *home_id(const struct home *home); /* 16 hex digits */
const char *home_runtime(const struct home *home); /* path, "" when there is none */

/* Directory descriptors, owned by HOME; -1 where it does not exist (runtime of a copy). */
int home_fd(const struct home *home);
int home_journal_fd(const struct home *home);
int home_index_fd(const struct home *home);
int home_cursors_fd(const struct home *home);
int home_runtime_fd(const struct home *home);

/* Looks again at the folders: one that was removed or moved aside and made anew is opened in place of what
 * is open, under the same descriptor, so other threads may use it meanwhile; so is the whole store, unless
 * this process has a role in it; the processor makes index and cursors again, both daemons the runtime
 * folder. Readers find one that was not there when the store was opened, or is elsewhere now. For those
 * that stay for long: what is in a removed folder would never change again. */
void home_refresh(struct home *home);

/* Before a cursor is written: the folder for it is opened, or made, when it was taken away. Where this
 * process may not make it, the processor does within a second. */
int home_require_cursors(struct home *home);

/* For daemons, now and then: ERR_MOVED when what is at the store's path is no longer what is open, or no
 * longer ours alone (the folder was removed, moved or replaced; its id or the lock file of our role is
 * gone; the reflector's journal). Whoever goes on then writes what nobody finds, so he ends; started again he makes it anew. */
int home_check(const struct home *home);

/* The store (journal and index) can be written by this process: if not, environments are opened
 * without lock, which is only right when no daemon runs (docs/architecture.md, Store layout). */
bool home_is_writable(const struct home *home);

/* File mode for databases and rings: 0600, or 0640 with a reader group. */
unsigned home_file_mode(const struct home *home);

enum home_role { HOME_REFLECTOR, HOME_PROCESSOR, HOME_ROLE_MAX };

/* Takes the role for the life of HOME, in the store and in its runtime folder, which a copy of the store
 * would share; ERR_LOCKED names the holder. */
int home_take_role(struct home *home, enum home_role role);
/* Pid of the holder, 0 when nobody holds it. */
int home_role_holder(const struct home *home, enum home_role role);

#endif
