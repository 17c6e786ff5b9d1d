/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/kubeconfig.h"
#include "tests/unit/unit.h"

static struct kubeconfig *c;

static const char *file(const char *name, const char *text)
{
	const char *path = scratch_path(name);

	scratch_write(path, text);
	return path;
}

static void set_up(void)
{
	setenv("HOME", scratch(), 1);
	unsetenv("KUBECONFIG");
	unsetenv("KUBERNETES_SERVICE_HOST");
	unsetenv("POD_NAMESPACE");
}

static void tear_down(void)
{
}

TestSuite(kubeconfig, .init = set_up, .fini = tear_down);

/* One context `x` of a cluster and a user with these members. */
static const char *config_of(const char *name, const char *cluster, const char *user)
{
	char text[4096];

	(void)snprintf(text, sizeof(text),
		"apiVersion: v1\nkind: Config\ncurrent-context: x\n"
		"contexts: [{name: x, context: {cluster: c, user: u}}]\n"
		"clusters:\n- name: c\n  cluster: {%s}\n"
		"users:\n- name: u\n  user: {%s}\n",
		cluster, user);
	return file(name, text);
}

/* Loads it as `c`. */
static void load(const char *path, const char *context)
{
	kubeconfig_free(&c);
	OK(kubeconfig_load(path, context, &c));
}

static void good(const char *cluster, const char *user)
{
	load(config_of("config", cluster, user), NULL);
}

/* Expects the load to fail with CODE and a sentence with both texts. */
static void fails(int r, int code, const char *a, const char *b)
{
	cr_assert_eq(r, code, "%d: %s", r, err_text(r));
	cr_assert(strstr(err_text(r), a), "'%s' is not in: %s", a, err_text(r));
	cr_assert(strstr(err_text(r), b), "'%s' is not in: %s", b, err_text(r));
}

static void refused(const char *cluster, const char *user, const char *a, const char *b)
{
	kubeconfig_free(&c);
	fails(kubeconfig_load(config_of("config", cluster, user), NULL, &c), ERR_CONFIG, a, b);
	cr_assert_null(c);
}

#define HTTPS "server: 'https://h:6443'"
/* "-----BEGIN X-----\n" */
#define PEM64 "LS0tLS1CRUdJTiBYLS0tLS0K"

Test(kubeconfig, k25_namespace_is_the_contexts_else_default)
{
	static const char text[] = "current-context: x\n"
				   "contexts: [{name: x, context: {cluster: c, namespace: n}},"
				   " {name: y, context: {cluster: c}}]\n"
				   "clusters: [{name: c, cluster: {" HTTPS "}}]\n";

	load(file("f", text), NULL);
	cr_assert_str_eq(c->name_space, "n");
	load(scratch_path("f"), "y");
	cr_assert_str_eq(c->name_space, "default");
}

Test(kubeconfig, token_and_server_are_read)
{
	good("server: 'https://h:6443/prefix/?q#f'", "token: T");
	cr_assert_str_eq(c->server, "https://h:6443/prefix");
	cr_assert_str_eq(c->token, "T");
	cr_assert_str_eq(c->context, "x");
	cr_assert_str_eq(c->name_space, "default");
	cr_assert(c->tls);
	kubeconfig_free(&c);
	cr_assert_null(c);
}

Test(kubeconfig, scheme_is_https_only_with_tls_settings)
{
	good("server: 'h:8080'", "token: T");
	cr_assert_str_eq(c->server, "http://h:8080");
	good("server: 'https://[fe80::1%25eth0]:6443/p/'", "token: T");
	cr_assert_str_eq(c->server, "https://[fe80::1%25eth0]:6443/p");
	good("server: 'https://[fd00::1]'", "token: T");
	cr_assert_str_eq(c->server, "https://[fd00::1]");
	good("server: 'h:6443', insecure-skip-tls-verify: true", "token: T");
	cr_assert_str_eq(c->server, "https://h:6443");
	cr_assert(c->insecure);
}

