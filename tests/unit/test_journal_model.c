/* SPDX-License-Identifier: Apache-2.0 */
/* The journal against some arrays that say what must be there, whatever happens. */
#include "store/journal/journal.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/err.h"
#include "common/failpoint.h"
#include "tests/unit/journal_rig.h"

#define KEYS    10
#define FEEDS   24
#define RECORDS 1400

/* The whole of it in plain arrays; a transaction's abort is a copy back. */
struct model {
	struct model_record {
		uint32_t feed;
		uint8_t type, flags;
		int key; /* -1: none */
		uint64_t prev;
		uint32_t seed; /* of its body */
	} records[RECORDS];    /* by seq; 0 is not used */
	uint64_t next_seq, horizon;
	struct model_feed {
		bool removed, gone;
		uint64_t list_begin, first_list, trimmed;
		uint32_t rv;
		uint64_t heads[KEYS];
	} feeds[FEEDS]; /* by id; 0 is not used */
	uint32_t n_feeds;
};

static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static struct bytes make_body(uint32_t seed)
{
	static uint8_t body[9000];
	size_t size = seed % 5 == 0 ? 2000 + seed % 7000 : seed % 300;

	for (size_t i = 0; i < size; i++)
		body[i] = (uint8_t)(seed + i * 31);
	return BYTES(body, size);
}

static struct bytes make_key(int key, char text[16])
{
	(void)snprintf(text, 16, "ns/%02d", key);
	return bytes_str(text);
}

static struct bytes make_rv(uint32_t rv, char text[16])
{
	(void)snprintf(text, 16, "%u", rv);
	return bytes_str(text);
}

static struct model model, committed;
static uint32_t chance;

static void model_append(struct journal *j, uint32_t feed, uint8_t type, uint8_t flags, int key)
{
	struct model_feed *f = &model.feeds[feed];
	struct model_record *m = &model.records[model.next_seq];
	char key_text[16] = "", rv_text[16];
	uint64_t seq;

	*m = (struct model_record){.feed = feed, .type = type, .flags = flags, .key = key};
	if (key >= 0) {
		m->prev = f->heads[key];
		m->seed = next_random(&chance);
		f->heads[key] = type == RECORD_DELETED ? 0 : model.next_seq;
	}
	f->rv += type == RECORD_LIST_END && !flags;
	if (type == RECORD_LIST_BEGIN)
		f->list_begin = model.next_seq;
	if (type == RECORD_LIST_END) {
		m->prev = f->list_begin;
		f->list_begin = 0;
		if (!f->first_list)
			f->first_list = model.next_seq;
	}
	if (type == RECORD_FEED_REMOVED) {
		f->removed = true;
		f->list_begin = 0;
	}
	struct record record = {.feed = feed,
		.type = type,
		.flags = flags,
		.key = key >= 0 ? make_key(key, key_text) : BYTES_NONE,
		.uid = BYTES_LIT("uid"),
		.rv = make_rv(f->rv, rv_text),
		.body = key >= 0 ? make_body(m->seed) : BYTES_NONE};
	int r = journal_append(j, &record, &seq);
	cr_assert_eq(r, 0, "%s", err_text(r));
	cr_assert_eq(seq, model.next_seq);
	model.next_seq++;
}

static void model_add_feed(struct journal *j)
{
	struct feed_definition definition = pods();
	uint32_t feed;

	if (model.n_feeds + 1 >= FEEDS)
		return;
	cr_assert_eq(journal_add_feed(j, &definition, &feed), 0);
	cr_assert_eq(feed, ++model.n_feeds);
	model.feeds[feed] = (struct model_feed){0};
	model.records[model.next_seq++] =
		(struct model_record){.feed = feed, .type = RECORD_FEED_ADDED, .key = -1};
}

static void model_step(struct journal *j)
{
	uint32_t feed = 1 + next_random(&chance) % (model.n_feeds ? model.n_feeds : 1);
	struct model_feed *f = &model.feeds[feed];
	uint32_t dice = next_random(&chance) % 100;
	int key = (int)(next_random(&chance) % KEYS);

	if (model.n_feeds == 0 || dice < 2) {
		model_add_feed(j);
		return;
	}
	if (f->removed)
		return;
	if (dice < 4 && model.n_feeds > 2 && model.n_feeds + 3 < FEEDS) /* some always live */
		model_append(j, feed, RECORD_FEED_REMOVED, 0, -1);
	else if (dice < 12 && !f->list_begin)
		model_append(j, feed, RECORD_LIST_BEGIN, 0, -1);
	else if (dice < 20 && f->list_begin)
		model_append(j, feed, RECORD_LIST_END,
			f->first_list && dice < 13 ? RECORD_ABANDONED : 0, -1);
	else if (dice < 25) {
		char rv[16];
		uint32_t phase = f->first_list ? FEED_SYNCED : FEED_LISTING;
		cr_assert_eq(journal_checkpoint(j, feed, phase, make_rv(++f->rv, rv)), 0);
	} else if (!f->heads[key])
		model_append(j, feed, RECORD_ADDED, 0, key);
	else
		model_append(j, feed, dice < 45 ? RECORD_DELETED : RECORD_MODIFIED, 0, key);
}

