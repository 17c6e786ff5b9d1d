/* SPDX-License-Identifier: Apache-2.0 */
/* Finds names that a person may have meant by a wrong one. */
#ifndef COMMON_TEXT_SIMILAR_H
#define COMMON_TEXT_SIMILAR_H

#include <stdbool.h>

/* Returns true if OTHER is NAME with up to two letters wrong, missing, extra or exchanged with
 * their neighbour (one in names of up to five letters); ignores case. */
bool similar(const char *name, const char *other);

#endif