Test(kubeconfig, k13_credentials_do_not_go_over_http)
{
	good("server: 'http://h:1', certificate-authority-data: " PEM64,
		"token: T, client-certificate-data: " PEM64 ", client-key-data: " PEM64
		", as: bob");
	cr_assert(!c->tls && c->withheld);
	cr_assert_null(c->token);
	cr_assert_null(c->ca.data);
	cr_assert_null(c->client_certificate.data);
	cr_assert_null(c->client_key.data);
	cr_assert_str_eq(c->impersonate.user, "bob");
}

Test(kubeconfig, certificate_data_is_decoded_and_wins_over_the_file)
{
	good(HTTPS ", certificate-authority: /none, certificate-authority-data: " PEM64
		   ", tls-server-name: n, proxy-url: 'http://p:3128', disable-compression: true",
		"token: T");
	cr_assert_str_eq(c->ca.data, "-----BEGIN X-----\n");
	cr_assert_eq(c->ca.size, strlen("-----BEGIN X-----\n"));
	cr_assert_null(c->ca.file);
	cr_assert_str_eq(c->tls_server_name, "n");
	cr_assert_str_eq(c->proxy_url, "http://p:3128");
	cr_assert(c->disable_compression);
}

Test(kubeconfig, k12_k15_bad_clusters_are_refused)
{
	refused("", "token: T", "cluster 'c': server", "missing");
	refused("server: 'ftp://h'", "token: T", "server", "neither http");
	refused("server: 'https://a:b@h'", "token: T", "server", "credentials in the URL");
	refused("server: 'https//h'", "token: T", "server", "neither http");
	refused(HTTPS ", certificate-authority-data: '!'", "token: T", "certificate-authority-data",
		"not base64 at byte 0");
	refused(HTTPS ", certificate-authority-data: aGVsbG8=", "token: T",
		"certificate-authority-data", "not PEM");
	refused(HTTPS ", certificate-authority: none.crt", "token: T", "certificate-authority",
		"none.crt");
	refused(HTTPS ", insecure-skip-tls-verify: maybe", "token: T", "insecure-skip-tls-verify",
		"neither true nor false");
	refused(HTTPS ", insecure-skip-tls-verify: true, certificate-authority-data: " PEM64,
		"token: T", "insecure-skip-tls-verify", "certificate-authority");
	refused("server: [a]", "token: T", "server", "not a text");
}

Test(kubeconfig, k07_relative_paths_are_relative_to_the_file)
{
	file("ca.crt", "-----BEGIN CERTIFICATE-----\n");
	cr_assert_eq(chdir("/"), 0);
	good(HTTPS ", certificate-authority: ca.crt", "tokenFile: tok");
	cr_assert_str_eq(c->ca.file, scratch_path("ca.crt"));
	cr_assert_str_eq(c->token_file, scratch_path("tok"));
}

Test(kubeconfig, k22_impersonation_is_read)
{
	good(HTTPS, "as: bob, as-uid: '7', as-groups: [g, h], as-user-extra: {a/B: [v, w]}");
	cr_assert_str_eq(c->impersonate.user, "bob");
	cr_assert_str_eq(c->impersonate.uid, "7");
	cr_assert_eq(c->impersonate.groups.n, 2);
	cr_assert_str_eq(c->impersonate.groups.at[1], "h");
	cr_assert_eq(c->impersonate.extras.n, 4);
	cr_assert_str_eq(c->impersonate.extras.at[2], "a/B");
	cr_assert_str_eq(c->impersonate.extras.at[3], "w");
}

Test(kubeconfig, k10_k11_k21_k23_bad_users_are_refused)
{
	refused(HTTPS, "token: T, username: a", "user 'u': username", "more than one");
	refused(HTTPS, "client-certificate-data: " PEM64, "client-key", "only one");
	refused(HTTPS, "client-key-data: " PEM64, "client-certificate", "only one");
	refused(HTTPS, "client-certificate: none.pem, client-key-data: " PEM64,
		"client-certificate", "none.pem");
	refused(HTTPS, "as-groups: [g]", "as", "missing");
	refused(HTTPS, "as: bob, as-groups: g", "as-groups", "not a list");
	refused(HTTPS, "as: \"bob\\r\\nX: y\"", "as", "control characters");
	refused(HTTPS, "token: \"a\\nb\"", "token", "control characters");
	refused(HTTPS, "auth-provider: {name: gcp}", "auth-provider", "gke-gcloud-auth-plugin");
	refused(HTTPS, "auth-provider: {name: azure}", "auth-provider", "kubelogin");
}

