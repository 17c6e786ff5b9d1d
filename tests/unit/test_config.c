/* SPDX-License-Identifier: Apache-2.0 */
#include "common/buf.h"
#include "common/config/config.h"
#include "tests/unit/config_rig.h"

static char directory[64];

/* A home of our own: nothing of the machine's configuration is seen. */
static void make_home(void)
{
	(void)snprintf(directory, sizeof(directory), "/tmp/kinf-config-XXXXXX");
	cr_assert(mkdtemp(directory));
	cr_assert_eq(chdir(directory), 0);
	cr_assert_eq(setenv("HOME", directory, 1), 0);
	cr_assert_eq(unsetenv("KINF_CONFIG") | unsetenv("KINF_STORE") |
			     unsetenv("KINF_RUNTIME_DIR") | unsetenv("XDG_STATE_HOME") |
			     unsetenv("XDG_RUNTIME_DIR"),
		0);
}

static void remove_home(void)
{
	(void)unlink("kinf.yaml");
	(void)unlink("other.yaml");
	cr_assert_eq(rmdir(directory), 0);
}

TestSuite(config, .init = make_home, .fini = remove_home);

static struct config *load(const struct config_flags *flags)
{
	struct config *config = NULL;

	OK(config_load(flags, &config));
	return config;
}

