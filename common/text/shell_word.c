/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/shell_word.h"

#include <stdbool.h>
#include <string.h>

/* Also all bytes of characters that are not ASCII. */
#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%="

const char *shell_word(const char *text, char word[SHELL_WORD_SIZE])
{
	size_t size = strlen(text), used = 0, plain = 0;

	while (text[plain] && (text[plain] & 0x80 || strchr(PLAIN, text[plain])))
		plain++;
	if (size && size < SHELL_WORD_SIZE && plain == size)
		return memcpy(word, text, size + 1);
	word[used++] = '"';
	for (; *text && used < SHELL_WORD_SIZE - 7; text++) {
		bool is_history =
			*text == '!'; /* interactive shells expand it also between double quotes */

		if (is_history) {
			memcpy(word + used, "\"'!'\"", 5);
			used += 5;
			continue;
		}
		if (strchr("\\\"$`", *text))
			word[used++] = '\\';
		word[used++] = *text;
	}
	word[used++] = '"';
	word[used] = '\0';
	return word;
}
