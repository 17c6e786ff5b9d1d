/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/access/credential.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/buf.h"
#include "common/check.h"
#include "common/base64.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "reflector/access/exec.h"
#include "reflector/access/small_file.h"

#define CREDENTIAL_MAGIC 0x43524544u
#define TOKEN_MAX        ((size_t)64 << 10)
/* client-go's minute less its leeway: a token is never used past the minute. */
#define TOKEN_AGE_NS     (50ull * 1000 * 1000 * 1000)

struct credential {
	uint32_t magic;
	const struct kubeconfig *config;
	struct certificates *certificates;
	struct exec *exec; /* NULL: no plugin */
	char *token;      /* of the file; secret */
	uint64_t read_ns; /* when it was read or last tried */
	unsigned version; /* of what is shown */
	bool refused;     /* that version was */
	bool unreadable;  /* the file, as the log says */
};

static void wipe(char **text)
{
	small_file_wipe(text, *text ? strlen(*text) : 0);
}

static int token_parse(const char *path, char *text, char **ret_token)
{
	const char *token = small_file_trim(text);

	if (!*token)
		return err_say(ERR_CONFIG, "tokenFile '%s' is empty", path);
	for (const char *p = token; *p; p++)
		if (iscntrl((unsigned char)*p) || *p == ' ')
			return err_say(ERR_CONFIG, "tokenFile '%s': more than one word in it", path);
	*ret_token = strdup(token);
	return *ret_token ? 0 : err_set(-ENOMEM, "tokenFile '%s'", path);
}

static int token_read(const char *path, char **ret_token)
{
	char *text;
	size_t size;
	int r = small_file_read(path, TOKEN_MAX, &text, &size);

	if (r < 0)
		return err_add(r, "tokenFile");
	r = token_parse(path, text, ret_token);
	small_file_wipe(&text, size);
	return r;
}

static void say_unreadable(struct credential *credential, int error)
{
	if (!credential->unreadable)
		LOG(credential_unreadable, .error = err_text(error));
	credential->unreadable = true;
	err_clear();
}

/* A file that can't be read now, in the middle of a rotation say, leaves the old token. */
static void token_renew(struct credential *credential, uint64_t now_ns)
{
	char *token;
	int r;

	if (!credential->token)
		return;
	if (!credential->refused && now_ns - credential->read_ns < TOKEN_AGE_NS)
		return;
	credential->read_ns = now_ns;
	r = token_read(credential->config->token_file, &token);
	if (r < 0) {
		say_unreadable(credential, r);
		return;
	}
	credential->refused = credential->unreadable = false;
	wipe(&credential->token);
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
	if (config->token_file) {
		r = token_read(config->token_file, &credential->token);
		if (r < 0)
			return r;
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
	wipe(&c->token);
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

/* ---- the plugin ---- */

int credential_ready(struct credential *credential, uint64_t now_ns)
{
	struct exec *exec = credential->exec;
	int r;

	CHECK_OBJ(credential, CREDENTIAL_MAGIC);
	r = exec ? exec_step(exec, now_ns, proc_realtime_ns()) : 0;
	if (r || !exec || exec_version(exec) == credential->version)
		return r;
	r = certificates_show(credential->certificates, exec_shown(exec)->certificate,
		exec_shown(exec)->key);
	if (!r)
		credential->version = exec_version(exec);
	return r;
}

bool credential_is_running(const struct credential *credential)
{
	CHECK_OBJ(credential, CREDENTIAL_MAGIC);
	return credential->exec && exec_is_running(credential->exec);
}

int credential_fd(const struct credential *credential)
{
	CHECK_OBJ(credential, CREDENTIAL_MAGIC);
	return credential->exec ? exec_fd(credential->exec) : -1;
}

/* ---- headers ---- */

/* The key of an extra becomes part of a header's name: what can't stand there is escaped. Capitals
 * are not, as in client-go: header names lose their case, so extras that matter have none. */
static void extra_key_put(struct buf *buf, const char *key)
{
	for (; *key; key++) {
		unsigned char c = (unsigned char)*key;

		if (isalnum(c) || strchr("!#$&'*+-.^_`|~", c))
			buf_byte(buf, c);
		else
			buf_printf(buf, "%%%02X", c);
	}
}

struct sink {
	credential_header_fn *put;
	void *arg;
	struct buf line;
	int result;
};

/* Hands over the line that was composed, and forgets it. */
static void sink_flush(struct sink *sink)
{
	if (!sink->result)
		sink->result = buf_error(&sink->line);
	if (!sink->result)
		sink->result = sink->put(sink->arg, buf_cstr(&sink->line));
	buf_reset(&sink->line);
}

static void sink_header(struct sink *sink, const char *name, const char *value)
{
	buf_str(&sink->line, name);
	buf_str(&sink->line, value);
	sink_flush(sink);
}

static void put_authorization(const struct credential *credential, struct sink *sink)
{
	const struct kubeconfig *config = credential->config;
	const char *token = credential->token  ? credential->token
			    : credential->exec ? exec_shown(credential->exec)->token
					       : config->token;
	CLEANUP(buf_release) struct buf pair = BUF_SECRET;

	if (token) {
		sink_header(sink, "Authorization: Bearer ", token);
		return;
	}
	if (!config->username)
		return;
	buf_str(&pair, config->username);
	buf_byte(&pair, ':');
	buf_str(&pair, config->password ? config->password : "");
	buf_str(&sink->line, "Authorization: Basic ");
	base64_put(buf_bytes(&pair), &sink->line);
	if (!sink->result)
		sink->result = buf_error(&pair);
	sink_flush(sink);
}

static void put_impersonation(const struct kubeconfig_impersonation *as, struct sink *sink)
{
	if (!as->user)
		return;
	sink_header(sink, "Impersonate-User: ", as->user);
	if (as->uid)
		sink_header(sink, "Impersonate-Uid: ", as->uid);
	for (size_t i = 0; i < as->n_groups; i++)
		sink_header(sink, "Impersonate-Group: ", as->groups[i]);
	for (size_t i = 0; i < as->n_extras; i++)
		for (size_t j = 0; j < as->extras[i].n_values; j++) {
			buf_str(&sink->line, "Impersonate-Extra-");
			extra_key_put(&sink->line, as->extras[i].key);
			sink_header(sink, ": ", as->extras[i].values[j]);
		}
}

int credential_headers(struct credential *credential, uint64_t now_ns, credential_header_fn *put,
	void *arg)
{
	struct sink sink = {.put = put, .arg = arg, .line = BUF_SECRET};

	CHECK_OBJ(credential, CREDENTIAL_MAGIC);
	token_renew(credential, now_ns);
	put_authorization(credential, &sink);
	put_impersonation(&credential->config->impersonate, &sink);
	buf_release(&sink.line);
	return sink.result;
}