static void write_file(const char *name, const char *text)
{
	AUTO_FD int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

/* PATH is NAME in our directory. */
static void expect_here(const char *path, const char *name)
{
	char wanted[256];

	(void)snprintf(wanted, sizeof(wanted), "%s/%s", directory, name);
	cr_expect_str_eq(path, wanted, "%s", path);
}

static const char every_key[] = "cluster:\n"
				"  kubeconfig: ~/.kube/config\n"
				"  context: prod\n"
				"store: data/kinf\n"
				"runtimeDir: /run/x\n"
				"durability: disk\n"
				"retention: {time: 1h30m, size: 64MiB}\n"
				"mapSize: 1TiB\n"
				"group: kinf-readers\n"
				"cursorExpiry: 2d\n"
				"feeds:\n"
				"  - resource: pods\n"
				"    name: web-pods\n"
				"    namespaces: [web, shop]\n"
				"    labelSelector: tier in (front,back)\n"
				"    fieldSelector: status.phase=Running\n"
				"    drop: [type, metadata.managedFields, type, data]\n"
				"    indexes:\n"
				"      node: spec.nodeName\n"
				"      app: metadata.labels['app.kubernetes.io/name']\n"
				"      image: spec.containers[*].image\n"
				"      node-phase: [spec.nodeName, status.phase]\n"
				"    pageSize: 100\n"
				"    resync: 10m\n"
				"  - resource: deployments.apps\n"
				"    objects: metadata\n"
				"    drop: []\n";

Test(config, every_key_of_the_file_is_taken)
{
	CLEANUP(config_free) struct config *c = parse(every_key);

	expect_here(c->kubeconfig, ".kube/config");
	cr_assert_str_eq(c->context, "prod");
	expect_here(c->store, "data/kinf");
	cr_assert_str_eq(c->runtime_dir, "/run/x");
	cr_assert(c->durable);
	cr_assert_eq(c->retention_ns, 5400ull * 1000000000);
	cr_assert_eq(c->retention_bytes, 64 << 20);
	cr_assert_eq(c->map_bytes, 1ull << 40);
	cr_assert_str_eq(c->group, "kinf-readers");
	cr_assert_eq(c->cursor_ns, 2 * 86400ull * 1000000000);
	cr_assert_eq(c->n_feeds, 2);
}

Test(config, every_key_of_a_feed_is_taken)
{
	CLEANUP(config_free) struct config *c = parse(every_key);
	const struct config_feed *f = &c->feeds[0];

	cr_assert_str_eq(f->resource, "pods");
	cr_assert_str_eq(f->name, "web-pods");
	cr_assert_eq(f->n_namespaces, 2);
	cr_assert_str_eq(f->namespaces[1], "shop");
	cr_assert_str_eq(f->label_selector, "tier in (back,front)");
	cr_assert_str_eq(f->field_selector, "status.phase=Running");
	cr_assert(c->feeds[1].metadata_only);
	cr_assert_str_eq(f->drop, "data\nmetadata.managedFields\ntype");
	cr_assert_eq(f->page_size, 100);
	cr_assert_eq(f->resync_ns, 600ull * 1000000000);
	cr_assert_eq(f->line, 12);
	cr_assert_eq(f->n_indexes, 4);
	cr_assert_str_eq(f->indexes[1].name, "app");
	cr_assert_str_eq(f->indexes[1].paths[0], "metadata.labels['app.kubernetes.io/name']");
	cr_assert_eq(f->indexes[3].n_paths, 2);
	cr_assert_str_eq(f->indexes[3].paths[1], "status.phase");
}

static void expect_feed_defaults(const struct config_feed *f)
{
	cr_assert_str_eq(f->name, f->resource);
	cr_assert_eq(f->n_namespaces, 0);
	cr_assert_str_eq(f->label_selector, "");
	cr_assert_str_eq(f->field_selector, "");
	cr_assert_not(f->metadata_only);
	cr_assert_eq(f->n_indexes, 0);
	cr_assert_eq(f->page_size, 500);
	cr_assert_eq(f->resync_ns, 0);
}

Test(config, defaults_are_those_of_the_contract)
{
	CLEANUP(config_free) struct config *c = parse("feeds: [{resource: deployments.v1.apps}]\n");

	cr_assert_null(c->kubeconfig);
	cr_assert_null(c->context);
	cr_assert_null(c->group);
	cr_assert_not(c->durable);
	cr_assert_eq(c->retention_ns, 600ull * 1000000000);
	cr_assert_eq(c->retention_bytes, 1 << 30);
	cr_assert_eq(c->map_bytes, 64ull << 30);
	cr_assert_eq(c->cursor_ns, 7 * 86400ull * 1000000000);
	expect_feed_defaults(&c->feeds[0]);
	cr_assert_str_eq(c->feeds[0].drop, "metadata.managedFields");
}

Test(config, empty_drop_keeps_everything_and_null_is_the_default)
{
	CLEANUP(config_free)
	struct config *c =
		parse("store:\nfeeds: [{resource: a, drop: []}, {resource: b, drop: null}]\n");

	cr_assert_str_eq(c->feeds[0].drop, "");
	cr_assert_str_eq(c->feeds[1].drop, "metadata.managedFields");
}

Test(config, empty_file_is_fine)
{
	CLEANUP(config_free) struct config *c = parse("# nothing\n");

	cr_assert_eq(c->n_feeds, 0);
}

/* ---- each key wrong in turn --------------------------------------------- */

#define TOP_KEYS \
	"allowed here: cluster, store, runtimeDir, durability, retention, mapSize, group, " \
	"cursorExpiry, hangLimit, listConcurrency, watchTimeout, backoff, timeouts, recheck, " \
	"streamingLists, maxObjectSize, holdMassDelete, consistencyCheck, serve, feeds"

Test(config, each_top_key_wrong_in_turn)
{
	static const struct wrong wrong[] = {
		{"[1]", "k.yaml:1: must be a map of keys and values"},
		{"stor: x", "k.yaml:1: stor: unknown key: did you mean 'store'?; " TOP_KEYS},
		{"retention.time: 1m", "k.yaml:1: retention.time: unknown key; " TOP_KEYS},
		{"store: x\nstore: y", "k.yaml:2: store: twice, first in line 1"},
		{"a: [", "k.yaml:2: did not find expected node content"},
		{"cluster: x", "k.yaml:1: cluster: must be a map of keys and values"},
		{"cluster: {user: x}",
			"k.yaml:1: cluster.user: unknown key; allowed here: kubeconfig, context"},
		{"cluster: {kubeconfig: [x]}", "k.yaml:1: cluster.kubeconfig: must be a single "
					       "value, not a list, a map or nothing"},
		{"cluster: {context: ''}", "k.yaml:1: cluster.context: must not be empty"},
		{"\nstore: {a: b}",
			"k.yaml:2: store: must be a single value, not a list, a map or nothing"},
		{"runtimeDir: ''", "k.yaml:1: runtimeDir: must not be empty"},
		{"durability: maybe", "k.yaml:1: durability: must be process or disk, not 'maybe'"},
		{"durability: []", "k.yaml:1: durability: must be a single value, not a list, a "
				   "map or nothing"},
		{"retention: 10m", "k.yaml:1: retention: must be a map of keys and values"},
		{"retention: {days: 1}",
			"k.yaml:1: retention.days: unknown key; allowed here: time, size"},
		{"retention: {time: 10}", "k.yaml:1: retention.time: not a duration: '10'; write "
					  "one as 10m, 1h30m, 500ms or 0s"},
		{"retention: {size: much}", "k.yaml:1: retention.size: not a size: 'much'; write "
					    "one as 1GiB, 64MiB, 500kB or a number of bytes"},
		{"mapSize: 1MiB", "k.yaml:1: mapSize: '1MiB': allowed are 16MiB to 64TiB"},
		{"mapSize: -1", "k.yaml:1: mapSize: not a size: '-1'; write one as 1GiB, 64MiB, "
				"500kB or a number of bytes"},
		{"group: [a]",
			"k.yaml:1: group: must be a single value, not a list, a map or nothing"},
		{"cursorExpiry: soon", "k.yaml:1: cursorExpiry: not a duration: 'soon'; write one "
				       "as 10m, 1h30m, 500ms or 0s"},
		{"feeds: pods", "k.yaml:1: feeds: must be a list"},
		{"feeds: [pods]", "k.yaml:1: feeds[0]: must be a map of keys and values"},
	};

	expect_refusals(wrong, ARRAY_SIZE(wrong));
}

#define FEED "feeds:\n- resource: pods\n  "
#define NAME_RULE \
	"allowed are letters, digits, '-', '.' and '_', the first one a letter or digit, at most " \
	"200"

#define FEED_KEYS \
	"allowed here: resource, name, namespaces, labelSelector, fieldSelector, objects, drop, " \
	"indexes, resolve, exclude, whenGone, pageSize, resync"

Test(config, each_key_of_a_feed_wrong_in_turn)
{
	static const struct wrong wrong[] = {
		{"feeds:\n- name: x",
			"k.yaml:2: feeds[0].resource: is missing; write one as pods or "
			"deployments.apps"},
		{"feeds:\n- resource: po/x", "k.yaml:2: feeds[0].resource: not a resource: 'po/x'; "
					     "write one as pods, deployments.apps or "
					     "deployments.v1.apps"},
		{FEED "indices: {node: spec.nodeName}", "k.yaml:3: feeds[0].indices: unknown key: "
							"did you mean 'indexes'?; " FEED_KEYS},
		{FEED "group: apps",
			"k.yaml:3: feeds[0].group: unknown key: write it in resource, as "
			"deployments.apps or deployments.v1.apps; " FEED_KEYS},
		{FEED "colour: red", "k.yaml:3: feeds[0].colour: unknown key; " FEED_KEYS},
		{FEED "name: a/b", "k.yaml:3: feeds[0].name: not a name: 'a/b'; " NAME_RULE},
		{FEED "namespaces: web", "k.yaml:3: feeds[0].namespaces: must be a list"},
		{FEED "namespaces: [web, Shop]", "k.yaml:3: feeds[0].namespaces[1]: not a "
						 "namespace: 'Shop'; allowed are lower case "
						 "letters, digits and '-' inside, at most 63"},
		{FEED "namespaces: [web, web]",
			"k.yaml:3: feeds[0].namespaces[1]: 'web' is there twice"},
		{FEED "objects: some",
			"k.yaml:3: feeds[0].objects: must be full or metadata, not 'some'"},
		{FEED "drop: status", "k.yaml:3: feeds[0].drop: must be a list"},
		{FEED "drop: ['spec.containers[*].image']",
			"k.yaml:3: feeds[0].drop[0]: 'spec.containers[*].image': only paths of "
			"plain keys can be dropped, without [*] or [0]"},
		{FEED "drop: [.metadata.uid]", "k.yaml:3: feeds[0].drop[0]: 'metadata.uid' is "
					       "needed and can't be dropped"},
		{FEED "drop: [\"a['b\\nc']\"]", "k.yaml:3: feeds[0].drop[0]: must not have a line "
						"break within a field path"},
		{FEED "indexes: {nl: [a, \"a['b\\nc']\"]}",
			"k.yaml:3: feeds[0].indexes.nl[1]: must not have a line break within a "
			"field path"},
		{FEED "indexes: [a]", "k.yaml:3: feeds[0].indexes: must be a map from index names "
				      "to field paths"},
		{FEED "indexes: {a b: spec.x}",
			"k.yaml:3: feeds[0].indexes.a b: not an index name: 'a b'; " NAME_RULE},
		{FEED "indexes: {namespace: spec.x}", "k.yaml:3: feeds[0].indexes.namespace: "
						      "'namespace' is built in; choose another "
						      "name"},
		{FEED "indexes: {label: spec.x}", "k.yaml:3: feeds[0].indexes.label: 'label' is "
						  "built in; choose another name"},
		{FEED "indexes: {node: a, node: b}", "k.yaml:3: node: twice, first in line 3"},
		{FEED "indexes: {node: }", "k.yaml:3: feeds[0].indexes.node: must be a single "
					   "value, not a list, a map or nothing"},
		{FEED "indexes: {node: []}", "k.yaml:3: feeds[0].indexes.node: must be a field "
					     "path, or a list of at least one"},
		{FEED "indexes: {node: [a, [b]]}", "k.yaml:3: feeds[0].indexes.node[1]: must be a "
						   "single value, not a list, a map or nothing"},
		{FEED "indexes: {n: [a,b,c,d,e,f,g,h,i]}",
			"k.yaml:3: feeds[0].indexes.n[8]: at most 8 paths in one index"},
		{FEED "drop: [spec]\n  indexes: {node: spec.nodeName}",
			"k.yaml:2: feeds[0].indexes: index 'node': the objects of feed 'pods' are "
			"kept without 'spec.nodeName' ('objects' or 'drop')"},
		{FEED "indexes: {uid: metadata.uid, n: [metadata.name, a]}\n  objects: metadata",
			"k.yaml:2: feeds[0].indexes: index 'n': the objects of feed 'pods' are "
			"kept without 'a' ('objects' or 'drop')"},
		{FEED "resolve: true\n  objects: metadata",
			"k.yaml:2: feeds[0].resolve: index 'who-ip': the objects of feed 'pods' "
			"are "
			"kept without 'status.podIPs[*].ip' ('objects' or 'drop')"},
		{FEED "pageSize: many", "k.yaml:3: feeds[0].pageSize: not a number: 'many'; "
					"allowed are 1 to 100000"},
		{FEED "pageSize: 0", "k.yaml:3: feeds[0].pageSize: '0': allowed are 1 to 100000"},
		{FEED "pageSize: 100001",
			"k.yaml:3: feeds[0].pageSize: '100001': allowed are 1 to 100000"},
		{FEED "resync: 1 day", "k.yaml:3: feeds[0].resync: not a duration: '1 day'; write "
				       "one as 10m, 1h30m, 500ms or 0s"},
		{FEED "resync: 500ms", "k.yaml:3: feeds[0].resync: '500ms': allowed are 1s to "
				       "3650d, and 0s for none"},
		{FEED "resync: 3651d", "k.yaml:3: feeds[0].resync: '3651d': allowed are 1s to "
				       "3650d, and 0s for none"},
		{"feeds:\n- resource: pods\n- resource: po\n  name: pods",
			"k.yaml:4: feeds[1].name: 'pods' is also the name of feeds[0] in line 2; "
			"give one of them another"},
		{"feeds:\n- resource: pods\n- resource: pods",
			"k.yaml:3: feeds[1].name: 'pods' is also the name of feeds[0] in line 2; "
			"give one of them another"},
	};

	expect_refusals(wrong, ARRAY_SIZE(wrong));
}

/* The words after the place are the parser's own. */
static void expect_refusal_at(const char *text, const char *place)
{
	struct config *c = NULL;

	cr_assert_eq(config_parse(text, strlen(text), "k.yaml", &c), ERR_CONFIG, "%s", text);
	const char *sentence = err_text(ERR_CONFIG);
	cr_expect(strncmp(sentence, place, strlen(place)) == 0 && sentence[strlen(place)], "%s",
		sentence);
}

Test(config, bad_selectors_and_paths_are_refused_at_their_place)
{
	expect_refusal_at(FEED "labelSelector: a in b", "k.yaml:3: feeds[0].labelSelector: ");
	expect_refusal_at(FEED "fieldSelector: status.phase", "k.yaml:3: feeds[0].fieldSelector: ");
	expect_refusal_at(FEED "fieldSelector: a=1,age<1h",
		"k.yaml:3: feeds[0].fieldSelector: 'a=1,age<1h': "
		"the API server knows only = and !=");
	expect_refusal_at(FEED "drop: [status, 'a[']", "k.yaml:3: feeds[0].drop[1]: ");
	expect_refusal_at(FEED "indexes:\n    node: spec.x.", "k.yaml:4: feeds[0].indexes.node: ");
	expect_refusal_at(
		FEED "indexes:\n    node: [spec.x, 'a[x']", "k.yaml:4: feeds[0].indexes.node[1]: ");
}

Test(config, too_many_feeds_are_refused)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	struct config *c = NULL;

	buf_str(&text, "feeds:\n");
	for (int i = 0; i < 2048; i++)
		buf_printf(&text, "- {resource: r%d, namespaces: [a, b]}\n", i);
	cr_assert_eq(config_parse(buf_cstr(&text), text.size, "k.yaml", &c), 0);
	config_free(&c);
	buf_str(&text, "- {resource: r}\n");
	cr_assert_eq(config_parse(buf_cstr(&text), text.size, "k.yaml", &c), ERR_CONFIG);
	cr_assert_str_eq(err_text(ERR_CONFIG),
		"k.yaml:1: feeds: more than 4096, each namespace of a feed counted");
}

