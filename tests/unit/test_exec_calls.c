/* SPDX-License-Identifier: Apache-2.0 */
/* Requests with an exec plugin's credentials. */
#include "common/proc.h"
#include "reflector/net/http.h"
#include "tests/unit/api_stub.h"
#include "tests/unit/exec_rig.h"

TestSuite(exec, .init = set_up, .fini = tear_down, .timeout = 60);

struct ended {
	int n, result, status;
	char sentence[512];
};

static void on_done(void *arg, int result, int status)
{
	struct ended *ended = arg;

	ended->n++;
	ended->result = result;
	ended->status = status;
	(void)snprintf(
		ended->sentence, sizeof(ended->sentence), "%s", result < 0 ? err_text(result) : "");
}

static void request(struct http *http, struct ended *ended, const char *path, int wanted)
{
	struct http_request r = {
		.path = path, .arg = ended, .on_done = on_done, .first_byte_ns = 20 * SECOND};

	for (int i = 0; i < wanted; i++)
		cr_assert_eq(http_start(http, &r, NULL), 0);
	wanted += ended->n;
	for (int i = 0; i < 4000 && ended->n < wanted; i++)
		cr_assert_eq(http_poll(http, 10, NULL, 0), 0);
	cr_assert_eq(ended->n, wanted);
}

static const struct api_stub_answer answers[] = {
	{"/good", 200, "text/plain", "ok", NULL, STUB_GOOD},
	{"/refused", 401, "text/plain", "no", NULL, STUB_GOOD},
	{NULL},
};

static struct http *open_http(struct api_stub *stub)
{
	struct http *http = NULL;

	config.tls = false; /* the stub has none; a kubeconfig would drop the plugin */
	config.server = (char *)api_stub_url(stub);
	cr_assert_eq(http_new(&config, &http), 0);
	return http;
}

Test(exec, k18_refused_request_is_not_repeated_and_the_next_has_the_new_token)
{
	CLEANUP(api_stub_stop) struct api_stub *stub = api_stub_start(answers);
	CLEANUP(http_free) struct http *http = open_http(stub);
	struct ended ended = {0};

	prints("{\"token\":\"one\"}");
	request(http, &ended, "/refused", 1);
	cr_assert_eq(ended.status, 401);
	cr_assert_eq(api_stub_count(stub), 1);
	cr_assert(strstr(api_stub_last(stub), "Authorization: Bearer one\r\n"));
	prints("{\"token\":\"two\"}");
	request(http, &ended, "/good", 1);
	cr_assert_eq(ended.status, 200);
	cr_assert_eq(api_stub_count(stub), 2);
	cr_assert(strstr(api_stub_last(stub), "Authorization: Bearer two\r\n"));
	cr_assert_eq(n_runs(), 2);
}

Test(exec, k19_many_requests_wait_for_one_run)
{
	CLEANUP(api_stub_stop) struct api_stub *stub = api_stub_start(answers);
	CLEANUP(http_free) struct http *http = open_http(stub);
	struct ended ended = {0};

	prints("{\"token\":\"T\",\"expirationTimestamp\":\"2099-01-01T00:00:00Z\"}");
	request(http, &ended, "/good", 20);
	request(http, &ended, "/good", 20);
	cr_assert_eq(ended.status, 200);
	cr_assert_eq(n_runs(), 1);
	cr_assert(strstr(api_stub_last(stub), "Authorization: Bearer T\r\n"));
}

Test(exec, failed_plugin_ends_the_requests_that_wait_and_sends_none)
{
	CLEANUP(api_stub_stop) struct api_stub *stub = api_stub_start(answers);
	CLEANUP(http_free) struct http *http = open_http(stub);
	struct ended ended = {0};

	plugin("sleep 0.2; exit 3");
	request(http, &ended, "/good", 5);
	cr_assert_eq(ended.result, ERR_CREDENTIALS);
	cr_assert(strstr(ended.sentence, "failed with exit code 3"));
	cr_assert_eq(api_stub_count(stub), 0);
	cr_assert_eq(n_runs(), 1);
}

Test(exec, free_while_it_runs_kills_it)
{
	CLEANUP(api_stub_stop) struct api_stub *stub = api_stub_start(answers);
	struct http *http = open_http(stub);
	struct ended ended = {0};
	struct http_request r = {.path = "/good",
		.arg = &ended,
		.on_done = on_done,
		.first_byte_ns = SECOND / 1000}; /* less than one poll */

	plugin("exec sleep 60");
	cr_assert_eq(http_start(http, &r, NULL), 0);
	for (int i = 0; i < 20; i++) /* the limit does not count yet */
		cr_assert_eq(http_poll(http, 20, NULL, 0), 0);
	cr_assert_eq(ended.n, 0);
	http_free(&http);
	cr_assert_eq(ended.n, 0);
}
