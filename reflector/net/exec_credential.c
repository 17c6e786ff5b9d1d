/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/exec_credential.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/base64.h"
#include "common/text/timestamp.h"
#include "common/value/json.h"
#include "common/value/value.h"
#include "reflector/net/small_file.h"

void exec_credential_release(struct exec_credential *credential)
{
	small_file_wipe_text(&credential->token);
	small_file_wipe_text(&credential->key);
	free(credential->certificate);
	*credential = (struct exec_credential){NULL};
}

/* ---- the plugin's input ------------------------------------------------- */

static void exec_put_member(struct buf *out, const char *name, const char *value)
{
	json_write_string(bytes_str(name), out);
	buf_byte(out, ':');
	json_write_string(bytes_str(value), out);
	buf_byte(out, ',');
}

static int exec_put_cluster(const struct kubeconfig *config, struct buf *out)
{
	CLEANUP(buf_release) struct buf base64 = BUF_INIT, text = BUF_INIT;
	const struct kubeconfig_pem *ca = &config->ca;

	buf_str(out, "\"cluster\":{");
	exec_put_member(out, "server", config->server);
	if (config->tls_server_name)
		exec_put_member(out, "tls-server-name", config->tls_server_name);
	if (config->insecure)
		buf_str(out, "\"insecure-skip-tls-verify\":true,");
	int r = kubeconfig_pem_text(ca, &text);
	if (r < 0)
		return r;
	if (ca->data || ca->file) {
		base64_put(buf_bytes(&text), &base64);
		exec_put_member(out, "certificate-authority-data", buf_cstr(&base64));
	}
	if (config->proxy_url)
		exec_put_member(out, "proxy-url", config->proxy_url);
	if (config->disable_compression)
		buf_str(out, "\"disable-compression\":true,");
	buf_printf(out, "\"config\":%s},", config->exec_config ? config->exec_config : "null");
	return buf_error(&base64);
}

int exec_credential_info(const struct kubeconfig *config, struct buf *out)
{
	int r = 0;

	buf_byte(out, '{');
	exec_put_member(out, "kind", "ExecCredential");
	exec_put_member(out, "apiVersion", config->exec.api_version);
	buf_str(out, "\"spec\":{");
	if (config->exec.provide_cluster_info)
		r = exec_put_cluster(config, out);
	buf_str(out, "\"interactive\":false}}");
	return r < 0 ? r : buf_error(out);
}

/* ---- the plugin's output ------------------------------------------------ */

static int exec_member(const struct value *map, const char *key, struct bytes *ret_text)
{
	struct value item;
	int r = value_find(map, bytes_str(key), &item);

	*ret_text = BYTES_NONE;
	if (r < 0)
		return r;
	if (r == FOUND && item.type == VALUE_STRING)
		*ret_text = item.text;
	return 0;
}

/* Copies a member; leaves *RET_TEXT as it is when the member is absent or empty. */
static int exec_copy_member(const struct value *map, const char *key, char **ret_text)
{
	struct bytes text;
	int r = exec_member(map, key, &text);

	if (r < 0 || !text.size)
		return r;
	if (memchr(text.data, '\0', text.size))
		return err_say(ERR_CREDENTIALS, "exec plugin: %s holds a NUL", key);
	*ret_text = strndup(text.data, text.size);
	return *ret_text ? 0 : err_set(-ENOMEM, "exec plugin");
}

static int exec_read_status(const struct value *root, struct exec_credential *credential)
{
	struct value status;
	struct bytes expiry = BYTES_NONE;
	int64_t expires_ns;
	int r = value_find(root, BYTES_LIT("status"), &status);

	if (r < 0)
		return r;
	if (r != FOUND || status.type != VALUE_MAP)
		return err_say(ERR_CREDENTIALS, "exec plugin didn't return a status field");
	r = exec_copy_member(&status, "token", &credential->token);
	if (!r)
		r = exec_copy_member(&status, "clientCertificateData", &credential->certificate);
	if (!r)
		r = exec_copy_member(&status, "clientKeyData", &credential->key);
	credential->expires_ns = UINT64_MAX;
	if (!r)
		r = exec_member(&status, "expirationTimestamp", &expiry);
	if (r < 0)
		return r;
	if (expiry.size && !timestamp_parse(expiry, &expires_ns))
		return err_say(ERR_CREDENTIALS,
			"exec plugin: expirationTimestamp is not a time like 2030-01-01T00:00:00Z");
	if (expiry.size)
		credential->expires_ns = expires_ns < 0 ? 0 : (uint64_t)expires_ns;
	if (!credential->certificate != !credential->key)
		return err_say(
			ERR_CREDENTIALS, "exec plugin returned only certificate or key, not both");
	if (!credential->token && !credential->certificate)
		return err_say(
			ERR_CREDENTIALS, "exec plugin didn't return a token or cert/key pair");
	if (credential->certificate && (!strstr(credential->certificate, "-----BEGIN ") ||
					       !strstr(credential->key, "-----BEGIN ")))
		return err_say(ERR_CREDENTIALS, "exec plugin: certificate or key is not PEM");
	for (const char *p = credential->token; p && *p; p++) /* it becomes a header */
		if (iscntrl((unsigned char)*p) || *p == ' ')
			return err_say(ERR_CREDENTIALS,
				"exec plugin: blanks or control characters in the token");
	return 0;
}

int exec_credential_read(
	struct bytes text, const char *api_version, struct exec_credential *ret_credential)
{
	CLEANUP(exec_credential_release) struct exec_credential credential = {NULL};
	CLEANUP(json_parser_free) struct json_parser *parser = NULL;
	CLEANUP(buf_release) struct buf document = BUF_SECRET;
	struct value root;
	struct bytes kind, version;
	int r = json_parser_new(&parser);

	if (r < 0)
		return r;
	json_parser_keep_secret(parser);
	r = json_parse(parser, text, NULL, &document);
	if (r == ERR_SYNTAX || r == ERR_TOO_LARGE)
		r = err_say(
			ERR_CREDENTIALS, "exec plugin: its output is not JSON: %s", err_text(r));
	if (!r)
		r = value_read(buf_bytes(&document), &root);
	if (!r)
		r = exec_member(&root, "kind", &kind);
	if (!r)
		r = exec_member(&root, "apiVersion", &version);
	if (r < 0)
		return r;
	if (!bytes_equal(kind, BYTES_LIT("ExecCredential")))
		return err_say(ERR_CREDENTIALS, "exec plugin: its output is not an ExecCredential");
	if (!bytes_equal(version, bytes_str(api_version)))
		return err_say(ERR_CREDENTIALS,
			"exec plugin is configured to use API version %s, plugin returned version "
			"%.*s",
			api_version, version.size > 80 ? 80 : (int)version.size,
			version.size ? (const char *)version.data : "");
	r = exec_read_status(&root, &credential);
	if (r < 0)
		return r;
	*ret_credential = credential;
	credential = (struct exec_credential){NULL};
	return 0;
}