/* ---- which file, which directories -------------------------------------- */

Test(config, files_are_looked_for_in_their_order)
{
	struct config_flags flags = {0};

	write_file("kinf.yaml", "cluster: {context: here}\n");
	write_file("other.yaml", "cluster: {context: other}\n");
	CLEANUP(config_free) struct config *c = load(NULL);
	cr_assert_str_eq(c->context, "here");
	cr_assert_str_eq(c->file, "kinf.yaml");
	config_free(&c);
	cr_assert_eq(setenv("KINF_CONFIG", "other.yaml", 1), 0);
	c = load(&flags);
	cr_assert_str_eq(c->context, "other");
	config_free(&c);
	flags.file = "kinf.yaml";
	c = load(&flags);
	cr_assert_str_eq(c->context, "here");
}

/* Root in another user's directory used to run the exec plugin of the user's file. */
Test(config, a_file_that_another_user_may_have_written_counts_only_if_it_is_named)
{
	struct config_flags flags = {.file = "kinf.yaml"};
	const char *const link = "link.yaml";

	write_file("kinf.yaml", "cluster: {context: planted}\n");
	for (mode_t bad = 0; bad <= 022; bad += 2) { /* 0, then the bits of others, of the group */
		cr_assert_eq(chmod("kinf.yaml", 0644 | (bad & 022)), 0);
		struct config *c = load(NULL);
		cr_expect_eq(!c->file, (bad & 022) != 0, "mode %o", 0644 | (bad & 022));
		cr_expect_eq(!c->passed_over, (bad & 022) == 0);
		config_free(&c);
	}
	struct config *c = load(&flags);
	cr_expect_str_eq(c->context, "planted");
	config_free(&c);
	if (geteuid() != 0)
		return;
	cr_assert_eq(chmod("kinf.yaml", 0644) | chown("kinf.yaml", 12345, 12345), 0);
	c = load(NULL);
	cr_expect_null(c->file);
	cr_expect_str_eq(c->passed_over, "./kinf.yaml is not used: it belongs to user 12345; name "
					 "it with --config if you trust it");
	config_free(&c);
	/* A link of another user to a file of ours. */
	cr_assert_eq(
		chown("kinf.yaml", 0, 0) | rename("kinf.yaml", link) | symlink(link, "kinf.yaml"),
		0);
	c = load(NULL);
	cr_expect_str_eq(c->file, "kinf.yaml");
	config_free(&c);
	cr_assert_eq(lchown("kinf.yaml", 12345, 12345), 0);
	c = load(NULL);
	cr_expect_null(c->file);
	config_free(&c);
	cr_assert_eq(unlink("kinf.yaml") | unlink(link), 0);
}

