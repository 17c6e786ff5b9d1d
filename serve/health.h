/* SPDX-License-Identifier: Apache-2.0 */
/* /livez, /readyz and /healthz on each listener, and nothing but /metrics on the listener for
 * metrics. They tell nothing about objects, so they need no decision. */
#ifndef SERVE_HEALTH_H
#define SERVE_HEALTH_H

#include <stdbool.h>

struct exchange;
struct listener;
struct worker_shared;

/* Answers X if its path is one of these, or if LISTENER has no others. Returns whether it did. */
bool health_answer(
	struct worker_shared *shared, const struct listener *listener, struct exchange *x);

#endif
