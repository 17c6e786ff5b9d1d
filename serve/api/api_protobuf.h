/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metadata in the API server's protobuf: PartialObjectMetadata, its list, and events of watches.
 * client-go's metadata client prefers it, and decodes JSON otherwise: items of lists then have a
 * kind of their own.
 *
 * An object is `k8s\0` and a runtime.Unknown: its type, then its bytes. An event of a watch is a
 * length of 4 bytes and a WatchEvent with such an object. Fields are in the API server's order,
 * with the empty ones it always writes.
 */
#ifndef SERVE_API_API_PROTOBUF_H
#define SERVE_API_API_PROTOBUF_H

#include "serve/api/api_status.h"

#define API_PROTOBUF_TYPE       "application/vnd.kubernetes.protobuf"
#define API_PROTOBUF_WATCH_TYPE "application/vnd.kubernetes.protobuf;stream=watch"

/* All of these append to OUT. RV: in place of the object's; none: the object's own. After an error
 * OUT is as long as before. */

/* Appends the PartialObjectMetadata of a stored object. */
int api_protobuf_object(struct bytes body, struct bytes rv, struct buf *out);
/* Appends it as an event of a watch. */
int api_protobuf_event(const char *type, struct bytes body, struct bytes rv, struct buf *out);
/* Appends the event ERROR. */
int api_protobuf_error(const struct api_status *status, struct buf *out);

/* The metadata of a list. */
struct api_page {
	const char *rv, *token;
	uint64_t remaining; /* 0: not said */
	uint64_t size;      /* of all items; protobuf only */
};
/* A list is its head, its items, and its end. The size of all items stands before them. */
int api_protobuf_begin(const struct api_page *page, struct buf *out);
int api_protobuf_item(struct bytes body, struct buf *out);
int api_protobuf_end(struct buf *out);

#endif
