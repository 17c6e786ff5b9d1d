/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/field_diff.h"
#include "common/value/path.h"
#include "tests/unit/body.h"
#include "tests/unit/unit.h"

struct found {
	struct buf text;
	struct bytes before, after;
};

static int check_value(void *arg, const struct value *value)
{
	*(struct value *)arg = *value;
	return 1;
}

/* The path leads to the value in its version of the body. */
static void check_path(const char *path, struct bytes body, const struct value *value)
{
	struct path *parsed;
	struct value found = {0};

	if (!*path)
		return;
	cr_assert_eq(path_parse(path, &parsed), 0, "%s: %s", path, err_text(ERR_SYNTAX));
	cr_assert_eq(path_eval(parsed, body, check_value, &found), 1, "%s", path);
	cr_assert_eq(found.start, value->start, "%s", path);
	path_free(&parsed);
}

static int add(void *arg, const char *path, const struct value *before, const struct value *after)
{
	struct found *found = arg;

	if (before)
		check_path(path, found->before, before);
	if (after)
		check_path(path, found->after, after);
	buf_printf(&found->text, "%s%s%s ",
		!before  ? "+"
		: !after ? "-"
			 : "",
		path, *path ? "" : "(all)");
	return 0;
}

static void assert_changes(const char *before, const char *after, const char *wanted)
{
	CLEANUP(buf_release) struct buf a = BUF_INIT, b = BUF_INIT;

	body_put(before, &a);
	body_put(after, &b);
	struct found found = {BUF_INIT, buf_bytes(&a), buf_bytes(&b)};
	cr_assert_eq(field_diff_each(found.before, found.after, add, &found), 0);
	cr_assert_str_eq(buf_cstr(&found.text), wanted, "%s -> %s: %s", before, after,
		buf_cstr(&found.text));
	buf_release(&found.text);
}

Test(diff, equal_versions_have_none)
{
	assert_changes("{\"a\":{\"b\":[1,2]}}", "{\"a\":{\"b\":[1,2]}}", "");
	assert_changes(
		"{\"a\":1,\"b\":{\"c\":2,\"d\":3}}", "{\"b\":{\"d\":3,\"c\":2},\"a\":1}", "");
}

Test(diff, members_that_came_went_and_changed_are_named)
{
	assert_changes("{\"a\":1,\"b\":{\"c\":2},\"d\":3}", "{\"a\":4,\"b\":{\"e\":2},\"f\":null}",
		"a -b.c +b.e -d +f ");
}

/* Equal keys at equal places are compared as they come, and only the rest by a table. */
Test(diff, members_behind_one_that_moved_are_compared_by_key)
{
	assert_changes("{\"a\":{\"x\":1},\"b\":[1,{\"n\":1}],\"c\":3,\"d\":4}",
		"{\"a\":{\"x\":2},\"b\":[1,{\"n\":2}],\"new\":0,\"d\":5,\"c\":3}",
		"a.x b[1].n d +new ");
	assert_changes("{\"a\":{\"x\":1},\"b\":1}", "{\"a\":{\"x\":1}}", "-b ");
	assert_changes("{\"a\":{\"x\":1}}", "{\"a\":{\"x\":1},\"b\":{\"c\":1}}", "+b ");
	assert_changes("{\"a\":\"xy\",\"b\":1}", "{\"a\":\"x\",\"b\":1}", "a ");
}

Test(diff, names_that_are_no_plain_keys_are_quoted)
{
	assert_changes("{\"l\":{\"a.b/c\":1,\"it's\":1,\"\":1,\"\\\\\":1}}", "{\"l\":{}}",
		"-l['a.b/c'] -l['it\\'s'] -l[''] -l['\\\\'] ");
	assert_changes("{\"a b\":{\"c\":1}}", "{\"a b\":{\"c\":2}}", "['a b'].c ");
}

Test(diff, items_with_names_are_compared_by_name)
{
	assert_changes("{\"c\":[{\"name\":\"x\",\"i\":1},{\"name\":\"y\",\"i\":1}]}",
		"{\"c\":[{\"name\":\"y\",\"i\":2},{\"name\":\"x\",\"i\":1},{\"name\":\"z.q\"}]}",
		"c[name=y].i +c[?(@.name=='z.q')] ");
	assert_changes("[{\"type\":\"Ready\",\"status\":\"False\"}]",
		"[{\"type\":\"Ready\",\"status\":\"True\"}]", "[type=Ready].status ");
}

