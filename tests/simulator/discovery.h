/* SPDX-License-Identifier: Apache-2.0 */
/* Discovery documents, legacy and aggregated (apidiscovery.k8s.io/v2), and other documents without
 * objects: /version, /healthz, /livez, /readyz. */
#ifndef SIMULATOR_DISCOVERY_H
#define SIMULATOR_DISCOVERY_H

#include "tests/simulator/http.h"
#include "tests/simulator/world.h"

/* True when PATH is one of them, and ANSWER is filled in. Called with world->lock held. */
bool discovery_answer(
	struct world *world, const struct http_request *request, struct http_answer *answer);

/* Returns whether PATH begins like a served group version ("/api/v1", "/apis/apps/v1"). */
bool discovery_serves(struct world *world, const char *group, const char *version);

#endif
