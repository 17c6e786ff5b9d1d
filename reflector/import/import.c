/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/import/import.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/proc.h"
#include "reflector/import/import_internal.h"

#define NAMED_MAX 100 /* lines for what is left out */

static void import_release(struct import *import)
{
	list_free(&import->list);
	json_parser_free(&import->parser);
	buf_release(&import->body);
	buf_release(&import->headed);
	buf_release(&import->annotated);
	buf_release(&import->key);
	journal_close(&import->journal);
	home_close(&import->home);
	for (size_t i = 0; i < import->n_feeds; i++)
		free(import->feeds[i].seen);
	free(import->feeds);
	free(import->known);
	free(import->skipped);
}

/* ---- what is left out --------------------------------------------------- */

bool import_is_bad_input(int r)
{
	return r == ERR_SYNTAX || r == ERR_PROTOCOL || r == ERR_TOO_LARGE || r == ERR_CORRUPT ||
	       r == ERR_UNSUPPORTED;
}

/* Notes the key of an object that is left out: what was stored of it stays. */
static int import_keep(struct import *import, const char *object)
{
	char key[1024];
	/* Without a namespace it may be one of `default`. */
	int r = ARRAY_ADD(import->skipped, import->n_skipped, import->skipped_room,
		hash_bytes(bytes_str(object), 0), "what is left out");

	if (r < 0 || strchr(object, '/'))
		return r;
	(void)snprintf(key, sizeof(key), "default/%s", object);
	return ARRAY_ADD(import->skipped, import->n_skipped, import->skipped_room,
		hash_bytes(bytes_str(key), 0), "what is left out");
}

void import_skip(struct import *import, const char *name, size_t line, const char *object, int r)
{
	size_t size = strlen(object);
	char place[1024];

	(void)snprintf(place, sizeof(place), line ? "%s:%zu" : "%s", name, line);
	import->unreadable += r != ERR_TOO_LARGE || !*object; /* else no store could hold it */
	if (import->named++ < NAMED_MAX)
		LOG(import_skipped, .file = place, .object = *object ? object : NULL,
			.error = err_text(r));
	if (!size || object[size - 1] == '/' || import_keep(import, object) < 0)
		import->incomplete = true;
	err_forget();
}

static void import_skip_file(void *arg, const char *name, int r)
{
	import_skip(arg, name, 0, "", r);
}

/* ---- lists -------------------------------------------------------------- */

static bool import_has(const uint64_t *hashes, size_t n, uint64_t hash)
{
	return n && bsearch(&hash, hashes, n, sizeof(hash), array_by_number);
}

/* Deletes the objects of FEED that this source lacks. */
static int import_delete_missing(struct import *import, struct import_feed *feed, struct bytes rv)
{
	CLEANUP(buf_release) struct buf at = BUF_INIT;
	struct bytes key;
	struct head head;
	uint64_t seq;
	int r = 0;

	if (feed->n_seen)
		qsort(feed->seen, feed->n_seen, sizeof(*feed->seen), array_by_number);
	while (r == 0) { /* a deletion ends the walk */
		struct head_walk *walk = NULL;

		r = head_walk_open(journal_txn(import->journal), feed->id, buf_bytes(&at), &walk);
		while (r == 0 && (r = head_walk_next(walk, &key, &head)) == FOUND) {
			uint64_t hash = hash_bytes(key, 0);

			if (!import_has(feed->seen, feed->n_seen, hash) &&
				!import_has(import->skipped, import->n_skipped, hash))
				break;
		}
		if (r == FOUND) {
			buf_reset(&at);
			buf_bytes_put(&at, key);
			r = buf_error(&at);
		}
		head_walk_close(&walk);
		if (r != 0)
			break;
		r = journal_append(import->journal,
			&(struct record){.feed = feed->id,
				.type = RECORD_DELETED,
				.flags = RECORD_FINAL_STATE_UNKNOWN,
				.key = buf_bytes(&at),
				.uid = head.uid,
				.rv = rv,
				.time_ns = import->time_ns},
			&seq);
	}
	return r < 0 ? r : 0;
}

