/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the API server serves, and how people name it: `pods`, `po`, `Pod`, `deployments.apps`,
 * `deployments.v1.apps`, `widgets.example.com`, resolved as kubectl does. The catalogue is fetched
 * when somebody asks and it is old, by aggregated discovery where there is any, else one request
 * per group and version; a group that cannot be read hides its own resources only.
 *
 *	discovery_new(http, on_ready, arg, &discovery);
 *	r = discovery_find(discovery, "deploy", &resource);
 *		FOUND: there it is
 *		AGAIN: being fetched; on_ready(arg, result) comes from a later http_poll. 0: ask again;
 *			an error: that is the answer for now, ask again after a pause
 *		ERR_NO_RESOURCE: the server has no such thing; the sentence has near names
 *
 * Nothing waits here, so one feed that is being resolved does not hold up the others.
 */
#ifndef REFLECTOR_CLUSTER_DISCOVERY_H
#define REFLECTOR_CLUSTER_DISCOVERY_H

#include <stdbool.h>

#include "reflector/wire/http.h"

struct discovery;

/* Lengths are the API server's own limits (DNS names and labels). */
struct resource {
	char group[254]; /* "" for the core group */
	char version[64];
	char plural[64];
	char kind[64];
	char list_kind[72]; /* kind + "List", as every server names it by default */
	char aliases[194];  /* singular and short names, each with a blank behind it */
	bool namespaced;
};

/* ON_READY may call discovery_find. Several feeds share one discovery and one fetch. */
typedef void discovery_ready_fn(void *arg, int result);

int discovery_new(struct http *http, discovery_ready_fn *on_ready, void *arg,
	struct discovery **ret_discovery);
void discovery_free(struct discovery **discovery);

/*
 * NAME is RESOURCE[.VERSION][.GROUP]; plural, singular, short name or kind, in any case. Only
 * resources that can be listed and watched are found. FOUND (RET_RESOURCE is a copy), AGAIN,
 * ERR_NO_RESOURCE, ERR_CONFIG for a name that can't be one, -ENOMEM. What the catalogue lacks is
 * looked for again when it is older than 10 s, what it has is believed for 10 minutes.
 */
int discovery_find(struct discovery *discovery, const char *name, struct resource *ret_resource);

/* The catalogue was fetched no longer than MAX_AGE ago: FOUND. AGAIN: it is being fetched, as above. */
int discovery_refresh(struct discovery *discovery, uint64_t max_age_ns);
/* What is known now, however old; nothing is fetched. FOUND, or as discovery_find. */
int discovery_known(const struct discovery *discovery, const char *name,
	struct resource *ret_resource);
/* Each resource in each version in which it can be listed and watched, a resource's preferred version
 * first; until FN returns something else than 0, which is the result. */
typedef int discovery_each_fn(void *arg, const struct resource *resource);
int discovery_each(const struct discovery *discovery, discovery_each_fn *fn, void *arg);

/* For how long it is believed that the server has no such resource, instead of 10 s. */
void discovery_set_recheck(struct discovery *discovery, uint64_t recheck_ns);

/* What was learnt is not to be trusted (a list answered 404): the next find fetches. */
void discovery_expire(struct discovery *discovery);

#endif
