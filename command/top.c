/* SPDX-License-Identifier: Apache-2.0 */
/* kinf top: the page of kinf status with the rates since the page before, on a terminal. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "command/command.h"
#include "common/cleanup.h"
#include "common/output.h"
#include "common/proc.h"
#include "print/status/status.h"
#include "reader/handle.h"
#include "store/env/home.h"

#define INTERVAL_MIN (SECOND_NS / 10)
#define INTERVAL_MAX (3600 * SECOND_NS)

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

/* Counters of all feeds since the start of the reflector PID. */
struct top_counts {
	uint64_t taken_ns; /* CLOCK_MONOTONIC; 0: none */
	int32_t pid;
	uint64_t start_ns, events, bytes;
};

struct top {
	const struct config_flags *flags;
	uint64_t interval_ns;
	struct top_counts counts; /* of the page */
	bool alive;               /* a daemon runs */
	char error[600];          /* why the store can't be read; "": it can be */
	struct buf page, screen;
};

static void top_release(struct top *top)
{
	buf_release(&top->page);
	buf_release(&top->screen);
}

/* Appends the rates since the page before, if the counters are those of one reflector. */
static void top_put_rates(struct top *top, const struct store_status *status)
{
	const struct stats_process *reflector = &status->processes[HOME_REFLECTOR].page;
	struct top_counts before = top->counts,
			  now = {proc_monotonic_ns(), reflector->pid, reflector->start_ns, 0, 0};

	for (size_t i = 0; i < status->n_feeds; i++) {
		now.events += status->feeds[i].events;
		now.bytes += status->feeds[i].bytes;
	}
	top->counts = now;
	double seconds = (double)(now.taken_ns - before.taken_ns) / 1e9;
	if (!before.taken_ns || now.pid != before.pid || now.start_ns != before.start_ns ||
		now.events < before.events || now.bytes < before.bytes || seconds <= 0)
		return;
	buf_printf(&top->page, "Rates:   %.1f changes/s, ",
		(double)(now.events - before.events) / seconds);
	status_put_bytes((uint64_t)((double)(now.bytes - before.bytes) / seconds), &top->page);
	buf_str(&top->page, "/s read\n");
}

/* Appends the status and the rates to the page. Opens the store each time: its daemons, or itself,
 * may have been replaced. */
static int top_take(struct top *top)
{
	CLEANUP(kinf_close) struct kinf *kinf = NULL;
	CLEANUP(status_release) struct store_status status = {.n_feeds = 0};
	int gathered = status_take(top->flags, &kinf, &status);

	if (!kinf)
		return gathered;
	top->alive = false;
	for (size_t i = 0; i < status.n_processes; i++)
		top->alive |= status.processes[i].alive;
	(void)snprintf(top->error, sizeof(top->error), "%s",
		gathered < 0 || kinf->is_damaged ? status.error : "");
	top_put_rates(top, &status);
	return status_text(&status, &top->page);
}

static void top_pause(uint64_t ns)
{
	const struct timespec pause = {(time_t)(ns / SECOND_NS), (long)(ns % SECOND_NS)};

	(void)nanosleep(&pause, NULL); /* signals end the process */
}

static int top_once(struct top *top)
{
	int r = top_take(top);

	/* There are no rates while no daemon works. */
	if (r == 0 && top->alive) {
		top_pause(top->interval_ns);
		buf_reset(&top->page);
		r = top_take(top);
	}
	if (r == 0)
		r = output_text(&top->page);
	if (r < 0)
		return command_fail(r);
	if (!*top->error)
		return PROC_OK;
	(void)fprintf(stderr, "Error: %s\n", top->error);
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
	struct winsize size = {0};
	char clock[32] = "";
	struct tm parts;
	time_t now = time(NULL);

	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	if (!size.ws_row || !size.ws_col) /* a serial console */
		size = (struct winsize){.ws_row = 24, .ws_col = 80};
	if (localtime_r(&now, &parts))
		(void)strftime(clock, sizeof(clock), "%H:%M:%S", &parts);
	buf_reset(&top->page);
	buf_printf(&top->page, "kinf top %s  every %gs, Ctrl-C ends it\n", clock,
		(double)top->interval_ns / 1e9);
	int r = top_take(top);
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
		uint64_t before_ns = top->counts.taken_ns;
		int r = top_draw(top);

		if (r < 0)
			return command_fail(r);
		/* The first rates come soon. */
		top_pause(before_ns || top->interval_ns < SECOND_NS / 2 ? top->interval_ns
									: SECOND_NS / 2);
	}
}

int command_top(int argc, char **argv)
{
	CLEANUP(top_release) struct top top = {.page = BUF_INIT, .screen = BUF_INIT};
	struct top_args args = {0};
	struct command_line line = {
		.options = {"kinf top", "",
			"Shows the status with its rates, and refreshes it until Ctrl-C is "
			"pressed. Without a terminal prints them once. Programs read 'kinf status "
			"-o json'."},
		.groups = {{"Options", top_options, ARRAY_SIZE(top_options), &args}},
	};
	const char *terminal = getenv("TERM");
	int r = command_parse(&line, argc, argv);

	if (r == 0 && args.interval_ns &&
		(args.interval_ns < INTERVAL_MIN || args.interval_ns > INTERVAL_MAX))
		r = options_bad(&line.options, "--interval: from 100ms to 1h");
	if (r != 0)
		return command_usage(&line, r);
	top.flags = &line.flags;
	bool once = args.once || !isatty(STDOUT_FILENO) || !terminal || !*terminal ||
		    strcmp(terminal, "dumb") == 0;
	top.interval_ns = args.interval_ns ? args.interval_ns : once ? SECOND_NS : 2 * SECOND_NS;
	return once ? top_once(&top) : top_live(&top);
}
