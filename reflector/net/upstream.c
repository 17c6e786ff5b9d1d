/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/upstream.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/base64.h"
#include "common/value/json.h"
#include "store/env/text_file.h"

static void upstream_put_string(struct buf *out, const char *name, const char *text)
{
	buf_printf(out, ",\n\"%s\": ", name);
	json_write_string(bytes_str(text), out);
}

int upstream_write(struct upstream *upstream, const struct kubeconfig *config, struct http *http,
	struct home *home)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	uint64_t changes;
	struct bytes ca = http_ca(http, &changes);

	if (upstream->written && changes == upstream->ca_changes)
		return 0;
	buf_printf(&out, "{\"insecure\": %s", config->insecure ? "true" : "false");
	upstream_put_string(&out, "server", config->server);
	if (config->tls_server_name)
		upstream_put_string(&out, "tlsServerName", config->tls_server_name);
	/* The address of a proxy may hold a password. */
	if (config->proxy_url && !strchr(config->proxy_url, '@'))
		upstream_put_string(&out, "proxyURL", config->proxy_url);
	if (ca.size) {
		buf_str(&out, ",\n\"certificateAuthorityData\": \"");
		base64_put(ca, &out);
		buf_byte(&out, '"');
	}
	buf_str(&out, "}\n");
	int r = buf_error(&out);
	if (r < 0)
		return err_add(r, "writing the file '" UPSTREAM_FILE "'");
	r = text_file_replace(
		home_runtime_fd(home), UPSTREAM_FILE, buf_cstr(&out), home_file_mode(home));
	if (r >= 0)
		*upstream = (struct upstream){.written = true, .ca_changes = changes};
	return r;
}
