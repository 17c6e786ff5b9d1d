/* SPDX-License-Identifier: Apache-2.0 */
#include "common/value/json.h"
#include "common/value/sort.h"
#include "common/value/yaml.h"
#include "tests/unit/body.h"
#include "tests/unit/unit.h"

/* YAML of a JSON text, NUL-terminated. */
static char *written(const char *json)
{
	CLEANUP(buf_release) struct buf body = BUF_INIT;
	struct buf yaml = BUF_INIT;

	body_put(json, &body);
	OK(yaml_write(buf_bytes(&body), false, &yaml));
	(void)buf_cstr(&yaml);
	cr_assert_eq(buf_error(&yaml), 0);
	return (char *)yaml.data;
}

static void expect(const char *json, const char *wanted)
{
	AUTO_FREE char *yaml = written(json);

	cr_expect_str_eq(yaml, wanted, "%s\nwanted\n%s", yaml, wanted);
}

Test(yaml_write, numbers_are_their_text)
{
	expect("{\"a\":1.0,\"b\":9223372036854775807,\"c\":1e-7,\"d\":-0.0,\"e\":"
	       "12345678901234567890123}",
		"a: 1.0\nb: 9223372036854775807\nc: 1e-7\nd: -0.0\ne: 12345678901234567890123\n");
}

static void expect_sorted(const char *json, const char *wanted)
{
	CLEANUP(buf_release) struct buf body = BUF_INIT, sorted = BUF_INIT, yaml = BUF_INIT;

	body_put(json, &body);
	cr_assert_eq(value_sort(buf_bytes(&body), VALUE_ORDER_YAML, &sorted), 0);
	cr_assert_eq(yaml_write(buf_bytes(&sorted), false, &yaml), 0);
	cr_expect_str_eq(buf_cstr(&yaml), wanted, "%s", json);
}

/* Lines of the file: a JSON document, then its YAML after bars, as JSONToYAML() of
 * sigs.k8s.io/yaml 1.6.0 writes it for kubectl. */
#define RECORDED "tests/unit/data/kubectl_yaml.txt"

Test(yaml_write, sorted_documents_are_written_as_kubectl_writes_them)
{
	CLEANUP(buf_release) struct buf file = BUF_INIT, wanted = BUF_INIT;
	int fd = open(RECORDED, O_RDONLY | O_CLOEXEC);
	unsigned n = 0;

	cr_assert_eq(buf_read_file(&file, fd, RECORDED), 0);
	(void)close(fd);
	(void)buf_cstr(&file);
	for (char *line = (char *)file.data, *end; (end = strchr(line, '\n')); n++) {
		const char *json = line;

		*end = '\0';
		buf_reset(&wanted);
		for (line = end + 1; *line == '|'; line = end + 1) {
			end = strchr(line, '\n');
			buf_put(&wanted, line + 1, (size_t)(end - line));
		}
		expect_sorted(json, buf_cstr(&wanted));
	}
	cr_assert_eq(n, 214);
}

Test(yaml_write, an_item_of_a_list_is_indented_and_folded_as_one)
{
	CLEANUP(buf_release) struct buf body = BUF_INIT, yaml = BUF_INIT, text = BUF_INIT;

	buf_str(&text, "{\"a\":\"");
	for (int i = 0; i < 20; i++)
		buf_str(&text, "word ");
	buf_str(&text, "\",\"b\":\"x\\ny\"}");
	body_put(buf_cstr(&text), &body);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(yaml_write(buf_bytes(&body), true, &yaml), 0);
	static const char item[] = "- a: 'word word word word word word word word word word word "
				   "word word word word word\n"
				   "    word word word word '\n  b: |-\n    x\n    y\n";
	buf_reset(&text);
	buf_printf(&text, "%s%s", item, item);
	cr_assert_str_eq(buf_cstr(&yaml), buf_cstr(&text));
}

Test(yaml_write, a_damaged_body_is_an_error_and_leaves_the_output)
{
	static const uint8_t cut[] = {0x82, 0xa1, 'a', 0x01, 0xa1};
	CLEANUP(buf_release) struct buf out = BUF_INIT;

	buf_str(&out, "before");
	cr_assert_eq(yaml_write(BYTES(cut, sizeof(cut)), false, &out), ERR_CORRUPT);
	cr_assert_eq(out.size, 6);
	cr_assert_eq(yaml_write(BYTES(cut, 0), false, &out), ERR_CORRUPT);
}

