/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/cluster/documents.h"

#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "reflector/net/http.h"
#include "store/env/text_file.h"

#define MAX_AGE (600 * SECOND_NS)
#define PAUSE   (60 * SECOND_NS)

void documents_open(struct documents *documents, struct discovery *discovery,
	const struct config *config, const struct home *home)
{
	*documents = (struct documents){.discovery = discovery, .home = home};
	documents_configure(documents, config);
}

void documents_configure(struct documents *documents, const struct config *config)
{
	documents->wanted = config->serve.forward;
	discovery_keep(documents->discovery, documents->wanted);
}

int documents_due(struct documents *documents, uint64_t now_ns)
{
	if (!documents->wanted || now_ns < documents->next_ns)
		return 0;
	documents->next_ns = now_ns + PAUSE;
	documents_write(documents); /* what could not be written before */
	int r = discovery_refresh(documents->discovery, MAX_AGE);
	return r < 0 ? r : 0;
}

static int documents_write_one(struct documents *documents, unsigned at)
{
	static const char *const names[] = {"discovery.api", "discovery.apis"};
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	const char *etag;
	struct buf *document = discovery_kept(documents->discovery, at, &etag);

	if (!document->size)
		return 0;
	buf_printf(&text, "kinf-discovery 1 %s\n", *etag ? etag : "-");
	buf_bytes_put(&text, buf_bytes(document));
	int r = buf_error(&text);
	if (r >= 0)
		r = text_file_replace(home_fd(documents->home), names[at], buf_cstr(&text),
			home_file_mode(documents->home));
	if (r >= 0)
		buf_release(document);
	return r;
}

void documents_write(struct documents *documents)
{
	int r = documents_write_one(documents, 0);

	if (r >= 0)
		r = documents_write_one(documents, 1);
	if (r < 0 && !documents->warned)
		LOG(documents_unwritten, .error = err_text(r));
	err_ignore(r, "the earlier documents stay, and these are written a minute later");
	documents->warned = r < 0;
}
