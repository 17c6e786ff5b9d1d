/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buf.h"
#include "print/table/table.h"
#include "tests/unit/unit.h"

#define ROW(...) cr_assert_eq(table_row(&table, (const char *const[]){__VA_ARGS__}, &out), 0)

static const char *const heads[] = {"EVENT", "NAME", "AGE"};

static struct buf out;
static struct table table;

static void release(void)
{
	table_release(&table);
	buf_release(&out);
}

TestSuite(table, .fini = release);

Test(table, columns_fit_what_is_held_back)
{
	table_init(&table, heads, 3);
	ROW("ADDED", "a-long-name", "1s");
	ROW("ADDED", "b", "100s");
	cr_assert_eq(out.size, 0, "held back");
	cr_assert_eq(table_settle(&table, &out), 0);
	cr_assert_str_eq(buf_cstr(&out), "EVENT   NAME          AGE\n"
					 "ADDED   a-long-name   1s\n"
					 "ADDED   b             100s\n");
}

/* A watch settles its table long before its later rows come. */
Test(table, later_cells_that_are_wider_do_not_touch_their_neighbours)
{
	table_init(&table, heads, 3);
	ROW("ADDED", "b", "1s");
	cr_assert_eq(table_settle(&table, &out), 0);
	ROW("MODIFIED", "c", "2s");
	ROW("ADDED", "a-long-name", "3s");
	ROW("ADDED", "d", "4s");
	cr_assert_str_eq(buf_cstr(&out), "EVENT   NAME   AGE\n"
					 "ADDED   b      1s\n"
					 "MODIFIED   c      2s\n"
					 "ADDED      a-long-name   3s\n"
					 "ADDED      d             4s\n");
}

Test(table, widths_are_characters_and_at_least_three)
{
	static const char *const short_heads[] = {"A", "B", "C"};

	table_init(&table, short_heads, 3);
	ROW("", "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", "c");
	ROW("1", "ab", "");
	cr_assert_eq(table_settle(&table, &out), 0);
	cr_assert_str_eq(buf_cstr(&out), "A     B      C\n"
					 "      \xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9   c\n"
					 "1     ab     \n");
}

Test(table, a_tab_moves_the_cells_after_it)
{
	table_init(&table, heads, 3);
	table.no_heads = true;
	ROW("a", "b\tc", "d");
	ROW("a", "long-name", "d\te");
	cr_assert_eq(table_settle(&table, &out), 0);
	cr_assert_str_eq(buf_cstr(&out), "a     b           c     d\n"
					 "a     long-name   d     e\n");
}
