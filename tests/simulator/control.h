/* SPDX-License-Identifier: Apache-2.0 */
/* The control port: tests change the simulated cluster by it. tests/README.md, section Simulator,
 * describes the calls; their table is at the end of control.c. */
#ifndef SIMULATOR_CONTROL_H
#define SIMULATOR_CONTROL_H

#include "tests/simulator/api.h"
#include "tests/simulator/churn.h"

struct control {
	struct api *api;
	struct churn *churn;
	struct http_server *server; /* the API's */
	pthread_mutex_t serial;     /* serializes calls without world->lock */
};

/* The caller sets control->server when the server is open. */
void control_init(struct control *control, struct api *api, struct churn *churn);

/* The control port must be closed. */
void control_release(struct control *control);

http_handler_fn control_handle; /* arg: struct control */

#endif
