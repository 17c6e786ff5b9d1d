/* SPDX-License-Identifier: Apache-2.0 */
#include "command/command.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/daemon/faults.h"
#include "common/err.h"
#include "common/text/utf8.h"
#include "print/status/status.h"
#include "print/table/age.h"
#include "reader/handle.h"
#include "store/env/home.h"
#include "store/read/snapshot.h"

/* ---- errors ------------------------------------------------------------- */

int command_fail(int code)
{
	(void)fprintf(stderr, "Error: %s\n", err_text(code));
	return PROC_FAILED;
}

struct explanation {
	const char *feed;
	char *text;
};

static int command_explain_pending(void *arg, const struct kinf_feed_info *pending)
{
	struct explanation *explanation = arg;
	size_t size = strlen(explanation->feed);
	const char *rest = strncmp(explanation->feed, pending->full_name, size) == 0
				   ? pending->full_name + size
				   : "?";

	/* the resource's name counts without its group, as for a feed */
	if (*rest && *rest != '.')
		return 0;
	(void)snprintf(explanation->text, COMMAND_TEXT_SIZE,
		"feed '%s' can't be read yet: %s (the reflector tries again)", pending->full_name,
		pending->last_error);
	return 1;
}

void command_explain(
	const struct kinf *kinf, const char *feed, int code, char text[COMMAND_TEXT_SIZE])
{
	struct explanation explanation = {feed, text};

	(void)snprintf(text, COMMAND_TEXT_SIZE, "%s",
		feed || code != KINF_NO_FEED ? kinf_error(kinf) : SNAPSHOT_NO_FEEDS);
	if (code != KINF_NO_FEED ||
		(feed && status_each_pending(kinf, command_explain_pending, &explanation) != 0))
		return;
	char *at = strstr(text, SNAPSHOT_NO_FEEDS);
	if (!at)
		return;
	/* The store has no feed at all: writes why, if the reflector knows. */
	CLEANUP(daemon_view_release) struct daemon_view reflector = {.page = NULL};
	size_t size = COMMAND_TEXT_SIZE - (size_t)(at - text);
	daemon_view_take(store_home(kinf->store), HOME_REFLECTOR, &reflector);
	if (!reflector.page || !reflector.alive)
		(void)snprintf(at, size, SNAPSHOT_NO_FEEDS ", and kinf-reflector does not run: %s",
			daemon_view_remedy(&reflector));
	else if (*reflector.process.error)
		(void)snprintf(at, size, SNAPSHOT_NO_FEEDS ": kinf-reflector: %s",
			reflector.process.error);
}

int command_fail_read(const struct kinf *kinf, const char *feed, int code)
{
	char text[COMMAND_TEXT_SIZE];

	command_explain(kinf, feed, code, text);
	(void)fprintf(stderr, "Error: %s\n", text);
	return code == KINF_SYNTAX ? PROC_USAGE : PROC_FAILED;
}

int command_not_found(const struct kinf_feed_info *feed, const char *namespace_, const char *name)
{
	(void)fprintf(stderr, "Error: %s \"%s%s%s\" not found\n", feed->resource,
		namespace_ ? namespace_ : "", namespace_ ? "/" : "", name);
	return PROC_FAILED;
}

/* ---- command lines ------------------------------------------------------ */

/* Adds the common options. */
static void command_line_join(struct command_line *line)
{
	size_t n = 0;

	while (line->groups[n].n)
		n++;
	line->groups[n++] = config_common_options(&line->flags);
	line->options.groups = line->groups;
	line->options.n_groups = n;
}

bool command_has_flag(struct command_line *line, int argc, char **argv, const char *name)
{
	struct command_line copy = *line;

	command_line_join(&copy);
	return options_flag(&copy.options, argc, argv, name);
}

int command_parse(struct command_line *line, int argc, char **argv)
{
	int first;

	command_line_join(line);
	int r = options_parse(&line->options, argc, argv, &first);
	if (r != 0)
		return r;
	line->operands = argv + first;
	line->n = (size_t)(argc - first);
	if (line->n && !line->takes.most)
		return options_bad(&line->options, "'%s' is not an option%s", argv[first],
			line->takes.rule ? line->takes.rule : "");
	if (line->n < line->takes.least || line->n > line->takes.most)
		return options_bad(&line->options, "%s", line->takes.rule);
	for (size_t i = 0; i < line->n; i++)
		if (!*line->operands[i])
			return options_bad(&line->options, "a name is empty");
	return 0;
}

void command_line_release(struct command_line *line)
{
	config_flags_release(&line->flags);
}

