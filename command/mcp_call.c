/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of a tool: runs the subcommand with the arguments as its options, and answers with what
 * it prints, bounded and dated. A command that hangs or crashes ends alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command/command.h"
#include "command/manage/children.h"
#include "command/mcp.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/text/decimal.h"
#include "common/text/timestamp.h"
#include "common/text/utf8.h"
#include "reader/handle.h"

#define ANSWER_MAX     ((size_t)24 << 10) /* bytes; some 8,000 tokens */
#define CALL_NS        UINT64_C(30000000000)
#define COMMAND_WORDS  (2 * ARGUMENTS_MAX + 12)
#define ARGUMENT_BYTES 4096

/* ---- arguments ------------------------------------------------------------ */

/* A call. Its words are the command's. */
struct mcp_call {
	const struct mcp_tool *tool;
	const char *resource; /* NULL: none */
	const char *at;       /* NULL: now */
	const char *refused;  /* an argument that may show values; NULL: none was given */
	char *words[COMMAND_WORDS], *operands[ARGUMENTS_MAX];
	size_t n, n_operands;
	bool no_memory;
	bool remote;     /* of a request of HTTP */
	struct buf *out; /* the answer */
};

static void call_release(struct mcp_call *call)
{
	for (size_t i = 0; i < call->n; i++)
		free(call->words[i]);
}

/* Adds the word OPTION with VALUE at its end. */
static void call_add(struct mcp_call *call, const char *option, const char *value)
{
	size_t size = strlen(option) + strlen(value) + 1;
	char *word = malloc(size);

	if (!word) {
		call->no_memory = true;
		return;
	}
	(void)snprintf(word, size, "%s%s", option, value);
	call->words[call->n++] = word;
}

static bool call_is_value(const struct mcp_argument *argument, const struct yaml_node *node)
{
	uint64_t number;

	if (node->type != YAML_SCALAR || strlen(node->text) > ARGUMENT_BYTES)
		return false;
	switch (argument->type) {
	case MCP_NUMBER:
		return !node->quoted &&
		       decimal_parse(bytes_str(node->text), UINT64_MAX, &number) == 0;
	case MCP_FLAG:
		return !node->quoted &&
		       (strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0);
	default:
		return node->quoted;
	}
}

static bool call_is_word(const char *words, const char *text)
{
	size_t size = strlen(text);

	for (const char *p = words; p; p = strchr(p, '|')) {
		p += *p == '|';
		if (strncmp(p, text, size) == 0 && (!p[size] || p[size] == '|'))
			return true;
	}
	return false;
}

/* Takes the arguments. Returns false after it wrote what is wrong with them. */
static bool call_read(struct mcp_call *call, const struct yaml_node *given)
{
	static const char *const forms[] = {[MCP_TEXT] = "a string",
		[MCP_NUMBER] = "a number from 0 on",
		[MCP_FLAG] = "true or false"};

	for (size_t i = 0; given && i < given->count; i++) {
		const struct mcp_argument *a = call->tool->arguments;

		while (a->name && strcmp(a->name, given->keys[i]) != 0)
			a++;
		if (a->name)
			continue;
		buf_printf(call->out, "'%.60s' is no argument of %s:", given->keys[i],
			call->tool->name);
		for (a = call->tool->arguments; a->name; a++)
			buf_printf(call->out, " %s", a->name);
		return false;
	}
	for (const struct mcp_argument *a = call->tool->arguments; a->name; a++) {
		const struct yaml_node *node = yaml_get(given, a->name);

		if (!node && a->required) {
			buf_printf(call->out, "%s needs '%s': %s", call->tool->name, a->name,
				a->about);
			return false;
		}
		if (!node)
			continue;
		if (!call_is_value(a, node)) {
			buf_printf(call->out, "'%s' must be %s", a->name, forms[a->type]);
			return false;
		}
		if (a->words && !call_is_word(a->words, node->text)) {
			buf_printf(call->out, "'%s' must be one of %s", a->name, a->words);
			return false;
		}
		if (strcmp(a->name, "resource") == 0)
			call->resource = node->text;
		if (strcmp(a->name, "at") == 0)
			call->at = node->text;
		if (a->shows_values)
			call->refused = a->name;
		if (!a->option)
			call->operands[call->n_operands++] = node->text;
		else if (a->type != MCP_FLAG || strcmp(node->text, "true") == 0)
			call_add(call, a->option, a->type == MCP_FLAG ? "" : node->text);
	}
	return true;
}

/* ---- the state that is shown ---------------------------------------------- */

struct mcp_freshness {
	struct kinf_feed_info oldest; /* the feed that is not live, or was heard of longest ago */
	size_t n;
	bool has_secrets;
};

