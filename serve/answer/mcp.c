/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /kinf/mcp, with serve.mcp: one message of the Model Context Protocol, for clients that may
 * list everything.
 *
 * Each message is answered by a process `kinf mcp` of its own, a CGI program (RFC 3875): the
 * protocol and its tools are the command's, and a tool that crashes, hangs or needs much memory
 * ends alone.
 */
#include "serve/answer/verbs.h"

#include <envz.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"

#define MCP_PATH     "/kinf/mcp"
#define MCP_PROGRAM  "kinf"
#define MCP_BODY_MAX ((size_t)1 << 20)
#define MCP_CALLS    4                     /* processes at once */
#define MCP_CALL_NS  UINT64_C(40000000000) /* longer than the command's own limit */
#define MCP_HEADER   256                   /* longer values are left out */

struct mcp_calls {
	char *program; /* path of kinf */
	char *store;
	unsigned calls; /* atomic */
};

int mcp_open(const char *store, struct mcp_calls **ret_mcp)
{
	CLEANUP(mcp_close) struct mcp_calls *mcp = calloc(1, sizeof(*mcp));
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return proc_failed(-errno, "/proc/self/exe");
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	if (!mcp || !(mcp->store = strdup(store)) ||
		asprintf(&mcp->program, "%s/" MCP_PROGRAM, self) < 0)
		return err_set(-ENOMEM, "serve.mcp");
	if (access(mcp->program, X_OK) < 0)
		return err_say(ERR_CONFIG,
			"serve.mcp runs '%s', which is not there: install kinf beside kinf-serve",
			mcp->program);
	*ret_mcp = TAKE(mcp);
	return 0;
}

void mcp_close(struct mcp_calls **mcp)
{
	struct mcp_calls *m = TAKE(*mcp);

	if (!m)
		return;
	free(m->program);
	free(m->store);
	free(m);
}

/* ---- a process ------------------------------------------------------------ */

struct mcp_stage {
	struct mcp_calls *mcp;
	int in_fd, out_fd; /* memory files: the message, the answer */
	pid_t pid;         /* 0: there is none */
	uint64_t end_ns;
	bool counted;
};

static void mcp_stage_free(void *stage)
{
	struct mcp_stage *s = stage;

	if (s->pid) { /* the client is gone, or it took too long */
		(void)kill(-s->pid, SIGKILL);
		(void)waitpid(s->pid, NULL, 0);
	}
	if (s->counted)
		(void)__atomic_sub_fetch(&s->mcp->calls, 1, __ATOMIC_ACQ_REL);
	cleanup_fd(&s->in_fd);
	cleanup_fd(&s->out_fd);
	free(s);
}

/* Makes the environment: this process's, the marks of CGI, and the headers of the protocol.
 * *RET_TEXT has its words; the caller frees both. Returns NULL without memory. */
static char **mcp_environment(const struct exchange *x, char **ret_text)
{
	static const struct {
		const char *header, *variable;
	} headers[] = {{"mcp-protocol-version", "HTTP_MCP_PROTOCOL_VERSION"},
		{"mcp-method", "HTTP_MCP_METHOD"}, {"mcp-name", "HTTP_MCP_NAME"}};
	char value[MCP_HEADER + 1], **words;
	size_t size = 0;
	bool made = argz_create(environ, ret_text, &size) == 0 &&
		    envz_add(ret_text, &size, "GATEWAY_INTERFACE", "CGI/1.1") == 0 &&
		    envz_add(ret_text, &size, "REQUEST_METHOD", "POST") == 0;

	for (size_t i = 0; made && i < ARRAY_SIZE(headers); i++) {
		struct bytes given = exchange_header(x, headers[i].header);

		(void)snprintf(value, sizeof(value), "%.*s", BYTES_ARG(given));
		if (given.data && given.size <= MCP_HEADER)
			made = envz_add(ret_text, &size, headers[i].variable, value) == 0;
	}
	words = made ? calloc(argz_count(*ret_text, size) + 1, sizeof(*words)) : NULL;
	if (words)
		argz_extract(*ret_text, size, words);
	return words;
}

