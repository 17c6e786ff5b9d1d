/* SPDX-License-Identifier: Apache-2.0 */
/* kinf get FEED [NAME...] | FEED/NAME... */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "reader/command/command.h"
#include "reader/command/print.h"

struct get_args {
	struct query_args query;
	const char *output, *sort_by, *continue_token, *at_least_rv;
	uint64_t limit, timeout_ns, max_stale_ns;
	bool explain;
};

static const struct option_spec get_options[] = {
	{'o', "output", OPTION_TEXT, offsetof(struct get_args, output), "FORMAT",
		"table, wide, json, yaml, name, count, custom-columns=HEAD:PATH,... or jsonpath=TEMPLATE"},
	{0, "sort-by", OPTION_TEXT, offsetof(struct get_args, sort_by), "PATH",
		"in the order of this field, as kubectl's; quick with an index and --limit"},
	{0, "limit", OPTION_NUMBER, offsetof(struct get_args, limit), "N",
		"at most N objects; the page ends with a token"},
	{0, "continue", OPTION_TEXT, offsetof(struct get_args, continue_token), "TOKEN",
		"go on where the page with this token ended"},
	{0, "at-least-rv", OPTION_TEXT, offsetof(struct get_args, at_least_rv), "RV",
		"wait until the cache holds this resourceVersion"},
	{0, "timeout", OPTION_DURATION, offsetof(struct get_args, timeout_ns), "D",
		"for --at-least-rv; default 10s"},
	{0, "max-staleness", OPTION_DURATION, offsetof(struct get_args, max_stale_ns), "D",
		"fail when not live and the last contact with the API server is longer ago, or unknown"},
	{0, "explain", OPTION_FLAG, offsetof(struct get_args, explain), NULL,
		"say on stderr how the objects were found"},
};

struct get {
	struct get_args args;
	const char *feed;
	char **names;
	size_t n_names;
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
	struct kinf_feed_info status;   /* of the first feed behind the name */
	struct kinf_feed_info unlisted; /* of the first that has never been listed; size 0: none */
	struct print print;
};

static int take_status(void *arg, const struct kinf_feed_info *status)
{
	struct get *get = arg;
	const char *wanted = get->args.query.namespace_;

	if (!get->status.size)
		get->status = *status;
	if (!status->synced && !get->unlisted.size &&
		(!wanted || !*status->namespace_ || strcmp(wanted, status->namespace_) == 0))
		get->unlisted = *status;
	return 0;
}

/* What was asked for is not known yet. */
static int say_again(const struct get *get)
{
	const struct kinf_feed_info *feed = &get->unlisted;
	const char *in = feed->namespace_;

	if (!feed->size)
		(void)fprintf(stderr, "Error: %s: an index is still being filled; try again\n",
			get->feed);
	else
		(void)fprintf(stderr,
			"Error: %s%s%s is still being listed (%llu objects so far%s%s)%s%s; wait with "
			"'kinf wait %s'\n",
			get->feed, *in ? " in " : "", in, (unsigned long long)feed->list_done,
			strcmp(feed->state, "listing") ? ", " : "",
			strcmp(feed->state, "listing") ? feed->state : "",
			feed->last_error[0] ? ": " : "", feed->last_error, get->feed);
	return PROC_FAILED;
}

/* ---- by name ---- */

static int not_found(const struct get *get, const char *in, const char *name)
{
	(void)fprintf(stderr, "Error: %s \"%s%s%s\" not found\n", get->status.resource, in ? in : "",
		in ? "/" : "", name);
	return PROC_FAILED;
}

/* NAME may be written namespace/name. */
static int get_by_key(struct get *get, const char *namespace_, const char *name)
{
	struct kinf_object object;
	int r = kinf_get(get->snapshot, get->feed, namespace_, name, &object);

	if (r < 0)
		return command_fail_kinf(get->kinf);
	if (r == KINF_AGAIN)
		return say_again(get);
	if (r == KINF_NOT_FOUND)
		return not_found(get, namespace_, name);
	r = print_object(&get->print, &object);
	return r < 0 ? command_fail(r) : PROC_OK;
}

static int list_begin(struct get *get, const char *name, struct kinf_listing **ret_list)
{
	struct kinf_query query = {.size = sizeof(query), .feed = get->feed, .prefix = name};

	return kinf_list(get->snapshot, &query, ret_list);
}

