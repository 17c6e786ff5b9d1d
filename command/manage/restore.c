/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf restore FILE DIR. The backup's store is copied once more, like for a backup: each record is
 * checked, and each restored store has an id and a journal of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command/command.h"
#include "command/manage/backup.h"
#include "command/manage/tar.h"
#include "common/cleanup.h"
#include "common/daemon/signals.h"
#include "common/err.h"
#include "common/text/shell_word.h"
#include "reader/handle.h"

#define EXTRACTED "backup"
#define RESTORED  "store"

/* Unpacks the tar FILE ("-": standard input) to EXTRACTED in the partial directory, whose path is
 * PATH. */
static int restore_extract(struct backup *backup, const char *file, const char *path)
{
	bool is_stdin = strcmp(file, "-") == 0;
	AUTO_FD int opened = is_stdin ? -1 : open(file, O_RDONLY | O_CLOEXEC);
	struct stat st;
	int fd = is_stdin ? STDIN_FILENO : opened;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(-errno, "'%s'", file);
	/* The store exists twice for a time, and the tar may be on this disk. */
	int r = backup_require_room(
		backup->partial.directory, S_ISREG(st.st_mode) ? 2 * (uint64_t)st.st_size : 0);
	if (r == 0 && mkdirat(backup->partial.fd, EXTRACTED, 0700) < 0)
		r = err_set(-errno, "making the directory");
	return r < 0 ? r : tar_read(fd, path, backup_wait, backup);
}

/* Copies the store SOURCE to RESTORED in the partial directory. NAME is the user's name for it. */
static int restore_copy(struct backup *backup, const char *source, const char *name)
{
	CLEANUP(kinf_close) struct kinf *kinf = NULL;
	CLEANUP(kinf_snapshot_close) struct kinf_snapshot *snapshot = NULL;
	char path[PATH_MAX];
	int r = kinf_open(source, &kinf);

	if (r == ERR_FORMAT)
		return err_say(r,
			"another version of kinf made the backup '%s', in a format that this "
			"version can't read: restore and read it with that version; a new store of "
			"this version is listed from the API server",
			name);
	if (r < 0)
		return err_say(
			r, "the backup can't be read: %s", kinf ? kinf_error(kinf) : err_text(r));
	r = backup_open_snapshot(kinf, &snapshot);
	if (r == 0)
		r = partial_path(&backup->partial, RESTORED, path);
	backup->ticker.what = "copying";
	return r < 0 ? r : snapshot_copy(snapshot->snapshot, path, backup_report, backup);
}

static int restore_make(struct backup *backup, const char *source, const char *target)
{
	char extracted[PATH_MAX];
	struct stat st;

	if (strcmp(source, "-") != 0 && stat(source, &st) < 0)
		return err_set(-errno, "'%s'", source);
	bool is_directory = strcmp(source, "-") != 0 && S_ISDIR(st.st_mode);
	int r = partial_begin(&backup->partial, target, PARTIAL_DIRECTORY);
	if (r == 0)
		r = partial_path(&backup->partial, EXTRACTED, extracted);
	if (r == 0 && !is_directory)
		r = restore_extract(backup, source, extracted);
	if (r == 0)
		r = restore_copy(backup, is_directory ? source : extracted, source);
	return r < 0 ? r : partial_end(&backup->partial, RESTORED);
}

int command_restore(int argc, char **argv)
{
	CLEANUP(backup_release) struct backup backup = BACKUP_INIT("restoring");
	struct command_line line = {
		.options = {"kinf restore", "FILE DIR",
			"Makes DIR a store with the content of a backup (- reads the tar from "
			"standard input). Run it as the user that runs the daemons. They go on "
			"watching from the state in the backup, without listing again while the "
			"API server has its resourceVersion. Followers begin again."},
		.takes = {2, 2, "write the backup, and the directory of the new store"},
	};
	int r = command_parse(&line, argc, argv);

	if (r != 0)
		return command_usage(&line, r);
	backup.signals = r = signals_open();
	if (r >= 0)
		r = restore_make(&backup, line.operands[0], line.operands[1]);
	ticker_clear(&backup.ticker);
	if (r < 0)
		return command_fail(r);
	char word[SHELL_WORD_SIZE];
	(void)printf("restored the store '%s': start it with 'kinf run --store %s'\n",
		line.operands[1], shell_word(line.operands[1], word));
	return PROC_OK;
}
