/* SPDX-License-Identifier: Apache-2.0 */
/* The feeds and the definitions of a name in a snapshot. */
#include "store/read/snapshot.h"
#include "tests/unit/snapshot_rig.h"

TestSuite(snapshot_feeds, .init = set_up, .fini = tear_down);

static uint32_t add_feed(const char *name, const char *group, const char *resource,
	const char *kind, const char *namespace_)
{
	struct feed_definition d = {.name = name,
		.group = group,
		.version = "v1",
		.resource = resource,
		.kind = kind,
		.list_kind = "",
		.namespace_ = namespace_,
		.label_selector = "",
		.field_selector = "",
		.drop = ""};
	uint32_t id;

	OK(journal_begin(s.journal));
	OK(journal_add_feed(s.journal, &d, &id));
	OK(journal_commit(s.journal));
	return id;
}

static const char *ids_of(struct snapshot_feed *list, size_t n, char text[512])
{
	size_t at = 0;

	text[0] = 0;
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(
			text + at, 512 - at, i ? " %u" : "%u", list[i].definition.id);
	free(list);
	return text;
}

/* The ids NAME stands for, "1 2", or the error's sentence. */
static const char *feeds(const char *name)
{
	static char text[512];
	struct snapshot_feed *list;
	size_t n;
	int r = snapshot_feeds(snapshot, name, &list, &n);

	return r < 0 ? err_text(r) : ids_of(list, n, text);
}

/* The same, from one reading of all feeds. */
static const char *feeds_among_all(const char *name)
{
	static char text[512];
	struct snapshot_feed *all, *list;
	size_t n_all, n;

	OK(snapshot_feeds(snapshot, NULL, &all, &n_all));
	int r = snapshot_feeds_among(snapshot, all, n_all, name, &list, &n);
	const char *ids = r < 0 ? err_text(r) : ids_of(list, n, text);
	free(all);
	return ids;
}

Test(snapshot_feeds, names_of_feeds_are_those_of_configuration_and_of_the_resource)
{
	uint32_t ids[] = {s.feed, add_feed("apps", "apps", "deployments", "Deployment", "web"),
		add_feed("apps", "apps", "deployments", "Deployment", "shop"),
		add_feed("apps", "apps", "deployments", "Deployment", "web-x"),
		add_feed("old", "", "nodes", "Node", ""), add_feed("new", "", "nodes", "Node", ""),
		add_feed("pods", "", "pods", "Pod", "")};

	cr_assert_eq(ids[6], 7, "ids are given in order, from 1");
	open_snapshot();
	cr_assert_str_eq(feeds("pods"), "1", "the listed one before the newer");
	cr_assert_str_eq(feeds("Pod"), "1");
	for (const char *const *name = (const char *const[]){"pods", "Pod", "deploy", "apps",
		     "nodes", "none", "all", "", NULL};
		*name; name++)
		cr_assert_str_eq(feeds_among_all(*name), feeds(*name), "%s", *name);
	cr_assert_str_eq(feeds("pod"), "1");
	cr_assert_str_eq(feeds("pods.v1"), "1");
	cr_assert_str_eq(feeds("pods.v1."), "1");
	/* By "shop/", "web-x/", "web/": '-' is below '/'. */
	cr_assert_str_eq(feeds("apps"), "3 4 2");
	cr_assert_str_eq(feeds("deployments"), "3 4 2");
	cr_assert_str_eq(feeds("deployments.apps"), "3 4 2");
	cr_assert_str_eq(feeds("deployment.v1.apps"), "3 4 2");
	cr_assert_str_eq(feeds("deployments.v2.apps"),
		"no feed 'deployments.v2.apps': add '- resource: deployments.v2.apps' to the feeds "
		"in kinf.yaml; if it is there, 'kinf status' says why it has no feed; there are: "
		"'apps', 'new', 'old', 'pods'");
	cr_assert_str_eq(feeds("nodes"),
		"several feeds watch the resource 'nodes': name one of 'new', 'old'");
	cr_assert_str_eq(feeds("PODS"), "1");
	cr_assert_str_eq(feeds("Deployments.APPS"), "3 4 2");
	cr_assert_str_eq(feeds("pdos"), "no feed 'pdos': did you mean 'pods'? Else add "
					"'- resource: pdos' to the feeds in kinf.yaml; "
					"there are: 'apps', 'new', 'old', 'pods'");
	cr_assert_str_eq(feeds("all"),
		"no feed is called 'all': name one of 'apps', 'new', 'old', 'pods'; 'kinf get all' "
		"prints pods, services and the other kinds that run something");
	cr_assert_str_eq(feeds("old"), "5");
	cr_assert_str_eq(feeds(NULL), "3 4 2 6 5 1 7");
}

