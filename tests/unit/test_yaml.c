/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/yaml.h"
#include "tests/unit/unit.h"

static struct yaml *parse(const char *text)
{
	struct yaml *yaml = NULL;

	OK(yaml_parse(text, strlen(text), "f.yaml", &yaml));
	return yaml;
}

static void refused(const char *text, size_t size, const char *sentence)
{
	struct yaml *yaml = NULL;

	cr_assert_eq(yaml_parse(text, size, "f.yaml", &yaml), ERR_SYNTAX, "%s", text);
	cr_assert_null(yaml);
	cr_expect_str_eq(err_text(ERR_SYNTAX), sentence, "%s", err_text(ERR_SYNTAX));
}

Test(yaml, tree_has_text_types_and_lines)
{
	CLEANUP(yaml_free)
	struct yaml *yaml = parse("a: 1\nb:\n  - x\n  - {c: 'd'}\n\nlast: \"2\"\n");
	const struct yaml_node *root = yaml_root(yaml);

	cr_assert_eq(root->type, YAML_MAP);
	cr_assert_eq(root->count, 3);
	cr_assert_str_eq(root->keys[2], "last");
	cr_assert_eq(root->key_lines[2], 6);
	cr_assert_str_eq(yaml_text(root, "a"), "1");
	cr_assert_not(yaml_get(root, "a")->quoted);
	cr_assert(yaml_get(root, "last")->quoted);
	const struct yaml_node *b = yaml_get(root, "b");
	cr_assert_eq(b->type, YAML_LIST);
	cr_assert_eq(b->count, 2);
	cr_assert_str_eq(b->items[0].text, "x");
	cr_assert_eq(b->items[1].line, 4);
	cr_assert_str_eq(yaml_text(&b->items[1], "c"), "d");
	cr_assert_null(yaml_text(root, "b"), "no scalar");
	cr_assert_null(yaml_get(root, "none"));
	cr_assert_null(yaml_get(b, "x"), "no map");
	cr_assert_null(yaml_get(NULL, "x"));
}

Test(yaml, json_is_yaml_too)
{
	CLEANUP(yaml_free) struct yaml *yaml = parse("{\"a\": {\"b\": [1, null, \"x\"]}}");
	const struct yaml_node *list = yaml_get(yaml_get(yaml_root(yaml), "a"), "b");

	cr_assert_eq(list->count, 3);
	cr_assert(yaml_is_null(&list->items[1]));
	cr_assert_str_eq(list->items[2].text, "x");
}

Test(yaml, null_is_absent_unless_quoted)
{
	CLEANUP(yaml_free) struct yaml *yaml = parse("a:\nb: ~\nc: null\nd: ''\ne: 'null'\n");
	const struct yaml_node *root = yaml_root(yaml);

	cr_assert_null(yaml_get(root, "a"));
	cr_assert_null(yaml_get(root, "b"));
	cr_assert_null(yaml_get(root, "c"));
	cr_assert_str_eq(yaml_text(root, "d"), "");
	cr_assert_str_eq(yaml_text(root, "e"), "null");
}

Test(yaml, empty_document_has_no_root)
{
	static const char *const empty[] = {"", "\n", "# only a comment\n", "---\n", "~\n"};

	for (size_t i = 0; i < sizeof(empty) / sizeof(*empty); i++) {
		CLEANUP(yaml_free) struct yaml *yaml = parse(empty[i]);
		cr_assert_null(yaml_root(yaml), "'%s'", empty[i]);
	}
}

