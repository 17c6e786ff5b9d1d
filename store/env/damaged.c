/* SPDX-License-Identifier: Apache-2.0 */
#include "store/env/damaged.h"

#include <errno.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "store/env/text_file.h"

#define DAMAGED_BYTES 4096

int damaged_note(int folder_fd, const char *sentence)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	int r = text_file_load(folder_fd, DAMAGED_FILE, DAMAGED_BYTES, &text);

	if (r < 0 && r != -ENOENT)
		return r;
	err_forget();
	buf_printf(&text, "%.500s\n", sentence);
	r = buf_error(&text);
	return r < 0 ? r : text_file_replace(folder_fd, DAMAGED_FILE, buf_cstr(&text), 0600);
}

int damaged_count(int folder_fd)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	int lines = 0;

	if (text_file_load(folder_fd, DAMAGED_FILE, DAMAGED_BYTES, &text) < 0) {
		err_forget(); /* it says what opening the generation says, or that there is none */
		return 0;
	}
	for (const char *c = buf_cstr(&text); *c; c++)
		lines += *c == '\n';
	return lines;
}
