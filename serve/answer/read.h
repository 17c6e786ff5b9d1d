/* SPDX-License-Identifier: Apache-2.0 */
/* GET of one object, and LIST. */
#ifndef SERVE_ANSWER_READ_H
#define SERVE_ANSWER_READ_H

#include "serve/answer/request.h"

void answer_get(struct answer_request *request);
void answer_list(struct answer_request *request);

#endif
