/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/config_rig.h"

Test(config_serve, nothing_is_served_unless_the_section_is_there)
{
	CLEANUP(config_free) struct config *c = parse("store: /a\n");

	cr_assert(!c->serve.enabled);
	config_free(&c);
	c = parse("serve: {}\n");
	cr_assert(c->serve.enabled);
	cr_assert_null(c->serve.listen);
	cr_assert_eq(c->serve.auth, CONFIG_AUTH_DEFAULT);
	cr_assert(!c->serve.forward && !c->serve.quorum && !c->serve.open_remote);
	cr_assert_eq(c->serve.max_staleness_ns, 0);
}

Test(config_serve, each_key_is_taken)
{
	CLEANUP(config_free)
	struct config *c = parse("serve:\n"
				 "  listen: [unix, 127.0.0.1:6445, '[::1]:6445', ':80']\n"
				 "  auth: self\n"
				 "  tls: {cert: /c, key: /k, clientCA: /ca}\n"
				 "  forward: on\n"
				 "  freshness: quorum\n"
				 "  maxStaleness: 90s\n"
				 "  metrics: 127.0.0.1:9445\n");

	cr_assert_str_eq(c->serve.listen, "unix 127.0.0.1:6445 [::1]:6445 :80");
	cr_assert_eq(c->serve.auth, CONFIG_AUTH_SELF);
	cr_assert_str_eq(c->serve.certificate, "/c");
	cr_assert_str_eq(c->serve.key, "/k");
	cr_assert_str_eq(c->serve.client_ca, "/ca");
	cr_assert(c->serve.forward && c->serve.quorum);
	cr_assert_eq(c->serve.max_staleness_ns, 90 * UINT64_C(1000000000));
	cr_assert_str_eq(c->serve.metrics, "127.0.0.1:9445");
}

Test(config_serve, booleans_are_written_in_any_of_the_ways_of_yaml)
{
	static const struct {
		const char *text;
		bool value;
	} words[] = {{"true", true}, {"on", true}, {"yes", true}, {"True", true}, {"ON", true},
		{"'yes'", true}, {"false", false}, {"off", false}, {"no", false}, {"FALSE", false}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		char text[200];

		(void)snprintf(text, sizeof(text),
			"streamingLists: %s\nserve: {forward: %s, openRemote: %s, separate: %s}\n",
			words[i].text, words[i].text, words[i].text, words[i].text);
		struct config *c = parse(text);
		cr_expect_eq(c->serve.forward, words[i].value, "%s", words[i].text);
		cr_expect_eq(c->serve.open_remote, words[i].value, "%s", words[i].text);
		cr_expect_eq(c->serve.separate, words[i].value, "%s", words[i].text);
		cr_expect_eq(c->policy.streaming_lists, words[i].value, "%s", words[i].text);
		config_free(&c);
	}
}

