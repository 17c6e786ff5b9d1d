/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/feed/session_internal.h"

#include "common/err.h"
#include "reflector/feed/request.h"

#define PROBE_ANSWER_MAX 8192
#define PROBE_TIMEOUT    (20 * 1000000000ull)

/* Behind us: whether that is another past or only a cache that lags, a list for "" tells. */
static void on_probe(void *arg, const struct fetch_answer *answer)
{
	struct session *session = arg;
	struct status status;

	session->probe = NULL;
	if (answer->result < 0)
		return; /* the watch itself will notice */
	status_read(answer->status, 0, answer->body, &status);
	if (status.kind != FAILURE_RV_AHEAD || session->action.what != FEED_DO_WATCH)
		return;
	/* As if the watch had said it: where the server's cache stands still, the list will not help, and
	 * the next one has to wait longer. */
	session_fail(session, &status);
}

void session_probe_start(struct session *session)
{
	struct buf path = BUF_INIT;

	fetch_cancel(&session->probe);
	int r = request_probe_path(&session->definition, buf_cstr(&session->feed.rv), &path);
	if (r >= 0)
		r = fetch_start(session->shared->http, &(struct fetch_request){.path = buf_cstr(&path),
			.limit = PROBE_ANSWER_MAX, .total_ns = PROBE_TIMEOUT, .done = on_probe,
			.arg = session}, &session->probe);
	buf_release(&path);
	if (r < 0)
		err_clear(); /* asked again with the next watch */
}
