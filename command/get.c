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

/* A feed, and the requested names. */
struct get_target {
	const char *feed;
	char **names;
	size_t n_names;
	struct kinf_feed_info info; /* of the first feed of the name */
};

struct get {
	struct get_args args;
	struct past when; /* all zeroes: now */
	struct get_target *targets;
	size_t n_targets, targets_room;
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
	struct print print;
};

/* Prints why a read of TARGET returned CODE. Returns the exit status. */
static int get_fail(const struct get *get, const struct get_target *target, int code)
{
	if (code == KINF_GONE && get->args.continue_token) {
		(void)fprintf(stderr,
			"Error: the continue token is older than the history of the store; list "
			"again without it (a larger 'retention' in kinf.yaml keeps tokens valid "
			"for longer)\n");
		return PROC_FAILED;
	}
	if (code == KINF_AGAIN && (!get->when.event || !target->info.synced))
		return command_fail_again(
			get->kinf, get->snapshot, target->feed, get->args.query.namespace_);
	return command_fail_code(get->kinf, code);
}

/* ---- by name ------------------------------------------------------------ */

static int get_not_found(
	const struct get *get, const struct get_target *target, const char *in, const char *name)
{
	if (get->args.ignore_not_found)
		return PROC_OK;
	(void)fprintf(stderr, "Error: %s \"%s%s%s\" not found\n", target->info.resource,
		in ? in : "", in ? "/" : "", name);
	return PROC_FAILED;
}

static int get_by_key(
	struct get *get, const struct get_target *target, const char *namespace_, const char *name)
{
	struct kinf_object object;
	int r = kinf_get(get->snapshot, target->feed, namespace_, name, &object);

	if (r == KINF_AGAIN || r == KINF_GONE || r < 0)
		return get_fail(get, target, r);
	if (r == KINF_NOT_FOUND)
		return get_not_found(get, target, namespace_, name);
	r = print_object(&get->print, &object);
	return r < 0 ? command_fail(r) : PROC_OK;
}

/* Finds the next object of exactly this name in a list of names with this prefix. */
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
static int get_in_all(struct get *get, const struct get_target *target, const char *name)
{
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	const struct kinf_query query = {
		.size = sizeof(query), .feed = target->feed, .prefix = name};
	struct kinf_object object;
	size_t found = 0;
	int r = kinf_list(get->snapshot, &query, &list);

	while (r == KINF_FOUND && (r = get_next_named(list, name, &object)) == KINF_FOUND) {
		found++;
		r = print_object(&get->print, &object);
		if (r < 0)
			return command_fail(r);
	}
	if (r == KINF_AGAIN || r == KINF_GONE || r < 0)
		return get_fail(get, target, r);
	return found ? PROC_OK : get_not_found(get, target, NULL, name);
}

/* Returns true if NAME lacks its namespace. */
static bool get_is_bare(const struct get *get, const struct get_target *target, const char *name)
{
	return target->info.namespaced && !get->args.query.namespace_ && !strchr(name, '/');
}

/* Returns true if exactly one object is asked for: JSON and YAML then have no List around it. */
static bool get_is_single(struct get *get)
{
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	const struct get_target *target = &get->targets[0];
	const char *name = target->n_names ? target->names[0] : NULL;
	const struct kinf_query query = {
		.size = sizeof(query), .feed = target->feed, .prefix = name};
	struct kinf_object object;
	size_t found = 0;

	if (get->n_targets != 1 || target->n_names != 1)
		return false;
	if (!get_is_bare(get, target, name) || kinf_list(get->snapshot, &query, &list) != 0)
		return true;
	while (found < 2 && get_next_named(list, name, &object) == KINF_FOUND)
		found++;
	return found < 2;
}

