/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/text.h"
#include "common/text/utf8.h"
#include "tests/unit/unit.h"

static void expect_visible(struct bytes text, const char *wanted)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	const char *p = text.data;

	for (size_t at = 0; at < text.size;)
		at += text_put_visible(BYTES(p + at, text.size - at), &out);
	cr_expect(bytes_equal(buf_bytes(&out), bytes_str(wanted)), "'%.*s', not '%s'",
		BYTES_ARG(buf_bytes(&out)), wanted);
}

Test(text, control_characters_are_made_visible)
{
	expect_visible(BYTES_LIT("plain ~"), "plain ~");
	expect_visible(BYTES_LIT("\0\x01\t\n\x1b[1m\x1f\x7f"), "^@^A^I^J^[[1m^_^?");
	expect_visible(BYTES_LIT("\r\n"), "\\r^J");
	expect_visible(
		BYTES_LIT("\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0"), "\\u0080\\u009b\\u009f\xc2\xa0");
	expect_visible(BYTES_LIT("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
		"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
}

Test(text, bytes_of_no_character_stay_as_they_are)
{
	expect_visible(BYTES_LIT("\xc2x"), "\xc2x");
	expect_visible(BYTES_LIT("\xc2\x1b"), "\xc2^[");
	expect_visible(BYTES_LIT("a\xff\x9b\xe2\x82"), "a\xff\x9b\xe2\x82");
}

Test(text, invalid_bytes_become_the_replacement_character)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;

	text_put_valid(BYTES_NONE, &out);
	text_put_valid(BYTES_LIT("a\xff\xc3\xa4\xed\xa0\x80z\xc2"), &out);
	cr_expect(bytes_equal(buf_bytes(&out),
		BYTES_LIT(
			"a\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd")));
	cr_expect(utf8_is_valid(buf_bytes(&out)));
}

Test(text, plain_bytes_end_at_the_first_that_is_none)
{
	uint8_t text[40];

	for (unsigned at = 0; at < sizeof(text); at++)
		for (unsigned byte = 0; byte < 256; byte++) {
			memset(text, at % 2 ? ' ' : '~', sizeof(text));
			text[at] = (uint8_t)byte;
			bool is_plain = byte >= 0x20 && byte < 0x7f;
			cr_assert_eq(text_plain(BYTES(text, sizeof(text))),
				is_plain ? sizeof(text) : at);
			cr_assert_eq(text_plain(BYTES(text, at)), at);
		}
}

static void assert_shortened(const char *text, size_t size, const char *expected)
{
	char to[64];

	memset(to, 'z', sizeof(to));
	cr_assert_eq(text_shorten(bytes_str(text), to, size), strlen(expected), "%s", to);
	cr_assert_str_eq(to, expected);
	cr_assert_eq(to[size], 'z', "nothing is written beyond SIZE");
}

Test(text, a_shortened_text_keeps_its_beginning_and_its_end)
{
	assert_shortened("", 16, "");
	assert_shortened("fifteen letters", 16, "fifteen letters");
	assert_shortened("sixteen letters!", 16, "sixte ... ters!");
	assert_shortened("the pod is gone: no such node", 20, "the pod ... ch node");
	assert_shortened("\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4", 16,
		"\u00e4\u00e4 ... \u00e4\u00e4");
}
