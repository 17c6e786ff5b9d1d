/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf get FEED[,FEED...] [NAME...] | FEED/NAME... | CATEGORY
 *
 * One snapshot serves the whole output. Objects come either by name, or from one list for each feed
 * with selectors, an order and pages; as in kubectl the two do not mix.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/command.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "print/print.h"
#include "reader/handle.h"

struct get_args {
	struct query_args query;
	const char *output, *sort_by, *continue_token, *at_least_rv, *at;
	uint64_t limit, timeout_ns, max_stale_ns;
	bool explain, watch, ignore_not_found, managed_fields, server_order;
};

#define UNSET        UINT64_MAX
#define WAIT_DEFAULT UINT64_C(10000000000)

#define AT(field) offsetof(struct get_args, field)

static const struct option_spec get_options[] = {
	{'o', "output", OPTION_TEXT, AT(output), "FORMAT", PRINT_FORMATS_TEXT, PRINT_FORMATS_WORDS},
	{0, "sort-by", OPTION_TEXT, AT(sort_by), "PATH",
		"in the order of this field, as kubectl's; quick with an index and --limit"},
	{0, "limit", OPTION_NUMBER, AT(limit), "N",
		"at most N objects; the page ends with a token"},
	{0, "continue", OPTION_TEXT, AT(continue_token), "TOKEN",
		"go on where the page with this token ended; feed, selection and order have to be "
		"the same"},
	{0, "at-least-rv", OPTION_TEXT, AT(at_least_rv), "RV",
		"wait until the cache holds this resourceVersion"},
	{0, "timeout", OPTION_DURATION, AT(timeout_ns), "D", "for --at-least-rv; default 10s"},
	{0, "max-staleness", OPTION_DURATION, AT(max_stale_ns), "D",
		"fail if the last contact with the API server was longer ago; bookmarks come about "
		"once a minute, so values below 90s suit busy feeds only"},
	COMMAND_AT(AT(at)),
	{0, "ignore-not-found", OPTION_FLAG, AT(ignore_not_found), NULL,
		"names that do not exist are no failure"},
	{0, "show-managed-fields", OPTION_FLAG, AT(managed_fields), NULL,
		"json and yaml: print metadata.managedFields also, if the feed keeps them"},
	{0, "server-order", OPTION_FLAG, AT(server_order), NULL,
		"json and yaml: keys and numbers as the API server sent them; without it as "
		"kubectl prints them"},
	{0, "explain", OPTION_FLAG, AT(explain), NULL,
		"say on stderr how the objects were found, and which index would have helped; -v "
		"does also"},
	{'w', "watch", OPTION_FLAG, AT(watch), NULL,
		"print changes also: the options are those of 'kinf watch'"},
	{0, "watch-only", OPTION_FLAG, AT(watch), NULL, "print changes only"},
};

struct get {
	struct get_args args;
	struct command_view view;
	struct targets targets;
	struct print print;
};

/* Prints why a read of TARGET returned CODE. Returns the exit status. */
static int get_fail(const struct get *get, const struct target *target, int code)
{
	if (code == KINF_GONE && get->args.continue_token) {
		(void)fprintf(stderr,
			"Error: the continue token is older than the history of the store; list "
			"again without it (a larger 'retention' in kinf.yaml keeps tokens valid "
			"for longer)\n");
		return PROC_FAILED;
	}
	return command_fail_read(get->view.kinf, target->feed, code);
}

/* ---- by name ------------------------------------------------------------ */

static int get_not_found(
	const struct get *get, const struct target *target, const char *in, const char *name)
{
	return get->args.ignore_not_found ? PROC_OK : command_not_found(&target->info, in, name);
}

static int get_by_key(
	struct get *get, const struct target *target, const char *namespace_, const char *name)
{
	struct kinf_object object;
	int r = kinf_get(get->view.snapshot, target->feed, namespace_, name, &object);

	if (r == KINF_NOT_FOUND)
		return get_not_found(get, target, namespace_, name);
	if (r != KINF_FOUND)
		return get_fail(get, target, r);
	r = print_object(&get->print, &object);
	return r < 0 ? command_fail(r) : PROC_OK;
}

/* Returns true if NAME lacks its namespace. */
static bool get_is_bare(const struct get *get, const struct target *target, const char *name)
{
	return target->info.namespaced && !get->args.query.namespace_ && !strchr(name, '/');
}

/* Returns true if exactly one object is asked for: JSON and YAML then have no List around it. */
static bool get_is_single(struct get *get)
{
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	const struct target *target = &get->targets.items[0];
	const char *name = target->n_names ? target->names[0] : NULL;
	const struct kinf_query query = {
		.size = sizeof(query), .feed = target->feed, .prefix = name};
	struct kinf_object object;
	size_t found = 0;

	if (get->targets.n != 1 || target->n_names != 1)
		return false;
	if (!get_is_bare(get, target, name) || kinf_list(get->view.snapshot, &query, &list) != 0)
		return true;
	while (found < 2 && kinf_list_next(list, &object) == KINF_FOUND)
		found += bytes_equal(print_name(&object), bytes_str(name));
	return found < 2;
}

