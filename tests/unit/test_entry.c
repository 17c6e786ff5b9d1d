/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/definition.h"
#include "reflector/feed/feeds_entry.h"
#include "tests/unit/unit.h"

static char web[] = "web", shop[] = "shop", *namespaces[] = {web, shop};
static char drop[] = "metadata.managedFields\nstatus";
static char name[] = "dep", resource[] = "deploy.v1.apps", labels[] = "a=b", fields[] = "";
static const struct config_feed config = {.name = name,
	.resource = resource,
	.namespaces = namespaces,
	.n_namespaces = 2,
	.label_selector = labels,
	.field_selector = fields,
	.drop = drop,
	.page_size = 100};
static const struct resource deployments = {.group = "apps",
	.version = "v1",
	.plural = "deployments",
	.kind = "Deployment",
	.list_kind = "DeploymentList",
	.namespaced = true};

Test(entry, discovery_makes_a_definition_of_an_entry)
{
	struct entry entry;
	struct feed_definition d, copy;

	cr_assert_eq(entry_init(&config, 1, &entry), 0);
	cr_assert_eq(entry_define(&entry, &deployments, &d), 0);
	cr_assert_str_eq(d.name, "dep");
	cr_assert_str_eq(d.namespace_, "shop");
	cr_assert_str_eq(d.resource, "deployments");
	cr_assert_str_eq(d.drop, "metadata.managedFields\nstatus");
	cr_assert_eq(definition_copy(&d, &copy), 0);
	copy.id = 7;
	copy.resync_ns = 5;
	cr_assert(definition_same(&d, &copy));
	copy.metadata_only = true;
	cr_assert_not(definition_same(&d, &copy));
	definition_release(&copy);
	entry_release(&entry);
}

Test(entry, an_entry_matches_a_stored_definition_without_discovery)
{
	struct entry entry;
	struct feed_definition d;

	cr_assert_eq(entry_init(&config, 0, &entry), 0);
	cr_assert_eq(entry_define(&entry, &deployments, &d), 0);
	cr_assert(entry_means(&entry, &d));
	d.name = "dep" FEED_NEXT;
	cr_assert(entry_means(&entry, &d));
	d.name = "depot";
	cr_assert_not(entry_means(&entry, &d));
	d.name = "dep";
	d.version = "v1beta1";
	cr_assert_not(entry_means(&entry, &d));
	d.version = "v1";
	d.group = "extensions";
	cr_assert_not(entry_means(&entry, &d));
	d.group = "apps";
	d.label_selector = "";
	cr_assert_not(entry_means(&entry, &d));
	entry_release(&entry);
}

Test(entry, a_namespace_of_a_cluster_scoped_resource_is_refused)
{
	struct entry entry;
	struct feed_definition d;
	struct resource nodes = deployments;

	nodes.namespaced = false;
	cr_assert_eq(entry_init(&config, 0, &entry), 0);
	cr_assert_eq(entry_define(&entry, &nodes, &d), ERR_CONFIG);
	entry_release(&entry);
}

Test(entry, an_entry_of_a_wildcard_is_named_after_its_resource)
{
	static const struct entry_resource of[] = {
		{"", "v1", "pods"}, {"apps", "v1", "deployments"}};
	struct entry pods, dep;
	struct feed_definition d;

	cr_assert_eq(entry_init_of(&config, 0, &of[0], &pods), 0);
	cr_assert_eq(entry_init_of(&config, 1, &of[1], &dep), 0);
	cr_assert_str_eq(pods.name, "pods");
	cr_assert_str_eq(pods.resource, "pods.v1");
	cr_assert_str_eq(dep.name, "deployments.apps");
	cr_assert_str_eq(dep.name_space, "shop");
	cr_assert_str_eq(dep.label_selector, "a=b");
	cr_assert(entry_is_of(&dep, &of[1]) && !entry_is_of(&dep, &of[0]));
	cr_assert_eq(entry_define(&dep, &deployments, &d), 0);
	cr_assert(entry_means(&dep, &d), "the stored feed is found again");
	cr_assert_not(entry_means(&pods, &d));
	entry_release(&pods);
	entry_release(&dep);
}
