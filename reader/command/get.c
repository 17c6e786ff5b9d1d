/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf get FEED [NAME...] | FEED/NAME...
 *
 * One snapshot serves everything that is printed. Objects come either by their names, or from one
 * list with selectors, an order and pages; kubectl forbids to mix the two, and so does this
 * command.
 */
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

#define AT(field) offsetof(struct get_args, field)

static const struct option_spec get_options[] = {
	{'o', "output", OPTION_TEXT, AT(output), "FORMAT",
		"table, wide, json, yaml, name, count, custom-columns=HEAD:PATH,... or "
		"jsonpath=TEMPLATE"},
	{0, "sort-by", OPTION_TEXT, AT(sort_by), "PATH",
		"in the order of this field, as kubectl's; quick with an index and --limit"},
	{0, "limit", OPTION_NUMBER, AT(limit), "N",
		"at most N objects; the page ends with a token"},
	{0, "continue", OPTION_TEXT, AT(continue_token), "TOKEN",
		"go on where the page with this token ended"},
	{0, "at-least-rv", OPTION_TEXT, AT(at_least_rv), "RV",
		"wait until the cache holds this resourceVersion"},
	{0, "timeout", OPTION_DURATION, AT(timeout_ns), "D", "for --at-least-rv; default 10s"},
	{0, "max-staleness", OPTION_DURATION, AT(max_stale_ns), "D",
		"fail if the last contact with the API server was longer ago; bookmarks come about "
		"once a "
		"minute, so values below 90s suit busy feeds only"},
	{0, "explain", OPTION_FLAG, AT(explain), NULL, "say on stderr how the objects were found"},
};

struct get {
	struct get_args args;
	const char *feed;
	char **names;
	size_t n_names;
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
	struct kinf_feed_info info; /* of the first feed that the name stands for */
	struct print print;
};

static int get_again(const struct get *get)
{
	return command_fail_again(get->kinf, get->snapshot, get->feed, get->args.query.namespace_);
}

/* ---- by name --------------------------------------------------------------------------------- */

static int get_not_found(const struct get *get, const char *in, const char *name)
{
	(void)fprintf(stderr, "Error: %s \"%s%s%s\" not found\n", get->info.resource, in ? in : "",
		in ? "/" : "", name);
	return PROC_FAILED;
}

static int get_by_key(struct get *get, const char *namespace_, const char *name)
{
	struct kinf_object object;
	int r = kinf_get(get->snapshot, get->feed, namespace_, name, &object);

	if (r < 0)
		return command_fail_kinf(get->kinf);
	if (r == KINF_AGAIN)
		return get_again(get);
	if (r == KINF_NOT_FOUND)
		return get_not_found(get, namespace_, name);
	r = print_object(&get->print, &object);
	return r < 0 ? command_fail(r) : PROC_OK;
}

/* Finds the next object of exactly this name in a list of those whose names begin with it. */
static int get_next_named(
	struct kinf_listing *list, const char *name, struct kinf_object *ret_object)
{
	size_t size = strlen(name);
	int r;

	while ((r = kinf_list_next(list, ret_object)) == KINF_FOUND)
		if (ret_object->key_size > size &&
			ret_object->key[ret_object->key_size - size - 1] == '/')
			break;
	return r;
}

/* Prints the object NAME of each namespace. */
static int get_in_all(struct get *get, const char *name)
{
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	struct kinf_query query = {.size = sizeof(query), .feed = get->feed, .prefix = name};
	struct kinf_object object;
	size_t found = 0;
	int r = kinf_list(get->snapshot, &query, &list);

	while (r == KINF_FOUND && (r = get_next_named(list, name, &object)) == KINF_FOUND) {
		found++;
		r = print_object(&get->print, &object);
		if (r < 0)
			return command_fail(r);
	}
	if (r < 0)
		return command_fail_kinf(get->kinf);
	if (r == KINF_AGAIN)
		return get_again(get);
	return found ? PROC_OK : get_not_found(get, NULL, name);
}

/* Returns whether NAME lacks the namespace that it needs. */
static bool get_is_bare(const struct get *get, const char *name)
{
	return get->info.namespaced && !get->args.query.namespace_ && !strchr(name, '/');
}

/* Returns whether exactly one object is asked for. JSON and YAML then print it without a List
 * around it. */
static bool get_is_single(struct get *get)
{
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	const char *name = get->names[0];
	struct kinf_query query = {.size = sizeof(query), .feed = get->feed, .prefix = name};
	struct kinf_object object;
	size_t found = 0;

	if (get->n_names != 1)
		return false;
	if (!get_is_bare(get, name) || kinf_list(get->snapshot, &query, &list) != 0)
		return true;
	while (found < 2 && get_next_named(list, name, &object) == KINF_FOUND)
		found++;
	return found < 2;
}

static int get_all_named(struct get *get)
{
	int status = PROC_OK;

	for (size_t i = 0; i < get->n_names; i++) {
		char *name = get->names[i], *slash = strchr(name, '/');
		int one;

		if (slash && get->info.namespaced) {
			*slash = '\0';
			one = get_by_key(get, name, slash + 1);
			*slash = '/';
		} else if (get_is_bare(get, name)) {
			one = get_in_all(get, name);
		} else {
			one = get_by_key(get, get->args.query.namespace_, name);
		}
		if (one != PROC_OK)
			status = one;
	}
	/* If nothing was found, not even an empty List is printed. */
	if (get->print.count == 0 && status != PROC_OK)
		return status;
	int r = print_end(&get->print, get->info.resource_version, NULL);
	return r < 0 ? command_fail(r) : status;
}

