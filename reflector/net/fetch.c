/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/fetch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"

#define FETCH_MAGIC 0x46455443u

struct fetch {
	uint32_t magic;
	struct fetch_request request; /* its texts were the caller's */
	struct http_call *call;
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
	f->magic = 0;
	free(f);
}

static void fetch_on_status(void *arg, const struct http_answer *answer)
{
	struct fetch *fetch = arg;

	(void)snprintf(
		fetch->content_type, sizeof(fetch->content_type), "%s", answer->content_type);
	(void)snprintf(fetch->etag, sizeof(fetch->etag), "%s", answer->etag); /* never longer */
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

static void fetch_on_done(void *arg, int result, int status)
{
	struct fetch *fetch = arg;

	CHECK_OBJ(fetch, FETCH_MAGIC);
	fetch->call = NULL;
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

	if (!fetch)
		return err_set(-ENOMEM, "request");
	fetch->magic = FETCH_MAGIC;
	fetch->request = *request;
	int r = http_start(http,
		&(struct http_request){
			.path = request->path,
			.accept = request->accept,
			.etag = request->etag,
			.gzip = true,
			.may_be_absent = request->may_be_absent,
			.total_ns = request->total_ns,
			.arg = fetch,
			.on_status = fetch_on_status,
			.on_body = fetch_on_body,
			.on_done = fetch_on_done,
		},
		&fetch->call);
	if (r < 0)
		return r;
	*ret_fetch = TAKE(fetch);
	return 0;
}
