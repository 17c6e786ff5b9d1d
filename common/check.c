/* SPDX-License-Identifier: Apache-2.0 */
#include "common/check.h"

#include <stdio.h>
#include <stdlib.h>

static struct {
	char *text;
	size_t size;
} note;

void check_note_into(char *text, size_t size)
{
	note.text = text;
	note.size = size;
}

void check_failed(const char *file, int line, const char *expression)
{
	if (note.text)
		(void)snprintf(note.text, note.size, "%s:%d: %s", file, line, expression);
	(void)fprintf(stderr, "kinf: internal error: %s:%d: %s\n", file, line, expression);
	abort();
}