/* The feed whose FEED_REMOVED is the next to be trimmed: its versions may be gone in part. */
static uint32_t being_removed(void)
{
	struct model_record *next = &model.records[model.horizon + 1];

	return model.horizon + 1 < model.next_seq && next->type == RECORD_FEED_REMOVED ? next->feed
										       : 0;
}

/* Is it part of the state as of the horizon? Said without the way that trimming takes. */
static bool is_state(uint64_t seq)
{
	struct model_record *m = &model.records[seq];

	if (m->type != RECORD_ADDED && m->type != RECORD_MODIFIED)
		return false;
	for (uint64_t later = seq + 1; later <= model.horizon; later++) {
		struct model_record *l = &model.records[later];
		if (l->feed == m->feed && (l->key == m->key || l->type == RECORD_FEED_REMOVED))
			return false;
	}
	return true;
}

static void check_record(const struct record *record)
{
	struct model_record *m = &model.records[record->seq];
	char text[16];

	cr_assert_eq(record_check(record), 0);
	cr_assert_eq(record->type, m->type);
	cr_assert_eq(record->flags, m->flags);
	cr_assert_eq(record->feed, m->feed);
	cr_assert_eq(record->prev, m->prev);
	if (m->key < 0)
		return;
	cr_assert(bytes_equal(record->key, make_key(m->key, text)));
	cr_assert(bytes_equal(record->body, make_body(m->seed)), "record %" PRIu64, record->seq);
}

static void check_log(struct journal *j, struct txn *txn)
{
	uint32_t leaving = being_removed();
	struct journal_walk *walk = NULL;
	struct record record = {0};

	cr_assert_eq(journal_walk_open(j, txn, 0, &walk), 0);
	int r = journal_walk_next(walk, &record);
	for (uint64_t seq = 1; seq < model.next_seq; seq++) {
		bool there = r == FOUND && record.seq == seq;
		bool wanted = seq > model.horizon || is_state(seq);
		if (there != wanted && !(wanted && model.records[seq].feed == leaving))
			cr_assert_fail(
				"record %" PRIu64 " (%s of feed %u), horizon %" PRIu64 ": %s", seq,
				record_type_name(model.records[seq].type), model.records[seq].feed,
				model.horizon, wanted ? "missing" : "still there");
		if (there) {
			check_record(&record);
			r = journal_walk_next(walk, &record);
		}
	}
	cr_assert_eq(r, END);
	journal_walk_close(&walk);
}

static void check_heads(struct journal *j, struct txn *txn, uint32_t feed)
{
	struct model_feed *f = &model.feeds[feed];
	char text[16];
	struct head head;

	for (int key = 0; key < KEYS; key++) {
		uint64_t wanted = f->gone ? 0 : f->heads[key];
		int r = journal_head(j, txn, feed, make_key(key, text), &head);
		if (r == NOT_FOUND && feed == being_removed())
			continue;
		cr_assert_eq(r, wanted ? FOUND : NOT_FOUND, "feed %u key %d", feed, key);
		if (r == FOUND)
			cr_assert_eq(head.seq, wanted);
	}
}

static void check_feed(struct journal *j, struct txn *txn, uint32_t feed)
{
	struct model_feed *f = &model.feeds[feed];
	struct feed_checkpoint c;
	uint64_t trimmed = 0;
	char text[16];

	for (uint64_t seq = 1; seq <= model.horizon; seq++) {
		if (model.records[seq].feed == feed)
			trimmed = seq;
		f->gone |= model.records[seq].feed == feed &&
			   model.records[seq].type == RECORD_FEED_REMOVED;
	}
	check_heads(j, txn, feed);
	int r = journal_feed_checkpoint(j, txn, feed, &c);
	cr_assert_eq(r, f->gone ? NOT_FOUND : FOUND);
	if (f->gone)
		return;
	cr_assert_eq(c.list_begin, f->list_begin);
	cr_assert_eq(c.first_list, f->first_list);
	cr_assert_eq(c.phase == FEED_REMOVED, f->removed);
	cr_assert(c.trimmed == trimmed ||
		  (feed == being_removed() && c.trimmed == model.horizon + 1));
	cr_assert(bytes_equal(c.rv, f->rv ? make_rv(f->rv, text) : BYTES_NONE));
}