static void set_order(const char *order, int result)
{
	OK(journal_begin(s.journal));
	cr_assert_eq(journal_set_order(s.journal, bytes_str(order)), result);
	OK(journal_commit(s.journal));
}

/* As kubectl's RESTMapper: the core group, then the groups and versions as discovery lists them. */
Test(snapshot_feeds, name_of_several_resources_means_the_first_in_the_order_of_discovery)
{
	(void)add_feed("2", "longhorn.io", "nodes", "Node", "");
	(void)add_feed("3", "", "nodes", "Node", "");
	(void)add_feed("4", "config.openshift.io", "ingresses", "Ingress", "");
	(void)add_feed("5", "networking.k8s.io", "ingresses", "Ingress", "");
	(void)add_feed("6", "a.example.com", "widgets", "Widget", "web");
	(void)add_feed("6", "a.example.com", "widgets", "Widget", "shop");
	(void)add_feed("8", "b.example.com", "widgets", "Widget", "");
	(void)add_feed("9", "b.example.com", "gadgets", "Gadget", "");
	(void)add_feed("10", "b.example.com", "gadgets", "Gadget", "");
	(void)add_feed("8~next", "b.example.com", "widgets", "Widget", "");
	open_snapshot();
	/* Without an order: the core group, other groups of the API server, then by name. */
	cr_assert_str_eq(feeds("node"), "3");
	cr_assert_str_eq(feeds("Node.longhorn.io"), "2");
	cr_assert_str_eq(feeds("nodes.longhorn"), "2", "as storageclass.storage for kubectl");
	cr_assert_str_eq(feeds("node.v1.longhorn.io"), "2");
	cr_assert_str_eq(feeds("ingress"), "5");
	cr_assert_str_eq(feeds("widget"), "7 6", "both feeds of the entry");
	cr_assert_str_eq(feeds("widget.b"), "8");
	cr_assert_str_eq(feeds("gadget"),
		"several feeds watch the resource 'gadget': name one of '10', '9'");
	snapshot_close(&snapshot);
	set_order("v1\nnetworking.k8s.io/v1\nb.example.com/v1\na.example.com/v1\nlonghorn.io/v1\n",
		0);
	set_order("v1\nnetworking.k8s.io/v1\nb.example.com/v1\na.example.com/v1\nlonghorn.io/v1\n",
		END);
	OK(snapshot_open(store, &snapshot));
	cr_assert_str_eq(feeds("widget"), "8");
	cr_assert_str_eq(feeds("ingress"), "5", "a group that discovery no longer has goes last");
	cr_assert_str_eq(feeds("no"),
		"no feed 'no': add '- resource: no' to the feeds in kinf.yaml; if it is there, "
		"'kinf status' says why it has no feed; there are: '10', '2', '3', '4', '5', '6', "
		"'8', '8~next', '9', 'pods'");
	snapshot_close(&snapshot);
	set_order("config.openshift.io/v1\nlonghorn.io/v1beta2\n", 0);
	OK(snapshot_open(store, &snapshot));
	cr_assert_str_eq(feeds("ingress"), "4");
	cr_assert_str_eq(feeds("node"), "3", "the version is another one");
}

