/* SPDX-License-Identifier: Apache-2.0 */
/* One row of kinf dump, and the selection of rows. */
#include "command/dump.h"

#include "common/output.h"
#include "common/value/json.h"
#include "common/value/number.h"

static void dump_name(struct dump *dump, const char *name)
{
	buf_str(&dump->out, !dump->json ? " " : dump->first ? "{\"" : ",\"");
	buf_str(&dump->out, name);
	buf_str(&dump->out, dump->json ? "\":" : "=");
	dump->first = false;
}

void dump_begin(struct dump *dump, const char *what)
{
	dump->first = true;
	if (dump->json)
		dump_text(dump, "what", bytes_str(what));
	else
		buf_str(&dump->out, what);
}

void dump_number(struct dump *dump, const char *name, uint64_t number)
{
	char text[NUMBER_TEXT_MAX];

	dump_name(dump, name);
	buf_put(&dump->out, text, number_format_uint(number, text));
}

void dump_text(struct dump *dump, const char *name, struct bytes text)
{
	const uint8_t *p = text.data;
	bool plain = !dump->json && text.size > 0;

	dump_name(dump, name);
	for (size_t i = 0; plain && i < text.size; i++)
		plain = p[i] > ' ' && p[i] < 0x7f && p[i] != '"' && p[i] != '\\';
	if (plain)
		buf_bytes_put(&dump->out, text);
	else
		json_write_string(text, &dump->out);
}

void dump_flag(struct dump *dump, const char *name, bool flag)
{
	if (!flag)
		return;
	dump_name(dump, name);
	buf_str(&dump->out, "true");
}

void dump_uuid(struct dump *dump, const char *name, const uint8_t uuid[16])
{
	dump_name(dump, name);
	buf_str(&dump->out, dump->json ? "\"" : "");
	for (unsigned i = 0; i < 16; i++)
		buf_printf(&dump->out, "%02x", uuid[i]);
	buf_str(&dump->out, dump->json ? "\"" : "");
}

int dump_body(struct dump *dump, struct bytes body)
{
	if (!dump->body || !body.size)
		return 0;
	size_t before = dump->out.size;
	dump_name(dump, "body");
	int r = json_write(body, 0, &dump->out);
	if (r < 0)
		buf_truncate(&dump->out, before); /* the row goes on without the body */
	return r;
}

int dump_end(struct dump *dump)
{
	buf_str(&dump->out, dump->json ? "}\n" : "\n");
	return output_write(&dump->out);
}

bool dump_wants_feed(const struct dump *dump, uint32_t feed)
{
	for (size_t i = 0; i < dump->n_feeds; i++)
		if (dump->feeds[i] == feed)
			return true;
	return !dump->feeds;
}

bool dump_wants(const struct dump *dump, uint32_t feed, struct bytes key)
{
	return dump_wants_feed(dump, feed) &&
	       (!dump->key || bytes_equal(key, bytes_str(dump->key)));
}
