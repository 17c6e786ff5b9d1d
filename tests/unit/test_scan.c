/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/scan.h"
#include "tests/unit/unit.h"

/* Finds the end of the container at text[0] in the plain way; 0 if there is none. */
static size_t reference_end(const char *text, size_t size)
{
	size_t depth = 0;
	bool in_string = false;

	for (size_t i = 0; i < size; i++) {
		char c = text[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '\\' && i + 1 < size && strchr("\\\"", text[i + 1])) {
			i++; /* outside of strings this is no JSON, but both must agree */
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			depth++;
		} else if ((c == '}' || c == ']') && --depth == 0) {
			return i + 1;
		}
	}
	return 0;
}

static size_t scan_in_two(const char *text, size_t size, size_t split)
{
	struct scan scan = SCAN_INIT;
	size_t used;

	if (scan_container(&scan, (const uint8_t *)text, split, &used) == FOUND)
		return used;
	cr_assert_eq(used, split);
	if (scan_container(&scan, (const uint8_t *)text + split, size - split, &used) == FOUND)
		return split + used;
	return 0;
}

Test(scan, finds_the_end_wherever_the_bytes_are_split)
{
	static const char text[] = "{\"a\":\"}\\\"]\\\\\",\"b\":[1,{\"c\":\"\\\\\\\"{\"}],\"long\":"
				   "\"................................"
				   "..............................................................."
				   ".\\\\\"}, {\"next\":1}";
	size_t size = sizeof(text) - 1, end = reference_end(text, size);

	cr_assert_gt(end, 100);
	for (size_t split = 0; split <= size; split++)
		cr_assert_eq(scan_in_two(text, size, split), end, "split at %zu", split);
}

Test(scan, agrees_with_the_plain_scanner_on_random_text)
{
	static const char alphabet[] = "{}[]\"\\a,:";
	char text[400];

	srand(7);
	for (int round = 0; round < 20000; round++) {
		size_t size = 1 + (size_t)rand() % sizeof(text);

		text[0] = '{';
		for (size_t i = 1; i < size; i++)
			text[i] = rand() % 3 ? 'x'
					     : alphabet[(size_t)rand() % (sizeof(alphabet) - 1)];
		size_t wanted = reference_end(text, size);
		cr_assert_eq(scan_in_two(text, size, (size_t)rand() % (size + 1)), wanted);
	}
}

Test(scan, a_line_feed_inside_a_string_is_refused_where_it_stands)
{
	struct scan scan = SCAN_INIT;
	size_t used;
	const char *text = "{\"a\":\"b\nc\"}";

	cr_assert_eq(
		scan_container(&scan, (const uint8_t *)text, strlen(text), &used), ERR_PROTOCOL);
	cr_assert_eq(used, 7);
	scan = SCAN_INIT;
	text = "{\"a\":\n\"b\"}\"\n";
	cr_assert_eq(scan_container(&scan, (const uint8_t *)text, strlen(text), &used), FOUND);
	cr_assert_eq(used, 10);
}

Test(scan, members_are_found_in_any_spelling)
{
	char room[2];
	struct bytes value,
		text = BYTES_LIT("{ \"a\" : {\"x\":\"}\"} , \"b\":\"q\\\"\",\"c\":-1.5e3}");

	cr_assert_eq(scan_find(text, "a", &value), FOUND);
	cr_assert(bytes_equal(value, BYTES_LIT("{\"x\":\"}\"}")));
	cr_assert_eq(scan_find(text, "b", &value), FOUND);
	cr_assert(bytes_equal(value, BYTES_LIT("\"q\\\"\"")));
	cr_assert_eq(scan_string(value, room, sizeof(room), &value), FOUND);
	cr_assert(bytes_equal(value, BYTES_LIT("q\"")));
	cr_assert_eq(scan_find(text, "c", &value), FOUND);
	cr_assert(bytes_equal(value, BYTES_LIT("-1.5e3")));
	cr_assert_eq(scan_find(text, "d", &value), NOT_FOUND);
	cr_assert_eq(scan_find(BYTES_LIT("{}"), "d", &value), NOT_FOUND);
}

Test(scan, a_string_loses_its_escapes_and_only_then_needs_room)
{
	static const struct {
		const char *value, *text;
		size_t room;
	} rows[] = {{"\"R\\u0026D\"", "R&D", 3}, {"\"R\\u0026D\"", NULL, 2}, {"\"R&D\"", "R&D", 0},
		{"\"\\ud83d\\ude80\\\\\"", "\U0001f680\\", 5}, {"\"\\ud83d\\ude80\"", NULL, 3},
		{"\"\\x\"", NULL, 9}, {"\"\\u00\"", NULL, 9}, {"\"\"", "", 0}, {"\"", NULL, 9},
		{"null", NULL, 9}, {"7", NULL, 9}, {"", NULL, 9}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *room = malloc(rows[i].room + 1); /* for ASan to know its end */
		struct bytes text = BYTES_LIT("as before");
		int r = scan_string(bytes_str(rows[i].value), room + 1, rows[i].room, &text);

		cr_assert_eq(r, rows[i].text ? FOUND : NOT_FOUND, "%s", rows[i].value);
		cr_assert(bytes_equal(text, bytes_str(rows[i].text ? rows[i].text : "as before")),
			"%s: %.*s", rows[i].value, BYTES_ARG(text));
		free(room);
	}
}

Test(scan, damaged_objects_are_refused)
{
	static const char *const bad[] = {"", "[]", "{", "{\"a\"", "{\"a\":", "{\"a\":}",
		"{\"a\":1", "{\"a\":1 \"b\":2}", "{a:1}", "{\"a\":\"x}", "{\"a\":{\"b\":1}", "{,}"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct bytes value;

		cr_assert_eq(
			scan_find(bytes_str(bad[i]), "zz", &value), ERR_PROTOCOL, "'%s'", bad[i]);
	}
}
