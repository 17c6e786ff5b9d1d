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

/* Answers /NAME in kube-apiserver's words, with each check if `verbose` or one fails. */
static void health_check(struct worker_shared *shared, struct exchange *x, const char *name)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	struct answer_check checks[ANSWER_CHECKS_MAX + 2] = {{.name = "ping", .ok = true},
		{.name = "shutdown",
			.ok = !__atomic_load_n(&shared->stopping, __ATOMIC_RELAXED),
			.reason = "process is shutting down"}};
	size_t n = strcmp(name, "livez") == 0 ? 1 : 2 + answer_ready(shared->answer, checks + 2);
	bool all_ok = true,
	     verbose = x->query.size && memmem(x->query.data, x->query.size, "verbose", 7);

	for (size_t i = 0; i < n; i++) {
		all_ok &= checks[i].ok;
		if (checks[i].ok)
			buf_printf(&text, "[+]%s ok\n", checks[i].name);
		else
			buf_printf(&text, "[-]%s failed: %s\n", checks[i].name, checks[i].reason);
	}
	buf_printf(&text, "%s check %s\n", name, all_ok ? "passed" : "failed");
	health_send(x, all_ok ? 200 : 500, "text/plain; charset=utf-8",
		all_ok && !verbose ? BYTES_LIT("ok") : buf_bytes(&text));
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
		if (x->path.size < 1 ||
			!bytes_equal(BYTES(path + 1, x->path.size - 1), bytes_str(names[i])))
			continue;
		x->labels->verb = "GET";
		if (reads)
			health_check(shared, x, names[i]);
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
