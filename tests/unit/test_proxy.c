/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of NO_PROXY are those of Go's httpproxy, as its documentation and behaviour have
 * them. */
#include "reflector/net/proxy.h"
#include "tests/unit/unit.h"

static void clear_environment(void)
{
	static const char *const names[] = {"HTTPS_PROXY", "https_proxy", "HTTP_PROXY",
		"http_proxy", "NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		cr_assert_eq(unsetenv(names[i]), 0);
}

TestSuite(proxy, .init = clear_environment);

/* ---- exceptions --------------------------------------------------------- */

Test(no_proxy, names_match_themselves_and_what_is_below)
{
	static const struct {
		const char *list, *host, *port;
		bool direct;
	} rows[] = {
		{"example.com", "example.com", "443", true},
		{"example.com", "api.example.com", "443", true},
		{"example.com", "a.b.example.com", "443", true},
		{"example.com", "notexample.com", "443", false},
		{"example.com", "example.com.evil", "443", false},
		{".example.com", "api.example.com", "443", true},
		{".example.com", "example.com", "443", false},
		{"*.example.com", "api.example.com", "443", true},
		{"*.example.com", "example.com", "443", false},
		{"Example.COM", "api.example.com", "443", true},
		{"example.com", "API.Example.com", "443", true},
		{"example.com:6443", "example.com", "6443", true},
		{"example.com:6443", "example.com", "443", false},
		{".example.com:6443", "api.example.com", "6443", true},
		{"*.example.com:6443", "api.example.com", "443", false},
		{"other, \t api.internal ,", "api.internal", "443", true},
		{"example.com", "10.0.0.1", "443", false},
		{"*", "example.com", "443", true},
		{"a,*", "10.0.0.1", "443", true},
		{"*:443", "example.com", "443", false},
		{"*example.com", "api.example.com", "443", false},
		{"", "example.com", "443", false},
		{",,", "example.com", "443", false},
		{":443", "example.com", "443", false},
		{".", "example.com", "443", false},
		{NULL, "example.com", "443", false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_assert_eq(no_proxy_matches(rows[i].list, rows[i].host, rows[i].port),
			rows[i].direct, "'%s' %s:%s", rows[i].list ? rows[i].list : "(none)",
			rows[i].host, rows[i].port);
}

Test(no_proxy, addresses_match_addresses_and_networks)
{
	static const struct {
		const char *list, *host, *port;
		bool direct;
	} rows[] = {
		{"10.1.2.3", "10.1.2.3", "443", true},
		{"10.1.2.3", "10.1.2.33", "443", false},
		{"10.1.2.3:6443", "10.1.2.3", "6443", true},
		{"10.1.2.3:6443", "10.1.2.3", "443", false},
		{"2.3", "10.1.2.3", "443", false},
		{"10.0.0.0/8", "10.255.0.1", "443", true},
		{"10.0.0.0/8", "11.0.0.1", "443", false},
		{"10.1.2.128/25", "10.1.2.129", "443", true},
		{"10.1.2.128/25", "10.1.2.127", "443", false},
		{"10.1.2.3/32", "10.1.2.3", "443", true},
		{"0.0.0.0/0", "10.1.2.3", "443", true},
		{"0.0.0.0/0", "fd00::1", "443", false},
		{"::/0", "10.1.2.3", "443", false},
		{"::/0", "fd00::1", "443", true},
		{"fd00::/8", "fdff::1", "443", true},
		{"fd00::/8", "fe00::1", "443", false},
		{"fd00::1", "fd00:0::1", "443", true},
		{"[fd00::1]:6443", "fd00::1", "6443", true},
		{"[fd00::1]:6443", "fd00::1", "443", false},
		{"::ffff:10.1.2.3", "10.1.2.3", "443", true},
		{"10.0.0.0/33", "10.0.0.0", "443", false},
		{"10.0.0.0/", "10.0.0.0", "443", false},
		{"10.0.0.0/8x", "10.0.0.0", "443", false},
		{"/8", "10.0.0.0", "443", false},
		{"10.0.0.0/8", "example.com", "443", false},
		{"fd00::/129", "fd00::1", "443", false},
		{"[", "fd00::1", "443", false},
		{"[]:1", "fd00::1", "1", false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_assert_eq(no_proxy_matches(rows[i].list, rows[i].host, rows[i].port),
			rows[i].direct, "'%s' %s:%s", rows[i].list, rows[i].host, rows[i].port);
}

Test(no_proxy, an_entry_longer_than_any_name_is_passed_over)
{
	char list[1000];

	memset(list, 'a', sizeof(list));
	memcpy(list + sizeof(list) - 6, ",b.io", 6);
	cr_assert(no_proxy_matches(list, "b.io", "443"));
	cr_assert(!no_proxy_matches(list, "c.io", "443"));
}

/* ---- the choice --------------------------------------------------------- */

/* WANTED: "url name source", or "" for no proxy. */
static void chosen(const struct kubeconfig *config, const char *host, const char *wanted)
{
	struct proxy proxy;
	char text[256] = "";

	OK(proxy_choose(config, host, "6443", &proxy));
	if (proxy.url)
		(void)snprintf(text, sizeof(text), "%s %s %s", proxy.url, proxy.name, proxy.source);
	cr_assert_str_eq(text, wanted);
	proxy_release(&proxy);
}

Test(proxy, scheme_of_the_server_decides_which_variable_counts)
{
	struct kubeconfig plain = {.tls = false}, tls = {.tls = true};

	chosen(&tls, "api", "");
	cr_assert_eq(setenv("http_proxy", "plain.corp:3128", 1), 0);
	chosen(&plain, "api", "http://plain.corp:3128 http://plain.corp:3128 http_proxy");
	chosen(&tls, "api", "");
	cr_assert_eq(setenv("https_proxy", "http://tls.corp:3128/", 1), 0);
	chosen(&tls, "api", "http://tls.corp:3128 http://tls.corp:3128 https_proxy");
	cr_assert_eq(setenv("HTTPS_PROXY", "", 1), 0);
	chosen(&tls, "api", "http://tls.corp:3128 http://tls.corp:3128 https_proxy");
	cr_assert_eq(setenv("HTTPS_PROXY", "http://capitals.corp", 1), 0);
	chosen(&tls, "api", "http://capitals.corp:80 http://capitals.corp:80 HTTPS_PROXY");
}

Test(proxy, all_proxy_means_nothing)
{
	struct kubeconfig tls = {.tls = true};

	cr_assert_eq(setenv("ALL_PROXY", "http://all.corp", 1), 0);
	cr_assert_eq(setenv("all_proxy", "http://all.corp", 1), 0);
	chosen(&tls, "api", "");
}

Test(proxy, loopback_and_no_proxy_are_exceptions_from_the_environment_only)
{
	struct kubeconfig tls = {.tls = true};
	static const char *const direct[] = {
		"localhost", "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "api.internal"};

	cr_assert_eq(setenv("HTTPS_PROXY", "http://p:1", 1), 0);
	cr_assert_eq(setenv("no_proxy", "internal", 1), 0);
	for (size_t i = 0; i < sizeof(direct) / sizeof(direct[0]); i++)
		chosen(&tls, direct[i], "");
	chosen(&tls, "128.0.0.1", "http://p:1 http://p:1 HTTPS_PROXY");
	chosen(&tls, "127.corp", "http://p:1 http://p:1 HTTPS_PROXY");
	cr_assert_eq(setenv("NO_PROXY", "elsewhere", 1), 0);
	chosen(&tls, "api.internal", "http://p:1 http://p:1 HTTPS_PROXY");

	tls.proxy_url = (char *)"http://own:2";
	cr_assert_eq(setenv("NO_PROXY", "*", 1), 0);
	for (size_t i = 0; i < sizeof(direct) / sizeof(direct[0]); i++)
		chosen(&tls, direct[i], "http://own:2 http://own:2 proxy-url");
}

Test(proxy, names_are_left_to_socks_and_ports_are_gos)
{
	static const struct {
		const char *url, *wanted;
	} rows[] = {
		{"socks5://p", "socks5h://p:1080 socks5://p:1080 proxy-url"},
		{"socks5h://p:1", "socks5h://p:1 socks5h://p:1 proxy-url"},
		{"SOCKS5://u:s@p:1/x?y", "socks5h://u:s@p:1 socks5://p:1 proxy-url"},
		{"http://p", "http://p:80 http://p:80 proxy-url"},
		{"https://u:s@[fd00::1]",
			"https://u:s@[fd00::1]:443 https://[fd00::1]:443 proxy-url"},
		{"http://u@x:s@p:", "http://u@x:s@p:80 http://p:80 proxy-url"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		chosen(&(struct kubeconfig){.tls = true, .proxy_url = (char *)rows[i].url}, "api",
			rows[i].wanted);
}

Test(proxy, what_is_no_url_is_refused_without_repeating_it)
{
	static const char *const bad[] = {"gopher://u:secret@p", "http://u:secret@", "http://",
		"http://u:secret@p:port", "http://u:sec ret@p", "http://u:secret@[fd00::1",
		"http://u:secret@p:123456", "socks5://u:secret@:1"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct kubeconfig config = {.proxy_url = (char *)bad[i]};
		struct proxy proxy;
		int r = proxy_choose(&config, "api", "443", &proxy);

		cr_assert_eq(r, ERR_CONFIG, "'%s'", bad[i]);
		cr_assert(strstr(err_text(r), "proxy-url"));
		cr_assert(!strstr(err_text(r), "secret"));
	}
}
