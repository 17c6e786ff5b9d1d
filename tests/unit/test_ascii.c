/* SPDX-License-Identifier: Apache-2.0 */
/* Names in a program with a Turkish locale of one byte for each character, where its C library
 * compares letters as below. */
#include "common/text/utf8.h"

#include <strings.h>

#include "common/text/similar.h"
#include "store/journal/journal.h"
#include "store/read/cursor_file.h"
#include "tests/unit/unit.h"

#define DOTLESS 0xfd /* the small letter of I */

static int turkish_lower(char c)
{
	return c == 'I' ? DOTLESS : c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

int strncasecmp(const char *a, const char *b, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		int x = turkish_lower(a[i]), y = turkish_lower(b[i]);

		if (x != y || !x)
			return x - y;
	}
	return 0;
}

int strcasecmp(const char *a, const char *b)
{
	return strncasecmp(a, b, strlen(a) + 1);
}

Test(ascii, letters_are_those_of_ascii)
{
	for (int c = 0; c < 256; c++) {
		bool is_capital = c >= 'A' && c <= 'Z', is_small = c >= 'a' && c <= 'z',
		     is_digit = c >= '0' && c <= '9';

		cr_assert_eq(ascii_lower((char)c), (char)(is_capital ? c + 32 : c), "%d", c);
		cr_assert_eq(ascii_is_alnum((char)c), is_capital || is_small || is_digit, "%d", c);
	}
	cr_assert(ascii_equal(BYTES_LIT("INGRESSES"), BYTES_LIT("ingresses")));
	cr_assert(ascii_equal(BYTES_NONE, BYTES_LIT("")));
	cr_assert(!ascii_equal(BYTES_LIT("ingress"), BYTES_LIT("ingresses")));
	cr_assert(!ascii_equal(BYTES_LIT("\xfd"), BYTES_LIT("I")));
}

Test(ascii, a_feed_is_called_by_its_names_in_any_case)
{
	static const char *const names[] = {"INGRESSES", "Ingresses", "Ingress", "INGRESS", "ING",
		"ing", "Ingress.NETWORKING.K8S.IO", "ingresses.v1.Networking.k8s.IO"};
	const struct feed_definition feed = {.resource = "ingresses",
		.kind = "Ingress",
		.aliases = "ingress ing ",
		.version = "v1",
		.group = "networking.k8s.io"};

	cr_assert_neq(strcasecmp("I", "i"), 0, "so it is in a Turkish locale");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		cr_expect(feed_definition_is_called(&feed, names[i]), "%s", names[i]);
	cr_assert(!feed_definition_is_called(&feed, "\xfdngress"));
	cr_assert(similar("INGRESES", "ingresses"));
}

Test(ascii, a_cursor_has_no_letters_that_others_do_not_know)
{
	cr_assert_eq(cursor_check_name("Izmir-1"), 0);
	cr_assert_eq(cursor_check_name("caf\xe9"), -EINVAL);
}