/* Prints the objects of N names from one list, in the order of --sort-by; without a namespace those
 * of each. */
static int get_listed(struct get *get, const struct target *target, char *const *names, size_t n)
{
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	AUTO_FREE bool *found = calloc(n, sizeof(*found));
	const char *in = target->info.namespaced ? get->args.query.namespace_ : NULL;
	const char *slash = strchr(names[0], '/');
	const struct kinf_query query = {.size = sizeof(query),
		.feed = target->feed,
		.namespace_ = in,
		.prefix = n > 1   ? NULL
			  : slash ? slash + 1
				  : names[0],
		.sort_by = get->args.sort_by};
	struct kinf_object object;
	int status = PROC_OK;

	if (!found)
		return command_fail(err_set(-ENOMEM, "the names"));
	int r = kinf_list(get->view.snapshot, &query, &list);
	while (r == KINF_FOUND && (r = kinf_list_next(list, &object)) == KINF_FOUND) {
		for (size_t i = 0; i < n; i++) { /* a name may have its namespace */
			if (!bytes_equal(strchr(names[i], '/') ? BYTES(object.key, object.key_size)
							       : print_name(&object),
				    bytes_str(names[i])))
				continue;
			found[i] = true;
			int printed = print_object(&get->print, &object);
			if (printed < 0)
				return command_fail(printed);
		}
	}
	if (r != KINF_END)
		return get_fail(get, target, r);
	for (size_t i = 0; i < n; i++)
		if (!found[i] && get_not_found(get, target, strchr(names[i], '/') ? NULL : in,
					 names[i]) != PROC_OK)
			status = PROC_FAILED;
	return status;
}

static int get_all_named(struct get *get, const struct target *target)
{
	int status = PROC_OK;

	if (get->args.sort_by)
		return get_listed(get, target, target->names, target->n_names);
	for (size_t i = 0; i < target->n_names; i++) {
		char *name = target->names[i], *slash = strchr(name, '/');
		int one;

		if (slash && target->info.namespaced) {
			*slash = '\0';
			one = get_by_key(get, target, name, slash + 1);
			*slash = '/';
		} else if (get_is_bare(get, target, name)) {
			one = get_listed(get, target, &name, 1);
		} else {
			one = get_by_key(get, target,
				target->info.namespaced ? get->args.query.namespace_ : NULL, name);
		}
		if (one != PROC_OK)
			status = one;
	}
	return status;
}

/* ---- by query ----------------------------------------------------------- */

/* Prints the objects of QUERY in one feed. Sets *RET_LIST, with the RV and the token. */
static int get_list(struct get *get, const struct target *target, struct kinf_query query,
	struct kinf_listing **ret_list)
{
	const struct get_args *args = &get->args;
	struct kinf_object object;

	query.feed = target->feed;
	query.sort_by = args->sort_by;
	/* the API server's order of the kind, if the query leaves it open */
	if (get->print.format <= PRINT_WIDE && !args->sort_by && !args->limit &&
		!args->continue_token)
		query.sort_by = printer_order(get->print.object_table.printer);
	int r = kinf_list(get->view.snapshot, &query, ret_list);
	if (r != 0)
		return get_fail(get, target, r);
	while ((r = kinf_list_next(*ret_list, &object)) == KINF_FOUND || r == KINF_CORRUPT) {
		if (r == KINF_CORRUPT) { /* the others are shown, and the status is 1 */
			command_saw_damage = true;
			(void)command_fail_read(get->view.kinf, target->feed, 0);
			continue;
		}
		r = print_object(&get->print, &object);
		if (r < 0)
			return command_fail(r);
	}
	if (r < 0)
		return command_fail_read(get->view.kinf, target->feed, r);
	if (!get->args.explain)
		return PROC_OK;
	const char *advice = list_advice(*ret_list);
	(void)fprintf(stderr, "plan: %s\n", kinf_list_plan(*ret_list));
	if (*advice)
		(void)fprintf(stderr, "hint: %s\n", advice);
	return PROC_OK;
}

