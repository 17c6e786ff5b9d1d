/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API server's compiled-in facts: the field labels of each kind (docs/protocol.md 10.3), and
 * its words about deprecated versions. All other kinds are custom resources: items of their lists
 * keep kind and apiVersion.
 */
#ifndef SERVE_API_API_KINDS_H
#define SERVE_API_API_KINDS_H

#include "common/value/selector.h"
#include "serve/api/api_status.h"

struct api_kind_name {
	const char *group, *kind;
	bool namespaced;
};

/* Checks the field labels of FIELDS (NULL: none). SELECTABLE: a custom resource's, each between
 * blanks. Returns: 0; 400. */
int api_kind_check_fields(const struct api_kind_name *name, const char *selectable,
	const struct selector *fields, struct api_status *status);

/* Appends the warning about VERSION from the body of its CustomResourceDefinition; nothing if it is
 * not deprecated. Returns: 0; ERR_CORRUPT; the error of OUT. */
int api_kind_deprecation(struct bytes definition, const char *version, struct buf *out);

#endif
