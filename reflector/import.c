/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/import.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "common/value/json.h"
#include "common/value/value.h"
#include "reflector/feed/list.h"
#include "reflector/record/object.h"
#include "store/journal/journal.h"

#define PIECE     ((size_t)1 << 16)
#define BATCH     ((uint64_t)8 << 20) /* bytes in a transaction */
#define NAME_SIZE 256

struct import_feed {
	uint32_t id;
	bool namespaced;
	char group[NAME_SIZE], version[NAME_SIZE], kind[NAME_SIZE];
	char rv[64]; /* the newest of its objects */
};

struct import {
	struct home *home;
	struct journal *journal;
	struct json_parser *parser;
	struct list *list;
	struct import_feed *feeds;
	size_t n_feeds, feeds_room;
	struct buf body, key;
	uint64_t open_bytes, objects, skipped;
};

static void import_release(struct import *import)
{
	list_free(&import->list);
	json_parser_free(&import->parser);
	buf_release(&import->body);
	buf_release(&import->key);
	journal_close(&import->journal);
	home_close(&import->home);
	free(import->feeds);
}

/* ---- feeds -------------------------------------------------------------- */

/* Writes the plural of KIND as kubectl guesses it: without discovery nobody knows it. */
static void import_plural(const char *kind, char plural[NAME_SIZE])
{
	size_t n = strlen(kind);
	const char *end = "s";

	for (size_t i = 0; i <= n; i++)
		plural[i] = (char)tolower((unsigned char)kind[i]);
	char last = n ? plural[n - 1] : 0, before = n > 1 ? plural[n - 2] : 0;
	if (strcmp(plural, "endpoints") == 0)
		return;
	if (last == 's' || last == 'x' || (last == 'h' && (before == 'c' || before == 's'))) {
		end = "es";
	} else if (last == 'y' && !strchr("aeiou", before)) {
		plural[--n] = '\0';
		end = "ies";
	}
	(void)snprintf(plural + n, NAME_SIZE - n, "%s", end);
}

static int import_add_feed(struct import *import, struct import_feed *feed)
{
	char plural[NAME_SIZE] = "", alias[NAME_SIZE] = "", list_kind[NAME_SIZE + 4],
	     name[2 * NAME_SIZE];
	uint64_t seq;

	import_plural(feed->kind, plural);
	for (size_t i = 0; feed->kind[i]; i++)
		alias[i] = (char)tolower((unsigned char)feed->kind[i]);
	(void)snprintf(alias + strlen(alias), 2, " ");
	(void)snprintf(list_kind, sizeof(list_kind), "%sList", feed->kind);
	(void)snprintf(name, sizeof(name), "%s%s%s", plural, *feed->group ? "." : "", feed->group);
	const struct feed_definition definition = {.name = name,
		.aliases = alias,
		.columns = "",
		.group = feed->group,
		.version = feed->version,
		.resource = plural,
		.kind = feed->kind,
		.list_kind = list_kind,
		.namespace_ = "",
		.label_selector = "",
		.field_selector = "",
		.drop = "",
		.namespaced = feed->namespaced};
	int r = journal_add_feed(import->journal, &definition, &feed->id);
	if (r == 0)
		r = journal_append(import->journal,
			&(struct record){.feed = feed->id, .type = RECORD_LIST_BEGIN}, &seq);
	return r;
}

/* Finds the feed of a kind, or adds it. */
static int import_find_feed(
	struct import *import, const struct import_feed *like, struct import_feed **ret_feed)
{
	struct import_feed feed = *like;

	for (size_t i = 0; i < import->n_feeds; i++) {
		*ret_feed = &import->feeds[i];
		if (strcmp((*ret_feed)->kind, like->kind) == 0 &&
			strcmp((*ret_feed)->group, like->group) == 0 &&
			strcmp((*ret_feed)->version, like->version) == 0)
			return 0;
	}
	int r = import_add_feed(import, &feed);
	if (r == 0)
		r = ARRAY_ADD(
			import->feeds, import->n_feeds, import->feeds_room, feed, "the feeds");
	if (r == 0)
		*ret_feed = &import->feeds[import->n_feeds - 1];
	return r;
}

/* ---- objects ------------------------------------------------------------ */

