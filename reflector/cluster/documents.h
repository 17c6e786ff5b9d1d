/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API server's aggregated discovery documents in the store, for kinf-serve with `forward:
 * on` while the API server is away (store/FORMAT.md, Discovery documents). They are asked for
 * again every ten minutes, with their ETags.
 *
 *	documents_open(discovery, config, home, &documents);
 *	documents_due(&documents, now);		each second, while the cluster is known
 *	documents_write(&documents);		after a fetch of discovery
 */
#ifndef REFLECTOR_CLUSTER_DOCUMENTS_H
#define REFLECTOR_CLUSTER_DOCUMENTS_H

#include "common/config/config.h"
#include "reflector/cluster/discovery.h"
#include "store/env/home.h"

struct documents {
	struct discovery *discovery;
	const struct home *home;
	bool wanted;
	bool warned;      /* of the last failure to write */
	uint64_t next_ns; /* monotonic */
};

/* Borrows DISCOVERY and HOME. */
void documents_open(struct documents *documents, struct discovery *discovery,
	const struct config *config, const struct home *home);
/* Follows a changed configuration. */
void documents_configure(struct documents *documents, const struct config *config);
/* Asks for new documents when it is time to. Returns: 0, -ENOMEM. */
int documents_due(struct documents *documents, uint64_t now_ns);
/* Writes new documents, if they are wanted; logs a failure. */
void documents_write(struct documents *documents);

#endif