Test(kubeconfig, secrets_are_not_in_sentences)
{
	static const char *const users[] = {
		"token: \"hush\\nhush\"", "client-key-data: 'aHVzaA==hush'"};

	for (size_t i = 0; i < 2; i++) {
		int r = kubeconfig_load(config_of("config", HTTPS, users[i]), NULL, &c);

		cr_assert_eq(r, ERR_CONFIG);
		cr_assert_null(strstr(err_text(r), "hush"));
	}
}

#define EXEC_V1 "apiVersion: client.authentication.k8s.io/v1"

Test(kubeconfig, k08_plugin_with_a_slash_is_a_path_of_the_file)
{
	cr_assert_eq(chdir("/"), 0);
	good(HTTPS, "exec: {" EXEC_V1 ", interactiveMode: Never, command: ./p}");
	cr_assert_str_eq(c->exec.command, scratch_path("./p"));
	good(HTTPS, "exec: {" EXEC_V1 ", interactiveMode: Never, command: bin/p}");
	cr_assert_str_eq(c->exec.command, scratch_path("bin/p"));
	good(HTTPS, "exec: {" EXEC_V1 ", interactiveMode: Never, command: p}");
	cr_assert_str_eq(c->exec.command, "p");
}

Test(kubeconfig, k16_v1_needs_an_interactive_mode_and_none_needs_a_terminal)
{
	refused(HTTPS, "exec: {" EXEC_V1 ", command: p}",
		"interactiveMode must be specified for u to use exec authentication plugin", "'u'");
	good(HTTPS, "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: p}");
	cr_assert_str_eq(c->exec.api_version, "client.authentication.k8s.io/v1beta1");
	good(HTTPS, "exec: {" EXEC_V1 ", command: p, interactiveMode: IfAvailable}");
	refused(HTTPS, "exec: {" EXEC_V1 ", command: p, interactiveMode: Always}", "exec",
		"no terminal");
	refused(HTTPS, "exec: {" EXEC_V1 ", command: p, interactiveMode: always}", "exec",
		"always");
	refused(HTTPS, "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: p}",
		"v1alpha1", "not supported");
	refused(HTTPS, "exec: {" EXEC_V1 "}", "exec", "command missing");
	refused(HTTPS, "exec: {command: p}", "exec", "apiVersion missing");
	refused(HTTPS, "exec: {" EXEC_V1 ", command: p, interactiveMode: Never, env: [{value: x}]}",
		"env", "item 0");
	refused(HTTPS, "exec: {" EXEC_V1 ", command: p, interactiveMode: Never, args: x}", "args",
		"not a list");
}

Test(kubeconfig, plugin_is_read_with_all_it_needs)
{
	good(HTTPS ", extensions: [{name: other, extension: 1}, {name: "
		   "client.authentication.k8s.io/exec, extension: {a: [1, "
		   "'x', \"2\", true, null, 'y\"'], b: {c: 1.5, d: yes}}}]",
		"exec: {" EXEC_V1 ", command: p, interactiveMode: Never, provideClusterInfo: true, "
		"installHint: \"buy\\nit\", args: [-c, \"two\\nlines\"], env: [{name: A, value: "
		"b=c}, {name: B, value: ''}]}");
	cr_assert_eq(c->exec.args.n, 2);
	cr_assert_str_eq(c->exec.args.at[1], "two\nlines");
	cr_assert_eq(c->exec.variables.n, 2);
	cr_assert_str_eq(c->exec.variables.at[0], "A=b=c");
	cr_assert_str_eq(c->exec.variables.at[1], "B=");
	cr_assert_str_eq(c->exec.install_hint, "buy\nit");
	cr_assert(c->exec.provide_cluster_info);
	cr_assert_str_eq(c->exec_config,
		"{\"a\":[1,\"x\",\"2\",true,null,\"y\\\"\"],\"b\":{\"c\":1.5,\"d\":\"yes\"}}");
}

