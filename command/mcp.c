/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinf mcp: a server of the Model Context Protocol on stdin and stdout, one JSON-RPC message a
 * line. As a CGI program (RFC 3875), of kinf-serve, it answers one request of the protocol's HTTP
 * form.
 *
 * It speaks the revisions with an `initialize` handshake, and 2026-07-28, in which each request
 * carries its version in `_meta`. It keeps nothing between two requests. Messages are read as YAML,
 * which JSON is a part of, after mcp_check() has refused what is no JSON: the command links no
 * simdjson.
 */
#include "command/mcp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command/command.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/output.h"
#include "common/text/decimal.h"
#include "common/text/utf8.h"
#include "common/value/json.h"

#define MESSAGE_MAX ((size_t)1 << 20)
#define DEPTH_MAX   60

#define MODERN "2026-07-28"
#define META   "io.modelcontextprotocol/"

enum mcp_error {
	MCP_PARSE = -32700,
	MCP_REQUEST = -32600,
	MCP_METHOD = -32601,
	MCP_PARAMS = -32602,
	MCP_INTERNAL = -32603,
	MCP_MISMATCH = -32020,
	MCP_VERSION = -32022
};

/* The handshake's revisions, the newest first. */
static const char *const mcp_versions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

static const char mcp_instructions[] =
	"Kubernetes objects of one cluster from kinformer's local cache, and their retained past. "
	"Nothing is asked of the API server and nothing can be changed. Each answer begins with "
	"the moment that it shows and with how fresh it is. Long answers are cut and say so: ask "
	"with a namespace, a selector or a limit. 'at' shows an earlier moment: a time, how long "
	"ago (10m), or an event number of 'changes' and 'history'.";

/* Headers of HTTP; NULL: there is none. */
struct mcp_headers {
	const char *version, *method, *name;
};

struct mcp {
	const struct config_flags *flags;
	const struct mcp_headers *headers; /* NULL: the message did not come by HTTP */
	const struct yaml_node *id, *params;
	bool modern; /* the request carries its version */
	int status;  /* of HTTP */
	struct buf out;
};

/* ---- JSON ----------------------------------------------------------------- */

/* Reads the four digits of \uXXXX at P. Returns the code, or 0. */
static uint32_t mcp_code(const char *p, const char *end)
{
	uint32_t code = 0;

	if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
		return 0;
	for (size_t i = 2; i < 6; i++) {
		int digit = hex_digit(p[i]);

		if (digit < 0)
			return 0;
		code = code << 4 | (uint32_t)digit;
	}
	return code;
}

/* Copies the escape at *FROM to TO, and moves *FROM. YAML knows no surrogates: it writes a pair as
 * one \UXXXXXXXX. Returns the end of the copy, or NULL: a surrogate has no other half. */
