/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/generation_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "store/env/replaced.h"
#include "store/env/generation.h"
#include "store/env/state.h"
#include "store/env/text_file.h"
#include "store/pins/pin_page.h"

/* In the order of removal: without STATE a killed process's rest is no generation any more. */
static const char *const file_names[] = {"STATE", ".STATE.new", "data.mdb", "lock.mdb",
	PIN_PAGE_FILE, "." PIN_PAGE_FILE ".new", GENERATION_HINTS_FILE, GENERATION_HINTS_FILE_NEW,
	DAMAGED_FILE, "." DAMAGED_FILE ".new"};

/* ---- directories -------------------------------------------------------- */

void generation_folder_name(uint32_t number, char name[32])
{
	(void)snprintf(name, 32, "gen-%" PRIu32, number);
}

/* Returns 0 when NAME is not a generation's. */
static uint32_t generation_of_name(const char *name)
{
	char again[32];
	uint32_t number;

	if (sscanf(name, "gen-%" SCNu32, &number) != 1)
		return 0;
	generation_folder_name(number, again);
	return strcmp(name, again) == 0 ? number : 0;
}

int generation_each(int directory_fd, generation_fn *fn, void *arg)
{
	CLEANUP(proc_end_list) DIR *directory = proc_list(directory_fd, ".");

	if (!directory)
		return err_set(-errno, "reading the directory of generations");
	for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
		uint32_t number = generation_of_name(entry->d_name);
		int r = number ? fn(arg, directory_fd, number) : 0;
		if (r)
			return r;
	}
	return 0;
}

int generation_open_folder(int directory_fd, uint32_t number, int *ret_fd)
{
	char name[32];

	generation_folder_name(number, name);
	int fd = openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return err_set(-errno, "%s", name);
	*ret_fd = fd;
	return 0;
}

/* ---- room --------------------------------------------------------------- */

int generation_require_room(int directory_fd, const char *what, uint64_t live)
{
	uint64_t wanted = live + live / 5;
	struct statvfs disk;

	if (fstatvfs(directory_fd, &disk) < 0)
		return err_set(-errno, "the disk of the %s", what);
	uint64_t free_bytes = (uint64_t)(geteuid() ? disk.f_bavail : disk.f_bfree) * disk.f_frsize;
	if (free_bytes >= wanted)
		return 0;
	return err_say(-ENOSPC,
		"a second %s needs %" PRIu64 " MiB of disk space, and %" PRIu64
		" MiB are free: make room there",
		what, (wanted >> 20) + 1, free_bytes >> 20);
}

