/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stored objects as the API server's JSON: whole, without kind and apiVersion (items of lists of
 * built-in kinds), or as PartialObjectMetadata. A deletion shows the last state stamped with the
 * deletion's resourceVersion.
 */
#ifndef SERVE_API_API_OBJECT_H
#define SERVE_API_API_OBJECT_H

#include "common/buf.h"

/* RV: put in place of metadata.resourceVersion; empty: as stored. Return: 0, ERR_CORRUPT, or the
 * error of OUT. After an error OUT is as long as before. */
int api_object_write(struct bytes body, bool omit_type, struct bytes rv, struct buf *out);
/* VERSION: of meta.k8s.io, v1 or v1beta1. */
int api_object_write_metadata(
	struct bytes body, const char *version, struct bytes rv, struct buf *out);

/* ---- api_bookmark.c ----------------------------------------------------- */

/* Returns the members after metadata of a bookmark, as JSON after a comma: the zero values of the
 * kind's structure. The official Java client refuses objects without their required members.
 * Returns "" for custom resources and kinds without such members. */
const char *api_bookmark_rest(const char *group, const char *version, const char *kind);

#endif
