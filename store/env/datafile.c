/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/datafile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"

#define ALLOCATE_MIN   ((uint64_t)256 << 10)
#define ALLOCATE_MAX   ((uint64_t)16 << 20)
#define NO_SPACE_BYTES ((uint64_t)1 << 20)

/* ---- the disk -------------------------------------------------------------------------------- */

bool datafile_disk_is_full(const char *path)
{
	struct statvfs v;

	if (statvfs(path, &v) < 0)
		return false;
	return (uint64_t)(geteuid() ? v.f_bavail : v.f_bfree) * v.f_frsize < NO_SPACE_BYTES;
}

int datafile_disk_full(const char *path)
{
	return err_say(-ENOSPC, "'%s': the disk is full: make room there, then work resumes without a restart", path);
}

int datafile_refuse_network(const char *directory)
{
	static const uint32_t types[] = {
		0x6969,     /* NFS */
		0x517b,     /* SMB */
		0xff534d42, /* CIFS */
		0xfe534d42, /* SMB2 */
		0x5346414f, /* AFS */
		0x6b414653, /* kAFS */
		0x00c36400, /* Ceph */
		0x01021997, /* 9p */
		0x0bd00bd0, /* Lustre */
		0x47504653, /* GPFS */
		0x73757245, /* Coda */
	};
	struct statfs s;

	if (statfs(directory, &s) < 0)
		return err_set(-errno, "'%s'", directory);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if ((uint32_t)s.f_type == types[i])
			return err_say(ERR_UNSUPPORTED,
				"'%s' is on a network file system, where shared memory is not reliable: "
				"put the store on a local disk",
				directory);
	return 0;
}

/* Asks with access(2), because opening and closing the file would drop this process's own locks on it. */
int datafile_require_slot(const char *directory)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/lock.mdb", directory);
	if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0 || errno == ENOENT)
		return 0;
	return err_say(ERR_UNSUPPORTED,
		"'%s' cannot be written (%s), which readers of a live store need: mount it writable, "
		"join its group, or read a copy that was taken while no daemon ran",
		path, err_name(-errno));
}

/* ---- the files ------------------------------------------------------------------------------- */

int datafile_begin(const char *directory, uint64_t bytes, uint64_t *ret_size)
{
	char path[4096];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/data.mdb", directory);
	AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	/* The file is not made longer: LMDB initialises an empty file only. */
	if (fd < 0 || fstat(fd, &st) < 0 ||
		(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) < 0 && errno != EOPNOTSUPP))
		return errno == ENOSPC ? datafile_disk_full(path) : err_set(-errno, "'%s'", path);
	*ret_size = (uint64_t)st.st_size;
	return 0;
}

int datafile_set_modes(const char *directory, unsigned file_mode)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/data.mdb", directory);
	if (chmod(path, file_mode) < 0)
		return err_set(-errno, "'%s'", path);
	(void)snprintf(path, sizeof(path), "%s/lock.mdb", directory);
	if (chmod(path, file_mode | ((file_mode & 0040) >> 1)) < 0)
		return err_set(-errno, "'%s'", path);
	return 0;
}

int datafile_hold(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

void datafile_cut(int fd, uint64_t bytes)
{
	(void)!ftruncate(fd, (off_t)bytes); /* a hole that stays does no harm */
}

/* ---- blocks ---------------------------------------------------------------------------------- */

int datafile_extend(struct datafile_blocks *blocks, int fd, uint64_t end, uint64_t most,
	const char *path)
{
	/* Adds an eighth, so that not each batch asks the file system, but not so much that a small database takes
	 * a small disk from the journal. */
	uint64_t more = end / 8 < ALLOCATE_MIN ? ALLOCATE_MIN : end / 8 > ALLOCATE_MAX ? ALLOCATE_MAX : end / 8;
	uint64_t ahead = end + more < most ? end + more : most;

	if (end <= blocks->end)
		return 0;
	int rc = posix_fallocate(fd, (off_t)blocks->end, (off_t)(ahead - blocks->end));
	if (rc == ENOSPC) {
		ahead = end;
		rc = posix_fallocate(fd, (off_t)blocks->end, (off_t)(ahead - blocks->end));
	}
	if (rc == ENOSPC)
		return datafile_disk_full(path);
	if (rc)
		return err_set(-rc, "allocating %" PRIu64 " bytes for '%s'", end - blocks->end, path);
	blocks->end = ahead;
	return 0;
}

int datafile_keep(struct datafile_blocks *blocks, int fd, uint64_t end, uint64_t better,
	const char *path)
{
	if (blocks->impossible || end <= blocks->end)
		return 0;
	uint64_t ends[] = {better, end};
	int error = ENOSPC;
	for (int i = 0; i < 2 && error == ENOSPC; i++) {
		error = 0;
		if (fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)blocks->end, (off_t)(ends[i] - blocks->end)) < 0)
			error = errno;
		else
			blocks->end = ends[i];
	}
	if (error == ENOSPC)
		return datafile_disk_full(path);
	blocks->impossible = error == EOPNOTSUPP || error == ENOSYS;
	if (!error || blocks->impossible)
		return 0;
	return err_set(-error, "keeping %" PRIu64 " bytes free for '%s'", end - blocks->end, path);
}