/* Ends the lists of SOURCE. */
static int import_end_lists(struct import *import, const char *source)
{
	bool keeps = false;
	uint64_t seq;
	int r = journal_begin(import->journal);

	if (import->n_skipped)
		qsort(import->skipped, import->n_skipped, sizeof(*import->skipped),
			array_by_number);
	for (size_t i = 0; r == 0 && i < import->n_feeds; i++) {
		struct import_feed *feed = &import->feeds[i];
		struct bytes rv = bytes_str(*feed->rv ? feed->rv : "1");

		if (!feed->open)
			continue;
		if (!feed->is_new && import->incomplete)
			keeps = true;
		else if (!feed->is_new)
			r = import_delete_missing(import, feed, rv);
		if (r == 0)
			r = journal_append(import->journal,
				&(struct record){.feed = feed->id,
					.type = RECORD_LIST_END,
					.rv = rv,
					.time_ns = import->time_ns},
				&seq);
		feed->open = feed->is_new = false;
		feed->n_seen = 0;
	}
	if (keeps)
		LOG(import_skipped, .file = source,
			.error = "it is not whole: what it lacks does not count as deleted");
	return r < 0 ? r : journal_commit(import->journal);
}

/* ---- sources ------------------------------------------------------------ */

static int import_source(struct import *import, const char *source)
{
	const struct source_options options = {
		.file = import_file, .skipped = import_skip_file, .arg = import};
	uint64_t objects = import->objects, stored = import->stored, named = import->named;
	uint64_t events = import->events;
	uint64_t now = proc_realtime_ns(), time = now;
	bool has_list = false; /* maybe an empty one */
	struct stat st;

	import->incomplete = false;
	import->n_skipped = 0;
	/* A source is dated by its last change, but not before the source before it. */
	if (strcmp(source, "-") != 0 && stat(source, &st) == 0 && st.st_mtim.tv_sec > 0)
		time = (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
	if (time > now)
		time = now;
	if (time > import->time_ns)
		import->time_ns = time;
	int r = source_walk(source, &options);
	for (size_t i = 0; i < import->n_feeds; i++)
		has_list |= import->feeds[i].open;
	if (r == 0 && import->objects == objects && import->named == named && !has_list)
		r = err_say(ERR_PROTOCOL,
			import->events > events
				? "there is no object in it: it is an audit log, and only "
				  "successful writes of the level RequestResponse have one"
				: "there is no object in it");
	if (r == 0 && import->stored == 0 && stored == 0 && import->objects > objects)
		r = err_say(ERR_PROTOCOL, "there is no object in it that can be stored");
	if (r == 0)
		r = import_end_lists(import, source);
	return r < 0 ? err_add(r, "'%s'", source) : 0;
}

/* Names the feeds and the cluster. */
static int import_finish(struct import *import)
{
	char cluster[64];
	uint64_t chance;
	int r = import->stored ? 0 : err_say(ERR_PROTOCOL, "there is no object to import");

	if (r == 0)
		r = journal_begin(import->journal);
	if (r == 0)
		r = import_define_feeds(import);
	if (r == 0)
		r = proc_random(&chance, sizeof(chance));
	(void)snprintf(
		cluster, sizeof(cluster), JOURNAL_IMPORTED "%016" PRIx64, r == 0 ? chance : 0);
	if (r == 0)
		r = journal_set_cluster(import->journal, cluster);
	if (r == 0)
		r = journal_commit(import->journal);
	if (r < 0 || !import->unreadable)
		return r;
	if (import->named > NAMED_MAX)
		LOG(import_skipped_more, .number = import->named - NAMED_MAX);
	return GONE;
}

static int import_open(struct import *import, const struct config *config)
{
	const struct list_options list = {
		.item_fn = import_take_item, .arg = import, .is_file = true};
	const struct journal_options journal = {.map_bytes = config->map_bytes};
	char reason[256];
	int r = json_parser_new(&import->parser);

	if (r == 0)
		r = list_new(&list, &import->list);
	if (r == 0)
		r = home_open(config->store, &(struct home_options){.create = true}, &import->home);
	if (r == 0)
		r = home_take_role(import->home, HOME_REFLECTOR);
	if (r == 0)
		r = journal_open_write(import->home, &journal, reason, &import->journal);
	if (r == 0 && !*reason)
		r = err_say(-EEXIST, "the store '%s' has a journal already", config->store);
	return r;
}

int import_sources(const struct config *config, const char *const *sources, size_t n)
{
	CLEANUP(import_release)
	struct import import = {.body = BUF_INIT, .headed = BUF_INIT, .key = BUF_INIT};
	int r = import_open(&import, config);

	for (size_t i = 0; r == 0 && i < n; i++)
		r = import_source(&import, sources[i]);
	return r < 0 ? r : import_finish(&import);
}
