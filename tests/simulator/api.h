/* SPDX-License-Identifier: Apache-2.0 */
/* The Kubernetes API: takes a request apart, lets faults have their say, and passes it on to
 * discovery, list, watch or a single get. */
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
	const char *token; /* bearer token that is required, or NULL */
};

http_handler_fn api_handle; /* arg: struct api */

#endif
