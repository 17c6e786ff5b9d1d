/* SPDX-License-Identifier: Apache-2.0 */

#include <stdio.h>
#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "print/status/status.h"
#include "serve/answer/answer.h"
#include "serve/http/listener.h"
#include "serve/metrics.h"
#include "serve/worker_internal.h"

static void health_send(struct exchange *x, int status, const char *type, struct bytes body)
{
	const struct exchange_header headers[] = {
		{BYTES_LIT("content-type"), bytes_str(type)},
		{BYTES_LIT("x-content-type-options"), BYTES_LIT("nosniff")},
	};

	exchange_begin(x, status, headers, 2);
	exchange_send(x, body);
}

/* Takes the next parameter NAME off *QUERY, with or without a value. Returns whether there is one;
 * RET_VALUE is "NAME=..."'s. */
static bool health_next_parameter(struct bytes *query, const char *name, struct bytes *ret_value)
{
	size_t size = strlen(name);

	while (query->size) {
		const char *p = query->data, *next = memchr(p, '&', query->size);
		size_t n = next ? (size_t)(next - p) : query->size;

		*query = next ? BYTES(next + 1, query->size - n - 1) : BYTES_NONE;
		if (n >= size && memcmp(p, name, size) == 0 && (n == size || p[size] == '=')) {
			*ret_value = n == size ? BYTES_NONE : BYTES(p + size + 1, n - size - 1);
			return true;
		}
	}
	return false;
}

static bool health_is_excluded(struct bytes query, struct bytes check)
{
	struct bytes value;

	while (health_next_parameter(&query, "exclude", &value))
		if (bytes_equal(value, check))
			return true;
	return false;
}

/* Makes the checks of /livez (ping), or of /readyz: also those of shutdown and of the answers. */
static size_t health_checks(struct worker_shared *shared, bool ready, struct answer_check *checks)
{
	size_t n = 0;

	checks[n++] = (struct answer_check){.name = "ping", .ok = true};
	if (!ready)
		return n;
	checks[n] = (struct answer_check){
		.name = "shutdown", .ok = !__atomic_load_n(&shared->stopping, __ATOMIC_RELAXED)};
	(void)snprintf(checks[n].reason, sizeof(checks[n].reason), "process is shutting down");
	n++;
	return n + answer_ready(shared->answer, checks + n);
}

/* Answers /NAME, or /NAME/CHECK, in kube-apiserver's words. */
static void health_check(
	struct worker_shared *shared, struct exchange *x, const char *name, struct bytes only)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	struct answer_check checks[ANSWER_CHECKS_MAX + 2];
	size_t n = health_checks(shared, strcmp(name, "livez") != 0, checks), found = 0;
	struct bytes query = x->query, value;
	bool all_ok = true;

	for (size_t i = 0; i < n; i++) {
		struct bytes check = bytes_str(checks[i].name);

		if (only.size && !bytes_equal(only, check))
			continue;
		found++;
		if (health_is_excluded(x->query, check)) {
			buf_printf(&text, "[+]%s excluded: ok\n", checks[i].name);
			continue;
		}
		all_ok &= checks[i].ok;
		if (checks[i].ok)
			buf_printf(&text, "[+]%s ok\n", checks[i].name);
		else
			buf_printf(&text, "[-]%s failed: %s\n", checks[i].name, checks[i].reason);
	}
	if (only.size && !found) {
		exchange_refuse(
			x, 404, "NotFound", "the server could not find the requested resource", 0);
		return;
	}
	buf_printf(&text, "%s check %s\n", name, all_ok ? "passed" : "failed");
	if (!all_ok)
		health_send(x, 500, "text/plain; charset=utf-8", buf_bytes(&text));
	else if (health_next_parameter(&query, "verbose", &value))
		health_send(x, 200, "text/plain; charset=utf-8", buf_bytes(&text));
	else
		health_send(x, 200, "text/plain; charset=utf-8", BYTES_LIT("ok"));
}

/* Answers with the metrics of requests, and those of `kinf metrics`. */
static void health_metrics(struct worker_shared *shared, struct exchange *x)
{
	CLEANUP(status_release) struct store_status status;
	CLEANUP(buf_release) struct buf text = BUF_INIT;

	metrics_write(shared->metrics, &text);
	err_ignore(status_gather(answer_kinf(shared->answer), true, &status),
		"kinf_store_error is 1 then");
	if (metrics_text(&status, true, &text) < 0)
		exchange_refuse(x, 500, "InternalError", "no memory for the metrics", 0);
	else
		health_send(x, 200, "text/plain; version=0.0.4; charset=utf-8", buf_bytes(&text));
}

bool health_answer(
	struct worker_shared *shared, const struct listener *listener, struct exchange *x)
{
	static const char *const names[] = {"livez", "readyz", "healthz"};
	bool reads = bytes_equal(x->method, BYTES_LIT("GET")) || x->head;
	const char *path = x->path.data;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t size = strlen(names[i]) + 1;

		if (x->path.size < size || memcmp(path + 1, names[i], size - 1) != 0 ||
			(x->path.size > size && path[size] != '/'))
			continue;
		x->labels->verb = "GET";
		if (reads)
			health_check(shared, x, names[i],
				x->path.size > size
					? BYTES(path + size + 1, x->path.size - size - 1)
					: BYTES_NONE);
		else
			exchange_refuse(x, 405, "MethodNotAllowed",
				"the server does not allow this method on the requested resource",
				0);
		return true;
	}
	if (listener->kind != LISTENER_METRICS)
		return false;
	if (reads && bytes_equal(x->path, BYTES_LIT("/metrics")))
		health_metrics(shared, x);
	else
		exchange_refuse(
			x, 404, "NotFound", "the server could not find the requested resource", 0);
	return true;
}
