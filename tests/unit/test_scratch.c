/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/scratch.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>

/* In a container, /dev/shm has 64 MiB. */
Test(scratch, is_on_disk_if_there_is_little_memory_for_files)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		cr_skip_test("no mount namespaces here");
	cr_assert_eq(mount("few", "/dev/shm", "tmpfs", 0, "size=64m"), 0);
	cr_assert_eq(strncmp(scratch(), "/tmp/", 5), 0, "%s", scratch());
}
