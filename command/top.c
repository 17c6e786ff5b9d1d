/* SPDX-License-Identifier: Apache-2.0 */
#include "command/top.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "command/command.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/output.h"
#include "print/print.h"
#include "reader/handle.h"
#include "store/env/home.h"

#define SECOND_NS    UINT64_C(1000000000)
#define INTERVAL_MIN (SECOND_NS / 10)
#define INTERVAL_MAX (3600 * SECOND_NS)
#define ROWS_MIN     5 /* of the table of feeds, on any terminal */

struct top_args {
	bool once;
	uint64_t interval_ns;
};

static const struct option_spec top_options[] = {
	{0, "once", OPTION_FLAG, offsetof(struct top_args, once), NULL,
		"print everything once, as without a terminal"},
	{0, "interval", OPTION_DURATION, offsetof(struct top_args, interval_ns), "D",
		"between two looks at the store; default 2s, with --once 1s"},
};

struct top {
	const char *directory;
	bool serve_configured;
	uint64_t interval_ns;
	struct kinf *kinf;
	struct top_sample before, now;
	struct buf page, screen;
};

static void top_release(struct top *top)
{
	top_sample_release(&top->before);
	top_sample_release(&top->now);
	buf_release(&top->page);
	buf_release(&top->screen);
	kinf_close(&top->kinf);
}

/* Opens the store, or reopens it after its daemons or the store itself were replaced. Returns: 0;
 * an error; top->kinf has its sentence. */
static int top_open_store(struct top *top)
{
	if (top->kinf && top->kinf->store) {
		int r = home_reopen(store_home(top->kinf->store));

		if (r == 0)
			return 0;
		err_ignore(r, "it is opened again");
	}
	kinf_close(&top->kinf);
	return kinf_open_checked(top->directory, NULL, NULL, true, &top->kinf);
}

/* Takes a sample, and keeps the previous one. Returns: 0, -ENOMEM. */
static int top_take(struct top *top)
{
	int r = top_open_store(top);

	if (!top->kinf)
		return r;
	top_sample_release(&top->before);
	top->before = top->now;
	top->now =
		(struct top_sample){.taken_ns = proc_monotonic_ns(), .wall_ns = proc_realtime_ns()};
	top->now.result = status_gather(top->kinf, top->serve_configured, &top->now.status);
	if (top->now.result < 0 && top->kinf->store)
		kinf_close(&top->kinf); /* the next sample opens it again */
	return 0;
}

static void top_pause(uint64_t ns)
{
	const struct timespec pause = {(time_t)(ns / SECOND_NS), (long)(ns % SECOND_NS)};

	(void)nanosleep(&pause, NULL); /* signals end the process */
}

static int top_once(struct top *top)
{
	int r = top_take(top);

	if (r < 0)
		return command_fail(r);
	/* There are no rates while no daemon works. */
	for (size_t i = 0; i < top->now.status.n_processes; i++)
		if (top->now.status.processes[i].alive) {
			top_pause(top->interval_ns);
			r = top_take(top);
			break;
		}
	if (r == 0)
		r = top_put_page(&top->before, &top->now, 0, &top->page);
	if (r == 0)
		r = output_text(&top->page);
	if (r < 0)
		return command_fail(r);
	if (top->now.result >= 0 && !top->kinf->is_damaged)
		return PROC_OK;
	(void)fprintf(stderr, "Error: %s\n", top->now.status.error);
	return PROC_FAILED;
}

/* Returns at most WIDTH leading characters of TEXT. */
static struct bytes top_clip(struct bytes text, size_t width)
{
	const char *p = text.data;
	size_t i = 0;

	for (; i < text.size; i++)
		if (((unsigned char)p[i] & 0xc0) != 0x80 && !width--)
			break;
	return BYTES(text.data, i);
}

/* Makes a screen of the page, clipped to the terminal. Its escape sequences change no state to
 * restore. */
static int top_draw(struct top *top)
{
	struct winsize size = {.ws_row = 24, .ws_col = 80};
	char clock[32] = "";
	struct tm parts;
	time_t now = (time_t)(top->now.wall_ns / SECOND_NS);

	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	if (localtime_r(&now, &parts))
		(void)strftime(clock, sizeof(clock), "%H:%M:%S", &parts);
	buf_reset(&top->page);
	buf_printf(&top->page, "kinf top %s  every %gs, Ctrl-C ends it\n", clock,
		(double)top->interval_ns / 1e9);
	size_t rows = size.ws_row / 2;
	int r = top_put_page(
		&top->before, &top->now, rows > ROWS_MIN ? rows : ROWS_MIN, &top->page);
	const char *next = (const char *)top->page.data, *end = next + top->page.size;
	buf_str(&top->screen, "\033[H");
	for (unsigned line = 0; r == 0 && next < end && line + 1 < size.ws_row; line++) {
		const char *stop = memchr(next, '\n', (size_t)(end - next));
		size_t length = (size_t)((stop ? stop : end) - next);

		buf_bytes_put(&top->screen, top_clip(BYTES(next, length), size.ws_col));
		buf_str(&top->screen, "\033[K\r\n");
		next += length + 1;
	}
	buf_str(&top->screen, "\033[J");
	return r < 0 ? r : output_text(&top->screen);
}

static int top_live(struct top *top)
{
	for (;;) {
		int r = top_take(top);

		if (r == 0)
			r = top_draw(top);
		if (r < 0)
			return command_fail(r);
		/* The first rates come soon. */
		top_pause(top->before.taken_ns || top->interval_ns < SECOND_NS / 2
				  ? top->interval_ns
				  : SECOND_NS / 2);
	}
}

int command_top(int argc, char **argv)
{
	const char *directory;
	CLEANUP(top_release) struct top top = {.page = BUF_INIT, .screen = BUF_INIT};
	struct top_args args = {0};
	struct config_flags flags = {0};
	const struct options_group groups[] = {
		{"Options", top_options, ARRAY_SIZE(top_options), &args},
		config_common_options(&flags),
	};
	const struct options options = {"kinf top", "",
		"Shows the status and its rates, and refreshes them until Ctrl-C is pressed. "
		"Without a terminal prints them once. Programs read 'kinf status -o json'.",
		groups, ARRAY_SIZE(groups), false};
	const char *terminal = getenv("TERM");
	int r = options_parse_all(&options, argc, argv);

	if (r == 0 && args.interval_ns &&
		(args.interval_ns < INTERVAL_MIN || args.interval_ns > INTERVAL_MAX))
		r = options_bad(&options, "--interval: from 100ms to 1h");
	if (r != 0)
		return command_usage(&options, r);
	r = command_use_store(&flags, &directory);
	if (r < 0)
		return command_fail(r);
	top.directory = directory;
	top.serve_configured = command_has_serve(&flags);
	bool once = args.once || !isatty(STDOUT_FILENO) || !terminal || !*terminal ||
		    strcmp(terminal, "dumb") == 0;
	top.interval_ns = args.interval_ns ? args.interval_ns : once ? SECOND_NS : 2 * SECOND_NS;
	return once ? top_once(&top) : top_live(&top);
}
