/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/damaged.h"

#include <stdio.h>

#include "common/err.h"
#include "store/env/text_file.h"

#define SENTENCE_SIZE 512

int damaged_note(int folder_fd, const char *sentence)
{
	char text[SENTENCE_SIZE];

	(void)snprintf(text, sizeof(text), "%.500s\n", sentence);
	return text_file_replace(folder_fd, DAMAGED_FILE, text, 0600);
}

int damaged_check(int folder_fd)
{
	char sentence[SENTENCE_SIZE];
	int r = text_file_read_line(folder_fd, DAMAGED_FILE, sentence, sizeof(sentence), NULL);

	if (r == NOT_FOUND)
		return 0;
	return r < 0 ? r : err_say(ERR_CORRUPT, "a daemon met damage in it: %s", sentence);
}
