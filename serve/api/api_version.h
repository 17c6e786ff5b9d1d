/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds metadata.resourceVersion in the API server's object or list, JSON or protobuf, as its
 * pieces pass by. Also finds an object on its very end: with a deletionTimestamp, without a grace
 * period and finalizers. Keeps 16 KiB of protobuf at most, and nothing of JSON.
 */
#ifndef SERVE_API_API_VERSION_H
#define SERVE_API_API_VERSION_H

#include "common/buf.h"

#define API_VERSION_SIZE 64

/* Begins as zeroes, but for `protobuf`. */
struct api_version {
	bool protobuf;
	struct buf kept; /* protobuf: the beginning */
	/* JSON */
	unsigned depth;
	bool in_text, escaped, is_value, ended;
	bool in_metadata; /* the value of the root's member metadata */
	bool wanted;      /* the value of metadata's member resourceVersion */
	bool in_grace;    /* the value of metadata's member deletionGracePeriodSeconds */
	bool lingers;     /* which is not 0 */
	bool terminating; /* metadata has a deletionTimestamp */
	bool finalized;   /* metadata has finalizers */
	bool complete;    /* metadata has passed by */
	char text[API_VERSION_SIZE];
	size_t size; /* of TEXT, with the bytes beyond its room */
	bool found;
	char rv[API_VERSION_SIZE];
};

void api_version_put(struct api_version *v, struct bytes piece);
/* Returns the resourceVersion once it has passed by; "" if there is none so far. */
const char *api_version_get(struct api_version *v);
/* Returns whether metadata has passed by, and nothing in it keeps the object. */
bool api_version_is_gone(const struct api_version *v);
void api_version_release(struct api_version *v);

#endif
