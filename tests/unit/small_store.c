/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/small_store.h"

#include "common/value/json.h"
#include "tests/unit/unit.h"

static uint64_t append(struct small_store *s, struct record *record)
{
	uint64_t seq;

	record->feed = s->feed;
	OK(journal_begin(s->journal));
	OK(journal_append(s->journal, record, &seq));
	OK(journal_commit(s->journal));
	return seq;
}

static bool is_known(struct small_store *s, struct bytes key)
{
	struct head head;

	OK(journal_begin(s->journal));
	int r = journal_head(s->journal, journal_txn(s->journal), s->feed, key, &head);

	journal_abort(s->journal);
	return r == FOUND;
}

uint64_t small_store_put(struct small_store *s, const char *key, const char *node, size_t size)
{
	const char *slash = strchr(key, '/');
	struct buf json = BUF_INIT, body = BUF_INIT;
	char rv[24], uid[64];

	(void)snprintf(rv, sizeof(rv), "%llu", (unsigned long long)++s->rv);
	(void)snprintf(uid, sizeof(uid), "uid-%s", key);
	buf_printf(&json,
		"{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%.*s\",\"uid\":\"%s\","
		"\"resourceVersion\":\"%s\",\"labels\":{\"app\":\"%s\"}},"
		"\"spec\":{\"nodeName\":\"%s\",\"text\":\"",
		slash + 1, (int)(slash - key), key, uid, rv, slash + 1, node);
	for (size_t i = 0; i < size; i++)
		buf_byte(&json, 'x');
	buf_str(&json, "\"}}");
	OK(json_parse(s->parser, buf_bytes(&json), NULL, &body));
	struct record record = {
		.type = is_known(s, bytes_str(key)) ? RECORD_MODIFIED : RECORD_ADDED,
		.key = bytes_str(key),
		.uid = bytes_str(uid),
		.rv = bytes_str(rv),
		.body = buf_bytes(&body)};
	uint64_t seq = append(s, &record);

	buf_release(&json);
	buf_release(&body);
	return seq;
}

uint64_t small_store_delete(struct small_store *s, const char *key)
{
	struct record record = {.type = RECORD_DELETED,
		.flags = RECORD_FINAL_STATE_UNKNOWN,
		.key = bytes_str(key),
		.uid = BYTES_LIT("u"),
		.rv = BYTES_LIT("1")};

	return append(s, &record);
}

uint64_t small_store_list_begin(struct small_store *s)
{
	struct record record = {.type = RECORD_LIST_BEGIN};

	return append(s, &record);
}

uint64_t small_store_list_end(struct small_store *s)
{
	struct record record = {.type = RECORD_LIST_END, .rv = BYTES_LIT("1")};

	return append(s, &record);
}

/* ---- the processor in short --------------------------------------------- */

static void terms_of(struct small_store *s, uint64_t seq, struct term_list *list)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct record record;

	OK(txn_begin_read(journal_env(s->journal), &txn));
	OK(journal_get(s->journal, txn, seq, &record));
	OK(terms_collect(s->terms, &record, list));
}

static void take_object(struct small_store *s, struct txn *txn, const struct record *record)
{
	struct term_list old = {0}, new = {0};
	struct index_change change = {.feed = s->feed, .key = record->key};
	struct index_entry held;
	int r = index_entry(s->index, s->feed, record->key, &held);

	if (r == FOUND)
		terms_of(s, held.seq, &old);
	if (record->type == RECORD_DELETED) {
		OK(index_remove(s->index, s->feed, record->key, old.terms, old.n));
	} else {
		OK(terms_collect(s->terms, record, &new));
		change.to.seq = record->seq;
		OK(journal_place(
			s->journal, txn, record->seq, &change.to.place, &change.to.place_size));
		change.to.generation = change.to.place ? journal_generation(s->journal) : 0;
		change.old = old.terms;
		change.n_old = old.n;
		change.new = new.terms;
		change.n_new = new.n;
		OK(index_put(s->index, &change));
	}
	term_list_release(&old);
	term_list_release(&new);
}

