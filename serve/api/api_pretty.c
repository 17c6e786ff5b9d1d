/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/api/api_pretty.h"

static void pretty_new_line(const struct api_pretty *pretty, struct buf *out)
{
	buf_byte(out, '\n');
	for (size_t i = 0; i < pretty->depth; i++)
		buf_str(out, "  ");
}

static void pretty_character(struct api_pretty *pretty, char c, struct buf *out)
{
	bool opened = pretty->opened;

	pretty->opened = c == '{' || c == '[';
	if (c == '}' || c == ']') {
		pretty->depth -= pretty->depth > 0;
		if (!opened)
			pretty_new_line(pretty, out);
	} else if (opened) {
		pretty_new_line(pretty, out);
	}
	buf_byte(out, (uint8_t)c);
	if (pretty->opened)
		pretty->depth++;
	else if (c == ',')
		pretty_new_line(pretty, out);
	else if (c == ':')
		buf_byte(out, ' ');
	pretty->in_string = c == '"';
}

void api_pretty_put(struct api_pretty *pretty, struct bytes json, struct buf *out)
{
	const char *p = json.data, *end = p + json.size;

	while (p < end) {
		if (!pretty->in_string) {
			if (*p != '\n')
				pretty_character(pretty, *p, out);
			p++;
			continue;
		}
		/* To the end of the string, or of the piece. */
		const char *begin = p;
		while (p < end && pretty->in_string) {
			pretty->in_string = pretty->after_escape || *p != '"';
			pretty->after_escape = !pretty->after_escape && *p == '\\';
			p++;
		}
		buf_put(out, begin, (size_t)(p - begin));
	}
}