static char *mcp_copy_escape(char **from, const char *end, char *to)
{
	uint32_t high = mcp_code(*from, end), low;

	if (high < 0xd800 || high > 0xdfff) {
		*to++ = *(*from)++;
		if (*from < end)
			*to++ = *(*from)++;
		return to;
	}
	low = mcp_code(*from + 6, end);
	if (high > 0xdbff || low < 0xdc00 || low > 0xdfff)
		return NULL;
	*from += 12;
	char text[16];
	int n = snprintf(
		text, sizeof(text), "\\U%08x", 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
	memcpy(to, text, (size_t)n);
	return to + n;
}

/* Checks the tokens and the depth of a message, and prepares its strings for the reader of YAML.
 * *SIZE may become smaller. Returns the fault, or NULL. */
static const char *mcp_check(char *text, size_t *size)
{
	char *end = text + *size, *to = text;
	unsigned depth = 0;
	bool in_string = false;

	for (char *p = text; p < end;) {
		if (in_string && *p == '\\') {
			to = mcp_copy_escape(&p, end, to);
			if (!to)
				return "a surrogate without its other half";
			continue;
		}
		if (*p == '"')
			in_string = !in_string;
		else if (in_string && (unsigned char)*p < 0x20)
			return "a control character in a string";
		else if (!in_string && (!*p || !strchr("{}[]:,.+-0123456789truefalsnE \t\r\n", *p)))
			return "it is no JSON";
		else if (!in_string && (*p == '{' || *p == '[') && ++depth > DEPTH_MAX)
			return "it is too deep";
		else if (!in_string && (*p == '}' || *p == ']') && depth)
			depth--;
		*to++ = *p++;
	}
	*size = (size_t)(to - text);
	return in_string ? "a string without its end" : NULL;
}

static bool mcp_is_text(const struct yaml_node *node)
{
	return node && node->type == YAML_SCALAR && node->quoted;
}

static void mcp_put_text(struct mcp *mcp, const char *text)
{
	json_write_string(bytes_str(text), &mcp->out);
}

/* ---- answers -------------------------------------------------------------- */

static void mcp_begin(struct mcp *mcp)
{
	buf_str(&mcp->out, "{\"jsonrpc\":\"2.0\",\"id\":");
	if (mcp_is_text(mcp->id))
		mcp_put_text(mcp, mcp->id->text);
	else
		buf_str(&mcp->out, mcp->id ? mcp->id->text : "null");
}

/* Returns the HTTP status of an error. The older revisions have one only for messages that are no
 * requests. */
static int mcp_status(const struct mcp *mcp, enum mcp_error code)
{
	if (code == MCP_PARSE || code == MCP_REQUEST)
		return 400;
	if (!mcp->modern || code == MCP_INTERNAL)
		return 200;
	return code == MCP_METHOD ? 404 : 400;
}

static void mcp_begin_error(struct mcp *mcp, enum mcp_error code, const char *text)
{
	mcp->status = mcp_status(mcp, code);
	mcp_begin(mcp);
	buf_printf(&mcp->out, ",\"error\":{\"code\":%d,\"message\":", (int)code);
	mcp_put_text(mcp, text);
}

static void mcp_put_error(struct mcp *mcp, enum mcp_error code, const char *text)
{
	mcp_begin_error(mcp, code, text);
	buf_str(&mcp->out, "}}");
}

static void mcp_begin_result(struct mcp *mcp)
{
	mcp_begin(mcp);
	buf_str(&mcp->out, ",\"result\":{");
	if (mcp->modern)
		buf_printf(&mcp->out,
			"\"resultType\":\"complete\",\"_meta\":{\"" META
			"serverInfo\":{\"name\":\"kinf\",\"version\":\"%s\"}},",
			kinf_version());
}

static void mcp_put_about(struct mcp *mcp)
{
	buf_str(&mcp->out, "\"capabilities\":{\"tools\":{}},\"instructions\":");
	mcp_put_text(mcp, mcp_instructions);
}

static void mcp_initialize(struct mcp *mcp)
{
	const char *wanted = yaml_text(mcp->params, "protocolVersion"), *version = mcp_versions[0];

	for (size_t i = 0; wanted && i < ARRAY_SIZE(mcp_versions); i++)
		if (strcmp(wanted, mcp_versions[i]) == 0)
			version = mcp_versions[i];
	mcp_begin_result(mcp);
	buf_printf(&mcp->out,
		"\"protocolVersion\":\"%s\",\"serverInfo\":{\"name\":\"kinf\",\"version\":\"%s\"},",
		version, kinf_version());
	mcp_put_about(mcp);
	buf_str(&mcp->out, "}}");
}

#define MCP_CACHEABLE "\"ttlMs\":3600000,\"cacheScope\":\"public\""

static void mcp_discover(struct mcp *mcp)
{
	mcp_begin_result(mcp);
	buf_str(&mcp->out, "\"supportedVersions\":[\"" MODERN "\"");
	for (size_t i = 0; i < ARRAY_SIZE(mcp_versions); i++)
		buf_printf(&mcp->out, ",\"%s\"", mcp_versions[i]);
	buf_str(&mcp->out, "]," MCP_CACHEABLE ",");
	mcp_put_about(mcp);
	buf_str(&mcp->out, "}}");
}

static void mcp_list_tools(struct mcp *mcp)
{
	mcp_begin_result(mcp);
	buf_str(&mcp->out, mcp->modern ? MCP_CACHEABLE ",\"tools\":" : "\"tools\":");
	mcp_put_tools(&mcp->out);
	buf_str(&mcp->out, "}}");
}

static void mcp_call_tool(struct mcp *mcp)
{
	CLEANUP(buf_release) struct buf text = BUF_INIT;
	const struct yaml_node *name = yaml_get(mcp->params, "name");
	const struct yaml_node *arguments = yaml_get(mcp->params, "arguments");
	char sentence[160];
	bool failed = false;

	if (!mcp_is_text(name) || (arguments && arguments->type != YAML_MAP)) {
		mcp_put_error(mcp, MCP_PARAMS,
			"tools/call: 'name' must be a string and 'arguments' an object");
		return;
	}
	int r = mcp_call(mcp->flags, name->text, arguments, &text, &failed);
	if (r != FOUND) {
		(void)snprintf(sentence, sizeof(sentence), "%s%.100s",
			r == NOT_FOUND ? "Unknown tool: " : "",
			r == NOT_FOUND ? name->text : err_text(r));
		utf8_make_printable(sentence);
		mcp_put_error(mcp, r == NOT_FOUND ? MCP_PARAMS : MCP_INTERNAL, sentence);
		return;
	}
	mcp_begin_result(mcp);
	buf_str(&mcp->out, "\"content\":[{\"type\":\"text\",\"text\":");
	json_write_string(buf_bytes(&text), &mcp->out);
	buf_printf(&mcp->out, "}],\"isError\":%s}}", failed ? "true" : "false");
}

static void mcp_ping(struct mcp *mcp)
{
	mcp_begin_result(mcp);
	if (mcp->modern)
		mcp->out.size--; /* the comma */
	buf_str(&mcp->out, "}}");
}

/* ---- requests ------------------------------------------------------------- */

/* Reads the version that the request carries. Returns whether it can be answered; if not, the
 * error is written. */
static bool mcp_check_version(struct mcp *mcp)
{
	const struct yaml_node *meta = yaml_get(mcp->params, "_meta");
	const struct yaml_node *version = yaml_get(meta, META "protocolVersion");
	const struct yaml_node *can = yaml_get(meta, META "clientCapabilities");

	if (!version)
		return true;
	mcp->modern = true;
	if (mcp_is_text(version) && strcmp(version->text, MODERN) == 0) {
		if (can && can->type == YAML_MAP)
			return true;
		mcp_put_error(mcp, MCP_PARAMS, "_meta lacks " META "clientCapabilities");
		return false;
	}
	mcp_begin_error(mcp, MCP_VERSION, "Unsupported protocol version");
	buf_str(&mcp->out, ",\"data\":{\"supported\":[\"" MODERN "\"],\"requested\":");
	mcp_put_text(mcp, version->type == YAML_SCALAR ? version->text : "");
	buf_str(&mcp->out, "}}}");
	return false;
}

/* Returns the header that contradicts the message; NULL: none does. The older revisions have the
 * version alone, which may be missing. */
static const char *mcp_find_mismatch(const struct mcp *mcp, const char *method)
{
	const struct mcp_headers *headers = mcp->headers;
	const char *version = yaml_text(yaml_get(mcp->params, "_meta"), META "protocolVersion");
	const char *name = yaml_text(mcp->params, "name");

	if (!headers)
		return NULL;
	if (!mcp->modern) {
		for (size_t i = 0; headers->version && i < ARRAY_SIZE(mcp_versions); i++)
			if (strcmp(headers->version, mcp_versions[i]) == 0)
				return NULL;
		return headers->version ? "MCP-Protocol-Version" : NULL;
	}
	if (!headers->version || !version || strcmp(headers->version, version) != 0)
		return "MCP-Protocol-Version";
	if (!headers->method || strcmp(headers->method, method) != 0)
		return "Mcp-Method";
	if (strcmp(method, "tools/call") == 0 && name &&
		(!headers->name || strcmp(headers->name, name) != 0))
		return "Mcp-Name";
	return NULL;
}

static void mcp_answer(struct mcp *mcp, const char *method)
{
	static const struct {
		const char *name;
		void (*answer)(struct mcp *mcp);
	} methods[] = {{"initialize", mcp_initialize}, {"server/discover", mcp_discover},
		{"tools/list", mcp_list_tools}, {"tools/call", mcp_call_tool}, {"ping", mcp_ping}};
	char text[160];

	if (mcp->params && mcp->params->type != YAML_MAP) {
		mcp_put_error(mcp, MCP_PARAMS, "'params' must be an object");
		return;
	}
	mcp->modern = yaml_get(yaml_get(mcp->params, "_meta"), META "protocolVersion");
	const char *header = mcp_find_mismatch(mcp, method);
	if (header) {
		(void)snprintf(text, sizeof(text), "the header %s %s", header,
			mcp->modern ? "does not match the message" : "names an unknown revision");
		mcp_put_error(mcp, mcp->modern ? MCP_MISMATCH : MCP_REQUEST, text);
		return;
	}
	if (!mcp_check_version(mcp))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (strcmp(method, methods[i].name) == 0) {
			methods[i].answer(mcp);
			return;
		}
	(void)snprintf(text, sizeof(text), "Method not found: %.100s", method);
	utf8_make_printable(text);
	mcp_put_error(mcp, MCP_METHOD, text);
}

/* Answers the message TEXT, unless it is a notification or an answer itself. */
static void mcp_message(struct mcp *mcp, char *text, size_t size)
{
	CLEANUP(yaml_free) struct yaml *message = NULL;
	const char *fault = mcp_check(text, &size);
	char sentence[200];

	mcp->id = mcp->params = NULL;
	mcp->modern = false;
	mcp->status = 200;
	int r = fault ? 0 : yaml_parse(text, size, "message", &message);
	if (fault || r < 0) {
		(void)snprintf(sentence, sizeof(sentence), "the message can't be read: %.150s",
			fault ? fault : err_text(r));
		utf8_make_printable(sentence);
		mcp_put_error(mcp, MCP_PARSE, sentence);
		return;
	}
	const struct yaml_node *root = yaml_root(message), *id = yaml_get(root, "id");
	const struct yaml_node *method = yaml_get(root, "method");
	uint64_t number;

	if (root && root->type == YAML_MAP && !method &&
		(yaml_get(root, "result") || yaml_get(root, "error")))
		return;
	bool is_id = id && id->type == YAML_SCALAR &&
		     (id->quoted || decimal_parse(bytes_str(id->text + (*id->text == '-')),
					    UINT64_MAX, &number) == 0);
	if (!mcp_is_text(method) || (id && !is_id)) {
		mcp_put_error(mcp, MCP_REQUEST,
			"a request has a 'method', a string, and an 'id', a string or an integer");
		return;
	}
	if (!id)
		return;
	mcp->id = id;
	mcp->params = yaml_get(root, "params");
	mcp_answer(mcp, method->text);
}

/* Reads a line without its end into LINE; *RET_SIZE is above MESSAGE_MAX if it is longer. Returns
 * false at the end of the input. */
static bool mcp_read_line(char *line, size_t *ret_size)
{
	size_t n = 0;
	int c;

	while ((c = getc_unlocked(stdin)) != EOF && c != '\n')
		if (n <= MESSAGE_MAX)
			line[n++] = (char)c;
	line[n] = '\0';
	*ret_size = n;
	return c != EOF || n;
}

static int mcp_serve(struct mcp *mcp)
{
	AUTO_FREE char *line = malloc(MESSAGE_MAX + 2);
	int r = line ? 0 : err_set(-ENOMEM, "messages");
	size_t size;

	while (r == 0 && mcp_read_line(line, &size)) {
		mcp->id = NULL;
		if (size > MESSAGE_MAX)
			mcp_put_error(mcp, MCP_PARSE, "the message is longer than 1 MiB");
		else if (strspn(line, " \t\r") < size)
			mcp_message(mcp, line, size);
		if (!mcp->out.size)
			continue;
		buf_byte(&mcp->out, '\n');
		r = buf_error(&mcp->out);
		if (r == 0)
			r = output_text(&mcp->out);
	}
	return r == -EPIPE ? 0 : r; /* the client is gone */
}

/* Answers the only message of a request. 202: it wants no answer. */
static int mcp_serve_http(struct mcp *mcp)
{
	CLEANUP(buf_release) struct buf message = BUF_INIT, head = BUF_INIT;
	const struct mcp_headers headers = {getenv("HTTP_MCP_PROTOCOL_VERSION"),
		getenv("HTTP_MCP_METHOD"), getenv("HTTP_MCP_NAME")};
	int r = buf_read_file(&message, STDIN_FILENO, "the message");

	if (r < 0)
		return r;
	mcp->headers = &headers;
	buf_byte(&message, '\0');
	r = buf_error(&message);
	if (r < 0)
		return r;
	mcp_message(mcp, (char *)message.data, message.size - 1);
	r = buf_error(&mcp->out);
	if (r < 0)
		return r;
	buf_printf(&head, "Status: %d\r\nContent-Type: application/json\r\n\r\n",
		mcp->out.size ? mcp->status : 202);
	buf_bytes_put(&head, buf_bytes(&mcp->out));
	r = buf_error(&head);
	return r < 0 ? r : output_text(&head);
}

int command_mcp(int argc, char **argv)
{
	struct command_line line = {
		.options = {"kinf mcp", "",
			"Answers an assistant's questions about the cluster and its past: a server "
			"of the Model Context Protocol on stdin and stdout. It reads the store "
			"alone."},
	};
	int r = command_parse(&line, argc, argv);

	if (r != 0)
		return command_usage(&line, r);
	struct mcp mcp = {.flags = &line.flags, .out = BUF_INIT};

	r = getenv("GATEWAY_INTERFACE") ? mcp_serve_http(&mcp) : mcp_serve(&mcp);
	buf_release(&mcp.out);
	return r < 0 ? command_fail(r) : PROC_OK;
}
