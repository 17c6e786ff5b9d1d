/* SPDX-License-Identifier: Apache-2.0 */
/* The internal header of the mcp group: mcp speaks the protocol, mcp_tools has the tools, mcp_call
 * runs them. */
#ifndef COMMAND_MCP_H
#define COMMAND_MCP_H

#include "common/buf.h"
#include "common/config/config.h"
#include "common/value/yaml.h"

#define ARGUMENTS_MAX 12

enum mcp_type { MCP_TEXT, MCP_NUMBER, MCP_FLAG };

struct mcp_argument {
	const char *name; /* NULL: the end */
	enum mcp_type type;
	bool required;
	const char *option; /* "--limit="; a flag's whole option; NULL: an operand */
	const char *about;
	const char *words; /* the allowed ones, as of options */
	bool shows_values; /* it may show or compare values of Secrets, and is refused for them */
};

struct mcp_tool {
	const char *name, *about;
	const char *command[4]; /* NULL: the end */
	const char *resource;   /* that it reads without an argument for it */
	bool is_report;         /* a bad state that it reports is no error */
	bool newest;            /* a long answer loses its beginning */
	struct mcp_argument arguments[ARGUMENTS_MAX];
};

/* Appends the JSON list of the tools. */
void mcp_put_tools(struct buf *out);
/* Returns the tool NAME; NULL: there is none. */
const struct mcp_tool *mcp_find(const char *name);

/* Runs the tool NAME with the map ARGUMENTS (NULL: none) on the store of FLAGS, and appends its
 * answer, valid UTF-8. Returns: FOUND; NOT_FOUND: there is no such tool; errors. *RET_FAILED: the
 * answer is the tool's error. */
int mcp_call(const struct config_flags *flags, const char *name, const struct yaml_node *arguments,
	struct buf *out, bool *ret_failed);

#endif
