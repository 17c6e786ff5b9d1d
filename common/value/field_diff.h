/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields that differ between two versions of an object.
 *
 * Each difference has a path in the grammar of path.h: status.phase,
 * metadata.labels['app.io/name'], spec.containers[name=web].image. Items of lists are paired by
 * `name`, else by `type`, if all have distinct ones, as the API server merges such lists; other
 * items are paired by index.
 */
#ifndef COMMON_VALUE_FIELD_DIFF_H
#define COMMON_VALUE_FIELD_DIFF_H

#include "common/value/value.h"

/* The result of a field_diff_fn that wants the difference again as those of its members or items,
 * removed ones and added ones. A scalar has none. */
#define FIELD_DIFF_INTO 100

/* BEFORE is NULL for an added field, AFTER for a removed one. PATH is "" if the whole value
 * differs, and is valid during the call. A result other than 0 and FIELD_DIFF_INTO ends the
 * comparison. */
typedef int field_diff_fn(
	void *arg, const char *path, const struct value *before, const struct value *after);

/* Calls FN for each difference: in each map or list first in the order of BEFORE, then for the
 * additions of AFTER. Returns: 0; the result of FN; ERR_CORRUPT; -ENOMEM. */
int field_diff_each(struct bytes before, struct bytes after, field_diff_fn *fn, void *arg);

#endif
