/* SPDX-License-Identifier: Apache-2.0 */
#include "command/manage/maintenance.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command/command.h"
#include "command/manage/children.h"
#include "command/manage/ticker.h"
#include "common/cleanup.h"
#include "common/daemon/signals.h"
#include "common/err.h"
#include "common/proc.h"

static const struct maintenance_role {
	const char *name, *socket;
} roles[HOME_ROLE_MAX] = {
	[HOME_REFLECTOR] = {"kinf-reflector", "control.reflector"},
	[HOME_PROCESSOR] = {"kinf-processor", "control.processor"},
};

int maintenance_open(const struct config_flags *flags, struct home **ret_home)
{
	const char *directory;
	int r = command_use_store(flags, &directory);

	return r < 0 ? r : home_open(directory, &(struct home_options){0}, ret_home);
}

const char *maintenance_name(enum home_role role)
{
	return roles[role].name;
}

static void maintenance_show(void *ticker, uint64_t done, uint64_t total, const char *unit)
{
	ticker_show(ticker, done, total, unit);
}

/* Prints a daemon's note (struct control_handler); TICKER: the one on the terminal, or NULL. */
static void maintenance_note(void *ticker, const char *text)
{
	if (ticker)
		ticker_clear(ticker);
	(void)fprintf(stderr, "note: %s\n", text);
}

int maintenance_ask(struct home *home, enum home_role role, const char *command,
	const char *argument, const char *what, char ret_text[CONTROL_SIZE])
{
	struct ticker ticker = {.what = what};
	const struct control_handler handler = {maintenance_note, maintenance_show, &ticker};
	int holder = home_role_holder(home, role);

	if (!holder)
		return NOT_FOUND;
	int r = home_runtime_fd(home) < 0 ? NOT_FOUND
					  : control_ask(home_runtime_fd(home), roles[role].socket,
						    command, argument, &handler, ret_text);
	ticker_clear(&ticker);
	if (r == NOT_FOUND && !home_role_holder(home, role))
		return NOT_FOUND; /* it has ended */
	if (r == NOT_FOUND)
		return err_say(ERR_LOCKED,
			"%s (process %d) runs on store '%s', but has no control socket in '%s': it "
			"is just starting, another kinf has that role, or it runs in another "
			"container",
			roles[role].name, holder, home_path(home), home_runtime(home));
	return r < 0 ? err_add(r, "%s (process %d)", roles[role].name, holder) : 0;
}

int maintenance_ask_serve(const struct home *home, const char *command, const char *argument,
	char ret_text[CONTROL_SIZE])
{
	const struct control_handler handler = {maintenance_note, NULL, NULL};
	AUTO_FD int directory =
		openat(home_fd(home), "serve", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	/* A copy names the original's runtime directory, with its kinf-serve's socket. */
	if (home_runtime_fd(home) < 0 || directory < 0 || !proc_is_locked(directory, "serve.lock"))
		return NOT_FOUND;
	return control_ask(
		home_runtime_fd(home), "control.serve", command, argument, &handler, ret_text);
}

/* Returns the disk space of the databases in DIRECTORY; 0 if there is none. */
static uint64_t maintenance_size(const char *directory)
{
	DIR *all = opendir(directory);
	uint64_t blocks = 0;
	struct stat st;
	char path[300];

	for (struct dirent *entry; all && (entry = readdir(all));) {
		(void)snprintf(path, sizeof(path), "%s/data.mdb", entry->d_name);
		if (strncmp(entry->d_name, "gen-", 4) == 0 &&
			fstatat(dirfd(all), path, &st, AT_SYMLINK_NOFOLLOW) == 0)
			blocks += (uint64_t)st.st_blocks;
	}
	if (all)
		(void)closedir(all);
	return blocks * 512;
}

int maintenance_run(const char *const *program, int signals, const char *what, const char *making)
{
	struct ticker ticker = {.what = what};
	AUTO_FREE char *path = NULL;
	struct pollfd wait = {.fd = signals, .events = POLLIN};
	bool interrupted = false;
	int status = 0, number;

	int r = children_find(program[0], &path);
	if (r < 0)
		return r;
	pid_t pid;
	r = child_start(path, (char *const *)(uintptr_t)program,
		&(struct child_start){.death_signal = SIGKILL}, &pid);
	if (r < 0)
		return r;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		(void)poll(&wait, 1, 200); /* SIGCHLD ends it */
		ticker_show(&ticker, maintenance_size(making) >> 20, 0, "MiB");
		while ((number = signals_next(signals)) > 0)
			if (number == SIGTERM || number == SIGINT) {
				interrupted = true;
				(void)kill(pid, SIGTERM);
			}
	}
	ticker_clear(&ticker);
	if (interrupted)
		return err_say(-EINTR, "interrupted: nothing was made");
	if (WIFSIGNALED(status))
		return err_say(-ECHILD, "%s died of signal %d", program[0], WTERMSIG(status));
	if (WEXITSTATUS(status) == CHILD_NOT_EXECUTED)
		return err_say(-ECHILD, "'%s' can't be executed", path);
	return WEXITSTATUS(status);
}

int maintenance_check_owner(const struct home *home)
{
	char user[HOME_USER_SIZE];
	struct stat st;

	if (fstat(home_fd(home), &st) < 0)
		return err_set(-errno, "the store '%s'", home_path(home));
	if (st.st_uid == geteuid())
		return 0;
	return err_say(-EPERM, "the store '%s' belongs to user %s: run this as that user",
		home_path(home), home_name_user(st.st_uid, user));
}

int maintenance_take(struct home *home, enum home_role role)
{
	int r = maintenance_check_owner(home);

	return r < 0 ? r : home_take_role(home, role);
}
