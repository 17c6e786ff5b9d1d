/* SPDX-License-Identifier: Apache-2.0 */
#include "command/rbac.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/value/json.h"
#include "common/value/selector.h"
#include "common/value/yaml_style.h"

#define LOWER  "abcdefghijklmnopqrstuvwxyz"
#define DIGITS "0123456789"

/* ---- options ------------------------------------------------------------ */

#define AT(field) offsetof(struct rbac_args, field)

static const struct option_spec rbac_specs[] = {
	{0, "name", OPTION_TEXT, AT(name), "NAME", "name of the roles and bindings (default kinf)"},
	{'n', "namespace", OPTION_TEXT, AT(namespace_), "NS",
		"namespace of the service account (default kinf-system)"},
	{0, "service-account", OPTION_TEXT, AT(account), "NAME",
		"the account that gets the rights (default kinf)"},
	{0, "user", OPTION_TEXT, AT(user), "NAME", "a user gets the rights instead"},
	{0, "group", OPTION_TEXT, AT(group), "NAME", "a group gets the rights instead"},
};

struct options_group rbac_options(struct rbac_args *args)
{
	return (struct options_group){"Options of rbac", rbac_specs, ARRAY_SIZE(rbac_specs), args};
}

bool rbac_is_asked(const struct rbac_args *args)
{
	return args->name || args->namespace_ || args->account || args->user || args->group;
}

int rbac_check_args(const struct options *options, const struct rbac_args *args)
{
	return (args->user || args->group) && (args->namespace_ || args->account)
		       ? options_bad(options, "--user and --group name other accounts than a "
					      "service account; leave out --namespace and "
					      "--service-account")
		       : 0;
}

/* ---- resources ---------------------------------------------------------- */

/* The rights on one resource. */
struct rbac_rule {
	char in[64];        /* a namespace; "": all, and cluster-scoped objects */
	char group[256];    /* "*": all */
	char resource[256]; /* "*": all */
	char object[256];   /* "": all */
	bool selects;       /* no rule can express the feed's selector */
	bool excludes;      /* the wildcard leaves resources out, as no rule can */
};

struct rbac {
	struct rbac_rule *rules;
	size_t n, room;
	bool custom; /* a resource may be a custom one, with columns in its definition */
};

static void rbac_release(struct rbac *rbac)
{
	free(rbac->rules);
}

static const struct rbac_builtin {
	const char *group, *plural, *kind, *short_names;
} rbac_builtins[] = {
#define RESOURCE(group, version, plural, kind, short_names, scope) \
	{group, plural, kind, short_names},
#include "common/value/resources.def"
#undef RESOURCE
};

/* Returns true if the first SIZE bytes of NAME are a version: v1, v2beta1. */
static bool rbac_is_version(const char *name, size_t size)
{
	size_t digits = size > 1 && name[0] == 'v' ? strspn(name + 1, DIGITS) : 0;
	const char *rest = name + 1 + digits, *end = name + size;

	if (!digits || rest == end)
		return digits;
	size_t word = strncmp(rest, "alpha", 5) == 0 ? 5 : strncmp(rest, "beta", 4) == 0 ? 4 : 0;
	size_t last = word ? strspn(rest + word, DIGITS) : 0;
	return last && rest + word + last == end;
}