/* Prints the objects of the names in the order of --sort-by. */
static int get_sorted(struct get *get, const struct get_target *target)
{
	CLEANUP(kinf_list_close) struct kinf_listing *list = NULL;
	AUTO_FREE bool *found = calloc(target->n_names, sizeof(*found));
	const char *in = target->info.namespaced ? get->args.query.namespace_ : NULL;
	const char *first = target->names[0], *slash = strchr(first, '/');
	const struct kinf_query query = {.size = sizeof(query),
		.feed = target->feed,
		.namespace_ = in,
		.prefix = target->n_names > 1 ? NULL
			  : slash             ? slash + 1
					      : first,
		.sort_by = get->args.sort_by};
	struct kinf_object object;
	int status = PROC_OK;

	if (!found)
		return command_fail(err_set(-ENOMEM, "the names"));
	int r = kinf_list(get->snapshot, &query, &list);
	while (r == KINF_FOUND && (r = kinf_list_next(list, &object)) == KINF_FOUND) {
		for (size_t i = 0; i < target->n_names; i++) {
			const char *name = target->names[i]; /* perhaps after its namespace */

			if (!bytes_equal(strchr(name, '/') ? BYTES(object.key, object.key_size)
							   : print_name(&object),
				    bytes_str(name)))
				continue;
			found[i] = true;
			int printed = print_object(&get->print, &object);
			if (printed < 0)
				return command_fail(printed);
		}
	}
	if (r == KINF_AGAIN || r == KINF_GONE || r < 0)
		return get_fail(get, target, r);
	for (size_t i = 0; i < target->n_names; i++)
		if (!found[i] &&
			get_not_found(get, target, strchr(target->names[i], '/') ? NULL : in,
				target->names[i]) != PROC_OK)
			status = PROC_FAILED;
	return status;
}

