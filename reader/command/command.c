/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/command/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/err.h"

const struct option_spec query_options[] = {
	{'n', "namespace", OPTION_TEXT, offsetof(struct query_args, namespace_), "NS",
		"only objects of this namespace"},
	{'A', "all-namespaces", OPTION_FLAG, offsetof(struct query_args, all), NULL,
		"objects of all namespaces (the default)"},
	{'l', "selector", OPTION_TEXT, offsetof(struct query_args, labels), "SELECTOR",
		"label selector, such as 'app=shop,tier in (front,back)'"},
	{0, "field-selector", OPTION_TEXT, offsetof(struct query_args, fields), "SELECTOR",
		"field selector over any field path, such as 'spec.nodeName=node-1'"},
	{0, "index", OPTION_TEXTS, offsetof(struct query_args, index), "NAME=VALUE",
		"objects with this value in that index; may be repeated"},
	{0, "prefix", OPTION_TEXT, offsetof(struct query_args, prefix), "TEXT",
		"objects whose name begins so"},
};
const size_t n_query_options = ARRAY_SIZE(query_options);

int command_fail(int code)
{
	(void)fprintf(stderr, "Error: %s\n", err_text(code));
	return PROC_FAILED;
}

int command_fail_kinf(const struct kinf *kinf)
{
	(void)fprintf(stderr, "Error: %s\n", kinf_error(kinf));
	return PROC_FAILED;
}

int command_usage(const struct options *options, int result)
{
	if (result == END)
		return PROC_OK;
	(void)fprintf(stderr, "%s: %s\n", options->program, err_text(result));
	return PROC_USAGE;
}

int command_store(const struct config_flags *flags, char **ret_directory)
{
	const char *given = flags->store ? flags->store : getenv("KINF_STORE");
	CLEANUP(config_free) struct config *config = NULL;

	/* A file that was named is read even so: if it can't be, that is to be said. */
	if (given && *given && !flags->file) {
		*ret_directory = strdup(given);
		return *ret_directory ? 0 : err_set(-ENOMEM, "store");
	}
	int r = config_load(flags, &config);
	if (r < 0)
		return r;
	*ret_directory = strdup(config->store);
	return *ret_directory ? 0 : err_set(-ENOMEM, "store");
}

int command_open(const struct config_flags *flags, struct kinf **ret_kinf)
{
	return command_open_until(flags, 0, ret_kinf);
}

int command_open_until(const struct config_flags *flags, uint64_t end_ns, struct kinf **ret_kinf)
{
	static const struct timespec pause = {.tv_nsec = 50000000};
	/* Kept for the life of the process: the fault handler names it. */
	static char *directory;

	*ret_kinf = NULL;
	int r = command_store(flags, &directory);
	if (r < 0) {
		(void)command_fail(r);
		return r;
	}
	proc_catch_faults("kinf", directory);
	while ((r = kinf_open(directory, ret_kinf)) == KINF_NO_STORE &&
		proc_monotonic_ns() < end_ns) {
		kinf_close(ret_kinf);
		(void)nanosleep(&pause, NULL); /* the daemons have not made it yet */
	}
	if (r == 0)
		r = kinf_set_check(*ret_kinf, 1);
	if (r < 0) {
		(void)command_fail_kinf(*ret_kinf);
		kinf_close(ret_kinf);
	}
	return r;
}

int command_snapshot(struct kinf *kinf, struct kinf_snapshot **ret_snapshot)
{
	int r = kinf_snapshot_open(kinf, ret_snapshot);

	if (r != 0)
		(void)command_fail_kinf(kinf);
	return r == KINF_AGAIN ? -EAGAIN : r;
}

/* ---- queries ---- */

int query_from_args(const struct query_args *args, const char *feed, struct kinf_term *terms,
	struct kinf_query *query)
{
	if (args->all && args->namespace_)
		return err_say(ERR_SYNTAX, "-n and -A exclude each other");
	for (size_t i = 0; i < args->index.n; i++) {
		/* Cut in place: the texts are argv's. */
		char *equals = strchr((char *)(uintptr_t)args->index.items[i], '=');

		if (!equals)
			return err_say(ERR_SYNTAX, "--index '%s': NAME=VALUE is wanted",
				args->index.items[i]);
		*equals = '\0';
		terms[i] = (struct kinf_term){args->index.items[i], equals + 1};
	}
	*query = (struct kinf_query){
		.size = sizeof(*query),
		.feed = feed,
		.namespace_ = args->namespace_,
		.prefix = args->prefix,
		.label_selector = args->labels,
		.field_selector = args->fields,
		.terms = terms,
		.n_terms = args->index.n,
	};
	return 0;
}

void query_args_release(struct query_args *args)
{
	option_texts_release(&args->index);
}

/* ---- freshness ---- */

struct note {
	double max_stale_seconds; /* 0: any */
	bool failed;
};

static void print_since(const struct kinf_feed_info *status)
{
	time_t since = time(NULL) - (time_t)status->last_contact_seconds;
	struct tm parts;
	char clock[32] = "";

	if (status->last_contact_seconds >= 0 && localtime_r(&since, &parts))
		(void)strftime(clock, sizeof(clock), " since %H:%M:%S", &parts);
	const char *why = status->last_error;
	if (!*why && strcmp(status->state, "offline") == 0)
		why = "kinf-reflector does not run";
	const char *in = status->namespace_;
	(void)fprintf(stderr, "note: %s%s%s: %s%s%s%s\n", status->name, *in ? " in " : "", in,
		status->state, clock, *why ? ", " : "", why);
}

static int note_feed(void *arg, const struct kinf_feed_info *status)
{
	struct note *note = arg;

	if (strcmp(status->state, "live") == 0)
		return 0;
	print_since(status);
	if (note->max_stale_seconds > 0 && (status->last_contact_seconds < 0 ||
		status->last_contact_seconds > note->max_stale_seconds))
		note->failed = true;
	return 0;
}

int command_note_state(struct kinf_snapshot *snapshot, const char *feed, uint64_t max_stale_ns)
{
	struct note note = {.max_stale_seconds = (double)max_stale_ns / 1e9};
	int r = kinf_feed_status(snapshot, feed, note_feed, &note);

	if (r != 0 || !note.failed)
		return r;
	(void)fprintf(stderr, "Error: %s is staler than --max-staleness allows\n", feed);
	return -ESTALE;
}
