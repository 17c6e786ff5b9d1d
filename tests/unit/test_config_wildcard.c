/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/config_rig.h"

Test(config_wildcard, stands_for_what_it_covers)
{
	CLEANUP(config_free)
	struct config *c =
		parse("feeds:\n"
		      "  - resource: all\n"
		      "  - {resource: '*.apps', exclude: [replicasets, pods.metrics.k8s.io]}\n"
		      "  - {resource: '*.v1'}\n"
		      "  - {resource: '*.v1beta1.stable.example.com'}\n"
		      "  - {resource: '*.events.k8s.io'}\n"
		      "  - resource: pods\n");
	static const struct {
		size_t feed;
		const char *group, *version, *plural;
		bool covered;
	} cases[] = {
		{0, "", "v1", "pods", true},
		{0, "", "v1", "secrets", true},
		{0, "", "v1", "events", false},
		{0, "events.k8s.io", "v1", "events", false},
		{1, "apps", "v1", "deployments", true},
		{1, "apps", "v1", "replicasets", false},
		{1, "", "v1", "pods", false},
		{1, "apps.example.com", "v1", "deployments", false},
		{2, "", "v1", "pods", true},
		{2, "apps", "v1", "deployments", false},
		{3, "stable.example.com", "v1beta1", "crontabs", true},
		{3, "stable.example.com", "v1", "crontabs", false},
		{3, "example.com", "v1beta1", "crontabs", false},
		{4, "events.k8s.io", "v1", "events", true},
		{5, "", "v1", "pods", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cr_expect_eq(config_covers(&c->feeds[cases[i].feed], cases[i].group,
				     cases[i].version, cases[i].plural),
			cases[i].covered, "%zu: %s.%s", i, cases[i].plural, cases[i].group);
	cr_expect_str_eq(c->feeds[0].name, "*");
	cr_expect(c->feeds[0].wildcard && !c->feeds[5].wildcard);
}

Test(config_wildcard, entry_of_the_name_comes_before_wildcards_and_the_first_of_those_counts)
{
	CLEANUP(config_free)
	struct config *c = parse("feeds: [{resource: '*.apps'}, {resource: all}, {resource: "
				 "deploy, name: deployments.apps}]");

	cr_assert_eq(
		config_find_feed(c, "deployments.apps", "apps", "v1", "deployments"), &c->feeds[2]);
	cr_assert_eq(
		config_find_feed(c, "replicasets.apps", "apps", "v1", "replicasets"), &c->feeds[0]);
	cr_assert_eq(config_find_feed(c, "pods", "", "v1", "pods"), &c->feeds[1]);
	cr_assert_null(config_find_feed(c, "events", "", "v1", "events"));
}

Test(config_wildcard, what_makes_no_sense_is_refused_in_words)
{
	static const struct wrong wrong[] = {
		{"feeds: [{resource: '*.'}]", "k.yaml:1: feeds[0].resource: not a wildcard: '*.'; "
					      "write one as '*' (or all), '*.apps' or '*.v1.apps'"},
		{"feeds: [{resource: all}, {resource: '*'}]",
			"k.yaml:1: feeds[1].resource: '*' is feeds[0] in line 1 already"},
		{"feeds: [{resource: '*pods'}]", "k.yaml:1: feeds[0].resource: not a wildcard: "
						 "'*pods'; write one as '*' (or all), "
						 "'*.apps' or '*.v1.apps'"},
		{"feeds: [{resource: '*', name: every}]", "k.yaml:1: feeds[0].name: a wildcard's "
							  "feeds are named after their resources"},
		{"feeds: [{resource: pods, exclude: [x]}]",
			"k.yaml:1: feeds[0].exclude: only a wildcard leaves something out"},
		{"feeds: [{resource: '*', exclude: [.x]}]",
			"k.yaml:1: feeds[0].exclude[0]: not a resource: '.x'; write one as secrets "
			"or leases.coordination.k8s.io"},
		{"feeds: [{resource: pods, whenGone: maybe}]",
			"k.yaml:1: feeds[0].whenGone: must be keep or drop, not 'maybe'"},
	};

	expect_refusals(wrong, ARRAY_SIZE(wrong));
}

Test(config_wildcard, policy_for_what_has_gone)
{
	CLEANUP(config_free)
	struct config *c =
		parse("feeds: [{resource: pods, whenGone: drop}, {resource: services, whenGone: "
		      "keep}, {resource: nodes}]");

	cr_assert(c->feeds[0].drop_gone && !c->feeds[1].drop_gone && !c->feeds[2].drop_gone);
}

Test(config_wildcard, flags_say_it_too)
{
	char all[] = "all(-n web --exclude secrets,leases)", index[] = "*/owner=metadata.uid";
	const char *watch[] = {all}, *indexes[] = {index};
	struct config_flags flags = {.watch = {.items = watch, .n = 1},
		.index = {.items = indexes, .n = 1},
		.file = "/dev/null"};
	CLEANUP(config_free) struct config *c = NULL;

	OK(config_load(&flags, &c));
	cr_assert_eq(c->n_feeds, 1);
	cr_assert_str_eq(c->feeds[0].namespaces[0], "web");
	cr_assert_eq(c->feeds[0].n_exclude, 2);
	cr_assert_eq(c->feeds[0].n_indexes, 1);
	cr_assert_not(config_covers(&c->feeds[0], "coordination.k8s.io", "v1", "leases"));
	cr_assert(
		config_covers(&c->feeds[0], "", "v1", "events"), "only what is named is left out");
	cr_assert_not(config_covers(&c->feeds[0], "events.k8s.io", "v1", "events"),
		"the same objects were stored twice");
}
