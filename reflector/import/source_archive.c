/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/import/source_internal.h"

#include <archive.h>
#include <archive_entry.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/bytes.h"
#include "common/err.h"

#define LIBRARY     "libarchive.so.13"
#define MEMBERS_MAX 10000000u
#define CONTENT_MIN ((uint64_t)4 << 30)
#define RATIO_MAX   200u
#define PIECE       ((size_t)64 << 10)

bool archive_is_known(const char *head, size_t size)
{
	static const struct {
		size_t at;
		struct bytes {
			const char *data;
			size_t size;
		} magic;
	} known[] = {{0, {"\x1f\x8b", 2}}, {0, {"\x28\xb5\x2f\xfd", 4}},
		{0, {"\xfd"
		     "7zXZ",
			    5}},
		{0, {"BZh", 3}}, {0, {"PK\3\4", 4}}, {0, {"PK\5\6", 4}}, {257, {"ustar", 5}}};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (size >= known[i].at + known[i].magic.size &&
			memcmp(head + known[i].at, known[i].magic.data, known[i].magic.size) == 0)
			return true;
	return false;
}

/* ---- libarchive --------------------------------------------------------- */

#define FUNCTIONS(F) \
	F(archive_read_new) \
	F(archive_read_support_filter_gzip) \
	F(archive_read_support_filter_bzip2) \
	F(archive_read_support_filter_xz) \
	F(archive_read_support_filter_zstd) \
	F(archive_read_support_format_tar) \
	F(archive_read_support_format_zip_streamable) \
	F(archive_read_support_format_raw) \
	F(archive_read_open) \
	F(archive_read_next_header) \
	F(archive_read_data) \
	F(archive_read_free) \
	F(archive_filter_bytes) \
	F(archive_format) \
	F(archive_error_string) \
	F(archive_set_error) \
	F(archive_entry_pathname) \
	F(archive_entry_hardlink) \
	F(archive_entry_filetype)

static struct {
#define F(name) __typeof__(&name) name;
	FUNCTIONS(F)
#undef F
} lib;

static int archive_load(void)
{
	static const struct {
		const char *name;
		size_t offset;
	} functions[] = {
#define F(name) {#name, (size_t)((char *)&lib.name - (char *)&lib)},
		FUNCTIONS(F)
#undef F
	};
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return err_say(ERR_UNSUPPORTED,
			"archives need libarchive: install it (libarchive13), or unpack the file");
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		void *function = dlsym(library, functions[i].name);

		if (!function)
			return err_say(ERR_UNSUPPORTED, "%s has no %s", LIBRARY, functions[i].name);
		memcpy((char *)&lib + functions[i].offset, &function, sizeof(function));
	}
	return 0;
}

/* ---- reading ------------------------------------------------------------ */

struct archive_walk {
	const struct source_file *file;
	struct archive *archive;
	uint64_t content; /* bytes of members so far */
	int error;        /* of the file */
	char piece[PIECE];
};

static int archive_bad(const struct archive_walk *walk)
{
	const char *text = lib.archive_error_string(walk->archive);

	if (walk->error < 0)
		return walk->error;
	return err_say(ERR_CORRUPT, "the archive is damaged or cut: %s", text ? text : "no reason");
}

static la_ssize_t archive_take(struct archive *archive, void *arg, const void **ret_data)
{
	struct archive_walk *walk = arg;
	size_t size = 0;
	int r = walk->file->read(walk->file->arg, walk->piece, sizeof(walk->piece), &size);

	*ret_data = walk->piece;
	if (r < 0) {
		walk->error = r;
		lib.archive_set_error(archive, EIO, "reading");
	}
	return r < 0 ? -1 : (la_ssize_t)size;
}

