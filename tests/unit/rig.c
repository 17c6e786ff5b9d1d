/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/rig.h"

#include "common/buf.h"
#include "tests/unit/body.h"

static const struct journal_options journal_options = {.map_bytes = 256u << 20};

void rig_configure(struct rig *rig, const char *text)
{
	char *whole = NULL;
	struct config *config = NULL;

	cr_assert_gt(asprintf(&whole, "%s", text), 0);
	OK(config_parse(whole, strlen(whole), "kinf.yaml", &config));
	free(whole);
	config->map_bytes = 256u << 20;
	config_free(&rig->config);
	rig->config = config;
	rig->p.config = config;
	rig->p.config_version++;
}

void rig_open(struct rig *rig, const char *config)
{
	struct home_options options = {.create = true, .runtime_dir = scratch()};
	char reason[256];

	*rig = (struct rig){0};
	rig_configure(rig, config);
	OK(stats_create(AT_FDCWD, scratch_path("stats"), &rig->p.stats));
	OK(home_open(scratch_path("store"), &options, &rig->p.home));
	OK(home_take_role(rig->p.home, HOME_REFLECTOR));
	OK(home_take_role(rig->p.home, HOME_PROCESSOR));
	OK(journal_open_write(rig->p.home, &journal_options, reason, &rig->journal));
	OK(ring_create(home_runtime_fd(rig->p.home), "delta.ring", 1u << 16,
		journal_uuid(rig->journal), 0600, &rig->delta));
}

void rig_close(struct rig *rig)
{
	pair_close(&rig->pair);
	ring_close(&rig->delta);
	journal_close(&rig->journal);
	home_close(&rig->p.home);
	stats_close(&rig->p.stats);
	config_free(&rig->config);
}

/* ---- the journal -------------------------------------------------------- */

static uint32_t add_feed(struct rig *rig, const struct feed_definition *definition)
{
	uint32_t feed;

	OK(journal_begin(rig->journal));
	OK(journal_add_feed(rig->journal, definition, &feed));
	rig_commit(rig);
	return feed;
}

uint32_t rig_add_feed(struct rig *rig, const char *name)
{
	return add_feed(rig, &(struct feed_definition){.name = name,
				     .version = "v1",
				     .resource = name,
				     .kind = "Thing",
				     .list_kind = "ThingList",
				     .namespaced = true});
}

uint32_t rig_add_pods(struct rig *rig, const char *namespace_)
{
	return add_feed(rig, &(struct feed_definition){.name = "pods",
				     .version = "v1",
				     .resource = "pods",
				     .kind = "Pod",
				     .list_kind = "PodList",
				     .namespace_ = namespace_,
				     .namespaced = true});
}

uint64_t rig_append(struct rig *rig, uint32_t feed, uint8_t type, const char *key, const char *json)
{
	CLEANUP(buf_release) struct buf body = BUF_INIT;
	char rv[24];
	uint64_t seq;

	OK(journal_begin(rig->journal));
	if (json)
		body_put(json, &body);
	struct record record = {.feed = feed,
		.type = type,
		.key = bytes_str(key ? key : ""),
		.uid = BYTES_LIT("uid"),
		.body = buf_bytes(&body)};
	static unsigned version;
	(void)snprintf(rv, sizeof(rv), "%u", ++version);
	record.rv = bytes_str(rv);
	OK(journal_append(rig->journal, &record, &seq));
	if (rig->delta)
		ring_put(rig->delta,
			&(struct ring_entry){
				.seq = seq, .feed = feed, .type = type, .key = record.key});
	return seq;
}

void rig_commit(struct rig *rig)
{
	CLEANUP(txn_abort) struct txn *txn = NULL;
	struct journal_meta meta;

	OK(journal_commit(rig->journal));
	if (!rig->delta)
		return;
	OK(txn_begin_read(journal_env(rig->journal), &txn));
	OK(journal_meta(rig->journal, txn, &meta));
	ring_publish(rig->delta, meta.next_seq - 1);
}

