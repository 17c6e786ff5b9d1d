/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/wire/head.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "common/err.h"

/* VALUE, when LINE is header NAME. */
static bool header_is(struct bytes line, const char *name, struct bytes *ret_value)
{
	const char *text = line.data;
	size_t n = strlen(name);

	if (line.size <= n || text[n] != ':' || strncasecmp(text, name, n))
		return false;
	for (n++; n < line.size && (text[n] == ' ' || text[n] == '\t'); n++)
		;
	*ret_value = BYTES(text + n, line.size - n);
	return true;
}

static void text_set(char *text, size_t size, struct bytes value)
{
	size_t n = value.size < size ? value.size : size - 1;

	memcpy(text, value.data, n);
	text[n] = '\0';
}

/* `299 - "text"`: the text. */
static struct bytes warning_text(struct bytes value)
{
	const char *text = value.data;
	const char *first = memchr(text, '"', value.size);
	const char *last = memrchr(text, '"', value.size);

	return first && last > first ? BYTES(first + 1, (size_t)(last - first - 1)) : value;
}

/* As much of it as there is room for. */
static void warning_add(struct head *head, struct bytes text)
{
	size_t used = strlen(head->warning);

	if (used && used < sizeof(head->warning) - 3) {
		memcpy(head->warning + used, "; ", 3);
		used += 2;
	}
	text_set(head->warning + used, sizeof(head->warning) - used, text);
}

/* Seconds, as API servers send it. A date would need the server's clock, other text is nothing. */
static void retry_after(struct head *head, struct bytes value)
{
	const char *text = value.data;
	uint64_t seconds = 0;

	while (value.size && (text[value.size - 1] == ' ' || text[value.size - 1] == '\t'))
		value.size--;
	for (size_t i = 0; i < value.size; i++) {
		if (text[i] < '0' || text[i] > '9')
			return;
		seconds = 10 * seconds + (uint64_t)(text[i] - '0');
		if (seconds > UINT32_MAX)
			seconds = UINT32_MAX;
	}
	head->has_retry_after = value.size != 0;
	head->retry_after_s = (uint32_t)seconds;
}

/* "HTTP/2 200" or "HTTP/1.1 200 OK". */
static void status_line(struct head *head, struct bytes line)
{
	const char *text = line.data;
	size_t i = strlen("HTTP/");

	*head = (struct head){.version = i < line.size && text[i] == '1' ? 1 : 2};
	while (i < line.size && text[i] != ' ')
		i++;
	for (i++; i < line.size && text[i] >= '0' && text[i] <= '9' && head->status < 100; i++)
		head->status = 10 * head->status + (text[i] - '0');
}

int head_line(struct head *head, struct bytes line)
{
	const char *text = line.data;
	struct bytes value;

	while (line.size && (text[line.size - 1] == '\n' || text[line.size - 1] == '\r'))
		line.size--;
	if (!line.size)
		return head->status >= 200 ? END : 0;
	if (bytes_starts(line, BYTES_LIT("HTTP/")))
		status_line(head, line);
	else if (header_is(line, "content-type", &value))
		text_set(head->content_type, sizeof(head->content_type), value);
	else if (header_is(line, "etag", &value) && value.size < sizeof(head->etag))
		text_set(head->etag, sizeof(head->etag), value);
	else if (header_is(line, "retry-after", &value))
		retry_after(head, value);
	else if (header_is(line, "warning", &value))
		warning_add(head, warning_text(value));
	return 0;
}