Test(config, named_file_must_exist)
{
	struct config_flags flags = {.file = "missing.yaml"};
	struct config *c = NULL;

	cr_assert_eq(config_load(&flags, &c), -ENOENT);
	cr_assert_str_eq(err_text(-ENOENT),
		"the configuration 'missing.yaml' (named on the command line) does not exist");
	write_file("kinf.yaml", "store: [");
	cr_assert_eq(config_load(NULL, &c), ERR_CONFIG, "a file that is no YAML");
}

Test(config, store_is_flag_then_environment_then_file_then_default)
{
	struct config_flags flags = {0};

	CLEANUP(config_free) struct config *c = load(&flags);
	if (geteuid() == 0)
		cr_expect_str_eq(c->store, "/var/lib/kinf");
	else
		expect_here(c->store, ".local/state/kinf");
	cr_expect_str_eq(c->runtime_dir, geteuid() == 0 ? "/run" : "/dev/shm");
	cr_assert_null(c->file);
	config_free(&c);
	write_file("kinf.yaml", "store: in-file\nruntimeDir: run\n");
	c = load(&flags);
	expect_here(c->store, "in-file");
	expect_here(c->runtime_dir, "run");
	config_free(&c);
	cr_assert_eq(setenv("KINF_STORE", "~/env", 1) | setenv("KINF_RUNTIME_DIR", "/e", 1), 0);
	c = load(&flags);
	expect_here(c->store, "env");
	cr_expect_str_eq(c->runtime_dir, "/e");
	config_free(&c);
	flags.store = "flag";
	flags.runtime_dir = "/f";
	c = load(&flags);
	expect_here(c->store, "flag");
	cr_expect_str_eq(c->runtime_dir, "/f");
}

