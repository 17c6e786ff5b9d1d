/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>

#include "common/buf.h"
#include "tests/unit/unit.h"

Test(buf, writes_follow_each_other)
{
	CLEANUP(buf_release) struct buf b = BUF_INIT;

	buf_str(&b, "kind=");
	buf_byte(&b, 'P');
	buf_put(&b, "od", 2);
	buf_put(&b, NULL, 0);
	buf_bytes_put(&b, BYTES_LIT(" n="));
	buf_printf(&b, "%d%s", 12, "!");
	buf_blanks(&b, 0);
	buf_blanks(&b, 2);
	buf_byte(&b, '.');
	cr_assert_str_eq(buf_cstr(&b), "kind=Pod n=12!  .");
	cr_assert_eq(b.size, 17);
	cr_assert_eq(buf_error(&b), 0);
}

Test(buf, empty_buffer_is_an_empty_string)
{
	CLEANUP(buf_release) struct buf b = BUF_INIT;

	cr_assert_str_eq(buf_cstr(&b), "");
	cr_assert_eq(buf_bytes(&b).size, 0);
}

Test(buf, grows_over_many_writes)
{
	CLEANUP(buf_release) struct buf b = BUF_INIT;

	for (uint32_t i = 0; i < 100000; i++)
		buf_put(&b, &i, sizeof(i));
	cr_assert_eq(b.size, 400000);
	cr_assert_eq(le32_get(b.data + 4 * 77777), 77777);
}

Test(buf, formatted_text_that_does_not_fit_yet_is_whole)
{
	CLEANUP(buf_release) struct buf buf = BUF_INIT;
	char wanted[4096] = "";

	for (int i = 0; i < 400; i++) {
		buf_printf(&buf, "%d,", i);
		(void)snprintf(wanted + strlen(wanted), 8, "%d,", i);
		cr_assert_str_eq(buf_cstr(&buf), wanted);
	}
	buf_release(&buf);
	buf_init(&buf, 10);
	buf_printf(&buf, "%s", "0123456789");
	cr_assert_eq(buf_error(&buf), 0);
	buf_printf(&buf, "%s", "x");
	cr_assert_eq(buf_error(&buf), ERR_TOO_LARGE);
	cr_assert_eq(buf.size, 10);
}

Test(buf, limit_is_reached_exactly_and_then_sticks)
{
	CLEANUP(buf_release) struct buf b = BUF_INIT;

	buf_init(&b, 10);
	buf_put(&b, "0123456789", 10);
	cr_assert_eq(buf_error(&b), 0);
	buf_byte(&b, 'x');
	cr_assert_eq(buf_error(&b), ERR_TOO_LARGE);
	cr_assert_str_eq(err_text(ERR_TOO_LARGE), "buffer of 10 bytes, limit 10: too large");
	cr_assert_null(buf_grow(&b, 1));
	buf_blanks(&b, 1);
	buf_printf(&b, "%d", 1);
	cr_assert_str_eq(buf_cstr(&b), "0123456789", "nothing more came in");
	buf_reset(&b);
	buf_str(&b, "again");
	cr_assert_eq(buf_error(&b), 0);
	cr_assert_str_eq(buf_cstr(&b), "again");
}

Test(buf, huge_sizes_do_not_wrap_around)
{
	CLEANUP(buf_release) struct buf b = BUF_INIT;

	buf_byte(&b, 'x');
	cr_assert_null(buf_grow(&b, SIZE_MAX));
	cr_assert_eq(buf_error(&b), ERR_TOO_LARGE);
}

Test(buf, front_and_back_can_be_dropped)
{
	CLEANUP(buf_release) struct buf b = BUF_INIT;

	buf_str(&b, "0123456789");
	buf_consume(&b, 3);
	cr_assert_str_eq(buf_cstr(&b), "3456789");
	buf_truncate(&b, 2);
	cr_assert_str_eq(buf_cstr(&b), "34");
	buf_consume(&b, 2);
	cr_assert_str_eq(buf_cstr(&b), "");
	buf_consume(&b, 0);
}