Test(diff, other_items_are_compared_by_place)
{
	assert_changes("{\"a\":[1,2,3]}", "{\"a\":[1,4]}", "a[1] -a[2] ");
	assert_changes("{\"a\":[{\"name\":\"x\"},{\"name\":\"x\"}]}",
		"{\"a\":[{\"name\":\"x\"},{\"name\":\"y\"}]}", "a[1].name ");
	assert_changes("{\"a\":[]}", "{\"a\":[1]}", "a ");
}

static int add_scalar(
	void *arg, const char *path, const struct value *before, const struct value *after)
{
	const struct value *some = before ? before : after;

	buf_printf(arg, "%s%s ", !before ? "+" : !after ? "-" : "", path);
	return some->type == VALUE_MAP || some->type == VALUE_ARRAY ? FIELD_DIFF_INTO : 0;
}

Test(diff, a_difference_is_taken_apart_if_wanted)
{
	CLEANUP(buf_release) struct buf a = BUF_INIT, b = BUF_INIT, paths = BUF_INIT;

	body_put("{\"a\":{\"b\":[1]},\"c\":[]}", &a);
	body_put("{\"c\":[{\"name\":\"x\",\"n\":{}}]}", &b);
	cr_assert_eq(field_diff_each(buf_bytes(&a), buf_bytes(&b), add_scalar, &paths), 0);
	cr_assert_str_eq(
		buf_cstr(&paths), "-a -a.b -a.b[0] c +c[name=x] +c[name=x].name +c[name=x].n ");
}

enum form { FORM_TYPES, FORM_KEYS, FORM_PLACES };

/* A document of 40,000 children; the last one has the value LAST. */
static void to_large_body(enum form form, int last, struct buf *body)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;

	for (int i = 0; i < 40000; i++) {
		int v = i == 39999 ? last : 7;

		buf_byte(&text, i ? ',' : form == FORM_KEYS ? '{' : '[');
		if (form == FORM_TYPES)
			buf_printf(&text, "{\"type\":\"t%d\",\"v\":%d}", i, v);
		else if (form == FORM_KEYS)
			buf_printf(&text, "\"k%d\":%d", i, v);
		else
			buf_printf(&text, "%d", v);
	}
	buf_byte(&text, form == FORM_KEYS ? '}' : ']');
	body_put(buf_cstr(&text), body);
}

static int add_path(
	void *arg, const char *path, const struct value *before, const struct value *after)
{
	buf_printf(arg, "%s%s ", before && after ? "" : "?", path);
	return 0;
}

static void assert_last_child_differs(enum form form, const char *path)
{
	CLEANUP(buf_release) struct buf before = BUF_INIT, after = BUF_INIT, paths = BUF_INIT;

	to_large_body(form, 0, &before);
	to_large_body(form, 1, &after);
	cr_assert_eq(field_diff_each(buf_bytes(&before), buf_bytes(&after), add_path, &paths), 0);
	cr_assert_str_eq(buf_cstr(&paths), path);
}

/* If each child were compared with each other one, this would take minutes. */
Test(diff, large_lists_and_maps_are_compared)
{
	assert_last_child_differs(FORM_TYPES, "[type=t39999].v ");
	assert_last_child_differs(FORM_KEYS, "k39999 ");
	assert_last_child_differs(FORM_PLACES, "[39999] ");
}

Test(diff, a_value_of_another_type_is_one_change)
{
	assert_changes("{\"a\":{\"b\":1}}", "{\"a\":[1]}", "a ");
	assert_changes("1", "\"1\"", "(all) ");
	assert_changes("{\"a\":1}", "{\"a\":1.0}", "a ");
}

Test(diff, damaged_versions_are_refused)
{
	static const uint8_t cut[] = {0x81, 0xa1, 'a', 0x92, 1};
	CLEANUP(buf_release) struct buf whole = BUF_INIT;

	body_put("{\"a\":[1,2]}", &whole);
	struct found found = {BUF_INIT, BYTES(cut, sizeof(cut)), buf_bytes(&whole)};
	cr_assert_eq(field_diff_each(found.before, found.after, add, &found), ERR_CORRUPT);
	cr_assert_eq(field_diff_each(found.after, found.before, add, &found), ERR_CORRUPT);
	cr_assert_eq(field_diff_each(BYTES_NONE, found.after, add, &found), ERR_CORRUPT);
	buf_release(&found.text);
}