/* `kinf get --config FILE` read another store than the file's, without a word. */
Test(config, file_that_an_option_names_goes_before_the_environment)
{
	const struct config_flags named = {.file = "kinf.yaml"},
				  all = {.file = "kinf.yaml", .store = "flag", .runtime_dir = "/f"};

	cr_assert_eq(setenv("KINF_STORE", "/env", 1) | setenv("KINF_RUNTIME_DIR", "/e", 1), 0);
	write_file("kinf.yaml", "feeds: []\n");
	CLEANUP(config_free) struct config *c = load(&named);
	cr_expect_str_eq(c->store, "/env", "the file names none");
	cr_expect_str_eq(c->runtime_dir, "/e");
	cr_expect_null(c->overruled);
	config_free(&c);
	write_file("kinf.yaml", "store: /file\nruntimeDir: /e\n");
	c = load(&named);
	cr_expect_str_eq(c->store, "/file");
	cr_expect_str_eq(c->overruled, "$KINF_STORE ('/env') is not used: kinf.yaml, which the "
				       "command line names, has '/file'");
	config_free(&c);
	write_file("kinf.yaml", "store: /file\nruntimeDir: /r\n");
	c = load(&named);
	cr_expect_str_eq(c->runtime_dir, "/r");
	cr_expect_str_eq(c->overruled,
		"$KINF_STORE ('/env') is not used: kinf.yaml, which the command line names, has "
		"'/file'; $KINF_RUNTIME_DIR ('/e') is not used: kinf.yaml, which the command line "
		"names, has '/r'");
	config_free(&c);
	c = load(&all);
	expect_here(c->store, "flag");
	cr_expect_str_eq(c->runtime_dir, "/f");
	cr_expect_null(c->overruled);
	config_free(&c);
	cr_assert_eq(setenv("KINF_CONFIG", "kinf.yaml", 1), 0);
	c = load(NULL);
	cr_expect_str_eq(c->store, "/env", "a variable that names the file is no option");
	cr_expect_null(c->overruled);
}

