/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/base64.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"

static const char standard_alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Decodes TEXT. PADDED: with '=' up to a multiple of four digits, and perhaps line breaks. */
static int base64_read(struct bytes text, const char *alphabet, bool padded, struct buf *out)
{
	const char *in = text.data;
	unsigned bits = 0;
	size_t digits = 0, pads = 0;
	uint32_t group = 0;

	for (size_t i = 0; i < text.size; i++) {
		const char *digit = in[i] ? strchr(alphabet, in[i]) : NULL;

		if (padded && (in[i] == '\n' || in[i] == '\r'))
			continue;
		if (padded && in[i] == '=' && (digits + pads) % 4 >= 2) {
			pads++;
			continue;
		}
		if (!digit || pads)
			return err_say(ERR_SYNTAX, "not base64 at byte %zu", i);
		digits++;
		group = group << 6 | (uint32_t)(digit - alphabet);
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			buf_byte(out, (uint8_t)(group >> bits));
		}
	}
	if (padded ? (digits + pads) % 4 != 0 : digits % 4 == 1)
		return err_say(ERR_SYNTAX, "base64 ends in the middle");
	return buf_error(out);
}

int base64_decode(struct bytes text, char **ret_data, size_t *ret_size)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;

	(void)buf_grow(&out, text.size / 4 * 3 + 3); /* growing would leave copies of a secret */
	buf_truncate(&out, 0);
	int r = base64_read(text, standard_alphabet, true, &out);
	if (r < 0)
		return r;
	(void)buf_cstr(&out);
	*ret_size = out.size;
	*ret_data = (char *)TAKE(out.data);
	return 0;
}

/* Encodes DATA; PAD fills the last group unless 0. */
static void base64_encode(struct bytes data, const char *alphabet, char pad, struct buf *out)
{
	const uint8_t *p = data.data;

	for (size_t i = 0; i < data.size; i += 3) {
		size_t n = data.size - i < 3 ? data.size - i : 3;
		uint32_t group = (uint32_t)p[i] << 16;

		if (n > 1)
			group |= (uint32_t)p[i + 1] << 8;
		if (n > 2)
			group |= p[i + 2];
		for (size_t k = 0; k < 4; k++) {
			if (k <= n)
				buf_byte(out, (uint8_t)alphabet[group >> (18 - 6 * k) & 63]);
			else if (pad)
				buf_byte(out, (uint8_t)pad);
		}
	}
}

void base64_put(struct bytes data, struct buf *out)
{
	base64_encode(data, standard_alphabet, '=', out);
}

void base64url_put(struct bytes data, struct buf *out)
{
	base64_encode(data, url_alphabet, 0, out);
}

int base64url_get(const char *text, struct buf *out)
{
	return base64_read(bytes_str(text), url_alphabet, false, out);
}
