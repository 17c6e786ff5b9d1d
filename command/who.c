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

int command_who(int argc, char **argv)
{
	CLEANUP(command_view_release) struct command_view view = {.kinf = NULL};
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	struct who_args args = {0};
	struct command_line line = {
		.options = {"kinf who", "IP | CONTAINER-ID | UID | [NODE/]PID",
			"Prints the pod behind an address, a container, a uid or a process of this "
			"machine: its node, owners and labels. If no pod has it now, those that "
			"had it within the retained history are printed. 'resolve' in kinf.yaml "
			"makes it quick."},
		.groups = {{"Options", who_options, ARRAY_SIZE(who_options), &args}},
		.takes = {1, 1, "write one address, id, uid or process"},
	};
	char note[WHO_NOTE_SIZE];
	int r = command_parse(&line, argc, argv);

	if (r == 0)
		r = command_read_at(args.at, &view.when);
	if (r != 0)
		return command_usage(&line, r);
	if (command_view_open(&view, &line.flags) < 0 ||
		command_note_state(&view, "pods", NULL, 0) != PROC_OK)
		return PROC_FAILED;
	struct who_answer answer = {.snapshot = view.snapshot,
		.out = &out,
		.form = command_is_json(args.output) ? WHO_JSON : WHO_TEXT};
	r = kinf_who(view.snapshot, line.operands[0], args.all ? KINF_WHO_ALL : KINF_WHO_LAST,
		who_answer_put, &answer);
	if (r != 0)
		return command_fail_read(view.kinf, "pods", r);
	r = snapshot_made(view.snapshot->snapshot, 0);
	if (r == 0)
		r = output_text(&out);
	who_answer_note(&answer, note);
	if (*note)
		(void)fprintf(stderr, "note: %s\n", note);
	return r < 0 ? command_fail(r) : PROC_OK;
}