Test(kubeconfig, plugin_gives_way_to_what_is_in_the_file)
{
	good(HTTPS, "token: T, exec: {apiVersion: x, command: p}");
	cr_assert_null(c->exec.command);
	good("server: 'http://h'", "exec: {apiVersion: x, command: p}");
	cr_assert_null(c->exec.command);
}

Test(kubeconfig, oidc_gives_its_token)
{
	good(HTTPS, "auth-provider: {name: oidc, config: {id-token: I}}");
	cr_assert_str_eq(c->token, "I");
}

Test(kubeconfig, k01_k02_k03_first_file_wins_with_whole_entries)
{
	char list[1024];

	file("a", "clusters: [{name: c, cluster: {server: 'https://a'}}]\n");
	file("b", "current-context: x\n"
		  "contexts: [{name: x, context: {cluster: c, user: u, namespace: n}}]\n"
		  "clusters: [{name: c, cluster: {server: 'https://b', tls-server-name: t}}]\n"
		  "users: [{name: u, user: {token: T}}]\n");
	(void)snprintf(list, sizeof(list), "%s/a::%s/missing:%s/b:%s/b", scratch(), scratch(),
		scratch(), scratch());
	setenv("KUBECONFIG", list, 1);
	load(NULL, NULL);
	cr_assert_str_eq(c->server, "https://a");
	cr_assert_null(c->tls_server_name);
	cr_assert_str_eq(c->context, "x");
	cr_assert_str_eq(c->name_space, "n");
	cr_assert_str_eq(c->token, "T");
}

/* As kubectl 1.32 and 1.37 take them. */
Test(kubeconfig, anchors_merge_keys_and_further_documents_are_taken)
{
	file("f", "x-tls: &tls {tls-server-name: t}\n"
		  "clusters:\n- name: c\n  cluster: &cluster\n    <<: *tls\n    server: "
		  "https://a\n- {name: d, cluster: *cluster}\n"
		  "users: [{name: u, user: {token: &token T}}, {name: v, user: {token: *token}}]\n"
		  "contexts: [{name: x, context: {cluster: d, user: v}}]\n"
		  "current-context: x\n"
		  "---\ncurrent-context: y\nclusters: [{name: d, cluster: {server: "
		  "'https://b'}}]\n---\n{ bad\n");
	load(scratch_path("f"), NULL);
	cr_assert_str_eq(c->server, "https://a");
	cr_assert_str_eq(c->tls_server_name, "t");
	cr_assert_str_eq(c->token, "T");
}

Test(kubeconfig, home_directory_is_the_default)
{
	cr_assert_eq(mkdir(scratch_path(".kube"), 0700), 0);
	config_of(".kube/config", HTTPS, "token: T");
	load(NULL, NULL);
	cr_assert_str_eq(c->source, scratch_path(".kube/config"));
	load("~/.kube/config", "x");
}

Test(kubeconfig, k04_k05_k06_missing_and_malformed_files_are_named)
{
	fails(kubeconfig_load(scratch_path("none"), NULL, &c), ERR_CONFIG, "none",
		"does not exist");
	fails(kubeconfig_load(NULL, NULL, &c), -ENOENT, "no kubeconfig: $KUBECONFIG is not set",
		"no pod");
	setenv("KUBECONFIG", "/no/a::/no/b:/dev/null", 1);
	fails(kubeconfig_load(NULL, NULL, &c), -ENOENT,
		"no file in $KUBECONFIG ('/no/a::/no/b:/dev/null') has one", "no pod");
	unsetenv("KUBECONFIG");
	fails(kubeconfig_load(scratch_path("."), NULL, &c), ERR_CONFIG, "/.'", "is a directory");
	cr_assert_eq(mkfifo(scratch_path("fifo"), 0600), 0);
	fails(kubeconfig_load(scratch_path("fifo"), NULL, &c), ERR_CONFIG, "/fifo'", "is a pipe");
	fails(kubeconfig_load(file("f", "a: [1"), NULL, &c), ERR_SYNTAX, "/f", "");
	fails(kubeconfig_load(file("f", "[1]"), NULL, &c), ERR_CONFIG, "/f", "not a map");
	fails(kubeconfig_load(file("f", "kind: Pod"), NULL, &c), ERR_CONFIG, "/f", "Pod");
	fails(kubeconfig_load(file("f", "clusters: [{name: c}, {name: c}]"), NULL, &c), ERR_CONFIG,
		"/f", "duplicate name 'c'");
	fails(kubeconfig_load(file("f", "users: [{}]"), NULL, &c), ERR_CONFIG, "users[0]",
		"no name");
	fails(kubeconfig_load(file("f", "kind: Config"), NULL, &c), ERR_CONFIG, "/f",
		"no current-context");
}

