/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of feed definitions (store/journal/journal.h) with their texts, and their comparison:
 * equal definitions are the same feed. */
#ifndef REFLECTOR_FEED_DEFINITION_H
#define REFLECTOR_FEED_DEFINITION_H

#include "store/journal/journal.h"

/* Copies the texts too. */
int definition_copy(const struct feed_definition *from, struct feed_definition *ret_to);
void definition_release(struct feed_definition *definition);

/* Tells whether two are the same feed: equal but for id, name, aliases and resync. */
bool definition_same(const struct feed_definition *a, const struct feed_definition *b);

#endif
