/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/http.h"

#include "common/buf.h"
#include "common/proc.h"
#include "tests/unit/http_rig.h"

#define MS 1000000ull

TestSuite(http, .init = set_up, .fini = tear_down, .timeout = 60);

Test(http, answer_comes_in_status_then_body_then_end)
{
	run(&seen, "/good?limit=1", 0);
	cr_assert_eq(seen.result, 0);
	cr_assert_eq(seen.status, 200);
	cr_assert_eq(seen.n_status, 1);
	cr_assert_str_eq(seen.content_type, "application/json");
	cr_assert_str_eq(seen.warning, "old \\\"api\\\"");
	cr_assert_eq(seen.retry_after_ns, 0);
	cr_assert_str_eq(buf_cstr(&seen.body), "{\"a\":1}");
	cr_assert(!strncmp(api_stub_last(stub), "GET /good?limit=1 HTTP/1.1\r\n", 28));
	cr_assert(strstr(api_stub_last(stub), "\r\nAccept: application/json\r\n"));
	cr_assert(strstr(api_stub_last(stub), "\r\nUser-Agent: kinf-reflector/"));
	cr_assert(strstr(api_stub_last(stub), "\r\nAccept-Encoding: identity\r\n"));
}

Test(http, other_statuses_are_answers_too)
{
	CLEANUP(release) struct seen busy = {0}, moved = {0}, none = {0}, empty = {0};

	run(&busy, "/busy", 0);
	cr_assert_eq(busy.result, 0);
	cr_assert_eq(busy.status, 429);
	cr_assert_eq(busy.retry_after_ns, 7000 * MS);
	run(&moved, "/moved", 0);
	cr_assert_eq(moved.status, 302);
	cr_assert_eq(api_stub_count(stub), 2);
	run(&none, "/none", 0);
	cr_assert_eq(none.status, 404);
	run(&empty, "/empty", 0);
	cr_assert_eq(empty.result, 0);
	cr_assert_eq(empty.body.size, 0);
}

/* Makes a client of a server with one answer, of STATUS and HEADERS. Runs a call to it. */
static void run_headers(struct seen *of, int status, const char *headers)
{
	const struct api_stub_answer one[] = {
		{"/", status, "text/plain", "{}", headers, STUB_GOOD}, {NULL}};
	struct api_stub *other = api_stub_start(one);
	struct kubeconfig with = {.server = (char *)api_stub_url(other)};
	CLEANUP(http_free) struct http *client = NULL;

	OK(http_new(&with, &client));
	start(of, client, "/", 0);
	poll_until(client, &of->n_done, 1);
	http_free(&client);
	api_stub_stop(&other);
}

