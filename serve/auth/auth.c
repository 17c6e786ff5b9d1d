/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/auth/auth.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "serve/auth/auth_self.h"
#include "serve/metrics.h"

#define AUTH_MAGIC 0x61757468u
#define TOKEN_MAX  4096

struct auth {
	uint32_t magic;
	struct metrics *metrics;
	struct auth_self *self; /* also of review; NULL: no listener has these modes */
	pthread_rwlock_t lock;  /* of RULES */
	char *rules;            /* of allow; NULL: no listener has this mode */
	struct buf token;       /* of the mode token */
	uid_t owner;            /* of the store */
	bool has_group;
	gid_t group; /* its members may read the store */
};

bool auth_impersonates(const struct exchange *x)
{
	for (size_t i = 0; i < x->n_headers; i++)
		if (bytes_starts(x->headers[i].name, BYTES_LIT("impersonate-")))
			return true;
	return false;
}

/* ---- allow: rules for the name and organizations in a certificate -------- */

/* Returns true if NAME is in LIST, one line of a rule. PATTERNS: a word with a * at its end is a
 * prefix. */
static bool allow_has(struct bytes list, const char *name, bool patterns)
{
	const char *p = list.data, *end = p + list.size;
	size_t size = strlen(name);

	while (p < end) {
		const char *tab = memchr(p, '\t', (size_t)(end - p)), *stop = tab ? tab : end;
		size_t n = (size_t)(stop - p);
		bool prefix = patterns && n && p[n - 1] == '*';

		if (prefix ? size >= n - 1 && memcmp(p, name, n - 1) == 0
			   : size == n && memcmp(p, name, n) == 0)
			return true;
		p = stop + 1;
	}
	return false;
}

/* Takes one line off the rules. */
static struct bytes allow_line(const char **rules)
{
	const char *start = *rules;
	size_t size = strcspn(start, "\n");

	*rules = start + size + (start[size] != '\0');
	return BYTES(start, size);
}

static bool allow_is_resource(struct bytes resources, const struct auth_attributes *a)
{
	char name[400], group[400];
	bool secrets = strcmp(a->resource, "secrets") == 0 && !*a->group;

	(void)snprintf(name, sizeof(name), "%s%s%s%s%s", a->resource, *a->group ? "." : "",
		a->group, *a->subresource ? "/" : "", a->subresource);
	(void)snprintf(group, sizeof(group), "*.%s", a->group);
	/* Secrets are named, or not meant. */
	if (secrets)
		return allow_has(resources, name, false);
	return allow_has(resources, name, true) ||
	       (!*a->subresource && *a->group && allow_has(resources, group, false));
}

static void allow_decide(struct auth *auth, const struct exchange *x,
	const struct auth_attributes *a, struct auth_decision *ret_decision)
{
	const struct exchange_peer *peer = x->peer;
	bool known = *peer->common_name || peer->n_organizations, allowed = false;

	if (!known || auth_impersonates(x)) {
		*ret_decision = known ? (struct auth_decision){AUTH_DENIED, peer->common_name,
						AUTH_NO_IMPERSONATION}
				      : (struct auth_decision){AUTH_UNAUTHENTICATED, "", ""};
		return;
	}
	(void)pthread_rwlock_rdlock(&auth->lock);
	for (const char *rules = auth->rules; *rules && !allowed;) {
		struct bytes users = allow_line(&rules), groups = allow_line(&rules),
			     verbs = allow_line(&rules), resources = allow_line(&rules),
			     namespaces = allow_line(&rules);

		bool is_meant = allow_has(users, peer->common_name, true);
		for (size_t i = 0; !is_meant && i < peer->n_organizations; i++)
			is_meant = allow_has(groups, peer->organizations[i], true);
		if (!is_meant)
			continue;
		/* A client with a rule may see discovery. */
		allowed = !*a->resource ||
			  (allow_has(verbs, a->verb, true) && allow_is_resource(resources, a) &&
				  (!namespaces.size ||
					  (*a->namespace_ &&
						  allow_has(namespaces, a->namespace_, true))));
	}
	(void)pthread_rwlock_unlock(&auth->lock);
	*ret_decision = (struct auth_decision){allowed ? AUTH_ALLOWED : AUTH_DENIED,
		peer->common_name, allowed ? "" : "no rule of serve.allow allows it"};
}

/* ---- token: one token may read everything ------------------------------- */

static int token_load(struct auth *auth, const char *file)
{
	AUTO_FD int fd = open(file, O_RDONLY | O_CLOEXEC);
	struct buf *token = &auth->token;

	*token = BUF_SECRET;
	token->limit = TOKEN_MAX;
	int r = fd < 0 ? err_set(-errno, "opening it") : buf_read_file(token, fd, "it");
	while (r == 0 && token->size && token->data[token->size - 1] <= ' ')
		buf_truncate(token, token->size - 1);
	if (r == 0 && !token->size)
		r = err_say(ERR_CONFIG, "it is empty");
	return r < 0 ? err_add(r, "the token '%s'", file) : 0;
}

static void auth_decide_token(
	const struct auth *auth, const struct exchange *x, struct auth_decision *decision)
{
	struct bytes given = exchange_header(x, "authorization"), token = buf_bytes(&auth->token);
	const uint8_t *p = given.data, *own = token.data;
	unsigned differ =
		given.size != token.size + 7 || strncasecmp(given.data, "bearer ", 7) != 0;

	if (!differ) /* all of it, wherever it differs */
		for (size_t i = 0; i < token.size; i++)
			differ |= (unsigned)(p[7 + i] ^ own[i]);
	if (differ)
		*decision = (struct auth_decision){AUTH_UNAUTHENTICATED, "", ""};
	else if (auth_impersonates(x))
		*decision = (struct auth_decision){AUTH_DENIED, "token", AUTH_NO_IMPERSONATION};
	else
		*decision = (struct auth_decision){AUTH_ALLOWED, "token", ""};
}

