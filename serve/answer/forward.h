/* SPDX-License-Identifier: Apache-2.0 */
/* Forwards requests to the API server, and lets requests wait for a state. */
#ifndef SERVE_ANSWER_FORWARD_H
#define SERVE_ANSWER_FORWARD_H

#include "serve/answer/request.h"

/* Sends the request to the API server, and its answer to the client. */
void answer_forward(struct answer_request *request);
/* Lets the request wait for its state. After ANSWER_WAIT_NS forwards or refuses it. */
void answer_wait_for_state(struct answer_request *request);

#endif
