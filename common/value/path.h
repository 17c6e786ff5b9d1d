/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Field paths, one grammar for kinf.yaml, selectors, --sort-by, custom columns, -o jsonpath and
 * the columns of custom resources. It is kubectl's jsonpath without its braces and with a few
 * shorter
 * spellings:
 *
 *	path     = [ "$" | "@" ] [ "." ] step { step }         "." or nothing: the whole value
 *	step     = "." key                                      a member of a map
 *	         | ".*" | "[*]"                                 each item of a map or list
 *	         | ".." [ key | "*" ]                           value and all in it; as after "."
 *	         | "[" number "]"                               an item of a list; -1 is the last
 *	         | "[" [ number ] ":" [ number ] [ ":" number ] "]"   items from, to (exclusive), by
 *	         | "['" text "']" | "[" '"' text '"]'           a member with any name
 *	         | "[" member { "," member } "]"                a union: the values of each member
 *	         | "[?(" operand [ operator operand ] ")]"      the matching items of a list
 *	         | "[" key "=" value "]"                        short for [?(@.key=="value")]
 *	key      = letters, digits and _ - / : $ @, any other character after a backslash
 *	operand  = path | number | true | false | '"' text '"' | "'" text "'"
 *	operator = "==" | "!=" | "<" | "<=" | ">" | ">="
 *
 * The first "." is optional, and so are kubectl's braces around the whole path. Blanks may stand
 * around the steps of a path in braces, and within brackets. In a union a quoted text without such
 * a key in the map is a path: ['metadata.name','status.phase']. Two operands of different types are
 * only unequal.
 *
 * A path may have three steps "..", those in filters and unions counted, and its unions 256
 * combinations of their members.
 *
 * It is no error to find nothing; kubectl refuses an item beyond the end.
 */
#ifndef COMMON_VALUE_PATH_H
#define COMMON_VALUE_PATH_H

#include "common/value/value.h"

struct path;

/* Parses TEXT. Returns: 0, or ERR_SYNTAX with the number of the character. Free with
 * path_free(). */
int path_parse(const char *text, struct path **ret_path);
void path_free(struct path **path);

/* Makes [*] find nothing in a map, as in the columns of custom resources. */
void path_use_arrays_only(struct path *path);

/* Returns the canonical text of the path (`a.b['c.d'][*].e`), borrowed from PATH. */
const char *path_text(const struct path *path);

/* Returns true if the path may find more than one value. */
bool path_is_plural(const struct path *path);

/* Returns true if the path has only keys, item numbers and filters by one value, such as
 * [type=Ready]: it names one place in a document, or few items. */
bool path_is_narrow(const struct path *path);

/* Returns true if the path has a union: its order depends on all earlier values. */
bool path_has_union(const struct path *path);

/* Returns true if the path is one or more keys: a subtree that a JSON reader can leave out. */
bool path_is_plain(const struct path *path);

/* Returns the number of leading keys, and in RET_KEY key number I. */
size_t path_keys(const struct path *path, size_t i, struct bytes *ret_key);

/* Returns true if the path may find something in an object kept without the subtrees DROPPED, the
 * canonical texts of plain paths, a line each, or with only apiVersion, kind and metadata. */
bool path_is_kept(const struct path *path, bool metadata_only, const char *dropped);

typedef int path_found_fn(void *arg, const struct value *value);

/* Calls FOUND_FN for each value until it returns other than 0. Returns: that result, 0, ERR_CORRUPT
 * if the document is damaged, -ENOMEM. */
int path_eval(const struct path *path, struct bytes document, path_found_fn *found_fn, void *arg);

/* Returns the first value in RET_VALUE: FOUND, NOT_FOUND or an error. */
int path_first(const struct path *path, struct bytes document, struct value *ret_value);

/* Appends the text between quotes at *P to OUT and moves *P after the second one. \n, \t, \x41,
 * \u0041 and the like stand for characters, as in Go. Returns false if the quote is malformed or
 * does not end before END; *P is then at the wrong character. */
bool path_unquote(const char **p, const char *end, struct buf *out);

#endif
