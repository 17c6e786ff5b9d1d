/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "reflector/net/small_file.h"

#define EXEC_MAGIC 0x45584543u
#define EARLY_MAX  (60 * SECOND_NS) /* how long before they expire credentials are renewed */
#define PAUSE_MAX  (15 * SECOND_NS)
/* a 401 to credentials older than this is not the plugin's fault */
#define YOUNG      (60 * SECOND_NS)
#define OUTPUT_MAX ((size_t)1 << 20)

struct plugin {
	pid_t pid; /* 0: it has ended */
	int fd;    /* of its output; -1: closed */
	int status;
	char *output; /* OUTPUT_MAX + 1 bytes; the kernel allocates a page when it is used */
	size_t size;
};

/* ---- the plugin's environment ------------------------------------------- */

struct environment {
	char **at;
	size_t count;
};

static void environment_release(struct environment *environment)
{
	for (size_t i = 0; i < environment->count; i++)
		small_file_wipe(&environment->at[i], strlen(environment->at[i]));
	free(environment->at);
}

static bool environment_same_name(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return n == strcspn(b, "=") && !strncmp(a, b, n);
}

/* Adds LINE, "NAME=value", and owns it; replaces a line of the same name. There is room. */
static int environment_put(struct environment *environment, char *line)
{
	size_t i = 0;

	if (!line)
		return err_set(-ENOMEM, "exec plugin");
	while (i < environment->count && !environment_same_name(environment->at[i], line))
		i++;
	if (i == environment->count)
		environment->count++;
	else
		small_file_wipe(&environment->at[i], strlen(environment->at[i]));
	environment->at[i] = line;
	return 0;
}

/* Fills in this process' environment, without the variables of its supervisor or service manager,
 * and the plugin's variables. */
static int environment_fill(
	struct environment *environment, const struct kubeconfig_exec *exec, const char *info)
{
	static const char *const private[] = {"KINF_DEATH_FD", "KINF_RUN_GIVEN", "NOTIFY_SOCKET",
		"WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID"};
	size_t n = 0;
	char *line;
	int r = 0;

	while (environ[n])
		n++;
	environment->at = calloc(n + exec->variables.n + 2, sizeof(*environment->at));
	if (!environment->at)
		return err_set(-ENOMEM, "exec plugin");
	for (size_t i = 0; i < n && !r; i++) {
		bool skip = false;

		for (size_t j = 0; j < ARRAY_SIZE(private); j++)
			skip |= environment_same_name(environ[i], private[j]);
		if (!skip)
			r = environment_put(environment, strdup(environ[i]));
	}
	for (size_t i = 0; i < exec->variables.n && !r; i++)
		r = environment_put(environment, strdup(exec->variables.at[i]));
	if (!r && asprintf(&line, "KUBERNETES_EXEC_INFO=%s", info) < 0)
		line = NULL;
	return r ? r : environment_put(environment, line);
}

/* ---- the plugin ----------------------------------------------------------- */

/* Kills the plugin with its process group, if it still runs. */
static void plugin_free(struct plugin **plugin)
{
	struct plugin *p = *plugin;

	*plugin = NULL;
	if (!p)
		return;
	if (p->pid) {
		(void)kill(-p->pid, SIGKILL);         /* the pid is not reused before waitpid() */
		(void)waitpid(p->pid, NULL, WNOHANG); /* else the next plugin_start() reaps it */
	}
	cleanup_fd(&p->fd);
	small_file_wipe(&p->output, p->size);
	free(p);
}

/* Starts the child with an empty input, its output to FD, our standard error and no other
 * descriptor; in a process group of its own, with no signal blocked. Returns: 0 or a positive errno
 * value. */
static int plugin_spawn(
	const char *command, char *const *argv, char *const *environment, int fd, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, defaults;
	int r = posix_spawn_file_actions_init(&files);

	if (r)
		return r;
	(void)sigemptyset(&none);
	(void)sigemptyset(&defaults);
	(void)sigaddset(&defaults, SIGPIPE);
	r = posix_spawnattr_init(&attributes);
	if (r) {
		(void)posix_spawn_file_actions_destroy(&files);
		return r;
	}
	r = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!r)
		r = posix_spawn_file_actions_adddup2(&files, fd, STDOUT_FILENO);
	if (!r)
		r = posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
	if (!r)
		r = posix_spawnattr_setflags(&attributes,
			POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	if (!r)
		r = posix_spawnattr_setsigmask(&attributes, &none);
	if (!r)
		r = posix_spawnattr_setsigdefault(&attributes, &defaults);
	if (!r)
		r = posix_spawnp(pid, command, &files, &attributes, argv, environment);
	(void)posix_spawnattr_destroy(&attributes);
	(void)posix_spawn_file_actions_destroy(&files);
	return r;
}

