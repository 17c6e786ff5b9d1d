/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/auth/auth_allow.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "serve/auth/auth.h"

struct auth_allow {
	pthread_rwlock_t lock; /* of RULES */
	char *rules;
};

int auth_allow_new(const char *rules, struct auth_allow **ret_allow)
{
	CLEANUP(auth_allow_free) struct auth_allow *allow = calloc(1, sizeof(*allow));

	if (!allow)
		return err_set(-ENOMEM, "reading serve.allow");
	(void)pthread_rwlock_init(&allow->lock, NULL);
	allow->rules = strdup(rules ? rules : "");
	if (!allow->rules)
		return err_set(-ENOMEM, "reading serve.allow");
	*ret_allow = TAKE(allow);
	return 0;
}

void auth_allow_reload(struct auth_allow *allow, const char *rules)
{
	char *copy = strdup(rules ? rules : "");

	if (!copy)
		return;
	(void)pthread_rwlock_wrlock(&allow->lock);
	free(allow->rules);
	allow->rules = copy;
	(void)pthread_rwlock_unlock(&allow->lock);
}

void auth_allow_free(struct auth_allow **allow)
{
	struct auth_allow *a = TAKE(*allow);

	if (!a)
		return;
	(void)pthread_rwlock_destroy(&a->lock);
	free(a->rules);
	free(a);
}

/* ---- rules
 * ------------------------------------------------------------------------------------------- */

/* Returns whether NAME is in LIST, one line of a rule. PATTERNS: a word that ends with * stands for
 * all that begin so. */
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

static bool allow_is_subject(
	struct bytes users, struct bytes groups, const struct exchange_peer *peer)
{
	bool is = allow_has(users, peer->common_name, true);

	for (size_t i = 0; !is && i < peer->n_organizations; i++)
		is = allow_has(groups, peer->organizations[i], true);
	return is;
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

void auth_allow_decide(struct auth_allow *allow, const struct exchange *x,
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
	(void)pthread_rwlock_rdlock(&allow->lock);
	for (const char *rules = allow->rules; *rules && !allowed;) {
		struct bytes users = allow_line(&rules), groups = allow_line(&rules),
			     verbs = allow_line(&rules), resources = allow_line(&rules),
			     namespaces = allow_line(&rules);

		if (!allow_is_subject(users, groups, peer))
			continue;
		/* A client that has a rule may see what is served. */
		allowed = !*a->resource ||
			  (allow_has(verbs, a->verb, true) && allow_is_resource(resources, a) &&
				  (!namespaces.size ||
					  (*a->namespace_ &&
						  allow_has(namespaces, a->namespace_, true))));
	}
	(void)pthread_rwlock_unlock(&allow->lock);
	*ret_decision = (struct auth_decision){allowed ? AUTH_ALLOWED : AUTH_DENIED,
		peer->common_name, allowed ? "" : "no rule of serve.allow allows it"};
}