int command_usage(const struct command_line *line, int result)
{
	if (result == END)
		return PROC_OK;
	if (result != ERR_SYNTAX &&
		result != -EINVAL) /* the help can't be written, or a file can't be read */
		return command_fail(result);
	(void)fprintf(stderr, "%s: %s\n", options_program(&line->options), err_text(result));
	return PROC_USAGE;
}

int command_check_rv(const char *rv)
{
	if (*rv == '0')
		return err_say(ERR_SYNTAX,
			"resourceVersion '%s': an object's begins with another digit, and 0 stands "
			"for any",
			rv);
	if (*rv && !rv[strspn(rv, "0123456789")])
		return 0;
	return err_say(ERR_SYNTAX,
		"resourceVersion '%s': it is a number, as in the object's metadata", rv);
}

int command_cut_name(char **name, const char **namespace_)
{
	char *slash = strchr(*name, '/');

	if (!slash)
		return 0;
	if (*namespace_ && (strlen(*namespace_) != (size_t)(slash - *name) ||
				   strncmp(*namespace_, *name, (size_t)(slash - *name)) != 0))
		return err_say(ERR_SYNTAX, "'%s' is not in the namespace '%s'", *name, *namespace_);
	*slash = '\0';
	*namespace_ = *name;
	*name = slash + 1;
	return 0;
}

/* ---- the store ---------------------------------------------------------- */

void command_note(const struct config *config)
{
	if (config->passed_over)
		(void)fprintf(stderr, "note: %s\n", config->passed_over);
	if (config->overruled)
		(void)fprintf(stderr, "note: %s\n", config->overruled);
}

int command_store(const struct config_flags *flags, char **ret_directory)
{
	const char *given = flags->store || flags->cluster ? flags->store : getenv("KINF_STORE");
	CLEANUP(config_free) struct config *config = NULL;

	/* A named configuration is read also if the store is known: it must be readable. */
	if (!given || !*given || flags->file || flags->cluster) {
		struct config_flags readers = *flags;

		readers.store_only = true;
		int r = config_load(&readers, &config);
		if (r < 0)
			return r;
		command_note(config);
		given = config->store;
	}
	*ret_directory = NULL;
	return config_copy_path(ret_directory, given, NULL);
}

int command_use_store(const struct config_flags *flags, const char **ret_directory)
{
	static char *directory;
	int r = directory ? 0 : command_store(flags, &directory);

	if (r < 0)
		return r;
	faults_catch("kinf", directory);
	*ret_directory = directory;
	return 0;
}

int command_open(const struct config_flags *flags, struct kinf **ret_kinf)
{
	return command_open_until(flags, 0, ret_kinf);
}

bool command_saw_damage;

#define FAULTS_SHOWN 20

static void command_print_fault(void *arg, const char *sentence)
{
	unsigned *shown = arg;

	if ((*shown)++ < FAULTS_SHOWN)
		(void)fprintf(stderr, "kinf: fault: %s\n", sentence);
	else if (*shown == FAULTS_SHOWN + 1)
		(void)fprintf(stderr, "kinf: more faults: 'kinf verify' lists all\n");
}

bool command_may_pass(int code)
{
	return code == KINF_CORRUPT || code == KINF_UNTRUSTED || code == KINF_LOCKED ||
	       code == -ENOENT || code == KINF_SNAPSHOT_EXPIRED;
}

int command_open_until(const struct config_flags *flags, uint64_t end_ns, struct kinf **ret_kinf)
{
	const char *directory;
	int r = command_use_store(flags, &directory);

	*ret_kinf = NULL;
	if (r < 0) {
		(void)command_fail(r);
		return r;
	}
	return command_open_directory(directory, end_ns, ret_kinf);
}

