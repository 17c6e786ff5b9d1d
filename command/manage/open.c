/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf open SOURCE... [-- COMMAND]: imports dumps into a store of the user's cache, starts
 * kinf-serve on it, and a command with a kubeconfig for that. The server, its directory and its
 * token end with the command. The store stays, and the next open of the same files takes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "command/command.h"
#include "command/manage/children.h"
#include "common/cleanup.h"
#include "common/daemon/signals.h"
#include "common/err.h"
#include "common/hash.h"
#include "common/value/json.h"
#include "store/env/home.h"
#include "store/env/text_file.h"

#define START_NS  (UINT64_C(30) * 1000000000) /* until kinf-serve listens */
#define PAUSE_NS  20000000L
#define WALK_OPEN 16 /* descriptors of a walk over directories */

struct open_work {
	char store[PATH_MAX / 4];
	char directory[64]; /* of this run: configuration, token, kubeconfig, sockets; "": none */
	pid_t serve;        /* 0: none */
	int signals;
};

static int open_remove(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st;
	(void)type;
	(void)walk;
	(void)remove(path);
	return 0;
}

static void open_release(struct open_work *work)
{
	if (work->serve && kill(work->serve, SIGTERM) == 0)
		(void)waitpid(work->serve, NULL, 0);
	if (*work->directory)
		(void)nftw(work->directory, open_remove, WALK_OPEN, FTW_DEPTH | FTW_PHYS);
	cleanup_fd(&work->signals);
}

/* ---- the store ---------------------------------------------------------- */

static uint64_t open_seen; /* the hash of a walk: nftw() has no argument for it */

static int open_hash(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	uint64_t facts[] = {(uint64_t)st->st_size, (uint64_t)st->st_mtim.tv_sec,
		(uint64_t)st->st_mtim.tv_nsec, st->st_ino, st->st_dev};

	(void)walk;
	open_seen = hash_bytes(bytes_str(path), open_seen);
	if (type != FTW_NS)
		open_seen = hash_bytes(BYTES(facts, sizeof(facts)), open_seen);
	return 0;
}

/* Finds the place in the cache for the store of SOURCES, by their paths, sizes and times. */
static int open_find_store(char *const *sources, char *store, size_t size)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	const char *name = sources[0];
	char directory[PATH_MAX / 8];

	open_seen = 0;
	for (; *sources; sources++) {
		AUTO_FREE char *path = realpath(*sources, NULL);

		if (!path || nftw(path, open_hash, WALK_OPEN, FTW_PHYS) < 0)
			return strcmp(*sources, "-") == 0
				       ? err_say(ERR_SYNTAX,
						 "standard input is for the command: name a file")
				       : err_set(-errno, "'%s'", *sources);
	}
	bool own = cache && *cache == '/';
	if (!own && !home)
		return err_say(
			-ENOENT, "there is no $HOME for the store; name one with --store DIR");
	size_t n = (size_t)snprintf(directory, sizeof(directory), "%s%s/kinf", own ? cache : home,
		own ? "" : "/.cache");
	if (n >= sizeof(directory) - NAME_MAX)
		return err_set(-ENAMETOOLONG, "'%s'", directory);
	directory[n - strlen("/kinf")] = '\0'; /* the cache's directory, then ours */
	(void)mkdir(directory, 0700);
	directory[n - strlen("/kinf")] = '/';
	if (mkdir(directory, 0700) < 0 && errno != EEXIST)
		return err_say(-errno,
			"making '%s' for the store: %s; name another one with "
			"--store DIR",
			directory, strerror(errno));
	const char *slash = strrchr(name, '/');
	name = slash && slash[1] ? slash + 1 : name;
	(void)snprintf(store, size, "%s/%.*s-%016" PRIx64, directory, (int)strcspn(name, "/"), name,
		open_seen);
	return 0;
}

static bool open_is_served(const char *store)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/serve", store);
	AUTO_FD int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return directory >= 0 && proc_is_locked(directory, "serve.lock");
}

/* Makes the store, or finds the one of an earlier run. A store has one kinf-serve: while another
 * open runs, the next gets a store of its own, "STORE-2". */
static int open_store(
	struct open_work *work, char *const *sources, const struct config_flags *flags)
{
	struct config_flags own = *flags;
	char here[PATH_MAX] = "";
	struct stat st;
	int r = 0;

