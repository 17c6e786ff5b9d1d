/* SPDX-License-Identifier: Apache-2.0 */
/* /kinf/mcp: messages of the Model Context Protocol. */
#ifndef SERVE_ANSWER_MCP_H
#define SERVE_ANSWER_MCP_H

#include "serve/answer/request.h"

/* Finds the program that answers about the store in the directory STORE. Returns: 0; ERR_CONFIG: it
 * is not installed. */
int mcp_open(const char *store, struct mcp_calls **ret_mcp);
void mcp_close(struct mcp_calls **mcp);

/* Returns true for /kinf/mcp with serve.mcp; makes it a request to list all resources, for the
 * decision. */
bool answer_is_mcp(const struct answer_request *request);
void answer_mcp(struct answer_request *request);

#endif