/* Splits NAME (resource[.version][.group]) into RULE. Returns true if it has the group. */
static bool rbac_split(const char *name, struct rbac_rule *rule)
{
	size_t size = strcspn(name, ".");
	const char *rest = name + size + (name[size] == '.');

	(void)snprintf(rule->resource, sizeof(rule->resource), "%.*s", (int)size, name);
	size = strcspn(rest, ".");
	bool version = rbac_is_version(rest, size); /* pods.v1: the core group */
	for (char *c = rule->resource; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	(void)snprintf(rule->group, sizeof(rule->group), "%s",
		!version     ? rest
		: rest[size] ? rest + size + 1
			     : "");
	return version || *rest;
}

static bool rbac_is_short_name(const char *names, const char *name)
{
	size_t size;

	for (; (size = strcspn(names, " ")); names += size + (names[size] == ' '))
		if (size == strlen(name) && strncasecmp(names, name, size) == 0)
			return true;
	return false;
}

/* Puts the built-in resource of RULE, in its group if that is WRITTEN, into RULE. Returns false if
 * there is none. */
static bool rbac_find_builtin(struct rbac_rule *rule, bool written)
{
	for (size_t i = 0; i < ARRAY_SIZE(rbac_builtins); i++) {
		const struct rbac_builtin *b = &rbac_builtins[i];

		if ((written && strcmp(rule->group, b->group) != 0) ||
			(strcasecmp(rule->resource, b->plural) != 0 &&
				strcasecmp(rule->resource, b->kind) != 0 &&
				!rbac_is_short_name(b->short_names, rule->resource)))
			continue;
		(void)snprintf(rule->resource, sizeof(rule->resource), "%s", b->plural);
		(void)snprintf(rule->group, sizeof(rule->group), "%s", b->group);
		return true;
	}
	return false;
}

static int rbac_take_stored(void *arg, const struct kinf_feed_info *info)
{
	struct rbac_rule *rule = arg;
	const char *dot = strchr(info->resource, '.');

	(void)snprintf(rule->resource, sizeof(rule->resource), "%.*s",
		(int)strcspn(info->resource, "."), info->resource);
	(void)snprintf(rule->group, sizeof(rule->group), "%s", dot ? dot + 1 : "");
	return 1; /* the first one is enough */
}

/* Sets group and resource of RULE to those of FEED. */
static int rbac_resolve(struct rbac *rbac, const struct config *config,
	const struct config_feed *feed, struct kinf_snapshot *snapshot, struct rbac_rule *rule)
{
	if (feed->wildcard) {
		rbac->custom = true;
		if (!rbac_split(feed->resource, rule))
			(void)snprintf(rule->group, sizeof(rule->group), "*");
		return 0;
	}
	bool written = rbac_split(feed->resource, rule);
	if (rbac_find_builtin(rule, written))
		return 0;
	rbac->custom = true;
	if (snapshot && kinf_feed_status(snapshot, feed->name, rbac_take_stored, rule) == 1)
		return 0;
	if (written)
		return 0;
	return err_say(ERR_CONFIG,
		"the group of '%s' is not known: it is no resource of the API server itself, and "
		"the store '%s' has no such feed; write it with its group, as in "
		"widgets.example.com",
		feed->resource, config->store);
}

/* Puts the expressible part of the feed's selectors and exceptions into RULE. */
static int rbac_select(const struct config_feed *feed, struct rbac_rule *rule)
{
	CLEANUP(selector_free) struct selector *selector = NULL;
	int r = selector_parse_fields(feed->field_selector, &selector);

	if (r < 0)
		return r;
	struct bytes name = selector_value(selector, "metadata.name");
	(void)snprintf(rule->object, sizeof(rule->object), "%.*s", (int)name.size,
		(const char *)name.data);
	rule->selects = *feed->label_selector || selector_count(selector) > (name.size ? 1 : 0);
	rule->excludes = feed->n_exclude;
	return 0;
}

static int rbac_add(struct rbac *rbac, const struct rbac_rule *rule, const char *in)
{
	struct rbac_rule copy = *rule;

	(void)snprintf(copy.in, sizeof(copy.in), "%s", in);
	return ARRAY_ADD(rbac->rules, rbac->n, rbac->room, copy, "the rights of the feeds");
}

static int rbac_compare(const void *a, const void *b)
{
	const struct rbac_rule *x = a, *y = b;
	int r = strcmp(x->in, y->in);

	r = r ? r : strcmp(x->group, y->group);
	r = r ? r : strcmp(x->object, y->object);
	return r ? r : strcmp(x->resource, y->resource);
}

/* Returns true if OTHER gives all rights of RULE. */
static bool rbac_is_covered(const struct rbac_rule *rule, const struct rbac_rule *other)
{
	return (!*other->in || !strcmp(other->in, rule->in)) &&
	       !strcmp(other->group, rule->group) && !strcmp(other->resource, rule->resource) &&
	       (!*other->object || !strcmp(other->object, rule->object));
}

/* Sorts the rules, and removes those covered by another one. */
static void rbac_settle(struct rbac *rbac)
{
	size_t kept = 0;

	if (rbac->n)
		qsort(rbac->rules, rbac->n, sizeof(*rbac->rules), rbac_compare);
	for (size_t i = 0; i < rbac->n; i++) {
		size_t k = 0;

		/* A rule that covers another one is before it in the order. */
		while (k < kept && !rbac_is_covered(&rbac->rules[i], &rbac->rules[k]))
			k++;
		if (k == kept)
			rbac->rules[kept++] = rbac->rules[i];
	}
	rbac->n = kept;
}

static int rbac_collect(
	struct rbac *rbac, const struct config *config, struct kinf_snapshot *snapshot)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < config->n_feeds; i++) {
		const struct config_feed *feed = &config->feeds[i];
		struct rbac_rule rule = {.in = ""};

		r = rbac_resolve(rbac, config, feed, snapshot, &rule);
		if (r == 0)
			r = rbac_select(feed, &rule);
		if (r == 0 && !feed->n_namespaces)
			r = rbac_add(rbac, &rule, "");
		for (size_t k = 0; r == 0 && k < feed->n_namespaces; k++)
			r = rbac_add(rbac, &rule, feed->namespaces[k]);
	}
	if (r == 0)
		rbac_settle(rbac);
	return r;
}

