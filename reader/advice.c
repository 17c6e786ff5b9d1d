/* SPDX-License-Identifier: Apache-2.0 */

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/err.h"
#include "reader/plan.h"

#define SPARED_MIN 100 /* objects; fewer reads cost nothing noticeable */
#define TIMES_MIN  10  /* as many were read as were given */
#define PATH_SHOWN 200 /* bytes */
#define WORD_MAX   32  /* of the proposed index */
#define NAME_SIZE  (WORD_MAX + 16)

/* Sets a name for an index of the path: its last word. */
static void advice_name(const char *path, unsigned number, char name[NAME_SIZE])
{
	const char *end = path + strlen(path), *begin;

	while (end > path && !isalnum((unsigned char)end[-1]))
		end--;
	for (begin = end;
		begin > path && end - begin < WORD_MAX && isalnum((unsigned char)begin[-1]);)
		begin--;
	(void)snprintf(name, NAME_SIZE, "%.*s", (int)(end - begin), begin);
	if (end == begin)
		(void)snprintf(name, NAME_SIZE, "index");
	size_t used = strlen(name);
	if (number > 1)
		(void)snprintf(name + used, NAME_SIZE - used, "-%u", number);
}

/* Finds a name for an index of PATH. Returns: FOUND; NOT_FOUND: there is such an index; errors. */
static int advice_search(struct snapshot *snapshot, const struct snapshot_feed *feed,
	const struct path *path, char name[NAME_SIZE])
{
	const struct index_definition *all;
	unsigned number = 0;
	bool is_taken;
	size_t n;
	int r = snapshot_definitions(snapshot, feed->definition.id, &all, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		if (!all[i].dropping && strcmp(all[i].paths, path_text(path)) == 0)
			return NOT_FOUND;
	do {
		is_taken = false;
		advice_name(path_text(path), ++number, name);
		for (size_t i = 0; i < n; i++)
			is_taken |= !all[i].dropping && strcmp(all[i].name, name) == 0;
	} while (is_taken);
	return FOUND;
}

/* Writes the sentence. Single quotes in YAML need no escape but for themselves. */
static void advice_put(const struct snapshot_feed *feed, const char *name, struct bytes path,
	uint64_t read, uint64_t given, char text[ADVICE_SIZE])
{
	const char *p = path.data;
	char quoted[2 * PATH_SHOWN + 1];
	size_t n = 0;

	for (size_t i = 0; i < path.size; i++) {
		quoted[n++] = p[i];
		if (p[i] == '\'')
			quoted[n++] = p[i];
	}
	quoted[n] = '\0';
	(void)snprintf(text, ADVICE_SIZE,
		"%llu objects were read for %llu; an index would avoid that: add \"%s: '%s'\" to "
		"the 'indexes' of the feed '%s' in kinf.yaml",
		(unsigned long long)read, (unsigned long long)given, name, quoted,
		feed->definition.name);
}

int advice_write(struct snapshot *snapshot, const struct snapshot_feed *feed,
	const struct query *query, uint64_t read, uint64_t given, char text[ADVICE_SIZE])
{
	char name[NAME_SIZE];
	struct bytes path = BYTES_NONE; /* as the query spells it */
	int r = NOT_FOUND;

	*text = '\0';
	if (read < given + SPARED_MIN || read / TIMES_MIN < given)
		return 0;
	for (size_t i = 0; r == NOT_FOUND && query->fields && i < selector_count(query->fields);
		i++) {
		const struct selector_requirement *need = selector_at(query->fields, i);

		path = need->key;
		if (plan_may_use_index(need))
			r = advice_search(snapshot, feed, need->path, name);
	}
	if (r == NOT_FOUND && query->sort_path && query->limit &&
		!path_is_plural(query->sort_path)) {
		path = bytes_str(path_text(query->sort_path));
		r = advice_search(snapshot, feed, query->sort_path, name);
	}
	if (r == FOUND && path.size <= PATH_SHOWN)
		advice_put(feed, name, path, read, given, text);
	return r < 0 ? r : 0;
}
