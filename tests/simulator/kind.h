/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A resource: its names, scope, verbs, and the form of its objects. Lists show objects of built-in
 * kinds without kind and apiVersion, objects of custom kinds with both and with sorted keys
 * (docs/protocol.md 5).
 */
#ifndef SIMULATOR_KIND_H
#define SIMULATOR_KIND_H

#include "common/buf.h"

struct kind {
	const char *group; /* "" for the core group */
	const char *version;
	const char *resource; /* plural */
	const char *singular;
	const char *name; /* Pod */
	const char *short_name;
	const char *category; /* or NULL */
	const char *fields;   /* field labels besides metadata.name and .namespace, space separated;
				 NULL: a kind without a table of its own, which words its refusal
				 differently */
	bool namespaced;
	bool custom;
	bool no_status; /* has no status subresource */
	bool described; /* made by kind_describe */
};

/* Returns the I-th built-in kind; NULL after the last. */
const struct kind *kind_built_in(size_t i);

/* A custom kind from a JSON description: group, version, resource, kind; optional singular,
 * namespaced (default true), shortName, category. NULL when one of the first four is missing. Free
 * with kind_free. */
const struct kind *kind_describe(struct bytes description);

/* Frees a described kind; does nothing for a built-in kind. */
void kind_free(const struct kind **kind);

/* "v1", "apps/v1" */
void kind_put_group_version(const struct kind *kind, struct buf *out);

/* Appends "pods" or "deployments.apps", as error messages name it. */
void kind_put_qualified(const struct kind *kind, struct buf *out);

/* Returns the verbs in the order of discovery, NULL at the end. */
const char *const *kind_verbs(const struct kind *kind);

/* Returns true if field selectors of this kind may use LABEL (metadata.name, spec.nodeName). */
bool kind_has_field(const struct kind *kind, struct bytes label);

#endif