	/* kinf-serve's configuration is elsewhere. */
	if (flags->store && *flags->store && *flags->store != '/' && !getcwd(here, sizeof(here)))
		return err_set(-errno, "finding the current directory");
	if (!flags->store || !*flags->store)
		r = open_find_store(sources, work->store, sizeof(work->store));
	else if ((size_t)snprintf(work->store, sizeof(work->store), "%s%s%s", here,
			 *here ? "/" : "", flags->store) >= sizeof(work->store))
		r = err_set(-ENAMETOOLONG, "'%s'", flags->store);
	if (r < 0)
		return r;
	size_t end = strlen(work->store);
	for (unsigned n = 2; n < 100 && !flags->store && open_is_served(work->store); n++)
		(void)snprintf(work->store + end, sizeof(work->store) - end, "-%u", n);
	if (!flags->store && stat(work->store, &st) == 0) {
		(void)fprintf(stderr, "note: using the store '%s', made before\n", work->store);
		return 0;
	}
	own.store = work->store;
	return import_store(sources, &own, work->signals);
}

/* ---- the server --------------------------------------------------------- */

/* Writes TEXT to NAME in this run's directory. */
static int open_write(const struct open_work *work, const char *name, struct buf *text)
{
	AUTO_FD int fd = open(work->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = buf_error(text);

	if (r == 0 && fd < 0)
		r = err_set(-errno, "opening '%s'", work->directory);
	return r < 0 ? r : text_file_replace(fd, name, buf_cstr(text), 0600);
}

/* Makes this run's directory with kinf-serve's configuration and token, and the store's runtime
 * directory in it. */
static int open_prepare(struct open_work *work)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT, token = BUF_SECRET;
	CLEANUP(home_close) struct home *home = NULL;
	const char *parent = getenv("XDG_RUNTIME_DIR");
	uint64_t chance[4];
	char runtime[80];

	if (!parent || *parent != '/' || strlen(parent) > 30 || access(parent, W_OK) < 0)
		parent = "/tmp";
	(void)snprintf(work->directory, sizeof(work->directory), "%s/kinf-open-XXXXXX", parent);
	if (!mkdtemp(work->directory)) {
		*work->directory = '\0';
		return err_set(-errno, "making a directory in '%s'", parent);
	}
	(void)snprintf(runtime, sizeof(runtime), "%s/run", work->directory);
	int r = mkdir(runtime, 0700) < 0 ? err_set(-errno, "making '%s'", runtime)
					 : proc_random(chance, sizeof(chance));
	for (size_t i = 0; i < ARRAY_SIZE(chance); i++)
		buf_printf(&token, "%016" PRIx64, chance[i]);
	buf_str(&text, "store: ");
	json_write_string(bytes_str(work->store), &text);
	buf_printf(&text,
		"\nruntimeDir: %s\nserve: {listen: ['127.0.0.1:0'], auth: token, "
		"tokenFile: %s/token}\n",
		runtime, work->directory);
	if (r == 0)
		r = open_write(work, "token", &token);
	if (r == 0)
		r = open_write(work, "kinf.yaml", &text);
	const struct home_options options = {.create = true, .runtime_dir = runtime};
	return r == 0 ? home_open(work->store, &options, &home) : r;
}

/* Prints the end of kinf-serve's log. Returns the failure. */
static int open_explain(const char *log)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	AUTO_FD int fd = open(log, O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && buf_read_file(&text, fd, log) == 0)
		(void)fputs(buf_cstr(&text), stderr);
	return err_say(-ECHILD, "kinf-serve could not be started (its message is above)");
}

