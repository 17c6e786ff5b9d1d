/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One feed as the configuration asks for it: a resource as it is written there, one namespace or
 * all, selectors and dropped fields. Discovery makes a definition of it. Without discovery (a
 * restart while the API server is away) an entry can still be matched with the stored definitions.
 */
#ifndef REFLECTOR_FEED_FEEDS_ENTRY_H
#define REFLECTOR_FEED_FEEDS_ENTRY_H

#include "common/config/config.h"
#include "reflector/cluster/discovery.h"
#include "store/journal/journal.h"

struct entry {
	char *name;
	char *resource;   /* as written */
	char *name_space; /* "": all */
	char *label_selector, *field_selector;
	char *drop; /* sorted, joined by line feeds */
	bool metadata_only;
	uint32_t page_size;
	bool drop_gone;
	uint64_t resync_ns;
};

/* Makes the entry of CONFIG in its N-th namespace (0 if it names none). Release it also after
 * errors. */
int entry_init(const struct config_feed *config, size_t n, struct entry *ret_entry);
/* Makes the entry of one resource of a wildcard. */
struct entry_resource {
	const char *group, *version, *plural;
};
int entry_init_of(const struct config_feed *wildcard, size_t n,
	const struct entry_resource *resource, struct entry *ret_entry);
/* Tells whether ENTRY was made for this resource in this version. */
bool entry_is_of(const struct entry *entry, const struct entry_resource *resource);
void entry_release(struct entry *entry);

bool entry_same(const struct entry *a, const struct entry *b);

/* Returns true if ENTRY may mean DEFINITION, judged without discovery. */
bool entry_means(const struct entry *entry, const struct feed_definition *definition);

/* Makes the definition of ENTRY for RESOURCE; its texts are borrowed from both. Returns: 0;
 * ERR_CONFIG if the entry names a namespace and the resource has none. */
int entry_define(const struct entry *entry, const struct resource *resource,
	struct feed_definition *ret_definition);

/* Tells whether STORED is NAME, or NAME and FEED_NEXT. */
bool entry_is_named(const char *stored, const char *name);

#endif
