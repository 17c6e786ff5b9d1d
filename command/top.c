/* SPDX-License-Identifier: Apache-2.0 */
/* kinf top: the command, its state and its keys. */
#include "command/top.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "command/command.h"
#include "common/cleanup.h"
#include "common/daemon/faults.h"
#include "common/daemon/signals.h"
#include "common/err.h"
#include "common/output.h"
#include "print/print.h"
#include "reader/handle.h"
#include "store/env/home.h"

#define SECOND_NS    UINT64_C(1000000000)
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

struct top {
	const char *directory;
	bool serve_configured;
	uint64_t interval_ns;
	struct kinf *kinf;
	struct top_sample before, now;
	int signals;
	/* The page. */
	struct top_screen *screen;
	struct top_table table, processes;
	struct buf store;
	enum top_panel panel;
	size_t sorted_by[TOP_PANELS];
	bool reversed[TOP_PANELS];
	size_t first[TOP_PANELS]; /* the first row that is shown */
	char filter[64], typed[64];
	bool typing, paused, help, ended, lost;
};

static void top_release(struct top *top)
{
	top_screen_close(&top->screen);
	top_sample_release(&top->before);
	top_sample_release(&top->now);
	top_table_release(&top->table);
	top_table_release(&top->processes);
	buf_release(&top->store);
	kinf_close(&top->kinf);
	cleanup_fd(&top->signals);
}

/* ---- samples ------------------------------------------------------------ */

/* Opens the store, or follows it: its daemons may have ended and started meanwhile, or another
 * store be in its place. Returns 0, or the error, with which top->kinf can still be asked for
 * its sentence. */
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

/* Takes a sample; the one that was the newest becomes the one before. Returns 0, -ENOMEM. */
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
		kinf_close(&top->kinf); /* the next one begins again */
	return 0;
}

/* ---- once --------------------------------------------------------------- */

/* Waits between two samples. Returns false after a signal that ends the program. */
static bool top_pause(struct top *top)
{
	struct pollfd signals = {.fd = top->signals, .events = POLLIN};
	uint64_t end_ns = proc_monotonic_ns() + top->interval_ns;
	int number;

	while (proc_monotonic_ns() < end_ns) {
		(void)poll(&signals, 1, proc_ms_until(end_ns));
		while ((number = signals_next(top->signals)) > 0)
			if (number != SIGCHLD)
				return false;
	}
	return true;
}

static int top_once(struct top *top)
{
	int r = top_take(top);

	if (r < 0)
		return command_fail(r);
	/* Nothing changes, and so there are no rates, while no daemon works. */
	for (size_t i = 0; i < top->now.status.n_processes; i++)
		if (top->now.status.processes[i].alive) {
			if (!top_pause(top))
				return PROC_FAILED;
			r = top_take(top);
			break;
		}
	if (r == 0)
		r = top_plain(&top->before, &top->now, &top->store);
	if (r == 0)
		r = output_text(&top->store);
	if (r < 0)
		return command_fail(r);
	if (top->now.result >= 0 && !top->kinf->is_damaged)
		return PROC_OK;
	(void)fprintf(stderr, "Error: %s\n", top->now.status.error);
	return PROC_FAILED;
}

/* ---- the page ----------------------------------------------------------- */

static const char top_help[] =
	"Tab, 1 2 3   feeds, readers, followers (named cursors)\n"
	"< >          sort by the column to the left, to the right\n"
	"r            reverse the order\n"
	"/            show only rows with a text; Enter keeps it, Escape clears it\n"
	"arrows       scroll; also j k, Page Up and Down, Home and End\n"
	"p, space     pause and go on\n"
	"+ -          look more or less often\n"
	"h, ?         this help\n"
	"q, Ctrl-C    quit\n"
	"\n"
	"CHANGES/S and READ/S count since the line before; '-' means not known yet.\n"
	"CONTACT is the time since the last event, bookmark or list; bookmarks come\n"
	"about once a minute. LAG: changes that readers do not see yet. RSS contains the\n"
	"mapped files, which all programs share; ANON is the process's own memory.\n"
	"BEHIND: transactions since a reader's oldest snapshot; events that a follower\n"
	"has not handled.\n";

