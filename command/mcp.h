/* SPDX-License-Identifier: Apache-2.0 */
/* The internal header of the mcp group: mcp speaks the protocol, mcp_tools runs the tools. */
#ifndef COMMAND_MCP_H
#define COMMAND_MCP_H

#include "common/buf.h"
#include "common/config/config.h"
#include "common/value/yaml.h"

/* Appends the JSON list of the tools. */
void mcp_put_tools(struct buf *out);

/* Runs the tool NAME with the map ARGUMENTS (NULL: none) on the store of FLAGS, and appends its
 * answer, valid UTF-8. Returns: FOUND; NOT_FOUND: there is no such tool; errors. *RET_FAILED: the
 * answer is the tool's error. */
int mcp_call(const struct config_flags *flags, const char *name, const struct yaml_node *arguments,
	struct buf *out, bool *ret_failed);

#endif
