/* SPDX-License-Identifier: Apache-2.0 */
#include "common/config/units.h"

#include <string.h>

#include "common/bytes.h"
#include "common/err.h"
#include "common/text/decimal.h"

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit units_of_time[] = {
	{"ns", 1},
	{"us", 1000},
	{"ms", 1000000},
	{"s", 1000000000},
	{"m", 60000000000},
	{"h", 3600000000000},
	{"d", 86400000000000},
	{0},
};

static const struct unit units_of_size[] = {
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

/* Reads digits and a unit's name at P. Returns the end of the name, or NULL. */
static const char *units_part(const char *p, const struct unit *units, uint64_t *ret_value)
{
	size_t n = strspn(p, digits), letters = strcspn(p + n, digits);
	uint64_t number;

	if (decimal_parse(BYTES(p, n), UINT64_MAX, &number) < 0)
		return NULL;
	for (const struct unit *u = units; u->name; u++)
		if (bytes_equal(bytes_str(u->name), BYTES(p + n, letters)))
			return __builtin_mul_overflow(number, u->factor, ret_value)
				       ? NULL
				       : p + n + letters;
	return NULL;
}

int units_duration(const char *text, uint64_t *ret_ns)
{
	uint64_t sum = 0, part;
	const char *p = text;

	if (strcmp(text, "0") == 0) {
		*ret_ns = 0;
		return 0;
	}
	do {
		p = units_part(p, units_of_time, &part);
		if (!p || __builtin_add_overflow(sum, part, &sum))
			return err_say(ERR_SYNTAX,
				"not a duration: '%s'; write one as 10m, 1h30m, 500ms or 0s", text);
	} while (*p);
	*ret_ns = sum;
	return 0;
}

int units_size(const char *text, uint64_t *ret_bytes)
{
	uint64_t bytes;

	if (*text && !text[strspn(text, digits)] &&
		decimal_parse(bytes_str(text), UINT64_MAX, ret_bytes) == 0)
		return 0;
	const char *p = units_part(text, units_of_size, &bytes);
	if (!p || *p)
		return err_say(ERR_SYNTAX,
			"not a size: '%s'; write one as 1GiB, 64MiB, 500kB or a number of bytes",
			text);
	*ret_bytes = bytes;
	return 0;
}