Test(config, paths_in_a_file_begin_in_its_directory)
{
	struct config_flags flags = {0};
	char file[128];

	write_file("other.yaml", "store: data\ncluster: {kubeconfig: ~}\n");
	(void)snprintf(file, sizeof(file), "%s/other.yaml", directory);
	cr_assert_eq(chdir("/"), 0);
	flags.file = file;
	struct config *c = load(&flags);
	expect_here(c->store, "data");
	cr_assert_null(c->kubeconfig, "a plain ~ is YAML's null");
	config_free(&c);
	cr_assert_eq(chdir(directory), 0);
}

/* 'kinf config check' used to show paths as written, and a path through a missing directory: the
 * daemons made it. */
Test(config, paths_are_without_dots_and_double_slashes)
{
	static const char *const paths[][2] = {{"/a/./b//c/", "/a/b/c"}, {"/a/../b", "/b"},
		{"/..", "/"}, {"/", "/"}, {"//", "/"}, {"/../../a", "/a"}, {"/a/b/../../c/..", "/"},
		{"/a/...", "/a/..."}, {"/a/..b/.c", "/a/..b/.c"}, {"/a/b/..", "/a"}};
	AUTO_FREE char *path = NULL;
	char link[256], linked[300];

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		cr_assert_eq(config_copy_path(&path, paths[i][0], NULL), 0);
		cr_expect_str_eq(path, paths[i][1], "%s: %s", paths[i][0], path);
	}
	cr_assert_eq(config_copy_path(&path, "missing/../data/.//kinf/", NULL), 0);
	expect_here(path, "data/kinf");
	cr_assert_eq(config_copy_path(&path, "", NULL), 0);
	cr_expect_str_eq(path, directory);
	cr_assert_eq(symlink("/usr/share", "link"), 0);
	for (int i = 0; i < 2; i++) {
		(void)snprintf(link, sizeof(link), i ? "link/../../x/" : "link/../x/");
		cr_assert_eq(config_copy_path(&path, link, NULL), 0);
		(void)snprintf(linked, sizeof(linked), "%s/%s", directory,
			i ? "link/../../x" : "link/../x");
		cr_expect_str_eq(path, linked, "a link leads elsewhere: %s", path);
	}
	cr_assert_eq(unlink("link"), 0);
}

