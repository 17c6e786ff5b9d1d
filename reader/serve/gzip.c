/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/serve/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "common/cleanup.h"
#include "common/err.h"

#define GZIP_LEVEL   1
#define GZIP_WINDOW  (15 + 16) /* 32 KiB, with gzip's head */
#define GZIP_OUT     ((size_t)16 << 10)
#define GZIP_IN_MAX  ((size_t)1 << 30)

struct gzip {
	z_stream stream;
	bool open;
};

int gzip_new(struct gzip **ret_gzip)
{
	CLEANUP(gzip_free) struct gzip *gzip = calloc(1, sizeof(*gzip));

	if (!gzip || deflateInit2(&gzip->stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8,
			     Z_DEFAULT_STRATEGY) != Z_OK)
		return err_set(-ENOMEM, "compressing an answer");
	gzip->open = true;
	*ret_gzip = TAKE(gzip);
	return 0;
}

void gzip_free(struct gzip **gzip)
{
	struct gzip *g = TAKE(*gzip);

	if (!g)
		return;
	if (g->open)
		(void)deflateEnd(&g->stream); /* also in the middle */
	free(g);
}

int gzip_put(struct gzip *gzip, struct bytes piece, bool end, struct buf *out)
{
	z_stream *stream = &gzip->stream;
	int result = Z_OK;

	if (piece.size > GZIP_IN_MAX)
		return err_set(ERR_TOO_LARGE, "compressing an answer");
	stream->next_in = (Bytef *)(uintptr_t)piece.data; /* zlib only reads it */
	stream->avail_in = (uInt)piece.size;
	do {
		size_t before = out->size;
		uint8_t *place = buf_grow(out, GZIP_OUT);

		if (!place)
			return buf_error(out);
		stream->next_out = place;
		stream->avail_out = (uInt)GZIP_OUT;
		result = deflate(stream, end ? Z_FINISH : Z_NO_FLUSH);
		buf_truncate(out, before + GZIP_OUT - stream->avail_out);
		if (result == Z_STREAM_ERROR)
			return err_set(-EINVAL, "compressing an answer");
	} while (stream->avail_out == 0 || (end && result != Z_STREAM_END));
	return 0;
}

int gzip_all(struct bytes body, struct buf *out)
{
	CLEANUP(gzip_free) struct gzip *gzip = NULL;
	int r = gzip_new(&gzip);

	return r < 0 ? r : gzip_put(gzip, body, true, out);
}
