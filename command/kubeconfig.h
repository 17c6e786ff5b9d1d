/* SPDX-License-Identifier: Apache-2.0 */
/* The kubeconfig of a store's kinf-serve, for `kinf kubeconfig` and `kinf open`. */
#ifndef COMMAND_KUBECONFIG_H
#define COMMAND_KUBECONFIG_H

#include "common/buf.h"
#include "common/config/config.h"

/* Appends the kubeconfig of the kinf-serve of CONFIG's store. It may have credentials. */
int kubeconfig_write(const struct config *config, struct buf *out);

#endif
