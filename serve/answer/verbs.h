/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of the route. Each answers the request, now or later. */
#ifndef SERVE_ANSWER_VERBS_H
#define SERVE_ANSWER_VERBS_H

#include "serve/answer/request.h"

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

#endif
