/* SPDX-License-Identifier: Apache-2.0 */
/* Durations and sizes as people write them. */
#include "common/config/config.h"

#include <string.h>

#include "common/bytes.h"
#include "common/decimal.h"
#include "common/err.h"

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit times[] = {
	{"ns", 1},
	{"us", 1000},
	{"ms", 1000000},
	{"s", 1000000000},
	{"m", 60000000000},
	{"h", 3600000000000},
	{"d", 86400000000000},
	{0},
};

static const struct unit sizes[] = {
	{"B", 1},
	{"kB", 1000},
	{"MB", 1000000},
	{"GB", 1000000000},
	{"TB", 1000000000000},
	{"KiB", (uint64_t)1 << 10},
	{"MiB", (uint64_t)1 << 20},
	{"GiB", (uint64_t)1 << 30},
	{"TiB", (uint64_t)1 << 40},
	{0},
};

static const char digits[] = "0123456789";

static int bad(const char *what, const char *text, const char *example)
{
	return err_say(ERR_SYNTAX, "not a %s: '%s'; write one as %s", what, text, example);
}

/* Reads digits and a unit's name; returns what is behind them, NULL when there are none. */
static const char *read_part(const char *p, const struct unit *units, uint64_t *ret_value)
{
	size_t n = strspn(p, digits), letters = strcspn(p + n, digits);
	uint64_t number;

	if (decimal_parse(BYTES(p, n), UINT64_MAX, &number) < 0)
		return NULL;
	for (const struct unit *u = units; u->name; u++) {
		if (!bytes_equal(bytes_str(u->name), BYTES(p + n, letters)))
			continue;
		return __builtin_mul_overflow(number, u->factor, ret_value) ? NULL :
			p + n + letters;
	}
	return NULL;
}

int config_duration(const char *text, uint64_t *ret_ns)
{
	uint64_t sum = 0, part;

	if (strcmp(text, "0") == 0) {
		*ret_ns = 0;
		return 0;
	}
	const char *p = text;
	do {
		p = read_part(p, times, &part);
		if (!p || __builtin_add_overflow(sum, part, &sum))
			return bad("duration", text, "10m, 1h30m, 500ms or 0s");
	} while (*p);
	*ret_ns = sum;
	return 0;
}

int config_size(const char *text, uint64_t *ret_bytes)
{
	static const char example[] = "1GiB, 64MiB, 500kB or a number of bytes";
	uint64_t bytes;

	if (*text && text[strspn(text, digits)] == '\0') {
		if (decimal_parse(bytes_str(text), UINT64_MAX, ret_bytes) < 0)
			return bad("size", text, example);
		return 0;
	}
	const char *p = read_part(text, sizes, &bytes);
	if (!p || *p)
		return bad("size", text, example);
	*ret_bytes = bytes;
	return 0;
}
