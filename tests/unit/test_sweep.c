/* SPDX-License-Identifier: Apache-2.0 */
/* Trimming leaves records after damage. This writer or a later one deletes them. */
#include <inttypes.h>
#include <stdio.h>

#include "common/cleanup.h"
#include "store/journal/journal_copy.h"
#include "tests/unit/journal_damage.h"
#include "tests/unit/journal_rig.h"

static struct home *home;
static struct journal *j;
static uint32_t feed;

static void setup(void)
{
	home = open_home();
	j = open_writer(home);
	feed = add_feed(j);
}

static void teardown(void)
{
	journal_close(&j);
	home_close(&home);
}

TestSuite(sweep, .init = setup, .fini = teardown, .timeout = 120);

static void repair(uint64_t seq, const char *key)
{
	const struct record record = {.feed = feed,
		.key = bytes_str(key),
		.uid = BYTES_LIT("u"),
		.rv = BYTES_LIT("7"),
		.body = BYTES_LIT("\x81\xa1x\x01")};

	cr_assert_eq(journal_begin(j), 0);
	cr_assert_eq(journal_repair(j, seq, &record), 0);
	cr_assert_eq(journal_commit(j), 0);
}

static void compact(void)
{
	struct journal_copy_options options = {.to = home, .from = j, .journal = small};
	struct journal_copy *copy;
	int r;

	cr_assert_eq(journal_copy_new(&options, &copy), 0);
	while ((r = journal_copy_slice(copy, 1 << 20)) == AGAIN)
		continue;
	cr_assert_eq(r, 0, "%s", err_text(r));
	cr_assert_eq(journal_copy_end(copy, j), 0);
	journal_copy_free(&copy);
}

static void reopen(void)
{
	journal_close(&j);
	j = open_writer(home);
}

/* Trimming passes over a version, and the next one, above the horizon, can't be read: what the
 * first one replaced has to stay. Both are stored again before trimming goes on, so nothing that
 * it meets then says that something was left. */
static void a_later_writer_sweeps(bool compacted)
{
	(void)append(j, feed, RECORD_ADDED, "web/00"); /* 2 */
	(void)append(j, feed, RECORD_ADDED, "web/01");
	(void)append(j, feed, RECORD_ADDED, "web/02");                /* 4 */
	uint64_t passed = append(j, feed, RECORD_MODIFIED, "web/00"); /* 5, after 2 */
	uint64_t next = append(j, feed, RECORD_MODIFIED, "web/01");   /* 6, after 3 */
	cr_assert_eq(journal_commit(j), 0);
	damage(j, passed, 8, 0);
	damage(j, next, 8, 0);
	trim_to(j, passed, 100);
	cr_expect(is_stored(j, 2) && is_stored(j, 3));
	repair(passed, "web/00");
	repair(next, "web/01");
	if (compacted)
		compact();
	reopen();
	trim_to(j, next, 100);
	cr_expect(!is_stored(j, 2) && !is_stored(j, 3));
	cr_expect(is_stored(j, 4) && is_stored(j, passed) && is_stored(j, next));
	cr_expect_eq(meta_of(j).history, 0);
}

Test(sweep, a_later_writer_sweeps_what_trimming_has_left)
{
	a_later_writer_sweeps(false);
}

Test(sweep, a_compacted_journal_is_swept_as_well)
{
	a_later_writer_sweeps(true);
}

/* The row that says that a sweep is due: a damaged one makes it due at once, and after the sweep
 * there is none. */
Test(sweep, a_sweep_is_due_until_it_is_done)
{
	static const uint64_t stored[] = {5, UINT64_C(1) << 60, 0};
	uint8_t *row;
	struct bytes value;
	uint64_t seq;

	for (size_t i = 0; i < 3; i++) {
		cr_assert_eq(journal_begin(j), 0);
		cr_assert_eq(sweep_due_write(journal_txn(j), stored[i]), 0);
		cr_assert_eq(sweep_due_read(journal_txn(j), &seq), 0);
		cr_expect_eq(seq, stored[i]);
		cr_expect_eq(txn_get(journal_txn(j), DB_META, BYTES_LIT("sweep"), &value),
			stored[i] ? FOUND : NOT_FOUND);
		for (size_t at = 0; stored[i] && at < value.size; at++) {
			row = (uint8_t *)(uintptr_t)value.data + at;
			*row ^= 1;
			cr_assert_eq(sweep_due_read(journal_txn(j), &seq), 0);
			cr_expect_eq(seq, 1, "byte %zu", at);
			*row ^= 1;
		}
		cr_assert_eq(journal_commit(j), 0);
	}
}

