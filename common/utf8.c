/* SPDX-License-Identifier: Apache-2.0 */
#include "common/utf8.h"

/* Returns the length of the sequence that LEAD begins, and the range of its second byte (Unicode, table
 * 3-7). */
static size_t utf8_sequence(uint8_t lead, uint8_t *ret_low, uint8_t *ret_high)
{
	*ret_low = 0x80;
	*ret_high = 0xbf;
	if (lead >= 0xc2 && lead < 0xe0)
		return 2;
	if (lead >= 0xe0 && lead < 0xf0) {
		if (lead == 0xe0)
			*ret_low = 0xa0;
		if (lead == 0xed)
			*ret_high = 0x9f;
		return 3;
	}
	if (lead >= 0xf0 && lead < 0xf5) {
		if (lead == 0xf0)
			*ret_low = 0x90;
		if (lead == 0xf4)
			*ret_high = 0x8f;
		return 4;
	}
	return 0;
}

size_t utf8_length(struct bytes text)
{
	const uint8_t *p = text.data;
	uint8_t low, high;

	if (!text.size)
		return 0;
	if (*p < 0x80)
		return 1;
	size_t n = utf8_sequence(*p, &low, &high);
	if (!n || text.size < n || p[1] < low || p[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	return n;
}

bool utf8_is_valid(struct bytes text)
{
	const uint8_t *p = text.data, *end = p + text.size;

	while (p < end) {
		if (end - p >= 8 && !(le64_get(p) & 0x8080808080808080u)) {
			p += 8;
			continue;
		}
		if (*p < 0x80) {
			p++;
			continue;
		}
		size_t n = utf8_length(BYTES(p, (size_t)(end - p)));
		if (!n)
			return false;
		p += n;
	}
	return true;
}

size_t utf8_put(uint32_t code, uint8_t *bytes)
{
	if (code < 0x80) {
		bytes[0] = (uint8_t)code;
		return 1;
	}
	size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	for (size_t i = n; i-- > 1; code >>= 6)
		bytes[i] = (uint8_t)(0x80 | (code & 0x3f));
	bytes[0] = (uint8_t)(0xf00u >> n | code);
	return n;
}
