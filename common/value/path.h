/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Field paths, as in kinf.yaml: `spec.nodeName`, `metadata.labels['app.kubernetes.io/name']`,
 * `spec.containers[*].image`, `status.conditions[0].type`. A leading dot and an enclosing `{...}`, as
 * in kubectl's jsonpath, are accepted. `[*]` stands for each item of an array or map. A path that
 * leads nowhere finds nothing, which is no error.
 */
#ifndef COMMON_VALUE_PATH_H
#define COMMON_VALUE_PATH_H

#include "common/value/value.h"

struct path;

/* Parses TEXT. Returns: 0, or ERR_SYNTAX with the number of the character. Free with path_free(). */
int path_parse(const char *text, struct path **ret_path);
void path_free(struct path **path);

/* Returns the canonical text of the path (`a.b['c.d'][*].e`), borrowed from PATH. */
const char *path_text(const struct path *path);

/* Returns whether the path has a [*], so that it may find more than one value. */
bool path_is_plural(const struct path *path);

/* Returns whether the path has only keys: it names one subtree, which a JSON reader can leave out. */
bool path_is_plain(const struct path *path);

/* Returns the number of leading keys, and in RET_KEY key number I. */
size_t path_keys(const struct path *path, size_t i, struct bytes *ret_key);

typedef int path_found_fn(void *arg, const struct value *value);

/* Calls FOUND_FN for each value found, until it returns other than 0.
 * Returns: that result, 0, or ERR_CORRUPT if the document is damaged. */
int path_eval(const struct path *path, struct bytes document, path_found_fn *found_fn, void *arg);

/* Returns the first value in RET_VALUE: FOUND, NOT_FOUND or an error. */
int path_first(const struct path *path, struct bytes document, struct value *ret_value);

#endif