static int get_all_named(struct get *get, const struct get_target *target)
{
	int status = PROC_OK;

	if (get->args.sort_by)
		return get_sorted(get, target);

	for (size_t i = 0; i < target->n_names; i++) {
		char *name = target->names[i], *slash = strchr(name, '/');
		int one;

		if (slash && target->info.namespaced) {
			*slash = '\0';
			one = get_by_key(get, target, name, slash + 1);
			*slash = '/';
		} else if (get_is_bare(get, target, name)) {
			one = get_in_all(get, target, name);
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

/* Returns the API server's order of the kind, if the query leaves it open. */
static const char *get_order(const struct get *get)
{
	const struct get_args *args = &get->args;

	if (get->print.format > PRINT_WIDE || args->sort_by || args->limit || args->continue_token)
		return args->sort_by;
	return printer_order(get->print.object_table.printer); /* made by print_feed() */
}

/* Prints the objects of QUERY in one feed. Sets *RET_LIST, with the RV and the token. */
static int get_list(struct get *get, const struct get_target *target, struct kinf_query query,
	struct kinf_listing **ret_list)
{
	struct kinf_object object;

	query.feed = target->feed;
	query.sort_by = get_order(get);
	int r = kinf_list(get->snapshot, &query, ret_list);
	if (r != 0)
		return get_fail(get, target, r);
	while ((r = kinf_list_next(*ret_list, &object)) == KINF_FOUND || r == KINF_CORRUPT) {
		if (r == KINF_CORRUPT) { /* the others are shown, and the status is 1 */
			command_saw_damage = true;
			(void)command_fail_kinf(get->kinf);
			continue;
		}
		r = print_object(&get->print, &object);
		if (r < 0)
			return command_fail(r);
	}
	if (r < 0)
		return command_fail_code(get->kinf, r);
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

	for (size_t i = 0; r == 0 && i < get->n_targets; i++) {
		const struct get_target *target = &get->targets[i];

		r = print_feed(&get->print, get->snapshot, &target->info);
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
	if (status != PROC_OK && (get->print.count == 0 || (get->n_targets == 1 && !names)))
		return status;
	if (!get->print.count && get->args.ignore_not_found && format != PRINT_COUNT)
		return status;
	if (get->n_targets == 1 && list) {
		rv = kinf_list_resource_version(list);
		token = kinf_list_continue(list);
	} else if (get->n_targets == 1 && !get->when.event) {
		rv = get->targets[0].info.resource_version;
	}
	r = print_end(&get->print, rv, token);
	if (r < 0)
		return command_fail(r);
	if (get->n_targets == 1 && !get->targets[0].info.namespaced)
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
	int r = feed_set_get(get->snapshot, feed, &set);

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

static int get_add_target(struct get *get, const char *feed, char **names, size_t n_names)
{
	struct get_target target = {.feed = feed, .names = names, .n_names = n_names};

	return ARRAY_ADD(get->targets, get->n_targets, get->targets_room, target,
		"the feeds that are asked for");
}

/* Returns whether a target means the feed. A resource may have several, one a namespace. */
static bool get_has_target(const struct get *get, const struct feed_definition *d)
{
	for (size_t i = 0; i < get->n_targets; i++)
		if (strcmp(get->targets[i].feed, d->name) == 0 ||
			feed_definition_is_called(d, get->targets[i].feed))
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
			r = get_add_target(get, found[i]->name, NULL, 0);
	return r;
}

/* Replaces a target that is a category, unless a feed has its name, by the category's feeds. The
 * kinds of `all` come first: in dumps they have no categories. */
static int get_expand_category(struct get *get)
{
	static const char *const kinds[] = {"pods", "replicationcontrollers", "services",
		"daemonsets.apps", "deployments.apps", "replicasets.apps", "statefulsets.apps",
		"horizontalpodautoscalers.autoscaling", "cronjobs.batch", "jobs.batch"};
	struct get_target target = get->targets[0];
	bool all = strcmp(target.feed, "all") == 0;
	int r = 0;

	if (get->n_targets != 1 || get_feeds(get, target.feed))
		return 0;
	get->n_targets = 0;
	for (size_t i = 0; r == 0 && all && i < ARRAY_SIZE(kinds); i++)
		if (get_feeds(get, kinds[i]))
			r = get_add_target(get, kinds[i], NULL, 0);
	if (r == 0)
		r = get_add_category(get, target.feed);
	if (r < 0)
		return r;
	if (!get->n_targets && !all) { /* no category: the target is no feed */
		get->targets[get->n_targets++] = target;
		return 0;
	}
	if (target.n_names)
		return err_say(ERR_SYNTAX, "'%s' stands for several kinds: a name needs one kind",
			target.feed);
	if (get->n_targets > 1)
		return get_check_one_feed(&get->args);
	return get->n_targets ? 0
			      : err_say(ERR_NO_FEED,
					"'all' stands for pods, services, deployments and the "
					"other kinds that run something, and none of them is "
					"watched; name a feed ('kinf status' lists them)");
}

/* Waits for --at-least-rv. Returns below 0 after it printed an error. */
static int get_wait(struct get *get)
{
	const char *feed = get->targets[0].feed;
	uint64_t timeout_ns = get->args.timeout_ns == UNSET ? WAIT_DEFAULT : get->args.timeout_ns;
	int r = wait_rv_in(get->kinf, feed, get->args.query.namespace_, get->args.at_least_rv,
		proc_ms_until(proc_monotonic_ns() + timeout_ns));

	if (r < 0)
		(void)command_fail_feed(get->kinf, feed, r);
	return r;
}

/* Opens the snapshot, after the wait of --at-least-rv, and finds the feeds. Returns below 0 after
 * it printed an error. */
static int get_open(struct get *get, const struct config_flags *flags)
{
	int r = command_open(flags, &get->kinf), waited = 0;

	if (r < 0)
		return r;
	if (get->args.at_least_rv)
		waited = get_wait(get);
	if (waited < 0 && waited != KINF_TIMEOUT)
		return waited;
	r = command_snapshot(get->kinf, &get->snapshot);
	if (r == 0)
		r = command_go_to(get->kinf, get->snapshot, &get->when);
	if (r < 0)
		return r;
	r = get_expand_category(get);
	if (r < 0) {
		(void)command_fail(r);
		return r;
	}
	for (size_t i = 0; i < get->n_targets; i++) {
		struct get_target *target = &get->targets[i];

		r = command_first_feed(get->snapshot, target->feed, &target->info);
		if (r < 0) {
			(void)command_fail_feed(get->kinf, target->feed, r);
			return r;
		}
		if (get->when.event)
			continue; /* the past is never stale */
		/* After a timeout the note gives the reason, for instance no reflector. */
		r = command_note_state(get->snapshot, target->feed, get->args.query.namespace_,
			waited < 0 ? 0 : get->args.max_stale_ns);
		if (r < 0 && r != -ESTALE) /* -ESTALE has its note */
			(void)command_fail_kinf(get->kinf);
		if (r < 0)
			return r;
	}
	get->print.several = get->n_targets > 1;
	get->print.namespaces = !get->args.query.namespace_;
	return waited < 0 ? waited : 0;
}

static void get_release(struct get *get)
{
	print_release(&get->print);
	kinf_snapshot_close(&get->snapshot);
	kinf_close(&get->kinf);
	query_args_release(&get->args.query);
	free(get->targets);
}

/* Reads FEED/NAME..., the output of -o name: adjacent names of one feed are one target. */
static int get_read_slashed(struct get *get, char **operands, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *slash = strchr(operands[i], '/');
		struct get_target *last = get->n_targets ? &get->targets[get->n_targets - 1] : NULL;
		int r = 0;

		if (!slash)
			return err_say(ERR_SYNTAX,
				"'%s': write each as FEED/NAME, or 'FEED NAME...'", operands[i]);
		*slash = '\0';
		if (last && strcmp(last->feed, operands[i]) == 0)
			last->n_names++;
		else
			r = get_add_target(get, operands[i], operands + i, 1);
		if (r < 0)
			return r;
		operands[i] = slash + 1;
	}
	return 0;
}

/* Reads the operands. Refuses options without meaning for names or several feeds, as kubectl
 * does. */
static int get_operands(struct get *get, char **operands, size_t n)
{
	const struct get_args *args = &get->args;
	const struct query_args *query = &args->query;
	const char *in = query->namespace_;
	int r = 0;

	if (strchr(operands[0], '/')) {
		r = get_read_slashed(get, operands, n);
	} else {
		for (char *feed = operands[0], *end; r == 0 && feed; feed = end) {
			end = strchr(feed, ',');
			if (end)
				*end++ = '\0';
			if (!*feed && (end || feed != operands[0]))
				return err_say(ERR_SYNTAX,
					"the name of a feed is empty: write them as pods,services");
			r = get_add_target(get, feed, operands + 1, n - 1);
		}
	}
	if (r < 0)
		return r;
	bool names = get->targets[0].n_names;
	if (names && (query->labels || query->fields || query->prefix || query->index.n ||
			     args->limit || args->continue_token))
		return err_say(ERR_SYNTAX,
			"names are given: -l, --field-selector, --index, --prefix, "
			"--limit and --continue can't be used with them");
	if (get->n_targets > 1)
		r = get_check_one_feed(args);
	if (r < 0)
		return r;
	if (args->at && (args->at_least_rv || args->max_stale_ns))
		return err_say(ERR_SYNTAX, "--at shows the past: --at-least-rv and "
					   "--max-staleness have no meaning with it");
	if (args->timeout_ns != UNSET && !args->at_least_rv)
		return err_say(ERR_SYNTAX,
			"--timeout limits the wait of --at-least-rv, and nothing else waits");
	for (size_t t = 0; t < get->n_targets; t++)
		for (size_t i = 0; i < get->targets[t].n_names; i++) {
			const char *name = get->targets[t].names[i], *end = strchr(name, '/');

			if (!*name)
				return err_say(ERR_SYNTAX, "a name is empty");
			if (in && end &&
				(strlen(in) != (size_t)(end - name) ||
					strncmp(in, name, strlen(in)) != 0))
				return err_say(
					ERR_SYNTAX, "'%s' is not in the namespace '%s'", name, in);
		}
	return 0;
}

int command_get(int argc, char **argv)
{
	CLEANUP(get_release)
	struct get get = {.args = {.timeout_ns = UNSET, .max_stale_ns = STALENESS_ANY}};
	struct config_flags flags = {0};
	struct kinf_query query;
	int first;
	const struct options_group groups[] = {
		query_options(&get.args.query),
		{"Options", get_options, ARRAY_SIZE(get_options), &get.args},
		object_table_options(&get.print.object_table_args),
		config_common_options(&flags),
	};
	const struct options options = {"kinf get",
		"FEED[,FEED...] [NAME...] | FEED/NAME... | all | CATEGORY",
		"Prints objects of the cache, in the order of their keys. Tables are kubectl's. "
		"With -w it prints changes also, as 'kinf watch' does.",
		groups, ARRAY_SIZE(groups), false};
	if (options_flag(&options, argc, argv, "watch") ||
		options_flag(&options, argc, argv, "watch-only"))
		return command_watch(argc, argv);
	int r = options_parse(&options, argc, argv, &first);

	get.args.max_stale_ns = command_staleness(get.args.max_stale_ns);
	if (r == 0 && first == argc)
		r = options_bad(&options, "which feed? 'kinf status' lists them");
	if (r != 0)
		return command_usage(&options, r);
	r = get_operands(&get, argv + first, (size_t)(argc - first));
	if (r == 0)
		r = query_from_args(&get.args.query, get.targets[0].feed, &query);
	if (r == 0)
		r = print_choose(&get.print, get.args.output);
	if (r == 0 && get.args.at_least_rv)
		r = command_check_rv(get.args.at_least_rv);
	if (r == 0)
		r = command_read_at(get.args.at, &get.when);
	if (r < 0)
		return command_usage(&options, r);
	query.limit = get.args.limit;
	query.continue_token = get.args.continue_token;
	get.args.explain |= flags.verbose > 0;
	get.print.managed_fields = get.args.managed_fields;
	get.print.server_order = get.args.server_order;
	r = get_open(&get, &flags);
	if (r < 0)
		return r == ERR_SYNTAX ? PROC_USAGE : PROC_FAILED;
	return get_print(&get, &query);
}