Test(snapshot_feeds, full_name_goes_before_a_short_one)
{
	struct feed_definition short_name = {.name = "a",
		.group = "",
		.version = "v1",
		.resource = "events",
		.kind = "Event",
		.aliases = "event ev "};
	struct feed_definition full = {.name = "b",
		.group = "z.example.com",
		.version = "v1beta1",
		.resource = "evs",
		.kind = "Ev",
		.aliases = "ev "};
	const char *const v1 = "deployments";
	struct feed_definition beta = {.name = "c",
		.group = "apps",
		.version = "v1beta1",
		.resource = v1,
		.kind = "Deployment"};
	struct feed_definition stable = {.name = "d",
		.group = "apps",
		.version = "v1",
		.resource = v1,
		.kind = "Deployment"};
	uint32_t id;

	OK(journal_begin(s.journal));
	OK(journal_add_feed(s.journal, &short_name, &id));
	OK(journal_add_feed(s.journal, &full, &id));
	OK(journal_add_feed(s.journal, &beta, &id));
	OK(journal_add_feed(s.journal, &stable, &id));
	OK(journal_set_order(
		s.journal, BYTES_LIT("v1\napps/v1\napps/v1beta1\nz.example.com/v1beta1\n")));
	OK(journal_commit(s.journal));
	open_snapshot();
	cr_assert_str_eq(feeds("ev"), "3", "its kind");
	cr_assert_str_eq(feeds("event"), "2");
	cr_assert_str_eq(feeds("deployment"), "5", "the version that discovery has first");
	cr_assert_str_eq(feeds("deployments.v1beta1"), "4");
	cr_assert_str_eq(feeds("Deployment.v1."), "5");
	cr_assert_str_eq(feeds("deployments."), "5");
}

Test(snapshot_feeds, sentence_names_some_feeds_and_counts_the_rest)
{
	char name[] = "a00";

	for (unsigned i = 0; i < 24; i++) { /* "pods" is there, and the last by name */
		name[1] = (char)('0' + i / 10);
		name[2] = (char)('0' + i % 10);
		(void)add_feed(name, "example.org", name, name, "");
	}
	open_snapshot();
	const char *sentence = feeds("nodes");
	cr_assert(strstr(sentence, "'a08', 'a09' and 15 more, which 'kinf status' lists"), "%s",
		sentence);
}

Test(snapshot_feeds, definitions_in_use_have_a_name)
{
	struct index_definition found;
	uint32_t late;

	(void)small_store_put(&s, "web/a", "n1", 0);
	small_store_take(&s);
	OK(index_begin(s.index));
	OK(index_define(s.index, s.feed, "late", "spec.text", &late));
	cr_assert_eq(index_undefine(s.index, s.label, 1), AGAIN);
	OK(index_commit(s.index));
	OK(store_open(s.path, NULL, &store));
	OK(snapshot_open(store, &snapshot));
	cr_assert_eq(snapshot_definition(snapshot, s.feed, "node", &found), FOUND);
	cr_assert_eq(found.id, s.node);
	cr_assert_str_eq(found.paths, "spec.nodeName");
	cr_assert_eq(snapshot_definition(snapshot, s.feed, "late", &found), AGAIN);
	cr_assert_eq(snapshot_definition(snapshot, s.feed, "label", &found), NOT_FOUND);
	cr_assert_eq(snapshot_definition(snapshot, s.feed + 1, "node", &found), NOT_FOUND);
}

Test(snapshot_feeds, definitions_of_all_feeds_are_read_once_for_each_snapshot)
{
	const struct index_definition *first, *again, *other;
	size_t n_first, n;
	uint32_t id;

	open_snapshot();
	OK(snapshot_definitions(snapshot, s.feed, &first, &n_first));
	OK(snapshot_definitions(snapshot, s.feed, &again, &n));
	cr_assert(n_first > 1 && n == n_first);
	cr_assert_eq(again, first, "the same ones in memory");
	OK(index_begin(s.index));
	OK(index_define(s.index, s.feed + 1, "other", "spec.text", &id));
	OK(index_define(s.index, s.feed, "late", "spec.text", &id));
	OK(index_commit(s.index));
	OK(snapshot_renew(snapshot));
	OK(snapshot_definitions(snapshot, s.feed, &again, &n));
	cr_assert_eq(n, n_first + 1);
	cr_assert_eq(again[n_first].id, id);
	OK(snapshot_definitions(snapshot, s.feed + 1, &other, &n));
	cr_assert_eq(n, 1);
	cr_assert_str_eq(other->name, "other");
	OK(snapshot_definitions(snapshot, s.feed + 2, &other, &n));
	cr_assert_eq(n, 0);
}
