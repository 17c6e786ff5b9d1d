/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/config_rig.h"

Test(config_variables, a_variable_stands_for_its_value_in_every_kind_of_value)
{
	cr_assert_eq(setenv("NODE_NAME", "node-7", 1), 0);
	cr_assert_eq(setenv("GROUP", "apps", 1), 0);
	CLEANUP(config_free)
	struct config *c =
		parse("store: /x/${NODE_NAME}\n"
		      "feeds:\n"
		      "- resource: 'deployments.${GROUP}'\n"
		      "  fieldSelector: spec.nodeName=${NODE_NAME}\n"
		      "  namespaces: [a, \"${NODE_NAME}-${GROUP}\"]\n"
		      "  indexes: {x: \"metadata.labels['$${GROUP}$$']\", y: spec.$x}\n");

	cr_assert_str_eq(c->store, "/x/node-7");
	cr_assert_str_eq(c->feeds[0].resource, "deployments.apps");
	cr_assert_str_eq(c->feeds[0].field_selector, "spec.nodeName=node-7");
	cr_assert_str_eq(c->feeds[0].namespaces[1], "node-7-apps");
	cr_assert(strstr(c->feeds[0].indexes[0].paths[0], "${GROUP}$$"), "%s",
		c->feeds[0].indexes[0].paths[0]);
}

Test(config_variables, a_value_is_never_read_again)
{
	cr_assert_eq(setenv("A", "${B}", 1), 0);
	cr_assert_eq(setenv("C", "x\nfeeds: [{resource: secrets}]", 1), 0);
	CLEANUP(config_free) struct config *c = parse("store: /${A}\ncluster: {context: '${C}'}\n");

	cr_assert_str_eq(c->store, "/${B}");
	cr_assert_str_eq(c->context, "x\nfeeds: [{resource: secrets}]");
	cr_assert_eq(c->n_feeds, 0);
}

Test(config_variables, a_missing_one_is_an_error_with_its_place)
{
	static const struct wrong wrong[] = {
		{"feeds:\n- resource: pods\n  fieldSelector: spec.nodeName=${NOT_SET}",
			"k.yaml:3: feeds[0].fieldSelector: the environment has no variable "
			"'NOT_SET'; set it for kinf and its daemons"},
		{"store: ${}",
			"k.yaml:1: store: '${' must be followed by the name of a variable of the "
			"environment and '}'; write '$${' for the characters themselves"},
		{"store: a${B",
			"k.yaml:1: store: '${' must be followed by the name of a variable of the "
			"environment and '}'; write '$${' for the characters themselves"},
		{"group: ${EMPTY}", "k.yaml:1: group: the environment has no variable 'EMPTY'; set "
				    "it for kinf and its daemons"},
	};

	cr_assert_eq(unsetenv("NOT_SET"), 0);
	cr_assert_eq(setenv("EMPTY", "", 1), 0);
	expect_refusals(wrong, sizeof(wrong) / sizeof(wrong[0]));
}
