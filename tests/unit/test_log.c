/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>

#include "common/log.h"
#include "common/value/yaml.h"
#include "tests/unit/unit.h"

static int ends[2];

/* A sequenced packet socket keeps each write(2) apart, to test for "one write". */
static void capture(enum log_level max, enum log_format format)
{
	int size = 1 << 20;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
	cr_assert_eq(setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
	cr_assert_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	log_setup("kinf-test", max, format);
}

/* Returns the line of one log_write(); "" if there is none. */
static const char *captured(void)
{
	static char line[65536];
	ssize_t n = recv(ends[0], line, sizeof(line) - 1, 0);

	line[n > 0 ? n : 0] = '\0';
	return line;
}

/* Returns the line without its time, after a check of the time. */
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

Test(log, line_is_time_level_event_and_fields)
{
	capture(LOG_NOTICE, LOG_TEXT);
	LOG(feed_listed, .feed = "pods", .id = 3, .objects = UINT64_MAX, .rv = "7");
	cr_assert_str_eq(text_line(),
		"notice feed_listed feed=\"pods\" id=3 objects=18446744073709551615 rv=\"7\"\n");
	LOG(run_reloading);
	cr_assert_str_eq(text_line(), "notice run_reloading\n");
	LOG(run_stopping, .signal = INT64_MIN);
	cr_assert_str_eq(text_line(), "notice run_stopping signal=-9223372036854775808\n");
	LOG(journal_followed, .published = true);
	cr_assert_str_eq(text_line(), "notice journal_followed published=true\n");
	LOG(snapshot_old, .pid = 9, .age_seconds = 61002999999);
	cr_assert_str_eq(text_line(), "warning snapshot_old pid=9 uid=0 age_seconds=61.002\n");
}

Test(log, null_string_leaves_its_field_out)
{
	capture(LOG_NOTICE, LOG_TEXT);
	LOG(feed_listed, .feed = "pods", .rv = "");
	cr_assert_str_eq(text_line(), "notice feed_listed feed=\"pods\" id=0 objects=0 rv=\"\"\n");
	LOG(feed_recovered);
	cr_assert_str_eq(text_line(), "notice feed_recovered\n");
}

/* journalctl -p warning showed none of the daemons' warnings. */
Test(log, the_journal_gets_levels_and_no_time)
{
	char stream[64];
	struct stat st;

	capture(LOG_NOTICE, LOG_TEXT);
	cr_assert_eq(fstat(STDERR_FILENO, &st), 0);
	(void)snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
	cr_assert_eq(setenv("JOURNAL_STREAM", stream, 1), 0);
	log_setup("kinf-test", LOG_NOTICE, LOG_TEXT);
	LOG(snapshot_old, .pid = 9, .age_seconds = 61002999999);
	cr_assert_str_eq(captured(), "<4>warning snapshot_old pid=9 uid=0 age_seconds=61.002\n");
	log_setup("kinf-test", LOG_NOTICE, LOG_JSON);
	LOG(feed_recovered);
	cr_assert_eq(strncmp(captured(), "<5>{\"time\":\"2", strlen("<5>{\"time\":\"2")), 0);
	cr_assert_eq(setenv("JOURNAL_STREAM", "1:1", 1),
		0); /* of a service with its stderr redirected */
	log_setup("kinf-test", LOG_NOTICE, LOG_TEXT);
	LOG(feed_recovered);
	cr_assert_str_eq(text_line(), "notice feed_recovered\n");
}

Test(log, levels_beyond_the_limit_are_silent)
{
	capture(LOG_WARNING, LOG_TEXT);
	LOG(run_stopping, .signal = 1);
	cr_assert_str_eq(captured(), "");
	LOG(snapshot_old, .pid = 1);
	cr_assert_str_eq(text_line(), "warning snapshot_old pid=1 uid=0 age_seconds=0.000\n");
}

Test(log, event_stays_one_line_whatever_the_text)
{
	capture(LOG_NOTICE, LOG_TEXT);
	LOG(feed_recovered, .feed = "x\ny\x1b[0m\t\"\\\x7f \xff \xf0\x9f\x98\x80 \xed\xa0\x80");
	cr_assert_str_eq(text_line(),
		"notice feed_recovered feed=\"x\\ny\\x1b[0m\\t\\\"\\\\\\x7f \\xff "
		"\xf0\x9f\x98\x80 \\xed\\xa0\\x80\"\n",
		"a surrogate is no character");
	cr_assert_str_eq(captured(), "", "in one write");
}

Test(log, errno_is_left_as_it_was)
{
	capture(LOG_NOTICE, LOG_JSON);
	errno = EXDEV;
	LOG(feed_recovered, .feed = "pods");
	cr_assert_eq(errno, EXDEV);
}

/* The daemons stood still, also after SIGTERM, if the reader of their log's pipe did. */
Test(log, nobody_waits_for_a_reader_that_stands_still, .timeout = 30)
{
	static const char full[4096], end[] = "warning log_lines_lost lines=3\n";
	char text[8192];
	ssize_t n;

	cr_assert_eq(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	while (write(ends[1], full, sizeof(full)) > 0)
		;
	cr_assert_eq(fcntl(ends[1], F_SETFL, 0), 0);
	cr_assert_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	log_setup("kinf-test", LOG_NOTICE, LOG_TEXT);
	for (int i = 0; i < 3; i++)
		LOG(feed_recovered, .feed = "pods");
	while (read(ends[0], text, sizeof(text)) > 0)
		;
	LOG(feed_recovered, .feed = "nodes");
	n = read(ends[0], text, sizeof(text) - 1);
	cr_assert_gt(n, 0);
	text[n] = '\0';
	cr_assert_not_null(strstr(text, end), "%s", text);
	cr_assert_not_null(strstr(text, "notice feed_recovered feed=\"nodes\"\n"), "%s", text);
	cr_assert_null(strstr(text, "pods"), "%s", text);
}

/* The line of one write, parsed as YAML (a superset of JSON). */
static struct yaml *json_line(void)
{
	const char *line = captured();
	struct yaml *yaml = NULL;

	cr_assert_eq(line[strlen(line) - 1], '\n');
	cr_assert_eq(strchr(line, '\n'), line + strlen(line) - 1);
	cr_assert_eq(yaml_parse(line, strlen(line), "line", &yaml), 0, "%s", line);
	return yaml;
}

Test(log, json_line_has_the_fields_with_their_types)
{
	capture(LOG_NOTICE, LOG_JSON);
	LOG(child_died, .daemon = "say \"hi\"\n\\ \x01 \xff \xc3\xa9", .pid = -7,
		.restart_in_seconds = 1250000000);
	const char *line = captured();
	const char *rest = strstr(line, "\",\"level\"");
	cr_assert(rest && !strncmp(line, "{\"time\":\"", 9), "%s", line);
	cr_assert_str_eq(rest,
		"\",\"level\":\"warning\",\"program\":\"kinf-test\",\"event\":\"child_died\","
		"\"daemon\":\"say \\\"hi\\\"\\n\\\\ \\u0001 \\ufffd \xc3\xa9\",\"pid\":-7,"
		"\"restart_in_seconds\":1.250}\n");
	LOG(journal_followed);
	cr_assert(strstr(captured(), ",\"event\":\"journal_followed\",\"published\":false}\n"));
}

Test(log, json_is_valid_for_any_byte)
{
	char text[] = "a b?";

	capture(LOG_NOTICE, LOG_JSON);
	for (int byte = 1; byte < 256; byte++) {
		text[0] = (char)byte;
		text[3] = (char)byte;
		LOG(feed_recovered, .feed = text);
		struct yaml *yaml = json_line();
		cr_assert_str_eq(
			yaml_text(yaml_root(yaml), "event"), "feed_recovered", "byte %d", byte);
		const char *feed = yaml_text(yaml_root(yaml), "feed");
		if (byte < 0x80)
			cr_assert_str_eq(feed, text, "byte %d", byte);
		else
			cr_assert_str_eq(feed, "\xef\xbf\xbd b\xef\xbf\xbd", "byte %d", byte);
		yaml_free(&yaml);
	}
}

Test(log, long_strings_are_cut_and_the_line_is_still_whole_json)
{
	static char text[20000];

	memset(text, 1, sizeof(text) - 1);
	capture(LOG_NOTICE, LOG_JSON);
	LOG(feed_added, .feed = text, .id = 1, .resource = text, .group = text, .version = text);
	CLEANUP(yaml_free) struct yaml *yaml = json_line();
	const char *version = yaml_text(yaml_root(yaml), "version");
	cr_assert_eq(strlen(version), 203, "%zu", strlen(version));
	cr_assert_str_eq(version + 199, "\x01...");
}