static int plugin_run(struct plugin *plugin, const struct kubeconfig_exec *exec, const char *info)
{
	CLEANUP(environment_release) struct environment environment = {NULL};
	AUTO_FREE char **argv = calloc(exec->args.n + 2, sizeof(*argv));
	int pipes[2], r;

	if (!argv)
		return err_set(-ENOMEM, "exec plugin");
	argv[0] = exec->command;
	for (size_t i = 0; i < exec->args.n; i++)
		argv[i + 1] = exec->args.at[i];
	r = environment_fill(&environment, exec, info);
	if (r < 0)
		return r;
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return err_set(-errno, "exec plugin: pipe");
	plugin->fd = pipes[0];
	/* Only our end does not block: the plugin expects its output to. It can't fail on a
	 * pipe. */
	(void)fcntl(plugin->fd, F_SETFL, O_NONBLOCK);
	r = plugin_spawn(exec->command, argv, environment.at, pipes[1], &plugin->pid);
	(void)close(pipes[1]);
	if (!r)
		return 0;
	plugin->pid = 0;
	if (r == ENOMEM)
		return err_set(-ENOMEM, "exec: executable %s", exec->command);
	if (r != ENOENT)
		return err_say(ERR_CREDENTIALS, "exec: executable %s can't be run: %s",
			exec->command, err_name(-r));
	return err_say(ERR_CREDENTIALS, "exec: executable %s not found%s%s", exec->command,
		exec->install_hint ? ": " : "", exec->install_hint ? exec->install_hint : "");
}

static int plugin_start(
	const struct kubeconfig_exec *exec, const char *info, struct plugin **ret_plugin)
{
	CLEANUP(plugin_free) struct plugin *plugin = calloc(1, sizeof(*plugin));
	int r;

	if (!plugin)
		return err_set(-ENOMEM, "exec plugin");
	plugin->fd = -1;
	plugin->output = malloc(OUTPUT_MAX + 1);
	if (!plugin->output)
		return err_set(-ENOMEM, "exec plugin");
	/* Killed plugins that had not ended yet: a reflector has no other children. */
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	r = plugin_run(plugin, exec, info);
	if (r < 0)
		return r;
	*ret_plugin = TAKE(plugin);
	return 0;
}

/* Reads the available output. Returns: AGAIN while the plugin runs; 0 after exit status 0;
 * ERR_CREDENTIALS after another end, or more than a megabyte of output. */
static int plugin_collect(struct plugin *plugin, const char *command)
{
	if (plugin->pid) {
		/* Before the output is read for the last time. A background process of the plugin
		 * may keep the pipe open for ever; we do not wait for it. */
		pid_t pid = waitpid(plugin->pid, &plugin->status, WNOHANG);

		if (pid == plugin->pid)
			plugin->pid = 0;
		else if (pid < 0 && errno == ECHILD)
			plugin->pid = plugin->status =
				0; /* SIGCHLD is ignored in this process: judge by the output */
	}
	while (plugin->fd >= 0) {
		ssize_t n = read(
			plugin->fd, plugin->output + plugin->size, OUTPUT_MAX + 1 - plugin->size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) {
			cleanup_fd(&plugin->fd);
			break;
		}
		plugin->size += (size_t)n;
		if (plugin->size > OUTPUT_MAX)
			return err_say(ERR_CREDENTIALS,
				"exec: executable %s printed more than %zu bytes", command,
				OUTPUT_MAX);
	}
	if (plugin->pid)
		return AGAIN;
	if (WIFSIGNALED(plugin->status))
		return err_say(ERR_CREDENTIALS, "exec: executable %s was ended by signal %d",
			command, WTERMSIG(plugin->status));
	if (WEXITSTATUS(plugin->status))
		return err_say(ERR_CREDENTIALS, "exec: executable %s failed with exit code %d",
			command, WEXITSTATUS(plugin->status));
	return 0;
}

/* ---- its credentials ---------------------------------------------------- */

static uint64_t exec_pause(unsigned useless_runs)
{
	uint64_t pause = useless_runs ? SECOND_NS << (useless_runs < 6 ? useless_runs - 1 : 5) : 0;

	return pause < PAUSE_MAX ? pause : PAUSE_MAX;
}

