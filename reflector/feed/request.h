/* SPDX-License-Identifier: Apache-2.0 */
/* The paths of a feed's requests: /apis/apps/v1/namespaces/web/deployments?limit=500&... */
#ifndef REFLECTOR_FEED_REQUEST_H
#define REFLECTOR_FEED_REQUEST_H

#include "common/buf.h"
#include "reflector/feed/machine.h"

/* Appends the request of ACTION, FEED_DO_LIST, _STREAM or _WATCH, to PATH. */
int request_path(const struct feed_definition *definition, const struct feed_action *action,
	struct buf *path);

/*
 * Appends a GET of an object that need not exist: its answer shows whether the server knows RV yet.
 * A server whose newest state is older answers 504 after some seconds (docs/protocol.md 4.2), where
 * a watch from an RV of the future is silent for ever.
 */
int request_probe_path(const struct feed_definition *definition, const char *rv, struct buf *path);

#define REQUEST_ACCEPT_METADATA "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

/* Returns the static Accept header: objects, or their metadata only (docs/protocol.md 2.1). A
 * server without metadata answers must refuse: full objects would be another feed. */
const char *request_accept(const struct feed_definition *definition, bool watch);

#endif
