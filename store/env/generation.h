/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generations of an environment. Journal and index each have a directory (DIRECTORY_FD below) with
 * gen-N/{data.mdb, lock.mdb, pins, STATE} and CURRENT, a file with the name of one of them,
 * replaced by rename. A writer makes the next one if the present one is unusable; its readers keep
 * the old one.
 *
 * STATE is written and fsynced before a writer's first write ("dirty", boot id, data.mdb's inode,
 * format, journal uuid) and again after a clean close (state.h). A dirty generation of another boot
 * is not trusted: ERR_UNTRUSTED, and neither it nor its STATE is written again. A role lock keeps a
 * generation at one writer (home.h); readers pin their states (pin_page.h).
 */
#ifndef STORE_ENV_GENERATION_H
#define STORE_ENV_GENERATION_H

#include "store/env/env.h"

/* A file of the index's writer beside its environment (store/index/hints.h). Named here because it
 * is removed with the generation. */
#define GENERATION_HINTS_FILE     "hints"
#define GENERATION_HINTS_FILE_NEW ".hints.new"

struct replaced_files;
struct generation;
struct pin_page;

struct generation_kind {
	const char *what;   /* "journal", "index": for sentences */
	const char *remedy; /* a reader's remedy for a damaged one */
	uint32_t format;    /* of the databases; ERR_FORMAT if STATE has another one */
	const char *const *databases;
	size_t n_databases;
	bool writemap;
};

struct generation_options {
	uint64_t map_bytes;
	bool durable;
	unsigned file_mode;
	const struct pin_places *places; /* of the readers' pin files */
};

/* Opens generation NUMBER for its writer. After ERR_UNTRUSTED, ERR_FORMAT or ERR_CORRUPT the caller
 * makes another. ERR_CORRUPT also for one with the file `damaged` (state.h). */
int generation_open_write(int directory_fd, const struct generation_kind *kind,
	const struct generation_options *options, uint32_t number, struct generation **ret_gen);
/* Makes an empty generation, numbered above all others, and opens it for its writer. CURRENT stays.
 * UUID, the journal's, goes into STATE. */
int generation_create(int directory_fd, const struct generation_kind *kind,
	const struct generation_options *options, const uint8_t uuid[16],
	struct generation **ret_gen);

/* Opens generation NUMBER for reading. PLACES NULL: as a copy, without pins (home_check_pins()).
 * ERR_UNTRUSTED also for a dirty one with another inode of data.mdb than in STATE: a copy of a
 * running or killed one. UNCHECKED opens it as well, as a copy, and the caller checks its
 * content. */
int generation_open_read(int directory_fd, const struct generation_kind *kind, uint32_t number,
	const struct pin_places *places, bool unchecked, struct generation **ret_gen);
/* Adds the remedy for a reader to the sentence of R, if it is ERR_CORRUPT, ERR_FORMAT or
 * ERR_UNTRUSTED. Returns R. */
int generation_advise(const struct generation *gen, int r);
/* Returns whether it was opened although it is not trusted. */
bool generation_is_untrusted(const struct generation *gen);

/* Closes. A writer's is synced and STATE says clean; if it can't be synced, STATE stays dirty. */
void generation_close(struct generation **gen);

/* Closes a writer's generation without further use: it is not synced, and STATE stays as it is. */
void generation_discard(struct generation **gen);
/* Does the same for an incomplete one, and removes it unless CURRENT names it. Keeps the sentence
 * of the failure. */
void generation_cancel(struct generation **gen, int directory_fd);
/* Gives a generation its uuid once it is filled: it is created with a uuid of zeros, to be found by
 * nobody. */
int generation_set_uuid(struct generation *gen, const uint8_t uuid[16]);

struct env *generation_env(struct generation *gen);
/* Returns its directory, for files beside the environment; generation_folders.c lists their
 * names for removal. */
int generation_folder_fd(const struct generation *gen);
uint32_t generation_number(const struct generation *gen);
const uint8_t *generation_uuid(const struct generation *gen);
/* Checks that an open generation is still in place; to be called once a second. A writer's STATE is
 * written again if it was removed or changed. Returns: 0; ERR_MOVED: its directory (a writer's
 * data.mdb also) was removed or replaced, or, if PUBLISHED, CURRENT does not name it, or it must be
 * opened again (env_is_outdated()). It compares inodes, because another generation may have got the
 * same number. */
int generation_check(const struct generation *gen, int directory_fd, bool published);
/* Returns: 0; ERR_CORRUPT if a daemon has noted damage in it; errors. */
int generation_check_damage(const struct generation *gen);

/* Checks the disk before another generation of WHAT is made beside one with LIVE bytes in use: a
 * fifth more must be free. -ENOSPC: the caller tries again later. */
int generation_require_room(int directory_fd, const char *what, uint64_t live);
/* Returns the disk space of a generation, readable or not; 0: unknown. */
uint64_t generation_bytes_on_disk(int directory_fd, uint32_t number);

/* Reads CURRENT. FOUND, NOT_FOUND, ERR_CORRUPT. */
int generation_current(int directory_fd, uint32_t *ret_number);
/* Reads the current generation's pin page. Returns: FOUND; NOT_FOUND: it is missing, or of another
 * data.mdb; END: no generation can be examined, as its opening reports. */
int generation_read_pin_page(int directory_fd, struct pin_page *ret_page);
/* Names NUMBER in CURRENT: write, fsync, rename, fsync. */
int generation_publish(int directory_fd, uint32_t number);
/* Makes the current generation's writer give it up, for SENTENCE (state.h). Returns: 0; errors. */
int generation_note_damage(int directory_fd, const char *sentence);
/* Finds the generation with UUID in its STATE; tries the current one first. FOUND, NOT_FOUND. */
int generation_find(int directory_fd, const uint8_t uuid[16], uint32_t *ret_number);
/* Reads the uuid in STATE of generation NUMBER: 0, -ENOENT, ERR_CORRUPT. */
int generation_read_uuid(int directory_fd, uint32_t number, uint8_t ret_uuid[16]);
/* Removes all generations but the N_KEEP in KEEP. A reader opening one gets -ENOENT. Readers of an
 * open one keep their map, and REPLACED, if not NULL, gets its files (replaced.h). Returns how many
 * were removed, or the first error after trying all. */
int generation_remove_except(
	int directory_fd, const uint32_t *keep, size_t n_keep, struct replaced_files *replaced);

/* The mode of a directory with files of FILE_MODE; new files in it get its group. */
static inline unsigned generation_directory_mode(unsigned file_mode)
{
	return file_mode & 0040 ? 02750 : 0700;
}

#endif
