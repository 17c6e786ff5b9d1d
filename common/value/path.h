/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Field paths, as in kinf.yaml: `spec.nodeName`, `metadata.labels['app.kubernetes.io/name']`,
 * `spec.containers[*].image`, `status.conditions[0].type`. A leading dot and an enclosing `{...}` as
 * in kubectl's jsonpath are accepted. Evaluation calls back once per value found; `[*]` fans out
 * over arrays and maps. A path that leads nowhere finds nothing; it is not an error.
 */
#ifndef COMMON_VALUE_PATH_H
#define COMMON_VALUE_PATH_H

#include "common/value/value.h"

struct path;

/* ERR_SYNTAX with a sentence that points at the place. Free with path_free. */
int path_parse(const char *text, struct path **ret_path);
void path_free(struct path **path);

/* The text it was parsed from, in canonical form (`a.b['c.d'][*].e`). Borrowed from PATH. */
const char *path_text(const struct path *path);

/* Any [*] in it, i.e. may find more than one value. */
bool path_is_plural(const struct path *path);

/* Keys all the way: names at most one value, and a subtree that can be left out while reading. */
bool path_is_plain(const struct path *path);

/* Number of leading plain keys, and the I-th: lets a JSON reader drop a subtree while it reads. */
size_t path_keys(const struct path *path, size_t i, struct bytes *ret_key);

typedef int path_found_fn(void *arg, const struct value *value);

/* Calls FOUND_FN for each value; stops at its first non-zero result and returns that.
 * ERR_CORRUPT when the document is damaged. */
int path_eval(const struct path *path, struct bytes document, path_found_fn *found_fn, void *arg);

/* First value found: FOUND, NOT_FOUND or an error. */
int path_first(const struct path *path, struct bytes document, struct value *ret_value);

#endif