static int archive_read_member(void *arg, void *room, size_t size, size_t *ret_size)
{
	struct archive_walk *walk = arg;
	la_ssize_t n = lib.archive_read_data(walk->archive, room, size);
	la_int64_t packed = lib.archive_filter_bytes(walk->archive, -1);

	if (n < 0)
		return archive_bad(walk);
	walk->content += (uint64_t)n;
	if (walk->content > CONTENT_MIN && walk->content / RATIO_MAX > (uint64_t)packed)
		return err_say(ERR_TOO_LARGE, "the archive unpacks to more than %u times its size",
			RATIO_MAX);
	*ret_size = (size_t)n;
	return 0;
}

/* Returns true if PATH stays below the archive's root. */
static bool archive_is_safe(const char *path)
{
	if (*path == '/')
		return false;
	for (const char *p = path; *p; p += strcspn(p, "/"), p += *p == '/')
		if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || !p[2]))
			return false;
	return true;
}

static int archive_member(struct archive_walk *walk, struct archive_entry *entry,
	const struct source_options *options)
{
	const char *path = lib.archive_entry_pathname(entry);
	bool raw = lib.archive_format(walk->archive) == ARCHIVE_FORMAT_RAW;
	char name[2 * PATH_MAX];
	int r = 0;

	if (raw) {
		const struct source_file whole = {
			walk->file->name, "", archive_read_member, walk, NULL};

		return options->file(options->arg, &whole);
	}
	(void)snprintf(name, sizeof(name), "%s: %s", walk->file->name, path ? path : "?");
	if (!path)
		r = err_say(ERR_UNSUPPORTED, "its name can't be read");
	else if (!archive_is_safe(path))
		r = err_say(ERR_UNSUPPORTED, "its path leads out of the archive");
	else if (!source_wants(path))
		return 0;
	else if (lib.archive_entry_filetype(entry) != S_IFREG || lib.archive_entry_hardlink(entry))
		r = err_say(ERR_UNSUPPORTED, "it is a link, or no regular file");
	if (r < 0) {
		options->skipped(options->arg, name, r);
		return 0;
	}
	const struct source_file file = {name, strncmp(path, "./", 2) == 0 ? path + 2 : path,
		archive_read_member, walk, NULL};
	return options->file(options->arg, &file);
}

static int archive_members(struct archive_walk *walk, const struct source_options *options)
{
	struct archive_entry *entry;
	size_t members = 0;

	for (;;) {
		int found = lib.archive_read_next_header(walk->archive, &entry);

		if (found == ARCHIVE_EOF)
			return 0;
		int r = found == ARCHIVE_OK || found == ARCHIVE_WARN ? 0 : archive_bad(walk);
		if (r == 0 && members++ == MEMBERS_MAX)
			r = err_say(ERR_TOO_LARGE, "it has more than %u members", MEMBERS_MAX);
		if (r < 0) {
			options->skipped(options->arg, walk->file->name, r);
			return 0;
		}
		r = archive_member(walk, entry, options);
		if (r < 0)
			return r;
	}
}

int archive_walk(const struct source_file *file, const struct source_options *options)
{
	struct archive_walk walk = {.file = file};
	int r = archive_load();

	if (r < 0)
		return r;
	(void)setlocale(LC_CTYPE, "C.UTF-8"); /* else zip has no names outside of ASCII */
	walk.archive = lib.archive_read_new();
	if (!walk.archive)
		return err_set(-ENOMEM, "reading an archive");
	/* Not all filters: some start a program. */
	(void)lib.archive_read_support_filter_gzip(walk.archive);
	(void)lib.archive_read_support_filter_bzip2(walk.archive);
	(void)lib.archive_read_support_filter_xz(walk.archive);
	(void)lib.archive_read_support_filter_zstd(walk.archive);
	(void)lib.archive_read_support_format_tar(walk.archive);
	(void)lib.archive_read_support_format_zip_streamable(walk.archive);
	(void)lib.archive_read_support_format_raw(walk.archive);
	r = lib.archive_read_open(walk.archive, &walk, NULL, archive_take, NULL) == ARCHIVE_OK
		    ? archive_members(&walk, options)
		    : archive_bad(&walk);
	(void)lib.archive_read_free(walk.archive);
	return r;
}