/* Prints each feed's part. An unreadable feed does not stop the others. */
static int get_print(struct get *get, const struct kinf_query *query)
{
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	const char *in = get->args.query.namespace_, *rv = "", *token = NULL;
	enum print_format format = get->print.format;
	int status = PROC_OK;
	bool names = false;
	int r = print_begin(&get->print, get_is_single(get));

	for (size_t i = 0; r == 0 && i < get->targets.n; i++) {
		const struct target *target = &get->targets.items[i];

		r = print_feed(&get->print, get->view.snapshot, &target->info);
		if (r < 0)
			break;
		kinf_list_close(&list);
		names |= target->n_names > 0;
		int one = target->n_names ? get_all_named(get, target)
					  : get_list(get, target, *query, &list);
		if (one != PROC_OK)
			status = one;
	}
	if (r < 0)
		return command_fail(r);
	/* Without any object not even an empty List is printed. */
	if (status != PROC_OK && (get->print.count == 0 || (get->targets.n == 1 && !names)))
		return status;
	if (!get->print.count && get->args.ignore_not_found && format != PRINT_COUNT)
		return status;
	if (get->targets.n == 1 && list) {
		rv = kinf_list_resource_version(list);
		token = kinf_list_continue(list);
	} else if (get->targets.n == 1 && !get->view.when.event) {
		rv = get->targets.items[0].info.resource_version;
	}
	r = print_end(&get->print, rv, token);
	if (r < 0)
		return command_fail(r);
	if (get->targets.n == 1 && !get->targets.items[0].info.namespaced)
		in = NULL; /* it selects nothing there */
	if (!names && !get->print.count && format <= PRINT_WIDE)
		(void)fprintf(stderr,
			in ? "No resources found in %s namespace.\n" : "No resources found%s\n",
			in ? in : "");
	return status;
}

/* ---- the command -------------------------------------------------------- */

static const struct feed_set *get_feeds(struct get *get, const char *feed)
{
	const struct feed_set *set = NULL;
	int r = feed_set_get(get->view.snapshot, feed, &set);

	if (r >= 0)
		return set;
	err_forget();
	return NULL;
}

/* Refuses options for one feed with several: a page of each would end without a token. */
static int get_check_one_feed(const struct get_args *args)
{
	return args->limit || args->continue_token || args->at_least_rv
		       ? err_say(ERR_SYNTAX,
				 "--limit, --continue and --at-least-rv are for one feed")
		       : 0;
}

/* Returns whether a target means the feed. A resource may have several, one a namespace. */
static bool get_has_target(const struct get *get, const struct feed_definition *d)
{
	for (size_t i = 0; i < get->targets.n; i++)
		if (strcmp(get->targets.items[i].feed, d->name) == 0 ||
			feed_definition_is_called(d, get->targets.items[i].feed))
			return true;
	return false;
}

static int get_compare_groups(const void *a, const void *b)
{
	const struct feed_definition *const *x = a, *const *y = b;
	int r = strcmp((*x)->group, (*y)->group);

	return r ? r : strcmp((*x)->resource, (*y)->resource);
}

/* Adds the feeds of a category, by group and resource as in discovery. */
static int get_add_category(struct get *get, const char *category)
{
	AUTO_FREE const struct feed_definition **found = NULL;
	const struct feed_set *set = get_feeds(get, NULL);
	size_t n = 0, room = 0;
	int r = 0;

	for (size_t i = 0; set && r == 0 && i < set->n; i++) {
		const struct feed_definition *d = &set->feeds[i].definition;

		if (feed_definition_is_in(d, category) && !d->name[feed_definition_name_size(d)])
			r = ARRAY_ADD(found, n, room, d, "the feeds of a category");
	}
	if (n)
		qsort(found, n, sizeof(*found), get_compare_groups);
	for (size_t i = 0; r == 0 && i < n; i++)
		if (!get_has_target(get, found[i]))
			r = targets_add(&get->targets, found[i]->name, NULL, 0);
	return r;
}

/* Replaces a target that is a category, unless a feed has its name, by the category's feeds. The
 * kinds of `all` come first: in dumps they have no categories. */
static int get_expand_category(struct get *get)
{
	static const char *const kinds[] = {"pods", "replicationcontrollers", "services",
		"daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps",
		"horizontalpodautoscalers.autoscaling", "cronjobs.batch", "jobs.batch"};
	struct target target = get->targets.items[0];
	bool all = strcmp(target.feed, "all") == 0;
	int r = 0;

	if (get->targets.n != 1 || get_feeds(get, target.feed))
		return 0;
	get->targets.n = 0;
	for (size_t i = 0; r == 0 && all && i < ARRAY_SIZE(kinds); i++)
		if (get_feeds(get, kinds[i]))
			r = targets_add(&get->targets, kinds[i], NULL, 0);
	if (r == 0)
		r = get_add_category(get, target.feed);
	if (r < 0)
		return r;
	if (!get->targets.n && !all) { /* no category: the target is no feed */
		get->targets.items[get->targets.n++] = target;
		return 0;
	}
	if (target.n_names)
		return err_say(ERR_SYNTAX, "'%s' stands for several kinds: a name needs one kind",
			target.feed);
	if (get->targets.n > 1)
		return get_check_one_feed(&get->args);
	return get->targets.n ? 0
			      : err_say(ERR_NO_FEED,
					"'all' stands for pods, services, deployments and the "
					"other kinds that run something, and none of them is "
					"watched; name a feed ('kinf status' lists them)");
}