Test(config_serve, wrong_values_are_named)
{
	static const struct wrong wrong[] = {
		{"serve: {listen: [unix, nowhere]}",
			"k.yaml:1: serve.listen[1]: 'nowhere': must be unix, ADDRESS:PORT, "
			"[ADDRESS]:PORT or :PORT"},
		{"serve: {listen: '::1:80'}", "k.yaml:1: serve.listen: '::1:80': must be unix, "
					      "ADDRESS:PORT, [ADDRESS]:PORT or :PORT"},
		{"serve: {listen: 'a:65536'}", "k.yaml:1: serve.listen: 'a:65536': must be unix, "
					       "ADDRESS:PORT, [ADDRESS]:PORT or :PORT"},
		{"serve: {listen: []}",
			"k.yaml:1: serve.listen: must not be empty; the default is [unix]"},
		{"serve: {auth: anybody}", "k.yaml:1: serve.auth: must be one of "
					   "peers|self|review|allow|open|token, not 'anybody'"},
		{"serve: {forward: maybe}", "k.yaml:1: serve.forward: must be true or false, not "
					    "'maybe'; on, off, yes and no mean the same"},
		{"serve: {port: 1}",
			"k.yaml:1: serve.port: unknown key; allowed here: listen, auth, "
			"openRemote, tokenFile, tls, forward, freshness, at, replay, mcp, "
			"maxStaleness, offlineGrace, separate, metrics, review, allow"},
		{"serve: {tls: {cert: /c}}",
			"k.yaml:1: serve: tls.cert and tls.key must be given together"},
		{"serve: {auth: token}",
			"k.yaml:1: serve: auth: token needs tokenFile, the file of the token"},
		{"serve: {auth: allow}",
			"k.yaml:1: serve: auth: allow recognizes clients by their certificates; "
			"name the CA that signs them in tls.clientCA"},
		{"serve: {auth: allow, tls: {clientCA: /c}}",
			"k.yaml:1: serve: auth: allow needs rules; write some in allow"},
		{"serve: {review: {cert: /c}}",
			"k.yaml:1: serve: review.cert and review.key must be given together"},
		{"serve: {allow: all}", "k.yaml:1: serve.allow: must be a list"},
		{"serve: {allow: [x]}", "k.yaml:1: serve.allow[0]: must be a map with users or "
					"groups, and resources"},
		{"serve: {allow: [{resources: [pods]}]}",
			"k.yaml:1: serve.allow[0]: needs users or groups"},
		{"serve: {allow: [{users: [u]}]}",
			"k.yaml:1: serve.allow[0]: needs resources, for instance [pods, nodes]"},
		{"serve: {allow: [{users: [u], resources: pods}]}",
			"k.yaml:1: serve.allow[0].resources: must be a nonempty list"},
		{"serve: {allow: [{users: [u], resources: [pods], names: [x]}]}",
			"k.yaml:1: serve.allow[0].names: unknown key; allowed here: users, groups, "
			"verbs, resources, namespaces"},
		{"serve: {auth: open, forward: on}",
			"k.yaml:1: serve: forward: on needs to know the client; it can't be used "
			"with auth: open"},
		{"serve: {auth: open, listen: [unix, '127.0.0.1:80', '[::1]:80', '0.0.0.0:80']}",
			"k.yaml:1: serve: auth: open on 0.0.0.0:80 would give the whole cache to "
			"other machines; listen on a loopback address, choose another mode, or set "
			"openRemote: true"},
		{"serve: {auth: open, listen: '[::]:80'}",
			"k.yaml:1: serve: auth: open on [::]:80 would give the whole cache to "
			"other machines; listen on a loopback address, choose another mode, or set "
			"openRemote: true"},
		{"serve: {auth: open, listen: ':80'}",
			"k.yaml:1: serve: auth: open on :80 would give the whole cache to other "
			"machines; listen on a loopback address, choose another mode, or set "
			"openRemote: true"},
		{"serve: {listen: ['127.0.0.1:80', unix, '127.0.0.1:80']}",
			"k.yaml:1: serve.listen[2]: '127.0.0.1:80' is there twice"},
		{"serve: {metrics: [':81', unix]}",
			"k.yaml:1: serve: metrics: 'unix' is an address of listen; choose another "
			"one"},
		{"serve: {listen: ':80', metrics: ':80'}",
			"k.yaml:1: serve: metrics: ':80' is an address of listen; choose another "
			"one"},
		{"serve: {freshness: quorum}",
			"k.yaml:1: serve: freshness: quorum lets the API server answer reads "
			"without a resourceVersion; it needs forward: on"},
	};

	expect_refusals(wrong, sizeof(wrong) / sizeof(wrong[0]));
}

Test(config_serve, all_keys_that_need_a_restart_have_room)
{
	struct config *
		a = parse(
		       "{store: /a, runtimeDir: /a, serve: {auth: self, review: {tokenFile: /t}}}"),
	       *b = parse("{store: /b, runtimeDir: /b, serve: {listen: '127.0.0.1:80', auth: "
			  "review, openRemote: true, forward: on, metrics: ':81', review: {cert: "
			  "/c, key: /k}}}");
	char keys[CONFIG_KEYS_SIZE];

	cr_assert(config_needs_restart(a, b, CONFIG_SERVE, keys));
	cr_assert_str_eq(keys, "store, runtimeDir, serve.listen, serve.auth, serve.openRemote, "
			       "serve.forward, serve.metrics, serve.review.tokenFile, "
			       "serve.review.cert, serve.review.key");
	config_free(&a);
	config_free(&b);
}

Test(config_serve, everything_may_be_open_on_this_machine_or_if_that_is_wanted)
{
	struct config *a = parse("serve: {auth: open, listen: [unix, '127.0.0.9:80', '[::1]:80', "
				 "'localhost:80']}"),
		      *b = parse("serve: {auth: open, listen: ':80', openRemote: true}");

	cr_assert_eq(a->serve.auth, CONFIG_AUTH_OPEN);
	cr_assert(b->serve.open_remote);
	config_free(&a);
	config_free(&b);
}
