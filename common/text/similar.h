/* SPDX-License-Identifier: Apache-2.0 */
/* Finds names similar to an unknown one. */
#ifndef COMMON_TEXT_SIMILAR_H
#define COMMON_TEXT_SIMILAR_H

#include <stdbool.h>

/* Returns true if OTHER is NAME but for one or two letters wrong, missing, too many or exchanged
 * with their neighbour, in any case: one letter in names of up to five. */
bool similar(const char *name, const char *other);

#endif