static int mcp_spawn(struct mcp_stage *stage, char **environment)
{
	char program[] = MCP_PROGRAM, command[] = "mcp", option[] = "--store";
	char *const words[] = {program, command, option, stage->mcp->store, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	int rc = posix_spawn_file_actions_init(&actions);
	if (rc)
		return -rc;
	rc = posix_spawnattr_init(&attributes);
	if (rc == 0) {
		(void)posix_spawnattr_setflags(&attributes,
			POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
		(void)posix_spawnattr_setsigmask(&attributes, &none);
		(void)posix_spawnattr_setsigdefault(&attributes, &all);
		(void)posix_spawn_file_actions_adddup2(&actions, stage->in_fd, STDIN_FILENO);
		(void)posix_spawn_file_actions_adddup2(&actions, stage->out_fd, STDOUT_FILENO);
		rc = posix_spawn(&stage->pid, stage->mcp->program, &actions, &attributes, words,
			environment);
		(void)posix_spawnattr_destroy(&attributes);
	}
	(void)posix_spawn_file_actions_destroy(&actions);
	if (rc)
		stage->pid = 0;
	return -rc;
}

static int mcp_start(struct answer_request *request, struct mcp_stage *stage)
{
	AUTO_FREE char *text = NULL;
	AUTO_FREE char **environment = mcp_environment(request->x, &text);
	const struct buf *body = &request->body;
	ssize_t n = 0;
	int r;

	stage->in_fd = memfd_create("kinf-mcp-message", MFD_CLOEXEC);
	stage->out_fd = memfd_create("kinf-mcp-answer", MFD_CLOEXEC);
	if (!environment)
		r = err_set(-ENOMEM, "an environment");
	else if (stage->in_fd < 0 || stage->out_fd < 0)
		r = err_set(-errno, "a file in memory");
	else if ((n = pwrite(stage->in_fd, body->data, body->size, 0)) != (ssize_t)body->size)
		r = err_set(n < 0 ? -errno : -EIO, "a message");
	else
		r = mcp_spawn(stage, environment);
	return r < 0 ? err_add(r, "starting '%s'", stage->mcp->program) : 0;
}

/* ---- its answer ----------------------------------------------------------- */

static void mcp_send(struct answer_request *request, struct mcp_stage *stage, int ended)
{
	static const struct exchange_header headers[] = {
		{BYTES_LIT("content-type"), BYTES_LIT("application/json")}};
	static const char end[] = "\r\n\r\n";
	CLEANUP(buf_release) struct buf out = BUF_INIT;
	const char *body = NULL;
	int status = 0;

	if (lseek(stage->out_fd, 0, SEEK_SET) == 0 && buf_read_file(&out, stage->out_fd, "it") == 0)
		body = strstr(buf_cstr(&out), end);
	if (!body || sscanf(buf_cstr(&out), "Status: %3d", &status) != 1 || !status) {
		api_status_set(&request->status, 500, "InternalError",
			"'%s mcp' ended without an answer, with %s %d", stage->mcp->program,
			WIFSIGNALED(ended) ? "signal" : "status",
			WIFSIGNALED(ended) ? WTERMSIG(ended) : WEXITSTATUS(ended));
		answer_refuse(request, 500);
		return;
	}
	body += strlen(end);
	size_t size = out.size - (size_t)(body - buf_cstr(&out));
	exchange_begin(request->x, status, headers, size ? 1 : 0);
	exchange_send(request->x, BYTES(body, size));
	answer_request_free(&request);
}

/* Starts the process once there is a place, and looks for its end. */
static void mcp_turn(struct answer_request *request)
{
	struct mcp_stage *stage = request->stage;
	unsigned *calls = &stage->mcp->calls;
	int ended = 0, r = 0;

	if (!stage->end_ns)
		stage->end_ns = proc_monotonic_ns() + MCP_CALL_NS;
	if (!stage->counted && __atomic_add_fetch(calls, 1, __ATOMIC_ACQ_REL) > MCP_CALLS) {
		(void)__atomic_sub_fetch(calls, 1, __ATOMIC_ACQ_REL);
	} else if (!stage->counted) {
		stage->counted = true;
		stage->end_ns = proc_monotonic_ns() + MCP_CALL_NS;
		r = mcp_start(request, stage);
	}
	if (r < 0) {
		answer_refuse(request, r);
	} else if (stage->pid && waitpid(stage->pid, &ended, WNOHANG) != 0) {
		stage->pid = 0;
		mcp_send(request, stage, ended);
	} else if (proc_monotonic_ns() < stage->end_ns) {
		answer_wait(request, false);
	} else if (stage->pid) {
		answer_refuse(request, api_status_set(&request->status, 504, "Timeout",
					       "'%s mcp' did not end", stage->mcp->program));
	} else {
		api_status_set(&request->status, 429, "TooManyRequests",
			"%d other messages are being answered", MCP_CALLS);
		request->status.retry_after = 1;
		answer_refuse(request, 429);
	}
}

/* ---- the request ---------------------------------------------------------- */

static void mcp_dispatch(struct answer_request *request)
{
	struct mcp_stage *stage;

	if (!bytes_equal(request->x->method, BYTES_LIT("POST"))) {
		answer_refuse(request, api_status_no_method(&request->status));
		return;
	}
	if (exchange_header(request->x, "origin").data) {
		answer_refuse(request, api_status_set(&request->status, 403, "Forbidden",
					       "requests of web pages are refused"));
		return;
	}
	stage = calloc(1, sizeof(*stage));
	if (!stage) {
		answer_refuse(request, err_set(-ENOMEM, "a message"));
		return;
	}
	stage->mcp = request->worker->answer->mcp;
	stage->in_fd = stage->out_fd = -1;
	answer_set_stage(request, stage, mcp_stage_free);
	request->resume = mcp_turn;
	answer_take_body(request, MCP_BODY_MAX);
}

bool answer_is_mcp(const struct answer_request *request)
{
	return request->worker->answer->mcp && !request->x->upgrade &&
	       bytes_equal(request->x->path, BYTES_LIT(MCP_PATH));
}

void answer_mcp(struct answer_request *request)
{
	struct api_path *path = &request->path;

	path->kind = API_PATH_RESOURCE;
	path->group = path->resource = "*";
	path->version = "*";
	path->namespace_ = path->name = path->subresource = "";
	request->verb = ANSWER_LIST;
	request->is_message = true;
	request->dispatch = mcp_dispatch;
}