Test(buf, trim_gives_large_memory_back)
{
	CLEANUP(buf_release) struct buf b = BUF_INIT;

	buf_init(&b, 1 << 20);
	cr_assert_not_null(buf_grow(&b, 100000));
	buf_trim(&b, 1000);
	cr_assert_eq(b.capacity, 0);
	cr_assert_eq(b.limit, 1 << 20, "the limit stays");
	buf_str(&b, "x");
	buf_trim(&b, 1000);
	cr_assert_gt(b.capacity, 0);
	cr_assert_eq(b.size, 0);
}

Test(buf, fit_keeps_the_content_only)
{
	CLEANUP(buf_release) struct buf b = BUF_INIT;

	buf_fit(&b);
	cr_assert_eq(b.capacity, 0);
	buf_str(&b, "abc");
	buf_fit(&b);
	cr_assert_eq(b.capacity, 4);
	cr_assert_str_eq(buf_cstr(&b), "abc");
	buf_str(&b, "def");
	cr_assert_str_eq(buf_cstr(&b), "abcdef");
}

Test(buf, spare_room_can_be_filled_without_an_error)
{
	CLEANUP(buf_release) struct buf b = BUF_INIT;

	cr_assert_eq(buf_spare(&b), 0);
	buf_str(&b, "abc");
	cr_assert_eq(buf_spare(&b), b.capacity - 4);
	uint8_t *before = b.data;
	cr_assert_eq(buf_grow(&b, buf_spare(&b)), before + 3);
	cr_assert_eq(buf_spare(&b), 0);
	cr_assert_str_eq(buf_cstr(&b) + b.size, "");
	buf_release(&b);
	buf_init(&b, 10);
	buf_str(&b, "abc");
	cr_assert_eq(buf_spare(&b), 7);
	buf_str(&b, "too long");
	cr_assert_eq(buf_error(&b), ERR_TOO_LARGE);
	cr_assert_eq(buf_spare(&b), 0);
}

Test(buf, release_can_be_repeated)
{
	struct buf b = BUF_INIT;

	buf_str(&b, "x");
	buf_release(&b);
	buf_release(&b);
	cr_assert_eq(b.size, 0);
}

Test(buf, secret_one_is_empty_memory_when_it_is_reset)
{
	CLEANUP(buf_release) struct buf b = BUF_SECRET;

	for (int i = 0; i < 1000; i++)
		buf_str(&b, "secret");
	cr_assert_eq(b.size, 6000);
	cr_assert(!memcmp(b.data + 5994, "secret", 6), "it grew with all that was in it");
	buf_reset(&b);
	for (size_t i = 0; i < b.capacity; i++)
		cr_assert_eq(b.data[i], 0);
	buf_str(&b, "x");
	buf_release(&b);
	cr_assert(b.secret, "and the next is one too");
}

Test(buf, a_file_is_read_to_its_end)
{
	CLEANUP(buf_release) struct buf b = BUF_INIT;
	static char text[50000];
	AUTO_FD int fd = memfd_create("text", MFD_CLOEXEC);

	memset(text, 'x', sizeof(text));
	cr_assert_eq(write(fd, text, sizeof(text)), sizeof(text));
	cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
	buf_byte(&b, '>');
	cr_assert_eq(buf_read_file(&b, fd, "f"), 0);
	cr_assert(b.size == sizeof(text) + 1 && !memcmp(b.data + 1, text, sizeof(text)));
	cr_assert_eq(buf_read_file(&b, -1, "f"), -EBADF);
	cr_assert(strstr(err_text(-EBADF), "reading 'f'"));
}

Test(buf, a_file_without_end_is_read_up_to_the_limit)
{
	CLEANUP(buf_release) struct buf b = BUF_INIT;
	AUTO_FD int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	buf_init(&b, 100000);
	cr_assert_eq(buf_read_file(&b, fd, "/dev/zero"), ERR_TOO_LARGE);
}