/* Fills the tables from the samples. */
static int top_fill_page(struct top *top)
{
	top_table_release(&top->table);
	top_table_release(&top->processes);
	buf_reset(&top->store);
	top_put_store(&top->before, &top->now, &top->store);
	int r = top_rows(&top->before, &top->now, TOP_PROCESSES, &top->processes);
	if (r == 0)
		r = top_rows(&top->before, &top->now, top->panel, &top->table);
	if (r == 0)
		r = buf_error(&top->store);
	if (r < 0)
		return r;
	top_keep(&top->table, top->typing ? top->typed : top->filter);
	top_sort(&top->table, top->sorted_by[top->panel], top->reversed[top->panel]);
	return 0;
}

static int top_draw(struct top *top)
{
	char title[600], foot[300], clock[32] = "";
	time_t now = (time_t)(top->now.wall_ns / SECOND_NS);
	struct tm parts;
	int r = top_fill_page(top);

	if (r < 0)
		return r;
	if (localtime_r(&now, &parts))
		(void)strftime(clock, sizeof(clock), "%H:%M:%S", &parts);
	(void)snprintf(title, sizeof(title), "kinf top %s  every %gs%s", clock,
		(double)top->interval_ns / 1e9, top->paused ? "  PAUSED" : "");
	if (top->typing)
		(void)snprintf(foot, sizeof(foot), "/%s", top->typed);
	else if (top->help)
		(void)snprintf(foot, sizeof(foot), "any key: back");
	else
		(void)snprintf(foot, sizeof(foot), "%s: %zu%s%s  Tab <> r / p h q",
			top->table.title, top->table.n, *top->filter ? " with " : "", top->filter);
	struct top_page page = {.title = title,
		.store = buf_bytes(&top->store),
		.processes = &top->processes,
		.table = &top->table,
		.sorted_by = top->sorted_by[top->panel],
		.first = top->first[top->panel],
		.foot = foot,
		.help = top->help ? top_help : NULL,
		.waiting = top->typing};
	top_screen_draw(top->screen, &page);
	top->first[top->panel] = page.first;
	return 0;
}

/* ---- keys --------------------------------------------------------------- */

static void top_type(struct top *top, int key)
{
	size_t size = strlen(top->typed);

	if (key == TOP_KEY_ENTER || key == TOP_KEY_ESCAPE) {
		(void)snprintf(top->filter, sizeof(top->filter), "%s",
			key == TOP_KEY_ENTER ? top->typed : "");
		top->typing = false;
	} else if (key == TOP_KEY_ERASE && size) {
		while (--size && ((unsigned char)top->typed[size] & 0xc0) == 0x80)
			;
		top->typed[size] = '\0';
	} else if (key >= TOP_KEY_CHARACTER && size + 1 < sizeof(top->typed)) {
		top->typed[size] = (char)(key - TOP_KEY_CHARACTER);
		top->typed[size + 1] = '\0';
	}
}

static void top_scroll(struct top *top, int key)
{
	size_t *first = &top->first[top->panel], page = top_screen_rows(top->screen), step = 1;

	if (key == TOP_KEY_PAGE_UP || key == TOP_KEY_PAGE_DOWN)
		step = page > 1 ? page - 1 : 1;
	if (key == TOP_KEY_HOME)
		*first = 0;
	else if (key == TOP_KEY_END)
		*first = SIZE_MAX;
	else if (key == TOP_KEY_UP || key == TOP_KEY_PAGE_UP)
		*first -= *first < step ? *first : step;
	else
		*first += step;
}

static void top_command_key(struct top *top, int key)
{
	enum top_panel panel = top->panel;

	switch (key) {
	case 'q':
		top->ended = true;
		break;
	case 'h':
	case '?':
		top->help = true;
		break;
	case 'p':
	case ' ':
		top->paused = !top->paused;
		break;
	case 'r':
		top->reversed[panel] = !top->reversed[panel];
		break;
	case '<':
		top->sorted_by[panel] -= top->sorted_by[panel] > 0;
		break;
	case '>':
		top->sorted_by[panel] += top->sorted_by[panel] + 1 < top->table.n_columns;
		break;
	case '/':
		(void)snprintf(top->typed, sizeof(top->typed), "%s", top->filter);
		top->typing = true;
		break;
	case '1':
	case '2':
	case '3':
		top->panel = (enum top_panel)(key - '1');
		break;
	case '+':
		top->interval_ns =
			top->interval_ns / 2 < INTERVAL_MIN ? INTERVAL_MIN : top->interval_ns / 2;
		break;
	case '-':
		top->interval_ns =
			top->interval_ns * 2 > INTERVAL_MAX ? INTERVAL_MAX : top->interval_ns * 2;
		break;
	default:
		break;
	}
}