static void check_all(struct journal *j)
{
	struct journal_meta meta;
	struct txn *txn = NULL;

	cr_assert_eq(txn_begin_read(journal_env(j), &txn), 0);
	cr_assert_eq(journal_meta(j, txn, &meta), 0);
	cr_assert_eq(meta.next_seq, model.next_seq);
	model.horizon = meta.horizon;
	check_log(j, txn);
	for (uint32_t feed = 1; feed <= model.n_feeds; feed++)
		check_feed(j, txn, feed);
	txn_abort(&txn);
}

static void model_trim(struct journal *j)
{
	uint64_t span = model.next_seq - 1 - model.horizon, trimmed;

	if (!span)
		return;
	uint64_t target = model.horizon + 1 + next_random(&chance) % span;
	size_t limit = 1 + next_random(&chance) % 6;
	int r;
	do {
		uint64_t before = model.horizon;
		uint32_t leaving = being_removed();
		r = journal_trim(j, target, limit, &trimmed);
		cr_assert(r == 0 || r == AGAIN, "%s", err_text(r));
		check_all(j);
		cr_assert_geq(model.horizon, before);
		cr_assert_leq(model.horizon, target);
		cr_assert(model.horizon > before || trimmed > 0 || leaving || being_removed());
		cr_assert_eq(r == AGAIN, model.horizon < target);
	} while (r == AGAIN && next_random(&chance) % 8);
}

static void run_model(uint32_t seed)
{
	struct home *home = open_home();
	struct journal *j = NULL;

	memset(&model, 0, sizeof(model));
	model.next_seq = 1;
	chance = seed;
	j = open_writer(home);
	cr_assert_eq(journal_begin_anew(&j, home, &small), 0);
	while (model.next_seq < RECORDS - 40) {
		committed = model;
		cr_assert_eq(journal_begin(j), 0);
		for (uint32_t n = next_random(&chance) % 30; n > 0; n--)
			model_step(j);
		uint32_t dice = next_random(&chance) % 20;
		if (dice < 2) {
			journal_abort(j);
			model = committed;
		} else
			cr_assert_eq(journal_commit(j), 0);
		if (dice == 3) {
			journal_close(&j);
			j = open_writer(home);
		}
		if (dice > 14)
			model_trim(j);
	}
	check_all(j);
	journal_close(&j);
	home_close(&home);
}

Test(journal, equals_the_model_whatever_happens)
{
	for (uint32_t seed = 1; seed <= 4; seed++)
		run_model(seed);
}

/* Killed inside and between trim slices: the next run goes on where the last commit was. */
#ifdef KINF_FAILPOINTS
Test(journal, trimming_goes_on_after_a_kill)
{
	static const char *const points[] = {"journal.trim:2:kill", "journal.trimmed:2:kill"};
	struct home *home = open_home();

	memset(&model, 0, sizeof(model));
	model.next_seq = 1;
	chance = 99;
	struct journal *j = open_writer(home);
	cr_assert_eq(journal_begin(j), 0);
	while (model.next_seq < 300)
		model_step(j);
	cr_assert_eq(journal_commit(j), 0);
	journal_close(&j);
	int kills = 0;
	for (int i = 0; i < 400; i++) {
		pid_t child = fork();
		if (child == 0) {
			uint64_t trimmed;
			if (setenv("KINF_FAIL", points[i % 2], 1) < 0 || failpoint_setup() < 0)
				_exit(2);
			j = open_writer(home);
			while (journal_trim(j, model.next_seq - 1, 3, &trimmed) == AGAIN)
				;
			_exit(0);
		}
		int status;
		cr_assert_eq(waitpid(child, &status, 0), child);
		j = open_writer(home);
		check_all(j);
		journal_close(&j);
		if (WIFEXITED(status)) {
			cr_assert_eq(WEXITSTATUS(status), 0, "child: %d", WEXITSTATUS(status));
			break;
		}
		kills++;
	}
	cr_assert_geq(kills, 20);
	cr_assert_eq(model.horizon, model.next_seq - 1);
	home_close(&home);
}
#endif
