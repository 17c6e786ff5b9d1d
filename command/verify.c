/* SPDX-License-Identifier: Apache-2.0 */
/* kinf verify [--deep] [FEED] */
#include <inttypes.h>
#include <stdio.h>

#include "command/command.h"
#include "command/manage/ticker.h"
#include "common/output.h"
#include "store/verify/verify.h"

struct verify_args {
	bool deep;
};

static const struct option_spec verify_options[] = {
	{0, "deep", OPTION_FLAG, offsetof(struct verify_args, deep), NULL,
		"read every body also, and compare its terms with the index"},
};

static void verify_show(void *ticker, uint64_t done, const char *unit)
{
	ticker_show(ticker, done, 0, unit);
}

static void verify_print_fault(void *ticker, const char *sentence)
{
	ticker_clear(ticker);
	(void)printf("%s\n", sentence);
}

int command_verify(int argc, char **argv)
{
	const char *directory;
	struct verify_args args = {0};
	struct verify_report report;
	struct ticker ticker = {.what = "verifying"};
	struct command_line line = {
		.options = {"kinf verify", "[FEED]",
			"Cross-checks journal, index and events. Prints one line per fault, and "
			"then "
			"exits with 1. Works while the daemons run, without them, and on a copy; "
			"writes nothing."},
		.groups = {{"Options", verify_options, ARRAY_SIZE(verify_options), &args}},
		.takes = {0, 1, "write at most one feed"},
	};
	int r = command_parse(&line, argc, argv);

	if (r != 0)
		return command_usage(&line, r);
	r = command_use_store(&line.flags, &directory);
	if (r < 0)
		return command_fail(r);
	const struct verify_options how = {.deep = args.deep,
		.salvage = true,
		.feed = line.n ? line.operands[0] : NULL,
		.fault = verify_print_fault,
		.progress = verify_show,
		.arg = &ticker};
	r = verify_store(directory, &how, &report);
	ticker_clear(&ticker);
	if (r < 0)
		return command_fail(r);
	r = output_flush();
	if (r < 0)
		return command_fail(r);
	(void)fprintf(stderr,
		"%" PRIu64 " records, %" PRIu64 " heads, %" PRIu64 " objects, %" PRIu64
		" terms, %" PRIu64 " postings, %" PRIu64 " bodies read%s: %" PRIu64 " fault%s\n",
		report.records, report.heads, report.objects, report.terms, report.postings,
		report.bodies,
		report.has_index ? ""
		: report.faults  ? "; the index was not read"
				 : "; there is no index",
		report.faults, report.faults == 1 ? "" : "s");
	return report.faults ? PROC_FAILED : PROC_OK;
}
