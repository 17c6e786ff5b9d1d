/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/cluster/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"
#include "reflector/net/fetch.h"
#include "reflector/net/kubeconfig.h"
#include "reflector/net/scan.h"
#include "reflector/net/status.h"

#define IDENTITY_MAGIC 0x49444e54u
#define ANSWER_NS      (32ull * 1000 * 1000 * 1000)
#define ANSWER_MAX     ((size_t)1 << 20)
/* longer ones are hashed: an identity has less than 256 bytes */
#define URL_MAX 160

#define UID    "uid:"
#define SERVER "server:"
#define CA     " ca:"

struct identity {
	uint32_t magic;
	struct fetch *fetch;
	const struct kubeconfig *config;
	identity_done_fn *done;
	void *arg;
};

void identity_cancel(struct identity **identity)
{
	struct identity *i = *identity;

	*identity = NULL;
	if (!i)
		return;
	CHECK_OBJ(i, IDENTITY_MAGIC);
	fetch_cancel(&i->fetch);
	i->magic = 0;
	free(i);
}

/* Makes the identity of the server's address, without the right to read the namespace. */
static int identity_from_server(const struct kubeconfig *config, struct buf *out)
{
	CLEANUP(buf_release) struct buf pem = BUF_INIT;
	size_t size = strlen(config->server);
	int r = kubeconfig_pem_text(&config->ca, &pem);

	if (r < 0)
		return r;
	if (size <= URL_MAX)
		buf_printf(out, SERVER "%s", config->server);
	else
		buf_printf(out, SERVER "%016llx",
			(unsigned long long)hash_bytes(BYTES(config->server, size), 0));
	buf_printf(out, CA "%016llx", (unsigned long long)hash_bytes(buf_bytes(&pem), 0));
	return buf_error(out);
}

static int identity_from_namespace(const struct fetch_answer *answer, struct buf *out)
{
	struct bytes metadata, uid;
	char room[129];

	if (status_is_web_page(answer->body))
		return err_say(ERR_PROTOCOL, STATUS_WEB_PAGE);
	if (scan_find(answer->body, "metadata", &metadata) != FOUND ||
		scan_find(metadata, "uid", &uid) != FOUND || uid.size >= sizeof(room) ||
		scan_string(uid, room, sizeof(room), &uid) != FOUND || !uid.size)
		return err_say(ERR_PROTOCOL, "namespace kube-system: no uid in the answer");
	buf_str(out, UID);
	buf_bytes_put(out, uid);
	return buf_error(out);
}

static void identity_on_answer(void *arg, const struct fetch_answer *answer)
{
	struct identity *identity = arg;
	identity_done_fn *done = identity->done;
	void *done_arg = identity->arg;
	struct buf text = BUF_INIT;
	struct status why;
	int r = answer->result;

	identity->fetch = NULL;
	if (r >= 0)
		switch (answer->status) {
		case 200:
			r = identity_from_namespace(answer, &text);
			break;
		case 403:
		case 404:
			r = identity_from_server(identity->config, &text);
			break;
		case 401:
			r = identity->config->withheld
				    ? err_say(ERR_HTTP,
					      "the server wants credentials (HTTP 401), and those "
					      "of the kubeconfig are not sent over http://, where "
					      "others can read them: name the server as https://")
				    : err_say(ERR_HTTP,
					      "the server does not accept the kubeconfig's "
					      "credentials (HTTP 401): expired, or of another "
					      "cluster? Restart the reflector after correcting it");
			break;
		default:
			status_read(answer->status, 0, answer->body, &why);
			r = err_say(ERR_HTTP, "reading namespace kube-system: HTTP %s", why.text);
		}
	if (r < 0)
		(void)err_add(r, "asking the API server for the identity of the cluster");
	identity_cancel(&identity);
	done(done_arg, r, r < 0 ? NULL : buf_cstr(&text));
	buf_release(&text);
}

int identity_start(struct http *http, const struct kubeconfig *config, identity_done_fn *done,
	void *arg, struct identity **ret_identity)
{
	CLEANUP(identity_cancel) struct identity *identity = calloc(1, sizeof(*identity));
	int r;

	if (!identity)
		return err_set(-ENOMEM, "identity of the cluster");
	identity->magic = IDENTITY_MAGIC;
	identity->config = config;
	identity->done = done;
	identity->arg = arg;
	r = fetch_start(http,
		&(struct fetch_request){
			.path = "/api/v1/namespaces/kube-system",
			.limit = ANSWER_MAX,
			.total_ns = ANSWER_NS,
			.done = identity_on_answer,
			.arg = identity,
		},
		&identity->fetch);
	if (r < 0)
		return r;
	*ret_identity = TAKE(identity);
	return 0;
}

/* ---- comparing ---------------------------------------------------------- */

static bool identity_is_uid(const char *text)
{
	return !strncmp(text, UID, strlen(UID));
}

bool identity_is_other(const char *was, const char *is)
{
	return *was && identity_is_uid(was) == identity_is_uid(is) && strcmp(was, is) != 0;
}

bool identity_is_better(const char *was, const char *is)
{
	return identity_is_uid(is) || !identity_is_uid(was);
}
