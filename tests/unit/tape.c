/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/tape.h"

#include "common/array.h"

struct cache cache;

/* ---- the store ---------------------------------------------------------- */

static void list_empty(void)
{
	(void)rig_append(&cache.rig, cache.feed, RECORD_LIST_BEGIN, NULL, NULL);
	(void)rig_append(&cache.rig, cache.feed, RECORD_LIST_END, NULL, NULL);
	rig_commit(&cache.rig);
}

void cache_open(void)
{
	cache = (struct cache){.version = 0};
	rig_open(&cache.rig,
		"feeds:\n  - resource: pods\n    indexes:\n      node: spec.nodeName\n");
	cache.feed = rig_add_feed(&cache.rig, "pods");
	list_empty();
	rig_settle(&cache.rig);
	int r = kinf_open(scratch_path("store"), &cache.kinf);
	cr_assert_eq(r, 0, "%s", kinf_error(cache.kinf));
}

void cache_close(void)
{
	kinf_close(&cache.kinf);
	rig_close(&cache.rig);
}

static bool is_there(const char *key)
{
	struct head head;

	OK(journal_begin(cache.rig.journal));
	return journal_head(cache.rig.journal, journal_txn(cache.rig.journal), cache.feed,
		       bytes_str(key), &head) == FOUND;
}

uint64_t cache_put(const char *key, const char *node)
{
	char json[256];

	(void)snprintf(json, sizeof(json),
		"{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"nodeName\":\"%s\"},\"v\":%u}", key,
		node ? node : "n", ++cache.version);
	return rig_append(
		&cache.rig, cache.feed, is_there(key) ? RECORD_MODIFIED : RECORD_ADDED, key, json);
}

void cache_delete(const char *key)
{
	(void)rig_append(&cache.rig, cache.feed, RECORD_DELETED, key, NULL);
}

static void delete_missing(const char *names)
{
	char gone[32][40];
	size_t n = 0;
	struct head_walk *walk;
	struct bytes key;
	struct head head;

	OK(head_walk_open(journal_txn(cache.rig.journal), cache.feed, BYTES_NONE, &walk));
	while (head_walk_next(walk, &key, &head) == FOUND) {
		char name[40];

		(void)snprintf(name, sizeof(name), "%.*s", BYTES_ARG(key));
		if (!strstr(names, name))
			(void)snprintf(gone[n++], sizeof(gone[0]), "%s", name);
	}
	head_walk_close(&walk);
	for (size_t i = 0; i < n; i++) {
		struct record record = {.feed = cache.feed,
			.type = RECORD_DELETED,
			.flags = RECORD_FINAL_STATE_UNKNOWN,
			.key = bytes_str(gone[i]),
			.uid = BYTES_LIT("uid"),
			.rv = BYTES_LIT("1")};
		uint64_t seq;

		OK(journal_append(cache.rig.journal, &record, &seq));
	}
}