Test(yaml, what_is_not_allowed_is_said_with_its_line)
{
	static const char *const cases[][2] = {
		{"a: 1\nb: *x\n", "f.yaml:2: found undefined alias"},
		{"a: &x [*x]\n", "f.yaml:1: nested too deeply"},
		{"a: &x 1\nb: &x 2\n", "f.yaml:2: an anchor is named twice"},
		{"a: 1\n*x : 2\n", "f.yaml:2: found undefined alias"},
		{"<<: 1\n", "f.yaml:1: <<: must be an alias of a map, or a list of them"},
		{"a: &x [1]\nb:\n  <<: *x\n",
			"f.yaml:3: <<: must be an alias of a map, or a list of them"},
		{"a: &x {b: 1}\nc: {<<: *x, <<: *x}\n", "f.yaml:2: <<: twice"},
		{"a: &x {b: 1}\nc: {b: 2, <<: *x}\n",
			"f.yaml:2: <<: 'b' is set before it; write '<<' first"},
		{"a: !!int 1\n", "f.yaml:1: tags are not allowed"},
		{"a: 1\nb: 2\na: 3\n", "f.yaml:3: a: twice, first in line 1"},
		{"a: 1\n---\nb: 2\n", "f.yaml:2: only one document is allowed"},
		{"? [a]\n: 1\n", "f.yaml:1: a key must be a plain word or a string"},
		{"a: \"x\\0y\"\n", "f.yaml:1: a NUL character in a string"},
		{"a: [1\nb: 2\n", "f.yaml:2: did not find expected ',' or ']'"},
		{"a: 1\n\tb: 2\n", "f.yaml:2: found a tab character that violates indentation"},
		{"a: 1\nb: \xff\n", "f.yaml:1: invalid leading UTF-8 octet"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		refused(cases[i][0], strlen(cases[i][0]), cases[i][1]);
}

/* The answers of kubectl's YAML library. */
Test(yaml, aliases_and_merge_keys_are_copies)
{
	CLEANUP(yaml_free)
	struct yaml *yaml = parse(
		"base: &base {a: 1, b: &b [x, y], c: 3}\nother: &other {a: 4, d: 5}\nalias: *b\n"
		"one:\n  e: 6\n  <<: *base\n  c: 7\nmany: {<<: [*other, *base], b: 8}\n'<<': text\n"
		"last: *b\n");
	const struct yaml_node *root = yaml_root(yaml), *one = yaml_get(root, "one"),
			       *many = yaml_get(root, "many");

	cr_expect_str_eq(yaml_get(root, "alias")->items[1].text, "y");
	cr_expect_eq(one->count, 4);
	cr_expect_str_eq(yaml_text(one, "a"), "1");
	cr_expect_eq(yaml_get(one, "b")->count, 2);
	cr_expect_str_eq(yaml_text(one, "c"), "7", "a key after '<<' goes before its");
	cr_expect_str_eq(yaml_text(many, "a"), "4", "the first map of a list");
	cr_expect_str_eq(yaml_text(many, "b"), "8");
	cr_expect_str_eq(yaml_text(many, "d"), "5");
	cr_expect_str_eq(yaml_text(root, "<<"), "text", "in quotes it is a key");
}

Test(yaml, aliases_that_stand_for_gigabytes_are_refused)
{
	char text[4096] = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";

	for (unsigned i = 1; i < 12; i++) {
		size_t used = strlen(text);

		(void)snprintf(text + used, sizeof(text) - used,
			"a%u: &a%u [*a%u, *a%u, *a%u, *a%u, *a%u, *a%u, *a%u, *a%u, *a%u, *a%u]\n",
			i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
	}
	refused(text, strlen(text), "f.yaml:1: it is too large, or its aliases stand for too much");
}

Test(yaml, deep_nesting_is_refused)
{
	char text[400];

	memset(text, '[', sizeof(text) / 2);
	memset(text + sizeof(text) / 2, ']', sizeof(text) / 2);
	refused(text, sizeof(text), "f.yaml:1: nested too deeply");
}

Test(yaml, every_cut_of_a_document_is_survived)
{
	const char *text = "a: &x {b: &y [1, 'x'], c: \"y\"}\nz: {<<: *x, c: *y}\nd:\n  - e: |\n   "
			   "   f\n  - g\n";

	for (size_t n = 0; n < strlen(text); n++) {
		struct yaml *yaml = NULL;
		int r = yaml_parse(text, n, "f.yaml", &yaml);
		cr_assert(r == ERR_SYNTAX || (r == 0 && yaml), "cut at %zu: %d", n, r);
		yaml_free(&yaml);
	}
}

Test(yaml, file_is_read_or_the_reason_is_said)
{
	char name[] = "/tmp/kinf-yaml-XXXXXX";
	struct yaml *yaml = NULL;
	AUTO_FD int fd = mkstemp(name);

	cr_assert_eq(write(fd, "a: 1\n", 5), 5);
	cr_assert_eq(yaml_load(name, &yaml), 0);
	cr_assert_str_eq(yaml_text(yaml_root(yaml), "a"), "1");
	yaml_free(&yaml);
	cr_assert_eq(ftruncate(fd, (16 << 20) + 1), 0);
	cr_assert_eq(yaml_load(name, &yaml), ERR_TOO_LARGE);
	cr_assert_eq(unlink(name), 0);
	cr_assert_eq(yaml_load(name, &yaml), -ENOENT);
	cr_assert_eq(yaml_load("/tmp", &yaml), -EISDIR);
	cr_assert_str_eq(err_text(-EISDIR), "reading '/tmp': Is a directory");
}
