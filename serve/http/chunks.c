/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/chunks.h"

#include "common/text/decimal.h"

#define CHUNKS_PASSED_MAX 8192
#define CHUNKS_DIGITS_MAX 15

enum chunks_state {
	CHUNKS_SIZE,
	CHUNKS_EXTENSION,
	CHUNKS_SIZE_LF,
	CHUNKS_DATA,
	CHUNKS_DATA_CR,
	CHUNKS_DATA_LF,
	CHUNKS_TRAILER,
	CHUNKS_TRAILER_LF,
	CHUNKS_END
};

/* Takes one byte outside of data. Returns false if it may not come here. */
static bool chunks_step(struct chunks *c, uint8_t byte)
{
	int digit = hex_digit((char)byte);

	switch ((enum chunks_state)c->state) {
	case CHUNKS_SIZE:
		if (digit >= 0 && c->digits < CHUNKS_DIGITS_MAX) {
			c->left = c->left * 16 + (unsigned)digit;
			c->digits++;
			return true;
		}
		c->state = byte == '\r' ? CHUNKS_SIZE_LF : CHUNKS_EXTENSION;
		return c->digits && (byte == '\r' || byte == ';');
	case CHUNKS_EXTENSION:
		if (byte == '\r')
			c->state = CHUNKS_SIZE_LF;
		return (byte == '\r' || byte == '\t' || (byte >= 0x20 && byte != 0x7f)) &&
		       ++c->passed < CHUNKS_PASSED_MAX;
	case CHUNKS_SIZE_LF:
		c->state = c->left ? CHUNKS_DATA : CHUNKS_TRAILER;
		c->line_empty = true;
		c->digits = 0;
		return byte == '\n';
	case CHUNKS_DATA_CR:
		c->state = CHUNKS_DATA_LF;
		return byte == '\r';
	case CHUNKS_DATA_LF:
		c->state = CHUNKS_SIZE;
		return byte == '\n';
	case CHUNKS_TRAILER:
		if (byte == '\r')
			c->state = CHUNKS_TRAILER_LF;
		else
			c->line_empty = false;
		return (byte == '\r' || byte == '\t' || (byte >= 0x20 && byte != 0x7f)) &&
		       ++c->passed < CHUNKS_PASSED_MAX;
	case CHUNKS_TRAILER_LF:
		c->state = c->line_empty ? CHUNKS_END : CHUNKS_TRAILER;
		c->line_empty = true;
		return byte == '\n';
	case CHUNKS_DATA:
	case CHUNKS_END:
		break;
	}
	return false;
}

size_t chunks_take(
	struct chunks *c, const uint8_t *bytes, size_t size, size_t *ret_data, size_t *ret_size)
{
	size_t i = 0;

	*ret_data = *ret_size = 0;
	for (; i < size && c->state != CHUNKS_DATA && c->state != CHUNKS_END; i++)
		if (!chunks_step(c, bytes[i]))
			return SIZE_MAX;
	if (c->state != CHUNKS_DATA || i == size)
		return i;
	*ret_data = i;
	*ret_size = size - i < c->left ? size - i : (size_t)c->left;
	c->left -= *ret_size;
	if (!c->left)
		c->state = CHUNKS_DATA_CR;
	return i + *ret_size;
}

bool chunks_ended(const struct chunks *c)
{
	return c->state == CHUNKS_END;
}
