/* SPDX-License-Identifier: Apache-2.0 */
#include "common/check.h"

#include <stdio.h>
#include <stdlib.h>

static struct {
	char *text;
	size_t size;
} check_note;

void check_note_into(char *text, size_t size)
{
	check_note.text = text;
	check_note.size = size;
}

void check_failed(const char *file, int line, const char *expression)
{
	if (check_note.text)
		(void)snprintf(
			check_note.text, check_note.size, "%s:%d: %s", file, line, expression);
	(void)fprintf(stderr, "kinf: internal error: %s:%d: %s\n", file, line, expression);
	abort();
}
