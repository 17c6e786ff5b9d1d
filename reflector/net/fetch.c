/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "reflector/net/pace.h"
#include "reflector/net/status.h"

#define FETCH_MAGIC 0x46455443u

struct fetch {
	uint32_t magic;
	struct http *http;
	struct fetch_request request; /* its texts are ours */
	struct http_call *call;
	uint64_t end_ns; /* monotonic */
	uint32_t repeats;
	uint64_t retry_after_ns; /* of the answer; 0: none */
	char content_type[256], etag[HTTP_ETAG_SIZE];
	struct buf body;
};

void fetch_cancel(struct fetch **fetch)
{
	struct fetch *f = *fetch;

	*fetch = NULL;
	if (!f)
		return;
	CHECK_OBJ(f, FETCH_MAGIC);
	http_cancel(&f->call);
	buf_release(&f->body);
	free((char *)f->request.path);
	free((char *)f->request.accept);
	free((char *)f->request.etag);
	f->magic = 0;
	free(f);
}

static void fetch_on_status(void *arg, const struct http_answer *answer)
{
	struct fetch *fetch = arg;

	(void)snprintf(
		fetch->content_type, sizeof(fetch->content_type), "%s", answer->content_type);
	(void)snprintf(fetch->etag, sizeof(fetch->etag), "%s", answer->etag); /* never longer */
	fetch->retry_after_ns = answer->retry_after_ns;
}

static int fetch_on_body(void *arg, struct bytes bytes)
{
	struct fetch *fetch = arg;

	if (bytes.size > fetch->request.limit - fetch->body.size)
		return err_set(
			ERR_TOO_LARGE, "answer of more than %zu bytes", fetch->request.limit);
	buf_bytes_put(&fetch->body, bytes);
	return buf_error(&fetch->body);
}

static void fetch_on_done(void *arg, int result, int status);

/* Sends the request after DELAY_NS, with what is left of its time. */
static int fetch_send(struct fetch *fetch, uint64_t delay_ns)
{
	const struct fetch_request *request = &fetch->request;

	return http_start(fetch->http,
		&(struct http_request){
			.path = request->path,
			.accept = request->accept,
			.etag = request->etag,
			.gzip = true,
			.may_be_absent = request->may_be_absent,
			.delay_ns = delay_ns,
			.total_ns = fetch->end_ns - proc_monotonic_ns(),
			.arg = fetch,
			.on_status = fetch_on_status,
			.on_body = fetch_on_body,
			.on_done = fetch_on_done,
		},
		&fetch->call);
}

/* Makes the request again if the server asks for that. The pause is as long as it says, and up to
 * as much again, since it says the same to all. */
static bool fetch_repeat(struct fetch *fetch, int status)
{
	uint64_t pause = fetch->retry_after_ns, now = proc_monotonic_ns();

	if (!fetch->request.repeat || !pause || fetch->repeats == STATUS_REPEATS_MAX ||
		(status != 429 && status < 500) || now + 2 * pause >= fetch->end_ns)
		return false;
	int r = fetch_send(fetch, pace_jitter(pause));
	err_ignore(r, "the caller gets the answer");
	if (r < 0)
		return false;
	fetch->repeats++;
	fetch->retry_after_ns = 0;
	fetch->content_type[0] = fetch->etag[0] = '\0';
	buf_reset(&fetch->body);
	return true;
}

static void fetch_on_done(void *arg, int result, int status)
{
	struct fetch *fetch = arg;

	CHECK_OBJ(fetch, FETCH_MAGIC);
	fetch->call = NULL;
	if (result >= 0 && fetch_repeat(fetch, status))
		return;
	fetch->request.done(fetch->request.arg, &(struct fetch_answer){
							.result = result,
							.status = status,
							.content_type = fetch->content_type,
							.etag = fetch->etag,
							.body = buf_bytes(&fetch->body),
						});
	fetch_cancel(&fetch);
}

int fetch_start(struct http *http, const struct fetch_request *request, struct fetch **ret_fetch)
{
	CLEANUP(fetch_cancel) struct fetch *fetch = calloc(1, sizeof(*fetch));
	int r;

	if (!fetch)
		return err_set(-ENOMEM, "request");
	fetch->magic = FETCH_MAGIC;
	fetch->http = http;
	fetch->request = *request;
	fetch->request.path = strdup(request->path);
	fetch->request.accept = request->accept ? strdup(request->accept) : NULL;
	fetch->request.etag = request->etag ? strdup(request->etag) : NULL;
	if (!fetch->request.path || (request->accept && !fetch->request.accept) ||
		(request->etag && !fetch->request.etag))
		return err_set(-ENOMEM, "request");
	fetch->end_ns = proc_monotonic_ns() + request->total_ns;
	r = fetch_send(fetch, 0);
	if (r < 0)
		return r;
	*ret_fetch = TAKE(fetch);
	return 0;
}
