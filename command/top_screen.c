/* SPDX-License-Identifier: Apache-2.0 */
/* The page of kinf top on a terminal. */
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "command/top.h"
#include "common/check.h"
#include "common/cleanup.h"
#include "common/daemon/faults.h"
#include "common/err.h"

/* Last: it defines a macro ERR, and err.h uses one of that name. */
#include <ncurses.h>
#include <termcap.h>

#define TOP_SCREEN_MAGIC 0x746f7073u
#define ROWS_MIN         5 /* of the table, before lines about the store are left out */
#define ESCAPE_MS        25
#define CTRL_L           12

struct top_screen {
	uint32_t magic;
	SCREEN *screen;
	bool colours;
	size_t rows;
	sigset_t while_waiting; /* signals that are blocked then: not SIGWINCH */
	sigset_t before;
};

/* For the handler of memory faults: the terminal as it was, and the text that leaves the page. */
static struct termios top_terminal;
static char top_leave[64];

static void top_screen_abandon(void)
{
	ssize_t n = write(STDOUT_FILENO, top_leave, strlen(top_leave));

	(void)n; /* the process ends */
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &top_terminal);
}

/* ---- opening ------------------------------------------------------------ */

/* Blocks SIGWINCH but while the program waits, so that none is missed before it. */
static void top_screen_block(struct top_screen *screen)
{
	sigset_t resize;

	(void)sigemptyset(&resize);
	(void)sigaddset(&resize, SIGWINCH);
	(void)sigprocmask(SIG_BLOCK, &resize, &screen->before);
	screen->while_waiting = screen->before;
	(void)sigdelset(&screen->while_waiting, SIGWINCH);
}

/* Lets the terminal send no SIGQUIT, which would end the process without giving the terminal
 * back. */
static void top_screen_set_keys(void)
{
	struct termios mode;

	(void)cbreak();
	(void)noecho();
	(void)nonl();
	(void)nodelay(stdscr, true);
	(void)keypad(stdscr, true);
	(void)set_escdelay(ESCAPE_MS);
	if (tcgetattr(STDIN_FILENO, &mode) == 0) {
		mode.c_cc[VQUIT] = _POSIX_VDISABLE;
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &mode);
		(void)def_prog_mode();
	}
}

static void top_screen_set_colours(struct top_screen *screen)
{
	const char *no_colour = getenv("NO_COLOR");

	screen->colours = !(no_colour && *no_colour) && has_colors() && start_color() != ERR &&
			  use_default_colors() != ERR &&
			  init_pair(TOP_WARNING, COLOR_YELLOW, -1) != ERR &&
			  init_pair(TOP_BAD, COLOR_RED, -1) != ERR;
}

int top_screen_open(struct top_screen **ret_screen)
{
	const char *terminal = getenv("TERM"), *leave;

	*ret_screen = NULL;
	if (!terminal || !*terminal || strcmp(terminal, "dumb") == 0)
		return err_say(NOT_FOUND, "the terminal can't show a page (TERM=%s)",
			terminal ? terminal : "");
	CLEANUP(top_screen_close) struct top_screen *screen = calloc(1, sizeof(*screen));
	if (!screen)
		return err_set(-ENOMEM, "the terminal");
	screen->magic = TOP_SCREEN_MAGIC;
	if (tcgetattr(STDIN_FILENO, &top_terminal) < 0)
		return err_set(-errno, "the terminal");
	(void)setlocale(
		LC_CTYPE, ""); /* for the characters of names; nothing else here asks for it */
	top_screen_block(screen);
	/* Before newterm(), which leaks memory when it fails. */
	if (tgetent(NULL, terminal) != 1)
		return err_say(NOT_FOUND, "the terminal '%s' (TERM) is not known here", terminal);
	if (!tgetstr("cm", NULL))
		return err_say(NOT_FOUND, "the terminal '%s' (TERM) can't show a page", terminal);
	screen->screen = newterm(NULL, stdout, stdin);
	if (!screen->screen)
		return err_say(NOT_FOUND, "the terminal '%s' (TERM) can't be used", terminal);
	leave = tgetstr("te", NULL);
	if (leave && strlen(leave) < sizeof(top_leave))
		memcpy(top_leave, leave, strlen(leave) + 1);
	top_screen_set_keys();
	top_screen_set_colours(screen);
	faults_before_end(top_screen_abandon);
	*ret_screen = TAKE(screen);
	return 0;
}

void top_screen_close(struct top_screen **screen)
{
	if (!screen || !*screen)
		return;
	struct top_screen *s = TAKE(*screen);

	CHECK_OBJ(s, TOP_SCREEN_MAGIC);
	faults_before_end(NULL);
	if (s->screen) {
		(void)endwin();
		delscreen(s->screen);
	}
	(void)sigprocmask(SIG_SETMASK, &s->before, NULL);
	s->magic = 0;
	free(s);
}

/* ---- drawing ------------------------------------------------------------ */

/* Writes TEXT as line Y, clipped. */
static void top_screen_line(int y, struct bytes text, attr_t attributes)
{
	text = top_clip(text, (size_t)COLS);
	(void)attrset(attributes);
	(void)mvaddnstr(y, 0, text.data, (int)text.size);
	(void)attrset(A_NORMAL);
}

