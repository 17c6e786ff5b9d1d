/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Custom resources: the groups of built-in kinds, the order of versions, and a
 * CustomResourceDefinition's table columns.
 */
#ifndef COMMON_VALUE_CUSTOM_H
#define COMMON_VALUE_CUSTOM_H

#include "common/buf.h"

/* Returns true if the API server defines the kinds of GROUP ("": the core group). */
bool custom_is_builtin_group(const char *group);
/* Returns the API server's rank of the group, for short names: its own groups first, all others
 * last. */
unsigned custom_group_rank(const char *group);

/* Compares versions of a group in the API server's order: v2, v1, v2beta1, v1beta2, v1alpha1,
 * others. */
int custom_compare_versions(const char *a, const char *b);

/* Finds additionalPrinterColumns of VERSION in the body of a CustomResourceDefinition: an array, a
 * document borrowed from the body; empty if the version has none. Returns: FOUND; NOT_FOUND: the
 * body is no such definition; ERR_CORRUPT. */
int custom_columns(struct bytes definition, struct bytes version, struct bytes *ret_columns);

/* Appends the columns of VERSION as feeds store them, a line each (store/FORMAT.md). Returns as
 * custom_columns(); the error of OUT. */
int custom_write_columns(struct bytes definition, const char *version, struct buf *out);

/* Appends the field labels of selectableFields of VERSION, " spec.color spec.size ", blanks
 * included. Returns as custom_columns(). */
int custom_selectable(struct bytes definition, struct bytes version, struct buf *out);

#endif
