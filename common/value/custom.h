/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Custom resources: which groups are not theirs, and what a CustomResourceDefinition says about
 * tables of its resource.
 */
#ifndef COMMON_VALUE_CUSTOM_H
#define COMMON_VALUE_CUSTOM_H

#include "common/bytes.h"

/* Returns whether the API server itself defines the kinds of GROUP ("" is the core group). */
bool custom_is_builtin_group(const char *group);

/* Finds additionalPrinterColumns of VERSION in the body of a CustomResourceDefinition: an array, a
 * document of its own that is borrowed from the body; empty if the version has none. Returns: FOUND;
 * NOT_FOUND: the body is no such definition; ERR_CORRUPT. */
int custom_columns(struct bytes definition, struct bytes version, struct bytes *ret_columns);

#endif
