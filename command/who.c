/* SPDX-License-Identifier: Apache-2.0 */
/* kinf who IP | CONTAINER-ID | UID | [NODE/]PID: the pod behind it, its node, owners and labels. */
#include <stdio.h>
#include <string.h>

#include "command/command.h"
#include "common/cleanup.h"
#include "common/output.h"
#include "print/who.h"
#include "reader/handle.h"

struct who_args {
	const char *output, *at;
	bool all;
};

#define AT(field) offsetof(struct who_args, field)

static const struct option_spec who_options[] = {
	{'o', "output", OPTION_WORD, AT(output), "FORMAT", "text, or json (one pod a line)",
		"text|json"},
	{0, "all", OPTION_FLAG, AT(all), NULL,
		"also the pods that had it within the retained history, if another has it now"},
	COMMAND_AT(AT(at)),
};
#undef AT

struct who_command {
	struct kinf *kinf;
	struct kinf_snapshot *snapshot;
	struct past when;
	struct buf out;
};

static void who_release(struct who_command *who)
{
	buf_release(&who->out);
	kinf_snapshot_close(&who->snapshot);
	kinf_close(&who->kinf);
}

/* Returns the exit status after kinf_who() returned RESULT. */
static int who_end(struct who_command *who, const struct who_answer *answer, int result)
{
	char note[WHO_NOTE_SIZE];

	if (result == KINF_AGAIN && !who->when.event)
		return command_fail_again(who->kinf, who->snapshot, "pods", NULL);
	if (result != 0)
		return command_fail_code(who->kinf, result);
	result = snapshot_made(who->snapshot->snapshot, 0);
	if (result == 0)
		result = output_text(&who->out);
	who_answer_note(answer, note);
	if (*note)
		(void)fprintf(stderr, "note: %s\n", note);
	return result < 0 ? command_fail(result) : PROC_OK;
}

int command_who(int argc, char **argv)
{
	CLEANUP(who_release) struct who_command who = {.out = BUF_INIT};
	struct who_args args = {0};
	struct config_flags flags = {0};
	int first;
	const struct options_group groups[] = {
		{"Options", who_options, ARRAY_SIZE(who_options), &args},
		config_common_options(&flags),
	};
	const struct options options = {"kinf who", "IP | CONTAINER-ID | UID | [NODE/]PID",
		"Prints the pod behind an address, a container, a uid or a process of this "
		"machine: its node, owners and labels. If no pod has it now, those that had it "
		"within the retained history are printed. 'resolve' in kinf.yaml makes it quick.",
		groups, ARRAY_SIZE(groups), false};
	int r = options_parse(&options, argc, argv, &first);

	if (r == 0 && argc - first != 1)
		r = options_bad(&options, "write one address, id, uid or process");
	if (r == 0)
		r = command_read_at(args.at, &who.when);
	if (r != 0)
		return command_usage(&options, r);
	if (command_open(&flags, &who.kinf) < 0 || command_snapshot(who.kinf, &who.snapshot) < 0 ||
		command_go_to(who.kinf, who.snapshot, &who.when) < 0)
		return PROC_FAILED;
	r = who.when.event ? 0 : command_note_state(who.snapshot, "pods", NULL, 0);
	if (r < 0)
		return command_fail_feed(who.kinf, "pods", r);
	struct who_answer answer = {.snapshot = who.snapshot,
		.out = &who.out,
		.form = args.output && strcmp(args.output, "json") == 0 ? WHO_JSON : WHO_TEXT};
	r = kinf_who(who.snapshot, argv[first], args.all ? KINF_WHO_ALL : KINF_WHO_LAST,
		who_answer_put, &answer);
	return who_end(&who, &answer, r);
}
