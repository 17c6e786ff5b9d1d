/* SPDX-License-Identifier: Apache-2.0 */
/* Compresses answers (docs/protocol.md 2.4), with Intel's igzip: six to eight times as fast as the
 * API server's zlib level 1, and no larger. Only gzip.c uses it. */
#ifndef SERVE_HTTP_GZIP_H
#define SERVE_HTTP_GZIP_H

#include "common/buf.h"

struct gzip;

int gzip_new(struct gzip **ret_gzip);
void gzip_free(struct gzip **gzip);

/* Compresses PIECE and appends the output to OUT; with END all of it. The pieces are one member. */
int gzip_put(struct gzip *gzip, struct bytes piece, bool end, struct buf *out);

int gzip_all(struct bytes body, struct buf *out);

/* Appends PIECE as a member of its own, which a decoder gives out before it has seen another one.
 * GZIP keeps nothing of it; NULL: it is not compressed. */
int gzip_member(struct gzip *gzip, struct bytes piece, struct buf *out);

#endif
