/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/gzip.h"

#include <errno.h>
#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/err.h"

#define GZIP_LEVEL  1
#define GZIP_WORK   ISAL_DEF_LVL1_DEFAULT /* this level's buffer */
#define GZIP_OUT    ((size_t)16 << 10)
#define GZIP_IN_MAX ((size_t)1 << 30)
#define STORED_MAX  ((size_t)65535) /* in a block that is not compressed */

struct gzip {
	struct isal_zstream stream;
	uint8_t work[GZIP_WORK];
};

int gzip_new(struct gzip **ret_gzip)
{
	struct gzip *gzip =
		malloc(sizeof(*gzip)); /* 360 KiB, set by isal_deflate_init() as needed */

	if (!gzip)
		return err_set(-ENOMEM, "compressing an answer");
	isal_deflate_init(&gzip->stream);
	gzip->stream.gzip_flag = IGZIP_GZIP;
	gzip->stream.level = GZIP_LEVEL;
	gzip->stream.level_buf = gzip->work;
	gzip->stream.level_buf_size = sizeof(gzip->work);
	*ret_gzip = gzip;
	return 0;
}

void gzip_free(struct gzip **gzip)
{
	free(TAKE(*gzip));
}

int gzip_put(struct gzip *gzip, struct bytes piece, bool end, struct buf *out)
{
	struct isal_zstream *stream = &gzip->stream;

	if (piece.size > GZIP_IN_MAX)
		return err_set(ERR_TOO_LARGE, "compressing an answer");
	stream->next_in = (uint8_t *)(uintptr_t)piece.data; /* the library only reads it */
	stream->avail_in = (uint32_t)piece.size;
	stream->end_of_stream = end;
	do {
		size_t before = out->size;
		uint8_t *place = buf_grow(out, GZIP_OUT);

		if (!place)
			return buf_error(out);
		stream->next_out = place;
		stream->avail_out = (uint32_t)GZIP_OUT;
		int result = isal_deflate(stream);
		buf_truncate(out, before + GZIP_OUT - stream->avail_out);
		if (result != COMP_OK)
			return err_set(-EINVAL, "compressing an answer: result %d", result);
	} while (stream->avail_out == 0 || stream->avail_in ||
		 (end && stream->internal_state.state != ZSTATE_END));
	return 0;
}

int gzip_all(struct bytes body, struct buf *out)
{
	CLEANUP(gzip_free) struct gzip *gzip = NULL;
	int r = gzip_new(&gzip);

	return r < 0 ? r : gzip_put(gzip, body, true, out);
}

/* ---- members of a stream ------------------------------------------------ */

static void gzip_put_block(struct bytes data, bool last, struct buf *out)
{
	uint16_t size = (uint16_t)data.size;
	const uint8_t head[] = {
		last, (uint8_t)size, (uint8_t)(size >> 8), (uint8_t)~size, (uint8_t)(~size >> 8)};

	buf_put(out, head, sizeof(head));
	buf_bytes_put(out, data);
}

static void gzip_store(struct bytes piece, struct buf *out)
{
	static const uint8_t head[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255};
	uint32_t tail[] = {crc32_gzip_refl(0, piece.data, piece.size), (uint32_t)piece.size};

	buf_put(out, head, sizeof(head));
	for (size_t at = 0, n; at < piece.size; at += n) {
		n = piece.size - at < STORED_MAX ? piece.size - at : STORED_MAX;
		gzip_put_block(BYTES((const char *)piece.data + at, n), false, out);
	}
	/* Go's decoder gives out what it has at an empty block; at the last one it goes on to the
	 * next member first. */
	gzip_put_block(BYTES_NONE, false, out);
	gzip_put_block(BYTES_NONE, true, out);
	for (size_t i = 0; i < sizeof(tail); i++)
		buf_byte(out, (uint8_t)(tail[i / 4] >> (i % 4 * 8)));
}

int gzip_member(struct gzip *gzip, struct bytes piece, struct buf *out)
{
	if (!gzip) {
		gzip_store(piece, out);
		return buf_error(out);
	}
	isal_deflate_reset(&gzip->stream);
	gzip->stream.gzip_flag = IGZIP_GZIP; /* no more after a header */
	gzip->stream.flush = SYNC_FLUSH;
	int r = gzip_put(gzip, piece, false, out);
	gzip->stream.flush = NO_FLUSH;
	return r < 0 ? r : gzip_put(gzip, BYTES_NONE, true, out);
}
