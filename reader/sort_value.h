/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of --sort-by, as kubectl's: objects without the field come first, then quantities
 * (plain numbers too: 9, 10, 100m, 1.5Gi, 1e3) by their value, then texts in natural order, where
 * runs of digits compare as numbers (pod-9 before pod-10). Unlike kubectl's it is a total order
 * also of mixed values: whether two come in this order never depends on the others.
 */
#ifndef READER_SORT_VALUE_H
#define READER_SORT_VALUE_H

#include "common/buf.h"
#include "common/value/quantity.h"

enum sort_kind { SORT_MISSING, SORT_NUMBER, SORT_TEXT, SORT_KIND_MAX };

struct sort_value {
	enum sort_kind kind;
	struct quantity number;
	struct bytes text; /* of SORT_TEXT; borrowed from its source */
};

/* "" is as good as missing: no index has a term for it either. */
void sort_value_read(struct bytes text, struct sort_value *ret_value);
/* <0, 0, >0. */
int sort_value_compare(const struct sort_value *a, const struct sort_value *b);

/* Appends VALUE to a continue token. */
void sort_value_put(struct buf *buf, const struct sort_value *value);
/* Cuts a value off the beginning of REST, and borrows from it. Returns whether there is one. */
bool sort_value_take(struct bytes *rest, struct sort_value *ret_value);

#endif
