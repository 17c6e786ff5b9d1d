/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/informer/informer.h"
#include "tests/unit/unit.h"

TestSuite(handler_keys, .timeout = 60);

#define KEYS 3000

static struct handler_keys *keys;
static uint64_t model[KEYS]; /* seq, 0: not there */
static bool seen[KEYS];
static unsigned random_state = 3;

static unsigned dice(unsigned sides)
{
	random_state = random_state * 1103515245u + 12345u;
	return (random_state >> 8) % sides;
}

/* Returns name I. The names differ in length, and some are the beginning of others. */
static struct bytes name(unsigned i)
{
	static char text[512];

	return BYTES(
		text, (size_t)snprintf(text, sizeof(text), "ns-%u/%.*s%u", i % 7, (int)(i % 50),
			      "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", i));
}

static void put(unsigned i, uint64_t seq)
{
	uint64_t before = 0;
	int r = handler_keys_put(keys, name(i), seq, &before);

	cr_assert_eq(r, model[i] ? FOUND : NOT_FOUND);
	if (model[i])
		cr_assert_eq(before, model[i]);
	model[i] = seq;
	seen[i] = true;
}

static void take_out(unsigned i)
{
	handler_keys_remove(keys, name(i));
	model[i] = 0;
}

/* Each unseen key comes once. */
static void reconcile(void)
{
	struct bytes key;
	size_t place = 0, n = 0, wanted = 0;

	for (unsigned i = 0; i < KEYS; i++)
		wanted += model[i] && !seen[i];
	while (handler_keys_next_unseen(keys, &place, &key) == FOUND) {
		unsigned i;

		for (i = 0; i < KEYS && !(model[i] && !seen[i] && bytes_equal(key, name(i))); i++)
			;
		cr_assert_lt(i, KEYS, "'%.*s' was seen, or was not there", BYTES_ARG(key));
		model[i] = 0;
		n++;
	}
	cr_assert_eq(n, wanted);
}

Test(handler_keys, random_lives_are_as_the_model)
{
	uint64_t seq = 0;

	cr_assert_eq(handler_keys_new(&keys), 0);
	for (int round = 0; round < 12; round++) {
		unsigned range = 1 + dice(KEYS);

		for (int i = 0; i < 2000; i++) {
			if (dice(3))
				put(dice(range), ++seq);
			else
				take_out(dice(range));
		}
		handler_keys_begin_replay(keys, true);
		memset(seen, 0, sizeof(seen));
		for (int i = 0; i < 300; i++)
			put(dice(range), ++seq);
		reconcile();
	}
	handler_keys_begin_replay(keys, true);
	memset(seen, 0, sizeof(seen));
	reconcile(); /* all the rest */
	handler_keys_free(&keys);
}

Test(handler_keys, seqs_of_another_journal_are_not_compared)
{
	uint64_t before;

	cr_assert_eq(handler_keys_new(&keys), 0);
	cr_assert_eq(handler_keys_put(keys, BYTES_LIT("a"), 7, &before), NOT_FOUND);
	handler_keys_begin_replay(keys, true);
	cr_assert_eq(handler_keys_put(keys, BYTES_LIT("a"), 7, &before), FOUND);
	cr_assert_eq(before, 7);
	handler_keys_begin_replay(keys, false);
	cr_assert_eq(handler_keys_put(keys, BYTES_LIT("a"), 7, &before), FOUND);
	cr_assert_eq(before, 0);
	handler_keys_clear(keys);
	cr_assert_eq(handler_keys_put(keys, BYTES_LIT("a"), 8, &before), NOT_FOUND);
	handler_keys_free(&keys);
}
