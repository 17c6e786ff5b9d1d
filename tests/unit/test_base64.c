/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/base64.h"
#include "tests/unit/unit.h"

Test(base64, written_as_the_standard_says)
{
	static const char *const pairs[][3] = {{"", "", ""}, {"f", "Zg==", "Zg"},
		{"fo", "Zm8=", "Zm8"}, {"foo", "Zm9v", "Zm9v"}, {"foob", "Zm9vYg==", "Zm9vYg"},
		{"\xfb\xff", "+/8=", "-_8"}, {"\xfb\xff\xbf", "+/+/", "-_-_"}};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct buf plain = BUF_INIT, url = BUF_INIT, back = BUF_INIT;

		base64_put(bytes_str(pairs[i][0]), &plain);
		base64url_put(bytes_str(pairs[i][0]), &url);
		cr_assert_str_eq(buf_cstr(&plain), pairs[i][1]);
		cr_assert_str_eq(buf_cstr(&url), pairs[i][2]);
		cr_assert_eq(base64url_get(pairs[i][2], &back), 0);
		cr_assert(bytes_equal(buf_bytes(&back), bytes_str(pairs[i][0])));
		buf_release(&plain);
		buf_release(&url);
		buf_release(&back);
	}
}

Test(base64, standard_form_reads_back_and_may_be_broken_into_lines)
{
	AUTO_FREE char *data = NULL;
	size_t size;

	cr_assert_eq(base64_decode(BYTES_LIT("Zm9v\nYmE=\r\n"), &data, &size), 0);
	cr_assert_eq(size, 5);
	cr_assert_str_eq(data, "fooba");
}

Test(base64, what_is_none_is_refused)
{
	static const char *const bad[] = {"Zg", "Zg=", "Z", "Z===", "Zg===", "Zg=a",
		"Zg==Zg==", "Z g=", "=", "Zm-_", "Zm9v!"};
	static const char *const bad_url[] = {"Z", "Zg==", "+/8", "Zm 8"};
	char *data;
	size_t size;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_eq(
			base64_decode(bytes_str(bad[i]), &data, &size), ERR_SYNTAX, "%s", bad[i]);
	for (size_t i = 0; i < sizeof(bad_url) / sizeof(bad_url[0]); i++) {
		struct buf out = BUF_INIT;

		cr_assert_eq(base64url_get(bad_url[i], &out), ERR_SYNTAX, "%s", bad_url[i]);
		buf_release(&out);
	}
}
