/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/definition.h"

#include <errno.h>
#include <stdlib.h>

#include "common/err.h"

static const bool in_identity[FEED_TEXTS] = {
#define TEXT(member, key, identity) identity,
#include "store/journal/feed_definition.def"
#undef TEXT
};

int definition_copy(const struct feed_definition *from, struct feed_definition *ret_to)
{
	struct feed_definition to = *from;

	for (size_t i = 0; i < FEED_TEXTS; i++) {
		const char **text = feed_definition_text(&to, i);
		char *copy = strdup(*text ? *text : "");

		if (!copy) {
			for (; i < FEED_TEXTS; i++)
				*feed_definition_text(&to, i) = NULL;
			definition_release(&to);
			return err_set(-ENOMEM, "a feed");
		}
		*text = copy;
	}
	*ret_to = to;
	return 0;
}

void definition_release(struct feed_definition *definition)
{
	for (size_t i = 0; i < FEED_TEXTS; i++)
		free((void *)*feed_definition_text(definition, i));
	*definition = (struct feed_definition){0};
}

bool definition_same(const struct feed_definition *a, const struct feed_definition *b)
{
	struct feed_definition x = *a, y = *b;

	for (size_t i = 0; i < FEED_TEXTS; i++)
		if (in_identity[i] &&
			strcmp(*feed_definition_text(&x, i), *feed_definition_text(&y, i)) != 0)
			return false;
	return a->namespaced == b->namespaced && a->metadata_only == b->metadata_only;
}
