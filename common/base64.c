/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base64.h"

#include <errno.h>
#include <stdlib.h>

#include "common/err.h"

enum { DIGIT_BREAK = -2, DIGIT_BAD = -1, DIGIT_PAD = 64 };

/* Returns the value of the digit C, or one of the above. */
static int base64_digit(unsigned char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	switch (c) {
	case '+':
		return 62;
	case '/':
		return 63;
	case '=':
		return DIGIT_PAD;
	case '\n':
	case '\r':
		return DIGIT_BREAK;
	default:
		return DIGIT_BAD;
	}
}

struct base64_quantum {
	uint32_t bits;
	unsigned digits; /* of 4, padding included */
	unsigned pads;
};

/* Adds one digit. Returns false if it cannot stand here. */
static bool base64_quantum_add(struct base64_quantum *q, int d)
{
	if (d == DIGIT_BAD || (q->pads && d != DIGIT_PAD))
		return false;
	if (d == DIGIT_PAD && q->digits < 2)
		return false;
	q->pads += d == DIGIT_PAD;
	q->bits = q->bits << 6 | (d == DIGIT_PAD ? 0 : (uint32_t)d);
	q->digits++;
	return true;
}

static size_t base64_quantum_flush(struct base64_quantum *q, char *out)
{
	size_t n = 3 - q->pads;

	for (size_t i = 0; i < n; i++)
		out[i] = (char)(q->bits >> (16 - 8 * i));
	q->bits = 0;
	q->digits = 0; /* pads stay: nothing may follow them */
	return n;
}

int base64_decode(struct bytes text, char **ret_data, size_t *ret_size)
{
	const unsigned char *in = text.data;
	char *out = malloc(text.size / 4 * 3 + 4);
	struct base64_quantum q = {0};
	size_t size = 0;

	if (!out)
		return err_set(-ENOMEM, "base64");
	for (size_t i = 0; i < text.size; i++) {
		int d = base64_digit(in[i]);

		if (d == DIGIT_BREAK)
			continue;
		if ((q.pads && !q.digits) || !base64_quantum_add(&q, d)) {
			free(out);
			return err_say(ERR_SYNTAX, "not base64 at byte %zu", i);
		}
		if (q.digits == 4)
			size += base64_quantum_flush(&q, out + size);
	}
	if (q.digits) {
		free(out);
		return err_say(ERR_SYNTAX, "base64 ends in the middle");
	}
	out[size] = '\0';
	*ret_data = out;
	*ret_size = size;
	return 0;
}

/* ---- writing, and the URL form ---- */

static const char standard_alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char url_alphabet[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Encodes DATA; PAD fills the last group unless it is 0. */
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