/* ---- a model ------------------------------------------------------------ */

#define OBJECTS  5
#define SEQS     3000
#define EPISODES 120 /* each ends with a check */
#define EVENTS   8

static uint64_t chance;

static unsigned dice(unsigned n)
{
	chance = chance * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(chance >> 33) % n;
}

static const char *key_of(unsigned object)
{
	static char text[8];

	(void)snprintf(text, sizeof(text), "web/%02u", object);
	return text;
}

/* The records that were written, and which of them are damaged. */
struct model {
	uint64_t newest[OBJECTS]; /* 0: the object does not exist */
	unsigned object[SEQS];
	bool damaged[SEQS];
	uint64_t last;
};

static void model_append(struct model *m)
{
	unsigned object = dice(OBJECTS);
	enum record_type type = !m->newest[object] ? RECORD_ADDED
				: dice(4)          ? RECORD_MODIFIED
						   : RECORD_DELETED;

	m->last = append(j, feed, type, key_of(object));
	cr_assert_eq(journal_commit(j), 0);
	m->object[m->last] = object;
	m->newest[object] = type == RECORD_DELETED ? 0 : m->last;
}

static void model_damage(struct model *m)
{
	uint64_t seq = m->last - dice(EVENTS);

	if (m->last <= 1 + EVENTS || m->damaged[seq] || !is_stored(j, seq))
		return;
	damage(j, seq, 8, 0); /* the version before it */
	m->damaged[seq] = true;
}

/* As the reflector does it: what is the newest version of its object. */
static void model_repair(struct model *m)
{
	for (unsigned object = 0; object < OBJECTS; object++) {
		uint64_t seq = m->newest[object];

		if (!seq || !m->damaged[seq])
			continue;
		repair(seq, key_of(object));
		m->damaged[seq] = false;
	}
}

static bool model_is_sound(const struct model *m)
{
	for (uint64_t seq = 1; seq <= m->last; seq++)
		if (m->damaged[seq] && is_stored(j, seq))
			return false;
	return true;
}

static void model_step(struct model *m)
{
	switch (dice(9)) {
	case 0:
	case 8:
		return model_damage(m);
	case 1:
		return trim_to(j,
			meta_of(j).horizon + dice((unsigned)(m->last - meta_of(j).horizon) + 1),
			1 + dice(4));
	case 2:
		return model_repair(m);
	case 3:
		return reopen();
	case 4:
		return dice(4) == 0 && model_is_sound(m) ? compact() : (void)0;
	default:
		return model_append(m);
	}
}

/* Everything was trimmed: the log has the newest version of each object that exists, and nothing
 * else. */
static void model_check(const struct model *m)
{
	uint8_t room[SEQ_KEY_SIZE];
	struct bytes stored;

	cr_assert_eq(journal_begin(j), 0);
	for (uint64_t seq = 1; seq <= m->last; seq++) {
		bool needed = m->newest[m->object[seq]] == seq,
		     found = txn_get(journal_txn(j), DB_LOG, seq_key(seq, room), &stored) == FOUND;

		cr_assert_eq(found, needed, "%" PRIu64 " of %" PRIu64, seq, m->last);
	}
	journal_abort(j);
	cr_assert_eq(
		meta_of(j).history, 0, "%" PRIu64 " after %" PRIu64, meta_of(j).history, m->last);
}

/* Changes, damage, repairs, trimming in slices, new writers and compaction in any order. */
Test(sweep, after_all_was_trimmed_the_newest_versions_alone_are_left)
{
	static struct model m = {.last = 1};

	for (unsigned i = 0; i < EPISODES; i++) {
		uint64_t end = m.last + EVENTS;

		while (m.last < end)
			model_step(&m);
		model_repair(&m);
		if (dice(2))
			reopen();
		trim_to(j, m.last, 3);
		model_check(&m);
	}
}