Test(kubeconfig, k26_dangling_references_are_named)
{
	const char *f = file("f", "current-context: x\n"
				  "contexts: [{name: x, context: {cluster: c, user: u}},"
				  " {name: y, context: {cluster: d}}, {name: z, context: {}}]\n"
				  "clusters: [{name: c, cluster: {" HTTPS "}}]\n");

	fails(kubeconfig_load(f, NULL, &c), ERR_CONFIG, "user 'u' was not found", "context 'x'");
	fails(kubeconfig_load(f, "y", &c), ERR_CONFIG, "cluster 'd' was not found", "context 'y'");
	fails(kubeconfig_load(f, "z", &c), ERR_CONFIG, "context 'z'", "no cluster");
	fails(kubeconfig_load(f, "w", &c), ERR_CONFIG, "context 'w'", "does not exist");
}

Test(kubeconfig, k24_k25_pods_use_their_service_account)
{
	cr_assert_eq(kubeconfig_in_cluster(scratch(), &c), -ENOENT);
	setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
	setenv("KUBERNETES_SERVICE_PORT", "443", 1);
	file("namespace", " team\n");
	cr_assert_eq(kubeconfig_in_cluster(scratch(), &c), 0);
	cr_assert_str_eq(c->server, "https://[fd00::1]:443");
	cr_assert_str_eq(c->token_file, scratch_path("token"));
	cr_assert_null(c->ca.file);
	cr_assert_str_eq(c->name_space, "team");
	kubeconfig_free(&c);
	setenv("POD_NAMESPACE", "other", 1);
	file("ca.crt", "-----BEGIN X-----\n");
	cr_assert_eq(kubeconfig_in_cluster(scratch(), &c), 0);
	cr_assert_str_eq(c->name_space, "other");
	cr_assert_str_eq(c->ca.file, scratch_path("ca.crt"));
}

Test(kubeconfig, what_leads_to_another_server_or_user_is_no_longer_the_same)
{
	static const struct {
		const char *cluster, *user;
	} others[] = {
		{"server: 'https://h:2'", "token: T"},
		{HTTPS, "token: U"},
		{HTTPS, "tokenFile: /t"},
		{HTTPS, "username: a, password: b"},
		{HTTPS, "token: T, as: bob"},
		{HTTPS, "token: T, as: bob, as-groups: [g]"},
		{HTTPS, "client-certificate-data: " PEM64 ", client-key-data: " PEM64},
		{HTTPS, "exec: {apiVersion: client.authentication.k8s.io/v1, command: c, "
			"interactiveMode: Never}"},
		{HTTPS, "exec: {apiVersion: client.authentication.k8s.io/v1, command: c, args: "
			"[a], interactiveMode: Never}"},
		{HTTPS ", certificate-authority-data: " PEM64, "token: T"},
		{HTTPS ", tls-server-name: n", "token: T"},
		{HTTPS ", proxy-url: 'http://p:1'", "token: T"},
	};
	struct kubeconfig *one, *kept = NULL;

	good(HTTPS, "token: T");
	one = TAKE(c);
	good(HTTPS, "token: T");
	cr_assert(kubeconfig_same(one, c));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		good(others[i].cluster, others[i].user);
		cr_assert(!kubeconfig_same(one, c) && !kubeconfig_same(c, one), "%zu", i);
		cr_assert(kubeconfig_same(c, c));
		cr_assert(!kept || !kubeconfig_same(kept, c), "%zu", i);
		kubeconfig_free(&kept);
		kept = TAKE(c);
	}
	kubeconfig_free(&kept);
	kubeconfig_free(&one);
}