static int fresh_feed(void *arg, const struct kinf_feed_info *info)
{
	struct mcp_freshness *fresh = arg;
	bool was_live = strcmp(fresh->oldest.state, "live") == 0;
	bool is_live = strcmp(info->state, "live") == 0;

	if (!fresh->n++ || (was_live && !is_live) ||
		(was_live == is_live &&
			info->last_contact_seconds > fresh->oldest.last_contact_seconds))
		fresh->oldest = *info;
	fresh->has_secrets |= strcmp(info->resource, "secrets") == 0;
	return 0;
}

static void fresh_put(const struct mcp_freshness *fresh, uint64_t time_ns, uint64_t event,
	bool is_past, struct buf *out)
{
	const struct kinf_feed_info *info = &fresh->oldest;
	char time[TIMESTAMP_SIZE];

	timestamp_seconds(time_ns, time);
	buf_printf(
		out, "[%s%s, event %llu", is_past ? "as of " : "", time, (unsigned long long)event);
	if (fresh->n && !is_past) {
		buf_printf(out, "; %s%s: %s", fresh->n > 1 ? "the stalest of them, " : "",
			info->full_name, info->state);
		if (info->last_contact_seconds >= 0)
			buf_printf(out, ", last contact with the API server %.0f s ago",
				info->last_contact_seconds);
		else if (*info->last_error)
			buf_printf(out, ", %s", info->last_error);
	}
	buf_str(out, "]\n");
}

/* Writes what is shown and how fresh it is. Returns false after it wrote why nothing can be. */
static bool call_begin(struct mcp_call *call, const struct config_flags *flags)
{
	AUTO_FREE char *directory = NULL;
	CLEANUP(kinf_close) struct kinf *kinf = NULL;
	CLEANUP(kinf_snapshot_close) struct kinf_snapshot *snapshot = NULL;
	struct mcp_freshness fresh = {.n = 0};
	const char *word = call->resource;
	uint64_t now = proc_realtime_ns();
	struct past when = {0};
	int r = call->at ? past_parse(call->at, now, &when) : 0;

	if (r == 0)
		r = command_store(flags, &directory);

	if (r < 0) {
		buf_str(call->out, err_text(r));
		return false;
	}
	/* One feed: a list of them, or FEED/NAME, could have Secrets in it. */
	if (word && (!*word || strpbrk(word, ",/") || strcmp(word, "all") == 0)) {
		buf_printf(call->out, "'%.80s' is not one resource; 'status' lists them", word);
		return false;
	}
	r = kinf_open_checked(directory, NULL, NULL, true, &kinf);
	if (r == 0)
		r = kinf_snapshot_open(kinf, &snapshot);
	if (r == 0)
		r = kinf_feed_status(snapshot, call->resource, fresh_feed, &fresh);
	if (r == 0 && call->at)
		r = past_enter(snapshot, &when);
	if (r != 0) {
		buf_str(call->out, kinf_error(kinf));
		return false;
	}
	if (fresh.has_secrets && call->remote && !call->tool->is_report) {
		buf_str(call->out, call->resource
					   ? "Secrets are not shown over the network"
					   : "name a resource: over the network Secrets are not "
					     "shown, and this store has some");
		return false;
	}
	if (fresh.has_secrets && call->resource && call->refused) {
		buf_printf(call->out,
			"'%s' is refused for Secrets, whose values are not shown: use describe, or "
			"get without it",
			call->refused);
		return false;
	}
	fresh_put(&fresh, call->at ? when.time_ns : now,
		call->at ? when.event : kinf_snapshot_event(snapshot), call->at, call->out);
	return true;
}

/* ---- the command ---------------------------------------------------------- */

/* Starts the command with both outputs into a pipe. Returns its pid; *RET_FD: the other end. */
static int call_start(struct mcp_call *call, int *ret_fd, pid_t *ret_pid)
{
	int fds[2];

	if (call->no_memory)
		return err_set(-ENOMEM, "a tool");
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(-errno, "a pipe");
	const struct child_start start = {.fd = fds[1], .number = STDOUT_FILENO, .quiet = true};
	int r = child_start("/proc/self/exe", call->words, &start, ret_pid);
	(void)close(fds[1]);
	if (r < 0)
		(void)close(fds[0]);
	*ret_fd = fds[0];
	return r;
}

/* Reads the command's output into TEXT: the first ANSWER_MAX bytes, or the last. *RET_LEFT: bytes
 * that are left out. Returns false if it did not end in time. */
static bool call_collect(const struct mcp_call *call, int fd, struct buf *text, size_t *ret_left)
{
	uint64_t end = proc_monotonic_ns() + CALL_NS, now;
	char piece[16384];
	ssize_t n = 1;

	*ret_left = 0;
	while (n != 0 && (now = proc_monotonic_ns()) < end) {
		struct pollfd ready = {.fd = fd, .events = POLLIN};

		if (poll(&ready, 1, (int)((end - now) / 1000000) + 1) <= 0)
			continue;
		n = read(fd, piece, sizeof(piece));
		if (n <= 0)
			continue;
		buf_bytes_put(text, BYTES(piece, (size_t)n));
		if (text->size <= 2 * ANSWER_MAX)
			continue;
		size_t more = text->size - ANSWER_MAX;
		if (call->tool->newest)
			memmove(text->data, text->data + more, ANSWER_MAX);
		buf_truncate(text, ANSWER_MAX);
		*ret_left += more;
	}
	return n == 0;
}

