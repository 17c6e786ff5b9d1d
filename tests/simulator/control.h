/* SPDX-License-Identifier: Apache-2.0 */
/* The control port: what tests do to the simulated cluster. Every call is described in
 * tests/README.md, section Simulator; the table of calls is at the end of control.c. */
#ifndef SIMULATOR_CONTROL_H
#define SIMULATOR_CONTROL_H

#include "tests/simulator/api.h"
#include "tests/simulator/churn.h"

struct control {
	struct api *api;
	struct churn *churn;
	struct http_server *server; /* the API's */
	pthread_mutex_t serial; /* held by calls that do not hold world->lock; of what follows */
	/* An outage that ends by itself. */
	pthread_t outage;
	bool outage_begun;
	uint64_t outage_until_ms;
	bool closing; /* under world->lock */
};

/* The server is set when it is open. */
void control_init(struct control *control, struct api *api, struct churn *churn);

/* Ends what runs in the background; when the control port takes no calls any more. */
void control_release(struct control *control);

http_handler_fn control_handle; /* arg: struct control */

#endif
