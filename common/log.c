/* SPDX-License-Identifier: Apache-2.0 */
#include "common/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/utf8.h"

#define PAIRS_MAX 4096
#define LINE_SIZE  (6 * PAIRS_MAX + 1024) /* a byte takes at most six in JSON */
#define QUOTE_MAX 500
#define QUOTES    4

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

/* A line is built in fixed memory, so that "out of memory" can be logged; what does not fit is cut
 * (the size keeps room for closing a JSON object). */
struct line {
	size_t size;
	char text[LINE_SIZE];
};

static void put(struct line *line, const char *text, size_t size)
{
	size_t room = sizeof(line->text) - 8 - line->size;

	if (size > room)
		return;
	memcpy(line->text + line->size, text, size);
	line->size += size;
}

static void put_str(struct line *line, const char *text)
{
	put(line, text, strlen(text));
}

static void put_hex(struct line *line, const char *prefix, uint8_t byte)
{
	static const char digits[] = "0123456789abcdef";
	char hex[2] = {digits[byte >> 4], digits[byte & 15]};

	put_str(line, prefix);
	put(line, hex, 2);
}

static void put_time(struct line *line)
{
	struct timespec now;
	struct tm tm;
	char text[64];

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &tm);
	size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(text + n, sizeof(text) - n, ".%03ldZ", now.tv_nsec / 1000000);
	put_str(line, text);
}

/* ---- text ---------------------------------------------------------------------------------------- */

/* One event is one line, whatever the bytes. */
static void put_plain(struct line *line, const char *text)
{
	for (const char *p = text; *p; p++) {
		uint8_t c = (uint8_t)*p;
		if (c < 0x20 || c == 0x7f)
			put_hex(line, "\\x", c);
		else
			put(line, p, 1);
	}
}

static void build_text(struct line *line, const char *words[3], const char *pairs)
{
	put_time(line);
	for (int i = 0; i < 3; i++) {
		put_str(line, " ");
		put_plain(line, words[i]);
	}
	if (*pairs) {
		put_str(line, " ");
		put_plain(line, pairs);
	}
}

/* ---- JSON ---------------------------------------------------------------------------------------- */

static void put_json(struct line *line, const void *data, size_t size)
{
	const uint8_t *p = data;

	put_str(line, "\"");
	while (size) {
		size_t n = utf8_length(BYTES(p, size));
		if (!n)
			put_str(line, "\\ufffd");
		else if (*p == '"' || *p == '\\')
			put(line, (const char[]){'\\', (char)*p}, 2);
		else if (*p < 0x20 || *p == 0x7f)
			put_hex(line, "\\u00", *p);
		else
			put(line, (const char *)p, n);
		p += n ? n : 1;
		size -= n ? n : 1;
	}
	put_str(line, "\"");
}

static void put_member(struct line *line, const char *key, const char *value)
{
	put_str(line, line->size > 1 ? "," : "");
	put_json(line, key, strlen(key));
	put_str(line, ":");
	put_json(line, value, strlen(value));
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Undoes log_quote() in place of what follows an opening quote; returns what is behind the closing
 * one (or the end). VALUE gets the bytes, with a NUL. */
static const char *unquote(const char *p, char *value)
{
	while (*p && *p != '"') {
		char c = *p++;
		if (c == '\\' && *p) {
			c = *p++;
			if (c == 'n')
				c = '\n';
			else if (c == 't')
				c = '\t';
			else if (c == 'x' && hex_digit(p[0]) >= 0 && hex_digit(p[1]) >= 0) {
				c = (char)(hex_digit(p[0]) << 4 | hex_digit(p[1]));
				p += 2;
			}
		}
		*value++ = c;
	}
	*value = '\0';
	return *p ? p + 1 : p;
}

/* Next `key=value` of PAIRS; a word without = is a key with an empty value. */
static const char *next_pair(const char *p, char *key, char *value)
{
	size_t n = strcspn(p, "= ");

	memcpy(key, p, n);
	key[n] = '\0';
	value[0] = '\0';
	p += n;
	if (*p != '=')
		return p;
	if (*++p == '"')
		return unquote(p + 1, value);
	n = strcspn(p, " ");
	memcpy(value, p, n);
	value[n] = '\0';
	return p + n;
}

/* A pair may not take the place of what every line has. */
static bool is_reserved(const char *key)
{
	static const char *const reserved[] = {"time", "level", "program", "tag", "event"};

	for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); i++) {
		if (strcmp(key, reserved[i]) == 0)
			return true;
	}
	return false;
}