/* Starts kinf-serve and waits until it listens. */
static int open_serve(struct open_work *work)
{
	AUTO_FREE char *path = NULL;
	char config[96], log[96], addresses[PATH_MAX / 4 + 32];
	uint64_t end_ns = proc_monotonic_ns() + START_NS;
	struct timespec pause = {.tv_nsec = PAUSE_NS};

	(void)snprintf(config, sizeof(config), "%s/kinf.yaml", work->directory);
	(void)snprintf(log, sizeof(log), "%s/serve.log", work->directory);
	(void)snprintf(addresses, sizeof(addresses), "%s/serve/addresses", work->store);
	char name[] = "kinf-serve", option[] = "--config";
	char *const arguments[] = {name, option, config, NULL};
	int r = children_find("kinf-serve", &path);
	if (r == 0 && unlink(addresses) < 0 && errno != ENOENT)
		r = err_set(-errno, "removing '%s'", addresses);
	AUTO_FD int fd = open(log, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	const struct child_start start = {.fd = fd > 0 ? fd : 0,
		.number = STDERR_FILENO,
		.death_signal = SIGTERM,
		.background = true};
	if (r == 0)
		r = child_start(path, arguments, &start, &work->serve);
	while (r == 0 && access(addresses, R_OK) < 0) {
		if (waitpid(work->serve, NULL, WNOHANG) != 0) {
			work->serve = 0;
			r = open_explain(log);
		} else if (proc_monotonic_ns() > end_ns) {
			r = open_explain(log);
		}
		(void)nanosleep(&pause, NULL);
	}
	return r;
}

/* ---- the command -------------------------------------------------------- */

static int open_set_environment(struct open_work *work)
{
	CLEANUP(config_free) struct config *config = NULL;
	CLEANUP(buf_release) struct buf text = BUF_SECRET;
	char path[96];

	(void)snprintf(path, sizeof(path), "%s/kinf.yaml", work->directory);
	struct config_flags flags = {.file = path};
	int r = config_load(&flags, &config);
	if (r == 0)
		r = kubeconfig_write(config, &text);
	if (r == 0)
		r = open_write(work, "kubeconfig", &text);
	(void)snprintf(path, sizeof(path), "%s/kubeconfig", work->directory);
	if (r == 0 &&
		(setenv("KUBECONFIG", path, 1) < 0 || setenv("KINF_STORE", work->store, 1) < 0))
		r = err_set(-errno, "setting the environment");
	return r;
}

/* Runs COMMAND, and passes SIGTERM on to it. Returns its exit status as a shell does; errors. */
static int open_run(struct open_work *work, char *const *command)
{
	const char *shell = getenv("SHELL");
	char *const own[] = {(char *)(uintptr_t)(shell && *shell ? shell : "/bin/sh"), NULL};
	char *const *arguments = *command ? command : own;
	struct pollfd wait = {.fd = work->signals, .events = POLLIN};
	int status = 0, number;
	pid_t pid;

	if (!*command)
		(void)fprintf(stderr,
			"note: this shell's kubectl and kinf read the store '%s'; "
			"exit ends it\n",
			work->store);
	int r = child_start(arguments[0], arguments, &(struct child_start){0}, &pid);
	if (r < 0)
		return r;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		(void)poll(&wait, 1, 200); /* SIGCHLD ends it */
		while ((number = signals_next(work->signals)) > 0)
			if (number == SIGTERM || number == SIGHUP)
				(void)kill(pid, number);
	}
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	if (WEXITSTATUS(status) == CHILD_NOT_EXECUTED)
		(void)fprintf(stderr, "Error: '%s' can't be executed, or ended with status %d\n",
			arguments[0], CHILD_NOT_EXECUTED);
	return WEXITSTATUS(status);
}

/* Cuts the command line at "--". Returns the command after it, empty if there is none. */
static char **open_cut(int *argc, char **argv)
{
	for (int i = 1; !options_complete && i < *argc; i++)
		if (strcmp(argv[i], "--") == 0) {
			argv[i] = NULL;
			*argc = i;
			return argv + i + 1;
		}
	return argv + *argc;
}

int command_open_dump(int argc, char **argv)
{
	CLEANUP(open_release) struct open_work work = {.signals = -1};
	char **command = open_cut(&argc, argv);
	struct command_line line = {
		.options = {"kinf open", "SOURCE... [-- COMMAND]",
			"Imports SOURCE as kinf import does, serves it on a port of this machine, "
			"and runs COMMAND (default: $SHELL) with KUBECONFIG for that: kubectl, k9s "
			"and client libraries read the dump. The server ends with COMMAND. Without "
			"--store the store is in $XDG_CACHE_HOME/kinf, and the next open of the "
			"same files uses it again."},
		.takes = {1, SIZE_MAX, "name a file or a directory"},
	};
	int r = command_parse(&line, argc, argv);

	if (r != 0)
		return command_usage(&line, r);
	work.signals = r = signals_open();
	if (r >= 0)
		r = open_store(&work, line.operands, &line.flags);
	if (r > 0 && r != PROC_PARTLY)
		return PROC_FAILED; /* the failed program has told why */
	if (r >= 0)
		r = open_prepare(&work);
	if (r == 0)
		r = open_serve(&work);
	if (r == 0)
		r = open_set_environment(&work);
	if (r == 0)
		r = open_run(&work, command);
	return r < 0 ? command_fail(r) : r;
}
