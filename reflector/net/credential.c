/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/credential.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "common/text/base64.h"
#include "reflector/net/small_file.h"

#define CREDENTIAL_MAGIC 0x43524544u
#define TOKEN_MAX        ((size_t)64 << 10)
/* client-go's minute less its leeway: no token is used longer than a minute */
#define TOKEN_AGE_NS (50ull * 1000 * 1000 * 1000)

struct credential {
	uint32_t magic;
	const struct kubeconfig *config;
	struct certificates *certificates;
	struct exec *exec; /* NULL: no plugin */
	char *token;       /* of the token file; secret */
	uint64_t read_ns;  /* when the file was last read, or tried */
	unsigned version;  /* of the credentials in use */
	bool refused;      /* by the server */
	bool unreadable;   /* the file can't be read, and the log says so */
};

static int credential_read_token(const char *path, char **ret_token)
{
	CLEANUP(buf_release) struct buf text = BUF_SECRET;
	int r = small_file_read(path, TOKEN_MAX, &text);

	if (r < 0)
		return err_add(r, "tokenFile");
	const char *token = small_file_trim(&text);
	if (!*token) /* perhaps it is being written: tried again, as a missing file */
		return err_say(-ENODATA, "tokenFile '%s' is empty", path);
	for (const char *p = token; *p; p++)
		if (iscntrl((unsigned char)*p) || *p == ' ')
			return err_say(
				ERR_CONFIG, "tokenFile '%s': more than one word in it", path);
	*ret_token = strdup(token);
	return *ret_token ? 0 : err_set(-ENOMEM, "tokenFile '%s'", path);
}

/* Reads the token file again if due. On failure the old token stays in use. */
static void credential_renew_token(struct credential *credential, uint64_t now_ns)
{
	char *token;
	int r;

	if (!credential->token)
		return;
	if (!credential->refused && now_ns - credential->read_ns < TOKEN_AGE_NS)
		return;
	credential->read_ns = now_ns;
	r = credential_read_token(credential->config->token_file, &token);
	if (r < 0) {
		if (!credential->unreadable)
			LOG(credential_unreadable, .error = err_text(r));
		credential->unreadable = true;
		err_forget();
		return;
	}
	credential->refused = credential->unreadable = false;
	small_file_wipe_text(&credential->token);
	credential->token = token;
	credential->version++;
}

int credential_new(const struct kubeconfig *config, struct certificates *certificates,
	struct credential **ret_credential)
{
	CLEANUP(credential_free) struct credential *credential = calloc(1, sizeof(*credential));
	int r;

	if (!credential)
		return err_set(-ENOMEM, "credential");
	credential->magic = CREDENTIAL_MAGIC;
	credential->config = config;
	credential->certificates = certificates;
	credential->read_ns = proc_monotonic_ns();
	r = config->token_file ? credential_read_token(config->token_file, &credential->token) : 0;
	if (r < 0 && !config->token)
		return r;
	/* The kubeconfig's token stands in for one that can't be read yet, as in client-go. */
	if (r < 0) {
		LOG(credential_unreadable, .error = err_text(r));
		err_forget();
		credential->unreadable = true;
		credential->token = strdup(config->token);
		if (!credential->token)
			return err_set(-ENOMEM, "credential");
	}
	if (config->exec.command) {
		r = exec_new(config, EXEC_LIMIT_NS, &credential->exec);
		if (r < 0)
			return r;
	}
	*ret_credential = TAKE(credential);
	return 0;
}

void credential_free(struct credential **credential)
{
	struct credential *c = *credential;

	*credential = NULL;
	if (!c)
		return;
	CHECK_OBJ(c, CREDENTIAL_MAGIC);
	exec_free(&c->exec);
	small_file_wipe_text(&c->token);
	c->magic = 0;
	free(c);
}

unsigned credential_version(const struct credential *credential)
{
	CHECK_OBJ(credential, CREDENTIAL_MAGIC);
	return credential->version;
}

void credential_refused(struct credential *credential, unsigned version)
{
	CHECK_OBJ(credential, CREDENTIAL_MAGIC);
	if (version == credential->version)
		credential->refused = true;
	if (credential->exec)
		exec_refused(credential->exec, version);
}

/* ---- the plugin --------------------------------------------------------- */

int credential_ready(struct credential *credential, uint64_t now_ns)
{
	struct exec *exec = credential->exec;
	int r;

	CHECK_OBJ(credential, CREDENTIAL_MAGIC);
	r = exec ? exec_renew(exec, now_ns, proc_realtime_ns()) : 0;
	if (r || !exec || exec->version == credential->version)
		return r;
	r = certificates_show(
		credential->certificates, exec->credential.certificate, exec->credential.key);
	if (!r)
		credential->version = exec->version;
	return r;
}

struct exec *credential_exec(const struct credential *credential)
{
	CHECK_OBJ(credential, CREDENTIAL_MAGIC);
	return credential->exec;
}

/* ---- headers ------------------------------------------------------------ */

static void credential_put(struct buf *lines, const char *name, const char *value)
{
	buf_str(lines, name);
	buf_str(lines, value);
	buf_byte(lines, '\0');
}

int credential_headers(struct credential *credential, uint64_t now_ns, struct buf *lines)
{
	const struct kubeconfig *config = credential->config;
	const struct kubeconfig_impersonation *as = &config->impersonate;
	CLEANUP(buf_release) struct buf pair = BUF_SECRET;

	CHECK_OBJ(credential, CREDENTIAL_MAGIC);
	credential_renew_token(credential, now_ns);
	const char *token = credential->token  ? credential->token
			    : credential->exec ? credential->exec->credential.token
					       : config->token;

	if (token) {
		credential_put(lines, "Authorization: Bearer ", token);
	} else if (config->username) {
		buf_str(&pair, config->username);
		buf_byte(&pair, ':');
		buf_str(&pair, config->password ? config->password : "");
		buf_str(lines, "Authorization: Basic ");
		base64_put(buf_bytes(&pair), lines);
		buf_byte(lines, '\0');
	}
	if (as->user)
		credential_put(lines, "Impersonate-User: ", as->user);
	if (as->user && as->uid)
		credential_put(lines, "Impersonate-Uid: ", as->uid);
	for (size_t i = 0; as->user && i < as->groups.n; i++)
		credential_put(lines, "Impersonate-Group: ", as->groups.at[i]);
	for (size_t i = 0; as->user && i < as->extras.n; i += 2) {
		buf_str(lines, "Impersonate-Extra-");
		/* Other bytes are escaped. Capitals are not, as in client-go, although header names
		 * lose their case. */
		for (const char *key = as->extras.at[i]; *key; key++) {
			unsigned char c = (unsigned char)*key;

			if (isalnum(c) || strchr("!#$&'*+-.^_`|~", c))
				buf_byte(lines, c);
			else
				buf_printf(lines, "%%%02X", c);
		}
		credential_put(lines, ": ", as->extras.at[i + 1]);
	}
	return buf_error(&pair) < 0 ? buf_error(&pair) : buf_error(lines);
}
