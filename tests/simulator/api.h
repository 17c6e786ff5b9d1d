/* SPDX-License-Identifier: Apache-2.0 */
/* The Kubernetes API: parses a request, applies faults, and calls discovery, list, watch or get. */
#ifndef SIMULATOR_API_H
#define SIMULATOR_API_H

#include "tests/simulator/fault.h"
#include "tests/simulator/http.h"
#include "tests/simulator/requestlog.h"
#include "tests/simulator/world.h"

struct api {
	struct world *world;
	struct faults *faults;
	struct requestlog *log;
	const char *token; /* the bearer token of all requests; NULL: none */
};

http_handler_fn api_handle; /* arg: struct api */

#endif
