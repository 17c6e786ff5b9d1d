/* SPDX-License-Identifier: Apache-2.0 */
/* Paths in commands to paste. */
#ifndef COMMON_TEXT_SHELL_WORD_H
#define COMMON_TEXT_SHELL_WORD_H

#include <limits.h>

#define SHELL_WORD_SIZE (4 * PATH_MAX)

/* Writes TEXT as a shell takes it for one word: as it is, or in double quotes if it has other
 * characters than those of ordinary paths. Sentences quote commands with ', so those are not used.
 * Returns WORD, cut if TEXT is longer than a path. */
const char *shell_word(const char *text, char word[SHELL_WORD_SIZE]);

#endif
