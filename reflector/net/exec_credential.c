/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/exec_credential.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/base64.h"
#include "common/value/json.h"
#include "common/value/value.h"
#include "reflector/net/small_file.h"

#define SECOND    1000000000ull
#define YEAR_LAST 2500 /* 64 bits of nanoseconds end in 2554 */

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
	CLEANUP(buf_release) struct buf base64 = BUF_INIT;
	AUTO_FREE char *owned = NULL;
	const struct kubeconfig_pem *ca = &config->ca;
	struct bytes text;

	buf_str(out, "\"cluster\":{");
	exec_put_member(out, "server", config->server);
	if (config->tls_server_name)
		exec_put_member(out, "tls-server-name", config->tls_server_name);
	if (config->insecure)
		buf_str(out, "\"insecure-skip-tls-verify\":true,");
	int r = kubeconfig_pem_text(ca, &owned, &text);
	if (r < 0)
		return r;
	if (ca->data || ca->file) {
		base64_put(text, &base64);
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

/* ---- time --------------------------------------------------------------- */

/* Reads COUNT digits at *TEXT and moves it on. Returns: the number; -1: too few digits. */
static int time_digits(const char **text, const char *end, int count)
{
	int number = 0;

	for (; count; count--, (*text)++) {
		if (*text == end || !isdigit((unsigned char)**text))
			return -1;
		number = 10 * number + (**text - '0');
	}
	return number;
}

static bool time_char(const char **text, const char *end, const char *set)
{
	if (*text == end || !**text || !strchr(set, **text))
		return false;
	(*text)++;
	return true;
}

/* Reads "2030-01-01T00:00:00". */
static bool time_date(const char **text, const char *end, struct tm *ret_tm)
{
	int year = time_digits(text, end, 4);
	bool good = time_char(text, end, "-");
	int month = time_digits(text, end, 2);

	good = time_char(text, end, "-") && good;
	int day = time_digits(text, end, 2);

	good = time_char(text, end, "Tt") && good;
	int hour = time_digits(text, end, 2);

	good = time_char(text, end, ":") && good;
	int minute = time_digits(text, end, 2);

	good = time_char(text, end, ":") && good;
	int second = time_digits(text, end, 2);

	*ret_tm = (struct tm){.tm_year = year - 1900,
		.tm_mon = month - 1,
		.tm_mday = day,
		.tm_hour = hour,
		.tm_min = minute,
		.tm_sec = second};
	return good && year >= 1970 && month >= 1 && month <= 12 && day >= 1 && day <= 31 &&
	       hour >= 0 && hour <= 23 && minute >= 0 && minute <= 59 && second >= 0 &&
	       second <= 60;
}

bool exec_credential_time(struct bytes text, uint64_t *ret_ns)
{
	const char *at = text.data, *end = at + text.size;
	uint64_t fraction = 0, unit = SECOND / 10;
	int64_t east = 0, seconds;
	struct tm tm;

	if (!text.size || !time_date(&at, end, &tm))
		return false;
	if (time_char(&at, end, "."))
		for (; at < end && isdigit((unsigned char)*at); at++, unit /= 10)
			fraction += unit * (uint64_t)(*at - '0');

	/* "Z" or "+01:00", the time east of Greenwich. */
	bool west = at < end && *at == '-';

	if (!time_char(&at, end, "Zz")) {
		bool good = time_char(&at, end, "+-");
		int hour = time_digits(&at, end, 2);

		good = time_char(&at, end, ":") && good;
		int minute = time_digits(&at, end, 2);

		if (!good || hour < 0 || hour > 23 || minute < 0 || minute > 59)
			return false;
		east = (west ? -60 : 60) * (60 * (int64_t)hour + minute);
	}
	if (at != end)
		return false;
	seconds = (int64_t)timegm(&tm) - east;
	if (tm.tm_year + 1900 > YEAR_LAST)
		*ret_ns = UINT64_MAX;
	else
		*ret_ns = seconds < 0 ? 0 : (uint64_t)seconds * SECOND + fraction;
	return true;
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
	if (expiry.size && !exec_credential_time(expiry, &credential->expires_ns))
		return err_say(ERR_CREDENTIALS,
			"exec plugin: expirationTimestamp is not a time like 2030-01-01T00:00:00Z");
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