/* Reads kind and apiVersion of the object in import->body into FEED. */
static int import_read_kind(struct import *import, struct import_feed *feed)
{
	struct value object, kind, version;
	int r = value_read(buf_bytes(&import->body), &object);

	if (r == 0)
		r = value_find(&object, BYTES_LIT("kind"), &kind);
	if (r == 0)
		r = value_find(&object, BYTES_LIT("apiVersion"), &version);
	if (r < 0)
		return r;
	if (r == NOT_FOUND || kind.type != VALUE_STRING || version.type != VALUE_STRING ||
		!kind.text.size || kind.text.size >= NAME_SIZE / 2 ||
		version.text.size >= NAME_SIZE)
		return err_say(ERR_PROTOCOL,
			"it has no kind and apiVersion, as 'kubectl get -o json' writes them");
	(void)snprintf(feed->kind, sizeof(feed->kind), "%.*s", BYTES_ARG(kind.text));
	(void)snprintf(feed->version, sizeof(feed->version), "%.*s", BYTES_ARG(version.text));
	char *slash = strchr(feed->version, '/');
	if (slash) {
		*slash = '\0';
		memcpy(feed->group, feed->version, strlen(feed->version) + 1);
		memmove(feed->version, slash + 1, strlen(slash + 1) + 1);
	}
	return 0;
}

/* An object of several feeds is in an export several times, and is stored once. */
static int import_compare(struct import *import, const struct import_feed *feed,
	const struct record *record, uint64_t seq)
{
	struct record first;
	int r = journal_get(import->journal, journal_txn(import->journal), seq, &first);

	if (r < 0)
		return r;
	if (r == FOUND && bytes_equal(first.body, record->body))
		return 0;
	return err_say(ERR_PROTOCOL, "%s '%.*s' is there twice, and differs", feed->kind,
		BYTES_ARG(record->key));
}

static int import_store(
	struct import *import, struct import_feed *feed, const struct object_identity *identity)
{
	struct record record = {.feed = feed->id,
		.type = RECORD_ADDED,
		.uid = identity->uid,
		.rv = identity->rv,
		.body = buf_bytes(&import->body)};
	char rv[64];
	struct head head;
	uint64_t seq;

	buf_reset(&import->key);
	if (identity->name_space.size) {
		buf_bytes_put(&import->key, identity->name_space);
		buf_byte(&import->key, '/');
	}
	buf_bytes_put(&import->key, identity->name);
	record.key = buf_bytes(&import->key);
	int r = buf_error(&import->key);
	if (r == 0)
		r = journal_head(
			import->journal, journal_txn(import->journal), feed->id, record.key, &head);
	if (r == FOUND)
		return import_compare(import, feed, &record, head.seq);
	if (r == NOT_FOUND)
		r = journal_append(import->journal, &record, &seq);
	if (r < 0)
		return r;
	/* A member left out by `kinf export` stays out: record and body must agree. */
	(void)snprintf(rv, sizeof(rv), "%.*s", BYTES_ARG(record.rv));
	if (!*feed->rv || rv_compare(bytes_str(rv), bytes_str(feed->rv)) == 1)
		memcpy(feed->rv, rv, sizeof(rv));
	import->open_bytes += record.body.size;
	return 0;
}

static int import_object(struct import *import, struct bytes text)
{
	struct import_feed like = {.id = 0}, *feed = NULL;
	struct object_identity identity;
	int r = object_identity(text, false, &identity);

	if (r == 0 && (!identity.name.size || memchr(identity.name.data, '/', identity.name.size)))
		r = err_say(ERR_PROTOCOL, "it has no name");
	if (r == 0 && memchr(identity.name.data, '\0', identity.name.size))
		r = err_say(ERR_TOO_LARGE, OBJECT_NAME_HAS_NUL);
	buf_reset(&import->body);
	if (r == 0)
		r = json_parse(import->parser, text, NULL, &import->body);
	if (r == 0)
		r = import_read_kind(import, &like);
	if (r == 0 && import->open_bytes >= BATCH) {
		import->open_bytes = 0;
		r = journal_commit(import->journal);
	}
	if (r == 0)
		r = journal_begin(import->journal);
	like.namespaced = identity.name_space.size > 0;
	if (r == 0)
		r = import_find_feed(import, &like, &feed);
	return r < 0 ? r : import_store(import, feed, &identity);
}