static void top_act(struct top *top, int key)
{
	if (key == TOP_KEY_RESIZE || key == TOP_KEY_OTHER)
		return; /* it is drawn again in any case */
	if (top->help) {
		top->help = false;
	} else if (top->typing) {
		top_type(top, key);
	} else if (key == TOP_KEY_TAB) {
		top->panel = (enum top_panel)((top->panel + 1) % TOP_PROCESSES);
	} else if (key == TOP_KEY_LEFT || key == TOP_KEY_RIGHT) {
		top_command_key(top, key == TOP_KEY_LEFT ? '<' : '>');
	} else if (key == TOP_KEY_ESCAPE) {
		*top->filter = '\0';
	} else if (key == TOP_KEY_CHARACTER + 'j' || key == TOP_KEY_CHARACTER + 'k') {
		top_scroll(top, key == TOP_KEY_CHARACTER + 'k' ? TOP_KEY_UP : TOP_KEY_DOWN);
	} else if (key >= TOP_KEY_CHARACTER) {
		top_command_key(top, key - TOP_KEY_CHARACTER);
	} else {
		top_scroll(top, key);
	}
}

/* Waits until UNTIL_NS for keys and signals, and handles those that have come. */
static void top_wait(struct top *top, uint64_t until_ns)
{
	int key, number;

	top->lost = !top_screen_wait(top->screen, top->signals, proc_ms_until(until_ns));
	while ((number = signals_next(top->signals)) > 0) {
		top->ended |= number != SIGCHLD;
		top->lost |= number == SIGHUP;
	}
	while (!top->lost && (key = top_screen_key(top->screen)) != TOP_KEY_NONE)
		top_act(top, key);
}

static int top_live(struct top *top)
{
	uint64_t due_ns = 0;
	int r = 0;

	while (r == 0 && !top->ended && !top->lost) {
		uint64_t now = proc_monotonic_ns();

		if (now >= due_ns && !(top->paused && top->now.taken_ns)) {
			r = top_take(top);
			/* The first rates come soon. */
			due_ns = now + (top->before.taken_ns ? top->interval_ns : SECOND_NS / 2);
		}
		if (r == 0)
			r = top_draw(top);
		if (r == 0)
			top_wait(top, top->paused ? now + INTERVAL_MAX : due_ns);
	}
	top_screen_close(&top->screen);
	if (r < 0)
		return command_fail(r);
	return top->lost ? PROC_FAILED : PROC_OK;
}

/* ---- the command -------------------------------------------------------- */

/* Chooses how to show it. Returns: 0: on the terminal; NOT_FOUND: once; errors. */
static int top_choose(struct top *top, bool once)
{
	if (once || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		return NOT_FOUND;
	int r = top_screen_open(&top->screen);
	if (r == NOT_FOUND)
		(void)fprintf(stderr, "note: %s: printed once\n", err_text(r));
	return r;
}

int command_top(int argc, char **argv)
{
	/* Kept for the life of the process: the handler of memory faults names it. */
	static char *directory;
	CLEANUP(top_release) struct top top = {.store = BUF_INIT, .signals = -1};
	struct top_args args = {0};
	struct config_flags flags = {0};
	const struct options_group groups[] = {
		{"Options", top_options, ARRAY_SIZE(top_options), &args},
		config_common_options(&flags),
	};
	const struct options options = {"kinf top", "",
		"Shows the status and its rates, and refreshes them until 'q' is pressed; 'h' "
		"explains the keys. "
		"Without a terminal prints them once. Programs read 'kinf status -o json'.",
		groups, ARRAY_SIZE(groups), false};
	int r = options_parse_all(&options, argc, argv);

	if (r == 0 && args.interval_ns &&
		(args.interval_ns < INTERVAL_MIN || args.interval_ns > INTERVAL_MAX))
		r = options_bad(&options, "--interval: from 100ms to 1h");
	if (r != 0)
		return command_usage(&options, r);
	r = command_store(&flags, &directory);
	if (r < 0)
		return command_fail(r);
	faults_catch("kinf", directory);
	top.directory = directory;
	top.serve_configured = command_has_serve(&flags);
	for (size_t i = 0; i < TOP_PANELS; i++)
		top.sorted_by[i] = top_sorted_by((enum top_panel)i);
	top.signals = r = signals_open();
	if (r >= 0)
		r = top_choose(&top, args.once);
	if (r < 0)
		return command_fail(r);
	top.interval_ns = args.interval_ns ? args.interval_ns : r == 0 ? 2 * SECOND_NS : SECOND_NS;
	return r == 0 ? top_live(&top) : top_once(&top);
}
