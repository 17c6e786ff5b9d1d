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
#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/decimal.h"

enum failpoint_action {
	ACTION_NONE,
	ACTION_KILL,
	ACTION_STOP,
	ACTION_ERROR,
	ACTION_PAUSE,
	ACTION_MAX
};

static const char *const failpoint_actions[ACTION_MAX] = {"", "kill", "stop", "error", "pause"};

/* Set at the start, before threads; only `passed` changes later. */
static struct {
	enum failpoint_action action;
	uint64_t pause_ms;
	int error;   /* error: the code to return */
	uint64_t at; /* 0: at every passing */
	uint64_t passed;
} failpoints[FAILPOINT_MAX];

static const char *const failpoint_names[FAILPOINT_MAX] = {
#define FAILPOINT(symbol, name, where) [FAILPOINT_##symbol] = name,
#include "common/failpoint.def"
#undef FAILPOINT
};

/* Returns the code of a name of err.def or of errno(3); 0: there is none. */
static int failpoint_error(const char *name)
{
#define ERR(symbol, code, text) \
	if (strcmp(name, #symbol) == 0) \
		return code;
#include "common/err.def"
#undef ERR
	for (int e = 1; e < 200; e++) {
		const char *known = strerrorname_np(e);
		if (known && strcmp(known, name) == 0)
			return -e;
	}
	return 0;
}

/* Parses POINT:N:ACTION or POINT:N:ACTION=VALUE; cuts TEXT. Returns false if it is none. */
static bool failpoint_parse(char *text)
{
	char *name = strsep(&text, ":"), *at = strsep(&text, ":"), *word = strsep(&text, "=");
	int point = 0, action = ACTION_KILL;

	while (point < FAILPOINT_MAX && strcmp(failpoint_names[point], name) != 0)
		point++;
	while (word && action < ACTION_MAX && strcmp(failpoint_actions[action], word) != 0)
		action++;
	if (point == FAILPOINT_MAX || !word || action == ACTION_MAX ||
		decimal_parse(bytes_str(at), UINT64_MAX, &failpoints[point].at) < 0)
		return false;
	failpoints[point].action = (enum failpoint_action)action;
	failpoints[point].error = ERR_FAILPOINT;
	if (text)
		failpoints[point].error = failpoint_error(text);
	switch (failpoints[point].action) {
	case ACTION_ERROR:
		return failpoints[point].error;
	case ACTION_PAUSE:
		return decimal_parse(bytes_str(text), 1000 * 3600, &failpoints[point].pause_ms) ==
		       0;
	default:
		return !text;
	}
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
	AUTO_FREE char *copy = strdup(text);
	char *rest = copy;
	if (!copy)
		return err_set(-ENOMEM, "KINF_FAIL");
	while (rest)
		if (!failpoint_parse(strsep(&rest, ",")))
			return err_say(ERR_CONFIG,
				"KINF_FAIL: '%s': write POINT:N:ACTION (common/failpoint.h); "
				"KINF_FAIL=list names the points",
				text);
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
		left = (struct timespec){.tv_sec = (time_t)(failpoints[point].pause_ms / 1000),
			.tv_nsec = (long)(failpoints[point].pause_ms % 1000) * 1000000};
		while (nanosleep(&left, &left) < 0 && errno == EINTR)
			;
		return 0;
	default:
		return 0;
	}
}

#endif
