/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/warnings.h"
#include "tests/unit/unit.h"

Test(warnings, c61_each_text_is_new_once)
{
	struct warnings warnings = {0};

	cr_assert(warnings_are_new(&warnings, "v1beta1 is deprecated"));
	cr_assert(warnings_are_new(&warnings, "v1beta2 is deprecated"));
	cr_assert_not(warnings_are_new(&warnings, "v1beta1 is deprecated"));
	cr_assert_not(warnings_are_new(&warnings, "v1beta2 is deprecated"));
}

Test(warnings, c61_a_server_that_makes_texts_up_is_not_listened_to_for_ever)
{
	struct warnings warnings = {0};
	char text[40];
	size_t new = 0;

	for (int i = 0; i < 10 * WARNINGS_MAX; i++) {
		snprintf(text, sizeof(text), "request %d", i);
		new += warnings_are_new(&warnings, text);
	}
	cr_assert_eq(new, WARNINGS_MAX);
	cr_assert_not(warnings_are_new(&warnings, "request 0"), "still known");
}
