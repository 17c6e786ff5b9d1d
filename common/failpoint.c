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
#include "common/text/decimal.h"

enum failpoint_action {
	ACTION_NONE,
	ACTION_KILL,
	ACTION_STOP,
	ACTION_ERROR,
	ACTION_PAUSE,
	ACTION_EXIT
};

/* Set at the start, before threads; only `passed` changes later. */
static struct {
	enum failpoint_action action;
	uint64_t value; /* pause: milliseconds; exit: status */
	int error;      /* error: the code to return */
	uint64_t at;    /* 0: at every passing */
	uint64_t passed;
} failpoints[FAILPOINT_MAX];

static const char *const failpoint_names[FAILPOINT_MAX] = {
#define FAILPOINT(symbol, name, where) [FAILPOINT_##symbol] = name,
#include "common/failpoint.def"
#undef FAILPOINT
};

/* Finds the code of a name of err.def or of errno(3). */
static int failpoint_find_error(struct bytes name, int *ret_code)
{
#define ERR(symbol, code, text) \
	if (bytes_equal(name, BYTES_LIT(#symbol))) { \
		*ret_code = code; \
		return 0; \
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

/* Cuts TEXT at the first DELIMITER; *RET_REST is BYTES_NONE without one. */
static struct bytes failpoint_cut(struct bytes text, char delimiter, struct bytes *ret_rest)
{
	const char *at = text.size ? memchr(text.data, delimiter, text.size) : NULL;

	*ret_rest = BYTES_NONE;
	if (!at)
		return text;
	size_t size = (size_t)(at - (const char *)text.data);
	*ret_rest = BYTES(at + 1, text.size - size - 1);
	return BYTES(text.data, size);
}

static int failpoint_parse_action(int point, struct bytes text)
{
	struct bytes value;
	struct bytes word = failpoint_cut(text, '=', &value);
	bool has_value = value.data;
	int r = 0;

	failpoints[point].error = ERR_FAILPOINT;
	if (bytes_equal(word, BYTES_LIT("kill")) && !has_value) {
		failpoints[point].action = ACTION_KILL;
	} else if (bytes_equal(word, BYTES_LIT("stop")) && !has_value) {
		failpoints[point].action = ACTION_STOP;
	} else if (bytes_equal(word, BYTES_LIT("error"))) {
		failpoints[point].action = ACTION_ERROR;
		if (has_value)
			r = failpoint_find_error(value, &failpoints[point].error);
	} else if (bytes_equal(word, BYTES_LIT("pause"))) {
		failpoints[point].action = ACTION_PAUSE;
		r = decimal_parse(value, 1000 * 3600, &failpoints[point].value);
	} else if (bytes_equal(word, BYTES_LIT("exit"))) {
		failpoints[point].action = ACTION_EXIT;
		r = decimal_parse(value, 255, &failpoints[point].value);
	} else {
		r = err_say(ERR_CONFIG, "no action '%.*s'", BYTES_ARG(text));
	}
	return r;
}

/* Parses POINT:N:ACTION. */
static int failpoint_parse_one(struct bytes text)
{
	struct bytes rest, action;
	struct bytes name = failpoint_cut(text, ':', &rest);
	struct bytes at = failpoint_cut(rest, ':', &action);

	int point = 0;
	while (point < FAILPOINT_MAX && !bytes_equal(bytes_str(failpoint_names[point]), name))
		point++;
	if (point == FAILPOINT_MAX)
		return err_say(ERR_CONFIG,
			"KINF_FAIL: no failpoint '%.*s'; KINF_FAIL=list names them",
			BYTES_ARG(name));
	if (failpoints[point].action != ACTION_NONE)
		return err_say(ERR_CONFIG, "KINF_FAIL: '%.*s' twice", BYTES_ARG(name));
	int r = decimal_parse(at, UINT64_MAX, &failpoints[point].at);
	if (r == 0)
		r = failpoint_parse_action(point, action);
	if (r < 0) {
		(void)err_add(r, "KINF_FAIL: '%.*s'", BYTES_ARG(text));
		return err_say(ERR_CONFIG, "%s", err_text(r)); /* whatever was wrong */
	}
	failpoints[point].passed = 0;
	return 0;
}

int failpoint_setup(void)
{
	const char *text = getenv("KINF_FAIL");

	memset(failpoints, 0, sizeof(failpoints));
	if (!text || !*text)
		return 0;
	if (strcmp(text, "list") == 0) {
#define FAILPOINT(symbol, name, where) (void)printf("%-24s %s\n", name, where);
#include "common/failpoint.def"
#undef FAILPOINT
		(void)fflush(stdout);
		_exit(0);
	}
	struct bytes rest = bytes_str(text);
	while (rest.data) {
		int r = failpoint_parse_one(failpoint_cut(rest, ',', &rest));
		if (r < 0)
			return r;
	}
	return 0;
}

int failpoint_pass(enum failpoint point)
{
	struct timespec left;

	if (failpoints[point].action == ACTION_NONE)
		return 0;
	/* Relaxed: nothing but the count depends on it. */
	uint64_t nth = __atomic_add_fetch(&failpoints[point].passed, 1, __ATOMIC_RELAXED);
	if (failpoints[point].at && failpoints[point].at != nth)
		return 0;
	switch (failpoints[point].action) {
	case ACTION_KILL:
		(void)kill(getpid(), SIGKILL); /* always allowed */
		return 0;
	case ACTION_STOP:
		(void)kill(getpid(), SIGSTOP); /* likewise */
		return 0;
	case ACTION_ERROR:
		return err_set(failpoints[point].error, "failpoint %s", failpoint_names[point]);
	case ACTION_PAUSE:
		left = (struct timespec){.tv_sec = (time_t)(failpoints[point].value / 1000),
			.tv_nsec = (long)(failpoints[point].value % 1000) * 1000000};
		while (nanosleep(&left, &left) < 0 && errno == EINTR)
			;
		return 0;
	case ACTION_EXIT:
		_exit((int)failpoints[point].value);
	case ACTION_NONE:
		break;
	}
	return 0;
}

#endif
