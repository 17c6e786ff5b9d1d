/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/auth/auth.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "serve/auth/auth_allow.h"
#include "serve/auth/auth_self.h"
#include "serve/metrics.h"

#define AUTH_MAGIC 0x61757468u

struct auth {
	uint32_t magic;
	struct metrics *metrics;
	struct auth_self *self;   /* also of review; NULL: no listener has these modes */
	struct auth_allow *allow; /* NULL: no listener has this mode */
	uid_t owner;              /* of the store */
	bool has_group;
	gid_t group; /* its members may read the store */
};

int auth_open(const struct auth_options *options, struct auth **ret_auth)
{
	CLEANUP(auth_close) struct auth *auth = calloc(1, sizeof(*auth));

	if (!auth)
		return err_set(-ENOMEM, "setting up the decisions on clients");
	auth->magic = AUTH_MAGIC;
	auth->metrics = options->metrics;
	auth->owner = options->owner;
	auth->has_group = options->has_group;
	auth->group = options->group;
	int r = options->self ? auth_self_new(options, &auth->self) : 0;
	if (r == 0 && options->allow)
		r = auth_allow_new(options->config->serve.allow, &auth->allow);
	if (r < 0)
		return r;
	*ret_auth = TAKE(auth);
	return 0;
}

void auth_reload(struct auth *auth, const struct config *config)
{
	CHECK_OBJ(auth, AUTH_MAGIC);
	if (auth->self)
		auth_self_reload(auth->self, config);
	if (auth->allow)
		auth_allow_reload(auth->allow, config->serve.allow);
}

void auth_close(struct auth **auth)
{
	struct auth *a = TAKE(*auth);

	if (!a)
		return;
	CHECK_OBJ(a, AUTH_MAGIC);
	auth_self_free(&a->self);
	auth_allow_free(&a->allow);
	a->magic = 0;
	free(a);
}

/* ---- peers: a user that may read the files of the store may also ask for them
 * ------------------------- */

static void auth_decide_peer(const struct auth *auth, const struct exchange *x, char *user,
	size_t size, struct auth_decision *decision)
{
	const struct exchange_peer *peer = x->peer;
	bool allowed = peer->uid == 0 || peer->uid == auth->owner;
	const char *reason = "";

	(void)snprintf(user, size, "unix:uid=%u", peer->uid);
	for (size_t i = 0; auth->has_group && !allowed && i < peer->n_groups; i++)
		allowed = peer->groups[i] == auth->group;
	if (!allowed)
		reason = "only the store's owner, root and the members of its group may use this "
			 "socket";
	else if (auth_impersonates(x))
		reason = AUTH_NO_IMPERSONATION;
	*decision = (struct auth_decision){*reason ? AUTH_DENIED : AUTH_ALLOWED, user, reason};
}

/* ---- open: anybody on this machine, but no web page
 * ------------------------------------------------------ */

/* Returns whether HOST ("localhost:6445", "[::1]") names this machine by a loopback name. A web
 * page from a server with a name that now leads to 127.0.0.1 (DNS rebinding) sends that name. */
static bool auth_host_is_local(struct bytes host)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
	const char *p = host.data;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t n = strlen(names[i]);

		if (host.size >= n && strncasecmp(p, names[i], n) == 0 &&
			(host.size == n || p[n] == ':'))
			return true;
	}
	return false;
}

/* Returns whether the request names no origin, or this server itself, as fabric8's client does
 * for a WebSocket. No web page has that origin, because kinf-serve has none. */
static bool auth_origin_is_own(const struct exchange *x)
{
	static const struct bytes scheme = BYTES_LIT("https://");
	struct bytes origin = exchange_header(x, "origin");

	if (!origin.data)
		return true;
	if (!bytes_starts(origin, scheme))
		return false;
	return bytes_equal(
		BYTES((const char *)origin.data + scheme.size, origin.size - scheme.size), x->host);
}

static void auth_decide_open(
	const struct exchange *x, const struct auth_attributes *a, struct auth_decision *decision)
{
	const char *reason = "";

	if (x->peer->loopback && !x->peer->local && !auth_host_is_local(x->host))
		reason = "the Host header must be localhost, 127.0.0.1 or [::1] (serve.auth: open)";
	else if (!auth_origin_is_own(x))
		reason = "requests of web pages are refused (serve.auth: open)";
	else if (strcmp(a->resource, "secrets") == 0 && !*a->group)
		reason = "Secrets are not served without knowing the client (serve.auth: open)";
	else if (auth_impersonates(x))
		reason = AUTH_NO_IMPERSONATION;
	*decision = (struct auth_decision){
		*reason ? AUTH_DENIED : AUTH_ALLOWED, "system:anonymous", reason};
}

/* ---- auth.h
 * -------------------------------------------------------------------------------------- */

bool auth_impersonates(const struct exchange *x)
{
	for (size_t i = 0; i < x->n_headers; i++)
		if (bytes_starts(x->headers[i].name, BYTES_LIT("impersonate-")))
			return true;
	return false;
}

void auth_count(
	struct metrics *metrics, const char *mode, enum auth_answer answer, const char *source)
{
	static const char *const answers[] = {[AUTH_ALLOWED] = "allowed",
		[AUTH_DENIED] = "denied",
		[AUTH_UNAUTHENTICATED] = "unauthenticated",
		[AUTH_UNAVAILABLE] = "unavailable"};
	const char *values[] = {mode, answers[answer], source};

	metric_add(metrics_cell(metrics, METRIC_DECISIONS, values), 1);
}

void auth_decide(struct auth *auth, struct exchange *x, const struct auth_attributes *attributes,
	auth_decided_fn *fn, void *context, struct auth_pending **ret_pending)
{
	struct auth_decision decision = {
		AUTH_UNAVAILABLE, "", "this mode of serve.auth is not available"};
	char user[32];

	CHECK_OBJ(auth, AUTH_MAGIC);
	*ret_pending = NULL;
	enum config_auth mode = (enum config_auth)x->peer->auth;
	if ((mode == CONFIG_AUTH_ALLOW || mode == CONFIG_AUTH_REVIEW) &&
		!exchange_peer_counts(x->peer)) {
		decision = (struct auth_decision){AUTH_UNAUTHENTICATED, "", ""};
		auth_count(auth->metrics, mode == CONFIG_AUTH_ALLOW ? "allow" : "review",
			decision.answer, "local");
		fn(context, &decision);
		return;
	}
	switch (mode) {
	case CONFIG_AUTH_PEERS:
		auth_decide_peer(auth, x, user, sizeof(user), &decision);
		auth_count(auth->metrics, "peers", decision.answer, "local");
		break;
	case CONFIG_AUTH_OPEN:
		auth_decide_open(x, attributes, &decision);
		auth_count(auth->metrics, "open", decision.answer, "local");
		break;
	case CONFIG_AUTH_ALLOW:
		auth_allow_decide(auth->allow, x, attributes, &decision);
		auth_count(auth->metrics, "allow", decision.answer, "local");
		break;
	case CONFIG_AUTH_SELF:
	case CONFIG_AUTH_REVIEW:
		auth_self_decide(auth->self, x, attributes, fn, context, ret_pending);
		return;
	default:
		break;
	}
	fn(context, &decision);
}

void auth_cancel(struct auth_pending **pending)
{
	auth_self_cancel(pending);
}

void auth_deliver(struct auth *auth, struct serve_worker *worker)
{
	CHECK_OBJ(auth, AUTH_MAGIC);
	if (auth->self)
		auth_self_deliver(auth->self, worker);
}
