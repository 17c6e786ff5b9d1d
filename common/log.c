/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/utf8.h"

#define VALUE_MAX 1200 /* bytes of one string with its escapes; more is cut */
#define LINE_SIZE 16384

enum field_type { FIELD_END, FIELD_STR, FIELD_U64, FIELD_I64, FIELD_SECONDS, FIELD_FLAG };

struct field {
	const char *name;
	enum field_type type;
};

struct event {
	const char *name;
	enum log_level level;
	const struct field *fields;
};

#define STR(name) {#name, FIELD_STR},
#define U64(name) {#name, FIELD_U64},
#define I64(name) {#name, FIELD_I64},
#define SECONDS(name) {#name, FIELD_SECONDS},
#define FLAG(name) {#name, FIELD_FLAG},
#define EVENT(id, level, help, fields) static const struct field id##_fields[] = {fields {NULL, FIELD_END}};
#include "common/log.def"
#undef EVENT

/* The log finds field number i at byte 8 * i, and a line has room for every field. */
#define EVENT(id, level, help, fields)                                                             \
	_Static_assert(sizeof(struct log_##id) == 8 * (sizeof(id##_fields) / sizeof(struct field) - 1) && \
		sizeof(struct log_##id) <= 8 * 12, "fields of " #id);
#include "common/log.def"
#undef EVENT

static const struct event events[LOG_IDS] = {
#define EVENT(id, level, help, fields) {#id, LOG_##level, id##_fields},
#include "common/log.def"
#undef EVENT
};

static struct {
	const char *program;
	enum log_level max;
	enum log_format format;
} setup = {.program = "kinf", .max = LOG_NOTICE, .format = LOG_TEXT};

static const char *const level_names[LOG_LEVEL_MAX] = {
	[LOG_ERROR] = "error",
	[LOG_WARNING] = "warning",
	[LOG_NOTICE] = "notice",
	[LOG_INFO] = "info",
	[LOG_DEBUG] = "debug",
};

void log_setup(const char *program, enum log_level max, enum log_format format)
{
	setup.program = program;
	setup.max = max;
	setup.format = format;
}

/* A line is built in fixed memory, so that "out of memory" can be logged. It has room for twelve
 * strings of VALUE_MAX; the check is a second fence. */
struct log_line {
	size_t size;
	char text[LINE_SIZE];
};

static void line_put(struct log_line *line, const char *text, size_t size)
{
	if (size > sizeof(line->text) - 1 - line->size)
		return;
	memcpy(line->text + line->size, text, size);
	line->size += size;
}

static void line_puts(struct log_line *line, const char *text)
{
	line_put(line, text, strlen(text));
}

static void line_put_time(struct log_line *line)
{
	struct timespec now;
	struct tm tm;
	char text[64];

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &tm);
	size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(text + n, sizeof(text) - n, ".%03ldZ", now.tv_nsec / 1000000);
	line_puts(line, text);
}

/* Writes one character of the SIZE bytes at TEXT, escaped: in JSON as JSON wants it (a byte that is
 * no UTF-8 becomes U+FFFD), in text as in C. Returns its bytes of TEXT. */
static size_t escape_one(const uint8_t *text, size_t size, char escaped[8])
{
	size_t n = utf8_length(BYTES(text, size));
	bool json = setup.format == LOG_JSON;
	uint8_t c = text[0];

	if (!n)
		(void)snprintf(escaped, 8, json ? "\\ufffd" : "\\x%02x", c);
	else if (c == '"' || c == '\\')
		(void)snprintf(escaped, 8, "\\%c", c);
	else if (c == '\n' || c == '\t')
		(void)snprintf(escaped, 8, "\\%c", c == '\n' ? 'n' : 't');
	else if (c < 0x20 || c == 0x7f)
		(void)snprintf(escaped, 8, json ? "\\u%04x" : "\\x%02x", c);
	else
		(void)snprintf(escaped, 8, "%.*s", (int)n, (const char *)text);
	return n ? n : 1;
}

static void line_put_string(struct log_line *line, const char *text)
{
	const uint8_t *p = (const uint8_t *)text;
	size_t left = strlen(text), room = VALUE_MAX;
	char escaped[8];

	line_puts(line, "\"");
	while (left) {
		size_t taken = escape_one(p, left, escaped), n = strlen(escaped);
		if (n > room)
			break;
		line_put(line, escaped, n);
		room -= n;
		p += taken;
		left -= taken;
	}
	line_puts(line, left ? "...\"" : "\"");
}

static void line_put_field(struct log_line *line, enum field_type type, const void *slot)
{
	const uint64_t u = type == FIELD_STR || type == FIELD_FLAG ? 0 : *(const uint64_t *)slot;
	char text[32] = "";

	if (type == FIELD_STR)
		line_put_string(line, *(const char *const *)slot);
	else if (type == FIELD_FLAG)
		line_puts(line, *(const bool *)slot ? "true" : "false");
	else if (type == FIELD_U64)
		(void)snprintf(text, sizeof(text), "%" PRIu64, u);
	else if (type == FIELD_I64)
		(void)snprintf(text, sizeof(text), "%" PRId64, *(const int64_t *)slot);
	else
		(void)snprintf(text, sizeof(text), "%" PRIu64 ".%03" PRIu64, u / 1000000000,
			u / 1000000 % 1000);
	line_puts(line, text);
}

static void line_put_head(struct log_line *line, const struct event *event)
{
	bool json = setup.format == LOG_JSON;

	line_puts(line, json ? "{\"time\":\"" : "");
	line_put_time(line);
	line_puts(line, json ? "\",\"level\":\"" : " ");
	line_puts(line, level_names[event->level]);
	if (json) {
		line_puts(line, "\",\"program\":");
		line_put_string(line, setup.program);
	}
	line_puts(line, json ? ",\"event\":\"" : " ");
	line_puts(line, event->name);
	line_puts(line, json ? "\"" : "");
}

/* One write(2), so that lines of several processes on one stderr do not mix. A log that cannot be
 * written is nobody's error. */
void log_write(enum log_id id, const void *fields)
{
	const struct event *event = &events[id];

	if (event->level > setup.max)
		return;
	int saved = errno;
	bool json = setup.format == LOG_JSON;
	struct log_line line;
	line.size = 0;
	line_put_head(&line, event);
	const uint64_t *slot = fields;
	for (const struct field *field = event->fields; field->name; field++, slot++) {
		if (field->type == FIELD_STR && !*(const char *const *)(const void *)slot)
			continue;
		line_puts(&line, json ? ",\"" : " ");
		line_puts(&line, field->name);
		line_puts(&line, json ? "\":" : "=");
		line_put_field(&line, field->type, slot);
	}
	line_puts(&line, json ? "}\n" : "\n");
	ssize_t n;
	do {
		n = write(STDERR_FILENO, line.text, line.size);
	} while (n < 0 && errno == EINTR);
	errno = saved;
}
