/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/cluster/cluster.h"

#include <string.h>

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/hash.h"
#include "reflector/net/kubeconfig.h"
#include "reflector/net/scan.h"
#include "reflector/net/status.h"

/* longer ones are hashed: an identity has less than 256 bytes */
#define URL_MAX 160

#define UID    "uid:"
#define SERVER "server:"
#define CA     " ca:"

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

static int identity_of_answer(
	const struct kubeconfig *config, const struct fetch_answer *answer, struct buf *text)
{
	struct status why;

	if (answer->result < 0)
		return answer->result;
	switch (answer->status) {
	case 200:
		return identity_from_namespace(answer, text);
	case 403:
	case 404:
		return identity_from_server(config, text);
	case 401:
		if (config->withheld)
			return err_say(ERR_HTTP,
				"the server wants credentials (HTTP 401), and those of the "
				"kubeconfig are not sent over http://, where others can read them: "
				"name the server as https://");
		return err_say(ERR_HTTP,
			"the server does not accept the kubeconfig's credentials (HTTP 401): "
			"expired, or of another cluster? Restart the reflector after correcting "
			"it");
	default:
		status_read(answer->status, 0, answer->body, &why);
		return err_say(ERR_HTTP, "reading namespace kube-system: HTTP %s", why.text);
	}
}

int identity_read(
	const struct kubeconfig *config, const struct fetch_answer *answer, struct buf *text)
{
	int r = identity_of_answer(config, answer, text);

	return r < 0 ? err_add(r, "asking the API server for the identity of the cluster") : 0;
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
