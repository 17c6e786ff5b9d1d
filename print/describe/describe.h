/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes an object as `kubectl describe` does: the layout of a kind is a table of lines
 * (kinds_*.c), each a template with the paths of fields in it. Kinds without a table are
 * described field by field.
 *
 *	struct describe_object object = {.resource = "pods", .body = body, .snapshot = snapshot};
 *	describe_put(&object, &out);
 *
 * Parts that kubectl asks the API server for (events, pods of a controller, endpoints) come from
 * the same snapshot, and are left out if their kind is not fed. Values of Secrets are never
 * shown, and controls are made visible.
 */
#ifndef PRINT_DESCRIBE_DESCRIBE_H
#define PRINT_DESCRIBE_DESCRIBE_H

#include "common/buf.h"
#include "reader/kinf.h"

struct describe_object {
	const char *resource; /* "deployments.apps" */
	struct bytes body;
	struct kinf_snapshot *snapshot; /* NULL: nothing else is known */
	uint64_t now_ns;                /* CLOCK_REALTIME */
};

/* Appends the description to OUT. Returns: 0, ERR_CORRUPT, -ENOMEM, errors of kinf_list(). */
int describe_put(const struct describe_object *object, struct buf *out);

#endif