int command_open_directory(const char *directory, uint64_t end_ns, struct kinf **ret_kinf)
{
	static const struct timespec pause = {.tv_nsec = 50000000},
				     long_pause = {.tv_nsec = 500000000};
	char path[PATH_MAX];
	unsigned shown = 0; /* faults */
	int r;

	(void)snprintf(path, sizeof(path), "%s", directory);
	utf8_make_printable(path);
	/* A waiting caller also waits for daemons to make the store, or to list it again. */
	for (bool noted_damage = false, noted_store = false;;) {
		r = kinf_open_checked(directory, noted_damage ? NULL : command_print_fault, &shown,
			true, ret_kinf);
		bool damaged = command_may_pass(r) || (r == 0 && (*ret_kinf)->is_damaged);

		if ((!damaged && r != KINF_NO_STORE) || proc_monotonic_ns() >= end_ns)
			break;
		if (damaged && !noted_damage)
			(void)fprintf(stderr,
				"note: waiting until the daemons have made '%s' good; is 'kinf "
				"run' running? %s\n",
				path,
				r < 0 ? kinf_error(*ret_kinf)
				      : "what is named above is damaged or missing");
		else if (!damaged && !noted_store &&
			 end_ns == UINT64_MAX) /* else the timeout says it */
			(void)fprintf(stderr, "note: waiting; %s\n", kinf_error(*ret_kinf));
		noted_damage |= damaged;
		noted_store |= !damaged;
		kinf_close(ret_kinf);
		(void)nanosleep(damaged ? &long_pause : &pause, NULL);
	}
	if (r == 0 && (*ret_kinf)->is_untrusted && !(*ret_kinf)->is_damaged)
		(void)fprintf(stderr,
			"note: '%s' is the copy of a store whose daemons ran or were killed, or "
			"the machine stopped: it was checked, and no fault was found\n",
			path);
	if (r == 0 && (*ret_kinf)->is_damaged) {
		CLEANUP(kinf_snapshot_close) struct kinf_snapshot *probe = NULL;
		int opened = kinf_snapshot_open(*ret_kinf, &probe);

		(void)fprintf(stderr,
			"note: '%s' was copied while its daemons wrote to it, or the machine "
			"stopped: what %s is damaged or missing%s\n",
			path, end_ns ? "'kinf verify' names" : "is named above",
			opened != 0 ? "; 'kinf dump journal' shows the journal"
				    : ", the rest is shown");
	}
	command_saw_damage |= r == 0 && (*ret_kinf)->is_damaged;
	if (r < 0) {
		(void)command_fail_read(*ret_kinf, NULL, 0);
		kinf_close(ret_kinf);
	}
	return r;
}

/* ---- one state of the store --------------------------------------------- */

int command_read_at(const char *text, struct past *ret_when)
{
	*ret_when = (struct past){0};
	int r = text ? past_parse(text, proc_realtime_ns(), ret_when) : 0;

	return r < 0 ? err_add(r, "--at") : 0;
}

int command_view_open(struct command_view *view, const struct config_flags *flags)
{
	struct past *when = &view->when;
	int r = view->kinf ? 0 : command_open(flags, &view->kinf);

	if (r < 0)
		return r;
	r = kinf_snapshot_open(view->kinf, &view->snapshot);
	if (r == 0 && (when->event || when->time_ns))
		r = past_enter(view->snapshot, when);
	if (r != 0) {
		(void)command_fail_read(view->kinf, "", r);
		return -1;
	}
	age_set_now(when->time_ns);
	return 0;
}

void command_view_release(struct command_view *view)
{
	kinf_snapshot_close(&view->snapshot);
	kinf_close(&view->kinf);
}

static int command_keep_first(void *arg, const struct kinf_feed_info *info)
{
	*(struct kinf_feed_info *)arg = *info;
	return 1;
}

int command_first_feed(
	struct kinf_snapshot *snapshot, const char *feed, struct kinf_feed_info *ret_info)
{
	int r = kinf_feed_status(snapshot, feed, command_keep_first, ret_info);

	return r < 0 ? r : 0;
}

/* ---- freshness ---------------------------------------------------------- */

#define NOTES_SHOWN 5 /* faults */

struct staleness {
	double limit_seconds; /* 0: any age is accepted */
	bool exceeded;        /* and a line says so */
	unsigned notes;
	const char *namespace_; /* NULL: all */
	bool is_covered;        /* a feed may hold objects of it */
};

