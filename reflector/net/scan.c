/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/scan.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "common/err.h"
#include "common/value/json.h"

#define BLOCK 64

/* One bit per byte of a block, the first byte lowest. */
struct masks {
	uint64_t quote, backslash, line_feed, open, close;
};

#ifdef __SSE2__
static uint64_t scan_bits(__m128i matches)
{
	return (uint16_t)_mm_movemask_epi8(matches);
}

/* '{' and '[' (and '}' and ']') differ in bit 5 only. */
static void scan_classify(const uint8_t *data, struct masks *masks)
{
	const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
	const __m128i line_feed = _mm_set1_epi8('\n'), bit5 = _mm_set1_epi8(0x20);
	const __m128i open = _mm_set1_epi8('{'), close = _mm_set1_epi8('}');

	*masks = (struct masks){0};
	for (unsigned i = 0; i < BLOCK; i += 16) {
		__m128i c = _mm_loadu_si128((const __m128i *)(const void *)(data + i));
		__m128i folded = _mm_or_si128(c, bit5);

		masks->quote |= scan_bits(_mm_cmpeq_epi8(c, quote)) << i;
		masks->backslash |= scan_bits(_mm_cmpeq_epi8(c, backslash)) << i;
		masks->line_feed |= scan_bits(_mm_cmpeq_epi8(c, line_feed)) << i;
		masks->open |= scan_bits(_mm_cmpeq_epi8(folded, open)) << i;
		masks->close |= scan_bits(_mm_cmpeq_epi8(folded, close)) << i;
	}
}
#else
static void scan_classify(const uint8_t *data, struct masks *masks)
{
	*masks = (struct masks){0};
	for (unsigned i = 0; i < BLOCK; i++) {
		uint64_t bit = 1ull << i;

		switch (data[i]) {
		case '"':
			masks->quote |= bit;
			break;
		case '\\':
			masks->backslash |= bit;
			break;
		case '\n':
			masks->line_feed |= bit;
			break;
		case '{':
		case '[':
			masks->open |= bit;
			break;
		case '}':
		case ']':
			masks->close |= bit;
			break;
		}
	}
}
#endif

/* Byte after which depth falls to 0, or BLOCK. */
static unsigned scan_find_end(uint64_t *depth, uint64_t open, uint64_t close)
{
	unsigned closes = (unsigned)__builtin_popcountll(close);

	if (*depth > closes) {
		*depth += (unsigned)__builtin_popcountll(open) - (uint64_t)closes;
		return BLOCK;
	}
	for (uint64_t both = open | close; both; both &= both - 1) {
		unsigned i = (unsigned)__builtin_ctzll(both);

		if (open >> i & 1)
			(*depth)++;
		else if (--(*depth) == 0)
			return i;
	}
	return BLOCK;
}

/* One block of which the first SIZE bytes count; the others are blanks. */
static int scan_block(struct scan *scan, const uint8_t *data, size_t size, size_t *ret_used)
{
	struct masks m;

	scan_classify(data, &m);
	/* Backslashes are rare: taken one at a time, each with the byte it escapes, which may be a
	 * backslash that then escapes nothing. */
	bool carry = false;
	uint64_t escaped = scan->escaped;
	for (uint64_t left = m.backslash & ~escaped, bit; left; left &= ~(bit | bit << 1)) {
		bit = left & -left;
		carry = bit == 1ull << (BLOCK - 1);
		escaped |= bit << 1;
	}
	/* Bit i: an odd number of quotes stand at or before byte i. */
	uint64_t inside = m.quote & ~escaped;
	for (unsigned shift = 1; shift < BLOCK; shift *= 2)
		inside ^= inside << shift;
	if (scan->in_string)
		inside = ~inside;
	unsigned end = scan_find_end(&scan->depth, m.open & ~inside, m.close & ~inside);
	uint64_t broken = m.line_feed & inside;
	if (end < BLOCK)
		broken &= (1ull << end) - 1;
	if (broken) {
		*ret_used = (size_t)__builtin_ctzll(broken);
		return err_say(ERR_PROTOCOL, "a line feed inside a JSON string");
	}
	if (end < BLOCK) {
		*ret_used = end + 1;
		return FOUND;
	}
	scan->in_string = inside >> (size - 1) & 1;
	scan->escaped = size == BLOCK ? carry : escaped >> size & 1;
	*ret_used = size;
	return AGAIN;
}

int scan_container(struct scan *scan, const uint8_t *data, size_t size, size_t *ret_used)
{
	size_t done = 0, used;

	while (done < size) {
		uint8_t last[BLOCK];
		const uint8_t *block = data + done;
		size_t n = size - done;

		if (n < BLOCK) {
			memset(last, ' ', sizeof(last));
			memcpy(last, block, n);
			block = last;
		} else {
			n = BLOCK;
		}
		int r = scan_block(scan, block, n, &used);
		done += used;
		if (r != AGAIN) {
			*ret_used = done;
			return r;
		}
	}
	*ret_used = done;
	return AGAIN;
}

/* ---- values that come in pieces ----------------------------------------- */

#define PARTIAL_KEEP (1u << 20)

void cutter_reset(struct cutter *cutter)
{
	cutter->scan = SCAN_INIT;
	cutter->size = 0;
	cutter->cut = false;
	buf_trim(&cutter->partial, PARTIAL_KEEP);
}

int cutter_take(struct cutter *cutter, const uint8_t *data, size_t size, size_t *ret_used,
	struct bytes *ret_text)
{
	struct buf *partial = &cutter->partial;
	int r = scan_container(&cutter->scan, data, size, ret_used);

