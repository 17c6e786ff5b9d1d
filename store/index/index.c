/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, publishing, and the writer's copy of meta. */
#include "store/index/index.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/failpoint.h"
#include "store/index/index_internal.h"

#define OPEN_TRIES 3
#define MAP_BYTES  ((uint64_t)64 << 30)

static const char *const index_databases[INDEX_DATABASES] = {
	[INDEX_NAME] = "name",
	[INDEX_OBJECT] = "object",
	[INDEX_TERM] = "term",
	[INDEX_POSTING] = "posting",
	[INDEX_META] = "meta",
};

const struct generation_kind index_kind = {
	.what = "index",
	.remedy = "'kinf rebuild-index' makes another one from the journal, and so does the start "
		  "of 'kinf run'; 'kinf verify' says what can still be read",
	.format = INDEX_FORMAT,
	.databases = index_databases,
	.n_databases = INDEX_DATABASES,
	.writemap = true,
};

/* ---- the writer's copy of meta ------------------------------------------ */

struct index_feed_row *index_feed_row(struct index *index, uint32_t feed)
{
	return ARRAY_FIND(index->feeds, index->n_feeds, .feed.feed, feed);
}

int index_feed_row_add(struct index *index, uint32_t feed, struct index_feed_row **ret_row)
{
	size_t i = ARRAY_PLACE(index->feeds, index->n_feeds, .feed.feed, feed);
	bool is_there = i < index->n_feeds && index->feeds[i].feed.feed == feed;
	int r = is_there ? 0
			 : ARRAY_INSERT(index->feeds, index->n_feeds, index->feeds_room, i,
				   ((struct index_feed_row){.feed = {.feed = feed}}),
				   "the index's feeds");

	if (r == 0)
		*ret_row = &index->feeds[i];
	return r;
}

void index_feed_row_remove(struct index *index, uint32_t feed)
{
	struct index_feed_row *row = index_feed_row(index, feed);

	if (!row)
		return;
	index->n_feeds--;
	memmove(row, row + 1, (size_t)(index->feeds + index->n_feeds - row) * sizeof(*row));
}

const struct index_feed *index_feed_held(struct index *index, uint32_t feed)
{
	REQUIRE(index->txn);
	const struct index_feed_row *row = index_feed_row(index, feed);

	return row ? &row->feed : NULL;
}

const struct index_definition *index_definition_held(const struct index *index, size_t i)
{
	REQUIRE(index->txn);
	return i < index->n_definitions ? &index->definitions[i]->definition : NULL;
}

/* New definitions get higher ids, so the array is in the order of ids. */
struct index_definition_row *index_definition_row(struct index *index, uint32_t id)
{
	size_t i = ARRAY_PLACE(index->definitions, index->n_definitions, ->definition.id, id);

	return i < index->n_definitions && index->definitions[i]->definition.id == id
		       ? index->definitions[i]
		       : NULL;
}

int index_definition_row_add(struct index *index, const struct index_definition *definition,
	struct index_definition_row **ret_row)
{
	size_t name_size = strlen(definition->name) + 1;
	size_t paths_size = strlen(definition->paths) + 1;
	int r = ARRAY_ROOM(index->definitions, index->n_definitions, index->definitions_room, 1,
		"the index's definitions");

	if (r < 0)
		return r;
	struct index_definition_row *row = malloc(sizeof(*row) + name_size + paths_size);

	if (!row)
		return err_set(-ENOMEM, "index definition '%s'", definition->name);
	char *text = (char *)(row + 1);

	memcpy(text, definition->name, name_size);
	memcpy(text + name_size, definition->paths, paths_size);
	*row = (struct index_definition_row){.definition = *definition};
	row->definition.name = text;
	row->definition.paths = text + name_size;
	index->definitions[index->n_definitions++] = row;
	*ret_row = row;
	return 0;
}

void index_definition_row_remove(struct index *index, uint32_t id)
{
	size_t i = ARRAY_PLACE(index->definitions, index->n_definitions, ->definition.id, id);

	free(index->definitions[i]);
	index->n_definitions--;
	memmove(&index->definitions[i], &index->definitions[i + 1],
		(index->n_definitions - i) * sizeof(*index->definitions));
}

void index_forget(struct index *index)
{
	for (size_t i = 0; i < index->n_definitions; i++)
		free(index->definitions[i]);
	free(TAKE(index->definitions));
	free(TAKE(index->feeds));
	index->n_definitions = index->definitions_room = 0;
	index->n_feeds = index->feeds_room = 0;
	index->state = (struct index_state){0};
	index->state_changed = false;
	index->loaded = false;
}

