/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/text/timestamp.h"
#include "common/text/utf8.h"

#define VALUE_MAX   1200 /* bytes of one string with its escapes; more is cut */
#define LINE_SIZE   16384
#define PATIENCE_MS 1000 /* for the log's reader */

enum log_field_type { FIELD_END, FIELD_STR, FIELD_U64, FIELD_I64, FIELD_SECONDS, FIELD_FLAG };

struct log_field {
	const char *name;
	enum log_field_type type;
};

struct log_event {
	const char *name;
	enum log_level level;
	const struct log_field *fields;
};

#define STR(name)     {#name, FIELD_STR},
#define U64(name)     {#name, FIELD_U64},
#define I64(name)     {#name, FIELD_I64},
#define SECONDS(name) {#name, FIELD_SECONDS},
#define FLAG(name)    {#name, FIELD_FLAG},
#define EVENT(id, level, help, fields) \
	static const struct log_field id##_fields[] = {fields{NULL, FIELD_END}};
#include "common/log.def"
#undef EVENT

/* Field i is at byte 8 * i, and a line has room for every field. */
#define EVENT(id, level, help, fields) \
	_Static_assert(sizeof(struct log_##id) == 8 * (ARRAY_SIZE(id##_fields) - 1) && \
			       sizeof(struct log_##id) <= 8 * 12, \
		"fields of " #id);
#include "common/log.def"
#undef EVENT

static const struct log_event log_events[LOG_IDS] = {
#define EVENT(id, level, help, fields) {#id, LOG_##level, id##_fields},
#include "common/log.def"
#undef EVENT
};

static struct {
	const char *program;
	enum log_level max;
	enum log_format format;
	bool journal; /* stderr is systemd's journal */
} log_settings = {.program = "kinf", .max = LOG_NOTICE, .format = LOG_TEXT};

static uint64_t log_lost; /* lines since the last written one. Atomic, relaxed */

static const char *const log_level_names[LOG_LEVEL_MAX] = {
	[LOG_ERROR] = "error",
	[LOG_WARNING] = "warning",
	[LOG_NOTICE] = "notice",
	[LOG_INFO] = "info",
	[LOG_DEBUG] = "debug",
};

void log_setup(const char *program, enum log_level max, enum log_format format)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	/* As sd_journal_print(3): systemd names device and inode of the stream at stderr. */
	log_settings.journal = stream && sscanf(stream, "%llu:%llu", &device, &inode) == 2 &&
			       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device &&
			       st.st_ino == inode;
	log_settings.program = program;
	log_settings.max = max;
	log_settings.format = format;
}

/* A line is in fixed memory: "out of memory" must be logged. It holds twelve strings of VALUE_MAX;
 * the check is a second fence. */
struct log_line {
	size_t size;
	char text[LINE_SIZE];
};

static void log_line_put(struct log_line *line, const char *text, size_t size)
{
	if (size > sizeof(line->text) - 1 - line->size)
		return;
	memcpy(line->text + line->size, text, size);
	line->size += size;
}

static void log_line_puts(struct log_line *line, const char *text)
{
	log_line_put(line, text, strlen(text));
}

/* Escapes one character of the SIZE bytes at TEXT, for JSON (U+FFFD for invalid UTF-8) or as in C.
 * Returns its bytes of TEXT. */
static size_t log_escape(const uint8_t *text, size_t size, char escaped[8])
{
	size_t n = utf8_length(BYTES(text, size));
	bool is_control = n && !utf8_printable(BYTES(text, size));
	bool json = log_settings.format == LOG_JSON;
	uint8_t c = text[0];

	if (!n)
		(void)snprintf(escaped, 8, json ? "\\ufffd" : "\\x%02x", c);
	else if (c == '"' || c == '\\')
		(void)snprintf(escaped, 8, "\\%c", c);
	else if (c == '\n' || c == '\t')
		(void)snprintf(escaped, 8, "\\%c", c == '\n' ? 'n' : 't');
	else if (is_control && (json || n == 2)) /* of two bytes: U+0080 to U+009F */
		(void)snprintf(escaped, 8, "\\u%04x", n == 2 ? (uint8_t)text[1] : c);
	else if (is_control)
		(void)snprintf(escaped, 8, "\\x%02x", c);
	else
		(void)snprintf(escaped, 8, "%.*s", (int)n, (const char *)text);
	return n ? n : 1;
}

static void log_line_put_string(struct log_line *line, const char *text)
{
	const uint8_t *p = (const uint8_t *)text;
	size_t left = strlen(text), room = VALUE_MAX;
	char escaped[8];

	log_line_puts(line, "\"");
	while (left) {
		size_t taken = log_escape(p, left, escaped), n = strlen(escaped);
		if (n > room)
			break;
		log_line_put(line, escaped, n);
		room -= n;
		p += taken;
		left -= taken;
	}
	log_line_puts(line, left ? "...\"" : "\"");
}

static void log_line_put_field(struct log_line *line, enum log_field_type type, const void *slot)
{
	const uint64_t u = type == FIELD_STR || type == FIELD_FLAG ? 0 : *(const uint64_t *)slot;
	char text[32] = "";

	if (type == FIELD_STR)
		log_line_put_string(line, *(const char *const *)slot);
	else if (type == FIELD_FLAG)
		log_line_puts(line, *(const bool *)slot ? "true" : "false");
	else if (type == FIELD_U64)
		(void)snprintf(text, sizeof(text), "%" PRIu64, u);
	else if (type == FIELD_I64)
		(void)snprintf(text, sizeof(text), "%" PRId64, *(const int64_t *)slot);
	else
		(void)snprintf(text, sizeof(text), "%" PRIu64 ".%03" PRIu64, u / 1000000000,
			u / 1000000 % 1000);
	log_line_puts(line, text);
}

static void log_line_make(
	struct log_line *line, const struct log_event *event, const uint64_t *slot)
{
	bool json = log_settings.format == LOG_JSON;
	struct timespec now;
	char time_text[TIMESTAMP_SIZE];

	line->size = 0;
	if (log_settings.journal) { /* sd-daemon(3) */
		const char prefix[] = {'<', (char)('3' + event->level), '>', '\0'};
		log_line_puts(line, prefix);
	}
	if (json || !log_settings.journal) {
		log_line_puts(line, json ? "{\"time\":\"" : "");
		(void)clock_gettime(CLOCK_REALTIME, &now);
		timestamp_milliseconds(
			(uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec, time_text);
		log_line_puts(line, time_text);
		log_line_puts(line, json ? "\",\"level\":\"" : " ");
	}
	log_line_puts(line, log_level_names[event->level]);
	if (json) {
		log_line_puts(line, "\",\"program\":");
		log_line_put_string(line, log_settings.program);
	}
	log_line_puts(line, json ? ",\"event\":\"" : " ");
	log_line_puts(line, event->name);
	log_line_puts(line, json ? "\"" : "");
	for (const struct log_field *field = event->fields; field->name; field++, slot++) {
		if (field->type == FIELD_STR && !*(const char *const *)(const void *)slot)
			continue;
		log_line_puts(line, json ? ",\"" : " ");
		log_line_puts(line, field->name);
		log_line_puts(line, json ? "\":" : "=");
		log_line_put_field(line, field->type, slot);
	}
	log_line_puts(line, json ? "}\n" : "\n");
}

void log_write(enum log_id id, const void *fields)
{
	const struct log_event *event = &log_events[id];
	struct pollfd output = {.fd = STDERR_FILENO, .events = POLLOUT};
	struct log_line line;
	int n, saved = errno;

	if (event->level > log_settings.max)
		return;
	/* A full pipe is waited for, but a stuck reader of the log must not stop a daemon. */
	do {
		n = poll(
			&output, 1, __atomic_load_n(&log_lost, __ATOMIC_RELAXED) ? 0 : PATIENCE_MS);
	} while (n < 0 && errno == EINTR);
	if (n != 0) { /* write(2) reports other errors */
		uint64_t lost = __atomic_exchange_n(&log_lost, 0, __ATOMIC_RELAXED);

		if (lost)
			LOG(log_lines_lost, .lines = lost);
		log_line_make(&line, event, fields);
		/* One write(2): lines of processes on one stderr do not mix. A failed line is
		 * lost. */
		while (write(STDERR_FILENO, line.text, line.size) < 0 && errno == EINTR)
			;
	} else {
		const struct log_log_lines_lost *more = id == LOG_ID_log_lines_lost ? fields : NULL;

		(void)__atomic_add_fetch(&log_lost, more ? more->lines : 1, __ATOMIC_RELAXED);
	}
	errno = saved;
}