/* ---- YAML --------------------------------------------------------------- */

/* Appends TEXT as a scalar read as a string by every reader; quotes words with another meaning in
 * YAML 1.1 (yes, 1e3). */
static void rbac_put(struct buf *out, const char *text)
{
	size_t size = strlen(text);
	bool word = size && strspn(text, LOWER DIGITS "-.") == size && strchr(LOWER, text[0]) &&
		    yaml_string_style(bytes_str(text), false) == YAML_STYLE_WORD;

	if (word)
		buf_str(out, text);
	else
		json_write_string(bytes_str(text), out);
}

/* Appends "key: text". */
static void rbac_put_key(struct buf *out, const char *key, const char *text)
{
	buf_str(out, key);
	buf_str(out, ": ");
	rbac_put(out, text);
	buf_byte(out, '\n');
}

static void rbac_put_head(struct buf *out, const char *kind, const char *name, const char *in)
{
	buf_printf(out, "%sapiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata:\n",
		out->size ? "---\n" : "", kind);
	rbac_put_key(out, "  name", name);
	if (*in)
		rbac_put_key(out, "  namespace", in);
}

static void rbac_put_binding(struct buf *out, const struct rbac_args *args, const char *name,
	const char *role, const char *in)
{
	rbac_put_head(out, *in ? "RoleBinding" : "ClusterRoleBinding", name, in);
	buf_printf(out, "roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: %s\n",
		*in ? "Role" : "ClusterRole");
	rbac_put_key(out, "  name", role);
	buf_str(out, "subjects:\n");
	if (args->user || args->group) {
		if (args->user)
			rbac_put_key(out,
				"- apiGroup: rbac.authorization.k8s.io\n  kind: User\n  name",
				args->user);
		if (args->group)
			rbac_put_key(out,
				"- apiGroup: rbac.authorization.k8s.io\n  kind: Group\n  name",
				args->group);
		return;
	}
	rbac_put_key(out, "- kind: ServiceAccount\n  name", args->account ? args->account : "kinf");
	rbac_put_key(out, "  namespace", args->namespace_ ? args->namespace_ : "kinf-system");
}

