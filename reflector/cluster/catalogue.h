/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resources of one API server, filled from discovery documents (msgpack, as common/value/json.h makes
 * them), and the rules by which a name finds one of them. No I/O.
 *
 * The order is the server's: the core group first, then groups as it lists them, in each the
 * preferred version first; a version that the server calls stale comes last in its group. The first
 * match in this order wins, as in kubectl. Document in the wrong shape: what can be read is taken.
 */
#ifndef REFLECTOR_CLUSTER_CATALOGUE_H
#define REFLECTOR_CLUSTER_CATALOGUE_H

#include "common/bytes.h"
#include "reflector/cluster/discovery.h"

struct catalogue_entry {
	struct resource resource;
	char singular[64];
	char short_names[128]; /* each with a blank behind it */
	uint64_t rank;
	bool usable; /* can be listed and watched */
};

/* A group and version whose resources could not be read. */
struct catalogue_broken {
	char group[254];
	char version[64];
};

struct catalogue {
	struct catalogue_entry *at;
	size_t count, capacity;
	struct catalogue_broken *broken;
	size_t n_broken;
};

void catalogue_release(struct catalogue *catalogue);

/* An APIGroupDiscoveryList. GROUPS_BEFORE: number of groups that come before its first. 0, -ENOMEM,
 * ERR_CORRUPT. */
int catalogue_add_aggregated(struct catalogue *catalogue, struct bytes document,
	uint64_t groups_before);

/* An APIResourceList of one group and version, whose place among the groups and versions is given. */
struct catalogue_place {
	const char *group, *version;
	uint64_t group_at, version_at;
};
int catalogue_add_resources(struct catalogue *catalogue, struct bytes document,
	const struct catalogue_place *place);

int catalogue_add_broken(struct catalogue *catalogue, const char *group, const char *version);

/* What an APIVersions or an APIGroupList names, preferred version first; stops at the first result
 * that is not 0 and returns it. */
typedef int catalogue_place_fn(void *arg, const struct catalogue_place *place);
int catalogue_each_place(struct bytes document, uint64_t groups_before, catalogue_place_fn *fn,
	void *arg);

/* After the last addition. */
void catalogue_sort(struct catalogue *catalogue);

/*
 * FOUND; ERR_CONFIG for a name that can't be one; ERR_NO_RESOURCE with near names in the sentence;
 * ERR_HTTP when it is not there but may be in a group that could not be read.
 */
int catalogue_find(const struct catalogue *catalogue, const char *name,
	struct resource *ret_resource);

#endif
