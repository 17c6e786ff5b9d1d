/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields of a change, for kinf history, kinf log and kinf diff --from: one a line for people,
 * or members of a JSON list. metadata.resourceVersion and metadata.managedFields differ in each
 * version and are left out. The values of Secrets are shown as their sizes.
 */
#ifndef PRINT_FIELDS_H
#define PRINT_FIELDS_H

#include "common/buf.h"
#include "common/value/path.h"
#include "reader/kinf.h"

enum fields_form {
	FIELDS_LINES, /* "    status.phase: Pending -> Running\n" */
	FIELDS_JSON,  /* [{"path":"status.phase","old":"Pending","new":"Running"}] */
	FIELDS_NAMES, /* "status.phase, status.podIP" */
	FIELDS_FORM_MAX
};

/* Appends the different fields of BEFORE and AFTER, versions of an object of RESOURCE: those that
 * the path UNDER finds in a version, and those below them; NULL: all. A map or list that appears or
 * goes with such a field is taken apart. *RET_N is their number. Returns 0 or an error. */
int fields_put(enum fields_form form, const char *resource, const struct path *under,
	const struct kinf_object *before, const struct kinf_object *after, struct buf *out,
	size_t *ret_n);

/* Appends the authors of the newest change, by metadata.managedFields, with commas between them.
 * Appends nothing if the object has no such field; the default of `drop` takes it away. */
int fields_put_managers(const struct kinf_object *object, struct buf *out);

#endif
