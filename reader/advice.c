/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <string.h>

#include "common/err.h"
#include "reader/plan.h"

#define SPARED_MIN 100 /* objects; fewer reads cost nothing noticeable */
#define TIMES_MIN  10  /* as many were read as were given */
#define PATH_SHOWN 200 /* bytes */

/* Writes the sentence unless FEED has an index of PATH, spelled by the query as SHOWN. Returns:
 * FOUND: it is written; NOT_FOUND; errors. */
static int advice_put(struct snapshot *snapshot, const struct snapshot_feed *feed,
	const struct path *path, struct bytes shown, char text[ADVICE_SIZE])
{
	const struct index_definition *all;
	size_t n, used = strlen(text);
	int r = snapshot_definitions(snapshot, feed->definition.id, &all, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (!all[i].dropping && strcmp(all[i].paths, path_text(path)) == 0)
			return NOT_FOUND;
	if (shown.size > PATH_SHOWN)
		return NOT_FOUND;
	(void)snprintf(text + used, ADVICE_SIZE - used,
		"; an index of %.*s would avoid that: add one to the 'indexes' of the feed '%s' in "
		"kinf.yaml",
		BYTES_ARG(shown), feed->definition.name);
	return FOUND;
}

int advice_write(struct snapshot *snapshot, const struct snapshot_feed *feed,
	const struct query *query, uint64_t read, uint64_t given, char text[ADVICE_SIZE])
{
	const struct path *order = query->limit ? query->sort_path : NULL;
	int r = NOT_FOUND;

	*text = '\0';
	if (read < given + SPARED_MIN || read / TIMES_MIN < given)
		return 0;
	(void)snprintf(text, ADVICE_SIZE, "%llu objects were read for %llu",
		(unsigned long long)read, (unsigned long long)given);
	for (size_t i = 0; r == NOT_FOUND && query->fields && i < selector_count(query->fields);
		i++) {
		const struct selector_requirement *need = selector_at(query->fields, i);

		if (plan_may_use_index(need))
			r = advice_put(snapshot, feed, need->path, need->key, text);
	}
	if (r == NOT_FOUND && order && !path_is_plural(order))
		r = advice_put(snapshot, feed, order, bytes_str(path_text(order)), text);
	if (r != FOUND)
		*text = '\0';
	return r < 0 ? r : 0;
}
