/* SPDX-License-Identifier: Apache-2.0 */
/* Paths in commands that the user may paste from a sentence. */
#ifndef COMMON_TEXT_SHELL_WORD_H
#define COMMON_TEXT_SHELL_WORD_H

#include <limits.h>

#define SHELL_WORD_SIZE (4 * PATH_MAX)

/* Writes TEXT as one word of a shell: as it is, or in double quotes if it has unusual characters
 * (sentences use ' around commands). Returns WORD, cut to the length of a path. */
const char *shell_word(const char *text, char word[SHELL_WORD_SIZE]);

#endif