Test(http, c32_only_a_number_of_seconds_says_when_to_come_again)
{
	static const struct {
		const char *headers;
		uint64_t seconds;
	} cases[] = {
		{"Retry-After: 0\r\n", 0},
		{"Retry-After: 120 \r\n", 120},
		{"retry-after:7\r\n", 7},
		{"Retry-After: 4294968\r\n", 4294968}, /* in ms it is more than 32 bits hold */
		{"Retry-After: 99999999999999999999999999999\r\n", UINT32_MAX},
		{"Retry-After: soon\r\n", 0},
		{"Retry-After: -1\r\n", 0},
		{"Retry-After: 1.5\r\n", 0},
		{"Retry-After: 1 s\r\n", 0},
		{"Retry-After: \r\n", 0},
		{"Retry-After: Fri, 31 Dec 2100 23:59:59 GMT\r\n", 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CLEANUP(release) struct seen one = {0};

		run_headers(&one, 429, cases[i].headers);
		cr_assert_eq(one.status, 429);
		cr_assert_eq(
			one.retry_after_ns, cases[i].seconds * SECOND_NS, "%s", cases[i].headers);
	}
}

Test(http, c61_warnings_are_joined_as_far_as_there_is_room)
{
	char headers[1000];
	size_t n = 0;

	run_headers(&seen, 200, "warning: 299 - \"old\"\r\nWarning: second\r\n");
	cr_assert_str_eq(seen.warning, "old; second");
	for (int i = 0; i < 5; i++)
		n += (size_t)snprintf(
			headers + n, sizeof(headers) - n, "Warning: 299 - \"%0150d\"\r\n", 7);
	CLEANUP(release) struct seen many = {0};
	run_headers(&many, 200, headers);
	cr_assert_eq(strlen(many.warning), 255);
	cr_assert_eq(strncmp(many.warning + 149, "7; 000", 6), 0, "%s", many.warning);
}

Test(http, interim_answer_leaves_nothing_behind)
{
	run_headers(&seen, 103,
		"Retry-After: 9\r\nWarning: 299 - \"early\"\r\n\r\nHTTP/1.1 200 OK\r\n");
	cr_assert_eq(seen.status, 200);
	cr_assert_eq(seen.n_status, 1);
	cr_assert_eq(seen.retry_after_ns, 0);
	cr_assert_str_eq(seen.warning, "");
	cr_assert_str_eq(buf_cstr(&seen.body), "{}");
}

/* It is not followed at all, so no credentials go anywhere. */
Test(http, c65_a_redirect_is_an_answer_not_an_instruction)
{
	struct kubeconfig with = {.server = config.server, .token = (char *)"T"};
	CLEANUP(http_free) struct http *other = NULL;

	cr_assert_eq(http_new(&with, &other), 0);
	start(&seen, other, "/away", 0);
	poll_until(other, &seen.n_done, 1);
	cr_assert_eq(seen.result, 0);
	cr_assert_eq(seen.status, 301);
	cr_assert_eq(api_stub_count(stub), 1);
}

Test(http, c55_a_compressed_answer_is_whole_or_an_error)
{
	static const struct {
		const char *path;
		bool gzip;
		int result;
		const char *body; /* NULL: not looked at */
	} cases[] = {
		{"/gzip", true, 0, "{\"a\":1}"},
		{"/members", true, ERR_NETWORK, NULL},
		/* libcurl does not miss the member's end; the parser does. */
		{"/half", true, 0, "{\"a"},
		{"/gzip", false, 0, "{\"a\":1}"}, /* unasked */
		{"/half", false, 0, "{\"a"},
		{"/compress", false, ERR_PROTOCOL, NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CLEANUP(release) struct seen one = {0};

		one.http = http;
		cr_assert_eq(http_start(http,
				     &(struct http_request){.path = cases[i].path,
					     .gzip = cases[i].gzip,
					     .arg = &one,
					     .on_status = on_status,
					     .on_body = on_body,
					     .on_done = on_done},
				     &one.call),
			0);
		poll_until(http, &one.n_done, 1);
		cr_assert_eq(
			one.result, cases[i].result, "%zu: %d %s", i, one.result, one.sentence);
		if (cases[i].body)
			cr_assert_str_eq(buf_cstr(&one.body), cases[i].body);
		else if (cases[i].result == ERR_PROTOCOL)
			cr_assert(
				strstr(one.sentence, "the answer's Content-Encoding can't be read"),
				"%s", one.sentence);
	}
}

Test(http, trailers_without_end_are_an_error)
{
	run(&seen, "/trailers", 0);
	cr_assert_str_eq(buf_cstr(&seen.body), "{}");
	cr_assert_eq(seen.result, ERR_PROTOCOL);
	cr_assert(strstr(seen.sentence, "headers without end"), "%s", seen.sentence);
}

Test(http, faults_of_the_connection_are_named)
{
	CLEANUP(release) struct seen cut = {0}, reset = {0}, garbage = {0};

	run(&cut, "/cut", 0);
	cr_assert_eq(cut.result, ERR_NETWORK);
	cr_assert_eq(cut.status, 200);
	cr_assert_str_eq(buf_cstr(&cut.body), "{\"a\":");
	cr_assert(strstr(cut.sentence, "answer cut off"), "%s", cut.sentence);
	cr_assert(strstr(cut.sentence, api_stub_url(stub)), "%s", cut.sentence);
	run(&reset, "/reset", 0);
	cr_assert_eq(reset.result, ERR_NETWORK);
	cr_assert_eq(reset.status, 0);
	cr_assert_eq(reset.n_status, 0);
	cr_assert(strstr(reset.sentence, "reset"), "%s", reset.sentence);
	run(&garbage, "/garbage", 0);
	cr_assert_eq(garbage.result, ERR_PROTOCOL, "%d %s", garbage.result, garbage.sentence);
}

Test(http, refused_and_unknown_hosts_are_told_apart)
{
	struct kubeconfig nobody = {.server = (char *)"http://127.0.0.1:1"};
	struct kubeconfig nowhere = {.server = (char *)"http://no-such-host.invalid:1"};
	CLEANUP(release) struct seen refused = {0}, unknown = {0};
	CLEANUP(http_free) struct http *other = NULL;

	cr_assert_eq(http_new(&nobody, &other), 0);
	start(&refused, other, "/", 0);
	poll_until(other, &refused.n_done, 1);
	cr_assert_eq(refused.result, ERR_NETWORK);
	cr_assert_str_eq(refused.sentence, "http://127.0.0.1:1: no connection: Connection refused");
	http_free(&other);
	cr_assert_eq(http_new(&nowhere, &other), 0);
	start(&unknown, other, "/", 0);
	poll_until(other, &unknown.n_done, 1);
	cr_assert_eq(unknown.result, ERR_NETWORK);
	cr_assert(strstr(unknown.sentence, "name not found"), "%s", unknown.sentence);
}

Test(http, what_is_no_url_of_a_server_is_refused)
{
	static const char *const servers[] = {"https://", "https://h:65536", "https://h:x/y",
		"https://[::1", "https://[h]:1", "https://[::1]x", "https://fd00::1:6443",
		"https://a b", "https://a\n"};

	for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
		struct kubeconfig with = {.server = (char *)servers[i], .tls = true};
		struct http *other = NULL;

		cr_assert_eq(http_new(&with, &other), ERR_CONFIG, "%s", servers[i]);
		cr_assert(strstr(err_text(ERR_CONFIG), "is not a URL: "));
	}
}

/* ---- limits ------------------------------------------------------------- */

Test(http, silence_before_the_answer_ends_the_call)
{
	uint64_t began = proc_monotonic_ns();

	run(&seen, "/silent", 200 * MS);
	cr_assert_eq(seen.result, ERR_TIMEOUT);
	cr_assert_eq(seen.status, 0);
	cr_assert(strstr(seen.sentence, "no answer within 0.2 s"), "%s", seen.sentence);
	cr_assert(proc_monotonic_ns() - began >= 200 * MS);
}

Test(http, silence_inside_the_answer_ends_the_call)
{
	run(&seen, "/watch", 900 * MS); /* time for the stub's answer, on a busy machine too */
	cr_assert_eq(seen.result, ERR_TIMEOUT);
	cr_assert_eq(seen.status, 200);
	cr_assert_str_eq(buf_cstr(&seen.body), "{}\n");
	cr_assert(strstr(seen.sentence, "nothing more heard within 0.9 s"), "%s", seen.sentence);
}

/* Like an accepted watch, which may be silent. */
Test(http, refusal_that_does_not_end_is_ended)
{
	cr_assert_eq(http_start(http,
			     &(struct http_request){
				     .path = "/refused",
				     .first_byte_ns = 1000 * MS, /* time for the stub's answer */
				     .total_ns = 1000000 * MS,
				     .arg = &seen,
				     .on_status = on_status,
				     .on_body = on_body,
				     .on_done = on_done,
			     },
			     NULL),
		0);
	poll_until(http, &seen.n_done, 1);
	cr_assert_eq(seen.result, ERR_TIMEOUT);
	cr_assert_eq(seen.status, 503);
	cr_assert_str_eq(buf_cstr(&seen.body), "no");
}

/* We asked for nothing of the kind: there is no body without a status. */
Test(http, another_protocol_is_no_answer)
{
	run(&seen, "/switched", 10000 * MS); /* the answer comes at once */
	cr_assert_eq(seen.n_status, 0);
	cr_assert_eq(seen.body.size, 0);
	cr_assert_eq(seen.result, ERR_PROTOCOL, "%d %s", seen.result, seen.sentence);
}

Test(http, total_limit_counts_from_the_start)
{
	cr_assert_eq(http_start(http,
			     &(struct http_request){
				     .path = "/watch",
				     .total_ns = 100 * MS,
				     .arg = &seen,
				     .on_done = on_done,
			     },
			     NULL),
		0);
	poll_until(http, &seen.n_done, 1);
	cr_assert_eq(seen.result, ERR_TIMEOUT);
	cr_assert(strstr(seen.sentence, "not finished within 0.1 s"), "%s", seen.sentence);
}

Test(http, own_absence_is_not_the_servers_silence)
{
	start(&seen, http, "/watch", 1500 * MS);
	poll_until(http, &seen.n_status, 1);
	sleep(2);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(http_poll(http, 10, NULL, 0), 0);
	cr_assert_eq(seen.n_done, 0);
	http_cancel(&seen.call);
}

/* ---- ends that we choose ------------------------------------------------ */

Test(http, reader_may_stop_with_an_error_or_an_outcome)
{
	CLEANUP(release) struct seen failed = {.stop = ERR_TOO_LARGE}, ended = {.stop = END};

	run(&failed, "/watch", 0);
	cr_assert_eq(failed.result, ERR_TOO_LARGE);
	cr_assert_str_eq(failed.sentence, "the reader's own sentence");
	cr_assert_eq(failed.status, 200);
	run(&ended, "/watch", 0);
	cr_assert_eq(ended.result, END);
}

Test(http, cancelled_call_says_nothing_more)
{
	CLEANUP(release) struct seen before = {0}, inside = {.cancel_in_body = true}, good = {0};

	start(&before, http, "/good", 0);
	http_cancel(&before.call);
	cr_assert_null(before.call);
	start(&inside, http, "/watch", 0);
	run(&good, "/good", 0);
	for (int i = 0; i < 100 && !inside.body.size; i++)
		cr_assert_eq(http_poll(http, 10, NULL, 0), 0);
	for (int i = 0; i < 10; i++)
		cr_assert_eq(http_poll(http, 10, NULL, 0), 0);
	cr_assert_eq(inside.body.size, 3);
	cr_assert_eq(inside.n_done, 0);
	cr_assert_null(inside.call);
	cr_assert_eq(before.n_status + before.n_done, 0);
}

Test(http, one_call_may_cancel_another_from_its_callback)
{
	CLEANUP(release) struct seen victim = {0}, killer = {0};

	start(&victim, http, "/silent", 0);
	killer.cancel_in_status = &victim.call;
	run(&killer, "/good", 0);
	cr_assert_null(victim.call);
	cr_assert_eq(victim.n_done, 0);
}

Test(http, end_of_one_call_may_start_the_next)
{
	seen.then = "/busy";
	start(&seen, http, "/good", 0);
	poll_until(http, &seen.n_done, 2);
	cr_assert_eq(seen.status, 429);
}

Test(http, free_ends_running_calls_silently)
{
	start(&seen, http, "/watch", 0);
	poll_until(http, &seen.n_status, 1);
	http_free(&http);
	cr_assert_eq(seen.n_done, 0);
	cr_assert_eq(http_new(&config, &http), 0);
}

/* ---- the loop ----------------------------------------------------------- */

Test(http, refused_connection_over_tls_is_told_at_once)
{
	struct kubeconfig nobody = {.server = (char *)"https://127.0.0.1:1", .tls = true};
	CLEANUP(http_free) struct http *other = NULL;
	uint64_t began = proc_monotonic_ns();

	cr_assert_eq(http_new(&nobody, &other), 0);
	start(&seen, other, "/", 0);
	for (int i = 0; i < 10 && !seen.n_done; i++)
		cr_assert_eq(http_poll(other, 30000, NULL, 0), 0);
	cr_assert_eq(seen.result, ERR_NETWORK);
	cr_assert(proc_monotonic_ns() - began < 20000 * MS);
}

Test(http, other_descriptors_end_the_wait)
{
	int fds[2];

	cr_assert_eq(pipe(fds), 0);
	struct pollfd watched[2] = {
		{.fd = fds[0], .events = POLLIN}, {.fd = fds[1], .events = POLLIN}};

	cr_assert_eq(write(fds[1], "x", 1), 1);
	cr_assert_eq(http_poll(http, 30000, watched, 2), 0);
	cr_assert_eq(watched[0].revents, POLLIN);
	cr_assert_eq(watched[1].revents, 0);
	close(fds[0]);
	close(fds[1]);
}

/* ---- credentials -------------------------------------------------------- */

Test(http, c62_path_prefix_and_credentials_are_sent)
{
	char url[128];
	struct kubeconfig with = {.server = url, .token = (char *)"T"};
	CLEANUP(http_free) struct http *other = NULL;

	(void)snprintf(url, sizeof(url), "%s/a/b", api_stub_url(stub));
	cr_assert_eq(http_new(&with, &other), 0);
	start(&seen, other, "/api?x=y", 0);
	poll_until(other, &seen.n_done, 1);
	cr_assert(!strncmp(api_stub_last(stub), "GET /a/b/api?x=y HTTP/1.1\r\n", 26));
	cr_assert(strstr(api_stub_last(stub), "\r\nAuthorization: Bearer T\r\n"));
}
