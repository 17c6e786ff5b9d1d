/* SPDX-License-Identifier: Apache-2.0 */
#include "common/err.h"

#include "tests/unit/unit.h"

Test(err, sentence_reads_from_the_outside_in)
{
	cr_assert_eq(err_set(ERR_CORRUPT, "page %d", 7), ERR_CORRUPT);
	cr_assert_eq(err_add(ERR_CORRUPT, "journal generation %u", 3u), ERR_CORRUPT);
	cr_assert_eq(err_add(ERR_CORRUPT, "opening '%s'", "/x"), ERR_CORRUPT);
	cr_assert_str_eq(
		err_text(ERR_CORRUPT), "opening '/x': journal generation 3: page 7: damaged data");
}

Test(err, limit_of_descriptors_is_named_as_it_is_set)
{
	(void)err_set(-EMFILE, "opening '/x'");
	cr_assert(strstr(err_text(-EMFILE), "opening '/x': Too many open files ("), "%s",
		err_text(-EMFILE));
	cr_assert(strstr(err_text(-EMFILE), "ulimit -n"), "%s", err_text(-EMFILE));
}

Test(err, said_sentence_stands_alone)
{
	cr_assert_eq(err_say(ERR_SYNTAX, "line %d: no", 1), ERR_SYNTAX);
	cr_assert_str_eq(err_text(ERR_SYNTAX), "line 1: no");
}

Test(err, quoted_control_characters_are_not_passed_on)
{
	(void)err_say(ERR_CORRUPT, "it holds '%s'", "a\x1b[31m\r\n\x7f\xc3\xa9");
	cr_assert_str_eq(err_text(ERR_CORRUPT), "it holds 'a?[31m? ?\xc3\xa9'");
	(void)err_add(ERR_CORRUPT, "file '%s'", "\a");
	cr_assert_str_eq(err_text(ERR_CORRUPT), "file '?': it holds 'a?[31m? ?\xc3\xa9'");
}

/* U+009B begins a sequence for a terminal as ESC [ does. A path may hold bytes outside UTF-8,
 * unlike JSON. */
Test(err, quoted_bytes_are_characters_that_a_terminal_shows)
{
	(void)err_say(ERR_CORRUPT, "it holds '%s'",
		"a\xc2\x9b"
		"31m\xff\xc3\xbc\xe2\x82");
	cr_assert_str_eq(err_text(ERR_CORRUPT), "it holds 'a?\?31m?\xc3\xbc?\?'");
}

Test(err, sentence_of_another_code_is_not_shown)
{
	(void)err_set(ERR_CORRUPT, "old");
	cr_assert_str_eq(err_text(-ENOENT), "No such file or directory");
	cr_assert_eq(err_add(-ENOENT, "opening"), -ENOENT);
	cr_assert_str_eq(err_text(-ENOENT), "opening: No such file or directory");
	err_forget();
	cr_assert_str_eq(err_text(-ENOENT), "No such file or directory");
	cr_assert_str_eq(err_text(0), "no error");
}

Test(err, an_ignored_failure_lends_its_sentence_to_no_later_one)
{
	err_ignore(err_set(-ENOENT, "opening '/a'"), "the test says so");
	cr_assert_str_eq(err_text(-ENOENT), "No such file or directory");
	(void)err_set(ERR_CORRUPT, "page 7");
	err_ignore(-ENOENT, "the sentence on its way is of another failure");
	err_ignore(0, "no failure");
	err_ignore(FOUND, "no failure");
	cr_assert_str_eq(err_text(ERR_CORRUPT), "page 7: damaged data");
	errno = EXDEV;
	err_ignore(err_set(-ENOENT, "x"), "y");
	cr_assert_eq(errno, EXDEV);
}

Test(err, long_sentences_are_cut_not_overrun)
{
	char text[3000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	(void)err_set(ERR_HTTP, "%s", text);
	cr_assert_eq(strlen(err_text(ERR_HTTP)), 1023);
	(void)err_add(ERR_HTTP, "outer");
	cr_assert_eq(strncmp(err_text(ERR_HTTP), "outer: xxx", 10), 0);
	cr_assert_eq(strlen(err_text(ERR_HTTP)), 1023);
}

Test(err, errno_is_left_as_it_was)
{
	errno = EXDEV;
	(void)err_set(-EIO, "a");
	(void)err_add(-EIO, "b");
	(void)err_say(-EIO, "c");
	cr_assert_eq(errno, EXDEV);
}

Test(err, sentence_survives_a_destructor_that_fails_itself)
{
	struct err_kept kept;
	int r = err_set(ERR_CORRUPT, "page 7");

	err_keep(&kept);
	(void)err_set(ERR_TIMEOUT, "closing");
	err_restore(&kept);
	cr_assert_str_eq(err_text(r), "page 7: damaged data");
	cr_assert_str_eq(err_text(ERR_TIMEOUT), "timed out");
}
