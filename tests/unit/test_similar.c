/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text/similar.h"
#include "tests/unit/unit.h"

Test(similar, one_or_two_letters_may_differ)
{
	cr_assert(similar("pdos", "pods"));
	cr_assert(similar("PODS", "pods"));
	cr_assert(similar("pod", "pods"));
	cr_assert(similar("ndoes", "nodes"));
	cr_assert(similar("deploymnts", "deployments"));
	cr_assert(similar("", "a"));
	cr_assert_not(similar("pdso", "pods"));
	cr_assert_not(similar("nothing", "pods"));
	cr_assert_not(similar("pods", "nodes"));
	cr_assert_not(similar("nodes", "pods"));
	cr_assert_not(similar("", "pods"));
}

Test(similar, long_names_are_compared_or_refused)
{
	char name[300];

	memset(name, 'a', sizeof(name));
	name[255] = '\0';
	cr_assert(similar(name, name));
	name[255] = 'a';
	name[256] = '\0';
	cr_assert_not(similar(name, name));
}
