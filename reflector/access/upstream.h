/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file `upstream` in the runtime directory: how to reach the API server, without any secret, for
 * kinf-serve, which asks it with the credentials of its own clients (store/FORMAT.md).
 */
#ifndef REFLECTOR_ACCESS_UPSTREAM_H
#define REFLECTOR_ACCESS_UPSTREAM_H

#include "reflector/access/kubeconfig.h"

#define UPSTREAM_FILE "upstream"

/* Writes the file into the runtime directory, with MODE. A CA's file that can't be read is an error. */
int upstream_write(const struct kubeconfig *config, int runtime_fd, unsigned mode);

#endif