/* ---- by query -------------------------------------------------------------------------------- */

static int get_list(struct get *get, const struct kinf_query *query)
{
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	const char *in = get->args.query.namespace_;
	enum print_format format = get->print.format;
	struct kinf_object object;
	int r = kinf_list(get->snapshot, query, &list);

	if (r < 0)
		return command_fail_kinf(get->kinf);
	if (r == KINF_AGAIN)
		return get_again(get);
	if (r == KINF_GONE) {
		(void)fprintf(stderr,
			"Error: the continue token is older than the history that the store keeps; "
			"list again without it (a larger 'retention' in kinf.yaml keeps tokens "
			"valid for longer)\n");
		return PROC_FAILED;
	}
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
	if (!get->print.count && (format <= PRINT_WIDE || format == PRINT_CUSTOM_COLUMNS))
		(void)fprintf(stderr, "No resources found%s%s%s.\n", in ? " in " : "", in ? in : "",
			in ? " namespace" : "");
	return PROC_OK;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Opens the snapshot, after the wait of --at-least-rv. Returns below 0 after it printed an
 * error. */
static int get_open(struct get *get, const struct config_flags *flags)
{
	int r = command_open(flags, &get->kinf), waited = 0;

	if (r < 0)
		return r;
	if (get->args.at_least_rv)
		waited = kinf_wait_rv(get->kinf, get->feed, get->args.at_least_rv,
			(int)(get->args.timeout_ns / 1000000));
	if (waited < 0)
		(void)command_fail_feed(get->kinf, get->feed, waited);
	if (waited < 0 && waited != KINF_TIMEOUT)
		return waited;
	r = command_snapshot(get->kinf, &get->snapshot);
	if (r < 0)
		return r;
	r = command_first_feed(get->snapshot, get->feed, &get->info);
	if (r < 0) {
		(void)command_fail_feed(get->kinf, get->feed, r);
		return r;
	}
	/* After a timeout the note gives the reason, for instance a reflector that does not run. */
	r = command_note_state(get->snapshot, get->feed, waited < 0 ? 0 : get->args.max_stale_ns);
	return waited < 0 ? waited : r;
}

static void get_release(struct get *get)
{
	print_release(&get->print);
	kinf_snapshot_close(&get->snapshot);
	kinf_close(&get->kinf);
	option_texts_release(&get->args.query.index);
}

/* Reads FEED NAME... or, as -o name prints them, FEED/NAME.... Refuses options that names would make
 * meaningless, as kubectl does. */
static int get_operands(struct get *get, char **operands, size_t n)
{
	const struct get_args *args = &get->args;
	const struct query_args *query = &args->query;
	const char *in = query->namespace_;
	char *slash = strchr(operands[0], '/');
	size_t skip = slash ? (size_t)(slash - operands[0]) + 1 : 0;

	get->feed = operands[0];
	get->names = slash ? operands : operands + 1;
	get->n_names = slash ? n : n - 1;
	for (size_t i = n; slash && i-- > 0;) {
		if (strncmp(operands[i], operands[0], skip) != 0)
			return err_say(ERR_SYNTAX, "'%s' and '%s': one feed at a time", operands[0],
				operands[i]);
		if (i > 0)
			operands[i] += skip;
	}
	if (slash) {
		*slash = '\0';
		operands[0] = slash + 1;
	}
	if (get->n_names && (query->labels || query->fields || query->prefix || query->index.n ||
		args->limit || args->sort_by || args->continue_token))
		return err_say(ERR_SYNTAX, "names are given: -l, --field-selector, --index, "
					   "--prefix, --sort-by, --limit and "
					   "--continue can't be used with them");
	for (size_t i = 0; i < get->n_names; i++) {
		const char *name = get->names[i], *end = strchr(name, '/');

		if (!*name)
			return err_say(ERR_SYNTAX, "a name is empty");
		if (in && end && (strlen(in) != (size_t)(end - name) ||
					 strncmp(in, name, strlen(in)) != 0))
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
		query_options(&get.args.query),
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
	if (!terms)
		return command_fail(err_set(-ENOMEM, "allocating the terms of --index"));
	r = get_operands(&get, argv + first, (size_t)(argc - first));
	if (r == 0)
		r = query_from_args(&get.args.query, get.feed, terms, &query);
	if (r == 0)
		r = print_choose(&get.print, get.args.output);
	if (r < 0)
		return command_usage(&options, r);
	query.sort_by = get.args.sort_by;
	query.limit = get.args.limit;
	query.continue_token = get.args.continue_token;
	if (get_open(&get, &flags) < 0)
		return PROC_FAILED;
	r = print_begin(&get.print, get_is_single(&get), &get.info);
	if (r < 0)
		return command_fail(r);
	return get.n_names ? get_all_named(&get) : get_list(&get, &query);
}