static void build_json(struct line *line, const char *words[3], const char *pairs)
{
	char key[PAIRS_MAX + 1], value[PAIRS_MAX];

	put_str(line, "{\"time\":\"");
	put_time(line);
	put_str(line, "\"");
	put_member(line, "level", words[0]);
	put_member(line, "program", setup.program);
	put_member(line, "tag", words[1]);
	put_member(line, "event", words[2]);
	for (const char *p = pairs + strspn(pairs, " "); *p; p += strspn(p, " ")) {
		p = next_pair(p, key, value);
		if (is_reserved(key))
			(void)memcpy(key + strlen(key), "_", 2);
		put_member(line, key, value);
	}
	put_str(line, "}");
}

/* ---- public -------------------------------------------------------------------------------------- */

/* One write(2): lines of several processes on one stderr do not mix. A log that cannot be written is
 * nobody's error. */
static void write_line(struct line *line)
{
	line->text[line->size++] = '\n';
	ssize_t n;
	do {
		n = write(STDERR_FILENO, line->text, line->size);
	} while (n < 0 && errno == EINTR);
}

void log_event(enum log_level level, const char *tag, const char *event, const char *format, ...)
{
	if (level > setup.max)
		return;
	int saved = errno;
	char pairs[PAIRS_MAX];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(pairs, sizeof(pairs), format, args);
	va_end(args);
	if (n < 0)
		pairs[0] = '\0';
	struct line line;
	line.size = 0;
	const char *words[3] = {level_names[level], tag, event};
	if (setup.format == LOG_JSON)
		build_json(&line, words, pairs);
	else
		build_text(&line, words, pairs);
	write_line(&line);
	errno = saved;
}

/* Escapes one character of TEXT into at most four bytes; returns how many bytes it took. */
static size_t escape(const uint8_t *text, size_t left, char escaped[5])
{
	size_t n = utf8_length(BYTES(text, left));
	uint8_t c = text[0];

	if (n && (c == '"' || c == '\\'))
		(void)snprintf(escaped, 5, "\\%c", c);
	else if (n && (c == '\n' || c == '\t'))
		(void)snprintf(escaped, 5, "\\%c", c == '\n' ? 'n' : 't');
	else if (!n || c < 0x20 || c == 0x7f)
		(void)snprintf(escaped, 5, "\\x%02x", c);
	else
		(void)snprintf(escaped, 5, "%.*s", (int)n, (const char *)text);
	return n ? n : 1;
}

const char *log_quote(const char *text)
{
	static _Thread_local char quotes[QUOTES][QUOTE_MAX + 8];
	static _Thread_local unsigned turn;
	char *out = quotes[turn++ % QUOTES];
	const uint8_t *p = (const uint8_t *)(text ? text : "");
	size_t left = strlen((const char *)p), size = 0;

	out[size++] = '"';
	while (left) {
		char escaped[5];
		size_t taken = escape(p, left, escaped), n = strlen(escaped);
		if (size + n > QUOTE_MAX)
			break;
		memcpy(out + size, escaped, n);
		size += n;
		p += taken;
		left -= taken;
	}
	(void)memcpy(out + size, left ? "...\"" : "\"", left ? 5 : 2);
	return out;
}
