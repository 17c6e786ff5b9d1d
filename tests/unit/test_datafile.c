/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/datafile.h"
#include "tests/unit/unit.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

static int open_file(void)
{
	int fd = open(scratch_path("data.mdb"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	cr_assert_geq(fd, 0);
	return fd;
}

static struct stat stat_of(int fd)
{
	struct stat st;

	cr_assert_eq(fstat(fd, &st), 0);
	return st;
}

static uint64_t size_of(int fd)
{
	return (uint64_t)stat_of(fd).st_size;
}

static uint64_t blocks_of(int fd)
{
	return (uint64_t)stat_of(fd).st_blocks * 512;
}

Test(datafile, lengthening_takes_an_eighth_more_than_is_asked_for)
{
	struct datafile_blocks blocks = {0};
	AUTO_FD int fd = open_file();

	cr_assert_eq(datafile_lengthen(&blocks, fd, 64 * KIB, 64 * MIB), 0);
	cr_assert_eq(blocks.length, (64 + 256) * KIB, "at least so much");
	cr_assert_eq(datafile_lengthen(&blocks, fd, 8 * MIB, 64 * MIB), 0);
	cr_assert_eq(blocks.length, 9 * MIB);
	cr_assert_eq(size_of(fd), 9 * MIB);
	cr_assert_geq(blocks_of(fd), 9 * MIB, "and they are there");
	cr_assert_eq(datafile_lengthen(&blocks, fd, 8 * MIB + 1, 64 * MIB), 0);
	cr_assert_eq(size_of(fd), 9 * MIB, "nothing was to be done");
	cr_assert_eq(datafile_lengthen(&blocks, fd, 10 * MIB, 10 * MIB), 0);
	cr_assert_eq(blocks.length, 10 * MIB, "not beyond the map");
	datafile_shorten(&blocks, fd, MIB + 1);
	cr_assert_eq(size_of(fd), MIB + 64 * KIB, "whole pages of every machine");
	cr_assert_leq(blocks_of(fd), 2 * MIB);
	cr_assert_eq(blocks.end, MIB + 64 * KIB);
}

Test(datafile, blocks_are_kept_behind_the_end_of_the_file)
{
	struct datafile_blocks blocks = {0};
	AUTO_FD int fd = open_file();

	cr_assert_eq(ftruncate(fd, 4096), 0);
	cr_assert_eq(datafile_keep(&blocks, fd, MIB, 2 * MIB, "x"), 0);
	cr_assert_eq(size_of(fd), 4096);
	if (!blocks.impossible) {
		cr_assert_eq(blocks.end, 2 * MIB);
		cr_assert_geq(blocks_of(fd), 2 * MIB);
	}
	blocks.length = 4096;
	datafile_shorten(&blocks, fd, MIB);
	cr_assert_eq(size_of(fd), 4096, "it never makes the file longer");
	cr_assert_leq(blocks_of(fd), 64 * KIB, "and gives back blocks beyond its end");
}

Test(datafile, a_new_file_has_blocks_and_stays_empty)
{
	bool reserves = false;

	cr_assert_eq(datafile_begin(scratch(), &reserves), 0);
	cr_assert(reserves);
	int fd = open_file();
	cr_assert_eq(size_of(fd), 0, "LMDB takes it for new by that");
	cr_assert_geq(blocks_of(fd), 256 * KIB);
	(void)close(fd);
	cr_assert_eq(datafile_begin(scratch_path("none"), &reserves), -ENOENT);
}

Test(datafile, the_lock_file_has_blocks_and_is_no_link)
{
	struct stat st;
	int fd = -1;

	cr_assert_eq(datafile_begin_lock(scratch(), &fd), 0);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0600);
	cr_assert_eq(st.st_size, 8192);
	cr_assert_geq(st.st_blocks * 512, 8192);
	(void)close(fd);
	cr_assert_eq(unlink(scratch_path("lock.mdb")), 0);
	cr_assert_eq(symlink("elsewhere", scratch_path("lock.mdb")), 0);
	cr_assert_eq(datafile_begin_lock(scratch(), &fd), -ELOOP);
}

Test(datafile, file_systems_that_write_to_another_place_keep_no_reserved_block)
{
	cr_assert(datafile_type_reserves(0xef53), "ext4");
	cr_assert(datafile_type_reserves(0x01021994), "tmpfs");
	cr_assert_not(datafile_type_reserves(0x9123683e), "btrfs");
	cr_assert_not(datafile_type_reserves(0x2fc12fc1), "ZFS");
}
