/* SPDX-License-Identifier: Apache-2.0 */
#include "command/manage/partial.h"

#include <sys/fsuid.h>

#include "tests/unit/home_rig.h"

#define OTHER 65534

static int make_result(const char *target)
{
	CLEANUP(partial_release) struct partial partial = PARTIAL_INIT;
	char path[PATH_MAX];
	int r = partial_begin(&partial, target, PARTIAL_FILE);

	if (r == 0)
		r = partial_path(&partial, "made", path);
	if (r == 0)
		scratch_write(path, "content\n");
	return r < 0 ? r : partial_end(&partial, "made");
}

Test(partial, the_result_appears_and_nothing_else_is_left)
{
	cr_assert_eq(make_result(scratch_path("result")), 0);
	cr_assert_eq(make_result(scratch_path("result")), 0);
	cr_assert_eq(access(scratch_path("result"), F_OK), 0);
	cr_assert_neq(access(scratch_path(".result.kinf-partial"), F_OK), 0);
}

/* Only root can give a directory away. */
Test(partial, a_directory_of_another_user_is_not_written_to)
{
	const char *theirs = scratch_path(".result.kinf-partial");

	cr_assert_eq(mkdir(theirs, 0777), 0);
	cr_assert_eq(chmod(theirs, 0777), 0);
	cr_assert_eq(make_result(scratch_path("result")), -EPERM, "others may write there");
	cr_assert_eq(chmod(theirs, 0700), 0);
	if (geteuid() == 0) {
		cr_assert_eq(chown(theirs, OTHER, OTHER), 0);
		cr_assert_eq(make_result(scratch_path("result")), -EPERM);
	}
	cr_assert_neq(access(scratch_path("result"), F_OK), 0);
}

/* A backup by root to an NFS server mapping root to the user nobody. */
Test(partial, a_file_system_that_gives_all_files_to_another_user_takes_the_result)
{
	if (geteuid() != 0)
		return;
	cr_assert_eq(chmod(scratch(), 0777), 0);
	(void)setfsuid(OTHER);
	OK(make_result(scratch_path("result")));
	(void)setfsuid(0);
	cr_assert_eq(access(scratch_path("result"), F_OK), 0);
}
