/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf run: supervises the two daemons, and a configured kinf-serve (children.h, health.h). The
 * supervisor opens no environment and no ring.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "command/command.h"
#include "command/manage/children.h"
#include "command/manage/health.h"
#include "common/cleanup.h"
#include "common/daemon/parent.h"
#include "common/daemon/signals.h"
#include "common/err.h"
#include "common/log.h"
#include "store/env/home.h"

#define TICK_MS   200
#define NOTIFY_NS UINT64_C(1000000000)
/* for the daemons of a killed supervisor to end */
#define IN_USE_NS (5 * UINT64_C(1000000000))
#define STOP_NS   (4 * UINT64_C(1000000000)) /* then SIGKILL: all is over within 5 s */

struct run {
	struct config *config;
	const struct config_flags *flags;
	struct children children;
	struct health health;
	uint64_t notified_ns; /* of the last WATCHDOG=1 */
	int signals;
	bool stopping;
	uint64_t kill_at_ns; /* when stopping */
};

static void run_stop(struct run *run, int signal_number)
{
	if (run->stopping)
		return;
	run->stopping = true;
	run->kill_at_ns = proc_monotonic_ns() + STOP_NS;
	health_end(&run->health);
	LOG(run_stopping, .signal = signal_number);
	parent_notify("STOPPING=1");
	children_signal(&run->children, SIGTERM);
}

/* Waits for a signal or the next start of a daemon, at most TICK_MS. SIGHUP is passed on: the
 * daemons log errors in the file and the keys that they take only at a restart; the supervisor logs
 * its own keys. Returns false when everything has ended. */
static bool run_turn(struct run *run)
{
	int due = run->stopping ? -1 : children_start_due(&run->children), number;
	struct pollfd signals = {.fd = run->signals, .events = POLLIN};

	(void)poll(
		&signals, 1, due >= 0 && due < TICK_MS ? due : TICK_MS); /* also after an error */
	while ((number = signals_next(run->signals)) > 0) {
		CLEANUP(config_free) struct config *config = NULL;
		char keys[CONFIG_KEYS_SIZE];

		if (number == SIGTERM || number == SIGINT)
			run_stop(run, number);
		if (number != SIGHUP)
			continue;
		LOG(run_reloading);
		children_signal(&run->children, SIGHUP);
		int r = config_load(run->flags, &config);
		if (r < 0)
			err_ignore(r, "both daemons read the same file and log the error");
		else if (config_needs_restart(run->config, config, CONFIG_RUN, keys))
			LOG(config_needs_restart, .daemon = "kinf run", .keys = keys);
	}
	uint64_t now = proc_monotonic_ns();
	if (now - run->notified_ns >= NOTIFY_NS) {
		run->notified_ns = now;
		parent_notify("WATCHDOG=1");
	}
	if (!run->stopping)
		health_check(&run->health, &run->children);
	children_reap(&run->children, run->stopping);
	if (!run->stopping && children_given_up(&run->children))
		run_stop(run, 0);
	if (run->stopping && proc_monotonic_ns() >= run->kill_at_ns)
		children_signal(&run->children, SIGKILL);
	return !run->stopping || children_any_running(&run->children);
}

/* Waits until no daemon runs on the store: those of a killed supervisor are about to end. Returns:
 * 0; ERR_LOCKED: one goes on; as home_check_owner(): another user's store can't be checked. */
static int run_await_store(const char *store)
{
	static const char *const names[HOME_ROLE_MAX] = {
		[HOME_REFLECTOR] = "kinf-reflector", [HOME_PROCESSOR] = "kinf-processor"};
	struct timespec pause = {.tv_nsec = TICK_MS * 1000000L};
	uint64_t end_ns = proc_monotonic_ns() + IN_USE_NS;
	CLEANUP(home_close) struct home *home = NULL;
	int role, holder = 0;
	int r = home_check_owner(store);

	if (r < 0)
		return r;
	r = home_open(store, &(struct home_options){0}, &home);
	if (r < 0) {
		err_ignore(r, "the daemons make the store, or report its fault");
		return 0;
	}
	do {
		for (role = 0; role < HOME_ROLE_MAX &&
			       !(holder = home_role_holder(home, (enum home_role)role));)
			role++;
		if (holder)
			(void)nanosleep(&pause, NULL);
	} while (holder && proc_monotonic_ns() < end_ns);
	if (!holder)
		return 0;
	char process[32] = "";
	if (holder > 0)
		(void)snprintf(process, sizeof(process), " as process %d", holder);
	return err_say(ERR_LOCKED,
		"store '%s' is in use: %s runs there%s; stop it, or name another store with "
		"--store",
		home_path(home), names[role], process);
}

