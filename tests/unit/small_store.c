/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/small_store.h"

#include <fcntl.h>

#include "common/value/json.h"
#include "processor/apply.h"
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

/* ---- the processor ------------------------------------------------------ */

void small_store_take(struct small_store *s)
{
	CLEANUP(journal_close) struct journal *journal = NULL;
	CLEANUP(apply_free) struct apply *apply = NULL;
	CLEANUP(intake_free) struct intake *intake = NULL;
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct index_meta meta;
	int r;

	OK(journal_open_read(s->home, journal_uuid(s->journal), &journal));
	OK(txn_begin_read(index_env(s->index), &txn));
	OK(index_meta(s->index, txn, &meta));
	txn_abort(&txn);
	OK(intake_new(&s->p, journal, meta.taken, &intake));
	OK(apply_new(&s->p, journal, s->index, &apply));
	while ((r = apply_batch(apply, intake)) == FOUND)
		;
	cr_assert_eq(r, AGAIN, "%d %s", r, err_text(r));
}

/* ---- opening ------------------------------------------------------------ */

static void find_definitions(struct small_store *s)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct index_definition found;

	OK(txn_begin_read(index_env(s->index), &txn));
	CLEANUP(index_rows_release) struct index_rows rows = {txn};
	while (index_next_definition(&rows, &found) == FOUND)
		*(strcmp(found.name, INDEX_NAMESPACE) == 0     ? &s->namespace_
			: strcmp(found.name, INDEX_LABEL) == 0 ? &s->label
							       : &s->node) = found.id;
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
	static const char config[] = "feeds: [{resource: pods, indexes: {node: spec.nodeName}}]\n";
	static const struct index_options small_index = {.map_bytes = 64u << 20};
	struct home_options how = {.create = true, .runtime_dir = scratch()};
	char reason[256];

	*s = (struct small_store){.path = scratch_path("store")};
	OK(json_parser_new(&s->parser));
	OK(stats_create(AT_FDCWD, scratch_path("stats"), &s->p.stats));
	OK(config_parse(config, strlen(config), "kinf.yaml", &s->config));
	s->p.config = s->config;
	OK(home_open(s->path, &how, &s->home));
	s->p.home = s->home;
	OK(journal_open_write(s->home, &small_journal, reason, &s->journal));
	small_store_add_feed(s, "pods");
	(void)small_store_list_begin(s);
	(void)small_store_list_end(s);
	OK(index_create(s->home, &small_index, journal_uuid(s->journal), 0, &s->index));
	small_store_take(s);
	find_definitions(s);
	OK(index_publish(s->index, s->home));
}

void small_store_close(struct small_store *s)
{
	index_close(&s->index);
	journal_close(&s->journal);
	home_close(&s->home);
	stats_close(&s->p.stats);
	config_free(&s->config);
	json_parser_free(&s->parser);
}