/* Cuts TEXT to ANSWER_MAX bytes and to whole lines, if it has some. */
static struct bytes call_cut(const struct mcp_call *call, const struct buf *text, size_t *left)
{
	const char *begin = (const char *)text->data, *end = begin + text->size;

	if (!*left && text->size <= ANSWER_MAX)
		return buf_bytes(text);
	if (call->tool->newest) {
		begin = text->size > ANSWER_MAX ? end - ANSWER_MAX : begin;
		const char *line = memchr(begin, '\n', (size_t)(end - begin));
		begin = line && line + 1 < end ? line + 1 : begin;
	} else {
		end = text->size > ANSWER_MAX ? begin + ANSWER_MAX : end;
		const char *line = memrchr(begin, '\n', (size_t)(end - begin));
		end = line ? line + 1 : end;
	}
	*left += text->size - (size_t)(end - begin);
	return BYTES(begin, (size_t)(end - begin));
}

/* Appends TEXT; '?' stands for each byte that is no UTF-8. */
static void call_put(struct bytes text, struct buf *out)
{
	const uint8_t *p = text.data, *end = p + text.size;

	while (p < end) {
		size_t n = utf8_length(BYTES(p, (size_t)(end - p)));

		if (n)
			buf_bytes_put(out, BYTES(p, n));
		else
			buf_byte(out, '?');
		p += n ? n : 1;
	}
}

static void call_put_left(const struct mcp_call *call, size_t left, struct buf *out)
{
	const char *sep = "; ask for less: with ";

	buf_printf(out, "[%zu bytes %s are left out", left,
		call->tool->newest ? "before this" : "after this");
	for (const struct mcp_argument *a = call->tool->arguments; a->name; a++)
		if (!a->required &&
			call_is_word("name|namespace|labels|fields|limit|since|prefix", a->name)) {
			buf_printf(out, "%s%s", sep, a->name);
			sep = ", ";
		}
	buf_str(out, "]\n");
}

static int call_run(struct mcp_call *call, bool *ret_failed)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	size_t left;
	int fd, status = 0;
	pid_t pid;
	int r = call_start(call, &fd, &pid);

	if (r < 0)
		return r;
	bool in_time = call_collect(call, fd, &text, &left);
	(void)close(fd);
	if (!in_time)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	bool is_error = !call->tool->is_report && (strncmp(buf_cstr(&text), "Error:", 6) == 0 ||
							  strstr(buf_cstr(&text), "\nError:"));
	struct bytes shown = call_cut(call, &text, &left);
	if (left && call->tool->newest)
		call_put_left(call, left, call->out);
	call_put(shown, call->out);
	if (left && !call->tool->newest)
		call_put_left(call, left, call->out);
	if (!in_time)
		buf_printf(call->out, "[it took longer than %d s: ask for less]\n",
			(int)(CALL_NS / 1000000000));
	else if (!shown.size)
		buf_str(call->out, "nothing\n");
	/* diff: 1 if something differs. */
	*ret_failed = !WIFEXITED(status) || WEXITSTATUS(status) > 1 ||
		      (WEXITSTATUS(status) == 1 && is_error);
	return buf_error(&text);
}

int mcp_call(const struct config_flags *flags, const char *name, const struct yaml_node *arguments,
	struct buf *out, bool *ret_failed)
{
	CLEANUP(call_release) struct mcp_call call = {.out = out};
	const struct {
		const char *option, *value;
	} common[] = {{"--store=", flags->store}, {"--runtime-dir=", flags->runtime_dir},
		{"--config=", flags->file}, {"--cluster=", flags->cluster}};

	call.tool = mcp_find(name);
	if (!call.tool)
		return NOT_FOUND;
	*ret_failed = true;
	call.remote = getenv("GATEWAY_INTERFACE");
	call.resource = call.tool->resource;
	call_add(&call, "kinf", "");
	for (size_t i = 0; i < ARRAY_SIZE(call.tool->command) && call.tool->command[i]; i++)
		call_add(&call, call.tool->command[i], "");
	for (size_t i = 0; i < ARRAY_SIZE(common); i++)
		if (common[i].value)
			call_add(&call, common[i].option, common[i].value);
	if (!call_read(&call, arguments) || !call_begin(&call, flags))
		return buf_error(out);
	call_add(&call, "--", "");
	for (size_t i = 0; i < call.n_operands; i++)
		call_add(&call, call.operands[i], "");
	int r = call_run(&call, ret_failed);
	return r < 0 ? r : buf_error(out);
}