static int run_supervise(struct run *run, char *const *arguments)
{
	struct child child[] = {
		{.program = "kinf-reflector", .arguments = arguments},
		{.program = "kinf-processor", .arguments = arguments},
		{.program = "kinf-serve",
			.arguments = arguments,
			.takes_sockets = true}, /* the last one: not always */
	};
	const struct config_serve *serve = &run->config->serve;
	size_t n = ARRAY_SIZE(child) - (!serve->enabled || serve->separate);
	int r = children_init(&run->children, child, n);

	if (r < 0)
		return command_fail(r);
	run->signals = signals_open();
	if (run->signals < 0)
		return command_fail(err_set(run->signals, "opening the signals"));
	/* Also reaps orphans of other processes, as process 1 of a container must. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	LOG(run_started, .store = run->config->store, .feeds = run->config->n_feeds);
	while (run_turn(run))
		;
	const struct child *failed = children_given_up(&run->children);
	bool in_use = failed &&
		      /* its role, or that in the runtime directory, was taken meanwhile */
		      failed->in_use_ns;

	if (in_use)
		(void)command_fail(
			err_say(ERR_LOCKED, "%s can't run on store '%s' (its message is above)",
				failed->program, run->config->store));
	bool refused = failed && failed->refused;
	children_release(&run->children);
	return in_use ? PROC_IN_USE : refused ? PROC_CONFIG : failed ? PROC_FAILED : PROC_OK;
}

/* Refuses a kinf-serve both under kinf run and as a service of its own. */
static int run_check_serve(const struct run *run)
{
	bool asked = run->flags->serve != NULL;

	if (!run->config->serve.separate || !(asked || parent_sockets()))
		return 0;
	return err_say(ERR_CONFIG,
		"serve.separate: kinf-serve is a service of its own (kinf-serve.socket), but kinf "
		"run was given %s for it; remove one of the two",
		asked ? "--serve" : "sockets of the service manager");
}

/* Refuses a pipe, as of <(...): the daemons read the file too, also at restarts, and would find it
 * empty, without feeds or with another store. */
static int run_check_file(const struct config *config)
{
	struct stat st;

	if (!config->file || stat(config->file, &st) < 0 || S_ISREG(st.st_mode) ||
		S_ISCHR(st.st_mode))
		return 0;
	return err_say(ERR_CONFIG,
		"'%s' is a pipe or a socket, and each daemon reads the configuration: name a file",
		config->file);
}

int command_run(int argc, char **argv)
{
	static char store[] = "--store", runtime_dir[] = "--runtime-dir";
	CLEANUP(command_line_release)
	struct command_line line = {
		.options = {"kinf run", "",
			"Runs kinf-reflector and kinf-processor, and with --serve kinf-serve, in "
			"the foreground and starts them again when they die. SIGHUP reads the "
			"configuration again, SIGTERM ends everything within 5 seconds."},
		.groups = {config_running_options(&line.flags)},
		.takes = {0, 0, "; --watch names the resources to keep"},
	};
	struct run run = {.signals = -1, .flags = &line.flags};
	/* The daemons' arguments: a copy from before options_parse() reorders them, and the
	 * places. */
	AUTO_FREE char **arguments = calloc((size_t)argc + 4, sizeof(*arguments));
	if (!arguments)
		return command_fail(err_set(-ENOMEM, "copying the arguments"));
	memcpy(arguments, argv + 1, ((size_t)argc - 1) * sizeof(*arguments));
	int r = command_parse(&line, argc, argv);

	if (r != 0)
		return command_usage(&line, r);
	r = config_load(&line.flags, &run.config);
	if (r == 0)
		r = run_check_file(run.config);
	if (r == 0)
		command_note(run.config);
	if (r == 0 && !run.config->n_feeds)
		r = err_say(ERR_CONFIG, "no feeds: name one with --watch (kinf run --watch pods) "
					"or in kinf.yaml under 'feeds'");
	if (r == 0)
		r = run_check_serve(&run);
	if (r == 0) /* the daemons raise it further */
		r = proc_raise_files(PROC_FILES_LEAST);
	bool configured = r == 0;
	if (r == 0)
		r = run_await_store(run.config->store);
	if (r < 0) {
		config_free(&run.config);
		(void)command_fail(r);
		/* Also for a missing file: a restart does not help. */
		return r == ERR_SYNTAX                                   ? PROC_USAGE
		       : r == ERR_LOCKED                                 ? PROC_IN_USE
		       : r != ERR_CONFIG && (configured || r == -ENOMEM) ? PROC_FAILED
									 : PROC_CONFIG;
	}
	parent_keep_manager();
	run.health.config = run.config;
	log_setup("kinf", run.config->log_level, run.config->log_format);
	r = parent_say_given(line.flags.store, line.flags.runtime_dir);
	if (r < 0) {
		config_free(&run.config);
		return command_fail(r);
	}
	/* Both daemons use the same directories whatever the file says later: the last one of equal
	 * options counts. */
	char **end = arguments + argc - 1;
	*end++ = store;
	*end++ = run.config->store;
	*end++ = runtime_dir;
	*end = run.config->runtime_dir;
	int status = run_supervise(&run, arguments);
	config_free(&run.config);
	return status;
}