/* Opens the snapshot, after the wait of --at-least-rv, and finds the feeds. Returns the exit
 * status. */
static int get_open(struct get *get, const struct config_flags *flags)
{
	const struct get_args *args = &get->args;
	const char *in = args->query.namespace_;
	uint64_t timeout_ns = args->timeout_ns == UNSET ? WAIT_DEFAULT : args->timeout_ns;
	int status = PROC_OK;

	if (command_open(flags, &get->view.kinf) < 0)
		return PROC_FAILED;
	if (args->at_least_rv) {
		const char *feed = get->targets.items[0].feed;
		int r = wait_rv_in(get->view.kinf, feed, in, args->at_least_rv,
			proc_ms_until(proc_monotonic_ns() + timeout_ns));

		if (r < 0)
			status = command_fail_read(get->view.kinf, feed, r);
		if (r < 0 && r != KINF_TIMEOUT)
			return status;
	}
	if (command_view_open(&get->view, flags) < 0)
		return PROC_FAILED;
	int r = get_expand_category(get);
	if (r < 0)
		return command_fail(r) + (r == ERR_SYNTAX);
	for (size_t i = 0; i < get->targets.n; i++) {
		struct target *target = &get->targets.items[i];

		r = command_first_feed(get->view.snapshot, target->feed, &target->info);
		if (r < 0)
			return command_fail_read(get->view.kinf, target->feed, r);
		/* After a timeout the note gives the reason, for instance no reflector. */
		r = command_note_state(
			&get->view, target->feed, in, status == PROC_OK ? args->max_stale_ns : 0);
		if (r != PROC_OK)
			return r;
	}
	get->print.several = get->targets.n > 1;
	get->print.namespaces = !in;
	return status;
}

static void get_release(struct get *get)
{
	print_release(&get->print);
	command_view_release(&get->view);
	query_args_release(&get->args.query);
	targets_release(&get->targets);
}

/* Checks the options against the targets and each other, as kubectl does. */
static int get_check(const struct get *get)
{
	const struct get_args *args = &get->args;

	if (get->targets.items[0].n_names && (args->limit || args->continue_token))
		return err_say(ERR_SYNTAX,
			"names are given: --limit and --continue can't be used with them");
	int r = get->targets.n > 1 ? get_check_one_feed(args) : 0;
	if (r < 0)
		return r;
	if (args->at && (args->at_least_rv || args->max_stale_ns))
		return err_say(ERR_SYNTAX, "--at shows the past: --at-least-rv and "
					   "--max-staleness have no meaning with it");
	if (args->timeout_ns != UNSET && !args->at_least_rv)
		return err_say(ERR_SYNTAX,
			"--timeout limits the wait of --at-least-rv, and nothing else waits");
	return args->at_least_rv ? command_check_rv(args->at_least_rv) : 0;
}

int command_get(int argc, char **argv)
{
	CLEANUP(get_release)
	struct get get = {.args = {.timeout_ns = UNSET, .max_stale_ns = STALENESS_ANY}};
	struct kinf_query query;
	struct command_line line = {
		.options = {"kinf get", "FEED[,FEED...] [NAME...] | FEED/NAME... | all | CATEGORY",
			"Prints objects of the cache, in the order of their keys. Tables are "
			"kubectl's. With -w it prints changes also, as 'kinf watch' does."},
		.groups = {query_options(&get.args.query),
			{"Options", get_options, ARRAY_SIZE(get_options), &get.args},
			object_table_options(&get.print.object_table_args)},
		.takes = {1, SIZE_MAX, "which feed? 'kinf status' lists them"},
	};
	if (command_has_flag(&line, argc, argv, "watch") ||
		command_has_flag(&line, argc, argv, "watch-only"))
		return command_watch(argc, argv);
	int r = command_parse(&line, argc, argv);

	get.args.max_stale_ns = command_staleness(get.args.max_stale_ns);
	if (r == 0)
		r = targets_read(&get.targets, line.operands, line.n, &get.args.query);
	if (r == 0)
		r = get_check(&get);
	if (r == 0)
		r = query_from_args(&get.args.query, &query);
	if (r == 0)
		r = print_choose(&get.print, get.args.output);
	if (r == 0)
		r = command_read_at(get.args.at, &get.view.when);
	if (r != 0)
		return command_usage(&line, r);
	query.limit = get.args.limit;
	query.continue_token = get.args.continue_token;
	get.args.explain |= line.flags.verbose > 0;
	get.print.managed_fields = get.args.managed_fields;
	get.print.server_order = get.args.server_order;
	r = get_open(&get, &line.flags);
	return r != PROC_OK ? r : get_print(&get, &query);
}