/* Writes the lines of TEXT, at most MAX. Returns the line after them. */
static int top_screen_lines(int y, struct bytes text, int max)
{
	const char *next = text.data, *end = next + text.size;

	for (; next < end && max > 0; max--) {
		const char *stop = memchr(next, '\n', (size_t)(end - next));
		size_t size = (size_t)((stop ? stop : end) - next);

		top_screen_line(y++, BYTES(next, size),
			strncmp(next, "Error:", 6) == 0 ? A_BOLD : A_NORMAL);
		next += size + 1;
	}
	return y;
}

static attr_t top_screen_tone(const struct top_screen *screen, enum top_tone tone)
{
	attr_t colour = screen->colours ? (attr_t)COLOR_PAIR(tone) : A_NORMAL;

	return tone == TOP_GOOD ? A_NORMAL : tone == TOP_BAD ? colour | A_BOLD : colour;
}

/* Writes the heading and up to MAX rows from FIRST on. SORTED_BY: a column whose heading is
 * marked; no column: none. */
static int top_screen_table(const struct top_screen *screen, int y, const struct top_table *table,
	size_t first, size_t max, size_t sorted_by)
{
	CLEANUP(buf_release) struct buf line = BUF_INIT;
	struct top_layout layout;

	top_fit(table, (size_t)COLS, &layout);
	top_put_row(table, &layout, NULL, &line);
	top_screen_line(y, buf_bytes(&line), A_BOLD);
	if (sorted_by < table->n_columns && layout.width[sorted_by])
		(void)mvchgat(y, (int)top_column_at(&layout, sorted_by),
			(int)layout.width[sorted_by], A_BOLD | A_REVERSE, 0, NULL);
	for (size_t i = first; i < table->n && i - first < max; i++) {
		buf_reset(&line);
		top_put_row(table, &layout, &table->rows[i], &line);
		top_screen_line(
			++y, buf_bytes(&line), top_screen_tone(screen, table->rows[i].tone));
	}
	return y + 1;
}

/* Writes what stands above the table as far as there is room: processes matter more than sizes. */
static int top_screen_head(const struct top_screen *screen, const struct top_page *page)
{
	int room = LINES - 2 - (ROWS_MIN + 1), y = 1;
	int processes = page->processes->n ? (int)page->processes->n + 2 : 0;

	if (room < processes)
		processes = 0;
	if (room > processes)
		y = top_screen_lines(y, page->store, room - processes);
	if (processes) {
		y = top_screen_table(screen, y, page->processes, 0, SIZE_MAX, TOP_COLUMNS);
		y++;
	}
	return y;
}

void top_screen_draw(struct top_screen *screen, struct top_page *page)
{
	CLEANUP(buf_release) struct buf title = BUF_INIT;
	int y;

	(void)erase();
	buf_printf(&title, "%-*s", COLS, page->title);
	top_screen_line(0, buf_bytes(&title), A_REVERSE);
	y = page->help ? 2 : top_screen_head(screen, page);
	screen->rows = LINES - 2 - y > 0 ? (size_t)(LINES - 2 - y) : 0;
	if (page->help) {
		(void)top_screen_lines(y, bytes_str(page->help), LINES - 1 - y);
	} else {
		size_t last = page->table->n > screen->rows ? page->table->n - screen->rows : 0;

		page->first = page->first > last ? last : page->first;
		(void)top_screen_table(
			screen, y, page->table, page->first, screen->rows, page->sorted_by);
	}
	top_screen_line(LINES - 1, bytes_str(page->foot), page->waiting ? A_BOLD : A_DIM);
	(void)curs_set(page->waiting);
	(void)refresh();
}

size_t top_screen_rows(const struct top_screen *screen)
{
	return screen->rows;
}

/* ---- keys --------------------------------------------------------------- */

int top_screen_key(struct top_screen *screen)
{
	static const struct {
		int code;
		enum top_key key;
	} keys[] = {
		{ERR, TOP_KEY_NONE},
		{KEY_RESIZE, TOP_KEY_RESIZE},
		{KEY_UP, TOP_KEY_UP},
		{KEY_DOWN, TOP_KEY_DOWN},
		{KEY_PPAGE, TOP_KEY_PAGE_UP},
		{KEY_NPAGE, TOP_KEY_PAGE_DOWN},
		{KEY_HOME, TOP_KEY_HOME},
		{KEY_END, TOP_KEY_END},
		{KEY_LEFT, TOP_KEY_LEFT},
		{KEY_RIGHT, TOP_KEY_RIGHT},
		{KEY_ENTER, TOP_KEY_ENTER},
		{'\r', TOP_KEY_ENTER},
		{'\n', TOP_KEY_ENTER},
		{27, TOP_KEY_ESCAPE},
		{KEY_BACKSPACE, TOP_KEY_ERASE},
		{127, TOP_KEY_ERASE},
		{8, TOP_KEY_ERASE},
		{'\t', TOP_KEY_TAB},
	};
	int code = getch();

	CHECK_OBJ(screen, TOP_SCREEN_MAGIC);
	/* A terminal of another size may show anything. So may one that the person asks to draw
	 * again. */
	if (code == KEY_RESIZE || code == CTRL_L)
		(void)clearok(curscr, true);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (keys[i].code == code)
			return (int)keys[i].key;
	return code >= ' ' && code < 256 ? TOP_KEY_CHARACTER + code : TOP_KEY_OTHER;
}

bool top_screen_wait(struct top_screen *screen, int fd, int milliseconds)
{
	struct pollfd fds[] = {
		{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
	const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
	int ready = ppoll(fds, 2, &time, &screen->while_waiting);

	return ready <= 0 || !(fds[0].revents & (POLLHUP | POLLERR | POLLNVAL));
}