/* Next object of exactly this name, in whatever namespace. */
static int list_name(struct kinf_listing *list, const char *name, struct kinf_object *ret_object)
{
	size_t size = strlen(name);
	int r;

	while ((r = kinf_list_next(list, ret_object)) == KINF_FOUND)
		if (ret_object->key_size > size &&
			ret_object->key[ret_object->key_size - size - 1] == '/')
			return KINF_FOUND; /* the list's prefix has compared the rest */
	return r;
}

/* Without a namespace: every namespace's object of this name. */
static int get_in_all(struct get *get, const char *name)
{
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	struct kinf_object object;
	size_t found = 0;
	int r = list_begin(get, name, &list);

	while (r == KINF_FOUND && (r = list_name(list, name, &object)) == KINF_FOUND) {
		found++;
		r = print_object(&get->print, &object);
		if (r < 0)
			return command_fail(r);
	}
	if (r < 0)
		return command_fail_kinf(get->kinf);
	if (r == KINF_AGAIN)
		return say_again(get);
	return found ? PROC_OK : not_found(get, NULL, name);
}

/* A name without its namespace. */
static bool is_bare(const struct get *get, const char *name)
{
	return get->status.namespaced && !get->args.query.namespace_ && !strchr(name, '/');
}

/* The one name given stands for more than one object: they come as a List then. */
static bool names_several(struct get *get)
{
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	struct kinf_object object;
	size_t found = 0;

	if (!is_bare(get, get->names[0]) || list_begin(get, get->names[0], &list) != 0)
		return false;
	while (found < 2 && list_name(list, get->names[0], &object) == KINF_FOUND)
		found++;
	return found > 1;
}

static int get_named(struct get *get, char *name)
{
	char *slash = strchr(name, '/');

	if (slash && get->status.namespaced) {
		*slash = '\0';
		int status = get_by_key(get, name, slash + 1);
		*slash = '/';
		return status;
	}
	if (is_bare(get, name))
		return get_in_all(get, name);
	return get_by_key(get, get->args.query.namespace_, name);
}

static int get_all_named(struct get *get)
{
	int status = PROC_OK;

	for (size_t i = 0; i < get->n_names; i++) {
		int one = get_named(get, get->names[i]);

		if (one != PROC_OK)
			status = one;
	}
	/* Of one name that is not there, nothing is printed at all. */
	if (get->print.count == 0 && status != PROC_OK)
		return status;
	int r = print_end(&get->print, get->status.resource_version, NULL);
	return r < 0 ? command_fail(r) : status;
}

/* ---- by query ---- */

static void say_empty(const struct get *get)
{
	const char *in = get->args.query.namespace_;

	enum print_format format = get->print.format;

	if (get->print.count || (format > PRINT_WIDE && format != PRINT_CUSTOM_COLUMNS))
		return;
	(void)fprintf(stderr, "No resources found%s%s%s.\n", in ? " in " : "", in ? in : "",
		in ? " namespace" : "");
}

static int say_gone(void)
{
	(void)fprintf(stderr,
		"Error: the continue token is older than the history that is kept (retention); list "
		"again without it\n");
	return PROC_FAILED;
}

static int get_list(struct get *get, const struct kinf_query *query)
{
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	struct kinf_object object;
	int r = kinf_list(get->snapshot, query, &list);

	if (r < 0)
		return command_fail_kinf(get->kinf);
	if (r == KINF_AGAIN)
		return say_again(get);
	if (r == KINF_GONE)
		return say_gone();
	while ((r = kinf_list_next(list, &object)) == KINF_FOUND) {
		r = print_object(&get->print, &object);
		if (r < 0)
			return command_fail(r);
	}
	if (r < 0)
		return command_fail_kinf(get->kinf);
	if (get->args.explain)
		(void)fprintf(stderr, "plan: %s\n", kinf_list_plan(list));
	r = print_end(&get->print, kinf_list_resource_version(list), kinf_list_continue(list));
	if (r < 0)
		return command_fail(r);
	say_empty(get);
	return PROC_OK;
}

/* ---- the command ---- */

