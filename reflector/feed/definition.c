/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/definition.h"

#include <errno.h>
#include <stdlib.h>

#include "common/err.h"

enum {
#define TEXT(member, key, identity) TEXT_##member,
#include "store/journal/feed_definition.def"
#undef TEXT
	N_TEXTS
};

static const bool in_identity[N_TEXTS] = {
#define TEXT(member, key, identity) identity,
#include "store/journal/feed_definition.def"
#undef TEXT
};

static void definition_list_texts(const struct feed_definition *d, const char *const **ret)
{
	const char *const *const texts[N_TEXTS] = {
#define TEXT(member, key, identity) &d->member,
#include "store/journal/feed_definition.def"
#undef TEXT
	};

	memcpy(ret, texts, sizeof(texts));
}

int definition_copy(const struct feed_definition *from, struct feed_definition *ret_to)
{
	const char *const *texts[N_TEXTS];
	struct feed_definition to = *from;

	definition_list_texts(&to, texts);
	for (size_t i = 0; i < N_TEXTS; i++) {
		char *copy = strdup(*texts[i] ? *texts[i] : "");

		if (!copy) {
			for (size_t j = i; j < N_TEXTS; j++)
				*(const char **)texts[j] = NULL;
			definition_release(&to);
			return err_set(-ENOMEM, "a feed");
		}
		*(const char **)texts[i] = copy;
	}
	*ret_to = to;
	return 0;
}

void definition_release(struct feed_definition *definition)
{
	const char *const *texts[N_TEXTS];

	definition_list_texts(definition, texts);
	for (size_t i = 0; i < N_TEXTS; i++)
		free((void *)*texts[i]);
	*definition = (struct feed_definition){0};
}

bool definition_same(const struct feed_definition *a, const struct feed_definition *b)
{
	const char *const *x[N_TEXTS], *const *y[N_TEXTS];

	definition_list_texts(a, x);
	definition_list_texts(b, y);
	for (size_t i = 0; i < N_TEXTS; i++)
		if (in_identity[i] && strcmp(*x[i], *y[i]) != 0)
			return false;
	return a->namespaced == b->namespaced && a->metadata_only == b->metadata_only;
}