static int command_note_feed(void *arg, const struct kinf_feed_info *info)
{
	struct staleness *staleness = arg;
	double age = info->last_contact_seconds; /* negative: unknown */
	time_t now = (time_t)(proc_realtime_ns() / 1000000000);
	time_t since = (time_t)floor((double)proc_realtime_ns() / 1e9 - age);
	const char *why, *in = info->namespace_;
	char clock[48] = "";
	struct tm parts, today;

	if (staleness->namespace_ && *in && strcmp(in, staleness->namespace_) != 0)
		return 0;
	staleness->is_covered = true;
	if (staleness->limit_seconds > 0 && (age < 0 || age > staleness->limit_seconds)) {
		char when[64] = "the time of the last contact with the API server is not known";

		staleness->exceeded = true;
		if (age >= 0)
			(void)snprintf(when, sizeof(when),
				"the last contact with the API server was %.1f s ago", age);
		(void)fprintf(stderr, "Error: %s%s%s is staler than --max-staleness %gs: %s\n",
			info->full_name, *in ? " in " : "", in,
			staleness->limit_seconds < 1e-6 ? 0 : staleness->limit_seconds, when);
	}
	if (strcmp(info->state, "live") == 0)
		return 0;
	if (staleness->notes++ >= NOTES_SHOWN)
		return 0;
	if (age >= 0 && localtime_r(&since, &parts) && localtime_r(&now, &today))
		(void)strftime(clock, sizeof(clock),
			parts.tm_yday == today.tm_yday && parts.tm_year == today.tm_year
				? " since %H:%M:%S"
				: " since %Y-%m-%d %H:%M:%S",
			&parts);
	why = info->last_error;
	(void)fprintf(stderr, "note: %s%s%s: %s%s%s%s\n", info->full_name, *in ? " in " : "", in,
		info->state, clock, *why ? ", " : "", why);
	return 0;
}

int command_note_state(const struct command_view *view, const char *feed, const char *namespace_,
	uint64_t max_stale_ns)
{
	struct staleness staleness = {
		.limit_seconds = (double)max_stale_ns / 1e9, .namespace_ = namespace_};

	if (view->when.event)
		return PROC_OK;
	int r = kinf_feed_status(view->snapshot, feed, command_note_feed, &staleness);
	if (r != 0)
		return command_fail_read(view->kinf, feed, r);
	if (feed && !staleness.is_covered)
		(void)fprintf(stderr,
			"note: no feed of %s has the namespace '%s': add it to 'namespaces' of the "
			"feed in kinf.yaml\n",
			feed, namespace_);
	if (staleness.notes > NOTES_SHOWN)
		(void)fprintf(stderr,
			"note: %u more feeds are not live; 'kinf status' shows them\n",
			staleness.notes - NOTES_SHOWN);
	return staleness.exceeded ? PROC_FAILED : PROC_OK;
}

/* ---- options that select objects ---------------------------------------- */

#define AT(field) offsetof(struct query_args, field)

static const struct option_spec query_specs[] = {
	{'n', "namespace", OPTION_NAME, AT(namespace_), "NS", "only objects of this namespace"},
	{'A', "all-namespaces", OPTION_FLAG, AT(all), NULL,
		"objects of all namespaces (the default)"},
	{'l', "selector", OPTION_TEXT, AT(labels), "SELECTOR",
		"label selector, such as 'app=shop,tier in (front,back)'"},
	{0, "field-selector", OPTION_TEXT, AT(fields), "SELECTOR",
		"field selector over any field path, such as 'spec.nodeName=node-1'"},
	{0, "index", OPTION_TEXTS, AT(index), "NAME=VALUE",
		"objects with this value in that index; may be repeated"},
	{0, "prefix", OPTION_TEXT, AT(prefix), "TEXT", "objects whose name begins with TEXT"},
};

struct options_group query_options(struct query_args *args)
{
	return (struct options_group){"Which", query_specs, ARRAY_SIZE(query_specs), args};
}

int query_from_args(struct query_args *args, struct kinf_query *query)
{
	if (args->all && args->namespace_)
		return err_say(ERR_SYNTAX, "-n and -A exclude each other");
	args->terms = calloc(args->index.n + 1, sizeof(*args->terms));
	if (!args->terms)
		return err_set(-ENOMEM, "allocating the terms of --index");
	for (size_t i = 0; i < args->index.n; i++) {
		/* Cut in place: the texts are argv's. */
		char *equals = strchr((char *)(uintptr_t)args->index.items[i], '=');

		if (!equals)
			return err_say(ERR_SYNTAX, "--index '%s': write one as NAME=VALUE",
				args->index.items[i]);
		*equals = '\0';
		const char *slash =
			strrchr(args->index.items[i], '/'); /* as 'kinf run --index' takes it */
		if (slash)
			return err_say(ERR_SYNTAX,
				"--index '%s': the feed is named already: write --index %s=%s",
				args->index.items[i], slash + 1, equals + 1);
		args->terms[i] = (struct kinf_term){args->index.items[i], equals + 1};
	}
	*query = (struct kinf_query){
		.size = sizeof(*query),
		.namespace_ = args->namespace_,
		.prefix = args->prefix,
		.label_selector = args->labels,
		.field_selector = args->fields,
		.terms = args->terms,
		.n_terms = args->index.n,
	};
	return 0;
}

void query_args_release(struct query_args *args)
{
	option_texts_release(&args->index);
	free(args->terms);
}