/* ---- flags -------------------------------------------------------------- */

static struct config *watch(const char *text)
{
	struct config_flags flags = {.watch = {.items = &text, .n = 1}};

	return load(&flags);
}

Test(config, watch_replaces_the_files_feeds)
{
	write_file("kinf.yaml", "feeds: [{resource: nodes}]\n");
	CLEANUP(config_free) struct config *c = watch("pods");
	cr_assert_eq(c->n_feeds, 1);
	cr_assert_str_eq(c->feeds[0].resource, "pods");
	expect_feed_defaults(&c->feeds[0]);
	cr_assert_str_eq(c->feeds[0].drop, "metadata.managedFields");
}

Test(config, watch_takes_name_namespace_and_selectors)
{
	CLEANUP(config_free) struct config *c = watch("pods:web(-n web -l app=shop)");
	const struct config_feed *f = &c->feeds[0];

	cr_assert_str_eq(f->resource, "pods");
	cr_assert_str_eq(f->name, "web");
	cr_assert_eq(f->n_namespaces, 1);
	cr_assert_str_eq(f->namespaces[0], "web");
	cr_assert_str_eq(f->label_selector, "app=shop");
	cr_assert_str_eq(f->field_selector, "");
}

Test(config, watch_understands_all_spellings)
{
	CLEANUP(config_free)
	struct config *c =
		watch("deployments.v1.apps( --namespace=a,b -n c  --selector tier in (x, y) "
		      "--field-selector 'metadata.name=z' )");
	const struct config_feed *f = &c->feeds[0];

	cr_assert_str_eq(f->name, "deployments.v1.apps");
	cr_assert_eq(f->n_namespaces, 3);
	cr_assert_str_eq(f->namespaces[2], "c");
	cr_assert_str_eq(f->label_selector, "tier in (x,y)");
	cr_assert_str_eq(f->field_selector, "metadata.name=z");
}

static void refuse_flags(const struct config_flags *flags, const char *sentence)
{
	CLEANUP(config_free) struct config *c = NULL;

	cr_expect_eq(config_load(flags, &c), ERR_SYNTAX, "%s", sentence);
	cr_expect_str_eq(err_text(ERR_SYNTAX), sentence, "%s", err_text(ERR_SYNTAX));
}

static void refuse_watch(const char *text, const char *sentence)
{
	struct config_flags flags = {.watch = {.items = &text, .n = 1}};

	refuse_flags(&flags, sentence);
}

