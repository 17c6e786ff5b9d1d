/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resources of one API server: catalogue.c fills it from discovery documents (msgpack, made by
 * common/value/json.h), catalogue_find.c finds a resource by name. No I/O.
 *
 * The order is the server's: the core group, then the other groups as the server lists them; in
 * each group the preferred version first, stale versions last. As in kubectl the first match wins.
 * Parts of an unexpected shape are skipped.
 */
#ifndef REFLECTOR_CLUSTER_CATALOGUE_H
#define REFLECTOR_CLUSTER_CATALOGUE_H

#include <stdbool.h>

#include "common/bytes.h"

/* A resource in one version. Lengths are the API server's limits for DNS names and labels. */
struct resource {
	char group[254]; /* "" for the core group */
	char version[64];
	char plural[64];
	char kind[64];
	char list_kind[72];   /* kind + "List", every server's default */
	char aliases[194];    /* singular and short names, each with a blank after it */
	char categories[128]; /* likewise */
	bool namespaced;
};

struct catalogue_entry {
	struct resource resource;
	char singular[64];
	char short_names[128]; /* each with a blank after it */
	uint64_t rank;         /* position in the order */
	bool usable;           /* can be listed and watched */
};

/* A group and version with unreadable resources. */
struct catalogue_broken {
	char group[254];
	char version[64];
};

struct catalogue {
	struct catalogue_entry *at;
	size_t count, room;
	struct catalogue_broken *broken;
	size_t n_broken, broken_room;
};

void catalogue_release(struct catalogue *catalogue);

/* Adds an APIGroupDiscoveryList. GROUPS_BEFORE groups come before its first one. Returns: 0,
 * ERR_TOO_LARGE, ERR_CORRUPT, -ENOMEM; so do the other additions. */
int catalogue_add_aggregated(
	struct catalogue *catalogue, struct bytes document, uint64_t groups_before);

/* A group and version, and their positions in the order. */
struct catalogue_place {
	const char *group, *version;
	uint64_t group_at, version_at;
};
/* Adds an APIResourceList, the resources of one group and version. */
int catalogue_add_resources(
	struct catalogue *catalogue, struct bytes document, const struct catalogue_place *place);

/* Adds an unreadable group and version. */
int catalogue_add_broken(struct catalogue *catalogue, const char *group, const char *version);

/* Calls FN for each group and version of an APIVersions or an APIGroupList. Stops at a result other
 * than 0 and returns it. */
typedef int catalogue_place_fn(void *arg, const struct catalogue_place *place);
int catalogue_each_place(
	struct bytes document, uint64_t groups_before, catalogue_place_fn *fn, void *arg);

/* Puts the resources in order, after the last addition. */
void catalogue_sort(struct catalogue *catalogue);

/* Finds a resource with list and watch. Returns: FOUND; ERR_CONFIG if NAME is no resource's
 * name; ERR_NO_RESOURCE with similar names in the sentence; ERR_HTTP if it may be in an
 * unreadable group. */
int catalogue_find(
	const struct catalogue *catalogue, const char *name, struct resource *ret_resource);

/* Copies TEXT if it consists of letters, digits, dots and dashes, and fits: names become parts of
 * paths. Returns: whether it did. */
bool catalogue_copy_name(struct bytes text, char *ret_text, size_t size);

struct value;
/* Returns the text KEY of MAP, borrowed; "" if there is none. */
struct bytes catalogue_text(const struct value *map, const char *key);
/* Writes such names of MAP's list KEY, each with a blank after it, as far as they fit in ROOM.
 * Leaves ROOM as it is without a list. */
void catalogue_read_words(const struct value *map, const char *key, char *room, size_t size);

#endif