/* Applies the object records FROM to TO. */
static void take_range(struct small_store *s, struct txn *txn, uint64_t from, uint64_t to)
{
	CLEANUP(journal_walk_close) struct journal_walk *walk = NULL;
	struct record record;
	int r;

	OK(journal_walk_open(txn, from, &walk));
	while ((r = journal_walk_next(walk, &record)) == FOUND && record.seq <= to)
		if (record.type <= RECORD_DELETED)
			take_object(s, txn, &record);
	cr_assert_geq(r, 0, "%s", err_text(r));
}

static void take_record(struct small_store *s, struct txn *txn, const struct record *record,
	struct index_feed *feed)
{
	if (record->type == RECORD_LIST_BEGIN) {
		feed->list_begin = record->seq;
	} else if (record->type == RECORD_LIST_END) {
		take_range(s, txn, record->prev, record->seq);
		feed->list_begin = 0;
		feed->listed = feed->listed ? feed->listed : record->seq;
	} else if (record->type <= RECORD_DELETED && !feed->list_begin) {
		take_object(s, txn, record);
	}
}

void small_store_take(struct small_store *s)
{
	struct index_feed feed = {.feed = s->feed};
	struct journal_walk *walk;
	struct index_meta meta;
	struct record record;
	struct txn *txn;
	int r;

	OK(index_begin(s->index));
	OK(index_meta(s->index, index_txn(s->index), &meta));
	r = index_feed(s->index, index_txn(s->index), s->feed, &feed);
	cr_assert_geq(r, 0, "%s", err_text(r));
	OK(txn_begin_read(journal_env(s->journal), &txn));
	OK(journal_walk_open(txn, meta.taken + 1, &walk));
	while ((r = journal_walk_next(walk, &record)) == FOUND) {
		take_record(s, txn, &record, &feed);
		OK(index_set_taken(s->index, record.seq));
	}
	cr_assert_eq(r, END, "%s", err_text(r));
	journal_walk_close(&walk);
	txn_abort(&txn);
	OK(index_feed_set(s->index, &feed));
	OK(index_commit(s->index));
}

/* ---- opening ------------------------------------------------------------ */

static void define(struct small_store *s, const char *name, const char *paths, uint32_t *ret_id)
{
	struct index_definition definition = {.feed = s->feed, .name = name, .paths = paths};

	OK(index_define(s->index, s->feed, name, paths, ret_id));
	definition.id = *ret_id;
	OK(terms_add(s->terms, &definition));
}

void small_store_add_feed(struct small_store *s, const char *name)
{
	struct feed_definition feed = {.name = name,
		.version = "v1",
		.resource = "pods",
		.kind = "Pod",
		.list_kind = "PodList",
		.namespaced = true};

	OK(journal_begin(s->journal));
	OK(journal_add_feed(s->journal, &feed, &s->feed));
	OK(journal_commit(s->journal));
}

void small_store_open(struct small_store *s)
{
	static const struct journal_options small_journal = {.map_bytes = 64u << 20};
	static const struct index_options small_index = {.map_bytes = 64u << 20};
	struct home_options how = {.create = true, .runtime_dir = scratch()};
	char reason[256];

	*s = (struct small_store){.path = scratch_path("store")};
	OK(json_parser_new(&s->parser));
	OK(terms_new(&s->terms));
	OK(home_open(s->path, &how, &s->home));
	OK(journal_open_write(s->home, &small_journal, reason, &s->journal));
	small_store_add_feed(s, "pods");
	(void)small_store_list_begin(s);
	(void)small_store_list_end(s);
	OK(index_create(s->home, &small_index, journal_uuid(s->journal), 0, &s->index));
	OK(index_begin(s->index));
	define(s, INDEX_NAMESPACE, "", &s->namespace_);
	define(s, INDEX_LABEL, "", &s->label);
	define(s, "node", "spec.nodeName", &s->node);
	OK(index_commit(s->index));
	small_store_take(s);
	OK(index_publish(s->index, s->home));
}

void small_store_close(struct small_store *s)
{
	index_close(&s->index);
	journal_close(&s->journal);
	home_close(&s->home);
	terms_free(&s->terms);
	json_parser_free(&s->parser);
}
