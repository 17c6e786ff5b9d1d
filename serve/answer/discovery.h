/* SPDX-License-Identifier: Apache-2.0 */
/* The documents about what is served: /api, /apis, /version. */
#ifndef SERVE_ANSWER_DISCOVERY_H
#define SERVE_ANSWER_DISCOVERY_H

#include "serve/answer/request.h"

void answer_discovery(struct answer_request *request);

#endif
