/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/base64.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/err.h"

static const char standard_alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

int base64_decode(struct bytes text, char **ret_data, size_t *ret_size)
{
	const char *in = text.data;
	char *out = malloc(text.size / 4 * 3 + 4);
	uint32_t bits = 0;
	unsigned digits = 0, pads = 0; /* of four digits, padding included */
	size_t size = 0;

	if (!out)
		return err_set(-ENOMEM, "base64");
	for (size_t i = 0; i < text.size; i++) {
		const char *digit = in[i] ? strchr(standard_alphabet, in[i]) : NULL;
		bool is_pad = in[i] == '=';
		if (in[i] == '\n' || in[i] == '\r')
			continue;
		/* Only padding follows padding, up to the fourth digit. */
		if ((!digit && !is_pad) || (is_pad && digits < 2) ||
			(pads && (!is_pad || !digits))) {
			free(out);
			return err_say(ERR_SYNTAX, "not base64 at byte %zu", i);
		}
		pads += is_pad;
		bits = bits << 6 | (digit ? (uint32_t)(digit - standard_alphabet) : 0);
		if (++digits < 4)
			continue;
		for (unsigned k = 0; k < 3 - pads; k++)
			out[size++] = (char)(bits >> (16 - 8 * k));
		bits = digits = 0;
	}
	if (digits) {
		free(out);
		return err_say(ERR_SYNTAX, "base64 ends in the middle");
	}
	out[size] = '\0';
	*ret_data = out;
	*ret_size = size;
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
	uint32_t group = 0;
	unsigned bits = 0, digits = 0;

	for (; *text; text++, digits++) {
		const char *found = strchr(url_alphabet, *text);

		if (!found)
			return err_say(ERR_SYNTAX, "not base64url at byte %u", digits);
		group = group << 6 | (uint32_t)(found - url_alphabet);
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			buf_byte(out, (uint8_t)(group >> bits));
		}
	}
	if (digits % 4 == 1)
		return err_say(ERR_SYNTAX, "base64url ends in the middle");
	return buf_error(out);
}
