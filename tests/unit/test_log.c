/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/log.h"
#include "common/value/yaml.h"

static int ends[2];

/* A sequenced packet socket keeps each write(2) apart, so that "one write" can be seen. */
static void capture(enum log_level max, enum log_format format)
{
	int size = 1 << 20;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
	cr_assert_eq(setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	cr_assert_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	log_setup("kinf-test", max, format);
}

/* What one write wrote; "" when nothing did. */
static const char *captured(void)
{
	static char line[65536];
	ssize_t n = recv(ends[0], line, sizeof(line) - 1, 0);

	line[n > 0 ? n : 0] = '\0';
	return line;
}

/* The line without its time, which is checked. */
static const char *text_line(void)
{
	const char *line = captured();
	static const char shape[] = "dddd-dd-ddTdd:dd:dd.dddZ ";

	for (size_t i = 0; shape[i]; i++) {
		bool digit = line[i] >= '0' && line[i] <= '9';
		cr_assert(shape[i] == 'd' ? digit : line[i] == shape[i], "%s", line);
	}
	return line + strlen(shape);
}

Test(log, line_is_time_level_tag_event_and_pairs)
{
	capture(LOG_NOTICE, LOG_TEXT);
	log_event(LOG_NOTICE, "feed", "listed", "feed=%s objects=%d", "pods", 7);
	cr_assert_str_eq(text_line(), "notice feed listed feed=pods objects=7\n");
	log_event(LOG_ERROR, "run", "ended", " ");
	cr_assert_str_eq(text_line(), "error run ended  \n");
}

Test(log, levels_beyond_the_limit_are_silent)
{
	capture(LOG_WARNING, LOG_TEXT);
	log_event(LOG_NOTICE, "a", "b", "c=%d", 1);
	cr_assert_str_eq(captured(), "");
	log_event(LOG_WARNING, "a", "b", "c=%d", 1);
	cr_assert_str_eq(text_line(), "warning a b c=1\n");
}

Test(log, event_stays_one_line_whatever_the_text)
{
	capture(LOG_NOTICE, LOG_TEXT);
	log_event(LOG_NOTICE, "a", "b", "c=%s", "x\ny\x1b[0m");
	cr_assert_str_eq(text_line(), "notice a b c=x\\x0ay\\x1b[0m\n");
	cr_assert_str_eq(captured(), "", "in one write");
}

Test(log, errno_is_left_as_it_was)
{
	capture(LOG_NOTICE, LOG_JSON);
	errno = EXDEV;
	log_event(LOG_NOTICE, "a", "b", "c=%d", 1);
	cr_assert_eq(errno, EXDEV);
}

/* Value of KEY in a JSON line, parsed as the YAML that JSON is. */
static void expect_json(struct yaml *yaml, const char *key, const char *value)
{
	const char *text = yaml_text(yaml_root(yaml), key);

	cr_assert(text, "no %s", key);
	cr_expect_str_eq(text, value, "%s: '%s'", key, text);
}

static struct yaml *json_line(void)
{
	const char *line = captured();
	struct yaml *yaml = NULL;

	cr_assert_eq(line[strlen(line) - 1], '\n');
	cr_assert_eq(strchr(line, '\n'), line + strlen(line) - 1);
	cr_assert_eq(yaml_parse(line, strlen(line), "line", &yaml), 0, "%s", line);
	return yaml;
}

Test(log, json_line_has_the_pairs_as_strings)
{
	capture(LOG_NOTICE, LOG_JSON);
	log_event(LOG_NOTICE, "feed", "listed", "feed=pods objects=7 error=%s word event=x",
		log_quote("say \"hi\"\n\\ \x01 \xff \xc3\xa9"));
	struct yaml *yaml = json_line();
	expect_json(yaml, "level", "notice");
	expect_json(yaml, "program", "kinf-test");
	expect_json(yaml, "tag", "feed");
	expect_json(yaml, "event", "listed");
	expect_json(yaml, "feed", "pods");
	expect_json(yaml, "objects", "7");
	expect_json(yaml, "error", "say \"hi\"\n\\ \x01 \xef\xbf\xbd \xc3\xa9");
	expect_json(yaml, "word", "");
	expect_json(yaml, "event_", "x");
	yaml_free(&yaml);
}

Test(log, json_is_valid_for_any_byte)
{
	char text[7] = "a= b=?";

	capture(LOG_NOTICE, LOG_JSON);
	for (int byte = 1; byte < 256; byte++) {
		text[0] = (char)byte;
		text[5] = (char)byte;
		log_event(LOG_NOTICE, "t", "e", "x=1 %s", text);
		const char *line = captured();
		unsigned quotes = 0;
		for (const char *p = line; *p; p++) {
			cr_assert((unsigned char)*p >= 0x20 || p[1] == '\0', "byte %d: %s", byte, line);
			if (*p == '\\')
				p++;
			else if (*p == '"')
				quotes++;
		}
		cr_assert_eq(quotes % 4, 0, "byte %d: %s", byte, line);
		cr_assert_null(memchr(line, 0xff, strlen(line)));
	}
}

Test(log, long_lines_are_cut_and_still_whole_json)
{
	static char text[20000];

	memset(text, '\\', sizeof(text) - 1);
	capture(LOG_NOTICE, LOG_JSON);
	log_event(LOG_NOTICE, "t", "e", "x=%s", text);
	struct yaml *yaml = json_line();
	cr_assert_gt(strlen(yaml_text(yaml_root(yaml), "x")), 4000);
	yaml_free(&yaml);
}

Test(log, quotes_escape_and_are_cut)
{
	static char text[2000];

	cr_assert_str_eq(log_quote("plain"), "\"plain\"");
	cr_assert_str_eq(log_quote(""), "\"\"");
	cr_assert_str_eq(log_quote(NULL), "\"\"");
	cr_assert_str_eq(log_quote("a\"b\\c\nd\te\x7f"), "\"a\\\"b\\\\c\\nd\\te\\x7f\"");
	cr_assert_str_eq(log_quote("\xf0\x9f\x98\x80 \xed\xa0\x80"),
		"\"\xf0\x9f\x98\x80 \\xed\\xa0\\x80\"", "a surrogate is no character");
	memset(text, 'x', sizeof(text) - 1);
	const char *quoted = log_quote(text);
	cr_assert_eq(strlen(quoted), 504);
	cr_assert_str_eq(quoted + 499, "x...\"");
}

Test(log, four_quotes_fit_into_one_line)
{
	const char *q[4] = {log_quote("1"), log_quote("2"), log_quote("3"), log_quote("4")};

	cr_assert_str_eq(q[0], "\"1\"");
	cr_assert_str_eq(q[3], "\"4\"");
}