int index_load(struct index *index)
{
	CLEANUP(cursor_close) struct cursor *cursor = NULL;
	struct index_definition definition;
	struct index_definition_row *definition_at;
	struct index_feed_row *feed_at;
	struct index_feed feed;
	struct bytes key, value;

	index_forget(index);
	int r = cursor_open(index->txn, INDEX_META, &cursor);

	if (r == 0)
		r = cursor_seek(cursor, BYTES_LIT("\0"), &key, &value); /* below every tag */
	for (; r == FOUND; r = cursor_next(cursor, &key, &value)) {
		switch (key.size ? *(const char *)key.data : 0) {
		case META_STATE:
			r = index_read_state(key, value, &index->state);
			break;
		case META_FEED:
			r = index_read_feed(key, value, &feed);
			if (r == 0)
				r = index_feed_row_add(index, feed.feed, &feed_at);
			if (r == 0)
				feed_at->feed = feed;
			break;
		case META_DEFINITION:
			r = index_read_definition(key, value, &definition);
			if (r == 0)
				r = index_definition_row_add(index, &definition, &definition_at);
			break;
		default:
			r = err_say(ERR_CORRUPT, "index: unknown row in meta");
			break;
		}
		if (r < 0)
			return r;
	}
	if (r < 0)
		return r;
	if (index->state.next_object == 0)
		return err_say(ERR_CORRUPT, "index: its state is missing in meta");
	index->loaded = true;
	return 0;
}

int index_save(struct index *index)
{
	uint8_t buffer[META_KEY], feed[FEED_BYTES + ROW_CRC], state[STATE_BYTES + ROW_CRC];
	struct bytes key;
	int r = 0;

	for (size_t i = 0; i < index->n_feeds && r == 0; i++) {
		struct index_feed_row *row = &index->feeds[i];

		if (!row->changed)
			continue;
		index_write_feed(feed, &row->feed);
		row->changed = false;
		key = index_meta_key(buffer, META_FEED, row->feed.feed);
		r = txn_put(
			index->txn, INDEX_META, key, index_checksum_row(key, feed, FEED_BYTES), 0);
	}
	for (size_t i = 0; i < index->n_definitions && r == 0; i++) {
		CLEANUP(buf_release) struct buf text = BUF_INIT;
		struct index_definition_row *row = index->definitions[i];

		if (!row->changed)
			continue;
		index_write_definition(&text, &row->definition);
		size_t size = buf_bytes(&text).size;
		uint8_t *end = buf_grow(&text, ROW_CRC);
		if (!end)
			return buf_error(&text);
		row->changed = false;
		key = index_meta_key(buffer, META_DEFINITION, row->definition.id);
		r = txn_put(
			index->txn, INDEX_META, key, index_checksum_row(key, end - size, size), 0);
	}
	if (r == 0 && index->state_changed) {
		index_write_state(state, &index->state);
		index->state_changed = false;
		key = index_meta_key(buffer, META_STATE, 0);
		r = txn_put(index->txn, INDEX_META, key,
			index_checksum_row(key, state, STATE_BYTES), 0);
	}
	return r;
}

/* ---- opening ------------------------------------------------------------ */

static struct generation_options index_generation_options(
	struct home *home, const struct index_options *options, struct pin_places *places)
{
	home_pin_places(home, places);
	return (struct generation_options){
		.map_bytes = options && options->map_bytes ? options->map_bytes : MAP_BYTES,
		.file_mode = home_file_mode(home),
		.places = places,
	};
}

static int index_new(struct index **ret_index)
{
	struct index *index = calloc(1, sizeof(*index));

	if (!index)
		return err_set(-ENOMEM, "index");
	index->magic = INDEX_MAGIC;
	*ret_index = index;
	return 0;
}

void index_close(struct index **index)
{
	struct index *ix = *index;

	if (!ix)
		return;
	CHECK_OBJ(ix, INDEX_MAGIC);
	index_abort(ix);
	index_forget(ix);
	changes_release(&ix->changes);
	hints_close(&ix->hints);
	generation_close(&ix->gen);
	ix->magic = 0;
	free(ix);
	*index = NULL;
}

int index_open_write(
	struct home *home, const struct index_options *options, struct index **ret_index)
{
	CLEANUP(index_close) struct index *index = NULL;
	struct pin_places places;
	struct generation_options how = index_generation_options(home, options, &places);
	uint32_t number;
	int r = generation_current(home_index_fd(home), &number);

