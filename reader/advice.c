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

/* The indexes of a feed. */
struct advice_search {
	const char *path; /* canonical */
	char name[WORD_MAX + 16];
	bool has_path, has_name;
};

static int advice_note(void *arg, const struct index_definition *definition)
{
	struct advice_search *search = arg;

	if (definition->dropping)
		return 0;
	search->has_path |= strcmp(definition->paths, search->path) == 0;
	search->has_name |= strcmp(definition->name, search->name) == 0;
	return 0;
}

/* Sets a name for an index of the path: its last word. */
static void advice_name(struct advice_search *search, unsigned number)
{
	const char *path = search->path, *end = path + strlen(path), *begin;

	while (end > path && !isalnum((unsigned char)end[-1]))
		end--;
	for (begin = end;
		begin > path && end - begin < WORD_MAX && isalnum((unsigned char)begin[-1]);)
		begin--;
	(void)snprintf(search->name, sizeof(search->name), "%.*s", (int)(end - begin), begin);
	if (end == begin)
		(void)snprintf(search->name, sizeof(search->name), "index");
	size_t used = strlen(search->name);
	if (number > 1)
		(void)snprintf(search->name + used, sizeof(search->name) - used, "-%u", number);
}

/* Finds a name for an index of PATH. Returns: FOUND; NOT_FOUND: there is such an index; errors. */
static int advice_search(struct snapshot *snapshot, const struct snapshot_feed *feed,
	const struct path *path, struct advice_search *search)
{
	unsigned number = 0;

	do {
		*search = (struct advice_search){.path = path_text(path)};
		advice_name(search, ++number);
		int r = snapshot_each_definition(
			snapshot, feed->definition.id, advice_note, search);
		if (r < 0)
			return r;
	} while (search->has_name && !search->has_path);
	return search->has_path ? NOT_FOUND : FOUND;
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
	struct advice_search search;
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
			r = advice_search(snapshot, feed, need->path, &search);
	}
	if (r == NOT_FOUND && query->sort_path && query->limit &&
		!path_is_plural(query->sort_path)) {
		path = bytes_str(path_text(query->sort_path));
		r = advice_search(snapshot, feed, query->sort_path, &search);
	}
	if (r == FOUND && path.size <= PATH_SHOWN)
		advice_put(feed, search.name, path, read, given, text);
	return r < 0 ? r : 0;
}
