/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that go to the API server, and those that wait for a state or go there. */
#ifndef SERVE_ANSWER_FORWARD_H
#define SERVE_ANSWER_FORWARD_H

#include "serve/answer/request.h"

/* Sends the request to the API server, which decides on it. */
void answer_forward(struct answer_request *request);
/* Calls request->resume again, because the state that is asked for is not here yet. Forwards or
 * refuses the request when it has waited for long enough. */
void answer_later(struct answer_request *request);

#endif