	if (r != FOUND)
		return r;
	r = index_new(&index);
	if (r == 0)
		r = generation_open_write(
			home_index_fd(home), &index_kind, &how, number, &index->gen);
	if (r != 0)
		return r;
	/* Finds damage in meta now, not in the middle of a batch. */
	r = index_begin(index);
	if (r == 0)
		index_hints_open(index);
	index_abort(index);
	if (r < 0)
		return r;
	*ret_index = TAKE(index);
	return 0;
}

int index_require_room(struct home *home)
{
	CLEANUP(index_close) struct index *index = NULL;
	struct env_info info = {.used_bytes = 0};
	uint32_t number;
	int r = generation_current(home_index_fd(home), &number);

	if (r == NOT_FOUND)
		return 0;
	if (r == FOUND) {
		r = index_open_read(home, &index);
		if (r == FOUND)
			r = env_info(index_env(index), &info);
		if (r != 0)
			info.used_bytes = generation_bytes_on_disk(home_index_fd(home), number);
		err_ignore(r, "all blocks of an index that can't be opened count as live");
	} else {
		err_ignore(r, "a CURRENT that can't be read will be replaced");
	}
	return generation_require_room(home_index_fd(home), index_kind.what, info.used_bytes);
}

int index_create(struct home *home, const struct index_options *options, const uint8_t journal[16],
	uint64_t taken, struct index **ret_index)
{
	CLEANUP(index_close) struct index *index = NULL;
	struct pin_places places;
	struct generation_options how = index_generation_options(home, options, &places);
	int r = index_new(&index);

	if (r == 0)
		r = generation_create(home_index_fd(home), &index_kind, &how, journal, &index->gen);
	if (r == 0)
		r = txn_begin_write(generation_env(index->gen), &index->txn);
	if (r < 0)
		return r;
	index->state = (struct index_state){
		.meta = {.taken = taken, .building = true},
		.next_object = 1,
		.next_term = 1,
		.next_definition = 1,
	};
	memcpy(index->state.meta.journal, journal, 16);
	index->state_changed = true;
	index->loaded = true;
	r = index_commit(index);
	if (r < 0)
		return r;
	*ret_index = TAKE(index);
	return 0;
}

int index_publish(struct index *index, struct home *home)
{
	int r = index_begin(index);

	if (r < 0)
		return r;
	index->state.meta.building = false;
	index->state_changed = true;
	r = index_commit(index);
	if (r == 0)
		r = index_begin(index);
	if (r < 0)
		return r;
	index_hints_open(index);
	index_abort(index);
	r = generation_publish(home_index_fd(home), generation_number(index->gen));
	if (r < 0)
		return r;
	FAILPOINT_RETURN(REBUILD_SWITCHED);
	uint32_t number = generation_number(index->gen);
	err_ignore(generation_remove_except(
			   home_index_fd(home), &number, 1, home_replaced_files(home)),
		"the next opening for writing removes what is left");
	return 0;
}

int index_open_read(struct home *home, struct index **ret_index)
{
	struct pin_places places;
	int r, tries = 0;

	home_pin_places(home, &places);
	do { /* again if the current index was replaced and removed meanwhile */
		CLEANUP(index_close) struct index *index = NULL;
		uint32_t number;

		if (home_index_fd(home) < 0)
			return NOT_FOUND;
		r = generation_current(home_index_fd(home), &number);
		if (r < 0)
			return err_add(r, "the index");
		if (r == FOUND)
			r = index_new(&index);
		int pins = r == FOUND ? home_check_pins(home, HOME_INDEX) : 0;
		err_ignore(pins, "the callers refuse a store that is in use, or try again");
		if (r == FOUND)
			r = generation_open_read(home_index_fd(home), &index_kind, number,
				pins == 0 ? &places : NULL, home_is_unchecked(home), &index->gen);
		if (r == FOUND)
			*ret_index = TAKE(index);
	} while ((r == -ENOENT || r == ERR_SNAPSHOT_EXPIRED) && ++tries < OPEN_TRIES);
	return r;
}

int index_advise(const struct index *index, int r)
{
	CHECK_OBJ(index, INDEX_MAGIC);
	return generation_advise(index->gen, r);
}

bool index_is_untrusted(const struct index *index)
{
	CHECK_OBJ(index, INDEX_MAGIC);
	return generation_is_untrusted(index->gen);
}

struct env *index_env(struct index *index)
{
	CHECK_OBJ(index, INDEX_MAGIC);
	return generation_env(index->gen);
}

int index_check(const struct index *index, const struct home *home, bool published)
{
	CHECK_OBJ(index, INDEX_MAGIC);
	return generation_check(index->gen, home_index_fd(home), published);
}

uint32_t index_generation(const struct index *index)
{
	CHECK_OBJ(index, INDEX_MAGIC);
	return generation_number(index->gen);
}
