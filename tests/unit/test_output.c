/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buf.h"
#include "common/output.h"
#include "tests/unit/unit.h"

static void write_to(const char *path)
{
	AUTO_FD int fd = open(path, O_WRONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	(void)fflush(stdout);
	cr_assert_eq(dup2(fd, STDOUT_FILENO), STDOUT_FILENO);
}

Test(output, a_failure_is_returned_once)
{
	write_to("/dev/full");
	cr_assert_eq(output_flush(), 0, "nothing was to be written");
	(void)printf("a result\n");
	cr_assert_eq(output_flush(), -ENOSPC);
	cr_assert_str_eq(err_text(-ENOSPC), "writing the output: No space left on device");
	cr_assert_eq(output_flush(), 0);
}

Test(output, a_failure_of_an_earlier_write_is_found)
{
	write_to("/dev/full");
	for (int i = 0; i < 100000; i++)
		(void)printf("more than a buffer holds\n");
	(void)fflush(stdout);
	write_to("/dev/null");
	cr_assert_eq(output_flush(), -EIO);
	cr_assert_str_eq(err_text(-EIO), "writing the output: a part of it could not be written");
}

Test(output, a_whole_result_is_written_or_refused)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;

	write_to("/dev/null");
	buf_str(&out, "a result\n");
	cr_assert_eq(output_text(&out), 0);
	cr_assert_eq(out.size, 0);
	write_to("/dev/full");
	buf_str(&out, "a result\n");
	cr_assert_eq(output_text(&out), -ENOSPC);
}
