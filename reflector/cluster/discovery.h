/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fetches the catalogue of the API server's resources and resolves names as kubectl does: `pods`,
 * `po`, `Pod`, `deployments.apps`, `deployments.v1.apps`, `widgets.example.com`. A call starts a
 * fetch if the catalogue is old: aggregated discovery if the server has it, else one request per
 * group and version. An unreadable group hides its own resources only.
 *
 *	discovery_new(http, on_ready, arg, &discovery);
 *	r = discovery_find(discovery, "deploy", &resource);
 *		FOUND: `resource` is set
 *		AGAIN: a fetch runs; a later http_poll calls on_ready(arg, result). The caller then
 *			calls discovery_find again: at once if RESULT is 0, else after a pause
 *		ERR_NO_RESOURCE: the server has no such resource; the sentence has similar names
 *
 * No call waits: one unresolved feed does not hold up the others.
 */
#ifndef REFLECTOR_CLUSTER_DISCOVERY_H
#define REFLECTOR_CLUSTER_DISCOVERY_H

#include "common/buf.h"
#include "reflector/cluster/catalogue.h"
#include "reflector/net/http.h"

struct discovery;

/* Is called when a fetch ends, and may call discovery_find. All feeds share one discovery and one
 * fetch. */
typedef void discovery_ready_fn(void *arg, int result);

/* Fetches nothing yet. Borrows HTTP. Returns: 0, -ENOMEM. */
int discovery_new(struct http *http, discovery_ready_fn *on_ready, void *arg,
	struct discovery **ret_discovery);
void discovery_free(struct discovery **discovery);

/*
 * Finds NAME, RESOURCE[.VERSION][.GROUP] with plural, singular, short name or kind in any case,
 * among the resources with list and watch. A found name is valid for 10 minutes; for a missing one
 * a catalogue older than 10 s is fetched again. Returns: FOUND and a copy in RET_RESOURCE; AGAIN;
 * ERR_NO_RESOURCE; ERR_HTTP if the resource may be in an unreadable group; ERR_CONFIG if NAME is no
 * resource's name; -ENOMEM.
 */
int discovery_find(struct discovery *discovery, const char *name, struct resource *ret_resource);

/* Returns: FOUND when the catalogue was fetched at most MAX_AGE ago; AGAIN after starting a fetch;
 * -ENOMEM. */
int discovery_refresh(struct discovery *discovery, uint64_t max_age_ns);
/* As discovery_find, in the catalogue as it is, however old; starts no fetch. */
int discovery_known(
	const struct discovery *discovery, const char *name, struct resource *ret_resource);
/* Gives the next resource, each in each version with list and watch, the preferred version first.
 * *AT begins as 0. Returns NULL at the end. */
const struct resource *discovery_next(const struct discovery *discovery, size_t *at);

/* Sets after how long a missing name is fetched again, instead of 10 s. */
void discovery_set_recheck(struct discovery *discovery, uint64_t recheck_ns);

/* Makes each fetch keep the bytes of new aggregated documents. */
void discovery_keep(struct discovery *discovery, bool keep);
/* Returns the kept document of /api (AT 0) or /apis (AT 1) and its ETag, "" for none. The caller
 * releases a document that it needs no more; an empty one is none. */
struct buf *discovery_kept(struct discovery *discovery, unsigned at, const char **ret_etag);

/* Makes the next discovery_find fetch: a list was answered 404, so the catalogue is wrong. */
void discovery_expire(struct discovery *discovery);

#endif