Test(yaml_write, a_full_output_is_an_error_and_as_long_as_before)
{
	CLEANUP(buf_release) struct buf body = BUF_INIT, out;

	buf_init(&out, 8);
	body_put("{\"name\":\"longer than that\"}", &body);
	cr_assert_eq(yaml_write(buf_bytes(&body), false, &out), ERR_TOO_LARGE);
	cr_assert_eq(out.size, 0);
}

/* ---- what is written reads back the same -------------------------------- */

/* Strings with another meaning in YAML, or impossible as a plain scalar. kubectl writes << and =
 * plain, and some readers refuse them. */
static const char *const awkward[] = {"", " ", "a ", " a", "~", "null", "Null", "true", "False",
	"yes", "NO", "on", "Off", "y", "n", "1", "-1", "+1", "1e3", "1E+3", "0x1F", "0o17", "017",
	"0b11", "1_000", "1.", ".5", "1.5", "-.inf", ".NaN", "1:30", "1:30.5", "2026-01-01",
	"2026-01-01T00:00:00Z", "2026-1-1", "-", "- a", "?", ": a", "a: b", "a:", "a #b", "#a", "*",
	"&a", "!a", "|", ">", "%a", "@a", "`a", "'", "\"", "\"a\"", "[a]", "{a}", "a, b", ",",
	"---", "...", "--- a", "a\tb", "\t", "a\nb", "a\nb\n", "a\n\n", "\n", "\na", " a\nb",
	"a \nb", "a\n b\n  c", "a\n#b\n", "a\r\nb", "\r", "\x01", "\x7f",
	"a\xc2\x85"
	"b",
	"a\n\xe2\x80\xa8"
	"b",
	"\xef\xbb\xbf"
	"a",
	"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80\nx", "\xc3\xa9t\xc3\xa9", "5s", "1.2.3", "nginx:1.25",
	"1a", "0x", "e3", ".", "-.", "key: |\n  block\n", "a\n---\nb", "a\n...\n", "\\n", "\\"};
#define N_AWKWARD (sizeof(awkward) / sizeof(*awkward))

/* Each as a value, as a list item within a list, and as a key. */
static void awkward_document(struct buf *json)
{
	buf_str(json, "{\"values\":[");
	for (size_t i = 0; i < N_AWKWARD; i++) {
		buf_str(json, i ? "," : "");
		json_write_string(bytes_str(awkward[i]), json);
	}
	buf_str(json, "],\"lists\":[");
	for (size_t i = 0; i < N_AWKWARD; i++) {
		buf_str(json, i ? ",[" : "[");
		json_write_string(bytes_str(awkward[i]), json);
		buf_str(json, "]");
	}
	buf_str(json, "],\"keys\":{");
	for (size_t i = 0; i < N_AWKWARD; i++) {
		buf_str(json, i ? "," : "");
		json_write_string(bytes_str(awkward[i]), json);
		buf_str(json, ":{\"at\":");
		json_write_string(bytes_str(awkward[i]), json);
		buf_str(json, "}");
	}
	buf_str(json, "}}");
	cr_assert_eq(buf_error(json), 0);
}

/* PyYAML reads YAML 1.1, with all its surprises. */
Test(yaml_write, a_yaml_1_1_reader_gets_the_same_document)
{
	CLEANUP(buf_release) struct buf json = BUF_INIT;
	char directory[] = "/tmp/kinf-unit-yaml-XXXXXX", command[400];

	awkward_document(&json);
	AUTO_FREE char *text = written(buf_cstr(&json));
	cr_assert_not_null(mkdtemp(directory));
	for (int i = 0; i < 2; i++) {
		char path[64];
		(void)snprintf(path, sizeof(path), "%s/%s", directory, i ? "yaml" : "json");
		FILE *file = fopen(path, "w");
		cr_assert_not_null(file);
		(void)fputs(i ? text : buf_cstr(&json), file);
		cr_assert_eq(fclose(file), 0);
	}
	(void)snprintf(command, sizeof(command),
		"/usr/bin/python3 -c 'import json, sys, yaml\n"
		"a = json.load(open(sys.argv[1] + \"/json\")); b = yaml.safe_load(open(sys.argv[1] "
		"+ \"/yaml\"))\n"
		"sys.exit(0 if a == b and list(a[\"keys\"]) == list(b[\"keys\"]) else 1)' %s; "
		"r=$?; rm -r %s; exit $r",
		directory, directory);
	FILE *python = popen(command, "r");
	cr_assert_not_null(python);
	cr_assert_eq(pclose(python), 0, "%s", text);
}
