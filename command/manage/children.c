/* SPDX-License-Identifier: Apache-2.0 */
#include "command/manage/children.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/daemon/parent.h"
#include "common/daemon/signals.h"
#include "common/err.h"
#include "common/log.h"
#include "common/proc.h"

#define FIRST_PAUSE_NS (100 * UINT64_C(1000000))
#define MAX_PAUSE_NS   (30 * UINT64_C(1000000000))
#define GOOD_LIFE_NS   (10 * UINT64_C(1000000000))
#define IN_USE_NS      (5 * UINT64_C(1000000000)) /* for a daemon to end */

/* ---- finding programs --------------------------------------------------- */

int children_find(const char *program, char **ret_path)
{
	static const char link[] = "/proc/self/exe";
	AUTO_FREE char *all = strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
	char self[PATH_MAX], *rest = NULL, *slash = NULL;
	ssize_t n = readlink(link, self, sizeof(self) - 1);
	int error = n < 0 ? errno : 0;

	if (n > 0) {
		self[n] = '\0';
		slash = strrchr(self, '/');
	}
	if (slash)
		*slash = '\0';
	char *list = all, *directory = slash ? self : NULL;
	do {
		char *path = NULL;

		if (!directory)
			continue;
		if (asprintf(&path, "%s/%s", directory, program) < 0)
			return err_set(-ENOMEM, "looking for '%s'", program);
		if (access(path, X_OK) == 0) {
			*ret_path = path;
			return 0;
		}
		free(path);
	} while (all && (directory = strtok_r(TAKE(list), ":", &rest)));
	if (error)
		return err_add(proc_failed(-error, link), "looking for '%s'", program);
	return err_say(-ENOENT,
		"'%s' is neither beside kinf nor in PATH; install it beside kinf, or add its "
		"directory to PATH",
		program);
}

int children_init(struct children *children, struct child *child, size_t n)
{
	*children = (struct children){.child = child, .n = n, .death_fd = {-1, -1}};
	for (size_t i = 0; i < n; i++) {
		int r = children_find(child[i].program, &child[i].path);

		if (r < 0)
			return r;
		child[i].pause_ns = FIRST_PAUSE_NS;
	}
	if (pipe2(children->death_fd, O_CLOEXEC) < 0)
		return err_set(-errno, "making the pipe to the daemons");
	char text[16];

	children->sockets = (int)parent_sockets();
	(void)snprintf(text, sizeof(text), "%d", PARENT_SOCKET + children->sockets);
	return setenv("KINF_DEATH_FD", text, 1) < 0 ? err_set(-errno, "setting KINF_DEATH_FD") : 0;
}

void children_release(struct children *children)
{
	for (size_t i = 0; i < children->n; i++)
		cleanup_free(&children->child[i].path);
	cleanup_fd(&children->death_fd[0]);
	cleanup_fd(&children->death_fd[1]);
}

/* ---- starting ----------------------------------------------------------- */

/* Pauses before a start, longer after short runs. */
static void children_put_off(struct child *child, uint64_t now)
{
	child->start_at_ns = now + child->pause_ns;
	child->pause_ns = child->pause_ns * 2 < MAX_PAUSE_NS ? child->pause_ns * 2 : MAX_PAUSE_NS;
}

static void children_start(struct children *children, struct child *child)
{
	size_t n = 0;

	while (child->arguments[n])
		n++;
	AUTO_FREE char **argv = calloc(n + 2, sizeof(*argv));
	if (argv) {
		argv[0] = child->path;
		memcpy(argv + 1, child->arguments, n * sizeof(*argv));
	}
	child->start_at_ns = 0;
	child->started_ns = proc_monotonic_ns();
	pid_t pid = argv ? fork() : -1;
	if (pid == 0) { /* until exec only async-signal-safe calls */
		int death_fd = children->death_fd[0], at = PARENT_SOCKET + children->sockets;

		signals_reset();
		for (int fd = PARENT_SOCKET; !child->takes_sockets && fd < at; fd++)
			(void)close(fd);
		/* dup2 onto itself would keep close-on-exec. */
		if ((death_fd == at ? fcntl(death_fd, F_SETFD, 0) : dup2(death_fd, at)) >= 0)
			(void)execv(child->path, argv);
		_exit(CHILD_NOT_EXECUTED);
	}
	if (pid < 0) {
		children_put_off(child, child->started_ns);
		LOG(child_not_started, .daemon = child->program, .error = strerror(errno));
		return;
	}
	child->pid = pid;
	LOG(child_started, .daemon = child->program, .pid = pid);
}

