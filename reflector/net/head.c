/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/head.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "common/err.h"
#include "common/hash.h"

/* Returns: whether LINE is header NAME; *RET_VALUE is its value. */
static bool head_value(struct bytes line, const char *name, struct bytes *ret_value)
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

static void head_set_text(char *text, size_t size, struct bytes value)
{
	size_t n = value.size < size ? value.size : size - 1;

	memcpy(text, value.data, n);
	text[n] = '\0';
}

/* Reads seconds, the API servers' form. A date is ignored: comparing it needs the server's
 * clock. */
static void head_set_retry_after(struct http_head *head, struct bytes value)
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

int head_line(struct http_head *head, struct bytes line)
{
	const char *text = line.data;
	struct bytes value;

	while (line.size && (text[line.size - 1] == '\n' || text[line.size - 1] == '\r'))
		line.size--;
	if (!line.size)
		return head->status >= 200 ? END : 0;
	if (bytes_starts(line, BYTES_LIT("HTTP/"))) { /* "HTTP/2 200" or "HTTP/1.1 200 OK" */
		size_t i = strlen("HTTP/");

		*head = (struct http_head){.version = i < line.size && text[i] == '1' ? 1 : 2};
		while (i < line.size && text[i] != ' ')
			i++;
		for (i++; i < line.size && text[i] >= '0' && text[i] <= '9' && head->status < 100;
			i++)
			head->status = 10 * head->status + (text[i] - '0');
	} else if (head_value(line, "content-type", &value)) {
		head_set_text(head->content_type, sizeof(head->content_type), value);
	} else if (head_value(line, "etag", &value) && value.size < sizeof(head->etag)) {
		head_set_text(head->etag, sizeof(head->etag), value);
	} else if (head_value(line, "retry-after", &value)) {
		head_set_retry_after(head, value);
	} else if (head_value(line, "warning", &value)) {
		/* Appends the text of `299 - "text"`, cut to the room left. */
		const char *first = memchr(value.data, '"', value.size);
		const char *last = memrchr(value.data, '"', value.size);
		size_t used = strlen(head->warning);

		if (first && last > first)
			value = BYTES(first + 1, (size_t)(last - first - 1));
		if (used && used < sizeof(head->warning) - 3) {
			memcpy(head->warning + used, "; ", 3);
			used += 2;
		}
		head_set_text(head->warning + used, sizeof(head->warning) - used, value);
	}
	return 0;
}

bool warnings_are_new(struct warnings *warnings, const char *text)
{
	/* Two texts with one hash cost a line in the log, no more. */
	uint64_t hash = hash_bytes(bytes_str(text), 0);

	for (size_t i = 0; i < warnings->n; i++)
		if (warnings->said[i] == hash)
			return false;
	if (warnings->n == WARNINGS_MAX)
		return false;
	warnings->said[warnings->n++] = hash;
	return true;
}