/* Leaves out an object unfit for any journal. */
static void import_skip(const struct import *import, struct bytes item, bool cut)
{
	struct object_identity identity;
	struct err_kept why;
	char name[128] = "";

	err_keep(&why);
	if (object_identity(item, cut, &identity) == 0)
		(void)snprintf(name, sizeof(name), "%.*s%s%.*s", BYTES_ARG(identity.name_space),
			identity.name_space.size ? "/" : "", BYTES_ARG(identity.name));
	LOG(import_object_skipped, .number = import->objects, .object = name, .error = why.text);
}

static int import_take_item(void *arg, struct bytes item, bool cut)
{
	struct import *import = arg;
	int r = cut ? err_say(ERR_TOO_LARGE, "it is larger than %u MiB", LIST_ITEM_MAX >> 20)
		    : import_object(import, item);

	import->objects++;
	if (r == ERR_TOO_LARGE) {
		import_skip(import, item, cut);
		import->skipped++;
		r = 0;
	}
	return r < 0 ? err_add(r, "object %" PRIu64, import->objects) : r;
}

/* ---- the file ----------------------------------------------------------- */

static int import_read(struct import *import, int fd)
{
	AUTO_FREE uint8_t *piece = malloc(PIECE);
	ssize_t n = 0;
	bool empty = true;
	int r = piece ? 0 : err_set(-ENOMEM, "reading");

	while (r == 0 && (n = read(fd, piece, PIECE)) != 0) {
		empty &= n <= 0;
		if (n > 0)
			r = list_feed(import->list, piece, (size_t)n);
		else if (errno != EINTR)
			r = err_set(-errno, "reading");
	}
	return r == 0 && empty ? err_say(ERR_PROTOCOL, "there is no object in it: it is empty") : r;
}

/* Ends the feeds as listed. */
static int import_end(struct import *import)
{
	struct list_page page = {.items = 0};
	char cluster[64];
	uint64_t chance, seq;
	int r = list_end(import->list, &page);

	if (r == 0 &&
		import->objects == import->skipped) /* nothing could be read of such a store */
		r = err_say(ERR_PROTOCOL, "there is no object in it%s",
			import->objects ? " that can be stored" : "");
	if (r == 0)
		r = journal_begin(import->journal);
	for (size_t i = 0; r == 0 && i < import->n_feeds; i++) {
		const char *newest = *import->feeds[i].rv ? import->feeds[i].rv : "1";
		struct bytes rv =
			page.rv.size && import->n_feeds == 1 ? page.rv : bytes_str(newest);

		r = journal_append(import->journal,
			&(struct record){
				.feed = import->feeds[i].id, .type = RECORD_LIST_END, .rv = rv},
			&seq);
	}
	if (r == 0)
		r = proc_random(&chance, sizeof(chance));
	(void)snprintf(cluster, sizeof(cluster), "uid:imported-%016" PRIx64, r == 0 ? chance : 0);
	if (r == 0)
		r = journal_set_cluster(import->journal, cluster);
	return r < 0 ? r : journal_commit(import->journal);
}

int import_file(const struct config *config, const char *file)
{
	CLEANUP(import_release) struct import import = {.body = BUF_INIT, .key = BUF_INIT};
	const struct list_options options = {
		.item_fn = import_take_item, .arg = &import, .any_rv = true};
	const struct journal_options journal = {.map_bytes = config->map_bytes};
	AUTO_FD int opened = strcmp(file, "-") == 0 ? -1 : open(file, O_RDONLY | O_CLOEXEC);
	int fd = strcmp(file, "-") == 0 ? STDIN_FILENO : opened;
	char reason[256];
	int r = fd < 0 ? err_set(-errno, "opening") : json_parser_new(&import.parser);

	if (r == 0)
		r = list_new(&options, &import.list);
	if (r == 0)
		r = home_open(config->store, &(struct home_options){.create = true}, &import.home);
	if (r == 0)
		r = home_take_role(import.home, HOME_REFLECTOR);
	if (r == 0)
		r = journal_open_write(import.home, &journal, reason, &import.journal);
	if (r == 0 && !*reason)
		r = err_say(-EEXIST, "the store '%s' has a journal already", config->store);
	if (r == 0)
		r = import_read(&import, fd);
	if (r == 0)
		r = import_end(&import);
	return r < 0 ? err_add(r, "'%s'", file) : 0;
}
