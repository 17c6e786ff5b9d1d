/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of the route, and its ends. Each end answers the request, now or later. */
#ifndef SERVE_ANSWER_VERBS_H
#define SERVE_ANSWER_VERBS_H

#include "serve/answer/request.h"

/* authorize.c: asks the authorizer (auth.h) whether the client may make the request. Calls
 * request->dispatch, now or later, or refuses the request. */
void answer_authorize(struct answer_request *request);
/* Asks again for a running watch. Calls FN with the request, now or later. */
void answer_authorize_again(struct answer_request *request, auth_decided_fn *fn);
/* Returns the status of a refusal if ANSWER, for the reason WHY, is no decision; else 0. */
int answer_undecided(struct answer_request *request, enum auth_answer answer, const char *why);

/* forward.c: lets the request wait for its state. After ANSWER_WAIT_NS forwards or refuses it. */
void answer_wait_for_state(struct answer_request *request);
/* Sends the request to the API server, and its answer to the client. */
void answer_forward(struct answer_request *request);

/* read.c */
void answer_get(struct answer_request *request);
void answer_list(struct answer_request *request);
/* watch.c */
void answer_watch(struct answer_request *request);
/* discovery.c: /api, /apis, /version */
void answer_discovery(struct answer_request *request);
/* who.c: returns true for /kinf/who/...; makes it a request to list all pods, for the decision. */
bool answer_is_who(const struct answer_request *request);
void answer_who(struct answer_request *request);
/* access.c: returns true for a SelfSubjectAccessReview; answers it without the API server. */
bool answer_is_access(const struct answer_request *request);
void answer_access(struct answer_request *request);
/* mcp.c: finds the program that answers about the store in the directory STORE. Returns: 0;
 * ERR_CONFIG: it is not installed. */
int mcp_open(const char *store, struct mcp_calls **ret_mcp);
void mcp_close(struct mcp_calls **mcp);
/* Returns true for /kinf/mcp with serve.mcp; makes it a request to list all resources, for the
 * decision. */
bool answer_is_mcp(const struct answer_request *request);
void answer_mcp(struct answer_request *request);

#endif
