/* SPDX-License-Identifier: Apache-2.0 */
/* kinf backup FILE|DIR|- */
#include "command/manage/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "command/command.h"
#include "command/manage/tar.h"
#include "common/cleanup.h"
#include "common/daemon/signals.h"
#include "common/err.h"
#include "reader/handle.h"

int backup_wait(void *arg)
{
	struct backup *backup = arg;
	int number = signals_next(backup->signals);

	if (number > 0 && number != SIGHUP && number != SIGCHLD)
		return err_say(-EINTR, "interrupted: nothing was made");
	return 0;
}

int backup_report(void *arg, uint64_t bytes, uint64_t total)
{
	struct backup *backup = arg;

	ticker_show(&backup->ticker, bytes >> 20, total >> 20, "MiB");
	return backup_wait(arg);
}

int backup_require_room(const char *path, uint64_t bytes)
{
	struct statvfs disk;

	if (statvfs(path, &disk) < 0)
		return err_set(-errno, "'%s'", path);
	uint64_t room = (uint64_t)disk.f_bavail * disk.f_frsize;
	(void)fprintf(stderr,
		"note: this takes about %" PRIu64 " MiB of disk space in '%s', and %" PRIu64
		" MiB are free\n",
		(bytes >> 20) + 1, path, room >> 20);
	return room >= bytes ? 0 : err_say(-ENOSPC, "there is not enough room in '%s'", path);
}

int backup_open_snapshot(struct kinf *kinf, struct kinf_snapshot **ret_snapshot)
{
	if (kinf->is_damaged)
		return err_say(ERR_CORRUPT, "a damaged copy can't be copied again: 'kinf export' "
					    "writes the objects that can be read");
	int r = kinf_snapshot_open(kinf, ret_snapshot);
	return r == 0 ? 0 : err_say(r < 0 ? r : -EAGAIN, "%s", kinf_error(kinf));
}

/* Writes the store at PATH as a tar: to OUT, or if that is -1 to FILE in the partial directory. */
static int backup_write_tar(struct backup *backup, const char *path, int out, const char *file)
{
	AUTO_FD int made =
		out >= 0 ? -1
			 : openat(backup->partial.fd, file,
				   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (out < 0 && made < 0)
		return err_set(-errno, "making the backup");
	ticker_clear(&backup->ticker);
	int r = tar_write(path, out >= 0 ? out : made, backup_wait, backup);
	if (r == 0 && made >= 0 && fsync(made) < 0)
		r = err_set(-errno, "writing the backup");
	return r;
}

static int backup_make(struct backup *backup, struct kinf_snapshot *snapshot, const char *target)
{
	char scratch[PATH_MAX], path[PATH_MAX];
	const char *given = getenv("TMPDIR"), *parent = given && *given ? given : "/var/tmp";
	bool is_stdout = strcmp(target, "-") == 0;
	size_t size = strlen(target);
	struct stat st;
	bool is_directory = !is_stdout && ((size && target[size - 1] == '/') ||
						  (stat(target, &st) == 0 && S_ISDIR(st.st_mode)));

	int r = 0;
	if (is_stdout && snprintf(scratch, sizeof(scratch), "%s/kinf-backup-%u", parent,
				 (unsigned)geteuid()) >= PATH_MAX)
		r = err_say(-ENAMETOOLONG, "$TMPDIR has %zu bytes: a path has at most %d",
			strlen(parent), PATH_MAX - 1);
	if (r == 0)
		r = partial_begin(&backup->partial, is_stdout ? scratch : target,
			is_directory ? PARTIAL_DIRECTORY : PARTIAL_FILE);
	if (r == 0)
		r = snapshot_copy_size(snapshot->snapshot, &backup->total);
	/* A tar is made from a copy: both exist for a time. */
	if (r == 0)
		r = backup_require_room(backup->partial.directory,
			backup->total * (is_stdout || is_directory ? 1 : 2));
	if (r == 0)
		r = partial_path(&backup->partial, "store", path);
	if (r == 0)
		r = snapshot_copy(snapshot->snapshot, path, backup_report, backup);
	kinf_snapshot_reset(snapshot); /* the rest needs no pages of the store */
	if (r == 0 && is_stdout)
		r = backup_write_tar(backup, path, STDOUT_FILENO, NULL);
	else if (r == 0 && !is_directory)
		r = backup_write_tar(backup, path, -1, "tar");
	return r < 0 || is_stdout ? r
				  : partial_end(&backup->partial, is_directory ? "store" : "tar");
}

void backup_release(struct backup *backup)
{
	ticker_clear(&backup->ticker);
	partial_release(&backup->partial);
	cleanup_fd(&backup->signals);
}

int command_backup(int argc, char **argv)
{
	CLEANUP(backup_release) struct backup backup = BACKUP_INIT("copying");
	CLEANUP(kinf_close) struct kinf *kinf = NULL;
	CLEANUP(kinf_snapshot_close) struct kinf_snapshot *snapshot = NULL;
	struct command_line line = {
		.options = {"kinf backup", "FILE|DIR|-",
			"Writes a consistent, compacted copy of the store, also while its daemons "
			"run: a tar FILE, a DIR (with a slash at its end, or an empty one that "
			"exists), or a tar on standard output. 'kinf restore' reads it. A DIR is a "
			"store by itself. Cursors are not copied."},
		.takes = {1, 1, "write one file or directory, or - for standard output"},
	};
	int r = command_parse(&line, argc, argv);

	if (r == 0 && strcmp(line.operands[0], "-") == 0 && isatty(STDOUT_FILENO))
		r = options_bad(&line.options,
			"a tar is not written to a terminal: name a file, or redirect it");
	if (r != 0)
		return command_usage(&line, r);
	if (command_open(&line.flags, &kinf) < 0)
		return PROC_FAILED;
	r = backup_open_snapshot(kinf, &snapshot);
	if (r == 0)
		backup.signals = r = signals_open();
	if (r >= 0)
		r = backup_make(&backup, snapshot, line.operands[0]);
	ticker_clear(&backup.ticker);
	return r < 0 ? command_fail(r) : PROC_OK;
}
