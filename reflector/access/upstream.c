/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/access/upstream.h"

#include <string.h>

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "store/env/text_file.h"

/* Appends a JSON string; it is ASCII, or UTF-8 that needs no escape. */
static void upstream_put_string(struct buf *out, const char *name, const char *text)
{
	buf_printf(out, ",\n\"%s\": \"", name);
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (*p < 0x20 || *p == '"' || *p == '\\' || *p == 0x7f)
			buf_printf(out, "\\u%04x", *p);
		else
			buf_byte(out, *p);
	}
	buf_byte(out, '"');
}

static int upstream_put_ca(struct buf *out, const struct kubeconfig_pem *ca)
{
	AUTO_FREE char *owned = NULL;
	struct bytes text;

	if (!ca->data && !ca->file)
		return 0;
	int r = kubeconfig_pem_text(ca, &owned, &text);
	if (r < 0)
		return r;
	buf_str(out, ",\n\"certificateAuthorityData\": \"");
	base64_put(text, out);
	buf_byte(out, '"');
	return 0;
}

int upstream_write(const struct kubeconfig *config, int runtime_fd, unsigned mode)
{
	CLEANUP(buf_release) struct buf out = BUF_INIT;

	buf_printf(&out, "{\"insecure\": %s", config->insecure ? "true" : "false");
	upstream_put_string(&out, "server", config->server);
	if (config->tls_server_name)
		upstream_put_string(&out, "tlsServerName", config->tls_server_name);
	/* The address of a proxy may hold a password. */
	if (config->proxy_url && !strchr(config->proxy_url, '@'))
		upstream_put_string(&out, "proxyURL", config->proxy_url);
	int r = upstream_put_ca(&out, &config->ca);
	buf_str(&out, "}\n");
	if (r == 0)
		r = buf_error(&out);
	return r < 0 ? err_add(r, "writing the file '" UPSTREAM_FILE "'") :
		       text_file_replace(runtime_fd, UPSTREAM_FILE, buf_cstr(&out), mode);
}