void cache_relist(const char *names)
{
	AUTO_FREE char *copy = strdup(names);
	char *rest = NULL;

	(void)rig_append(&cache.rig, cache.feed, RECORD_LIST_BEGIN, NULL, NULL);
	for (char *name = strtok_r(copy, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
		(void)cache_put(name, NULL);
	delete_missing(names); /* known at its end: it streams */
	(void)rig_append(&cache.rig, cache.feed, RECORD_LIST_END, NULL, NULL);
}

void cache_take(void)
{
	OK(journal_begin(cache.rig.journal)); /* when nothing was written */
	rig_take(&cache.rig);
}

void cache_trim(void)
{
	uint64_t trimmed;
	int r;

	cache_take();
	do {
		r = journal_trim(cache.rig.journal, rig_taken(&cache.rig), 1000, &trimmed);
	} while (r == AGAIN);
	OK(r);
}

void cache_replace_feed(void)
{
	rig_record(&cache.rig, cache.feed, RECORD_FEED_REMOVED, NULL, NULL);
	cache.feed = rig_add_feed(&cache.rig, "pods");
	list_empty();
	rig_settle(&cache.rig);
}

/* ---- what is told ------------------------------------------------------- */

static void note(struct tape *tape, const char *what)
{
	if (tape->text.size)
		buf_byte(&tape->text, ' ');
	buf_str(&tape->text, what);
	tape->calls++;
}

static void put_version(struct tape *tape, const struct kinf_object *object)
{
	const char *text;
	size_t size;

	cr_assert_eq(kinf_object_path(object, "v", &text, &size), KINF_FOUND);
	buf_put(&tape->text, text, size);
}

static void put_key(struct tape *tape, const struct kinf_object *object)
{
	buf_byte(&tape->text, ' ');
	buf_put(&tape->text, object->key, object->key_size);
}

static void then(struct tape *tape)
{
	if (tape->then)
		tape->then(tape);
}

static void on_add(void *arg, const struct kinf_object *object, int initial)
{
	struct tape *tape = arg;

	note(tape, initial ? "add!" : "add");
	put_key(tape, object);
	buf_byte(&tape->text, '=');
	put_version(tape, object);
	then(tape);
}

static void on_update(void *arg, const struct kinf_object *old, const struct kinf_object *object)
{
	struct tape *tape = arg;

	note(tape, "upd");
	put_key(tape, object);
	buf_byte(&tape->text, '=');
	if (old)
		put_version(tape, old);
	else
		buf_byte(&tape->text, '?');
	buf_byte(&tape->text, '>');
	put_version(tape, object);
	then(tape);
}

static void on_delete(void *arg, const struct kinf_object *object, int final_state_unknown)
{
	struct tape *tape = arg;

	note(tape, final_state_unknown ? "del?" : "del");
	put_key(tape, object);
	if (object->body_size) {
		buf_byte(&tape->text, '=');
		put_version(tape, object);
	}
	then(tape);
}

static void on_sync(void *arg)
{
	note(arg, "sync");
	then(arg);
}

static void on_lapped(void *arg)
{
	note(arg, "lapped");
	then(arg);
}

struct kinf_handler_options tape_options(struct tape *tape)
{
	return (struct kinf_handler_options){.size = sizeof(struct kinf_handler_options),
		.arg = tape,
		.on_add = on_add,
		.on_update = on_update,
		.on_delete = on_delete,
		.on_sync = on_sync,
		.on_lapped = on_lapped};
}

void tape_release(struct tape *tape)
{
	buf_release(&tape->text);
}

/* ---- informers ---------------------------------------------------------- */

struct kinf_informer *tape_informer(const struct kinf_informer_options *options)
{
	struct kinf_informer *informer;

	KINF_OK(kinf_informer_new(cache.kinf, "pods", options, &informer));
	return informer;
}

struct kinf_handler *tape_add(
	struct kinf_informer *informer, struct tape *tape, const char *field_selector)
{
	struct kinf_query filter = {.size = sizeof(filter), .field_selector = field_selector};
	struct kinf_handler_options options = tape_options(tape);

	if (field_selector)
		options.filter = &filter;
	tape->informer = informer;
	KINF_OK(kinf_informer_add_handler(informer, &options, &tape->handler));
	return tape->handler;
}

void tape_drain(struct kinf_informer *informer)
{
	int r = 1;

	for (int quiet = 0; quiet<3; quiet = r> 0 ? 0 : quiet + 1) {
		r = kinf_informer_dispatch(informer, 0);
		cr_assert_geq(r, 0, "%d %s", r, kinf_error(cache.kinf));
	}
}

void tape_is(struct tape *tape, const char *text)
{
	cr_assert_str_eq(buf_cstr(&tape->text), text, "it says: %s", buf_cstr(&tape->text));
	buf_reset(&tape->text);
}

/* Notes ("del? a/x") in order, joined again. */
static void sort_notes(const char *text, struct buf *out)
{
	AUTO_FREE char *copy = strdup(text);
	const char *notes[64];
	size_t n = 0;

	for (char *at = copy; at && *at;) {
		char *blank = strchr(at, ' ');
		bool alone = strncmp(at, "sync", 4) == 0 || strncmp(at, "lapped", 6) == 0;

		if (blank && !alone)
			blank = strchr(blank + 1, ' ');
		if (blank)
			*blank++ = '\0';
		notes[n++] = at;
		at = blank;
	}
	qsort(notes, n, sizeof(*notes), array_by_text);
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s%s", i ? " " : "", notes[i]);
}

void tape_is_any_order(struct tape *tape, const char *text)
{
	CLEANUP(buf_release) struct buf is = BUF_INIT;
	CLEANUP(buf_release) struct buf wanted = BUF_INIT;

	sort_notes(buf_cstr(&tape->text), &is);
	sort_notes(text, &wanted);
	cr_assert_str_eq(buf_cstr(&is), buf_cstr(&wanted));
	buf_reset(&tape->text);
}
