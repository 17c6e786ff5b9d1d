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

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"

#define ALLOCATE_MIN   ((uint64_t)256 << 10)
#define ALLOCATE_MAX   ((uint64_t)16 << 20)
#define LOCK_BYTES     8192 /* as long as LMDB makes it, for its table of 126 readers */
#define NO_SPACE_BYTES ((uint64_t)1 << 20)
#define LENGTH_STEP \
	((uint64_t)64 \
		<< 10) /* a multiple of every page size: the rest of a page after the end is \
				not kept */

/* ---- the disk ----------------------------------------------------------- */

bool datafile_disk_is_full(const char *path)
{
	struct statvfs v;

	if (statvfs(path, &v) < 0)
		return false;
	return (uint64_t)(geteuid() ? v.f_bavail : v.f_bfree) * v.f_frsize < NO_SPACE_BYTES;
}

int datafile_disk_full(const char *path)
{
	return err_say(-ENOSPC,
		"'%s': the disk is full: make room there, then work resumes without a restart",
		path);
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
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if ((uint32_t)s.f_type == types[i])
			return err_say(ERR_UNSUPPORTED,
				"'%s' is on a network file system, where shared memory is not "
				"reliable: put the store on a local disk",
				directory);
	return 0;
}

/* ---- the files ---------------------------------------------------------- */

bool datafile_type_reserves(uint32_t type)
{
	static const uint32_t types[] = {
		0x9123683e, /* btrfs */
		0x2fc12fc1, /* ZFS */
		0xca451a4e, /* bcachefs */
		0xf2f52010, /* F2FS */
		0x3434,     /* NILFS */
		0x65735546, /* FUSE: depends on the program */
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (type == types[i])
			return false;
	return true;
}

int datafile_begin(const char *directory, bool *ret_reserves)
{
	char path[4096];
	struct statfs disk;

	(void)snprintf(path, sizeof(path), "%s/data.mdb", directory);
	AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || fstatfs(fd, &disk) < 0)
		return errno == ENOSPC ? datafile_disk_full(path) : err_set(-errno, "'%s'", path);
	/* The file is not made longer: LMDB initialises an empty file only. */
	int error = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, DATAFILE_BEGIN_BYTES) < 0 ? errno : 0;
	if (error && error != EOPNOTSUPP && error != ENOSYS)
		return error == ENOSPC ? datafile_disk_full(path) : err_set(-error, "'%s'", path);
	*ret_reserves = !error && datafile_type_reserves((uint32_t)disk.f_type) &&
			failpoint_pass(FAILPOINT_DATAFILE_RESERVES) == 0;
	return 0;
}

int datafile_begin_lock(const char *directory, int *ret_fd)
{
	char path[4096];
	struct statfs disk;

	(void)snprintf(path, sizeof(path), "%s/lock.mdb", directory);
	AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fstatfs(fd, &disk) < 0)
		return errno == ENOSPC ? datafile_disk_full(path) : err_set(-errno, "'%s'", path);
	int error = posix_fallocate(fd, 0, LOCK_BYTES);
	if (error == ENOSPC || (!datafile_type_reserves((uint32_t)disk.f_type) &&
				       datafile_disk_is_full(directory)))
		return datafile_disk_full(path);
	if (error && error != EOPNOTSUPP)
		return err_set(-error, "'%s'", path);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int datafile_set_modes(const char *directory, unsigned file_mode)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/data.mdb", directory);
	if (chmod(path, file_mode) < 0)
		return err_set(-errno, "'%s'", path);
	(void)snprintf(path, sizeof(path), "%s/lock.mdb", directory);
	if (chmod(path, file_mode & 0700) < 0)
		return err_set(-errno, "'%s'", path);
	return 0;
}

void datafile_cut(int fd, uint64_t bytes)
{
	(void)!ftruncate(fd, (off_t)bytes); /* a remaining hole does no harm */
}

/* ---- blocks ------------------------------------------------------------- */

uint64_t datafile_ahead(uint64_t end)
{
	return end / 8 < ALLOCATE_MIN   ? ALLOCATE_MIN
	       : end / 8 > ALLOCATE_MAX ? ALLOCATE_MAX
					: end / 8;
}

/* Returns END rounded up to whole steps, but not beyond MOST. */
static uint64_t datafile_step(uint64_t end, uint64_t most)
{
	end = (end + LENGTH_STEP - 1) / LENGTH_STEP * LENGTH_STEP;
	return end < most ? end : most;
}

/* Reserves blocks up to END. Returns an errno. */
static int datafile_reserve(struct datafile_blocks *blocks, int fd, uint64_t end)
{
	int error;

	if (end <= blocks->end)
		return 0;
	do
		error = fallocate(fd, FALLOC_FL_KEEP_SIZE, (off_t)blocks->end,
				(off_t)(end - blocks->end)) < 0
				? errno
				: 0;
	while (error == EINTR);
	if (!error)
		blocks->end = end;
	return error;
}

int datafile_lengthen(struct datafile_blocks *blocks, int fd, uint64_t end, uint64_t most)
{
	uint64_t least = datafile_step(end, most),
		 length = datafile_step(end + datafile_ahead(end), most);

	if (end <= blocks->length)
		return 0;
	if (datafile_reserve(blocks, fd, length)) {
		int error = datafile_reserve(blocks, fd, length = least);
		if (error)
			return error;
	}
	if (ftruncate(fd, (off_t)length) < 0)
		return errno;
	blocks->length = length;
	return 0;
}

void datafile_shorten(struct datafile_blocks *blocks, int fd, uint64_t end)
{
	end = datafile_step(end, blocks->length);
	/* Blocks beyond the end go even if the length stays. A longer file does no harm. */
	if (end < blocks->end && ftruncate(fd, (off_t)end) == 0)
		blocks->length = blocks->end = end;
}

int datafile_keep(
	struct datafile_blocks *blocks, int fd, uint64_t end, uint64_t better, const char *path)
{
	if (blocks->impossible || end <= blocks->end)
		return 0;
	int error = datafile_reserve(blocks, fd, better);
	if (error == ENOSPC)
		error = datafile_reserve(blocks, fd, end);
	if (error == ENOSPC)
		return datafile_disk_full(path);
	blocks->impossible = error == EOPNOTSUPP || error == ENOSYS;
	if (!error || blocks->impossible)
		return 0;
	return err_set(-error, "keeping %" PRIu64 " bytes free for '%s'", end - blocks->end, path);
}
