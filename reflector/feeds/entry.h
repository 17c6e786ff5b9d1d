/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the configuration wants of one feed: a resource as somebody wrote it, in one namespace or
 * all, with what shapes the objects. Discovery makes a definition of it; without discovery (a restart
 * while the API server is away) it can still be told which stored definition is meant.
 */
#ifndef REFLECTOR_FEEDS_ENTRY_H
#define REFLECTOR_FEEDS_ENTRY_H

#include "common/config/config.h"
#include "reflector/cluster/discovery.h"
#include "store/journal/journal.h"

/* A feed whose name still belongs to the one it will replace has this behind its own. */
#define ENTRY_NEXT "~next"

struct entry {
	char *name;
	char *resource; /* as written */
	char *name_space; /* "": all */
	char *label_selector, *field_selector;
	char *drop; /* sorted, joined by line feeds */
	bool metadata_only;
	uint32_t page_size;
	bool drop_gone;
	uint64_t resync_ns;
};

/* The I-th feed of CONFIG in its N-th namespace (0 where it names none). Release also after errors. */
int entry_init(const struct config_feed *config, size_t n, struct entry *ret_entry);
/* The same for one of the resources that a wildcard stands for. */
struct entry_resource {
	const char *group, *version, *plural;
};
int entry_init_of(const struct config_feed *wildcard, size_t n, const struct entry_resource *resource,
	struct entry *ret_entry);
/* ENTRY was made for this one, in this version. */
bool entry_is_of(const struct entry *entry, const struct entry_resource *resource);
void entry_release(struct entry *entry);

bool entry_same(const struct entry *a, const struct entry *b);

/* DEFINITION may be what ENTRY means, as far as that can be told without discovery. */
bool entry_means(const struct entry *entry, const struct feed_definition *definition);

/* What ENTRY means now that RESOURCE is known: texts borrowed from both. ERR_CONFIG when the
 * resource has no namespaces and the entry names one. */
int entry_define(const struct entry *entry, const struct resource *resource,
	struct feed_definition *ret_definition);

/* NAME, or NAME with ENTRY_NEXT behind it. */
bool entry_is_named(const char *stored, const char *name);

#endif
