/* SPDX-License-Identifier: Apache-2.0 */
#include "processor/config_indexes.h"

#include <stdio.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"

const struct config_feed *config_indexes_entry(
	const struct config *config, const struct feed_definition *of)
{
	char name[512]; /* as long as the reflector's */

	if (!config)
		return NULL;
	/* A feed has its indexes before its first list, and so before it takes the name over. */
	(void)snprintf(name, sizeof(name), "%.*s", (int)feed_definition_name_size(of), of->name);
	return config_find_feed(config, name, of->group, of->version, of->resource);
}

int config_indexes_each(const struct config *config, const struct feed_definition *of,
	config_index_fn *fn, void *arg)
{
	CLEANUP(buf_release) struct buf paths = BUF_INIT;
	const struct config_feed *entry = config_indexes_entry(config, of);
	int r = fn(arg, of->id, INDEX_NAMESPACE, "");

	if (!r)
		r = fn(arg, of->id, INDEX_LABEL, "");
	for (size_t i = 0; !r && entry && i < entry->n_indexes; i++) {
		const struct config_index *index = &entry->indexes[i];
		buf_reset(&paths);
		for (size_t k = 0; k < index->n_paths; k++) {
			if (k)
				buf_byte(&paths, '\n');
			buf_str(&paths, index->paths[k]);
		}
		const char *text = buf_cstr(&paths);
		r = buf_error(&paths);
		if (!r)
			r = fn(arg, of->id, index->name, text);
	}
	return r;
}
