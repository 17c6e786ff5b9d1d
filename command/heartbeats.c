/* SPDX-License-Identifier: Apache-2.0 */
#include "command/heartbeats.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"
#include "common/stats.h"
#include "store/env/home.h"

#define HEARTBEATS_MAGIC 0x68656172u
#define HEARTBEATS_MAX   4
#define CHECK_PAUSE_NS   UINT64_C(1000000000)
#define BUSY_FACTOR      10

/* How long a child has been silent, and how much it did meanwhile. */
struct silence {
	pid_t pid;          /* of the child that this is about */
	uint64_t since_ns;  /* monotonic: its last heartbeat, else its start */
	uint64_t cpu_ticks; /* it had used at the last check */
	uint64_t idle_ns;   /* monotonic: since when it does nothing; 0: it does something */
};

struct heartbeats {
	uint32_t magic;
	const struct config *config;
	uint64_t checked_ns;
	struct silence silence[HEARTBEATS_MAX];
};

int heartbeats_new(const struct config *config, struct heartbeats **ret_heartbeats)
{
	struct heartbeats *heartbeats = calloc(1, sizeof(*heartbeats));

	if (!heartbeats)
		return err_set(-ENOMEM, "watching the daemons");
	heartbeats->magic = HEARTBEATS_MAGIC;
	heartbeats->config = config;
	*ret_heartbeats = heartbeats;
	return 0;
}

void heartbeats_free(struct heartbeats **heartbeats)
{
	if (!*heartbeats)
		return;
	CHECK_OBJ(*heartbeats, HEARTBEATS_MAGIC);
	(*heartbeats)->magic = 0;
	free(TAKE(*heartbeats));
}

/*
 * Reads the child's state from its status page. A page of another process is from the daemon
 * before: the child has not come as far as making its own. Returns: FOUND; NOT_FOUND: the child has
 * no page yet; errors: that can't be told now.
 */
static int heartbeats_read(
	const struct home *home, const struct child *child, struct stats_process *ret_process)
{
	CLEANUP(stats_close) struct stats *page = NULL;

	if (!home || home_runtime_fd(home) < 0)
		return NOT_FOUND;
	int r = child_open_page(child, home_runtime_fd(home), &page);
	if (r == -ENOENT || r == ERR_FORMAT) {
		err_ignore(r, "the daemon has not made its page yet");
		return NOT_FOUND;
	}
	if (r == 0)
		r = stats_process(page, ret_process);
	return r < 0 ? r : ret_process->alive && ret_process->pid == child->pid ? FOUND : NOT_FOUND;
}

/* Returns whether the process has used the processor since the last check or waits for a disk. Sets
 * *RET_DOING to a word for it. A process that can't be read counts as busy. */
static bool silence_is_busy(struct silence *silence, const char **ret_doing)
{
	struct proc_stat stat;
	int r = proc_read_stat(silence->pid, &stat);

	*ret_doing = "busy";
	if (r < 0) {
		err_ignore(r, "the process has ended, or the next check reads it again");
		return true;
	}
	bool used = stat.cpu_ticks > silence->cpu_ticks;
	silence->cpu_ticks = stat.cpu_ticks;
	*ret_doing = stat.state == 'D'                        ? "waits for a disk"
		     : used                                   ? "uses the processor"
		     : stat.state == 'T' || stat.state == 't' ? "stopped by a signal"
							      : "waits";
	return stat.state == 'D' || used;
}

static void heartbeats_check_child(struct heartbeats *heartbeats, struct silence *silence,
	const struct home *home, const struct child *child, uint64_t now)
{
	struct stats_process process = {0};
	const char *doing;
	uint64_t limit = heartbeats->config->hang_ns;
	int r = heartbeats_read(home, child, &process);

	if (silence->pid != child->pid)
		*silence = (struct silence){.pid = child->pid, .since_ns = child->started_ns};
	if (r < 0) {
		err_ignore(r, "the next check, a second later, reads the page again");
		silence->since_ns = now;
	} else if (r == FOUND && process.heartbeat_ns > silence->since_ns) {
		silence->since_ns = process.heartbeat_ns;
	}
	/* A heartbeat that was written after the caller had read the clock is newer than NOW. */
	uint64_t silent = now > silence->since_ns ? now - silence->since_ns : 0;
	bool busy = silence_is_busy(silence, &doing);
	/* It may have no page yet, or one that nobody else sees (common/mapped_file.h): it says
	 * in the log what it waits for. */
	if (silent >= limit && strcmp(doing, "waits") == 0 && home && home_lacks_room(home)) {
		silence->since_ns = now;
		silent = 0;
	}
	if (busy || silent < limit)
		silence->idle_ns = 0;
	else if (!silence->idle_ns)
		silence->idle_ns = now;
	/* Idle at two checks: a process that has just come back from a long write is not hung. */
	if (silent < limit * BUSY_FACTOR && (!silence->idle_ns || silence->idle_ns == now))
		return;
	LOG(child_hung, .daemon = child->program, .pid = child->pid, .silent_seconds = silent,
		.doing = doing, .state = process.state[0] ? process.state : "starting");
	(void)kill(child->pid, SIGKILL); /* ends a stopped process also; gone: reaped soon */
	silence->since_ns = now;         /* it may take a moment to die */
	silence->idle_ns = 0;
}

void heartbeats_check(struct heartbeats *heartbeats, struct children *children)
{
	CLEANUP(home_close) struct home *home = NULL;
	uint64_t now = proc_monotonic_ns();

	CHECK_OBJ(heartbeats, HEARTBEATS_MAGIC);
	if (now - heartbeats->checked_ns < CHECK_PAUSE_NS)
		return;
	heartbeats->checked_ns = now;
	err_ignore(home_open(heartbeats->config->store, &(struct home_options){0}, &home),
		"a daemon that hangs before it has made the store is found by its start");
	for (size_t i = 0; i < children->n && i < HEARTBEATS_MAX; i++)
		if (children->child[i].pid && heartbeats->config->hang_ns) /* 0: never */
			heartbeats_check_child(heartbeats, &heartbeats->silence[i], home,
				&children->child[i], now);
}