static int get_open(struct get *get, const struct config_flags *flags)
{
	int r = command_open(flags, &get->kinf);

	if (r < 0)
		return r;
	if (get->args.at_least_rv) {
		r = kinf_wait_rv(get->kinf, get->feed, get->args.at_least_rv,
			(int)(get->args.timeout_ns / 1000000));
		if (r < 0) {
			(void)command_fail_kinf(get->kinf);
			return r;
		}
	}
	r = command_snapshot(get->kinf, &get->snapshot);
	if (r < 0)
		return r;
	r = kinf_feed_status(get->snapshot, get->feed, take_status, get);
	if (r < 0) {
		(void)command_fail_kinf(get->kinf);
		return r;
	}
	return command_note_state(get->snapshot, get->feed, get->args.max_stale_ns);
}

static int get_run(struct get *get, const struct config_flags *flags,
	const struct kinf_query *query)
{
	if (get_open(get, flags) < 0)
		return PROC_FAILED;
	int r = print_begin(&get->print, get->n_names == 1 && !names_several(get), &get->status);
	if (r < 0)
		return command_fail(r);
	return get->n_names ? get_all_named(get) : get_list(get, query);
}

static void get_release(struct get *get)
{
	print_release(&get->print);
	kinf_snapshot_close(&get->snapshot);
	kinf_close(&get->kinf);
	query_args_release(&get->args.query);
}

/* FEED NAME... or, as -o name prints them, FEED/NAME... */
static int take_operands(struct get *get, char **operands, size_t n)
{
	char *slash = strchr(operands[0], '/');

	get->feed = operands[0];
	get->names = operands + 1;
	get->n_names = n - 1;
	if (!slash)
		return 0;
	size_t size = (size_t)(slash - operands[0]) + 1;
	get->names = operands;
	get->n_names = n;
	for (size_t i = n; i-- > 0;) {
		if (strncmp(operands[i], operands[0], size) != 0)
			return err_say(ERR_SYNTAX, "'%s' and '%s': one feed at a time", operands[0],
				operands[i]);
		if (i > 0)
			operands[i] += size;
	}
	*slash = '\0';
	operands[0] = slash + 1;
	return 0;
}

/* As kubectl: names say it all, and nothing that was asked for is passed over in silence. */
static int check_names(const struct get *get)
{
	const struct get_args *args = &get->args;
	const struct query_args *query = &args->query;

	if (get->n_names == 0)
		return 0;
	if (query->labels || query->fields || query->prefix || query->index.n || args->limit ||
		args->sort_by || args->continue_token)
		return err_say(ERR_SYNTAX,
			"names are given: -l, --field-selector, --index, --prefix, --sort-by, --limit "
			"and --continue are not for them");
	for (size_t i = 0; i < get->n_names; i++) {
		const char *name = get->names[i], *slash = strchr(name, '/');
		const char *in = query->namespace_;

		if (!*name)
			return err_say(ERR_SYNTAX, "an empty name");
		if (in && slash &&
			(strlen(in) != (size_t)(slash - name) || strncmp(in, name, strlen(in)) != 0))
			return err_say(ERR_SYNTAX, "'%s' is not in the namespace '%s'", name, in);
	}
	return 0;
}

int command_get(int argc, char **argv)
{
	CLEANUP(get_release) struct get get = {.args = {.timeout_ns = UINT64_C(10000000000)}};
	struct config_flags flags = {0};
	struct kinf_query query;
	int first;
	const struct options_group groups[] = {
		{"Which", query_options, n_query_options, &get.args.query},
		{"Options", get_options, ARRAY_SIZE(get_options), &get.args},
		config_common_options(&flags),
	};
	const struct options options = {"kinf get", "FEED [NAME...] | FEED/NAME...",
		"Prints objects of the cache, in the order of their keys.", groups,
		ARRAY_SIZE(groups), false};
	int r = options_parse(&options, argc, argv, &first);

	if (r == 0 && first == argc)
		r = options_bad(&options, "which feed? 'kinf status' lists them");
	if (r != 0)
		return command_usage(&options, r);
	AUTO_FREE struct kinf_term *terms = calloc(get.args.query.index.n + 1, sizeof(*terms));
	r = take_operands(&get, argv + first, (size_t)(argc - first));
	if (r == 0)
		r = check_names(&get);
	if (r == 0)
		r = terms ? query_from_args(&get.args.query, get.feed, terms, &query) : -ENOMEM;
	if (r == 0)
		r = print_choose(&get.print, get.args.output);
	if (r < 0)
		return command_usage(&options, r);
	query.sort_by = get.args.sort_by;
	query.limit = get.args.limit;
	query.continue_token = get.args.continue_token;
	return get_run(&get, &flags, &query);
}