uint64_t rig_record(struct rig *rig, uint32_t feed, uint8_t type, const char *key, const char *json)
{
	uint64_t seq = rig_append(rig, feed, type, key, json);

	rig_commit(rig);
	return seq;
}

/* ---- the processor ------------------------------------------------------ */

void rig_settle(struct rig *rig)
{
	int r;

	if (!rig->pair)
		OK(pair_open(&rig->p, NULL, &rig->pair));
	OK(pair_check(rig->pair));
	do {
		r = pair_step(rig->pair);
		cr_assert(r == FOUND || r == AGAIN, "%d %s", r, err_text(r));
	} while (r == FOUND);
	OK(pair_check(rig->pair));
	while ((r = pair_step(rig->pair)) == FOUND)
		;
	cr_assert_eq(r, AGAIN);
}

void rig_take(struct rig *rig)
{
	rig_commit(rig);
	rig_settle(rig);
}

void rig_restart(struct rig *rig)
{
	pair_close(&rig->pair);
	rig_settle(rig);
}

/* ---- the index ---------------------------------------------------------- */

struct view {
	struct index *index;
	struct txn *txn;
};

static void view_close(struct view *view)
{
	txn_abort(&view->txn);
	index_close(&view->index);
}

static struct view view_open(struct rig *rig)
{
	struct view view = {0};

	OK(index_open_read(rig->p.home, &view.index));
	OK(txn_begin_read(index_env(view.index), &view.txn));
	return view;
}

const char *rig_names(struct rig *rig, uint32_t feed)
{
	static char text[4096];
	CLEANUP(view_close) struct view view = view_open(rig);
	CLEANUP(index_walk_close) struct index_walk *walk = NULL;
	struct index_entry entry;
	struct bytes key;
	size_t n = 0;

	text[0] = 0;
	OK(index_names(view.index, view.txn, feed, BYTES_NONE, BYTES_NONE, &walk));
	while (index_walk_next(walk, &key, &entry) == FOUND)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.*s@%llu", n ? " " : "",
			BYTES_ARG(key), (unsigned long long)entry.seq);
	return text;
}

const char *rig_under(struct rig *rig, uint32_t feed, const char *definition, const char *value)
{
	static char text[4096];
	CLEANUP(view_close) struct view view = view_open(rig);
	CLEANUP(index_walk_close) struct index_walk *walk = NULL;
	CLEANUP(index_rows_release) struct index_rows rows = {view.txn};
	struct index_definition wanted;
	struct index_entry entry;
	struct bytes key;
	uint64_t count;
	size_t n = 0;

	int r;
	while ((r = index_next_definition(&rows, &wanted)) == FOUND)
		if (wanted.feed == feed && strcmp(wanted.name, definition) == 0 &&
			!wanted.dropping && wanted.filled == INDEX_READY)
			break;
	if (r != FOUND)
		return "no such index";
	text[0] = 0;
	r = index_postings(view.index, view.txn, wanted.id, bytes_str(value), &count, &walk);
	if (r == NOT_FOUND)
		return "";
	OK(r);
	size_t found = 0;
	for (; index_walk_next(walk, &key, &entry) == FOUND; found++)
		n += (size_t)snprintf(
			text + n, sizeof(text) - n, "%s%.*s", n ? " " : "", BYTES_ARG(key));
	cr_assert_eq(found, count);
	return text;
}

struct index_feed rig_feed(struct rig *rig, uint32_t feed)
{
	CLEANUP(view_close) struct view view = view_open(rig);
	struct index_feed row = {0};

	int r = index_feed(view.index, view.txn, feed, &row);
	cr_assert(r == FOUND || r == NOT_FOUND);
	return row;
}

uint64_t rig_taken(struct rig *rig)
{
	CLEANUP(view_close) struct view view = view_open(rig);
	struct index_meta meta;

	OK(index_meta(view.index, view.txn, &meta));
	return meta.taken;
}

uint32_t rig_generation(struct rig *rig)
{
	CLEANUP(view_close) struct view view = view_open(rig);

	return index_generation(view.index);
}
