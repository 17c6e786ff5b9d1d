/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An environment's life in generation directories (FORMAT.md, Generations): gen-N/{data.mdb,
 * lock.mdb, STATE, open.lock} and CURRENT, which names one of them and is replaced by rename.
 *
 * STATE is written and fsynced before the first write of a run ("dirty", boot id, data.mdb's inode,
 * format, journal uuid) and again after a clean close. A generation that is dirty and of another
 * boot is not to be trusted (default durability): ERR_UNTRUSTED, never touched again.
 * open.lock is held around every env_open (docs/architecture.md, LMDB); waiting 5 s for it is
 * ERR_LOCKED.
 */
#ifndef STORE_ENV_GENERATION_H
#define STORE_ENV_GENERATION_H

#include "store/env/env.h"

struct generation;

struct generation_kind {
	const char *what;      /* "journal", "index": for sentences */
	uint32_t format;       /* of the databases; another one in STATE: ERR_FORMAT */
	const char *const *databases;
	size_t n_databases;
	bool writemap;
};

struct generation_options {
	uint64_t map_bytes;
	bool durable;
	unsigned file_mode;
	uint64_t wait_ns; /* for open.lock; readers wait for 2 s */
};

/* Writer: opens generation NUMBER of the role's directory. ERR_UNTRUSTED, ERR_FORMAT, ERR_CORRUPT:
 * the caller creates another. */
int generation_open_write(int directory_fd, const struct generation_kind *kind,
	const struct generation_options *options, uint32_t number, struct generation **ret_gen);
/* Writer: a new, empty one, numbered one above the highest there is. CURRENT is not touched. UUID
 * (of the journal it is, or belongs to) goes into STATE. */
int generation_create(int directory_fd, const struct generation_kind *kind,
	const struct generation_options *options, const uint8_t uuid[16],
	struct generation **ret_gen);

/* Reader. COPY: no lock (home_is_writable). ERR_UNTRUSTED for a dirty one of another boot, or a
 * dirty one whose data.mdb is not the inode that STATE names (copied while running). */
int generation_open_read(int directory_fd, const struct generation_kind *kind, uint32_t number,
	bool copy, struct generation **ret_gen);

/* A writer's: everything is synced and STATE says clean; what cannot be synced stays dirty. */
void generation_close(struct generation **gen);

struct env *generation_env(struct generation *gen);
/* Of its folder, for files beside the environment; file_names in generation_folders.c lists them for removal. */
int generation_folder_fd(const struct generation *gen);
uint32_t generation_number(const struct generation *gen);
/* For those that stay, once a second: ERR_MOVED when the directory of GEN in DIRECTORY_FD was removed or replaced, or,
 * if GEN is PUBLISHED, when CURRENT does not name it: its writer would write what nobody finds, and a reader would
 * wait for what never comes. The number alone is not enough, the next generation may have the same. */
int generation_check(const struct generation *gen, int directory_fd, bool published);
const uint8_t *generation_uuid(const struct generation *gen);

/* Before another one is made beside WHAT is there: a fifth more than its LIVE bytes has to be free on
 * the disk (docs/architecture.md, Retention). 0, or -ENOSPC with the sentence; who asks tries
 * again. */
int generation_require_room(int directory_fd, const char *what, uint64_t live);
/* Of one that may not even be readable: what it takes of the disk; 0 when that can't be told. */
uint64_t generation_bytes_on_disk(int directory_fd, uint32_t number);

/* What CURRENT names; NOT_FOUND when there is none. */
int generation_current(int directory_fd, uint32_t *ret_number);
/* Names NUMBER in CURRENT: write, fsync, rename, fsync. */
int generation_publish(int directory_fd, uint32_t number);
/* The generation whose STATE holds UUID, CURRENT's first; NOT_FOUND. */
int generation_find(int directory_fd, const uint8_t uuid[16], uint32_t *ret_number);
/* The uuid in STATE of generation NUMBER: 0, -ENOENT, ERR_CORRUPT. */
int generation_read_uuid(int directory_fd, uint32_t number, uint8_t ret_uuid[16]);
/* Removes all but KEEP (0: all); one that is being opened stays until the next time. Mapped readers
 * keep what they have. How many were removed, or why one could not be: the others are. */
int generation_remove_others(int directory_fd, uint32_t keep);
int generation_remove_except(int directory_fd, const uint32_t *keep, size_t n_keep);

#endif