static int exec_fail(struct exec *exec, int result, uint64_t now_ns)
{
	plugin_free(&exec->plugin);
	exec->failed = result;
	(void)snprintf(exec->sentence, sizeof(exec->sentence), "%s", err_text(result));
	exec->useless_runs++;
	exec->pause_ns = now_ns + exec_pause(exec->useless_runs);
	return result;
}

static void exec_collect(struct exec *exec, uint64_t now_ns, uint64_t wall_ns)
{
	struct exec_credential credential;
	int r = plugin_collect(exec->plugin, exec->config->exec.command);

	if (r == AGAIN && now_ns < exec->started_ns + exec->limit_ns)
		return;
	if (r == AGAIN)
		r = err_say(ERR_CREDENTIALS, "exec: executable %s did not end within %g s",
			exec->config->exec.command, (double)exec->limit_ns / 1e9);
	if (!r)
		r = exec_credential_read(BYTES(exec->plugin->output, exec->plugin->size),
			exec->config->exec.api_version, &credential);
	if (r < 0) {
		(void)exec_fail(exec, r, now_ns);
		return;
	}
	plugin_free(&exec->plugin);

	uint64_t life = credential.expires_ns > wall_ns ? credential.expires_ns - wall_ns : 0;
	uint64_t early = life / 10 < EARLY_MAX ? life / 10 : EARLY_MAX;

	/* The plugin does not help when its last credentials were refused soon, or had expired on
	 * arrival. */
	bool useless = exec->has && (exec->refused ? now_ns - exec->taken_ns < YOUNG
						   : exec->life_ns < SECOND_NS);

	exec->useless_runs = useless ? exec->useless_runs + 1 : 0;
	exec->pause_ns = now_ns + exec_pause(exec->useless_runs);
	exec_credential_release(&exec->credential);
	exec->credential = credential;
	exec->has = true;
	exec->refused = false;
	exec->failed = 0;
	exec->version++;
	exec->taken_ns = now_ns;
	exec->life_ns = life;
	exec->renew_ns = credential.expires_ns - early;
}

/* ---- when it runs ------------------------------------------------------- */

int exec_renew(struct exec *exec, uint64_t now_ns, uint64_t wall_ns)
{
	CHECK_OBJ(exec, EXEC_MAGIC);
	if (exec->plugin)
		exec_collect(exec, now_ns, wall_ns);
	exec->awaited = false;

	bool good = exec->has && !exec->refused && wall_ns < exec->credential.expires_ns;

	if (good && wall_ns < exec->renew_ns)
		return 0;
	if (!exec->plugin && now_ns >= exec->pause_ns) {
		CLEANUP(buf_release) struct buf info = BUF_SECRET; /* holds a proxy's password */
		int r = exec_credential_info(exec->config, &info);

		if (!r)
			r = plugin_start(&exec->config->exec, buf_cstr(&info), &exec->plugin);
		exec->started_ns = now_ns;
		if (r < 0)
			(void)exec_fail(exec, r, now_ns);
	}
	exec->awaited = !good && exec->plugin;
	if (good)
		return 0;
	if (exec->awaited)
		return AGAIN;
	/* During the pause after useless credentials, those are all there is. */
	return exec->failed ? err_say(exec->failed, "%s", exec->sentence) : 0;
}

void exec_refused(struct exec *exec, unsigned version)
{
	CHECK_OBJ(exec, EXEC_MAGIC);
	if (exec->has && version == exec->version)
		exec->refused = true;
}

/* ---- the whole ---------------------------------------------------------- */

int exec_new(const struct kubeconfig *config, uint64_t limit_ns, struct exec **ret_exec)
{
	struct exec *exec = calloc(1, sizeof(*exec));

	if (!exec)
		return err_set(-ENOMEM, "exec plugin");
	*exec = (struct exec){.magic = EXEC_MAGIC, .config = config, .limit_ns = limit_ns};
	*ret_exec = exec;
	return 0;
}

void exec_free(struct exec **exec)
{
	struct exec *e = *exec;

	*exec = NULL;
	if (!e)
		return;
	CHECK_OBJ(e, EXEC_MAGIC);
	plugin_free(&e->plugin);
	exec_credential_release(&e->credential);
	e->magic = 0;
	free(e);
}

int exec_fd(const struct exec *exec)
{
	CHECK_OBJ(exec, EXEC_MAGIC);
	return exec->plugin ? exec->plugin->fd : -1;
}
