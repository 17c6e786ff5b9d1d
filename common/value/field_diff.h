/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The differences between two versions of an object.
 *
 * Each difference has a path in the grammar of path.h: status.phase,
 * metadata.labels['app.io/name'], spec.containers[name=web].image. Items of a list that all have a
 * `name`, or all a `type`, which differ from each other, are compared with the item of the same
 * one, as the API server merges such lists; other items with the one at the same place.
 */
#ifndef COMMON_VALUE_FIELD_DIFF_H
#define COMMON_VALUE_FIELD_DIFF_H

#include "common/value/value.h"

/* BEFORE is NULL for a field that was added, AFTER for one that was removed. PATH is "" if the
 * whole value differs, and is valid during the call. A result other than 0 ends the comparison. */
typedef int field_diff_fn(
	void *arg, const char *path, const struct value *before, const struct value *after);

/* Calls FN for each difference: in each map or list first for what BEFORE has, in its order, then
 * for what only AFTER has. Returns: 0; the result of FN; ERR_CORRUPT; -ENOMEM. */
int field_diff_each(struct bytes before, struct bytes after, field_diff_fn *fn, void *arg);

#endif