/* Appends one rule for N rows, differing only in their resources. */
static void rbac_put_rule(struct buf *out, const struct rbac_rule *rules, size_t n)
{
	bool every = strcmp(rules->resource, "*") == 0, selects = false;

	for (size_t i = 0; i < n; i++)
		selects |= rules[i].selects;
	if (selects)
		buf_str(out, "# All objects: a rule can't have the selectors of the feeds.\n");
	if (every)
		buf_str(out, "# Without get, which would also allow exec in pods and the proxies "
			     "of nodes.\n");
	if (rules->excludes)
		buf_str(out, "# All resources: a rule can't leave out those in 'exclude'.\n");
	buf_str(out, "- apiGroups: [");
	rbac_put(out, rules->group);
	buf_str(out, "]\n  resources: [");
	for (size_t i = 0; i < n; i++) {
		buf_str(out, i ? ", " : "");
		rbac_put(out, rules[i].resource);
	}
	if (*rules->object) {
		buf_str(out, "]\n  resourceNames: [");
		rbac_put(out, rules->object);
	}
	buf_str(out, every ? "]\n  verbs: [list, watch]\n" : "]\n  verbs: [get, list, watch]\n");
}

/* Appends the rules of row I's namespace from there on. Returns the row after them. */
static size_t rbac_put_rules(struct buf *out, const struct rbac *rbac, size_t i)
{
	const char *in = rbac->rules[i].in;

	while (i < rbac->n && strcmp(rbac->rules[i].in, in) == 0) {
		const struct rbac_rule *first = &rbac->rules[i];
		size_t n = 1;

		/* A rule of everything has other verbs. */
		while (i + n < rbac->n && strcmp(first->resource, "*") != 0 &&
			!strcmp(first[n].in, in) && !strcmp(first[n].group, first->group) &&
			!strcmp(first[n].object, first->object))
			n++;
		rbac_put_rule(out, first, n);
		i += n;
	}
	return i;
}

/* Appends the right to read OBJECT (NULL: any) of a resource unless a rule gives it. */
static void rbac_put_get(
	struct buf *out, const struct rbac *rbac, const struct rbac_rule *wanted, const char *why)
{
	for (size_t i = 0; i < rbac->n; i++)
		if (rbac_is_covered(wanted, &rbac->rules[i]))
			return;
	buf_printf(out, "# %s\n- apiGroups: [", why);
	rbac_put(out, wanted->group);
	buf_printf(out, "]\n  resources: [%s]\n", wanted->resource);
	if (*wanted->object)
		buf_printf(out, "  resourceNames: [%s]\n", wanted->object);
	buf_str(out, "  verbs: [get]\n");
}

static void rbac_put_cluster(
	struct buf *out, const struct rbac *rbac, const char *name, size_t *ret_next)
{
	static const struct rbac_rule identity = {
		.resource = "namespaces", .object = "kube-system"};
	static const struct rbac_rule columns = {
		.group = "apiextensions.k8s.io", .resource = "customresourcedefinitions"};

	*ret_next = 0;
	rbac_put_head(out, "ClusterRole", name, "");
	buf_str(out, "rules:\n");
	if (rbac->n && !*rbac->rules[0].in)
		*ret_next = rbac_put_rules(out, rbac, 0);
	rbac_put_get(out, rbac, &identity, "Its uid identifies the cluster.");
	if (rbac->custom)
		rbac_put_get(out, rbac, &columns, "The columns of custom resources.");
}

int rbac_write(const struct config *config, const struct rbac_args *args,
	struct kinf_snapshot *snapshot, struct buf *out)
{
	CLEANUP(rbac_release) struct rbac rbac = {.rules = NULL};
	const struct config_serve *serve = &config->serve;
	const char *name = args->name ? args->name : "kinf";
	size_t next;
	int r = rbac_collect(&rbac, config, snapshot);

	if (r < 0)
		return r;
	rbac_put_cluster(out, &rbac, name, &next);
	rbac_put_binding(out, args, name, name, "");
	while (next < rbac.n) {
		const char *in = rbac.rules[next].in;

		rbac_put_head(out, "Role", name, in);
		buf_str(out, "rules:\n");
		next = rbac_put_rules(out, &rbac, next);
		rbac_put_binding(out, args, name, name, in);
	}
	if (serve->enabled && serve->auth == CONFIG_AUTH_REVIEW && !serve->review_token_file &&
		!serve->review_certificate) {
		CLEANUP(buf_release) struct buf reviews = BUF_INIT;

		buf_printf(&reviews, "%s-reviews", name);
		rbac_put_binding(out, args, buf_cstr(&reviews), "system:auth-delegator", "");
	}
	return buf_error(out);
}
