/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether a feed can answer a request: it must provably hold all of it. The feed's
 * namespace and each requirement of its selectors have to occur in the request. A feed without some
 * fields serves only metadata: a client writing the object back would delete them.
 * metadata.managedFields may be missing.
 */
#ifndef SERVE_CATALOG_COVERAGE_H
#define SERVE_CATALOG_COVERAGE_H

#include "common/value/selector.h"
#include "store/journal/journal.h"

/* The deciding part of a feed's definition. */
struct coverage {
	const struct feed_definition *definition; /* borrowed */
	struct selector *labels, *fields;         /* NULL: none */
	bool lacks_content;                       /* fields outside metadata */
	bool lacks_metadata;                      /* fields of metadata other than managedFields */
};

struct coverage_request {
	const char *group, *version, *resource;
	const char *namespace_;                 /* "": all, or cluster-scoped */
	const char *name;                       /* "": any; else the one object is asked for */
	const struct selector *labels, *fields; /* NULL: none */
	bool metadata_only;                     /* its answer shows nothing but metadata */
};

enum coverage_answer {
	COVERAGE_NONE,
	COVERAGE_FOUND, /* one object by name: only if it is there, because the feed holds a part */
	COVERAGE_WHOLE
};

/* Borrows DEFINITION. Returns: 0; ERR_SYNTAX: its selectors can't be read. */
int coverage_init(struct coverage *coverage, const struct feed_definition *definition);
void coverage_release(struct coverage *coverage);

bool coverage_is_resource(const struct coverage *coverage, const char *group, const char *version,
	const char *resource);
enum coverage_answer coverage_check(
	const struct coverage *coverage, const struct coverage_request *request);

#endif