int children_start_due(struct children *children)
{
	uint64_t now = proc_monotonic_ns();
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < children->n; i++) {
		struct child *child = &children->child[i];

		if (child->pid || child->given_up)
			continue;
		if (child->start_at_ns <= now)
			children_start(children, child);
		if (!child->pid && child->start_at_ns < next)
			next = child->start_at_ns;
	}
	return proc_ms_until(next);
}

int child_start(
	const char *path, char *const *arguments, const struct child_start *start, pid_t *ret_pid)
{
	pid_t pid = fork();

	if (pid < 0)
		return err_set(-errno, "starting '%s'", path);
	if (pid == 0) { /* until exec only async-signal-safe calls */
		sigset_t none;

		signals_reset();
		(void)sigemptyset(&none);
		(void)sigprocmask(SIG_SETMASK, &none, NULL);
		(void)prctl(PR_SET_PDEATHSIG, start->death_signal);
		if (start->background)
			(void)setpgid(0, 0);
		if ((!start->directory || chdir(start->directory) == 0) &&
			(!start->fd || dup2(start->fd, start->number) >= 0) &&
			(!start->quiet || (dup2(start->fd, STDERR_FILENO) >= 0 &&
						  dup2(open("/dev/null", O_RDONLY | O_CLOEXEC),
							  STDIN_FILENO) >= 0)))
			(void)execvp(path, arguments);
		_exit(CHILD_NOT_EXECUTED);
	}
	*ret_pid = pid;
	return 0;
}

/* ---- ends and restarts -------------------------------------------------- */

static void children_describe_end(int status, char *text, size_t size)
{
	static const char refused[] = "can't run with this configuration, or on this machine as it "
				      "is (its message is above)";
	static const struct {
		int code;
		const char *text;
	} ends[] = {{PROC_OK, "ended"}, {PROC_CONFIG, refused}, {PROC_USAGE, refused},
		{PROC_IN_USE, "runs already (its message is above)"},
		{PROC_INTERNAL, "found damaged data or a fault of its own"},
		{PROC_TEMPORARY, "can't run just now"},
		{CHILD_NOT_EXECUTED, "could not be executed"}};

	if (WIFSIGNALED(status)) {
		(void)snprintf(text, size, "killed by signal %d (%s)", WTERMSIG(status),
			strsignal(WTERMSIG(status)));
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		if (WEXITSTATUS(status) == ends[i].code) {
			(void)snprintf(text, size, "%s", ends[i].text);
			return;
		}
	(void)snprintf(text, size, "exit status %d", WEXITSTATUS(status));
}

/* Plans the next start, later each time unless the last run was long. A daemon without its role is
 * retried for a while: a killed supervisor's daemon may be about to end. A bad configuration or a
 * missing program ends a first start; later starts are retried, because the file or the package may
 * be half-written, and the other daemons go on. */
static void children_died(struct child *child, int status, bool stopping)
{
	uint64_t now = proc_monotonic_ns();
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	pid_t pid = child->pid;
	char why[128];

	children_describe_end(status, why, sizeof(why));
	child->pid = 0;
	if (stopping) {
		LOG(child_stopped, .daemon = child->program, .pid = pid, .why = why);
		return;
	}
	if (now - child->started_ns >= GOOD_LIFE_NS)
		child->pause_ns = FIRST_PAUSE_NS;
	if (code != PROC_IN_USE)
		child->in_use_ns = 0;
	else if (!child->in_use_ns)
		child->in_use_ns = now;
	child->refused = code == PROC_CONFIG || code == PROC_USAGE;
	child->has_run |= !child->refused && code != CHILD_NOT_EXECUTED && code != PROC_IN_USE;
	child->given_up = ((child->refused || code == CHILD_NOT_EXECUTED) && !child->has_run) ||
			  (child->in_use_ns && now - child->in_use_ns >= IN_USE_NS);
	children_put_off(child, now);
	child->restarts++;
	if (child->given_up)
		LOG(child_given_up, .daemon = child->program, .pid = pid, .why = why);
	else
		LOG(child_died, .daemon = child->program, .pid = pid, .why = why,
			.restart_in_seconds = child->start_at_ns - now);
}

void children_reap(struct children *children, bool stopping)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (size_t i = 0; i < children->n; i++)
			if (children->child[i].pid == pid)
				children_died(&children->child[i], status, stopping);
}

void children_signal(struct children *children, int signal_number)
{
	for (size_t i = 0; i < children->n; i++)
		if (children->child[i].pid)
			(void)kill(children->child[i].pid, signal_number); /* gone: reaped soon */
}

bool children_any_running(const struct children *children)
{
	for (size_t i = 0; i < children->n; i++)
		if (children->child[i].pid)
			return true;
	return false;
}

const struct child *children_given_up(const struct children *children)
{
	for (size_t i = 0; i < children->n; i++)
		if (children->child[i].given_up)
			return &children->child[i];
	return NULL;
}
