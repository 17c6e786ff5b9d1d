/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/mix.h"

#include <inttypes.h>
#include <stdarg.h>

/* splitmix64 */
static uint64_t mix_next(struct mix *mix)
{
	uint64_t x = mix->state += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

void mix_init(struct mix *mix, uint64_t seed, const char *family, uint64_t n, struct buf *out)
{
	*mix = (struct mix){.out = out, .state = seed};
	for (; *family; family++)
		mix->state = mix_next(mix) ^ (uint8_t)*family;
	mix->state = mix_next(mix) ^ n;
}

uint64_t mix_below(struct mix *mix, uint64_t limit)
{
	return mix_next(mix) % limit;
}

bool mix_chance(struct mix *mix, unsigned percent)
{
	return mix_below(mix, 100) < percent;
}

size_t mix_size(struct mix *mix, size_t least, size_t most)
{
	unsigned doublings = 0;

	while (least << (doublings + 1) <= most)
		doublings++;

	uint64_t a = mix_below(mix, doublings + 1), b = mix_below(mix, doublings + 1);
	size_t size = least << (a < b ? a : b);

	size += mix_below(mix, size);
	return size < most ? size : most;
}

void mix_put(struct mix *mix, const char *format, ...)
{
	size_t begin = mix->out->size;
	va_list args;

	va_start(args, format);
	buf_vprintf(mix->out, format, args);
	va_end(args);

	char *text = (char *)buf_bytes(mix->out).data;

	for (size_t i = begin; i < mix->out->size; i++)
		if (text[i] == '\'')
			text[i] = '"';
}

/* Appends SIZE of the N characters of ALPHABET. */
static void mix_letters(struct mix *mix, const char *alphabet, unsigned n, size_t size)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < size; i++, bits /= n) {
		if (i % 10 == 0)
			bits = mix_next(mix);
		buf_byte(mix->out, (uint8_t)alphabet[bits % n]);
	}
}

void mix_hex(struct mix *mix, size_t size)
{
	mix_letters(mix, "0123456789abcdef", 16, size);
}

void mix_base64(struct mix *mix, size_t size)
{
	mix_letters(mix, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 64,
		(size + 3) / 4 * 4);
}

void mix_settings(struct mix *mix, size_t size)
{
	static const struct {
		const char *before, *after;
	} lines[] = {
		{"  timeout: ", "ms  # see \\u003chttps://wiki.example.com/?a=1\\u0026b=2\\u003e"},
		{"  backend-", ": http://backend.shop.svc.cluster.local:8080/v1"},
		{"  title-", ": \\\"Größe, 大きさ, размер\\\""},
		{"  path: C:\\\\data\\\\", "\\tmode: 0644"},
		{"  - {name: rule-", ", expr: 'sum(rate(http_requests_total[5m])) by (pod)'}"},
		{"\\n[section-", "]"},
	};
	size_t begin = mix->out->size;

	while (mix->out->size - begin < size) {
		unsigned i = (unsigned)mix_below(mix, sizeof(lines) / sizeof(lines[0]));

		buf_printf(mix->out, "%s%u%s\\n", lines[i].before, (unsigned)mix_below(mix, 10000),
			lines[i].after);
	}
}

void mix_uid(struct mix *mix, unsigned family, uint64_t n)
{
	buf_printf(mix->out, "%08x-5e1f-4000-8000-%012" PRIx64, family, n & 0xffffffffffff);
}