uint64_t generation_bytes_on_disk(int directory_fd, uint32_t number)
{
	char name[32], path[64];
	struct stat st;

	generation_folder_name(number, name);
	(void)snprintf(path, sizeof(path), "%s/data.mdb", name);
	if (fstatat(directory_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return (uint64_t)st.st_blocks * 512;
}

/* ---- damage met by its users -------------------------------------------- */

int generation_note_damage(int directory_fd, const char *sentence)
{
	AUTO_FD int fd = -1;
	uint32_t number;
	int r = generation_current(directory_fd, &number);

	if (r == FOUND)
		r = generation_open_folder(directory_fd, number, &fd);
	return r < 0 ? r : r == NOT_FOUND ? 0 : damaged_note(fd, sentence);
}

/* ---- current and others ------------------------------------------------- */

int generation_current(int directory_fd, uint32_t *ret_number)
{
	char text[64];

	int r = text_file_read_line(directory_fd, "CURRENT", text, sizeof(text), NULL);
	if (r != FOUND)
		return r;
	uint32_t number = generation_of_name(text);
	if (!number)
		return err_say(ERR_CORRUPT, "CURRENT names no generation: the daemons make it "
					    "again when they are started again");
	*ret_number = number;
	return FOUND;
}

int generation_read_pin_page(int directory_fd, struct pin_page *ret_page)
{
	AUTO_FD int fd = -1;
	uint32_t number;
	uint64_t inode, device;

	if (directory_fd < 0)
		return END;
	int r = generation_current(directory_fd, &number);
	if (r == FOUND)
		r = generation_open_folder(directory_fd, number, &fd);
	if (r == 0)
		r = state_identify(fd, &inode, &device);
	if (r == 0)
		return pin_page_probe(fd, inode, ret_page);
	if (err_is_shortage(r))
		return r;
	err_ignore(r, "the opening of the generation reports it");
	return END;
}

int generation_publish(int directory_fd, uint32_t number)
{
	char name[32], text[40];
	struct stat st;

	generation_folder_name(number, name);
	(void)snprintf(text, sizeof(text), "%s\n", name);
	if (fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(-errno, "%s", name);
	return text_file_replace(directory_fd, "CURRENT", text, st.st_mode & 0040 ? 0640 : 0600);
}

int generation_read_uuid(int directory_fd, uint32_t number, uint8_t ret_uuid[16])
{
	AUTO_FD int fd = -1;
	struct state state;

	int r = generation_open_folder(directory_fd, number, &fd);
	if (r == 0)
		r = state_read(fd, &state);
	if (r < 0)
		return r;
	memcpy(ret_uuid, state.uuid, 16);
	return 0;
}

struct search {
	const uint8_t *uuid;
	uint32_t number;
};

static int generation_match(void *arg, int directory_fd, uint32_t number)
{
	struct search *search = arg;
	uint8_t uuid[16];
	int r = generation_read_uuid(directory_fd, number, uuid);

	err_ignore(r, "a generation that can't be read is not the one that is searched for");
	if (r == 0 && memcmp(uuid, search->uuid, 16) == 0 && number > search->number)
		search->number = number;
	return 0;
}

int generation_find(int directory_fd, const uint8_t uuid[16], uint32_t *ret_number)
{
	struct search search = {.uuid = uuid};
	uint32_t current;

	int r = generation_current(directory_fd, &current);
	err_ignore(r, "the other generations are searched as well");
	if (r == FOUND)
		(void)generation_match(&search, directory_fd, current); /* has no error */
	if (!search.number)
		r = generation_each(directory_fd, generation_match, &search);
	if (r < 0)
		return r;
	if (!search.number)
		return NOT_FOUND;
	*ret_number = search.number;
	return FOUND;
}

/* ---- removing ----------------------------------------------------------- */

struct removal {
	const uint32_t *keep;
	size_t n_keep;
	struct replaced_files *replaced;
	int removed;
	int failed; /* the first error, and its sentence */
	struct err_kept why;
};

/* Returns: 1 removed; errors. */
static int generation_remove(int directory_fd, uint32_t number, struct replaced_files *replaced)
{
	AUTO_FD int fd = -1;
	char name[32];

	generation_folder_name(number, name);
	int r = generation_open_folder(directory_fd, number, &fd);
	if (r < 0)
		return r;
	if (replaced)
		replaced_files_add(replaced, fd, GENERATION_HINTS_FILE);
	for (size_t i = 0; i < ARRAY_SIZE(file_names); i++)
		if (unlinkat(fd, file_names[i], 0) < 0 && errno != ENOENT)
			return err_set(-errno, "%s: removing %s", name, file_names[i]);
	if (unlinkat(directory_fd, name, AT_REMOVEDIR) < 0)
		return err_set(-errno, "removing %s", name);
	return 1;
}

void generation_remove_failed(int directory_fd, uint32_t number)
{
	struct err_kept kept;

	err_keep(&kept);
	err_ignore(
		generation_remove(directory_fd, number, NULL), "the next start removes the rest");
	err_restore(&kept);
}

/* Goes on after one that can't be removed, for instance because it holds a foreign file. */
static int generation_remove_unkept(void *arg, int directory_fd, uint32_t number)
{
	struct removal *removal = arg;

	for (size_t i = 0; i < removal->n_keep; i++)
		if (removal->keep[i] == number)
			return 0;
	int r = generation_remove(directory_fd, number, removal->replaced);
	if (r > 0)
		removal->removed++;
	if (r < 0 && !removal->failed) {
		removal->failed = r;
		err_keep(&removal->why);
	}
	return 0;
}

int generation_remove_except(
	int directory_fd, const uint32_t *keep, size_t n_keep, struct replaced_files *replaced)
{
	struct removal removal = {.keep = keep, .n_keep = n_keep, .replaced = replaced};
	int r = generation_each(directory_fd, generation_remove_unkept, &removal);

	if (r == 0 && removal.failed < 0) {
		err_restore(&removal.why);
		r = removal.failed;
	}
	return r < 0 ? r : removal.removed;
}
