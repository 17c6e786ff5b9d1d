/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/catalog/replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/err.h"
#include "common/proc.h"
#include "common/text/decimal.h"
#include "common/text/timestamp.h"

#define SPEED_MAX 1000000
#define STEPS_MAX 1000000000
#define POLL_NS   (SECOND_NS / 2)  /* new events of the log, while the clock stands */
#define END_NS    (SECOND_NS / 20) /* the same, while it runs */

int replay_parse_speed(const char *text, uint64_t *ret_speed)
{
	size_t size = strlen(text);
	bool is_speed = size && text[size - 1] == 'x';

	*ret_speed = 1;
	if (size && (!is_speed || decimal_parse(BYTES(text, size - 1), SPEED_MAX, ret_speed) < 0))
		return err_say(ERR_SYNTAX,
			"'%.40s' is no speed: write 1x, 10x, up to 1000000x, or 0x to stand still",
			text);
	return 0;
}

void replay_init(struct replay *replay, uint64_t moment_ns, uint64_t speed)
{
	pthread_condattr_t monotonic;

	*replay = (struct replay){
		.speed = speed, .moment_ns = moment_ns, .since_ns = proc_monotonic_ns()};
	(void)pthread_mutex_init(&replay->lock, NULL);
	(void)pthread_condattr_init(&monotonic);
	(void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&replay->changed, &monotonic);
	(void)pthread_condattr_destroy(&monotonic);
}

void replay_release(struct replay *replay)
{
	(void)pthread_cond_destroy(&replay->changed);
	(void)pthread_mutex_destroy(&replay->lock);
}

/* ---- the clock, under the lock ------------------------------------------- */

/* Returns the moment of the replay, which is never in the future: ages count to it. */
static uint64_t replay_now(const struct replay *replay)
{
	uint64_t passed = proc_monotonic_ns() - replay->since_ns, moment;
	uint64_t present = proc_realtime_ns();

	if (__builtin_mul_overflow(passed, replay->speed, &passed) ||
		__builtin_add_overflow(replay->moment_ns, passed, &moment))
		return present;
	return moment < present ? moment : present;
}

static void replay_set(struct replay *replay, uint64_t moment_ns, uint64_t speed)
{
	replay->moment_ns = moment_ns;
	replay->since_ns = proc_monotonic_ns();
	replay->speed = speed;
}

/* Waits for a change, until the monotonic time UNTIL_NS. */
static void replay_sleep(struct replay *replay, uint64_t until_ns)
{
	const struct timespec until = {
		.tv_sec = (time_t)(until_ns / SECOND_NS), .tv_nsec = (long)(until_ns % SECOND_NS)};

	(void)pthread_cond_timedwait(&replay->changed, &replay->lock, &until);
}

/* ---- the feeder ---------------------------------------------------------- */

uint64_t replay_moment(struct replay *replay)
{
	(void)pthread_mutex_lock(&replay->lock);
	uint64_t moment = replay_now(replay);
	(void)pthread_mutex_unlock(&replay->lock);
	return moment;
}

uint64_t replay_until(struct replay *replay, bool *ret_one)
{
	(void)pthread_mutex_lock(&replay->lock);
	uint64_t until = replay->speed ? replay_now(replay) : 0;
	*ret_one = replay->steps != 0;
	(void)pthread_mutex_unlock(&replay->lock);
	return until;
}

void replay_came_to(
	struct replay *replay, uint64_t event, uint64_t time_ns, uint64_t newest, bool made)
{
	(void)pthread_mutex_lock(&replay->lock);
	replay->event = event;
	replay->newest = newest;
	if (time_ns > replay->moment_ns && !replay->speed)
		replay_set(replay, time_ns, 0);
	if (event == newest)
		replay->steps = 0;
	else if (made && replay->steps)
		replay->steps--;
	(void)pthread_cond_broadcast(&replay->changed);
	(void)pthread_mutex_unlock(&replay->lock);
}

void replay_wait(struct replay *replay, uint64_t next_ns)
{
	(void)pthread_mutex_lock(&replay->lock);
	uint64_t now = replay_now(replay), pause = POLL_NS;

	if (replay->speed && next_ns == UINT64_MAX)
		pause = END_NS;
	else if (replay->speed && next_ns <= now)
		pause = 0;
	else if (replay->speed && (next_ns - now) / replay->speed < pause)
		pause = (next_ns - now) / replay->speed;
	if (!replay->steps && pause)
		replay_sleep(replay, proc_monotonic_ns() + pause);
	(void)pthread_mutex_unlock(&replay->lock);
}

void replay_wake(struct replay *replay)
{
	(void)pthread_mutex_lock(&replay->lock);
	(void)pthread_cond_broadcast(&replay->changed);
	(void)pthread_mutex_unlock(&replay->lock);
}

/* ---- commands ------------------------------------------------------------ */

static int replay_do(struct replay *replay, const char *word, const char *operand)
{
	uint64_t speed = 0, steps = 0, until_ns = proc_monotonic_ns() + SECOND_NS;
	int r = 0;

	if (strcmp(word, "step") == 0)
		r = decimal_parse(
			*operand ? bytes_str(operand) : BYTES_LIT("1"), STEPS_MAX, &steps);
	else if (strcmp(word, "run") == 0)
		r = replay_parse_speed(operand, &speed);
	else if (strcmp(word, "stop") != 0 || *operand)
		r = err_say(ERR_SYNTAX, "'%s' is no command: step, run or stop", word);
	if (r < 0)
		return r;
	replay->steps = steps;
	replay_set(replay, replay_now(replay), speed);
	(void)pthread_cond_broadcast(&replay->changed);
	while (replay->steps && proc_monotonic_ns() < until_ns)
		replay_sleep(replay, until_ns);
	return 0;
}

static void replay_describe(const struct replay *replay, char *text, size_t size)
{
	char moment[TIMESTAMP_SIZE], pace[40] = "stands still";
	uint64_t to_come = replay->newest - replay->event;

	timestamp_milliseconds(replay_now(replay), moment);
	if (replay->speed)
		(void)snprintf(pace, sizeof(pace), "runs at %" PRIu64 "x", replay->speed);
	(void)snprintf(text, size, "event %" PRIu64 ", %s, %s; %" PRIu64 " to come%s",
		replay->event, moment, pace, to_come,
		replay->steps ? " (it still makes steps)" : "");
}

int replay_command(struct replay *replay, const char *command, char *text, size_t size)
{
	char word[16];
	size_t length = strcspn(command, " ");
	const char *operand = command + length + (command[length] == ' ');
	int r = 0;

	(void)snprintf(word, sizeof(word), "%.*s", (int)length, command);
	(void)pthread_mutex_lock(&replay->lock);
	if (*command)
		r = replay_do(replay, word, operand);
	if (r == 0)
		replay_describe(replay, text, size);
	(void)pthread_mutex_unlock(&replay->lock);
	return r;
}