	if (r < 0)
		return r;
	cutter->size += *ret_used;
	cutter->cut = cutter->size > cutter->max;
	if (cutter->size / CUTTER_SKIP_MAX > cutter->max)
		return err_say(ERR_TOO_LARGE, "a JSON value of more than %zu bytes", cutter->size);
	if (r == FOUND && !partial->size && !cutter->cut) {
		*ret_text = BYTES(data, *ret_used);
		return FOUND;
	}
	size_t most = cutter->max;
	if (cutter->cut && most > CUTTER_BEGINNING)
		most = CUTTER_BEGINNING;
	if (partial->size > most)
		buf_truncate(partial, most);
	buf_put(partial, data, *ret_used < most - partial->size ? *ret_used : most - partial->size);
	if (buf_error(partial) < 0)
		return buf_error(partial);
	if (r == FOUND)
		*ret_text = buf_bytes(partial);
	return r;
}

/* ---- a whole object ----------------------------------------------------- */

static int scan_bad_at(size_t at, const char *what)
{
	return err_say(ERR_PROTOCOL, "%s at byte %zu", what, at);
}

static size_t scan_skip_space(struct bytes text, size_t at)
{
	const uint8_t *p = text.data;

	while (at < text.size && scan_is_space(p[at]))
		at++;
	return at;
}

/* Returns the place after the closing quote of the string at AT, 0: there is none. */
static size_t scan_string_end(struct bytes text, size_t at)
{
	const uint8_t *p = text.data;

	for (at++; at < text.size; at++) {
		if (p[at] == '\\')
			at++;
		else if (p[at] == '"')
			return at + 1;
	}
	return 0;
}

/* Returns the place after the value at AT, 0: it does not end. */
static size_t scan_value_end(struct bytes text, size_t at)
{
	const uint8_t *p = text.data;
	struct scan scan = SCAN_INIT;
	size_t begin = at, used;

	if (at >= text.size)
		return 0;
	if (p[at] == '"')
		return scan_string_end(text, at);
	if (p[at] == '{' || p[at] == '[')
		return scan_container(&scan, p + at, text.size - at, &used) == FOUND ? at + used
										     : 0;
	while (at < text.size && !scan_is_space(p[at]) && p[at] != ',' && p[at] != '}' &&
		p[at] != ']')
		at++;
	return at > begin ? at : 0;
}

int scan_key(struct bytes text, bool cut, size_t *at, struct bytes *ret_key)
{
	const uint8_t *p = text.data;
	bool first = *at == 0;
	size_t i = scan_skip_space(text, first ? 1 : *at);

	if (first && (!text.size || p[0] != '{'))
		return scan_bad_at(0, "no object");
	if (i < text.size ? p[i] == '}' : cut)
		return END;
	if (!first) {
		if (i >= text.size || p[i] != ',')
			return scan_bad_at(i, "no comma between members");
		i = scan_skip_space(text, i + 1);
	}
	size_t end = i < text.size && p[i] == '"' ? scan_string_end(text, i) : 0;
	if (!end)
		return scan_bad_at(i, "no key");
	struct bytes key = BYTES(p + i + 1, end - i - 2);
	i = scan_skip_space(text, end);
	if (i >= text.size || p[i] != ':')
		return scan_bad_at(i, "no colon");
	*ret_key = key;
	*at = scan_skip_space(text, i + 1);
	return FOUND;
}

int scan_value(struct bytes text, bool cut, size_t *at, struct bytes *ret_value)
{
	size_t begin = *at, end = scan_value_end(text, begin);

	if (!end && cut)
		end = text.size;
	if (end <= begin)
		return scan_bad_at(begin, "no value");
	*ret_value = BYTES((const uint8_t *)text.data + begin, end - begin);
	*at = end;
	return FOUND;
}

int scan_member(
	struct bytes text, bool cut, size_t *at, struct bytes *ret_key, struct bytes *ret_value)
{
	struct bytes key;
	int r = scan_key(text, cut, at, &key);

	if (r == FOUND)
		r = scan_value(text, cut, at, ret_value);
	if (r == FOUND)
		*ret_key = key;
	return r;
}

int scan_string(struct bytes value, void *room, size_t room_size, struct bytes *ret_text)
{
	const uint8_t *p = value.data;
	size_t size;

	if (value.size < 2 || p[0] != '"' || p[value.size - 1] != '"')
		return NOT_FOUND;
	struct bytes text = BYTES(p + 1, value.size - 2);
	if (memchr(text.data, '\\', text.size)) {
		if (!json_unescape(text, room, room_size, &size))
			return NOT_FOUND;
		text = BYTES(room, size);
	}
	*ret_text = text;
	return FOUND;
}

bool scan_ends_with(struct bytes text, const char *key)
{
	size_t n = strlen(key);

	if (text.size <= n)
		return false;
	const char *p = (const char *)text.data + text.size - n;
	return memcmp(p, key, n) == 0 && (p[-1] == '{' || p[-1] == ',');
}

int scan_find(struct bytes text, const char *key, struct bytes *ret_value)
{
	struct bytes name, value;
	size_t at = 0;
	int r;

	while ((r = scan_member(text, false, &at, &name, &value)) == FOUND) {
		if (bytes_equal(name, bytes_str(key))) {
			*ret_value = value;
			return FOUND;
		}
	}
	return r == END ? NOT_FOUND : r;
}
