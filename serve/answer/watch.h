/* SPDX-License-Identifier: Apache-2.0 */
/* WATCH. */
#ifndef SERVE_ANSWER_WATCH_H
#define SERVE_ANSWER_WATCH_H

#include "serve/answer/request.h"

void answer_watch(struct answer_request *request);

#endif
