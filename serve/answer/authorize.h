/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the authorizer (auth.h) whether the client may make the request. */
#ifndef SERVE_ANSWER_AUTHORIZE_H
#define SERVE_ANSWER_AUTHORIZE_H

#include "serve/answer/request.h"

/* Calls request->dispatch, now or later, or refuses the request. */
void answer_authorize(struct answer_request *request);
/* Asks again for a running watch. Calls FN with the request, now or later. */
void answer_authorize_again(struct answer_request *request, auth_decided_fn *fn);

#endif
