/* SPDX-License-Identifier: Apache-2.0 */
#include "common/output.h"

#include <errno.h>
#include <stdio.h>

#include "common/err.h"

/* Returns the failure of a call with CODE in errno; 0: the cause of an earlier failed write, now
 * unknown. */
static int output_failed(int code)
{
	clearerr(stdout);
	return code ? err_set(-code, "writing the output")
		    : err_say(-EIO, "writing the output: a part of it could not be written");
}

int output_write(struct buf *out)
{
	int r = buf_error(out);

	errno = 0;
	if (r == 0 && out->size && fwrite(out->data, 1, out->size, stdout) != out->size)
		r = output_failed(errno);
	buf_reset(out);
	return r;
}

int output_flush(void)
{
	errno = 0;
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : output_failed(errno);
}

int output_text(struct buf *out)
{
	int r = output_write(out);

	return r < 0 ? r : output_flush();
}
