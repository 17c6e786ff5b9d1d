/* SPDX-License-Identifier: Apache-2.0 */
/* A server with answers chosen by the path, and calls to it with recorded results. */
#ifndef UNIT_HTTP_RIG_H
#define UNIT_HTTP_RIG_H

#include "common/buf.h"
#include "reflector/net/http.h"
#include "tests/unit/api_stub.h"
#include "tests/unit/unit.h"

struct seen {
	struct http *http;
	struct http_call *call;
	int n_status, n_done;
	int result, status;
	uint64_t retry_after_ns;
	char content_type[128], warning[512], sentence[512];
	struct buf body;
	int stop; /* result of on_body */
	bool cancel_in_body;
	const char *then; /* on_done calls this path next */
	struct http_call **cancel_in_status;
};

static inline void on_status(void *arg, const struct http_answer *answer)
{
	struct seen *seen = arg;

	seen->n_status++;
	seen->retry_after_ns = answer->retry_after_ns;
	(void)snprintf(seen->content_type, sizeof(seen->content_type), "%s", answer->content_type);
	(void)snprintf(seen->warning, sizeof(seen->warning), "%s", answer->warning);
	if (seen->cancel_in_status)
		http_cancel(seen->cancel_in_status);
}

static inline int on_body(void *arg, struct bytes bytes)
{
	struct seen *seen = arg;

	cr_assert(bytes.size);
	buf_bytes_put(&seen->body, bytes);
	if (seen->cancel_in_body)
		http_cancel(&seen->call);
	if (seen->stop < 0)
		return err_say(seen->stop, "the reader's own sentence");
	return seen->stop;
}

static inline void start(struct seen *seen, struct http *http, const char *path, uint64_t limit_ns);

static inline void on_done(void *arg, int result, int status)
{
	struct seen *seen = arg;

	seen->n_done++;
	seen->call = NULL;
	seen->result = result;
	seen->status = status;
	(void)snprintf(
		seen->sentence, sizeof(seen->sentence), "%s", result < 0 ? err_text(result) : "");
	if (seen->then) {
		const char *path = seen->then;

		seen->then = NULL;
		start(seen, seen->http, path, 0);
	}
}

/* LIMIT_NS: for the first byte and for silence. */
static inline void start(struct seen *seen, struct http *http, const char *path, uint64_t limit_ns)
{
	int r;

	seen->http = http;
	r = http_start(http,
		&(struct http_request){
			.path = path,
			.first_byte_ns = limit_ns,
			.idle_ns = limit_ns,
			.arg = seen,
			.on_status = on_status,
			.on_body = on_body,
			.on_done = on_done,
		},
		&seen->call);
	cr_assert_eq(r, 0, "%s", err_text(r));
}

static inline void poll_until(struct http *http, const int *counter, int wanted)
{
	for (int i = 0; i < 2000 && *counter < wanted; i++)
		cr_assert_eq(http_poll(http, 10, NULL, 0), 0);
	cr_assert_eq(*counter, wanted);
}

/* {"a":1} as one gzip member. */
#define MEMBER \
	"\x1f\x8b\x08\0\0\0\0\0\x02\x03\xab\x56\x4a\x54\xb2\x32\xac\x05\0\xaf\xac\x1b\x56\x07\0\0"
#define GZIP "Content-Encoding: gzip\r\n"

/* A whole body in one chunk, and then trailers without end. */
static char trailers[700 * 1024];

static inline void fill_trailers(void)
{
	static const char body[] = "2\r\n{}\r\n0\r\n",
			  line[] = "X-Trailer: and so on and so on\r\n";
	size_t at = sizeof(body) - 1;

	memcpy(trailers, body, at);
	for (; at < sizeof(trailers); at++)
		trailers[at] = line[(at - sizeof(body) + 1) % (sizeof(line) - 1)];
}

static const struct api_stub_answer answers[] = {
	{"/trailers", 200, "application/json", trailers, "Transfer-Encoding: chunked\r\n",
		STUB_GOOD, sizeof(trailers)},
	{"/gzip", 200, "application/json", MEMBER "\0", GZIP, STUB_GOOD, 27},
	{"/members", 200, "application/json", MEMBER "\0" MEMBER "\0", GZIP, STUB_GOOD, 54},
	{"/compress", 200, "application/json", "\x1f\x9d", "Content-Encoding: compress\r\n",
		STUB_GOOD, 2},
	{"/half", 200, "application/json", MEMBER "\0", GZIP, STUB_GOOD, 14},
	{"/good", 200, "application/json", "{\"a\":1}",
		"Warning: 299 - \"old \\\"api\\\"\"\r\nX-Other: y\r\n", STUB_GOOD},
	{"/busy", 429, "text/plain", "Too many requests\n", "Retry-After: 7\r\n", STUB_GOOD},
	{"/moved", 302, "text/plain", "", "Location: /good\r\n", STUB_GOOD},
	{"/away", 301, "text/plain", "", "Location: http://127.0.0.2:1/good\r\n", STUB_GOOD},
	{"/refused", 503, "text/plain", "no", NULL, STUB_SILENT_BODY},
	{"/switched", 101, "text/plain", "something else", NULL, STUB_GOOD},
	{"/denied", 401, "text/plain", "Unauthorized", NULL, STUB_GOOD},
	{"/empty", 200, "application/json", "", NULL, STUB_GOOD},
	{"/cut", 200, "application/json", "{\"a\":", NULL, STUB_CUT},
	{"/reset", 200, "application/json", "", NULL, STUB_RESET},
	{"/silent", 200, "application/json", "", NULL, STUB_SILENT},
	{"/watch", 200, "application/json", "{}\n", NULL, STUB_SILENT_BODY},
	{"/garbage", 200, "application/json", "", NULL, STUB_GARBAGE},
	{NULL},
};

static struct api_stub *stub;
static struct kubeconfig config;
static struct http *http;

static inline void set_up(void)
{
	fill_trailers();
	stub = api_stub_start(answers);
	config = (struct kubeconfig){.server = (char *)api_stub_url(stub)};
	cr_assert_eq(http_new(&config, &http), 0);
}

static inline void run(struct seen *seen, const char *path, uint64_t limit_ns)
{
	start(seen, http, path, limit_ns);
	cr_assert_eq(seen->n_done, 0); /* never inside http_start */
	poll_until(http, &seen->n_done, 1);
}

static inline void release(struct seen *seen)
{
	buf_release(&seen->body);
}

/* Of a test with one call. */
static struct seen seen;

static inline void tear_down(void)
{
	release(&seen);
	http_free(&http);
	api_stub_stop(&stub);
}

#endif
