/* SPDX-License-Identifier: Apache-2.0 */
#include "common/failpoint.h"

#ifdef KINF_FAILPOINTS

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/err.h"
#include "common/decimal.h"

enum action { ACTION_NONE, ACTION_KILL, ACTION_STOP, ACTION_ERROR, ACTION_PAUSE, ACTION_EXIT };

/* Set once at start, before there are threads; only `passed` changes later. */
static struct {
	enum action action;
	uint64_t value; /* pause: milliseconds; exit: status */
	int error;      /* error: the code to return */
	uint64_t at;    /* 0: at every passing */
	uint64_t passed;
} points[FAILPOINT_MAX];

static const char *const names[FAILPOINT_MAX] = {
#define FAILPOINT(symbol, name, where) [FAILPOINT_##symbol] = name,
#include "common/failpoint.def"
#undef FAILPOINT
};

static void print_names(void)
{
#define FAILPOINT(symbol, name, where) (void)printf("%-24s %s\n", name, where);
#include "common/failpoint.def"
#undef FAILPOINT
	(void)fflush(stdout);
}

static int find_point(struct bytes name)
{
	for (int i = 0; i < FAILPOINT_MAX; i++) {
		if (bytes_equal(bytes_str(names[i]), name))
			return i;
	}
	return err_say(ERR_CONFIG, "KINF_FAIL: no failpoint '%.*s'; KINF_FAIL=list names them",
		BYTES_ARG(name));
}

/* A name of err.def or of errno(3). */
static int find_error(struct bytes name, int *ret_code)
{
#define ERR(symbol, code, text)                                                                    \
	if (bytes_equal(name, BYTES_LIT(#symbol))) {                                               \
		*ret_code = code;                                                                  \
		return 0;                                                                          \
	}
#include "common/err.def"
#undef ERR
	for (int e = 1; e < 200; e++) {
		const char *known = strerrorname_np(e);
		if (known && bytes_equal(bytes_str(known), name)) {
			*ret_code = -e;
			return 0;
		}
	}
	return err_say(ERR_CONFIG, "no error '%.*s'", BYTES_ARG(name));
}

/* Cuts TEXT at the first DELIMITER; the rest is what comes behind it, BYTES_NONE without one. */
static struct bytes cut(struct bytes text, char delimiter, struct bytes *ret_rest)
{
	const char *at = text.size ? memchr(text.data, delimiter, text.size) : NULL;

	*ret_rest = BYTES_NONE;
	if (!at)
		return text;
	size_t size = (size_t)(at - (const char *)text.data);
	*ret_rest = BYTES(at + 1, text.size - size - 1);
	return BYTES(text.data, size);
}

static int parse_action(int point, struct bytes text)
{
	struct bytes value;
	struct bytes word = cut(text, '=', &value);
	bool has_value = value.data;
	int r = 0;

	points[point].error = ERR_FAILPOINT;
	if (bytes_equal(word, BYTES_LIT("kill")) && !has_value) {
		points[point].action = ACTION_KILL;
	} else if (bytes_equal(word, BYTES_LIT("stop")) && !has_value) {
		points[point].action = ACTION_STOP;
	} else if (bytes_equal(word, BYTES_LIT("error"))) {
		points[point].action = ACTION_ERROR;
		if (has_value)
			r = find_error(value, &points[point].error);
	} else if (bytes_equal(word, BYTES_LIT("pause"))) {
		points[point].action = ACTION_PAUSE;
		r = decimal_parse(value, 1000 * 3600, &points[point].value);
	} else if (bytes_equal(word, BYTES_LIT("exit"))) {
		points[point].action = ACTION_EXIT;
		r = decimal_parse(value, 255, &points[point].value);
	} else {
		r = err_say(ERR_CONFIG, "no action '%.*s'", BYTES_ARG(text));
	}
	return r;
}

/* POINT:N:ACTION */
static int parse_one(struct bytes text)
{
	struct bytes rest, action;
	struct bytes name = cut(text, ':', &rest);
	struct bytes at = cut(rest, ':', &action);

	int point = find_point(name);
	if (point < 0)
		return point;
	if (points[point].action != ACTION_NONE)
		return err_say(ERR_CONFIG, "KINF_FAIL: '%.*s' twice", BYTES_ARG(name));
	int r = decimal_parse(at, UINT64_MAX, &points[point].at);
	if (r == 0)
		r = parse_action(point, action);
	if (r < 0) {
		(void)err_add(r, "KINF_FAIL: '%.*s'", BYTES_ARG(text));
		return err_say(ERR_CONFIG, "%s", err_text(r)); /* whatever was wrong */
	}
	points[point].passed = 0;
	return 0;
}

int failpoint_setup(void)
{
	const char *text = getenv("KINF_FAIL");

	memset(points, 0, sizeof(points));
	if (!text || !*text)
		return 0;
	if (strcmp(text, "list") == 0) {
		print_names();
		_exit(0);
	}
	struct bytes rest = bytes_str(text);
	while (rest.data) {
		int r = parse_one(cut(rest, ',', &rest));
		if (r < 0)
			return r;
	}
	return 0;
}

static void pause_ms(uint64_t ms)
{
	struct timespec left = {.tv_sec = (time_t)(ms / 1000),
		.tv_nsec = (long)(ms % 1000) * 1000000};

	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

int failpoint_pass(enum failpoint point)
{
	if (points[point].action == ACTION_NONE)
		return 0;
	/* Relaxed: the count alone decides, it publishes nothing. */
	uint64_t nth = __atomic_add_fetch(&points[point].passed, 1, __ATOMIC_RELAXED);
	if (points[point].at && points[point].at != nth)
		return 0;
	switch (points[point].action) {
	case ACTION_KILL:
		(void)kill(getpid(), SIGKILL); /* always allowed */
		return 0;
	case ACTION_STOP:
		(void)kill(getpid(), SIGSTOP); /* likewise */
		return 0;
	case ACTION_ERROR:
		return err_set(points[point].error, "failpoint %s", names[point]);
	case ACTION_PAUSE:
		pause_ms(points[point].value);
		return 0;
	case ACTION_EXIT:
		_exit((int)points[point].value);
	case ACTION_NONE:
		break;
	}
	return 0;
}

#endif