Test(config, bad_watches_are_refused_in_words)
{
	const char *two[] = {"pods", "pods(-n web)"};
	struct config_flags flags = {.watch = {.items = two, .n = 2}};

	refuse_watch("", "--watch: must not be empty");
	refuse_watch(":web", "--watch: not a resource: ''; write one as pods, deployments.apps or "
			     "deployments.v1.apps");
	refuse_watch("(-n web)", "--watch: not a resource: ''; write one as pods, deployments.apps "
				 "or deployments.v1.apps");
	refuse_watch("pods(-n web", "--watch: 'pods(-n web': ')' is missing at the end");
	refuse_watch("pods:(-n web)", "--watch: not a name: ''; " NAME_RULE);
	refuse_watch("pods(-x web)",
		"--watch: unknown option '-x'; allowed are -n, -l, --field-selector and --exclude");
	refuse_watch("pods(web)", "--watch: unknown option 'web'; allowed are -n, -l, "
				  "--field-selector and --exclude");
	refuse_watch("pods(-n)", "--watch: -n needs a value");
	refuse_watch("pods(-n a,,b)", "--watch: not a namespace: ''; allowed are lower case "
				      "letters, digits and '-' inside, at most 63");
	refuse_flags(&flags, "--watch: two feeds 'pods'; give one another name, 'pods:NAME'");
}

Test(config, index_flag_adds_to_a_feed)
{
	const char *items[] = {"pods/node=spec.nodeName", "pods/both=a['x,y'],status.phase"};
	struct config_flags flags = {.index = {.items = items, .n = 2}};

	write_file("kinf.yaml", "feeds: [{resource: pods, indexes: {app: metadata.name}}]\n");
	CLEANUP(config_free) struct config *c = load(&flags);
	const struct config_feed *f = &c->feeds[0];
	cr_assert_eq(f->n_indexes, 3);
	cr_assert_str_eq(f->indexes[1].name, "node");
	cr_assert_str_eq(f->indexes[1].paths[0], "spec.nodeName");
	cr_assert_eq(f->indexes[2].n_paths, 2);
	cr_assert_str_eq(f->indexes[2].paths[0], "a['x,y']");
	cr_assert_str_eq(f->indexes[2].paths[1], "status.phase");
}

Test(config, bad_index_flags_are_refused_in_words)
{
	static const struct wrong wrong[] = {
		{"pods", "--index: 'pods': write one as FEED/NAME=PATH"},
		{"pods/node", "--index: 'pods/node': write one as FEED/NAME=PATH"},
		{"nodes/x=spec.y", "--index: 'nodes/x=spec.y': no feed 'nodes'; write its name as "
				   "--watch or the file does: 'pods'"},
		{"pods/label=spec.y", "--index: 'label' is built in; choose another name"},
		{"pods/app=spec.y", "--index: feed 'pods' already has an index 'app'"},
		{"pods/=spec.y", "--index: not an index name: ''; " NAME_RULE},
	};

	write_file("kinf.yaml", "feeds: [{resource: pods, indexes: {app: metadata.name}}]\n");
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		const char *item = wrong[i].text;
		struct config_flags flags = {.index = {.items = &item, .n = 1}};
		refuse_flags(&flags, wrong[i].sentence);
	}
}

Test(config, other_flags_lie_over_the_file)
{
	struct config_flags flags = {.kubeconfig = "~/k",
		.context = "test",
		.durability = "disk",
		.log_format = "json",
		.verbose = 1};

	write_file("kinf.yaml", "durability: process\ncluster: {context: prod, kubeconfig: /x}\n");
	struct config *c = load(&flags);
	expect_here(c->kubeconfig, "k");
	cr_assert_str_eq(c->context, "test");
	cr_assert(c->durable);
	cr_assert_eq(c->log_format, LOG_JSON);
	cr_assert_eq(c->log_level, LOG_INFO);
	config_free(&c);
	flags.verbose = 9;
	c = load(&flags);
	cr_assert_eq(c->log_level, LOG_DEBUG);
	config_free(&c);
	refuse_flags(&(struct config_flags){.durability = "no"},
		"--durability: must be process or disk, not 'no'");
}
