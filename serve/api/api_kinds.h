/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts about kinds that the API server has compiled in: the groups that are its own, and the
 * field labels of each kind (docs/protocol.md 10.3). All other kinds are custom resources; their
 * answers have another form: items of lists keep kind and apiVersion, and keys are sorted.
 */
#ifndef SERVE_API_API_KINDS_H
#define SERVE_API_API_KINDS_H

#include "common/value/selector.h"
#include "serve/api/api_status.h"

struct api_kind_name {
	const char *group, *version, *kind;
	bool namespaced;
};

/* Checks that the kind has the field labels that FIELDS (NULL: none) asks for. SELECTABLE are
 * those of a custom resource, each between blanks. Returns: 0; 400. */
int api_kind_check_fields(const struct api_kind_name *name, const char *selectable,
	const struct selector *fields, struct api_status *status);

/* The API server's order of groups, which decides what a short name means: its own first, then the
 * others by name. */
unsigned api_kind_group_rank(const char *group);
/* Compares versions of a group in the API server's order: v2, v1, v2beta1, v1beta2, v1alpha1,
 * others. */
int api_kind_compare_versions(const char *a, const char *b);

#endif
