/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/requestlog.h"

#include <inttypes.h>
#include <pthread.h>
#include <time.h>

#include "tests/simulator/jsontext.h"
#include "tests/simulator/memory.h"

#define LOG_LIMIT ((size_t)256 << 20)

struct requestlog {
	pthread_mutex_t lock;
	struct buf lines;
};

struct requestlog *requestlog_new(void)
{
	struct requestlog *log = memory_take(sizeof(*log));

	REQUIRE(pthread_mutex_init(&log->lock, NULL) == 0);
	buf_init(&log->lines, LOG_LIMIT);
	return log;
}

void requestlog_free(struct requestlog **log)
{
	if (!*log)
		return;
	pthread_mutex_destroy(&(*log)->lock);
	buf_release(&(*log)->lines);
	free(*log);
	*log = NULL;
}

static void requestlog_put_text(struct buf *out, const char *key, const char *text)
{
	buf_printf(out, ",\"%s\":", key);
	if (text)
		jsontext_put_string(out, bytes_str(text));
	else
		buf_str(out, "null");
}

static void requestlog_put_line(struct buf *out, const struct http_request *request,
	const char *verb, const char *resource, unsigned status)
{
	struct timespec now;
	const char *query = strchr(request->target, '?');

	REQUIRE(clock_gettime(CLOCK_REALTIME, &now) == 0);
	buf_printf(out, "{\"time\":%" PRId64 ".%03ld", (int64_t)now.tv_sec, now.tv_nsec / 1000000);
	requestlog_put_text(out, "method", request->method);
	requestlog_put_text(out, "path", request->path);
	requestlog_put_text(out, "query", query ? query + 1 : "");
	requestlog_put_text(out, "verb", verb);
	requestlog_put_text(out, "resource", resource);
	requestlog_put_text(out, "accept", http_header(request, "Accept"));
	requestlog_put_text(out, "acceptEncoding", http_header(request, "Accept-Encoding"));
	requestlog_put_text(out, "userAgent", http_header(request, "User-Agent"));
	buf_printf(out, ",\"authorization\":%s,\"status\":%u}\n",
		http_header(request, "Authorization") ? "true" : "false", status);
}

void requestlog_add(struct requestlog *log, const struct http_request *request, const char *verb,
	const char *resource, unsigned status)
{
	pthread_mutex_lock(&log->lock);
	requestlog_put_line(&log->lines, request, verb, resource, status);
	REQUIRE(buf_error(&log->lines) == 0); /* a test must see all requests */
	pthread_mutex_unlock(&log->lock);
}

void requestlog_copy(struct requestlog *log, struct buf *out)
{
	pthread_mutex_lock(&log->lock);
	buf_bytes_put(out, buf_bytes(&log->lines));
	pthread_mutex_unlock(&log->lock);
}

void requestlog_clear(struct requestlog *log)
{
	pthread_mutex_lock(&log->lock);
	buf_trim(&log->lines, LOG_LIMIT / 256);
	pthread_mutex_unlock(&log->lock);
}
