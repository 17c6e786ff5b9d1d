/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a YAML (or JSON) file with libyaml into a tree of nodes with line numbers, and writes
 * stored bodies as `kubectl get -o yaml` does.
 *
 * Aliases and merge keys (<<) are copied, the tree up to 64 MiB. Duplicate keys are refused, and a
 * second document except by yaml_load_first(). Nodes live as long as the tree.
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
	size_t count, room;
	struct yaml_node *items; /* list: items; map: values */
	char **keys;             /* map */
	size_t *key_lines;
};

struct yaml;

/* Parses TEXT. An empty document has the root NULL. Returns: 0, ERR_SYNTAX "NAME:LINE: cause",
 * -ENOMEM. */
int yaml_parse(const char *text, size_t size, const char *name, struct yaml **ret_yaml);
/* Reads and parses a file of at most 16 MiB. Returns: 0, -errno, ERR_SYNTAX, ERR_TOO_LARGE. */
int yaml_load(const char *file, struct yaml **ret_yaml);
/* Does the same, but ignores documents after the first, as kubectl does in kubeconfigs. */
int yaml_load_first(const char *file, struct yaml **ret_yaml);
/* Reads an open file; FILE is its name in errors. */
int yaml_load_fd(int fd, const char *file, struct yaml **ret_yaml);
void yaml_free(struct yaml **yaml);
/* Returns the root; NULL: there is none. A caller that replaces a text has it on the heap. */
struct yaml_node *yaml_root(struct yaml *yaml);

/* Returns a member of a map; NULL if it is absent or null, or if MAP is NULL or no map. */
const struct yaml_node *yaml_get(const struct yaml_node *map, const char *key);
/* Returns the text of a scalar member; NULL if it is absent or no scalar. */
const char *yaml_text(const struct yaml_node *map, const char *key);
/* Returns true if the node is a plain null, ~ or empty scalar. */
bool yaml_is_null(const struct yaml_node *node);

/* Appends DOCUMENT, one msgpack document (common/value/value.h), to OUT as kubectl writes YAML:
 * numbers as their text, ambiguous strings quoted, long lines folded at blanks, strings of several
 * lines as blocks if possible. Keys keep their order (common/value/sort.h). IS_ITEM: as an item,
 * after "- ", of a list without indentation. Returns: 0, ERR_CORRUPT, or the error of OUT. After an
 * error OUT is as long as before. */
int yaml_write(struct bytes document, bool is_item, struct buf *out);

#endif