/* ---- begin and end ------------------------------------------------------ */

static char *allow_copy(const struct config *config)
{
	return strdup(config->serve.allow ? config->serve.allow : "");
}

int auth_open(const struct auth_options *options, struct auth **ret_auth)
{
	CLEANUP(auth_close) struct auth *auth = calloc(1, sizeof(*auth));

	if (!auth)
		return err_set(-ENOMEM, "setting up the decisions on clients");
	auth->magic = AUTH_MAGIC;
	(void)pthread_rwlock_init(&auth->lock, NULL);
	auth->metrics = options->metrics;
	auth->owner = options->owner;
	auth->has_group = options->has_group;
	auth->group = options->group;
	int r = options->self ? auth_self_new(options, &auth->self) : 0;
	if (r < 0)
		return r;
	if (options->allow) {
		auth->rules = allow_copy(options->config);
		if (!auth->rules)
			return err_set(-ENOMEM, "reading serve.allow");
	}
	r = options->token ? token_load(auth, options->config->serve.token_file) : 0;
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
	if (!auth->rules)
		return;
	char *rules = allow_copy(config), *old = auth->rules;
	if (!rules)
		return; /* without memory they stay as they are */
	(void)pthread_rwlock_wrlock(&auth->lock);
	auth->rules = rules;
	(void)pthread_rwlock_unlock(&auth->lock);
	free(old);
}

void auth_close(struct auth **auth)
{
	struct auth *a = TAKE(*auth);

	if (!a)
		return;
	CHECK_OBJ(a, AUTH_MAGIC);
	auth_self_free(&a->self);
	(void)pthread_rwlock_destroy(&a->lock);
	free(a->rules);
	buf_release(&a->token);
	a->magic = 0;
	free(a);
}

/* ---- peers: readers of the store's files --------------------------------- */

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

/* ---- open: anybody on this machine, but no web page --------------------- */

/* Returns true if HOST ("localhost:6445", "[::1]") is a loopback name. After DNS rebinding a web
 * page sends its server's name. */
static bool auth_host_is_local(struct bytes host)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
	const char *p = host.data;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t n = strlen(names[i]);

		if (host.size >= n && strncasecmp(p, names[i], n) == 0 &&
			(host.size == n || p[n] == ':'))
			return true;
	}
	return false;
}

/* Returns true if the request has no origin, or this server as its origin (fabric8's WebSockets).
 * kinf-serve has no web pages. */
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

/* ---- auth.h ------------------------------------------------------------- */

const char *auth_mode_name(enum config_auth mode)
{
	static const char *const names[CONFIG_AUTH_MAX] = {[CONFIG_AUTH_DEFAULT] = "default",
		[CONFIG_AUTH_PEERS] = "peers",
		[CONFIG_AUTH_SELF] = "self",
		[CONFIG_AUTH_REVIEW] = "review",
		[CONFIG_AUTH_ALLOW] = "allow",
		[CONFIG_AUTH_OPEN] = "open",
		[CONFIG_AUTH_TOKEN] = "token"};

	return names[mode];
}

void auth_count(
	struct metrics *metrics, const char *mode, enum auth_answer answer, const char *source)
{
	static const char *const answers[] = {[AUTH_ALLOWED] = "allowed",
		[AUTH_DENIED] = "denied",
		[AUTH_UNAUTHENTICATED] = "unauthenticated",
		[AUTH_BUSY] = "busy",
		[AUTH_UNAVAILABLE] = "unavailable"};
	const char *values[] = {mode, answers[answer], source};

	metric_add(metrics_cell(metrics, METRIC_DECISIONS, values), 1);
}

void auth_decide(struct auth *auth, struct exchange *x, const struct auth_attributes *attributes,
	auth_decided_fn *fn, void *context, struct auth_pending **ret_pending)
{
	struct auth_decision decision = {AUTH_UNAUTHENTICATED, "", ""};
	enum config_auth mode = (enum config_auth)x->peer->auth;
	char user[32];

	CHECK_OBJ(auth, AUTH_MAGIC);
	*ret_pending = NULL;
	switch (mode) {
	case CONFIG_AUTH_PEERS:
		auth_decide_peer(auth, x, user, sizeof(user), &decision);
		break;
	case CONFIG_AUTH_OPEN:
		auth_decide_open(x, attributes, &decision);
		break;
	case CONFIG_AUTH_TOKEN:
		auth_decide_token(auth, x, &decision);
		break;
	case CONFIG_AUTH_ALLOW:
		if (exchange_peer_counts(x->peer))
			allow_decide(auth, x, attributes, &decision);
		break;
	case CONFIG_AUTH_SELF:
	case CONFIG_AUTH_REVIEW:
		if (mode == CONFIG_AUTH_REVIEW && !exchange_peer_counts(x->peer))
			break;
		auth_self_decide(auth->self, x, attributes, fn, context, ret_pending);
		return;
	default: /* serve_set_auth() gives each listener a mode */
		break;
	}
	auth_count(auth->metrics, auth_mode_name(mode), decision.answer, "local");
	fn(context, &decision);
}

void auth_deliver(struct auth *auth, struct serve_worker *worker)
{
	CHECK_OBJ(auth, AUTH_MAGIC);
	if (auth->self)
		auth_self_deliver(auth->self, worker);
}
