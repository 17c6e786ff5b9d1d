/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/shell_word.h"
#include "tests/unit/unit.h"

static const char *const texts[] = {"/var/lib/kinf", "/s p", "it's", "a\"b", "$(touch x)`id`",
	"a\\n", "*?[x]", "~", "a;b&c|d<e>f", "-x", "#x", "a!b", "", "\xc3\xbc", "a\tb"};

Test(shell_word, ordinary_paths_stay_as_they_are)
{
	char word[SHELL_WORD_SIZE];

	cr_assert_str_eq(shell_word("/var/lib/kinf-1_2.x", word), "/var/lib/kinf-1_2.x");
	cr_assert_str_eq(shell_word("/s p/$x", word), "\"/s p/\\$x\"");
	cr_assert_str_eq(shell_word("/\xc3\xbc", word), "/\xc3\xbc");
}

Test(shell_word, a_shell_reads_back_what_was_written)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char word[SHELL_WORD_SIZE], command[SHELL_WORD_SIZE + 32], read[256] = "";

		(void)snprintf(
			command, sizeof(command), "printf '%%s|' %s", shell_word(texts[i], word));
		FILE *shell = popen(command, "r");
		cr_assert(shell);
		size_t n = fread(read, 1, sizeof(read) - 1, shell);
		cr_assert_eq(pclose(shell), 0);
		cr_assert(n && read[n - 1] == '|');
		read[n - 1] = '\0';
		cr_assert_str_eq(read, texts[i]);
	}
}
