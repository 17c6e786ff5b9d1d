/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/similar.h"

#include <string.h>

#include "common/text/utf8.h"

#define SIMILAR_MAX 255 /* letters; longer names are not similar */

static bool similar_letters(char a, char b)
{
	return ascii_lower(a) == ascii_lower(b);
}

bool similar(const char *name, const char *other)
{
	unsigned rows[3][SIMILAR_MAX +
			 1]; /* of the distances of prefixes; the last one is the newest */
	size_t n = strlen(other), size = strlen(name);
	unsigned most = size < 6 ? 1 : 2;

	if (n > SIMILAR_MAX || size > SIMILAR_MAX)
		return false;
	for (size_t j = 0; j <= n; j++)
		rows[2][j] = (unsigned)j;
	for (size_t i = 1; i <= size; i++) {
		memcpy(rows[0], rows[1], sizeof(rows[0]));
		memcpy(rows[1], rows[2], sizeof(rows[1]));
		rows[2][0] = (unsigned)i;
		for (size_t j = 1; j <= n; j++) {
			unsigned best =
				rows[1][j - 1] + !similar_letters(name[i - 1], other[j - 1]);

			if (rows[1][j] + 1 < best)
				best = rows[1][j] + 1;
			if (rows[2][j - 1] + 1 < best)
				best = rows[2][j - 1] + 1;
			if (i > 1 && j > 1 && similar_letters(name[i - 1], other[j - 2]) &&
				similar_letters(name[i - 2], other[j - 1]) &&
				rows[0][j - 2] + 1 < best)
				best = rows[0][j - 2] + 1;
			rows[2][j] = best;
		}
	}
	return rows[2][n] <= most;
}
