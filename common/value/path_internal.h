/* SPDX-License-Identifier: Apache-2.0 */
/* The path group's inner header: path.c keeps and writes paths, path_parse.c parses them,
 * path_eval.c follows them, path_set.c follows several in one document. */
#ifndef COMMON_VALUE_PATH_INTERNAL_H
#define COMMON_VALUE_PATH_INTERNAL_H

#include "common/check.h"
#include "common/value/path.h"

#define PATH_MAGIC 0x70617468u
/* Evaluation goes one level deeper with each step; a document has at most as many. */
#define PATH_STEPS_MAX VALUE_DEPTH_MAX

enum path_step_type {
	STEP_KEY,
	STEP_INDEX,     /* the item number FROM; below 0: from the end */
	STEP_SLICE,     /* the items FROM to TO, in steps of BY from the first */
	STEP_ALL,       /* each item of an array or map */
	STEP_RECURSIVE, /* the value and each map, list and text in it */
	STEP_FILTER,    /* the matching items of an array */
	STEP_UNION,     /* the values of each of several paths */
};

enum path_operator {
	PATH_EXISTS,
	PATH_EQUAL,
	PATH_NOT_EQUAL,
	PATH_LESS,
	PATH_LESS_EQUAL,
	PATH_GREATER,
	PATH_GREATER_EQUAL,
	PATH_OPERATOR_MAX
};

/* One side of a comparison: a path in the item, or a constant. */
struct path_operand {
	struct path *path;   /* NULL: the constant */
	struct buf constant; /* one msgpack document */
};

struct path_filter {
	struct path_operand left, right;
	enum path_operator operator;
};

/* A member of a union. A quoted text without such a key in the map is a path, as in kubectl. */
struct path_member {
	struct path *path, *otherwise; /* otherwise: NULL if the text has no dots */
	char *text; /* as written: a backslash has another meaning to OTHERWISE */
};

struct path_union {
	struct path_member *members;
	size_t n, room;
};

struct path_step {
	enum path_step_type type;
	size_t key_at; /* in keys: begin and size */
	size_t key_size;
	int64_t from, to; /* to: INT64_MAX for the end */
	int64_t by;       /* above 0 */
	bool has_from;    /* the slice has a written beginning */
	union {
		struct path_filter *filter;
		struct path_union *union_;
	} more;
};

struct path {
	uint32_t magic;
	size_t count;
	size_t n_keys; /* leading plain keys */
	bool is_plural;
	bool arrays_only; /* [*] finds nothing in a map */
	struct buf keys;  /* all keys, one after the other */
	struct buf text;
	struct path_step steps[PATH_STEPS_MAX];
};

extern const char *const path_operators[PATH_OPERATOR_MAX];

/* Returns true if C needs no bracket and no backslash in a key. */
bool path_is_plain_char(char c);

/* Follows the path from step number STEP, from VALUE. path_eval.c. */
int path_eval_from(const struct path *path, size_t step, const struct value *value,
	path_found_fn *found_fn, void *arg);

/* A path_found_fn: keeps the first value in ARG, a struct value, and ends with END. */
int path_keep_first(void *arg, const struct value *value);

struct bytes path_step_key(const struct path *path, const struct path_step *step);

/* Appends the canonical text of all steps. IS_FIRST: at the beginning of the text. */
void path_put_steps(const struct path *path, struct buf *text, bool is_first);

#endif
