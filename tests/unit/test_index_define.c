/* SPDX-License-Identifier: Apache-2.0 */
#include "store/index/index.h"

#include "tests/unit/index_rig.h"

TestSuite(index, .init = setup, .fini = teardown);

struct backfill {
	uint32_t definition;
	struct index_term terms[1];
	unsigned calls;
};

/* Every object's value is its key. */
static int key_as_term(void *arg, const struct index_entry *entry, uint32_t feed, struct bytes key,
	const struct index_term **ret_terms, size_t *ret_n)
{
	struct backfill *b = arg;

	cr_assert(entry->object && feed == FEED);
	b->calls++;
	b->terms[0] = (struct index_term){b->definition, key};
	*ret_terms = b->terms;
	*ret_n = 1;
	return 0;
}

/* Makes the objects a to f, and then, in the same transaction, the definition `late`. Returns its
 * id. */
static uint32_t define_late(void)
{
	begin();
	for (const char *key = "abcdef"; *key; key++)
		put((char[]){*key, 0}, 1, NULL, 0, NULL, 0);
	commit();
	begin();
	return define("late");
}

Test(index, a_new_definition_is_filled_in_slices_while_changes_go_on)
{
	struct backfill fill = {0};

	uint32_t d = fill.definition = define_late();
	struct index_term a[] = {term(d, "a")}, f_[] = {term(d, "f")}, g[] = {term(d, "g")};

	cr_assert_eq(index_backfill(rig.index, d, 3, key_as_term, &fill), AGAIN);
	commit();
	cr_assert_eq(definitions(), 1);
	cr_assert_eq(defined.filled, 3);
	begin();
	/* Changes below the filled range are entered, others are left to the filling. */
	cr_assert_eq(index_remove(rig.index, FEED, BYTES_LIT("a"), a, 1), 0);
	put("f", 2, f_, 1, f_, 1);
	put("g", 3, NULL, 0, g, 1);
	cr_assert_eq(index_backfill(rig.index, d, 3, key_as_term, &fill), AGAIN);
	commit();
	cr_assert_str_eq(under(d, BYTES_LIT("a")), "none");
	cr_assert_str_eq(under(d, BYTES_LIT("b")), "1: b");
	cr_assert_str_eq(under(d, BYTES_LIT("g")), "none");
	begin();
	cr_assert_eq(index_backfill(rig.index, d, 3, key_as_term, &fill), 0);
	commit();
	cr_assert_eq(definitions(), 1);
	cr_assert_eq(defined.filled, INDEX_READY);
	cr_assert_str_eq(under(d, BYTES_LIT("f")), "1: f");
	cr_assert_str_eq(under(d, BYTES_LIT("g")), "1: g");
	cr_assert_eq(fill.calls, 7);
}

Test(index, a_definition_is_taken_out_in_slices_and_its_id_not_used_again)
{
	unsigned slices = 1;

	begin();
	uint32_t d = define("node"), e = define("zone");
	struct index_term a[] = {term(d, "1"), term(e, "1")};

	for (int i = 49; i >= 0;
		i--) { /* each of `node` has a value of its own: the last is "k00" */
		char key[16];

		(void)snprintf(key, sizeof(key), "k%02d", i);
		a[0] = term(d, key);
		put(key, 1, NULL, 0, a, 2);
	}
	a[0] = term(d, "k00");
	commit();
	begin();
	while (index_undefine(rig.index, d, 20) == AGAIN) {
		commit();
		slices++;
		begin();
		put("k00", slices, a, 2, a + 1, 1); /* its terms are let alone meanwhile */
		put("k00", slices, a + 1, 1, a, 2);
	}
	commit();
	cr_assert_eq(slices, 6);
	cr_assert_eq(definitions(), 1);
	cr_assert_eq(defined.id, e);
	cr_assert_str_eq(under(d, BYTES_LIT("k49")), "none");
	cr_assert_eq(strncmp(under(e, BYTES_LIT("1")), "50:", 3), 0);
	begin();
	cr_assert_gt(define("node"), e);
	commit();
}
