/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A YAML (or JSON) file as a tree of nodes with line numbers, read by libyaml. Anchors and aliases
 * are refused (no billion laughs), duplicate keys too, documents beyond the first too. Nodes live
 * as long as the tree.
 *
 * And stored bodies as YAML text, as `kubectl get -o yaml` shows objects.
 */
#ifndef COMMON_VALUE_YAML_H
#define COMMON_VALUE_YAML_H

#include "common/buf.h"

enum yaml_type { YAML_SCALAR, YAML_LIST, YAML_MAP };

struct yaml_node {
	enum yaml_type type;
	size_t line; /* from 1 */
	char *text;  /* scalar */
	bool quoted; /* scalar in quotes: never null, number or boolean */
	size_t count;
	struct yaml_node *items; /* list: items; map: values */
	char **keys;             /* map */
	size_t *key_lines;
};

struct yaml;

/* ERR_SYNTAX with "NAME:LINE: what". An empty document gives a root of NULL. */
int yaml_parse(const char *text, size_t size, const char *name, struct yaml **ret_yaml);
/* Reads a file of at most 16 MiB. -errno, ERR_SYNTAX, ERR_TOO_LARGE. */
int yaml_load(const char *file, struct yaml **ret_yaml);
void yaml_free(struct yaml **yaml);
const struct yaml_node *yaml_root(const struct yaml *yaml);

/* Member of a map, NULL when absent, null, or MAP is no map (NULL is fine). */
const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key);
/* Text of a scalar member, NULL when absent or no scalar. */
const char *yaml_text(const struct yaml_node *map, const char *key);
/* A plain null, ~ or empty scalar. */
bool yaml_is_null(const struct yaml_node *node);

/* Appends DOCUMENT, one msgpack document (common/value/value.h), to OUT as block-style YAML: keys in their
 * order, numbers as their text, strings quoted where a reader would take them for something else,
 * those of several lines as blocks where that keeps them. 0, ERR_CORRUPT, or the error of OUT; after
 * an error OUT is as long as before. */
int yaml_write(struct bytes document, struct buf *out);

#endif
